#include "neuron/base/processor.h"

#include <cpuid.h>
#include <fmt/format.h>

#include <utility>

namespace neuron {

const ProcessorFeatures& processor_features() {
  static const ProcessorFeatures features = [] {
    __builtin_cpu_init();
    ProcessorFeatures f;
    f.avx2 = __builtin_cpu_supports("avx2") != 0;
    f.fma = __builtin_cpu_supports("fma") != 0;
    f.f16c = __builtin_cpu_supports("f16c") != 0;
    f.bmi2 = __builtin_cpu_supports("bmi2") != 0;
    f.avx512f = __builtin_cpu_supports("avx512f") != 0;
    f.avx512bw = __builtin_cpu_supports("avx512bw") != 0;
    f.avx512dq = __builtin_cpu_supports("avx512dq") != 0;
    f.avx512vl = __builtin_cpu_supports("avx512vl") != 0;
    f.avx512cd = __builtin_cpu_supports("avx512cd") != 0;
    f.avx512bf16 = __builtin_cpu_supports("avx512bf16") != 0;
    f.made_by_intel = __builtin_cpu_is("intel") != 0;
    // Not among the compiler's names: bits 22 and 24 of EDX of leaf 7.
    unsigned a = 0, b = 0, c = 0, d = 0;
    const bool known = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0;
    f.amx_bf16 = known && (d & (1u << 22)) != 0;
    f.amx_tile = known && (d & (1u << 24)) != 0;
    return f;
  }();
  return features;
}

std::string unsupported_processor(const ProcessorFeatures& features) {
  std::string missing;
  for (const auto& [name, present] : {std::pair("AVX2", features.avx2), std::pair("FMA", features.fma),
                                      std::pair("F16C", features.f16c), std::pair("BMI2", features.bmi2)}) {
    if (!present) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", name);
  }
  if (missing.empty()) return "";
  return fmt::format("the host device needs a processor with AVX2, FMA, F16C and BMI2 (x86-64-v3); this one lacks {}",
                     missing);
}

}  // namespace neuron
