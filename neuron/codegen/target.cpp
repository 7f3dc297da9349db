// Which instruction set kernels are generated for: AVX-512 where the processor has it, AVX2 otherwise. The bits of a
// result are the same on both, so the choice is one of speed only.
#include <string>

#include "neuron/base/error.h"
#include "neuron/base/options.h"
#include "neuron/codegen/region.h"

namespace neuron::codegen {

namespace {

bool processor_has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") &&
         __builtin_cpu_supports("bmi2");
}

bool processor_has_avx512() {
  return processor_has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd");
}

HostTarget detect() {
  if (!processor_has_avx2()) {
    fail(ErrorKind::Runtime,
         "the host device needs a processor with AVX2, FMA and F16C (x86-64-v3); this one lacks them");
  }
  const std::string& wanted = option_text(Option::HostTarget);
  if (wanted == "native") return processor_has_avx512() ? HostTarget::Avx512 : HostTarget::Avx2;
  if (wanted == "avx2") return HostTarget::Avx2;
  if (!processor_has_avx512()) {
    fail(ErrorKind::Runtime,
         "TORCH_NEURONX_HOST_TARGET is 'avx512', which this processor does not have (F, BW, DQ, VL, CD)");
  }
  return HostTarget::Avx512;
}

}  // namespace

HostTarget detected_host_target() {
  static const HostTarget target = detect();
  return target;
}

const char* host_target_name(HostTarget target) { return target == HostTarget::Avx512 ? "avx512" : "avx2"; }

}  // namespace neuron::codegen
