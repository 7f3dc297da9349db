// Rates of the GEMM implementations against the core's peak: a loop of independent fused multiply-adds in registers, in
// the same run. Interleaved, best of several rounds, CPU time of the thread. With --threads, what the implementation
// that would run gains by them in wall time: single products in turns with one thread, the best of many, so that other
// work on the machine counts little where a product is shorter than a time slice.
//   neuron-gemm-bench [--blas libtorch_cpu.so] [--dtype f32|bf16|f16] [--layout nn|nt|tn] [--threads n] [m n k [batch]]
#include <dlfcn.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "neuron/base/float_formats.h"
#include "neuron/base/processor.h"
#include "neuron/kernels/gemm.h"

namespace neuron::kernels {
namespace {

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double processor_seconds() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }

__attribute__((target("avx512f"))) float fma_loop_avx512(int64_t count) {
  __m512 sums[16], x = _mm512_set1_ps(0.5f), y = _mm512_set1_ps(1e-3f);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  for (int64_t p = 0; p < count; ++p) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) sums[i] = _mm512_fmadd_ps(sums[i], x, y);
  }
  __m512 sum = sums[0];
#pragma GCC unroll 16
  for (int i = 1; i < 16; ++i) sum = _mm512_add_ps(sum, sums[i]);
  alignas(64) float lanes[16];
  _mm512_store_ps(lanes, sum);
  float total = 0;
  for (float lane : lanes) total += lane;
  return total;
}

__attribute__((target("avx2,fma"))) float fma_loop_avx2(int64_t count) {
  __m256 sums[12], x = _mm256_set1_ps(0.5f), y = _mm256_set1_ps(1e-3f);
#pragma GCC unroll 12
  for (int i = 0; i < 12; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i));
  for (int64_t p = 0; p < count; ++p) {
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) sums[i] = _mm256_fmadd_ps(sums[i], x, y);
  }
  __m256 sum = sums[0];
#pragma GCC unroll 12
  for (int i = 1; i < 12; ++i) sum = _mm256_add_ps(sum, sums[i]);
  alignas(32) float lanes[8];
  _mm256_store_ps(lanes, sum);
  float total = 0;
  for (float lane : lanes) total += lane;
  return total;
}

// Floating-point operations per second of one core in float32.
double measure_peak() {
  constexpr int64_t kCount = 2'000'000;
  const bool wide = neuron::processor_features().avx512f;
  double best = 0;
  volatile float kept = 0;
  for (int round = 0; round < 5; ++round) {
    const double start = processor_seconds();
    kept = wide ? fma_loop_avx512(kCount) : fma_loop_avx2(kCount);
    const double operations = 2.0 * static_cast<double>(kCount) * (wide ? 16 * 16 : 12 * 8);
    best = std::max(best, operations / (processor_seconds() - start));
  }
  static_cast<void>(kept);
  return best;
}

struct Shape {
  int64_t m, n, k, batch = 1;
};

constexpr Shape kShapes[] = {
    {64, 64, 64},       {128, 128, 128},   {256, 256, 256},   {512, 512, 512},   {1024, 1024, 1024}, {2048, 2048, 2048},
    {2048, 1152, 384},  {2048, 1536, 384}, {2048, 384, 1536}, {1024, 3072, 768}, {512, 768, 3072},   {128, 768, 768},
    {64, 12544, 147},   {256, 3136, 64},   {128, 784, 1152},  {512, 49, 4608},   {32, 4096, 4096},   {4096, 32, 1024},
    {8, 2048, 2048},    {4, 2048, 2048},   {2048, 2048, 16},  {16, 16, 16384},   {256, 256, 64, 48}, {256, 64, 256, 48},
    {128, 128, 64, 96}, {1, 1024, 1024},   {1, 4096, 4096},   {1, 576, 1536},    {1024, 1, 1024},    {4096, 1, 4096},
};

// In huge pages where there are, as device memory is.
class Pages {
 public:
  explicit Pages(size_t size) {
    constexpr size_t kHugePage = size_t{2} << 20;
    data_ = std::aligned_alloc(kHugePage, (size + kHugePage - 1) / kHugePage * kHugePage);
    if (size >= kHugePage) madvise(data_, size, MADV_HUGEPAGE);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { std::free(data_); }
  void* data() const { return data_; }

 private:
  void* data_;
};

struct Matrix {
  Pages pages;
  GemmOperand operand;
  Matrix(DType dtype, int64_t batch, int64_t rows, int64_t columns, bool transposed)
      : pages(static_cast<size_t>(batch * rows * columns) * dtype_size(dtype) + 64) {
    operand = {pages.data(), rows * columns, transposed ? 1 : columns, transposed ? rows : 1};
    uint32_t state = 12345;
    for (int64_t i = 0; i < batch * rows * columns; ++i) {
      state = state * 1664525u + 1013904223u;
      store_from_double(dtype, static_cast<double>(state >> 8) * 0x1p-24 - 0.5,
                        static_cast<char*>(operand.data) + i * static_cast<int64_t>(dtype_size(dtype)));
    }
  }
};

struct Operands {
  Matrix a, b, result;
  GemmProblem problem;
  Operands(const Shape& shape, DType dtype, const std::string& layout)
      : a(dtype, shape.batch, shape.m, shape.k, layout[0] == 't'),
        b(dtype, shape.batch, shape.k, shape.n, layout[1] == 't'),
        result(dtype, shape.batch, shape.m, shape.n, false) {
    problem.dtype = problem.result_dtype = problem.addend_dtype = dtype;
    problem.batch = shape.batch, problem.m = shape.m, problem.n = shape.n, problem.k = shape.k;
    problem.a = a.operand, problem.b = b.operand, problem.result = result.operand;
  }
};

std::string name_of(const Shape& shape) {
  return fmt::format("{}x{}x{}{}", shape.m, shape.n, shape.k,
                     shape.batch == 1 ? "" : fmt::format(" ({})", shape.batch));
}

void measure_threads(const Shape& shape, DType dtype, const std::string& layout, int threads) {
  Operands operands(shape, dtype, layout);
  GemmProblem& problem = operands.problem;
  constexpr double kNever = std::numeric_limits<double>::max();
  double best[2] = {kNever, kNever};
  const double start = seconds_of(CLOCK_MONOTONIC);
  for (int round = 0; round < 20 || (round < 2000 && seconds_of(CLOCK_MONOTONIC) - start < 4); ++round) {
    for (int several = 0; several < 2; ++several) {
      problem.threads = several != 0 ? threads : 1;
      const double begin = seconds_of(CLOCK_MONOTONIC);
      run_gemm(problem);
      best[several] = std::min(best[several], seconds_of(CLOCK_MONOTONIC) - begin);
    }
  }
  std::printf("%-22s  1 thread %8.1f us  %d threads %8.1f us  %.2f times as fast\n", name_of(shape).c_str(),
              best[0] * 1e6, threads, best[1] * 1e6, best[0] / best[1]);
}

void measure(const Shape& shape, DType dtype, const std::string& layout, double peak) {
  const Operands operands(shape, dtype, layout);
  const GemmProblem& problem = operands.problem;
  const double operations = 2.0 * static_cast<double>(shape.batch * shape.m * shape.n) * static_cast<double>(shape.k);
  const int count = static_cast<int>(std::clamp(2e8 / operations, 1.0, 2000.0));
  const auto entries = gemm_implementations().entries();
  std::vector<double> best(entries.size(), 0);
  for (int round = 0; round < 7; ++round) {
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].name == "plain" || !entries[i].refuse(problem).empty()) continue;
      entries[i].run(problem);
      const double start = processor_seconds();
      for (int repeat = 0; repeat < count; ++repeat) entries[i].run(problem);
      best[i] = std::max(best[i], operations * count / (processor_seconds() - start));
    }
  }
  std::printf("%-22s", name_of(shape).c_str());
  for (size_t i = 0; i < entries.size(); ++i) {
    if (best[i] == 0) continue;
    std::printf("  %s %7.2f GFLOP/s %5.1f %%", std::string(entries[i].name).c_str(), best[i] / 1e9,
                100 * best[i] / peak);
  }
  std::printf("\n");
}

int run(int count, char** arguments) {
  DType dtype = DType::Float32;
  std::string layout = "nn";
  int threads = 0;
  std::vector<int64_t> numbers;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    const std::string value = i + 1 < count ? arguments[i + 1] : "";
    if (argument == "--blas") {
      if (dlopen(value.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
        std::fprintf(stderr, "neuron-gemm-bench: %s\n", dlerror());
        return 1;
      }
      ++i;
    } else if (argument == "--dtype") {
      dtype = value == "bf16" ? DType::BFloat16 : value == "f16" ? DType::Float16 : DType::Float32;
      ++i;
    } else if (argument == "--layout") {
      layout = value;
      ++i;
    } else if (argument == "--threads") {
      threads = std::atoi(value.c_str());
      ++i;
    } else {
      numbers.push_back(std::atoll(argument.c_str()));
    }
  }
  std::vector<Shape> shapes(std::begin(kShapes), std::end(kShapes));
  if (numbers.size() >= 3) shapes = {{numbers[0], numbers[1], numbers[2], numbers.size() > 3 ? numbers[3] : 1}};
  if (threads > 0) {
    for (const Shape& shape : shapes) measure_threads(shape, dtype, layout, threads);
    return 0;
  }
  const double peak = measure_peak();
  std::printf("peak %.2f GFLOP/s in float32, layout %s\n", peak / 1e9, layout.c_str());
  for (const Shape& shape : shapes) measure(shape, dtype, layout, peak);
  return 0;
}

}  // namespace
}  // namespace neuron::kernels

int main(int count, char** arguments) { return neuron::kernels::run(count, arguments); }
