// "matrix_units": products of bfloat16 on the processor's matrix units. Panels of the right operand are packed, the
// left one is read where it lies if its rows run along the sum.
//
// Order of summation, for every element alike: one chain over steps of 32 elements of k (matrix_units.h says what a
// step adds), zeros behind the last; result = beta * addend + alpha * sum, rounded once. A step adds the same when the
// operands change sides, so a product may be computed as its transpose where that packs less.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "neuron/base/float_formats.h"
#include "neuron/base/thread_pool.h"
#include "neuron/kernels/gemm_memory.h"
#include "neuron/kernels/gemm_microkernel.h"
#include "neuron/kernels/gemm_pack.h"
#include "neuron/kernels/matrix_pack.h"
#include "neuron/kernels/matrix_target.h"
#include "neuron/kernels/matrix_tiles.h"
#include "neuron/kernels/scratch.h"

namespace neuron::kernels {
namespace {

constexpr int64_t kElement = 2;
constexpr int64_t kPackedBytes = 1 << 20;    // of the right operand: they stay in the second cache
constexpr int64_t kStreamedBytes = 1 << 19;  // of a piece of it that few rows read
constexpr int64_t kMostSteps = 64;           // of a piece of rows that many panels read
constexpr int64_t kPanelsTogether = 8;       // that are packed together where a row of memory crosses them
constexpr int64_t kFewRows = 64;
constexpr int64_t kStreamedColumns = 2048;  // of a block of columns that few rows read
constexpr int64_t kKeptBytes = 16 << 20;    // of the left operand, packed once for all columns
constexpr int64_t kManyColumns = 256;       // that make up for packing rows
constexpr int64_t kStreamedVectors = 4;     // "inner" and "outer" take them
constexpr double kPartProducts = 1 << 22;   // multiplications worth a thread

int64_t divide_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit; }
int64_t round_up(int64_t value, int64_t unit) { return divide_up(value, unit) * unit; }

// A dimension of one element may have any stride; 1 selects the fast ways.
int64_t stride(int64_t recorded, int64_t extent) { return extent == 1 ? 1 : recorded; }

// What packing and storing take, in cycles or so, when the problem is computed as it is written.
double cost_of(const GemmProblem& p) {
  auto rows = static_cast<double>(divide_up(p.m, 16)), columns = static_cast<double>(divide_up(p.n, 16));
  auto steps = static_cast<double>(divide_up(p.k, kStepElements));
  auto choose = [](bool best, bool good, double a, double b, double c) { return best ? a : good ? b : c; };
  double left = choose(stride(p.a.column, p.k) == 1, stride(p.a.row, p.m) == 1, 8, 60, 1500);
  double right = choose(stride(p.b.column, p.n) == 1, stride(p.b.row, p.k) == 1, 35, 45, 1500);
  double store = choose(stride(p.result.column, p.n) == 1, stride(p.result.row, p.m) == 1, 40, 120, 600);
  return rows * steps * left + columns * steps * right + rows * columns * store;
}

struct Buffers {
  Scratch left, right, sums;
};
thread_local Buffers buffers;

NEURON_INLINE __mmask16 first(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffffu : (1u << std::max<int64_t>(count, 0)) - 1);
}

// Makes results of the sums of a block: beta * addend + alpha * sum, rounded, a few rows at a time.
class Finish {
 public:
  Finish(const GemmProblem& problem, int64_t batch)
      : p_(problem),
        turned_(transposed_problem(problem)),
        batch_(batch),
        alpha_(static_cast<float>(problem.alpha.as_double())),
        beta_(static_cast<float>(problem.beta.as_double())),
        turn_(stride(p_.result.column, p_.n) != 1 && stride(p_.result.row, p_.m) == 1) {
    const bool unscaled = alpha_ == 1.0f && (!p_.has_addend() || beta_ == 1.0f);
    const bool added = !p_.has_addend() || (p_.addend_dtype == DType::BFloat16 && p_.addend.column == 1);
    rounds_ = unscaled && added && p_.result_dtype == DType::BFloat16 && p_.result.column == 1;
  }

  // Rows [i, i + rows) and columns [j, j + columns) of the problem, of which sums() will hold a block of whole tiles
  // when `work` has begun, which then takes over a part of the rows.
  void begin(int64_t i, int64_t rows, int64_t j, int64_t columns, MatrixWork& work) {
    i_ = i, rows_ = rows, j_ = j, columns_ = columns;
    height_ = round_up(rows, 16), width_ = round_up(columns, 16);
    const int64_t turns = std::max<int64_t>(1, work.steps - 1);
    if (rounds_ && width_ == 32) {
      const bool adds = p_.has_addend();
      rounding_ = {sums_,
                   address(p_.result, DType::BFloat16, batch_, i, j),
                   p_.result.row * kElement,
                   adds ? address(p_.addend, DType::BFloat16, batch_, i, j) : nullptr,
                   p_.addend.row * kElement,
                   rows,
                   divide_up(rows, turns),
                   columns};
      work.rounding = &rounding_;
      rounding_begun_ = true, done_ = turn_ ? columns : rows;
      return;
    }
    done_ = 0;
    share_ = divide_up(turn_ ? columns : rows, turns);
    work.between = &some_rows, work.context = this;
  }

  MatrixSums sums() { return {sums_, width_}; }

  void complete() {
    if (rounding_begun_) {
      finish_rounding(rounding_);
      if (rounding_.special) done_ = 0;
      rounding_begun_ = false;
    }
    advance(kBlockSums);
  }

 private:
  static void some_rows(void* self) {
    auto* finish = static_cast<Finish*>(self);
    finish->advance(finish->share_);
  }

  void advance(int64_t count) {
    if (!turn_) {
      const int64_t end = std::min(rows_, done_ + count);
      if (done_ < end) finish_rows(p_, i_, done_, end, j_, columns_, sums_, width_);
      done_ = end;
      return;
    }
    const int64_t end = std::min(columns_, done_ + count);
    if (done_ == end) return;
    if (done_ == 0) {
      pack_avx512(PackedSource::Float32, sums_, width_, 1, height_, width_, static_cast<int>(height_), turned_sums_);
    }
    finish_rows(turned_, j_, done_, end, i_, rows_, turned_sums_, height_);
    done_ = end;
  }

  // Rows [begin, end) of a block of sums whose corner is (i, j) of the problem.
  NEURON_TARGET void finish_rows(const GemmProblem& p, int64_t i, int64_t begin, int64_t end, int64_t j,
                                 int64_t columns, float* sums, int64_t sums_stride) const {
    const bool scales = p.has_addend() || alpha_ != 1.0f;
    const bool plain = p.result_dtype == DType::BFloat16 && stride(p.result.column, p.n) == 1;
    if (plain && !scales) {
      char* target = address(p.result, DType::BFloat16, batch_, i + begin, j);
      for (int64_t r = begin; r < end; ++r, target += p.result.row * kElement) {
        for (int64_t c = 0; c < columns; c += 32) {
          store_bfloat16(sums + r * sums_stride + c, std::min<int64_t>(32, columns - c), target + c * kElement);
        }
      }
      return;
    }
    for (int64_t r = begin; r < end; ++r) {
      float* row = sums + r * sums_stride;
      if (scales) scale(p, i + r, j, columns, row);
      store(p, i + r, j, columns, row);
    }
  }

  NEURON_TARGET void scale(const GemmProblem& p, int64_t i, int64_t j, int64_t columns, float* row) const {
    const __m512 alpha = _mm512_set1_ps(alpha_), beta = _mm512_set1_ps(beta_);
    if (!p.has_addend()) {
      for (int64_t c = 0; c < columns; c += 16) {
        _mm512_store_ps(row + c, _mm512_mul_ps(alpha, _mm512_load_ps(row + c)));
      }
      return;
    }
    alignas(64) float widened[64];
    const char* source = address(p.addend, p.addend_dtype, batch_, i, j);
    const int64_t step = p.addend.column;
    const bool narrow = p.addend_dtype == DType::BFloat16;
    const bool direct = step == 1 && (narrow || p.addend_dtype == DType::Float32);
    if (!direct) widen_elements(p.addend_dtype, source, step, step == 0 ? 1 : columns, widened);
    for (int64_t c = 0; c < columns; c += 16) {
      const __mmask16 mask = first(columns - c);
      __m512 addend;
      if (!direct) {
        addend = step == 0 ? _mm512_set1_ps(widened[0]) : _mm512_load_ps(widened + c);
      } else if (narrow) {
        __m256i bits = _mm256_maskz_loadu_epi16(mask, source + c * kElement);
        addend = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
      } else {
        addend = _mm512_maskz_loadu_ps(mask, source + c * static_cast<int64_t>(sizeof(float)));
      }
      __m512 sum = _mm512_mul_ps(alpha, _mm512_load_ps(row + c));
      _mm512_store_ps(row + c, _mm512_add_ps(_mm512_mul_ps(beta, addend), sum));
    }
  }

  NEURON_TARGET void store(const GemmProblem& p, int64_t i, int64_t j, int64_t columns, const float* row) const {
    const PackedSource type = packed_source(p.result_dtype);
    char* target = address(p.result, p.result_dtype, batch_, i, j);
    const int64_t step = stride(p.result.column, p.n), size = static_cast<int64_t>(dtype_size(p.result_dtype));
    if (step != 1) {
      alignas(64) char rounded[64 * sizeof(float)];
      gemm_microkernel_bfloat16.store(type, row, columns, rounded);
      for (int64_t c = 0; c < columns; ++c) std::memcpy(target + c * step * size, rounded + c * size, size);
      return;
    }
    if (type != PackedSource::BFloat16) {
      gemm_microkernel_bfloat16.store(type, row, columns, target);
      return;
    }
    for (int64_t c = 0; c < columns; c += 32) {
      store_bfloat16(row + c, std::min<int64_t>(32, columns - c), target + c * kElement);
    }
  }

  // Up to 32 numbers. The unit takes denormal numbers for zeros and keeps what a NaN carries: those are left to the
  // other sets.
  NEURON_INLINE static void store_bfloat16(const float* row, int64_t count, char* target) {
    __m512 x = _mm512_load_ps(row), y = count > 16 ? _mm512_load_ps(row + 16) : _mm512_setzero_ps();
    // Twice the bits less one, of which the largest belongs to zero and the smallest to denormal numbers.
    const __m512i p = _mm512_castps_si512(x), q = _mm512_castps_si512(y), one = _mm512_set1_epi32(1);
    const __m512i magnitude =
        _mm512_min_epu32(_mm512_sub_epi32(_mm512_add_epi32(p, p), one), _mm512_sub_epi32(_mm512_add_epi32(q, q), one));
    const __mmask16 small = _mm512_cmplt_epu32_mask(magnitude, _mm512_set1_epi32(0x00ffffff));
    if ((small | _mm512_cmp_ps_mask(x, y, _CMP_UNORD_Q)) != 0) {
      gemm_microkernel_bfloat16.store(PackedSource::BFloat16, row, count, target);
      return;
    }
    const auto rounded = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(y, x));
    if (count == 32) {
      _mm512_storeu_si512(target, rounded);
    } else {
      _mm512_mask_storeu_epi16(target, (__mmask32{1} << count) - 1, rounded);
    }
  }

  const GemmProblem p_, turned_;
  int64_t batch_;
  float alpha_, beta_;
  MatrixRounding rounding_;
  bool rounding_begun_ = false;
  bool rounds_;  // results are rounded sums, or sums of addends and them
  bool turn_;    // the result's columns are its neighbours in memory
  int64_t i_ = 0, rows_ = 0, j_ = 0, columns_ = 0, height_ = 16, width_ = 16, done_ = 0, share_ = 1;
  alignas(64) float sums_[kBlockSums];
  alignas(64) float turned_sums_[kBlockSums];
};

// One matrix of the batch: rows [row, row_end), columns [column, column_end). Needs tiles that are set up.
class Part {
 public:
  Part(const GemmProblem& problem, int64_t batch, int64_t row, int64_t row_end, int64_t column, int64_t column_end)
      : p_(problem),
        finish_(problem, batch),
        batch_(batch),
        row_(row),
        row_end_(row_end),
        column_(column),
        column_end_(column_end),
        steps_(divide_up(problem.k, kStepElements)),
        left_row_(stride(p_.a.row, p_.m)),
        left_column_(stride(p_.a.column, p_.k)) {
    const int64_t rows = row_end - row, columns = column_end - column;
    const int64_t height = columns <= 16 ? 4 : rows <= 16 ? 1 : 2, width = columns <= 16 ? 1 : rows <= 16 ? 4 : 2;
    rows_ = 16 * height, columns_ = 16 * width;
    whole_sums_ = p_.result_dtype == DType::Float32 && stride(p_.result.column, p_.n) == 1 && !p_.has_addend() &&
                  p_.alpha.as_double() == 1.0;
  }

  void run() {
    // Few rows read the right operand once: along its rows, where they cross the panels.
    const bool streams = row_end_ - row_ <= kFewRows && p_.b.row != 1;
    const int64_t room = kPackedBytes / kLineBytes;  // columns of a step
    int64_t most = std::max(columns_, room / steps_ / columns_ * columns_);
    if (streams) most = std::max(most, kStreamedColumns);
    const int64_t blocks = divide_up(column_end_ - column_, most);
    const int64_t columns = round_up(divide_up(column_end_ - column_, blocks), columns_);
    const int64_t panels = divide_up(columns, columns_);
    // Long rows that many panels read are read in pieces that stay in the second cache.
    const int64_t longest = streams ? std::max<int64_t>(1, kStreamedBytes / kLineBytes / columns) : kMostSteps;
    const int64_t pieces = panels <= 2 && !streams ? 1 : divide_up(steps_, longest), piece = divide_up(steps_, pieces);
    block_columns_ = columns;
    // Panels that are packed together.
    packed_columns_ = p_.b.row == 1 ? columns_ : streams ? columns : columns_ * kPanelsTogether;
    packed_right_ = buffers.right.get<char>(columns * (streams ? piece : steps_) * kLineBytes);
    keeps_right_ = !streams;
    sums_ = nullptr;
    if (pieces > 1) sums_ = buffers.sums.get<float>(columns * (streams ? round_up(row_end_ - row_, rows_) : rows_));
    packs_left_ = left_column_ != 1 || (columns >= kManyColumns && !lies_well());
    const int64_t whole_left = round_up(row_end_ - row_, rows_) * steps_ * kLineBytes;
    keeps_left_ = packs_left_ && column_ + columns < column_end_ && whole_left <= kKeptBytes;
    packed_left_ = buffers.left.get<char>(keeps_left_ ? whole_left : rows_ * piece * kLineBytes);
    for (int64_t j = column_; j < column_end_; j += columns) {
      const int64_t j_end = std::min(j + columns, column_end_);
      if (streams) {
        for (int64_t s = 0; s < steps_; s += piece) {
          for (int64_t i = row_; i < row_end_; i += rows_) multiply_rows(i, j, j_end, s, std::min(steps_, s + piece));
        }
        continue;
      }
      for (int64_t i = row_; i < row_end_; i += rows_) {
        for (int64_t s = 0; s < steps_; s += piece) multiply_rows(i, j, j_end, s, std::min(steps_, s + piece));
      }
    }
    leave_registers();
    finish_.complete();
  }

 private:
  // Whether lines of tiles are lines of the cache.
  bool lies_well() const {
    return left_row_ * kElement % kLineBytes == 0 && reinterpret_cast<uintptr_t>(at_left(0, 0)) % kLineBytes == 0;
  }

  const char* at_left(int64_t row, int64_t position) const {
    return address(p_.a, DType::BFloat16, batch_, row, position);
  }

  // Steps [begin, end) of a block of rows as operands: where they lie, then packed from `whole` on.
  struct Left {
    MatrixOperand in_place, packed;
    int64_t whole;
  };
  Left take_left(int64_t i, int64_t rows, int64_t j, int64_t begin, int64_t end) const {
    const int64_t step = divide_up(rows, kTileLines) * kTileBytes, distance = left_row_ * kElement;
    const bool packs = packs_left_ || rows % kTileLines != 0;
    const int64_t whole = packs ? begin : std::min(end, p_.k / kStepElements);
    char* packed = keeps_left_ ? packed_left_ + (i - row_) * steps_ * kLineBytes + begin * step : packed_left_;
    if (whole < end && !(keeps_left_ && j > column_)) {
      pack_left_tiles(reinterpret_cast<const uint16_t*>(at_left(i, whole * kStepElements)), left_row_, left_column_,
                      rows, std::min(p_.k, end * kStepElements) - whole * kStepElements, packed, step);
    }
    return {{at_left(i, begin * kStepElements), distance, kTileLines * distance, kLineBytes},
            {packed, kLineBytes, kTileBytes, step},
            whole};
  }

  // Steps [begin, end) of a block of rows, for columns [j, j_end). Panels are packed when the first rows need them: the
  // units slow down when they are not used for some microseconds.
  void multiply_rows(int64_t i, int64_t j, int64_t j_end, int64_t begin, int64_t end) {
    const int64_t rows = std::min(rows_, row_end_ - i), height = divide_up(rows, kTileLines);
    const Left left = take_left(i, rows, j, begin, end);
    const int64_t whole = left.whole;
    const bool packs_right = i == row_;
    // Of the steps that are packed at a time.
    const int64_t first_step = keeps_right_ ? 0 : begin, depth = keeps_right_ ? steps_ : end - begin;
    MatrixFetch fetch = fetch_after(i, j, begin, end, divide_up(j_end - j, columns_));
    for (int64_t jj = j; jj < j_end; jj += columns_) {
      const int64_t columns = std::min(columns_, j_end - jj), width = divide_up(columns, 16);
      const MatrixBlock& block = matrix_block(height, width);
      if (packs_right && (jj - j) % packed_columns_ == 0) {
        pack_right(j, jj, std::min(j_end, jj + packed_columns_), begin, end, depth, first_step);
      }
      if (block_ != nullptr && block_ != &block) leave_registers();
      finish_.complete();
      const char* panel = packed_right_ + (jj - j) * depth * kLineBytes;
      MatrixOperand right{panel + (begin - first_step) * width * kTileBytes, kLineBytes, kTileBytes,
                          width * kTileBytes};
      MatrixWork work{whole > begin ? left.in_place : left.packed, right, whole > begin ? whole - begin : end - begin,
                      fetch};
      if (pending_) {
        finish_.begin(pending_i_, pending_rows_, pending_j_, pending_columns_, work);
        target_ = finish_.sums();
        pending_ = false;
      }
      MatrixSums kept{nullptr, 16 * width};
      if (sums_ != nullptr) kept.data = sums_ + (jj - j) * rows_ + (keeps_right_ ? 0 : (i - row_) * block_columns_);
      block.begin(work, block_ == nullptr ? MatrixSums{} : target_, begin == 0 ? MatrixSums{} : kept);
      if (whole > begin && whole < end) {
        right.data += (whole - begin) * right.step;
        block.add({left.packed, right, end - whole, {}});
      }
      block_ = &block;
      if (end < steps_) {
        target_ = kept;
      } else if (whole_sums_ && columns == 16 * width && rows == kTileLines * height) {
        target_ = {reinterpret_cast<float*>(address(p_.result, DType::Float32, batch_, i, jj)), p_.result.row};
      } else {
        pending_ = true, pending_i_ = i, pending_rows_ = rows, pending_j_ = jj, pending_columns_ = columns;
      }
      if (fetch.data != nullptr) fetch.data += fetch_step_;
    }
  }

  // Stores the sums that are in the registers.
  void leave_registers() {
    if (block_ == nullptr) return;
    if (pending_) {
      finish_.complete();
      MatrixWork none{};
      finish_.begin(pending_i_, pending_rows_, pending_j_, pending_columns_, none);
      target_ = finish_.sums();
      pending_ = false;
    }
    block_->store(target_);
    block_ = nullptr;
  }

  // What the next call reads of the left operand, a share for each panel of this one.
  MatrixFetch fetch_after(int64_t i, int64_t j, int64_t begin, int64_t end, int64_t panels) {
    int64_t row = i, step = end, count = end - begin;
    if (step >= steps_) row += rows_, step = 0;
    if (row >= row_end_ || count < 2 || panels < 2) return {};  // one panel reads the rows faster by itself
    const int64_t rows = std::min(rows_, row_end_ - row), calls = panels * (count - 1);
    if (keeps_left_ && j > column_) {
      const int64_t height = divide_up(rows, kTileLines), lines = divide_up(height * kTileLines * count, calls);
      fetch_step_ = lines * kLineBytes * (count - 1);
      return {packed_left_ + (row - row_) * steps_ * kLineBytes + step * height * kTileBytes, kLineBytes,
              lines * kLineBytes, static_cast<int>(lines)};
    }
    const char* next = at_left(row, step * kStepElements);
    if (left_column_ == 1) {
      const int64_t lines = divide_up(rows, panels), distance = left_row_ * kElement;
      fetch_step_ = lines * distance;
      return {next, distance, kLineBytes, static_cast<int>(lines)};
    }
    if (left_row_ != 1) return {};
    const int64_t positions = std::min(count * kStepElements, p_.k - step * kStepElements);
    const int64_t lines = divide_up(positions, calls), across = left_column_ * kElement;
    fetch_step_ = lines * across * (count - 1);
    return {next, across, lines * across, static_cast<int>(lines)};
  }

  // Columns [begin, end) of the block from j on, steps [s, s_end), into panels; the last one is as wide as its tiles.
  void pack_right(int64_t j, int64_t begin, int64_t end, int64_t s, int64_t s_end, int64_t depth,
                  int64_t first_step) const {
    const int64_t lane_stride = stride(p_.b.column, p_.n), depth_stride = stride(p_.b.row, p_.k);
    // Where a row of memory crosses all panels, a step at a time.
    const int64_t slab = lane_stride == 1 && depth_stride != 1 ? 1 : s_end - s;
    for (; s < s_end; s += slab) {
      for (int64_t lane = begin; lane < end; lane += columns_) {
        const int64_t count = std::min(columns_, end - lane), step = round_up(count, 16) * kLineBytes;
        pack_right_tiles(
            reinterpret_cast<const uint16_t*>(address(p_.b, DType::BFloat16, batch_, s * kStepElements, lane)),
            lane_stride, depth_stride, count, std::min(slab * kStepElements, p_.k - s * kStepElements),
            packed_right_ + (lane - j) * depth * kLineBytes + (s - first_step) * step, step);
      }
    }
  }

  const GemmProblem& p_;
  Finish finish_;
  int64_t batch_, row_, row_end_, column_, column_end_;
  int64_t steps_, left_row_, left_column_;
  int64_t rows_, columns_;  // of a block
  int64_t block_columns_ = 0, packed_columns_ = 0;
  bool keeps_right_ = true;  // packs all steps of a block of columns, not a piece after the other
  bool whole_sums_;          // the result may take sums as they are
  bool packs_left_ = false, keeps_left_ = false;
  char *packed_left_ = nullptr, *packed_right_ = nullptr;
  float* sums_ = nullptr;  // of a block of rows, where its steps are taken in pieces
  // The block whose sums are in the registers, and where they are to go: into memory, or pending, to the finish.
  const MatrixBlock* block_ = nullptr;
  MatrixSums target_;
  bool pending_ = false;
  int64_t pending_i_ = 0, pending_rows_ = 0, pending_j_ = 0, pending_columns_ = 0;
  int64_t fetch_step_ = 0;
};

void run(const GemmProblem& problem) {
  const GemmProblem turned = transposed_problem(problem);
  const GemmProblem& p = cost_of(turned) < cost_of(problem) ? turned : problem;
  const double work = static_cast<double>(p.batch) * static_cast<double>(p.m * p.n) * static_cast<double>(p.k);
  const auto wanted = std::clamp<int64_t>(static_cast<int64_t>(work / kPartProducts), 1, std::max(1, p.threads));
  const bool along_rows = p.m >= p.n;
  const int64_t extent = along_rows ? p.m : p.n, length = round_up(divide_up(extent, divide_up(wanted, p.batch)), 32);
  const int64_t parts = divide_up(extent, length);
  parallel_for(static_cast<int>(wanted), p.batch * parts, 1, [&](int64_t begin, int64_t end) {
    MatrixTiles tiles;
    for (int64_t index = begin; index < end; ++index) {
      const int64_t start = index % parts * length, stop = std::min(extent, start + length);
      if (along_rows) {
        Part(p, index / parts, start, stop, 0, p.n).run();
      } else {
        Part(p, index / parts, 0, p.m, start, stop).run();
      }
    }
  });
}

Refusal refuse(const GemmProblem& p) {
  if (p.dtype != DType::BFloat16 || !is_packed_source(p.result_dtype) ||
      (p.has_addend() && !is_packed_source(p.addend_dtype))) {
    return {"takes bfloat16; the problem is {} to {}", dtype_name(p.dtype), dtype_name(p.result_dtype)};
  }
  if (!has_bfloat16_matrix_units()) return "the processor lacks AMX-BF16";
  if (std::min(p.m, p.n) <= kStreamedVectors) return "few vectors are streamed faster";
  return {};
}

}  // namespace

const Implementation<GemmProblem> gemm_matrix_units = {"matrix_units", refuse, run};

}  // namespace neuron::kernels
