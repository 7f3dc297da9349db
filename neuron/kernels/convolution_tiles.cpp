// Convolution as a matrix product whose panels are packed straight from padded planes of the source: no matrix of
// patches is written. Float32, bfloat16 and float16; narrow floats are widened once.
//
// Order of summation: of forward and input gradients over (channel of the source, kernel position), of weight gradients
// over (image, output position), in blocks of 256 as in the packed GEMM. Images of a weight gradient are taken in
// groups whose planes hold at most 2^20 elements (at least one image); each group begins a new block.
#include <algorithm>
#include <cstring>
#include <vector>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/convolution.h"
#include "neuron/kernels/convolution_routines.h"
#include "neuron/kernels/convolution_weights.h"
#include "neuron/kernels/convolution_windows.h"
#include "neuron/kernels/gemm_tiles.h"
#include "neuron/kernels/scratch.h"

namespace neuron::kernels {
namespace {

constexpr int64_t kColumns = 448;             // of a task: the packed block stays in the second-level cache
constexpr int64_t kPanelWidth = 32;           // at most
constexpr int64_t kSourceElements = 1 << 20;  // of the planes of a group of images

struct Buffers {
  PanelBuffers panels;
  Scratch sums, source, totals, weight_panels;
  ConvolutionWeights::Buffers weights;
};
thread_local Buffers buffers;

const char* element(const TensorView& view, int64_t index) {
  return static_cast<const char*>(view.data) + index * static_cast<int64_t>(dtype_size(view.dtype));
}
char* mutable_element(const TensorView& view, int64_t index) {
  return static_cast<char*>(view.data) + index * static_cast<int64_t>(dtype_size(view.dtype));
}

// Positions of a group of images in order; runs of them lie next to each other in the planes and in the result.
class Positions {
 public:
  Positions(const Windows& windows, const WindowPass& pass, int64_t source_image, int64_t result_image)
      : windows_(windows), pass_(pass), source_image_(source_image), result_image_(result_image) {}

  // body(position, count, distance in the planes, offset in the result) for stretches of lines.
  template <typename Body>
  void for_each_line(int64_t begin, int64_t end, const Body& body) const {
    int64_t width = pass_.count[2], per_image = pass_.positions();
    while (begin < end) {
      int64_t image = begin / per_image, rest = begin % per_image, x = rest % width, line = rest / width;
      int64_t y = line % pass_.count[1], z = line / pass_.count[1];
      int64_t count = std::min(width - x, end - begin);
      int64_t target = ((pass_.result_start[0] + z * pass_.result_step[0]) * windows_.result[1] +
                        pass_.result_start[1] + y * pass_.result_step[1]) *
                           windows_.result[2] +
                       pass_.result_start[2] + x * pass_.result_step[2];
      body(begin, count, image * source_image_ + windows_.at(z, y, x), image * result_image_ + target);
      begin += count;
    }
  }

 private:
  const Windows& windows_;
  const WindowPass& pass_;
  int64_t source_image_, result_image_;
};

// A stretch of a result line: `count` sums from `first` go to `offset`, `offset` + step, ….
struct Stretch {
  int64_t first, count, offset;
};

class WindowConvolution {
 public:
  WindowConvolution(const ConvolutionProblem& problem, const GemmMicrokernel& kernel,
                    const ConvolutionRoutines& routines)
      : p_(problem),
        s_(problem.shape),
        kernel_(kernel),
        routines_(routines),
        windows_(problem),
        source_(problem.pass == ConvolutionPass::Forward ? problem.input : problem.gradient),
        type_(packed_source(problem.dtype())) {}

  void run() {
    const SourcePlanes& planes = windows_.planes;
    int64_t channels = windows_.source_channels * s_.groups;
    direct_ = type_ == PackedSource::Float32 && planes.is_operand();
    source_image_ = channels * planes.channel();
    int64_t images = direct_ ? s_.batch : std::max<int64_t>(1, kSourceElements / std::max<int64_t>(1, source_image_));
    for (int64_t image = 0; image < s_.batch; image += images) {
      int64_t count = std::min(images, s_.batch - image);
      if (direct_) {
        planes_ = reinterpret_cast<const float*>(element(source_, image * source_image_));
      } else {
        fill(image, count, channels);
      }
      for (const WindowPass& pass : windows_.passes) run_pass(pass, image, count);
    }
  }

 private:
  void fill(int64_t first_image, int64_t images, int64_t channels) {
    const SourcePlanes& planes = windows_.planes;
    float* filled = buffers.source.get<float>(images * source_image_ + kConvolutionSlack);
    int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, planes.channel()));
    parallel_for(p_.threads, images * channels, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        planes.fill(type_, element(source_, (first_image * channels + i) * planes.operand_size()),
                    filled + i * planes.channel());
      }
    });
    planes_ = filled;
  }

  void run_pass(const WindowPass& pass, int64_t first_image, int64_t images) {
    std::vector<int64_t> offsets = windows_.offsets(pass);
    int64_t positions = images * pass.positions();
    // Positions are the columns of the product; where they would leave much of the register tiles empty, channels are.
    auto use = [&](int64_t extent) {
      int64_t panels = (extent + kernel_.columns - 1) / kernel_.columns;
      return static_cast<double>(extent) / static_cast<double>(panels * kernel_.columns);
    };
    bool turned = positions < 256 && use(windows_.result_channels) > 1.1 * use(positions);
    int64_t columns = turned ? windows_.result_channels : positions;
    // Enough tasks for the threads; how columns are cut changes no bit.
    int64_t tasks = std::max<int64_t>((columns + kColumns - 1) / kColumns, (p_.threads + s_.groups - 1) / s_.groups);
    int64_t length = (columns + tasks - 1) / tasks;
    length = (length + kernel_.columns - 1) / kernel_.columns * kernel_.columns;
    tasks = (columns + length - 1) / length;
    // Few tasks pack the weight piece by piece, where it stays in the cache; many share it.
    weight_panels_ = nullptr;
    bool in_place = p_.pass == ConvolutionPass::Forward && !keeps_column_panel(kernel_, length);
    if (!turned && !in_place && tasks > 2 * p_.threads) pack_weight(pass, static_cast<int64_t>(offsets.size()));
    parallel_for(p_.threads, s_.groups * tasks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        int64_t group = task / tasks, first = task % tasks * length, last = std::min(columns, first + length);
        run_task(pass, offsets, group, first_image, turned ? 0 : first, turned ? positions : last, turned ? first : 0,
                 turned ? last : windows_.result_channels, turned);
      }
    });
  }

  // Positions [begin, end) of the images from first_image on, channels [channel, channel_end) of the group.
  void run_task(const WindowPass& pass, const std::vector<int64_t>& offsets, int64_t group, int64_t first_image,
                int64_t begin, int64_t end, int64_t channel, int64_t channel_end, bool turned) {
    int64_t result_size = windows_.result[0] * windows_.result[1] * windows_.result[2];
    int64_t channels = windows_.result_channels * s_.groups;
    Positions positions(windows_, pass, source_image_, channels * result_size);
    const float* planes = planes_ + group * windows_.source_channels * windows_.planes.channel();
    auto take_positions = [&](int64_t l, int64_t depth, int64_t first, int64_t count, int width,
                              float* panel) -> TileOperand {
      CopyRun runs[64];
      int used = 0;
      positions.for_each_line(begin + first, begin + first + count,
                              [&](int64_t position, int64_t length, int64_t distance, int64_t) {
                                if (used > 0 && runs[used - 1].offset + runs[used - 1].length == distance) {
                                  runs[used - 1].length += length;
                                } else {
                                  runs[used++] = {position - begin - first, distance, length};
                                }
                              });
      // With one tap the sources of a position are as far apart as channels.
      int64_t step = windows_.planes.channel() * static_cast<int64_t>(sizeof(float));
      bool whole = used == 1 && count == width && pass.taps.size() == 1 && kernel_.group == 1;
      if (whole && keeps_apart(step, turned ? RowsInPlace::Crossed : RowsInPlace::Plain)) {
        return {planes + runs[0].offset + offsets[l], sizeof(float), step};
      }
      copy(planes, offsets.data() + l, depth, runs, used, width, panel);
      return kernel_.panel(panel, width);
    };
    ConvolutionWeights weights(p_, kernel_, routines_, pass, group, channel, channel_end, buffers.weights);
    const bool weights_in_place = turned || !keeps_column_panel(kernel_, end - begin);
    auto take_weights = [&](int64_t l, int64_t depth, int64_t first, int64_t count, int width,
                            float* panel) -> TileOperand {
      if (weight_panels_ != nullptr) {
        return kernel_.panel(weight_panel(group, static_cast<int64_t>(offsets.size()), l, depth, first), width);
      }
      return weights.take(l, depth, first, count, width, turned, weights_in_place, panel);
    };
    int64_t position_count = end - begin, channel_count = channel_end - channel;
    int64_t rows = turned ? position_count : channel_count, columns = turned ? channel_count : position_count;
    std::vector<Stretch> stretches;
    positions.for_each_line(begin, end, [&](int64_t position, int64_t length, int64_t, int64_t offset) {
      bool follows =
          pass.result_step[2] == 1 && !stretches.empty() && stretches.back().offset + stretches.back().count == offset;
      if (follows) {
        stretches.back().count += length;
      } else {
        stretches.push_back({position - begin, length, offset});
      }
    });
    auto depth = static_cast<int64_t>(offsets.size());
    auto base = [&](int64_t c) {
      return (first_image * channels + group * windows_.result_channels + channel + c) * result_size;
    };
    // Sums of whole panels that lie as the result does are made where they stay.
    bool in_place = !turned && depth > 0 && type_ == PackedSource::Float32 && stretches.size() == 1 &&
                    pass.result_step[2] == 1 && columns % kernel_.columns == 0 &&
                    keeps_apart(result_size * static_cast<int64_t>(sizeof(float)), RowsInPlace::Crossed);
    int64_t stride = in_place ? result_size : (columns + kernel_.columns - 1) / kernel_.columns * kernel_.columns;
    float* sums = in_place ? reinterpret_cast<float*>(mutable_element(p_.result, base(0) + stretches.front().offset))
                           : buffers.sums.get<float>(rows * stride);
    if (depth == 0) {
      std::fill(sums, sums + rows * stride, 0.0f);
    } else if (turned) {
      multiply_panels(kernel_, buffers.panels, rows, columns, depth, take_positions, take_weights, sums, stride, false);
    } else {
      multiply_panels(kernel_, buffers.panels, rows, columns, depth, take_weights, take_positions, sums, stride, false);
    }
    if (in_place && p_.bias.data == nullptr) return;
    for (int64_t c = 0; c < channel_count; ++c) {
      const float* row = turned ? sums + c : sums + c * stride;
      float bias = bias_of(group * windows_.result_channels + channel + c);
      store(row, turned ? stride : 1, stretches, pass.result_step[2], base(c), bias);
    }
  }

  // The weight as panels of tiles' rows, block of the sum after block.
  void pack_weight(const WindowPass& pass, int64_t depth) {
    constexpr int64_t kTiles = 8;  // of a part of the channels
    const int64_t channels = windows_.result_channels, height = tile_height(kernel_, channels);
    const int64_t part = kTiles * height, parts = (channels + part - 1) / part;
    const int64_t blocks = (depth + kernel_.depth - 1) / kernel_.depth;
    weight_panels_ = buffers.weight_panels.get<float>(s_.groups * channels * words_of(depth));
    parallel_for(p_.threads, s_.groups * blocks * parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        int64_t group = index / parts / blocks, l = index / parts % blocks * kernel_.depth;
        int64_t count = std::min<int64_t>(kernel_.depth, depth - l);
        int64_t channel = index % parts * part, channel_end = std::min(channel + part, channels);
        ConvolutionWeights weights(p_, kernel_, routines_, pass, group, channel, channel_end, buffers.weights);
        // What is written too much goes to a place of its own: behind a panel lies another, maybe of another thread.
        float* panel = buffers.panels.rows.get<float>(height * words_of(count) + kPanelSlack);
        for (int64_t first = channel; first < channel_end; first += height) {
          int64_t lanes = std::min(height, channel_end - first);
          weights.take(l, count, first - channel, lanes, static_cast<int>(lanes), false, false, panel);
          std::memcpy(weight_panel(group, depth, l, count, first), panel,
                      static_cast<size_t>(lanes * words_of(count)) * sizeof(float));
        }
      }
    });
  }

  float* weight_panel(int64_t group, int64_t depth, int64_t l, int64_t count, int64_t first) const {
    int64_t before = group * words_of(depth) + l / kernel_.group;
    return weight_panels_ + before * windows_.result_channels + first * words_of(count);
  }

  int64_t words_of(int64_t depth) const { return (depth + kernel_.group - 1) / kernel_.group; }

  void copy(const float* source, const int64_t* offsets, int64_t depth, const CopyRun* runs, int run_count, int width,
            float* panel) const {
    (kernel_.group == 1 ? routines_.copy_runs : routines_.copy_run_pairs)(source, offsets, depth, runs, run_count,
                                                                          width, panel);
  }

  float bias_of(int64_t channel) const {
    if (p_.bias.data == nullptr) return -0.0f;  // which changes no sum
    float value;
    widen_.pack(packed_source(p_.bias.dtype), element(p_.bias, channel), 1, 0, 1, 1, 1, &value);
    return value;
  }

  void store(const float* sums, int64_t step, const std::vector<Stretch>& stretches, int64_t result_step, int64_t base,
             float bias) const {
    bool plain = type_ == PackedSource::Float32 && step == 1 && result_step == 1;
    auto size = static_cast<int64_t>(dtype_size(p_.dtype()));
    for (const Stretch& stretch : stretches) {
      const float* from = sums + stretch.first * step;
      char* to = mutable_element(p_.result, base + stretch.offset);
      if (plain) {
        routines_.add_bias(from, 1, bias, stretch.count, reinterpret_cast<float*>(to));
        continue;
      }
      if (type_ == PackedSource::Float32) {
        auto* target = reinterpret_cast<float*>(to);
        for (int64_t j = 0; j < stretch.count; ++j) target[j * result_step] = from[j * step] + bias;
        continue;
      }
      for (int64_t done = 0; done < stretch.count;) {
        alignas(64) float values[64];
        int64_t count = std::min<int64_t>(64, stretch.count - done);
        routines_.add_bias(from + done * step, step, bias, count, values);
        if (result_step == 1) {
          kernel_.store(type_, values, count, to + done * size);
        } else {
          alignas(64) char rounded[64 * sizeof(float)];
          kernel_.store(type_, values, count, rounded);
          for (int64_t j = 0; j < count; ++j) {
            std::memcpy(to + (done + j) * result_step * size, rounded + j * size, static_cast<size_t>(size));
          }
        }
        done += count;
      }
    }
  }

  const ConvolutionProblem& p_;
  const ConvolutionShape& s_;
  const GemmMicrokernel& kernel_;
  const GemmMicrokernel& widen_ = *detected_gemm_microkernel();  // packs to float32
  const ConvolutionRoutines& routines_;
  Windows windows_;
  const TensorView& source_;
  PackedSource type_;
  bool direct_ = false;
  int64_t source_image_ = 0;  // elements of the planes of an image
  const float* planes_ = nullptr;
  float* weight_panels_ = nullptr;
};

// The gradient of the weight: rows are filters, columns (kernel position, channel), the depth is (image, position). The
// input is laid out with channels innermost, so that a panel's row is a piece of memory.
class WeightGradient {
 public:
  WeightGradient(const ConvolutionProblem& problem, const GemmMicrokernel& kernel, const ConvolutionRoutines& routines)
      : p_(problem), s_(problem.shape), kernel_(kernel), routines_(routines), type_(packed_source(problem.dtype())) {
    for (int d = 0; d < 3; ++d) {
      extent_[d] = (s_.output[d] - 1) * s_.stride[d] + (s_.kernel[d] - 1) * s_.dilation[d] + 1;
    }
    // Where kernel positions of a line are neighbours, they and their channels are one run of columns.
    bool merged = s_.groups == 1 && s_.dilation[2] == 1;
    run_ = merged ? s_.kernel[2] * s_.channels : s_.group_channels();
    runs_ = merged ? s_.kernel[0] * s_.kernel[1] : s_.kernel_size();
    // Runs that begin with a panel are copied fastest, but what they leave of their last panel is computed for nothing.
    padded_run_ = (run_ + kernel.columns - 1) / kernel.columns * kernel.columns;
    if (padded_run_ > run_ + run_ / 8) padded_run_ = run_;
    positions_per_run_ = merged ? s_.kernel[2] : 1;
  }

  void run() {
    int64_t image_size = extent_[0] * extent_[1] * extent_[2] * s_.channels;
    int64_t images = std::max<int64_t>(1, kSourceElements / std::max<int64_t>(1, image_size));
    images = std::min(images, s_.batch);
    float* source = buffers.source.get<float>(images * image_size + reach() + kConvolutionSlack);
    int64_t columns = (runs_ * padded_run_ + kernel_.columns - 1) / kernel_.columns * kernel_.columns;
    int64_t rows = s_.group_filters();
    float* totals = buffers.totals.get<float>(s_.groups * rows * columns);
    std::vector<int64_t> positions;
    for (int64_t image = 0; image < s_.batch; image += images) {
      int64_t count = std::min(images, s_.batch - image);
      fill(image, count, image_size, source);
      positions.clear();
      // Pairs of positions are pairs within an image: behind an odd number stands a position of zeros.
      std::fill(source + count * image_size, source + count * image_size + reach(), 0.0f);
      for (int64_t i = 0; i < count; ++i) {
        append_positions(i * image_size, positions);
        if (padded_size() != s_.output_size()) positions.push_back(count * image_size);
      }
      int64_t tasks = std::max<int64_t>((columns + kColumns - 1) / kColumns, (p_.threads + s_.groups - 1) / s_.groups);
      int64_t length = (columns + tasks - 1) / tasks;
      length = (length + kernel_.columns - 1) / kernel_.columns * kernel_.columns;
      tasks = (columns + length - 1) / length;
      parallel_for(p_.threads, s_.groups * tasks, 1, [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
          int64_t group = task / tasks, first = task % tasks * length, last = std::min(columns, first + length);
          run_task(group, image, source, positions, first, last, totals + group * rows * columns + first, columns);
        }
      });
    }
    store(totals, columns);
  }

 private:
  void fill(int64_t first_image, int64_t images, int64_t image_size, float* source) const {
    int64_t line = extent_[2] * s_.channels, lines = extent_[0] * extent_[1];
    int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, line));
    parallel_for(p_.threads, images * lines, grain, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        int64_t image = index / lines, z = index % lines / extent_[1] - s_.padding[0];
        int64_t y = index % extent_[1] - s_.padding[1];
        float* target = source + image * image_size + index % lines * line;
        bool outside = z < 0 || z >= s_.input[0] || y < 0 || y >= s_.input[1];
        int64_t from = outside ? extent_[2] : std::min(s_.padding[2], extent_[2]);
        int64_t to = outside ? extent_[2] : std::min(s_.padding[2] + s_.input[2], extent_[2]);
        std::fill(target, target + from * s_.channels, 0.0f);
        if (to > from) {
          int64_t start = ((first_image + image) * s_.channels * s_.input[0] + z) * s_.input[1] + y;
          widen_.pack(type_, element(p_.input, start * s_.input[2] + from - s_.padding[2]), s_.input_size(), 1,
                      s_.channels, to - from, static_cast<int>(s_.channels), target + from * s_.channels);
        }
        std::fill(target + to * s_.channels, target + line, 0.0f);
      }
    });
  }

  void append_positions(int64_t image, std::vector<int64_t>& positions) const {
    for (int64_t z = 0; z < s_.output[0]; ++z) {
      for (int64_t y = 0; y < s_.output[1]; ++y) {
        int64_t line = (z * s_.stride[0] * extent_[1] + y * s_.stride[1]) * extent_[2];
        for (int64_t x = 0; x < s_.output[2]; ++x) {
          positions.push_back(image + (line + x * s_.stride[2]) * s_.channels);
        }
      }
    }
  }

  void run_task(int64_t group, int64_t first_image, const float* source, const std::vector<int64_t>& positions,
                int64_t first_column, int64_t last_column, float* sums, int64_t sums_stride) const {
    const bool in_place = !keeps_column_panel(kernel_, last_column - first_column);
    auto take_filters = [&](int64_t l, int64_t depth, int64_t first, int64_t count, int width,
                            float* panel) -> TileOperand {
      int64_t size = s_.output_size(), padded = padded_size(), bytes = static_cast<int64_t>(dtype_size(p_.dtype()));
      bool words = bytes * kernel_.group == sizeof(float) && depth % kernel_.group == 0;
      if (in_place && words && l % padded + depth <= size && keeps_apart(size * bytes)) {
        int64_t filter = (first_image + l / padded) * s_.filters + group * s_.group_filters() + first;
        return {element(p_.gradient, filter * size + l % padded), size * bytes, sizeof(float)};
      }
      for (int64_t done = 0; done < depth;) {
        int64_t image = (l + done) / padded, position = (l + done) % padded;
        int64_t part = std::min(depth - done, padded - position);
        int64_t filter = (first_image + image) * s_.filters + group * s_.group_filters() + first;
        kernel_.pack(type_, element(p_.gradient, filter * size + position), size, 1, count,
                     std::min(part, size - position), width, panel + done / kernel_.group * width);
        done += part;
      }
      return kernel_.panel(panel, width);
    };
    auto take_patches = [&](int64_t l, int64_t depth, int64_t first, int64_t, int width, float* panel) {
      CopyRun runs[kPanelWidth];
      int used = 0;
      for (int lane = 0; lane < width;) {
        int64_t column = first_column + first + lane, run = column / padded_run_, from = column % padded_run_;
        if (run == runs_) break;
        int64_t length = std::min<int64_t>(width - lane, padded_run_ - from);
        runs[used++] = {lane, distance(run) + group * s_.group_channels() + from, length};
        lane += static_cast<int>(length);
      }
      (kernel_.group == 1 ? routines_.copy_runs : routines_.copy_run_pairs)(source, positions.data() + l, depth, runs,
                                                                            used, width, panel);
      return kernel_.panel(panel, width);
    };
    multiply_panels(kernel_, buffers.panels, s_.group_filters(), last_column - first_column,
                    static_cast<int64_t>(positions.size()), take_filters, take_patches, sums, sums_stride,
                    first_image > 0);
  }

  // Positions of an image in the sum.
  int64_t padded_size() const { return (s_.output_size() + kernel_.group - 1) / kernel_.group * kernel_.group; }
  // What packing reads from a position on.
  int64_t reach() const { return distance(runs_ - 1) + s_.channels + padded_run_; }

  // Of a run's first kernel position in the input.
  int64_t distance(int64_t run) const {
    int64_t position = run * positions_per_run_;
    int64_t e = position % s_.kernel[2], b = position / s_.kernel[2] % s_.kernel[1];
    int64_t a = position / s_.kernel[2] / s_.kernel[1];
    return ((a * s_.dilation[0] * extent_[1] + b * s_.dilation[1]) * extent_[2] + e * s_.dilation[2]) * s_.channels;
  }

  void store(const float* totals, int64_t columns) const {
    int64_t channels = s_.group_channels(), size = s_.kernel_size(), row = channels * size;
    parallel_for(p_.threads, s_.filters, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, row)),
                 [&](int64_t begin, int64_t end) {
                   std::vector<float> values(static_cast<size_t>(row));
                   for (int64_t f = begin; f < end; ++f) {
                     if (run_ == padded_run_ || runs_ == 1) {
                       widen_.pack(PackedSource::Float32, totals + f * columns, channels, 1, size, channels,
                                   static_cast<int>(size), values.data());
                     }
                     for (int64_t position = 0; position < size && run_ != padded_run_ && runs_ != 1; ++position) {
                       const float* sums = totals + f * columns + position / positions_per_run_ * padded_run_ +
                                           position % positions_per_run_ * channels;
                       for (int64_t c = 0; c < channels; ++c) values[c * size + position] = sums[c];
                     }
                     kernel_.store(type_, values.data(), row, mutable_element(p_.result, f * row));
                   }
                 });
  }

  const ConvolutionProblem& p_;
  const ConvolutionShape& s_;
  const GemmMicrokernel& kernel_;
  const GemmMicrokernel& widen_ = *detected_gemm_microkernel();  // packs to float32
  const ConvolutionRoutines& routines_;
  PackedSource type_;
  std::array<int64_t, 3> extent_{};
  int64_t run_, runs_, padded_run_, positions_per_run_;
};

Refusal refuse(const ConvolutionProblem& p) {
  const ConvolutionShape& s = p.shape;
  DType dtype = p.dtype();
  if (dtype != DType::Float32 && dtype != DType::BFloat16 && dtype != DType::Float16) {
    return {"takes float32, bfloat16 and float16; the problem is {}", dtype_name(dtype)};
  }
  if (detected_convolution_routines() == nullptr) return "the processor lacks AVX2, FMA or F16C";
  if (p.pass == ConvolutionPass::Input && s.stride[0] * s.stride[1] * s.stride[2] > 8) {
    return {"the input's gradient has {} phases, more than 8", s.stride[0] * s.stride[1] * s.stride[2]};
  }
  if (p.pass == ConvolutionPass::Weight && s.groups > 1 && s.group_channels() < 8) {
    return {"{} channels in a group leave most of a register empty", s.group_channels()};
  }
  if (s.batch == 0 || s.output_size() == 0 || s.filters == 0 || s.channels == 0 || s.input_size() == 0) {
    return "the problem is empty";
  }
  return {};
}

void run(const ConvolutionProblem& problem) {
  bool pairs = problem.dtype() == DType::BFloat16 && has_bfloat16_units();
  run_convolution_tiles(problem, pairs ? gemm_microkernel_bfloat16 : *detected_gemm_microkernel(),
                        *detected_convolution_routines());
}

}  // namespace

void run_convolution_tiles(const ConvolutionProblem& problem, const GemmMicrokernel& kernel,
                           const ConvolutionRoutines& routines) {
  if (problem.pass == ConvolutionPass::Weight) {
    WeightGradient(problem, kernel, routines).run();
  } else {
    WindowConvolution(problem, kernel, routines).run();
  }
}

const Implementation<ConvolutionProblem> convolution_tiles = {"tiles", refuse, run};

}  // namespace neuron::kernels
