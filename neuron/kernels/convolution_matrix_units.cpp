// "matrix_units": forward convolutions and gradients of inputs of bfloat16 as products on the processor's matrix units.
// The left operand is the weight, rows are channels of the result; columns are positions. The source is copied once
// into padded planes of pairs of channels: where a step is 32 channels at one tap, its lines lie in the planes, and
// tiles are read from there. Few channels are packed, pairs of them at all taps.
//
// Order of summation, for every element alike: steps of 32 as on matrix units in general (gemm_matrix_units.cpp), over
// (block of 32 channels of the source, tap, channel of the block) where channels fill blocks well, else over (pair of
// channels, tap, channel of the pair); the last kernel position first for gradients of inputs.
#include "neuron/kernels/convolution_matrix_units.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/convolution_windows.h"
#include "neuron/kernels/gemm_microkernel.h"
#include "neuron/kernels/matrix_pack.h"
#include "neuron/kernels/matrix_target.h"
#include "neuron/kernels/matrix_tiles.h"
#include "neuron/kernels/scratch.h"

namespace neuron::kernels {
namespace {

constexpr int64_t kMostColumns = 64;         // of a block
constexpr int64_t kPlaneWords = 1 << 18;     // of the planes of a group of images
constexpr int64_t kWeightBytes = 512 << 10;  // of rows that stay in the second cache
constexpr int64_t kTaskBlocks = 32;
constexpr int64_t kPlaneSlack = 2 * kMostColumns;  // words behind the planes that whole blocks read

int64_t divide_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit; }
int64_t round_up(int64_t value, int64_t unit) { return divide_up(value, unit) * unit; }

struct Buffers {
  Scratch planes, arranged, left, panel;
};
thread_local Buffers buffers;

NEURON_INLINE __mmask16 first(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffffu : (1u << std::max<int64_t>(count, 0)) - 1);
}

const uint16_t* elements(const TensorView& view) { return static_cast<const uint16_t*>(view.data); }

// target[i] = the pair a[i * step], b[i * step]; a missing channel is zero.
NEURON_TARGET void pair_line(const uint16_t* a, const uint16_t* b, int64_t step, int64_t count, uint32_t* target) {
  if (step > 2) {
    for (int64_t i = 0; i < count; ++i) {
      target[i] = a[i * step] | (b == nullptr ? 0 : static_cast<uint32_t>(b[i * step]) << 16);
    }
    return;
  }
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 mask = first(count - i);
    __m512i low, high = _mm512_setzero_si512();
    if (step == 1) {
      low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, a + i));
      if (b != nullptr) high = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, b + i)), 16);
    } else {  // every other element: the lower half of a word
      const int64_t left = 2 * (count - i) - 1;
      const __mmask32 wide = left >= 32 ? ~__mmask32{0} : (__mmask32{1} << left) - 1;
      low = _mm512_and_si512(_mm512_maskz_loadu_epi16(wide, a + 2 * i), _mm512_set1_epi32(0xffff));
      if (b != nullptr) high = _mm512_slli_epi32(_mm512_maskz_loadu_epi16(wide, b + 2 * i), 16);
    }
    _mm512_mask_storeu_epi32(target + i, mask, _mm512_or_si512(low, high));
  }
}

// The planes of a pair of channels.
void fill_pair(const SourcePlanes& planes, const uint16_t* a, const uint16_t* b, uint32_t* target) {
  for (const std::array<int64_t, 3>& phase : planes.phases) {
    const int64_t shift = phase[2] - planes.before[2], step = planes.step[2], extent = planes.extent[2];
    // Elements of a line that lie inside the operand.
    const int64_t begin = std::clamp<int64_t>(shift >= 0 ? 0 : (-shift + step - 1) / step, 0, extent);
    int64_t end = planes.operand[2] <= shift ? 0 : (planes.operand[2] - shift + step - 1) / step;
    end = std::clamp<int64_t>(end, begin, extent);
    for (int64_t i = 0; i < planes.extent[0]; ++i) {
      for (int64_t j = 0; j < planes.extent[1]; ++j, target += extent) {
        const int64_t z = i * planes.step[0] + phase[0] - planes.before[0];
        const int64_t y = j * planes.step[1] + phase[1] - planes.before[1];
        const bool outside = z < 0 || z >= planes.operand[0] || y < 0 || y >= planes.operand[1];
        const int64_t from = outside ? extent : begin, to = outside ? extent : end;
        std::fill(target, target + from, 0u);
        if (to > from) {
          const int64_t offset = (z * planes.operand[1] + y) * planes.operand[2] + from * step + shift;
          pair_line(a + offset, b == nullptr ? nullptr : b + offset, step, to - from, target + from);
        }
        std::fill(target + to, target + extent, 0u);
      }
    }
  }
}

// Filters as [filter][block of 32 channels][kernel position][channel], channels filled up with zeros.
struct ArrangedFilters {
  uint16_t* values;  // and behind the last filter, those of a block may be read
  int64_t row;       // elements of a filter
};

// A block of up to 32 channels of a filter, to lines of the arranged one.
void arrange_channels(const uint16_t* source, int64_t count, int64_t readable, int64_t kernel, uint16_t* target) {
  alignas(64) uint16_t lines[16 * kStepElements];
  std::vector<uint16_t> copy;
  if (count < kStepElements || readable < kStepElements * kernel + 16) {
    copy.assign(static_cast<size_t>(kStepElements * kernel + 16), 0);
    std::copy_n(source, count * kernel, copy.begin());
    source = copy.data();
  }
  for (int64_t k = 0; k < kernel; k += 16) {
    pack_left_tiles(source + k, 1, kernel, 16, kStepElements, reinterpret_cast<char*>(lines), kTileBytes);
    std::memcpy(target + k * kStepElements, lines, static_cast<size_t>(std::min<int64_t>(16, kernel - k) * kLineBytes));
  }
}

ArrangedFilters arrange_filters(const ConvolutionProblem& p) {
  const ConvolutionShape& s = p.shape;
  const int64_t kernel = s.kernel_size(), channels = s.group_channels(), whole = round_up(channels, kStepElements);
  const int64_t row = kernel * whole, all = s.filters * channels * kernel;
  auto* values = buffers.arranged.get<uint16_t>((s.filters + 32) * row);
  const uint16_t* weight = elements(p.weight);
  parallel_for(p.threads, s.filters, std::max<int64_t>(1, 65536 / row), [&](int64_t begin, int64_t end) {
    for (int64_t f = begin; f < end; ++f) {
      const uint16_t* source = weight + f * channels * kernel;
      for (int64_t c = 0; c < channels; c += kStepElements) {
        const int64_t count = std::min(kStepElements, channels - c);
        uint16_t* target = values + f * row + c * kernel;
        if (kernel == 1) {
          std::copy_n(source + c, count, target);
          std::fill(target + count, target + kStepElements, uint16_t{0});
        } else {
          arrange_channels(source + c * kernel, count, all - (f * channels + c) * kernel, kernel, target);
        }
      }
    }
  });
  return {values, row};
}

// The columns of a block: which of them are positions of the result, and where these lie in a channel of it.
struct Columns {
  int64_t source = 0;  // of the first column, in words of the planes of a pair
  int64_t image = 0;
  uint64_t valid = 0;
  bool dense = false;  // valid ones follow each other
  int64_t offset = 0;  // of the first valid one
  int64_t offsets[kMostColumns];
};

// Adds the bias to sums and rounds them into channels of the result, some rows at a time.
struct Finish {
  alignas(64) float sums[kBlockSums];
  const ConvolutionProblem* problem = nullptr;
  int64_t result_size = 0, stride = 0;
  Columns columns;
  int64_t row = 0, rows = 0, share = 0;  // of the block; channel `channel` of the result is row 0
  int64_t channel = 0;

  static void some_rows(void* self) {
    auto* finish = static_cast<Finish*>(self);
    finish->advance(finish->share);
  }

  NEURON_TARGET void advance(int64_t count) {
    const int64_t end = std::min(rows, row + count);
    for (; row < end; ++row) {
      const uint16_t* bias = elements(problem->bias);
      // -0.0 changes no sum.
      const uint32_t bits = bias == nullptr ? 0x80000000u : static_cast<uint32_t>(bias[channel + row]) << 16;
      const __m512 shift = _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(bits)));
      auto* target = static_cast<uint16_t*>(problem->result.data) +
                     (columns.image * result_channels + channel + row) * result_size;
      if (columns.dense) target += columns.offset;
      for (int64_t c = 0; c < stride; c += 32) {
        const auto valid = static_cast<uint32_t>(columns.valid >> c);
        if (valid == 0) continue;
        const float* from = sums + row * stride + c;
        target += store(_mm512_add_ps(_mm512_load_ps(from), shift), _mm512_add_ps(_mm512_load_ps(from + 16), shift),
                        valid, target, columns.offsets + c);
      }
    }
  }

  int64_t result_channels = 0;

 private:
  // Returns by how much the target advances.
  NEURON_INLINE int64_t store(__m512 x, __m512 y, uint32_t valid, uint16_t* target, const int64_t* offsets) const {
    const auto low = static_cast<__mmask16>(valid), high = static_cast<__mmask16>(valid >> 16);
    x = _mm512_maskz_mov_ps(low, x), y = _mm512_maskz_mov_ps(high, y);
    // Twice the bits less one, of which the largest belongs to zero and the smallest to denormal numbers. Those and NaN
    // are left to the other sets.
    const __m512i p = _mm512_castps_si512(x), q = _mm512_castps_si512(y), one = _mm512_set1_epi32(1);
    const __m512i magnitude =
        _mm512_min_epu32(_mm512_sub_epi32(_mm512_add_epi32(p, p), one), _mm512_sub_epi32(_mm512_add_epi32(q, q), one));
    const __mmask16 small = _mm512_cmplt_epu32_mask(magnitude, _mm512_set1_epi32(0x00ffffff));
    const bool special = (small | _mm512_cmp_ps_mask(x, y, _CMP_UNORD_Q)) != 0;
    const int before = std::popcount(static_cast<uint32_t>(low)), count = std::popcount(valid);
    if (columns.dense && !special) {
      if (valid == 0xffffffffu) {
        _mm512_storeu_si512(target, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(y, x)));
      } else {
        auto a = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_maskz_compress_ps(low, x)));
        auto b = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_maskz_compress_ps(high, y)));
        _mm256_mask_storeu_epi16(target, first(before), a);
        _mm256_mask_storeu_epi16(target + before, first(count - before), b);
      }
      return count;
    }
    alignas(64) float values[32];
    alignas(64) uint16_t rounded[32];
    _mm512_store_ps(values, x);
    _mm512_store_ps(values + 16, y);
    gemm_microkernel_bfloat16.store(PackedSource::BFloat16, values, 32, rounded);
    int64_t next = 0;
    for (; valid != 0; valid &= valid - 1) {
      const int lane = std::countr_zero(valid);
      target[columns.dense ? next++ : offsets[lane]] = rounded[lane];
    }
    return columns.dense ? count : 0;
  }
};

class Convolution {
 public:
  explicit Convolution(const ConvolutionProblem& problem)
      : p_(problem),
        s_(problem.shape),
        windows_(problem),
        source_(elements(problem.pass == ConvolutionPass::Forward ? problem.input : problem.gradient)),
        pairs_(divide_up(windows_.source_channels, 2)),
        in_place_(windows_.source_channels * 4 >= round_up(windows_.source_channels, kStepElements) * 3),
        plane_(windows_.planes.channel()) {
    if (in_place_) pairs_ = round_up(pairs_, kTileLines);
    // Lines of a tile keep apart in the cache.
    if (plane_ % 512 == 0) plane_ += 16;
    image_ = s_.groups * pairs_ * plane_;
    result_size_ = windows_.result[0] * windows_.result[1] * windows_.result[2];
    columns_ = windows_.result_channels <= 16 ? 64 : 32;
  }

  void run() {
    if (in_place_ || p_.pass == ConvolutionPass::Input) arranged_ = arrange_filters(p_);
    const int64_t images = std::clamp<int64_t>(kPlaneWords / std::max<int64_t>(1, image_), 1, s_.batch);
    for (const WindowPass& pass : windows_.passes) {
      if (pass.taps.empty()) {
        fill_with_bias();
        break;
      }
    }
    for (int64_t image = 0; image < s_.batch; image += images) {
      const int64_t count = std::min(images, s_.batch - image);
      fill(image, count);
      for (const WindowPass& pass : windows_.passes) run_pass(pass, image, count, image == 0);
    }
  }

 private:
  void fill(int64_t first_image, int64_t images) {
    auto* planes = buffers.planes.get<uint32_t>(images * image_ + kPlaneSlack);
    planes_ = planes;
    const int64_t size = windows_.planes.operand_size(), channels = windows_.source_channels;
    const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, plane_));
    parallel_for(p_.threads, images * s_.groups * pairs_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t channel = i % pairs_ * 2, of_all = (first_image * s_.groups + i / pairs_) * channels + channel;
        uint32_t* target = planes + i * plane_;
        if (channel >= channels) {
          std::fill(target, target + plane_, 0u);
          continue;
        }
        const uint16_t* a = source_ + of_all * size;
        fill_pair(windows_.planes, a, channel + 1 < channels ? a + size : nullptr, target);
      }
    });
  }

  // Rows of the left operand for a pass.
  struct Left {
    const char* data;                        // of group 0
    int64_t line, tile, step, group, block;  // block: from 32 rows to the next
  };

  void run_pass(const WindowPass& pass, int64_t first_image, int64_t images, bool first) {
    const auto taps = static_cast<int64_t>(pass.taps.size());
    const int64_t steps = in_place_ ? taps * pairs_ / kTileLines : divide_up(pairs_ * taps, kTileLines);
    if (taps == 0) return;
    const Left left = take_left(pass, steps, first);
    std::vector<int64_t> places;  // bytes of a step in place, or words to be packed
    if (in_place_) {
      for (int64_t pair = 0; pair < pairs_; pair += kTileLines) {
        for (int64_t tap : pass.taps) places.push_back((pair * plane_ + tap) * 4);
      }
    } else {
      for (int64_t pair = 0; pair < pairs_; ++pair) {
        for (int64_t tap : pass.taps) places.push_back(pair * plane_ + tap);
      }
    }
    const std::array<int64_t, 3>& extent = windows_.planes.extent;
    const int64_t length = ((pass.count[0] - 1) * extent[1] + pass.count[1] - 1) * extent[2] + pass.count[2];
    const int64_t image_blocks = divide_up(length, columns_), blocks = images * image_blocks;
    const int threads = convolution_matrix_threads(p_);
    const int64_t wanted = divide_up(threads, s_.groups);
    const int64_t per_task = std::clamp<int64_t>(divide_up(blocks, wanted), 1, kTaskBlocks);
    const int64_t tasks = divide_up(blocks, per_task);
    parallel_for(threads, s_.groups * tasks, 1, [&](int64_t begin, int64_t end) {
      MatrixTiles tiles;
      for (int64_t task = begin; task < end; ++task) {
        const int64_t from = task % tasks * per_task;
        run_task(pass, left, steps, places, task / tasks, first_image, image_blocks, from,
                 std::min(blocks, from + per_task));
      }
    });
  }

  void run_task(const WindowPass& pass, const Left& left, int64_t steps, const std::vector<int64_t>& places,
                int64_t group, int64_t first_image, int64_t image_blocks, int64_t begin, int64_t end) const {
    Finish finish;
    finish.problem = &p_, finish.result_size = result_size_, finish.stride = columns_;
    finish.result_channels = windows_.result_channels * s_.groups;
    const int64_t rows = windows_.result_channels;
    const int64_t many = std::max<int64_t>(32, kWeightBytes / (steps * kLineBytes) / 32 * 32);
    const int64_t width = columns_ / 16;
    char* panel = in_place_ ? nullptr : buffers.panel.get<char>(steps * width * kTileBytes);
    const MatrixBlock* held = nullptr;
    Columns columns, held_columns;
    int64_t held_row = 0, held_rows = 0;
    auto begin_finish = [&](int64_t turns) {
      finish.columns = held_columns, finish.row = 0, finish.rows = held_rows;
      finish.channel = group * rows + held_row, finish.share = divide_up(held_rows, std::max<int64_t>(1, turns));
    };
    auto leave_registers = [&] {
      if (held == nullptr) return;
      finish.advance(kBlockSums);
      begin_finish(1);
      held->store({finish.sums, columns_});
      finish.advance(kBlockSums);
      held = nullptr;
    };
    for (int64_t from = 0; from < rows; from += many) {
      const int64_t to = std::min(rows, from + many);
      for (int64_t index = begin; index < end; ++index) {
        take_columns(pass, index, image_blocks, first_image, columns);
        const uint32_t* corner = planes_ + index / image_blocks * image_ + group * pairs_ * plane_ + columns.source;
        MatrixOperand right{reinterpret_cast<const char*>(corner), plane_ * 4, kLineBytes, 0, places.data()};
        if (!in_place_) {
          pack_panel(corner, places, width, panel);
          right = {panel, kLineBytes, kTileBytes, width * kTileBytes};
        }
        for (int64_t row = from; row < to; row += 32) {
          const int64_t count = std::min<int64_t>(32, rows - row);
          const MatrixBlock& block = matrix_block(divide_up(count, 16), width);
          if (held != nullptr && held != &block) leave_registers();
          finish.advance(kBlockSums);
          MatrixWork work{{left.data + group * left.group + row / 32 * left.block, left.line, left.tile, left.step},
                          right,
                          steps,
                          {}};
          MatrixSums earlier;
          if (held != nullptr) {
            begin_finish(steps - 1);
            earlier = {finish.sums, columns_};
            work.between = &Finish::some_rows, work.context = &finish;
          }
          block.begin(work, earlier, {});
          held = &block, held_columns = columns, held_row = row, held_rows = count;
        }
      }
    }
    leave_registers();
  }

  // Words of all pairs and taps, behind the last zeros.
  NEURON_TARGET static void pack_panel(const uint32_t* corner, const std::vector<int64_t>& places, int64_t width,
                                       char* panel) {
    auto count = static_cast<int64_t>(places.size());
    for (int64_t word = 0; word < round_up(count, kTileLines); ++word) {
      char* line = panel + word / kTileLines * width * kTileBytes + word % kTileLines * kLineBytes;
      for (int64_t t = 0; t < width; ++t) {
        const __m512i values = word < count ? _mm512_loadu_si512(corner + places[static_cast<size_t>(word)] + 16 * t)
                                            : _mm512_setzero_si512();
        _mm512_store_si512(line + t * kTileBytes, values);
      }
    }
  }

  void take_columns(const WindowPass& pass, int64_t index, int64_t image_blocks, int64_t first_image,
                    Columns& columns) const {
    const std::array<int64_t, 3>& extent = windows_.planes.extent;
    columns.image = first_image + index / image_blocks;
    columns.source = index % image_blocks * columns_;
    columns.dense = pass.result_step == std::array<int64_t, 3>{1, 1, 1} && pass.count == windows_.result;
    columns.valid = 0;
    int64_t x = columns.source % extent[2], line = columns.source / extent[2];
    int64_t y = line % extent[1], z = line / extent[1];
    for (int64_t lane = 0; lane < columns_; ++lane) {
      if (x < pass.count[2] && y < pass.count[1] && z < pass.count[0]) {
        const int64_t offset = ((pass.result_start[0] + z * pass.result_step[0]) * windows_.result[1] +
                                pass.result_start[1] + y * pass.result_step[1]) *
                                   windows_.result[2] +
                               pass.result_start[2] + x * pass.result_step[2];
        if (columns.valid == 0) columns.offset = offset;
        columns.offsets[lane] = offset;
        columns.valid |= uint64_t{1} << lane;
      }
      if (++x == extent[2]) x = 0, ++y;
      if (y == extent[1]) y = 0, ++z;
    }
  }

  // For positions that no tap sees: all of the result, before the others are written.
  void fill_with_bias() const {
    auto* result = static_cast<uint16_t*>(p_.result.data);
    const uint16_t* bias = elements(p_.bias);
    const int64_t channels = windows_.result_channels * s_.groups;
    const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, result_size_));
    parallel_for(p_.threads, s_.batch * channels, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        std::fill_n(result + i * result_size_, result_size_, bias == nullptr ? uint16_t{0} : bias[i % channels]);
      }
    });
  }

  Left take_left(const WindowPass& pass, int64_t steps, bool first) {
    const int64_t rows = windows_.result_channels;
    if (in_place_ && p_.pass == ConvolutionPass::Forward) {
      const int64_t line = arranged_.row * 2;
      return {
          reinterpret_cast<const char*>(arranged_.values), line, kTileLines * line, kLineBytes, rows * line, 32 * line};
    }
    // Tiles [group][32 rows][step][2 tiles], for each pass behind each other.
    const int64_t block = steps * 2 * kTileBytes, group = divide_up(rows, 32) * block;
    if (passes_bytes_.empty()) {
      int64_t all = 0;
      for (const WindowPass& each : windows_.passes) {
        passes_bytes_.push_back(all);
        const auto taps = static_cast<int64_t>(each.taps.size());
        const int64_t count = in_place_ ? taps * pairs_ / kTileLines : divide_up(pairs_ * taps, kTileLines);
        all += s_.groups * divide_up(rows, 32) * count * 2 * kTileBytes;
      }
      left_ = buffers.left.get<char>(all);
    }
    char* data = left_ + passes_bytes_[static_cast<size_t>(&pass - windows_.passes.data())];
    if (first) {
      parallel_for(p_.threads, s_.groups * divide_up(rows, 32), 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t blocks = divide_up(rows, 32);
          pack_rows(pass, i / blocks, i % blocks * 32, steps, data + i * block);
        }
      });
    }
    return {data, kLineBytes, kTileBytes, 2 * kTileBytes, group, block};
  }

  void pack_rows(const WindowPass& pass, int64_t group, int64_t row, int64_t steps, char* target) const {
    const int64_t rows = windows_.result_channels, count = std::min<int64_t>(32, rows - row);
    const auto taps = static_cast<int64_t>(pass.taps.size());
    if (in_place_) {  // rows are channels of the input, the sum runs over filters
      for (int64_t filter = 0; filter < s_.group_filters(); filter += kStepElements) {
        const uint16_t* corner =
            arranged_.values + (group * s_.group_filters() + filter) * arranged_.row + row * s_.kernel_size();
        for (int64_t position : pass.weights) {
          pack_left_tiles(corner + position * kStepElements, 1, arranged_.row, 32,
                          std::min(kStepElements, s_.group_filters() - filter), target, 0);
          target += 2 * kTileBytes;
        }
      }
      return;
    }
    std::memset(target, 0, static_cast<size_t>(steps * 2 * kTileBytes));
    const bool forward = p_.pass == ConvolutionPass::Forward;
    const uint16_t* weight = elements(p_.weight);
    const int64_t kernel = s_.kernel_size(), channels = s_.group_channels();
    if (forward) {  // the words of a row are pairs of neighbouring lines of the weight
      std::vector<uint32_t> words(static_cast<size_t>(steps * kTileLines), 0);
      for (int64_t r = 0; r < count; ++r) {
        const uint16_t* source = weight + (group * s_.group_filters() + row + r) * channels * kernel;
        for (int64_t c = 0; c < channels; c += 2) {
          const uint16_t* a = source + c * kernel;
          pair_line(a, c + 1 < channels ? a + kernel : nullptr, 1, kernel, words.data() + c / 2 * kernel);
        }
        for (int64_t step = 0; step < steps; ++step) {
          std::memcpy(target + step * 2 * kTileBytes + r * kLineBytes, words.data() + step * kTileLines, kLineBytes);
        }
      }
      return;
    }
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t c = 0; c < windows_.source_channels; ++c) {
        const int64_t filter = group * s_.group_filters() + c, channel = row + r;
        for (int64_t t = 0; t < taps; ++t) {
          const int64_t element = (c / 2 * taps + t) * 2 + c % 2;
          std::memcpy(target + element / kStepElements * 2 * kTileBytes + r * kLineBytes + element % kStepElements * 2,
                      weight + (filter * channels + channel) * kernel + pass.weights[static_cast<size_t>(t)], 2);
        }
      }
    }
  }

  const ConvolutionProblem& p_;
  const ConvolutionShape& s_;
  Windows windows_;
  const uint16_t* source_;
  int64_t pairs_;  // of channels of the source in a group, with those of zeros
  bool in_place_;  // a step is 32 channels at a tap
  int64_t plane_;  // words of the planes of a pair
  int64_t image_ = 0, result_size_ = 0, columns_ = 32;
  const uint32_t* planes_ = nullptr;
  ArrangedFilters arranged_{};
  char* left_ = nullptr;
  std::vector<int64_t> passes_bytes_;
};

Refusal refuse(const ConvolutionProblem& p) {
  const ConvolutionShape& s = p.shape;
  if (p.dtype() != DType::BFloat16) return {"takes bfloat16; the problem is {}", dtype_name(p.dtype())};
  if (!has_bfloat16_matrix_units()) return "the processor lacks AMX-BF16";
  if (p.pass == ConvolutionPass::Input && s.stride[0] * s.stride[1] * s.stride[2] > 8) {
    return {"the input's gradient has {} phases, more than 8", s.stride[0] * s.stride[1] * s.stride[2]};
  }
  if (s.batch == 0 || s.output_size() == 0 || s.filters == 0 || s.channels == 0 || s.input_size() == 0) {
    return "the problem is empty";
  }
  if (s.groups > 1 && s.group_channels() < 2) return "one channel in a group leaves most of a tile empty";
  return {};
}

void run(const ConvolutionProblem& problem) {
  if (problem.pass == ConvolutionPass::Weight) {
    run_convolution_matrix_weight(problem);
  } else {
    Convolution(problem).run();
  }
}

}  // namespace

int convolution_matrix_threads(const ConvolutionProblem& problem) {
  constexpr double kPartProducts = 1 << 22;  // multiplications worth a thread
  const ConvolutionShape& s = problem.shape;
  const double products = static_cast<double>(s.batch * s.filters * s.output_size()) *
                          static_cast<double>(s.group_channels() * s.kernel_size());
  return static_cast<int>(std::clamp(products / kPartProducts, 1.0, static_cast<double>(std::max(1, problem.threads))));
}

const Implementation<ConvolutionProblem> convolution_matrix_units = {"matrix_units", refuse, run};

}  // namespace neuron::kernels
