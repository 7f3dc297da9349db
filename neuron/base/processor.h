// What the processor can do, as far as the package asks. The one place for it: kernels, the code generator and the
// device decide by the same answers.
#pragma once

#include <string>

namespace neuron {

struct ProcessorFeatures {
  bool avx2 = false, fma = false, f16c = false, bmi2 = false;
  bool avx512f = false, avx512bw = false, avx512dq = false, avx512vl = false, avx512cd = false;
  bool avx512bf16 = false, amx_tile = false, amx_bf16 = false;
  bool made_by_intel = false;

  // What generated code of each kind and the library kernels for it need.
  bool runs_avx2() const { return avx2 && fma && f16c && bmi2; }
  bool runs_avx512() const { return runs_avx2() && avx512f && avx512bw && avx512dq && avx512vl && avx512cd; }
  // Dot products of bfloat16 pairs, in vector registers.
  bool runs_avx512_bf16() const { return runs_avx512() && avx512bf16; }
  // Products of tiles of bfloat16 (the system must let a process use them as well).
  bool runs_amx_bf16() const { return runs_avx512_bf16() && amx_tile && amx_bf16; }
};

// Of this machine.
const ProcessorFeatures& processor_features();

// Why the host device cannot run on such a processor, naming what is missing; empty when it can.
std::string unsupported_processor(const ProcessorFeatures& features);

}  // namespace neuron
