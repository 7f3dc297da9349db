// Our own GEMM for float32, bfloat16 and float16: panels of both operands are packed, register tiles are computed from
// panels. Narrow floats are widened to float32 while they are packed, unless the processor has units for bfloat16, and
// rounded while tiles are written.
//
// Order of summation, for every element alike: k is cut into blocks of 256 (512 for bfloat16 units); each block is one
// chain of fused multiply-adds (of pairs) from zero; result = ((beta * addend + alpha * block0) + alpha * block1) + …,
// rounded to the result's dtype at the end. It depends on k alone, so work may be cut along m and n in whatever way
// suits the threads and the register tiles.
#include <algorithm>
#include <cstring>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/gemm_memory.h"
#include "neuron/kernels/gemm_microkernel.h"
#include "neuron/kernels/gemm_tiles.h"
#include "neuron/kernels/scratch.h"

namespace neuron::kernels {
namespace {

constexpr int64_t kColumnsOfB = 512;  // of a packed block, at most: it stays in the second-level cache
constexpr int64_t kPanelsOfA = 8;     // that are packed together, where rows of the matrix run across panels
// Rows of a matrix that are read at a time for panels side by side; fewer of a large b, whose next ones are fetched.
constexpr int64_t kSlab = 32, kFetchedSlab = 8;
constexpr int64_t kLargeMatrix = 512 << 10;  // bytes
constexpr int64_t kFewRows = 64, kIdleLanes = 5;
constexpr int64_t kManyRows = 192;
constexpr int64_t kWidenedRow = 256 + 16;  // words between widened rows: they keep apart in the cache
constexpr int64_t kMostRows = 14, kLargestTile = kMostRows * 32;

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// Panels of few columns are narrow where that leaves fewer lanes idle.
int panel_width(const GemmMicrokernel& kernel, int64_t columns) {
  int narrow = kernel.columns / 2;
  int64_t rest = columns % kernel.columns;
  return columns <= kFewRows && rest > 0 && rest <= narrow ? narrow : kernel.columns;
}

struct Buffers {
  Scratch a, b, sums;
};
thread_local Buffers buffers;

// One part of one matrix: rows [row, row_end), columns [column, column_end).
class Part {
 public:
  Part(const GemmProblem& problem, const GemmMicrokernel& kernel, int64_t batch, int64_t row, int64_t row_end,
       int64_t column, int64_t column_end)
      : p_(problem),
        kernel_(kernel),
        batch_(batch),
        row_(row),
        row_end_(row_end),
        column_(column),
        column_end_(column_end),
        depth_(kernel.depth),
        width_(panel_width(kernel, column_end - column)),
        height_(tile_height(row_end - row, most_rows(column_end - column))),
        in_place_(problem.result_dtype == DType::Float32 && (problem.result.column == 1 || problem.n == 1)),
        alpha_(static_cast<float>(problem.alpha.as_double())),
        beta_(static_cast<float>(problem.beta.as_double())) {}

  void run() {
    // Blocks of columns of nearly equal width.
    int64_t blocks = (column_end_ - column_ + kColumnsOfB - 1) / kColumnsOfB;
    int64_t columns = round_up((column_end_ - column_ + blocks - 1) / blocks, width_);
    int64_t words = words_of(std::min(depth_, p_.k));
    const Lanes a = lanes_of_a(), b{p_.b, stride(p_.b.column, p_.n), stride(p_.b.row, p_.k), width_, false};
    // Many rows make up for packing b where tiles are small, which read it the more often.
    bool packs_b = row_end_ - row_ >= kManyRows && keeps_column_panel(kernel_, columns);
    bool reads_a = reads_in_place(a), widens_a = widens_rows(), reads_b = !packs_b && reads_in_place(b);
    int64_t rows_of_a = height_ * (a.run_across_panels() ? kPanelsOfA : 1);
    float* panels_of_b = buffers.b.get<float>(columns * words);
    float* panels_of_a = buffers.a.get<float>(rows_of_a * std::max(words, kWidenedRow));
    bool keeps_sums = !in_place_ && p_.k > depth_;
    if (keeps_sums) {
      sums_stride_ = columns;
      sums_ = buffers.sums.get<float>((row_end_ - row_) * columns);
    }
    for (int64_t j = column_; j < column_end_; j += columns) {
      int64_t j_end = std::min(j + columns, column_end_);
      for (int64_t l = 0; l < p_.k; l += depth_) {
        int64_t depth = std::min(depth_, p_.k - l);
        words = words_of(depth);
        // A word that lacks an element, and a panel that lacks a column, cannot be read in place.
        bool packs_a = !widens_a && (!reads_a || depth % kernel_.group != 0);
        int64_t whole = reads_b ? j + (j_end - j) / width_ * width_ : j;
        pack(b, whole, j_end, l, depth, panels_of_b + (whole - j) * words);
        for (int64_t i = row_; i < row_end_; i += rows_of_a) {
          int64_t i_end = std::min(i + rows_of_a, row_end_);
          if (packs_a) pack(a, i, i_end, l, depth, panels_of_a);
          for (int64_t ii = i; ii < i_end; ii += height_) {
            int64_t rows = std::min(height_, i_end - ii);
            TileOperand left = packs_a    ? kernel_.panel(panels_of_a + (ii - i) * words, rows)
                               : widens_a ? widen(a, ii, rows, l, depth, panels_of_a)
                                          : in_place(a, ii, l);
            for (int64_t jj = j; jj < j_end; jj += width_) {
              if (!packs_a && jj + width_ >= j_end) fetch_after(left, a, ii + rows, l, depth);
              tile(ii, rows, jj, std::min<int64_t>(width_, j_end - jj), j, l, depth, left,
                   jj < whole ? in_place(b, jj, l) : kernel_.panel(panels_of_b + (jj - j) * words, width_));
            }
          }
        }
      }
    }
  }

 private:
  // One operand as panels see it: rows of a, or columns of b, are lanes.
  struct Lanes {
    const GemmOperand& matrix;
    int64_t lane_stride, depth_stride;
    int width;
    bool are_rows;  // and then a panel is as wide as it has lanes
    bool run_across_panels() const { return lane_stride == 1 && depth_stride != 1; }
  };

  const char* at(const Lanes& lanes, int64_t lane, int64_t position) const {
    return lanes.are_rows ? address(lanes.matrix, p_.dtype, batch_, lane, position)
                          : address(lanes.matrix, p_.dtype, batch_, position, lane);
  }

  Lanes lanes_of_a() const {
    return {p_.a, stride(p_.a.row, p_.m), stride(p_.a.column, p_.k), static_cast<int>(height_), true};
  }

  bool is_narrow() const { return width_ < kernel_.columns; }

  // Rows of a tile: fewer where they would compete for places of the cache, unless many columns make up for packing.
  int64_t most_rows(int64_t columns) const {
    int64_t rows = is_narrow() ? kernel_.narrow_rows : kernel_.rows;
    if (stride(p_.a.column, p_.k) != 1 || widens_rows()) return rows;
    int64_t apart = rows_apart(stride(p_.a.row, p_.m) * static_cast<int64_t>(dtype_size(p_.dtype)));
    return apart < rows && columns > kFewRows ? rows : std::min(rows, apart);
  }

  // Whether rows of a whose elements follow each other are widened one by one, instead of packed.
  bool widens_rows() const {
    return static_cast<int>(dtype_size(p_.dtype)) * kernel_.group != sizeof(float) && stride(p_.a.column, p_.k) == 1;
  }

  TileOperand widen(const Lanes& a, int64_t row, int64_t rows, int64_t l, int64_t depth, float* buffer) const {
    for (int64_t r = 0; r < rows; ++r) widen_elements(p_.dtype, at(a, row + r, l), 1, depth, buffer + r * kWidenedRow);
    return {buffer, kWidenedRow * static_cast<int64_t>(sizeof(float)), sizeof(float)};
  }

  // Whether tiles take the operand from where it lies: without a pass over it, and its misses overlap arithmetic. Not
  // where the distance of its rows makes them compete for few places of a cache.
  bool reads_in_place(const Lanes& lanes) const {
    auto size = static_cast<int64_t>(dtype_size(p_.dtype));
    if (size * kernel_.group != sizeof(float)) return false;  // to be widened
    if (lanes.are_rows && lanes.depth_stride == 1) return height_ <= rows_apart(lanes.lane_stride * size);
    if (kernel_.group != 1 || lanes.lane_stride != 1) return false;
    return keeps_apart(lanes.depth_stride * size, lanes.are_rows ? RowsInPlace::Crossed : RowsInPlace::Plain);
  }

  TileOperand in_place(const Lanes& lanes, int64_t lane, int64_t position) const {
    auto size = static_cast<int64_t>(dtype_size(p_.dtype));
    return {at(lanes, lane, position), lanes.lane_stride * size, lanes.depth_stride * size * kernel_.group};
  }

  // Lets a tile fetch the rows that come next: at these positions, or the first ones at the next positions.
  void fetch_after(TileOperand& left, const Lanes& a, int64_t row, int64_t l, int64_t depth) const {
    if (row >= row_end_) row = row_, l += depth;
    if (l >= p_.k) return;
    left.next = at(a, row, l);
    const auto size = static_cast<int64_t>(dtype_size(p_.dtype));
    left.next_distance = (a.depth_stride == 1 ? a.lane_stride : a.depth_stride) * size;
    left.next_word = size * kernel_.group;
  }

  // Lanes [begin, end) at positions [l, l + depth), panel after panel. Where a row of memory crosses all of them, some
  // rows at a time: they stay in the nearest cache and few pages are open.
  void pack(const Lanes& lanes, int64_t begin, int64_t end, int64_t l, int64_t depth, float* panels) const {
    const bool fetches = lanes.run_across_panels() && !lanes.are_rows &&
                         p_.k * p_.n * static_cast<int64_t>(dtype_size(p_.dtype)) > kLargeMatrix;
    int64_t slab = fetches ? kFetchedSlab : lanes.run_across_panels() ? kSlab : depth, words = words_of(depth);
    for (int64_t done = 0; done < depth; done += slab) {
      for (int64_t lane = begin; lane < end; lane += lanes.width) {
        int64_t count = std::min<int64_t>(lanes.width, end - lane);
        int64_t left = depth - done - slab;
        if (fetches && left > 0) fetch(lanes, lane, count, l + done + slab, std::min(slab, left));
        int width = lanes.are_rows ? static_cast<int>(count) : lanes.width;
        kernel_.pack(packed_source(p_.dtype), at(lanes, lane, l + done), lanes.lane_stride, lanes.depth_stride, count,
                     std::min(slab, depth - done), width,
                     panels + (lane - begin) * words + done / kernel_.group * width);
      }
    }
  }

  // Where rows of memory cross the lanes: what a panel takes from the next rows.
  void fetch(const Lanes& lanes, int64_t lane, int64_t count, int64_t position, int64_t rows) const {
    constexpr int64_t kLine = 64;
    const auto size = static_cast<int64_t>(dtype_size(p_.dtype));
    const char* piece = at(lanes, lane, position);
    for (int64_t r = 0; r < rows; ++r, piece += lanes.depth_stride * size) {
      for (int64_t byte = 0; byte < count * size; byte += kLine) __builtin_prefetch(piece + byte, 0, 2);
    }
  }

  // A dimension of one element may have any stride; 1 selects the fast packing.
  static int64_t stride(int64_t recorded, int64_t extent) { return extent == 1 ? 1 : recorded; }
  int64_t words_of(int64_t depth) const { return (depth + kernel_.group - 1) / kernel_.group; }
  // Tiles of nearly equal heights: 64 rows are 13 + 13 + 13 + 13 + 12, not 14 + 14 + 14 + 14 + 8.
  static int64_t tile_height(int64_t rows, int64_t largest) {
    int64_t tiles = (rows + largest - 1) / largest;
    return (rows + tiles - 1) / tiles;
  }

  void tile(int64_t i, int64_t rows, int64_t j, int64_t columns, int64_t first_column, int64_t l, int64_t depth,
            const TileOperand& a, const TileOperand& b) {
    bool first = l == 0, last = l + depth == p_.k;
    float* sums = nullptr;  // where partial sums of this tile live between blocks of k
    int64_t sums_stride = 0;
    if (in_place_) {
      sums = reinterpret_cast<float*>(address(p_.result, DType::Float32, batch_, i, j));
      sums_stride = p_.result.row;
    } else if (sums_ != nullptr) {
      sums = sums_ + (i - row_) * sums_stride_ + (j - first_column);
      sums_stride = sums_stride_;
    }
    bool full = columns == width_ && sums != nullptr;
    alignas(64) float edge[kLargestTile];
    float* target = full ? sums : edge;
    int64_t target_stride = full ? sums_stride : width_;
    if (first && p_.has_addend()) {
      load_addend(i, rows, j, columns, target, target_stride);
    } else if (!first && !full) {
      for (int64_t r = 0; r < rows; ++r) {
        std::memcpy(target + r * target_stride, sums + r * sums_stride, columns * sizeof(float));
      }
    }
    auto* compute = is_narrow() ? kernel_.compute_narrow : kernel_.compute;
    compute(static_cast<int>(rows), words_of(depth), a, b, alpha_, target, target_stride, !first || p_.has_addend());
    if (last && !in_place_) {
      store(i, rows, j, columns, target, target_stride);
    } else if (!full) {
      for (int64_t r = 0; r < rows; ++r) {
        std::memcpy(sums + r * sums_stride, target + r * target_stride, columns * sizeof(float));
      }
    }
  }

  void load_addend(int64_t i, int64_t rows, int64_t j, int64_t columns, float* target, int64_t target_stride) {
    PackedSource type = packed_source(p_.addend_dtype);
    if (p_.addend.column == 0) {  // a bias of the transposed product: one number for a row
      float numbers[kMostRows];
      widen_elements(p_.addend_dtype, address(p_.addend, p_.addend_dtype, batch_, i, j), p_.addend.row, rows, numbers);
      for (int64_t r = 0; r < rows; ++r) {
        const float number = beta_ != 1.0f ? numbers[r] * beta_ : numbers[r];
        std::fill_n(target + r * target_stride, columns, number);
      }
      return;
    }
    for (int64_t r = 0; r < rows; ++r) {
      float* row = target + r * target_stride;
      if (r > 0 && p_.addend.row == 0) {  // a bias: every row is the first
        std::memcpy(row, target, columns * sizeof(float));
        continue;
      }
      gemm_microkernel_avx2.pack(type, address(p_.addend, p_.addend_dtype, batch_, i + r, j), p_.addend.column, 0,
                                 columns, 1, static_cast<int>(columns), row);
      if (beta_ != 1.0f) {
        for (int64_t c = 0; c < columns; ++c) row[c] *= beta_;
      }
    }
  }

  // The last sums of a tile, rounded, to the result.
  void store(int64_t i, int64_t rows, int64_t j, int64_t columns, const float* tile, int64_t stride) {
    PackedSource type = packed_source(p_.result_dtype);
    auto size = static_cast<int64_t>(dtype_size(p_.result_dtype));
    char* corner = address(p_.result, p_.result_dtype, batch_, i, j);
    if (p_.result.column == 1) {
      int64_t step = p_.result.row * size;
      for (int64_t r = 0; r < rows; ++r) kernel_.store(type, tile + r * stride, columns, corner + r * step);
      return;
    }
    // Transposed, so that columns of the result, which are the neighbours in memory if any are, come out in one piece.
    alignas(64) float turned[kLargestTile];
    alignas(64) char rounded[kLargestTile * sizeof(float)];
    detected_gemm_microkernel()->pack(PackedSource::Float32, tile, stride, 1, rows, columns, static_cast<int>(rows),
                                      turned);
    kernel_.store(type, turned, rows * columns, rounded);
    for (int64_t c = 0; c < columns; ++c) {
      const char* from = rounded + c * rows * size;
      char* to = corner + c * p_.result.column * size;
      if (p_.result.row == 1) {
        std::memcpy(to, from, static_cast<size_t>(rows * size));
        continue;
      }
      for (int64_t r = 0; r < rows; ++r) {
        std::memcpy(to + r * p_.result.row * size, from + r * size, static_cast<size_t>(size));
      }
    }
  }

  const GemmProblem& p_;
  const GemmMicrokernel& kernel_;
  int64_t batch_, row_, row_end_, column_, column_end_;
  int64_t depth_;
  int width_;  // of a panel of b
  int64_t height_;
  bool in_place_;
  float alpha_, beta_;
  float* sums_ = nullptr;
  int64_t sums_stride_ = 0;
};

// Few rows against a matrix whose columns lie along the sum, as a linear layer has for a short prompt: as the
// transposed product, which takes the matrix from where it lies and packs the few rows, unless too many lanes of their
// panels are idle. The order of each sum is the same.
bool is_better_transposed(const GemmProblem& p, const GemmMicrokernel& kernel) {
  return p.b.row == 1 && p.m <= kFewRows && p.m < p.n && round_up(p.m, panel_width(kernel, p.m)) - p.m <= kIdleLanes;
}

void run_with(const GemmProblem& problem, const GemmMicrokernel& kernel) {
  GemmProblem p = is_better_transposed(problem, kernel) ? transposed_problem(problem) : problem;
  // Below about a quarter of a million multiplications a part is not worth a thread.
  double work = static_cast<double>(p.batch) * p.m * p.n * p.k;
  int64_t wanted = std::clamp<int64_t>(static_cast<int64_t>(work / 262144), 1, std::max(1, p.threads));
  int64_t parts = wanted <= p.batch ? 1 : (wanted + p.batch - 1) / p.batch;
  bool along_rows = p.m >= p.n;
  // Parts of rows are of equal length: tiles adapt their heights.
  int64_t extent = along_rows ? p.m : p.n, unit = along_rows ? 1 : kernel.columns;
  int64_t length = round_up((extent + parts - 1) / parts, unit);
  parts = (extent + length - 1) / length;
  parallel_for(static_cast<int>(wanted), p.batch * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      int64_t batch = index / parts, start = index % parts * length, stop = std::min(extent, start + length);
      if (along_rows) {
        Part(p, kernel, batch, start, stop, 0, p.n).run();
      } else {
        Part(p, kernel, batch, 0, p.m, start, stop).run();
      }
    }
  });
}

Refusal refuse(const GemmProblem& p) {
  if (!is_packed_source(p.dtype) || !is_packed_source(p.result_dtype) ||
      (p.has_addend() && !is_packed_source(p.addend_dtype))) {
    return {"takes float32, bfloat16 and float16; the problem is {} to {}", dtype_name(p.dtype),
            dtype_name(p.result_dtype)};
  }
  if (detected_gemm_microkernel() == nullptr) return "the processor lacks AVX2, FMA or F16C";
  return {};
}

void run(const GemmProblem& p) { run_with(p, *detected_gemm_microkernel()); }

Refusal refuse_bfloat16(const GemmProblem& p) {
  if (p.dtype != DType::BFloat16 || !is_packed_source(p.result_dtype) ||
      (p.has_addend() && !is_packed_source(p.addend_dtype))) {
    return {"takes bfloat16; the problem is {} to {}", dtype_name(p.dtype), dtype_name(p.result_dtype)};
  }
  if (!has_bfloat16_units()) return "the processor lacks AVX512-BF16";
  return {};
}

void run_bfloat16(const GemmProblem& p) { run_with(p, gemm_microkernel_bfloat16); }

}  // namespace

const Implementation<GemmProblem> gemm_packed = {"packed", refuse, run};
const Implementation<GemmProblem> gemm_packed_bfloat16 = {"packed_bfloat16", refuse_bfloat16, run_bfloat16};

void run_gemm_packed(const GemmProblem& problem, const GemmMicrokernel& kernel) { run_with(problem, kernel); }

}  // namespace neuron::kernels
