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

#include "neuron/base/float_formats.h"
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
using Bfloat16Function = void (*)(int layout, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                                  const uint16_t* a, int lda, const uint16_t* b, int ldb, float beta, float* c,
                                  int ldc);

// A product as BLAS sees it, column-major: c [m, n] = alpha * a b + beta * c.
template <typename T, typename R>
struct ColumnMajorCall {
  bool transpose_a, transpose_b;
  int m, n, k;
  R alpha;
  const T* a;
  int lda;
  const T* b;
  int ldb;
  R beta;
  R* c;
  int ldc;
};

// One routine of BLAS: types of operands (T) and result (R), its symbol and the call.
template <typename T, DType kType>
struct Routine {
  using Operand = T;
  using Result = T;
  static constexpr DType kResult = kType;
  static constexpr const char* kSymbol = kType == DType::Float32     ? "sgemm_"
                                         : kType == DType::Float64   ? "dgemm_"
                                         : kType == DType::Complex64 ? "cgemm_"
                                                                     : "zgemm_";
  static void call(void* function, const ColumnMajorCall<T, T>& c) {
    reinterpret_cast<GemmFunction<T>>(function)(c.transpose_a ? "T" : "N", c.transpose_b ? "T" : "N", &c.m, &c.n, &c.k,
                                                &c.alpha, c.a, &c.lda, c.b, &c.ldb, &c.beta, c.c, &c.ldc);
  }
};

// bfloat16 with float32 accumulation, for processors with units for it.
struct Bfloat16Routine {
  using Operand = uint16_t;
  using Result = float;
  static constexpr DType kResult = DType::Float32;
  static constexpr const char* kSymbol = "cblas_gemm_bf16bf16f32";
  static void call(void* function, const ColumnMajorCall<uint16_t, float>& c) {
    constexpr int kColumnMajor = 102, kPlain = 111, kTransposed = 112;
    reinterpret_cast<Bfloat16Function>(function)(kColumnMajor, c.transpose_a ? kTransposed : kPlain,
                                                 c.transpose_b ? kTransposed : kPlain, c.m, c.n, c.k, c.alpha, c.a,
                                                 c.lda, c.b, c.ldb, c.beta, c.c, c.ldc);
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

template <typename R>
void load_addend(const GemmProblem& p, const Tile& t, DType type, R* result, int64_t leading) {
  if (p.addend_dtype == type) {
    copy_rows(at<R>(p.addend, t.batch, t.row, t.column), p.addend.row, p.addend.column, t.rows, t.columns, result,
              leading);
    return;
  }
  if constexpr (std::is_same_v<R, float>) {
    for (int64_t i = 0; i < t.rows; ++i) {
      gemm_microkernel_avx2.pack(packed_source(p.addend_dtype),
                                 address(p.addend, p.addend_dtype, t.batch, t.row + i, t.column), p.addend.column, 0,
                                 t.columns, 1, static_cast<int>(t.columns), result + i * leading);
    }
  }
}

template <typename R>
void store_result(const GemmProblem& p, const Tile& t, DType type, const R* result, int64_t leading) {
  for (int64_t i = 0; i < t.rows; ++i) {
    const R* from = result + i * leading;
    char* to = address(p.result, p.result_dtype, t.batch, t.row + i, t.column);
    int64_t step = p.result.column;
    if (p.result_dtype == type) {
      for (int64_t j = 0; j < t.columns; ++j) reinterpret_cast<R*>(to)[j * step] = from[j];
    } else if constexpr (std::is_same_v<R, float>) {
      if (step == 1 || p.n == 1) {
        gemm_microkernel_avx2.store(packed_source(p.result_dtype), from, t.columns, to);
      } else {
        int64_t size = static_cast<int64_t>(dtype_size(p.result_dtype));
        for (int64_t j = 0; j < t.columns; ++j) store_from_double(p.result_dtype, from[j], to + j * step * size);
      }
    }
  }
}

template <typename Routine>
void run_tile(const GemmProblem& p, Operand a, Operand b, const Tile& t) {
  using T = typename Routine::Operand;
  using R = typename Routine::Result;
  const T* a_data = prepare<T>(a, p.a, buffers.a, t.batch, t.row, t.rows, 0, p.k);
  const T* b_data = prepare<T>(b, p.b, buffers.b, t.batch, 0, p.k, t.column, t.columns);
  // A column with gaps is written in another order than a dense one.
  bool dense = p.n == 1 ? p.m == 1 || p.result.row == 1 : p.result.column == 1 && (p.m == 1 || p.result.row >= p.n);
  bool direct = p.result_dtype == Routine::kResult && dense && reinterpret_cast<uintptr_t>(p.result.data) % 16 == 0;
  int64_t leading = !direct ? t.columns : p.m == 1 ? p.n : p.result.row;
  R* result = direct ? reinterpret_cast<R*>(address(p.result, Routine::kResult, t.batch, t.row, t.column))
                     : buffers.result.get<R>(t.rows * t.columns);
  if (p.has_addend()) load_addend(p, t, Routine::kResult, result, leading);
  // BLAS is column-major: it computes the transposed product.
  ColumnMajorCall<T, R> call{.transpose_a = b.transposed,
                             .transpose_b = a.transposed,
                             .m = static_cast<int>(t.columns),
                             .n = static_cast<int>(t.rows),
                             .k = static_cast<int>(p.k),
                             .alpha = static_cast<R>(p.alpha.as_double()),
                             .a = b_data,
                             .lda = static_cast<int>(b.leading),
                             .b = a_data,
                             .ldb = static_cast<int>(a.leading),
                             .beta = p.has_addend() ? static_cast<R>(p.beta.as_double()) : R(0),
                             .c = result,
                             .ldc = static_cast<int>(leading)};
  {
    OneProcessThread alone;
    Routine::call(function_of<Routine>(), call);
  }
  if (!direct) store_result(p, t, Routine::kResult, result, leading);
}

template <typename Routine>
void run_routine(const GemmProblem& p) {
  Operand a = classify<typename Routine::Operand>(p.a, p.m, p.k);
  Operand b = classify<typename Routine::Operand>(p.b, p.k, p.n);
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

// On other makers' processors the MKL of torch does not use its kernels for them.
bool made_by_intel() {
  static const bool intel = [] {
    __builtin_cpu_init();
    return __builtin_cpu_is("intel") != 0;
  }();
  return intel;
}

std::string refuse(const GemmProblem& p) {
  bool narrow = p.dtype == DType::BFloat16;
  bool known = narrow || p.dtype == DType::Float32 || p.dtype == DType::Float64 || is_complex(p.dtype);
  bool fits = narrow ? is_packed_source(p.result_dtype) && (!p.has_addend() || is_packed_source(p.addend_dtype))
                     : p.result_dtype == p.dtype && (!p.has_addend() || p.addend_dtype == p.dtype);
  if (!known || !fits) {
    return fmt::format("takes bfloat16, float32, float64 and complex of one dtype; the problem is {} to {}",
                       dtype_name(p.dtype), dtype_name(p.result_dtype));
  }
  constexpr int64_t kLimit = int64_t{1} << 31;
  for (int64_t value : {p.m, p.n, p.k, p.a.row, p.a.column, p.b.row, p.b.column, p.result.row}) {
    if (value >= kLimit) return fmt::format("sizes and strides must be below 2^31; one is {}", value);
  }
  // A BLAS whose threads cannot be limited per caller would not keep the contract.
  if (!process_threads_can_be_limited() || function_of<Single>() == nullptr) {
    return "no BLAS with a thread limit per caller is in this process";
  }
  if (p.dtype == DType::Float32 && !made_by_intel() && detected_gemm_microkernel() == &gemm_microkernel_avx512) {
    return "the packed product is faster on this processor";
  }
  if (narrow && !has_bfloat16_units()) return "the processor has no units for bfloat16";
  if (narrow && function_of<Bfloat16Routine>() == nullptr) return "the BLAS of this process has no bfloat16 product";
  return {};
}

void run(const GemmProblem& p) {
  switch (p.dtype) {
    case DType::BFloat16:
      return run_routine<Bfloat16Routine>(p);
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
