// AVX-512: a register tile of 14 x 32, 28 accumulators of the 32 registers.
#include <immintrin.h>

#include "neuron/kernels/gemm_microkernel.h"
#include "neuron/kernels/gemm_pack.h"

// The compiler's own header leaves the unused operand of masked intrinsics undefined and then warns of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#define NEURON_TARGET __attribute__((target("avx512f,avx512vl,fma")))
#define NEURON_INLINE __attribute__((target("avx512f,avx512vl,fma"), always_inline)) inline

namespace neuron::kernels {
namespace {

struct Units {
  using Register = __m512;
  static constexpr int kLanes = 16, kRows = 14, kNarrowRows = 14;
  NEURON_INLINE static Register zero() { return _mm512_setzero_ps(); }
  NEURON_INLINE static Register fill(float x) { return _mm512_set1_ps(x); }
  NEURON_INLINE static Register load(const void* x) { return _mm512_loadu_ps(x); }
  NEURON_INLINE static void store(float* x, Register value) { _mm512_storeu_ps(x, value); }
  NEURON_INLINE static Register broadcast(const char* word) {
    return _mm512_set1_ps(*reinterpret_cast<const float*>(word));
  }
  NEURON_INLINE static Register multiply(Register x, Register y) { return _mm512_mul_ps(x, y); }
  NEURON_INLINE static Register add(Register x, Register y) { return _mm512_add_ps(x, y); }
  NEURON_INLINE static Register multiply_add(Register x, Register y, Register sum) {
    return _mm512_fmadd_ps(x, y, sum);
  }
};

}  // namespace
}  // namespace neuron::kernels

#include "neuron/kernels/gemm_tile_loops.h"

namespace neuron::kernels {
namespace {

NEURON_TARGET void store(PackedSource type, const float* values, int64_t count, void* target) {
  if (type != PackedSource::Float16) return gemm_microkernel_avx2.store(type, values, count, target);
  auto* rounded = static_cast<uint16_t*>(target);
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m256i sixteen = _mm512_cvtps_ph(_mm512_loadu_ps(values + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(rounded + i), sixteen);
  }
  if (i < count) gemm_microkernel_avx2.store(type, values + i, count - i, rounded + i);
}

}  // namespace

const GemmMicrokernel gemm_microkernel_avx512 = {"avx512", Units::kRows, Units::kNarrowRows, 2 * Units::kLanes, 1,
                                                 256,      compute,      compute_narrow,     pack_avx512,       store};

}  // namespace neuron::kernels
