// The reference: three loops, every dtype. Integers wrap modulo 2^bits, so they are exact to 64 bits; narrow floats are
// accumulated in float32 and rounded once.
#include <algorithm>
#include <complex>
#include <type_traits>
#include <vector>

#include "neuron/base/float_formats.h"
#include "neuron/base/thread_pool.h"
#include "neuron/kernels/gemm.h"

namespace neuron::kernels {
namespace {

template <typename T>
const T& element(const GemmOperand& x, int64_t batch, int64_t row, int64_t column) {
  return static_cast<const T*>(x.data)[batch * x.batch + row * x.row + column * x.column];
}

template <typename T>
T scalar_as(Scalar value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(value.as_int());
  } else {
    return static_cast<T>(value.as_double());
  }
}

// T: the arithmetic type and the stored type (unsigned integers stand for both signs).
template <typename T>
void run_typed(const GemmProblem& p) {
  // Products of 16-bit unsigned numbers would be taken in int and overflow it.
  using Wide = std::conditional_t<std::is_integral_v<T> && sizeof(T) < 4, uint32_t, T>;
  T alpha = scalar_as<T>(p.alpha), beta = scalar_as<T>(p.beta);
  int64_t work = std::max<int64_t>(1, p.n * p.k);
  parallel_for(p.threads, p.batch * p.m, std::max<int64_t>(1, 65536 / work), [&](int64_t begin, int64_t end) {
    std::vector<T> sums(p.n);
    for (int64_t index = begin; index < end; ++index) {
      int64_t batch = index / p.m, i = index % p.m;
      std::fill(sums.begin(), sums.end(), T(0));
      for (int64_t l = 0; l < p.k; ++l) {
        Wide x = element<T>(p.a, batch, i, l);
        for (int64_t j = 0; j < p.n; ++j) sums[j] = static_cast<T>(sums[j] + x * element<T>(p.b, batch, l, j));
      }
      for (int64_t j = 0; j < p.n; ++j) {
        T value = static_cast<T>(Wide(alpha) * sums[j]);
        if (p.has_addend()) value = static_cast<T>(Wide(beta) * element<T>(p.addend, batch, i, j) + value);
        static_cast<T*>(p.result.data)[batch * p.result.batch + i * p.result.row + j * p.result.column] = value;
      }
    }
  });
}

float load_float(DType dtype, const GemmOperand& x, int64_t batch, int64_t row, int64_t column) {
  int64_t offset = batch * x.batch + row * x.row + column * x.column;
  return static_cast<float>(load_as_double(dtype, static_cast<const char*>(x.data) + offset * dtype_size(dtype)));
}

void run_narrow(const GemmProblem& p) {
  float alpha = static_cast<float>(p.alpha.as_double()), beta = static_cast<float>(p.beta.as_double());
  int64_t work = std::max<int64_t>(1, p.n * p.k);
  parallel_for(p.threads, p.batch * p.m, std::max<int64_t>(1, 65536 / work), [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      int64_t batch = index / p.m, i = index % p.m;
      for (int64_t j = 0; j < p.n; ++j) {
        float sum = 0;
        for (int64_t l = 0; l < p.k; ++l) {
          sum += load_float(p.dtype, p.a, batch, i, l) * load_float(p.dtype, p.b, batch, l, j);
        }
        float value = alpha * sum;
        if (p.has_addend()) value = beta * load_float(p.addend_dtype, p.addend, batch, i, j) + value;
        int64_t offset = batch * p.result.batch + i * p.result.row + j * p.result.column;
        store_from_double(p.result_dtype, value,
                          static_cast<char*>(p.result.data) + offset * dtype_size(p.result_dtype));
      }
    }
  });
}

Refusal refuse(const GemmProblem&) { return {}; }

void run(const GemmProblem& p) {
  if (is_float(p.dtype) &&
      (p.dtype != p.result_dtype || is_reduced_float(p.dtype) || (p.has_addend() && p.addend_dtype != p.dtype))) {
    return run_narrow(p);
  }
  switch (p.dtype) {
    case DType::Float32:
      return run_typed<float>(p);
    case DType::Float64:
      return run_typed<double>(p);
    case DType::Complex64:
      return run_typed<std::complex<float>>(p);
    case DType::Complex128:
      return run_typed<std::complex<double>>(p);
    default:
      break;
  }
  switch (dtype_size(p.dtype)) {
    case 1:
      return run_typed<uint8_t>(p);
    case 2:
      return run_typed<uint16_t>(p);
    case 4:
      return run_typed<uint32_t>(p);
    default:
      return run_typed<uint64_t>(p);
  }
}

}  // namespace

const Implementation<GemmProblem> gemm_plain = {"plain", refuse, run};

}  // namespace neuron::kernels
