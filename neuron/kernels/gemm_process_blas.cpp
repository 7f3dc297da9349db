// The BLAS that is already in the process: looked up at run time, nothing is linked. In a Python process with torch
// that is MKL inside libtorch_cpu.so.
//
// Each call runs on one thread, on a tile of a grid that depends on the problem alone; our pool distributes the tiles.
// Operands that BLAS could not take as they are, or that are less aligned than an allocation of ours, are packed first,
// so that the library sees the same kind of call whatever the strides were.
#include <algorithm>
#include <atomic>
#include <complex>
#include <cstring>

#include "neuron/base/processor.h"
#include "neuron/base/thread_pool.h"
#include "neuron/kernels/gemm_grid.h"
#include "neuron/kernels/gemm_memory.h"
#include "neuron/kernels/gemm_microkernel.h"
#include "neuron/kernels/process_library.h"
#include "neuron/kernels/scratch.h"

namespace neuron::kernels {
namespace {

template <typename T>
using GemmFunction = void (*)(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
                              const int* k, const T* alpha, const T* a, const int* lda, const T* b, const int* ldb,
                              const T* beta, T* c, const int* ldc);

constexpr int64_t kFewVectors = 64, kLargeMatrix = 1 << 22;  // the latter in elements

// A product as BLAS sees it, column-major: c [m, n] = alpha * a b + beta * c.
template <typename T>
struct ColumnMajorCall {
  bool transpose_a, transpose_b;
  int m, n, k;
  T alpha;
  const T* a;
  int lda;
  const T* b;
  int ldb;
  T beta;
  T* c;
  int ldc;
};

// One routine of BLAS: its type, its symbol and the call.
template <typename T, DType kType>
struct Routine {
  using Element = T;
  static constexpr DType kDType = kType;
  static constexpr const char* kSymbol = kType == DType::Float32     ? "sgemm_"
                                         : kType == DType::Float64   ? "dgemm_"
                                         : kType == DType::Complex64 ? "cgemm_"
                                                                     : "zgemm_";
  static void call(void* function, const ColumnMajorCall<T>& c) {
    reinterpret_cast<GemmFunction<T>>(function)(c.transpose_a ? "T" : "N", c.transpose_b ? "T" : "N", &c.m, &c.n, &c.k,
                                                &c.alpha, c.a, &c.lda, c.b, &c.ldb, &c.beta, c.c, &c.ldc);
  }
};

template <typename R>
void* function_of() {
  static std::atomic<void*> found{nullptr};
  void* known = found.load(std::memory_order_acquire);
  if (known == nullptr) {
    known = find_process_symbol(R::kSymbol);
    found.store(known, std::memory_order_release);
  }
  return known;
}

// How an operand goes into BLAS, in row-major terms. The transposition is the recorded one, also when the operand is
// packed (BLAS may sum a transposed operand in another order); extents of 1 leave it to the sizes alone.
struct Operand {
  bool transposed;
  bool packed;
  int64_t leading;  // leading dimension of the memory BLAS reads, where it is not packed
};

template <typename T>
Operand classify(const GemmOperand& x, int64_t rows, int64_t columns) {
  constexpr uintptr_t kAlignment = 16;
  bool aligned = reinterpret_cast<uintptr_t>(x.data) % kAlignment == 0;
  int64_t row = rows == 1 ? columns : x.row, column = columns == 1 ? 1 : x.column;
  bool transposed = rows > 1 && columns > 1 && column != 1 && row == 1;
  int64_t leading = transposed ? column : row;
  // A column with gaps is summed in another order than a dense one.
  if (columns == 1 && rows > 1 && row != 1) return {false, true, 1};
  bool usable = (transposed || column == 1) && leading >= (transposed ? rows : columns);
  return {transposed, !usable || !aligned, leading};
}

struct Buffers {
  Scratch a, b, result;
};
thread_local Buffers buffers;

template <typename T>
const T* at(const GemmOperand& x, int64_t batch, int64_t row, int64_t column) {
  return static_cast<const T*>(x.data) + batch * x.batch + row * x.row + column * x.column;
}

template <typename T>
void copy_rows(const T* source, int64_t row_stride, int64_t column_stride, int64_t rows, int64_t columns, T* target,
               int64_t target_stride) {
  for (int64_t i = 0; i < rows; ++i) {
    const T* from = source + i * row_stride;
    T* to = target + i * target_stride;
    if (from == to && column_stride == 1) continue;
    if (column_stride == 1) {
      std::memcpy(to, from, columns * sizeof(T));
    } else {
      for (int64_t j = 0; j < columns; ++j) to[j] = from[j * column_stride];
    }
  }
}

// The tile of an operand as BLAS is to read it.
template <typename T>
const T* prepare(Operand& operand, const GemmOperand& x, Scratch& scratch, int64_t batch, int64_t row, int64_t rows,
                 int64_t column, int64_t columns) {
  const T* source = at<T>(x, batch, row, column);
  if (!operand.packed) return source;
  T* packed = scratch.get<T>(rows * columns);
  if (operand.transposed) {
    copy_rows(source, x.column, x.row, columns, rows, packed, rows);
    operand.leading = rows;
  } else {
    copy_rows(source, x.row, x.column, rows, columns, packed, columns);
    operand.leading = columns;
  }
  return packed;
}

// One tile of the result.
struct Tile {
  int64_t batch, row, rows, column, columns;
};

template <typename T>
void store_result(const GemmProblem& p, const Tile& t, const T* result, int64_t leading) {
  for (int64_t i = 0; i < t.rows; ++i) {
    const T* from = result + i * leading;
    T* to = static_cast<T*>(p.result.data) + t.batch * p.result.batch + (t.row + i) * p.result.row +
            t.column * p.result.column;
    for (int64_t j = 0; j < t.columns; ++j) to[j * p.result.column] = from[j];
  }
}

template <typename Routine>
void run_tile(const GemmProblem& p, Operand a, Operand b, const Tile& t) {
  using T = typename Routine::Element;
  const T* a_data = prepare<T>(a, p.a, buffers.a, t.batch, t.row, t.rows, 0, p.k);
  const T* b_data = prepare<T>(b, p.b, buffers.b, t.batch, 0, p.k, t.column, t.columns);
  // A column with gaps is written in another order than a dense one.
  bool dense = p.n == 1 ? p.m == 1 || p.result.row == 1 : p.result.column == 1 && (p.m == 1 || p.result.row >= p.n);
  bool direct = dense && reinterpret_cast<uintptr_t>(p.result.data) % 16 == 0;
  int64_t leading = !direct ? t.columns : p.m == 1 ? p.n : p.result.row;
  T* result = direct ? reinterpret_cast<T*>(address(p.result, Routine::kDType, t.batch, t.row, t.column))
                     : buffers.result.get<T>(t.rows * t.columns);
  if (p.has_addend()) {
    copy_rows(at<T>(p.addend, t.batch, t.row, t.column), p.addend.row, p.addend.column, t.rows, t.columns, result,
              leading);
  }
  // BLAS is column-major: it computes the transposed product.
  ColumnMajorCall<T> call{.transpose_a = b.transposed,
                          .transpose_b = a.transposed,
                          .m = static_cast<int>(t.columns),
                          .n = static_cast<int>(t.rows),
                          .k = static_cast<int>(p.k),
                          .alpha = static_cast<T>(p.alpha.as_double()),
                          .a = b_data,
                          .lda = static_cast<int>(b.leading),
                          .b = a_data,
                          .ldb = static_cast<int>(a.leading),
                          .beta = p.has_addend() ? static_cast<T>(p.beta.as_double()) : T(0),
                          .c = result,
                          .ldc = static_cast<int>(leading)};
  {
    OneProcessThread alone;
    Routine::call(function_of<Routine>(), call);
  }
  if (!direct) store_result(p, t, result, leading);
}

template <typename Routine>
void run_routine(const GemmProblem& p) {
  Operand a = classify<typename Routine::Element>(p.a, p.m, p.k);
  Operand b = classify<typename Routine::Element>(p.b, p.k, p.n);
  GemmGrid grid = gemm_grid(p.m, p.n, p.k);
  int64_t per_matrix = grid.row_parts * grid.column_parts;
  int64_t work = std::min(grid.row_length, p.m) * std::min(grid.column_length, p.n) * p.k;
  int64_t grain = std::max<int64_t>(1, 262144 / std::max<int64_t>(1, work));
  parallel_for(p.threads, p.batch * per_matrix, grain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      int64_t part = index % per_matrix;
      int64_t row = part / grid.column_parts * grid.row_length, column = part % grid.column_parts * grid.column_length;
      run_tile<Routine>(p, a, b,
                        {index / per_matrix, row, std::min(grid.row_length, p.m - row), column,
                         std::min(grid.column_length, p.n - column)});
    }
  });
}

using Single = Routine<float, DType::Float32>;
using Double = Routine<double, DType::Float64>;
using SingleComplex = Routine<std::complex<float>, DType::Complex64>;
using DoubleComplex = Routine<std::complex<double>, DType::Complex128>;

Refusal refuse(const GemmProblem& p) {
  bool known = p.dtype == DType::Float32 || p.dtype == DType::Float64 || is_complex(p.dtype);
  bool fits = p.result_dtype == p.dtype && (!p.has_addend() || p.addend_dtype == p.dtype);
  if (!known || !fits) {
    return {"takes float32, float64 and complex of one dtype; the problem is {} to {}", dtype_name(p.dtype),
            dtype_name(p.result_dtype)};
  }
  constexpr int64_t kLimit = int64_t{1} << 31;
  for (int64_t value : {p.m, p.n, p.k, p.a.row, p.a.column, p.b.row, p.b.column, p.result.row}) {
    if (value >= kLimit) return {"sizes and strides must be below 2^31; one is {}", value};
  }
  // A BLAS whose threads cannot be limited per caller would not keep the contract.
  if (!process_threads_can_be_limited() || function_of<Single>() == nullptr) {
    return "no BLAS with a thread limit per caller is in this process";
  }
  const bool intel = processor_features().made_by_intel;
  if (p.dtype == DType::Float32 && detected_gemm_microkernel() == &gemm_microkernel_avx2 && !intel) {
    if (p.batch > 1 && !is_transposed(p.a, p.m, p.k)) return "the packed product is faster for a batch";
  }
  if (p.dtype == DType::Float32 && detected_gemm_microkernel() == &gemm_microkernel_avx512) {
    // The MKL of torch does not use its kernels for them on processors of other makers.
    if (!intel) return "the packed product is faster on this processor";
    if (p.batch > 1) return "the packed product is faster for a batch";
    if (std::min(p.m, p.n) <= kFewVectors && std::max(p.m, p.n) * p.k >= kLargeMatrix) {
      return "the packed product is faster for a large matrix and a few vectors";
    }
  }
  return {};
}

void run(const GemmProblem& p) {
  switch (p.dtype) {
    case DType::Float32:
      return run_routine<Single>(p);
    case DType::Float64:
      return run_routine<Double>(p);
    case DType::Complex64:
      return run_routine<SingleComplex>(p);
    default:
      return run_routine<DoubleComplex>(p);
  }
}

}  // namespace

const Implementation<GemmProblem> gemm_process_blas = {"process_blas", refuse, run};

}  // namespace neuron::kernels
