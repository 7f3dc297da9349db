// The BLAS that is already in the process: looked up at run time, nothing is linked. In a Python process with torch
// that is MKL inside libtorch_cpu.so.
//
// Each call runs on one thread, on a tile of a grid that depends on the problem alone; our pool distributes the tiles.
// Operands that BLAS could not take as they are, or that are less aligned than an allocation of ours, are packed first,
// so that the library sees the same kind of call whatever the strides were.
#include <dlfcn.h>

#include <algorithm>
#include <complex>
#include <cstring>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/gemm.h"
#include "neuron/kernels/scratch.h"

namespace neuron::kernels {
namespace {

template <typename T>
using GemmFunction = void (*)(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
                              const int* k, const T* alpha, const T* a, const int* lda, const T* b, const int* ldb,
                              const T* beta, T* c, const int* ldc);

struct Library {
  GemmFunction<float> sgemm = nullptr;
  GemmFunction<double> dgemm = nullptr;
  GemmFunction<std::complex<float>> cgemm = nullptr;
  GemmFunction<std::complex<double>> zgemm = nullptr;
  int (*set_threads)(int) = nullptr;  // for the calling thread; returns the former number
};

// Torch may be imported after the core was first used: a failed look-up is repeated, a good one is kept.
const Library* library() {
  static Library* found = nullptr;
  if (const Library* known = __atomic_load_n(&found, __ATOMIC_ACQUIRE)) return known;
  for (void* handle : {RTLD_DEFAULT, dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY)}) {
    if (handle == nullptr && handle != RTLD_DEFAULT) continue;
    void* set_threads = dlsym(handle, "MKL_Set_Num_Threads_Local");
    void* sgemm = dlsym(handle, "sgemm_");
    // A BLAS whose threads cannot be limited per caller would not keep the contract.
    if (set_threads == nullptr || sgemm == nullptr) continue;
    auto* fresh = new Library;
    fresh->set_threads = reinterpret_cast<int (*)(int)>(set_threads);
    fresh->sgemm = reinterpret_cast<GemmFunction<float>>(sgemm);
    fresh->dgemm = reinterpret_cast<GemmFunction<double>>(dlsym(handle, "dgemm_"));
    fresh->cgemm = reinterpret_cast<GemmFunction<std::complex<float>>>(dlsym(handle, "cgemm_"));
    fresh->zgemm = reinterpret_cast<GemmFunction<std::complex<double>>>(dlsym(handle, "zgemm_"));
    __atomic_store_n(&found, fresh, __ATOMIC_RELEASE);
    return fresh;
  }
  return nullptr;
}

template <typename T>
GemmFunction<T> function() {
  const Library& blas = *library();
  if constexpr (std::is_same_v<T, float>) return blas.sgemm;
  if constexpr (std::is_same_v<T, double>) return blas.dgemm;
  if constexpr (std::is_same_v<T, std::complex<float>>) return blas.cgemm;
  if constexpr (std::is_same_v<T, std::complex<double>>) return blas.zgemm;
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

// The grid: pieces of at most 1024 rows and columns of equal length (a multiple of 16), and at least two when the
// matrix is large enough for two threads.
struct Grid {
  int64_t row_length, column_length, row_parts, column_parts;
};

Grid grid_of(int64_t m, int64_t n, int64_t k) {
  auto parts = [](int64_t extent) { return (extent + 1023) / 1024; };
  int64_t row_parts = parts(m), column_parts = parts(n);
  if (row_parts * column_parts == 1 && m * n * k >= (int64_t{1} << 21)) (m >= n ? row_parts : column_parts) = 2;
  auto length = [](int64_t extent, int64_t count) { return ((extent + count - 1) / count + 15) / 16 * 16; };
  Grid grid{length(m, row_parts), length(n, column_parts), 0, 0};
  grid.row_parts = (m + grid.row_length - 1) / grid.row_length;
  grid.column_parts = (n + grid.column_length - 1) / grid.column_length;
  return grid;
}

template <typename T>
void tile(const GemmProblem& p, Operand a, Operand b, int64_t batch, int64_t row, int64_t rows, int64_t column,
          int64_t columns) {
  const T* a_data = prepare<T>(a, p.a, buffers.a, batch, row, rows, 0, p.k);
  const T* b_data = prepare<T>(b, p.b, buffers.b, batch, 0, p.k, column, columns);
  T* result = const_cast<T*>(at<T>(p.result, batch, row, column));
  bool direct =
      (p.n == 1 ? p.m == 1 || p.result.row == 1 : p.result.column == 1 && (p.m == 1 || p.result.row >= p.n)) &&
      reinterpret_cast<uintptr_t>(p.result.data) % 16 == 0;
  int64_t leading = p.m == 1 ? p.n : p.result.row;
  if (!direct) {
    leading = columns;
    result = buffers.result.get<T>(rows * columns);
  }
  T alpha = static_cast<T>(p.alpha.as_double());
  T beta = p.has_addend() ? static_cast<T>(p.beta.as_double()) : T(0);
  if (p.has_addend()) {
    copy_rows(at<T>(p.addend, batch, row, column), p.addend.row, p.addend.column, rows, columns, result, leading);
  }
  // BLAS is column-major: it computes the transposed product.
  int m = static_cast<int>(columns), n = static_cast<int>(rows), k = static_cast<int>(p.k);
  int lda = static_cast<int>(a.leading), ldb = static_cast<int>(b.leading), ldc = static_cast<int>(leading);
  int former = library()->set_threads(1);
  function<T>()(b.transposed ? "T" : "N", a.transposed ? "T" : "N", &m, &n, &k, &alpha, b_data, &ldb, a_data, &lda,
                &beta, result, &ldc);
  library()->set_threads(former);
  if (!direct) {
    for (int64_t i = 0; i < rows; ++i) {
      T* target = const_cast<T*>(at<T>(p.result, batch, row + i, column));
      for (int64_t j = 0; j < columns; ++j) target[j * p.result.column] = result[i * leading + j];
    }
  }
}

template <typename T>
void run_typed(const GemmProblem& p) {
  Operand a = classify<T>(p.a, p.m, p.k), b = classify<T>(p.b, p.k, p.n);
  Grid grid = grid_of(p.m, p.n, p.k);
  int64_t per_matrix = grid.row_parts * grid.column_parts;
  int64_t work = std::min(grid.row_length, p.m) * std::min(grid.column_length, p.n) * p.k;
  int64_t grain = std::max<int64_t>(1, 262144 / std::max<int64_t>(1, work));
  parallel_for(p.threads, p.batch * per_matrix, grain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      int64_t batch = index / per_matrix, part = index % per_matrix;
      int64_t row = part / grid.column_parts * grid.row_length, column = part % grid.column_parts * grid.column_length;
      tile<T>(p, a, b, batch, row, std::min(grid.row_length, p.m - row), column,
              std::min(grid.column_length, p.n - column));
    }
  });
}

std::string refuse(const GemmProblem& p) {
  bool known = p.dtype == DType::Float32 || p.dtype == DType::Float64 || is_complex(p.dtype);
  if (!known || p.result_dtype != p.dtype || (p.has_addend() && p.addend_dtype != p.dtype)) {
    return fmt::format("takes float32, float64 and complex of one dtype; the problem is {} to {}", dtype_name(p.dtype),
                       dtype_name(p.result_dtype));
  }
  constexpr int64_t kLimit = int64_t{1} << 31;
  for (int64_t value : {p.m, p.n, p.k, p.a.row, p.a.column, p.b.row, p.b.column, p.result.row}) {
    if (value >= kLimit) return fmt::format("sizes and strides must be below 2^31; one is {}", value);
  }
  if (library() == nullptr) return "no BLAS with a thread limit per caller is in this process";
  return {};
}

void run(const GemmProblem& p) {
  switch (p.dtype) {
    case DType::Float32:
      return run_typed<float>(p);
    case DType::Float64:
      return run_typed<double>(p);
    case DType::Complex64:
      return run_typed<std::complex<float>>(p);
    default:
      return run_typed<std::complex<double>>(p);
  }
}

}  // namespace

const Implementation<GemmProblem> gemm_process_blas = {"process_blas", refuse, run};

}  // namespace neuron::kernels
