// "matrix_units": gradients of weights of bfloat16 as products on the processor's matrix units. Rows are filters,
// columns 32 channels at a kernel position, the sum runs over output positions. The input is copied once into padded
// planes of 32 channels, a line for each position; words of the right operand are packed from two lines.
//
// Order of summation, for every element alike: one chain over steps of 32 output positions (gemm_matrix_units.cpp),
// image after image; behind the last position of an image stand zeros up to a whole step.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/convolution_matrix_units.h"
#include "neuron/kernels/gemm_microkernel.h"
#include "neuron/kernels/matrix_pack.h"
#include "neuron/kernels/matrix_target.h"
#include "neuron/kernels/matrix_tiles.h"
#include "neuron/kernels/scratch.h"

namespace neuron::kernels {
namespace {

constexpr int64_t kSourceBytes = 1 << 20;  // of the planes of a group of images
constexpr int64_t kMostSteps = 32;         // that are packed together
constexpr int64_t kBlock = 32;             // rows and columns of a block
constexpr int64_t kSlackLines = 16;        // behind a plane, which packing may write

int64_t divide_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit; }

struct Buffers {
  Scratch planes, totals, left, right, lines;
};
thread_local Buffers buffers;

class WeightGradient {
 public:
  explicit WeightGradient(const ConvolutionProblem& problem) : p_(problem), s_(problem.shape) {
    for (int d = 0; d < 3; ++d) {
      extent_[d] = (s_.output[d] - 1) * s_.stride[d] + (s_.kernel[d] - 1) * s_.dilation[d] + 1;
    }
    lane_channels_ = kStepElements;
    while (s_.dilation[2] == 1 && lane_channels_ > 4 && s_.group_channels() <= lane_channels_ / 2) lane_channels_ /= 2;
    neighbours_ = kStepElements / lane_channels_;
    line_ = lane_channels_ * static_cast<int64_t>(sizeof(uint16_t));
    kernel_runs_ = divide_up(s_.kernel[2], neighbours_);
    plane_ = (extent_[0] * extent_[1] * extent_[2] * line_ + kSlackLines * kLineBytes) / kLineBytes * kLineBytes;
    channel_blocks_ = divide_up(s_.group_channels(), kStepElements);
    image_ = s_.groups * channel_blocks_ * plane_;
    panels_ = channel_blocks_ * s_.kernel[0] * s_.kernel[1] * kernel_runs_;
    row_blocks_ = divide_up(s_.group_filters(), kBlock);
    image_steps_ = divide_up(s_.output_size(), kStepElements);
    for (int64_t z = 0; z < s_.output[0]; ++z) {
      for (int64_t y = 0; y < s_.output[1]; ++y) {
        const int64_t line = (z * s_.stride[0] * extent_[1] + y * s_.stride[1]) * extent_[2];
        for (int64_t x = 0; x < s_.output[2]; ++x) places_.push_back((line + x * s_.stride[2]) * line_);
      }
    }
    places_.resize(static_cast<size_t>(image_steps_ * kStepElements), -1);
  }

  void run() {
    totals_ = buffers.totals.get<float>(s_.groups * panels_ * row_blocks_ * kBlock * kBlock);
    const int64_t images = std::clamp<int64_t>(kSourceBytes / std::max<int64_t>(1, image_), 1, s_.batch);
    // Enough tasks for the threads; how columns are cut changes no bit.
    const int threads = convolution_matrix_threads(p_);
    const int64_t tasks = std::min(panels_, divide_up(threads, s_.groups)), length = divide_up(panels_, tasks);
    for (int64_t image = 0; image < s_.batch; image += images) {
      const int64_t count = std::min(images, s_.batch - image);
      fill(image, count);
      parallel_for(threads, s_.groups * tasks, 1, [&](int64_t begin, int64_t end) {
        MatrixTiles tiles;
        for (int64_t task = begin; task < end; ++task) {
          const int64_t first = task % tasks * length;
          run_task(task / tasks, image, count, first, std::min(panels_, first + length));
        }
      });
    }
    store();
  }

 private:
  void fill(int64_t first_image, int64_t images) {
    char* planes = buffers.planes.get<char>(images * image_);
    planes_ = planes;
    const int64_t grain = std::max<int64_t>(1, 65536 / plane_);
    parallel_for(p_.threads, images * s_.groups * channel_blocks_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t channel = i % channel_blocks_ * kStepElements, group = i / channel_blocks_ % s_.groups;
        const int64_t image = first_image + i / channel_blocks_ / s_.groups;
        fill_plane(image * s_.channels + group * s_.group_channels() + channel,
                   std::min(kStepElements, s_.group_channels() - channel), planes + i * plane_);
      }
    });
  }

  void fill_plane(int64_t channel, int64_t channels, char* target) const {
    const auto* input = static_cast<const uint16_t*>(p_.input.data);
    for (int64_t i = 0; i < extent_[0]; ++i) {
      for (int64_t j = 0; j < extent_[1]; ++j, target += extent_[2] * line_) {
        const int64_t z = i - s_.padding[0], y = j - s_.padding[1];
        const bool outside = z < 0 || z >= s_.input[0] || y < 0 || y >= s_.input[1];
        const int64_t from = outside ? extent_[2] : std::min(s_.padding[2], extent_[2]);
        const int64_t to = outside ? extent_[2] : std::min(s_.padding[2] + s_.input[2], extent_[2]);
        std::memset(target, 0, static_cast<size_t>(from * line_));
        if (to == from) {
          std::memset(target + to * line_, 0, static_cast<size_t>((extent_[2] - to) * line_));
          continue;
        }
        const int64_t start = (z * s_.input[1] + y) * s_.input[2] + from - s_.padding[2];
        if (lane_channels_ < kStepElements) {
          auto* elements = reinterpret_cast<uint16_t*>(target + from * line_);
          for (int64_t c = 0; c < lane_channels_; ++c) {
            const uint16_t* source = input + (channel + c) * s_.input_size() + start;
            for (int64_t x = 0; x < to - from; ++x) elements[x * lane_channels_ + c] = c < channels ? source[x] : 0;
          }
        } else {  // a whole tile of lines at a time: what follows is written later
          pack_left_tiles(input + channel * s_.input_size() + start, 1, s_.input_size(), to - from, channels,
                          target + from * kLineBytes, 0);
        }
        std::memset(target + to * line_, 0, static_cast<size_t>((extent_[2] - to) * line_));
      }
    }
  }

  void run_task(int64_t group, int64_t first_image, int64_t images, int64_t first_panel, int64_t last_panel) const {
    const int64_t all = images * image_steps_;
    const int64_t longest = std::min(all, kMostSteps);
    char* left = buffers.left.get<char>(row_blocks_ * longest * 2 * kTileBytes);
    char* right = buffers.right.get<char>(longest * 2 * kTileBytes);
    const MatrixBlock* held = nullptr;
    MatrixSums target;
    for (int64_t begin = 0; begin < all; begin += longest) {
      const int64_t steps = std::min(longest, all - begin);
      for (int64_t b = 0; b < row_blocks_; ++b) {
        pack_rows(group, first_image, b, begin, steps, left + b * longest * 2 * kTileBytes);
      }
      for (int64_t panel = first_panel; panel < last_panel; ++panel) {
        pack_panel(group, panel, begin, steps, right);
        for (int64_t b = 0; b < row_blocks_; ++b) {
          const int64_t rows = std::min(kBlock, s_.group_filters() - b * kBlock);
          const MatrixBlock& block = matrix_block(divide_up(rows, kTileLines), 2);
          if (held != nullptr && held != &block) held->store(target), held = nullptr;
          const MatrixSums sums{totals_ + ((group * panels_ + panel) * row_blocks_ + b) * kBlock * kBlock, kBlock};
          const MatrixWork work{{left + b * longest * 2 * kTileBytes, kLineBytes, kTileBytes, 2 * kTileBytes},
                                {right, kLineBytes, kTileBytes, 2 * kTileBytes},
                                steps,
                                {}};
          const bool first = first_image == 0 && begin == 0;
          block.begin(work, held == nullptr ? MatrixSums{} : target, first ? MatrixSums{} : sums);
          held = &block, target = sums;
        }
      }
    }
    if (held != nullptr) held->store(target);
  }

  // Steps [begin, begin + steps) of the gradient of 32 filters.
  void pack_rows(int64_t group, int64_t first_image, int64_t block, int64_t begin, int64_t steps, char* target) const {
    const auto* gradient = static_cast<const uint16_t*>(p_.gradient.data);
    const int64_t rows = std::min(kBlock, s_.group_filters() - block * kBlock), size = s_.output_size();
    for (int64_t done = 0; done < steps;) {
      const int64_t image = (begin + done) / image_steps_, step = (begin + done) % image_steps_;
      const int64_t count = std::min(steps - done, image_steps_ - step), position = step * kStepElements;
      const int64_t filter = (first_image + image) * s_.filters + group * s_.group_filters() + block * kBlock;
      pack_left_tiles(gradient + filter * size + position, size, 1, rows,
                      std::min(count * kStepElements, size - position), target + done * 2 * kTileBytes, 2 * kTileBytes);
      done += count;
    }
  }

  // The same steps of 32 channels at a kernel position.
  void pack_panel(int64_t group, int64_t panel, int64_t begin, int64_t steps, char* target) const {
    const int64_t position = panel / channel_blocks_, block = panel % channel_blocks_;
    const int64_t e = position % kernel_runs_ * neighbours_, b = position / kernel_runs_ % s_.kernel[1];
    const int64_t a = position / kernel_runs_ / s_.kernel[1];
    const int64_t tap = ((a * s_.dilation[0] * extent_[1] + b * s_.dilation[1]) * extent_[2] + e * s_.dilation[2]);
    for (int64_t s = begin; s < begin + steps; ++s, target += 2 * kTileBytes) {
      const char* plane = planes_ + s / image_steps_ * image_ + (group * channel_blocks_ + block) * plane_;
      pack_right_lines(plane + tap * line_, places_.data() + s % image_steps_ * kStepElements, target);
    }
  }

  void store() const {
    const int64_t channels = s_.group_channels(), size = s_.kernel_size(), row = channels * size;
    auto* result = static_cast<uint16_t*>(p_.result.data);
    parallel_for(p_.threads, s_.filters, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, row)),
                 [&](int64_t begin, int64_t end) {
                   float* lines = buffers.lines.get<float>(2 * size * kBlock + 64);
                   float* turned = lines + size * kBlock;
                   for (int64_t f = begin; f < end; ++f) {
                     const int64_t group = f / s_.group_filters(), filter = f % s_.group_filters();
                     for (int64_t block = 0; block < channel_blocks_; ++block) {
                       for (int64_t k = 0; k < size; ++k) {
                         const int64_t e = k % s_.kernel[2], run = k / s_.kernel[2] * kernel_runs_ + e / neighbours_;
                         const int64_t panel = group * panels_ + run * channel_blocks_ + block;
                         std::memcpy(lines + k * kBlock,
                                     totals_ + (panel * row_blocks_ + filter / kBlock) * kBlock * kBlock +
                                         filter % kBlock * kBlock + e % neighbours_ * lane_channels_,
                                     static_cast<size_t>(lane_channels_) * sizeof(float));
                       }
                       const int64_t count = std::min(kBlock, channels - block * kBlock);
                       detected_gemm_microkernel()->pack(PackedSource::Float32, lines, kBlock, 1, size, count,
                                                         static_cast<int>(size), turned);
                       gemm_microkernel_bfloat16.store(PackedSource::BFloat16, turned, count * size,
                                                       result + f * row + block * kBlock * size);
                     }
                   }
                 });
  }

  const ConvolutionProblem& p_;
  const ConvolutionShape& s_;
  int64_t extent_[3];  // of the padded input that is used
  int64_t lane_channels_, neighbours_, line_,
      kernel_runs_;  // of a line of 32: channels, positions; bytes of a position
  int64_t plane_, channel_blocks_, image_, panels_, row_blocks_, image_steps_;
  std::vector<int64_t> places_;  // of an image's output positions in a plane, in bytes; -1: zeros
  const char* planes_ = nullptr;
  float* totals_ = nullptr;  // [group][panel][block of filters][32][32]
};

}  // namespace

void run_convolution_matrix_weight(const ConvolutionProblem& problem) { WeightGradient(problem).run(); }

}  // namespace neuron::kernels
