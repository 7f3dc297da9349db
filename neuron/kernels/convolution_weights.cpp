#include "neuron/kernels/convolution_weights.h"

#include <algorithm>
#include <cstring>

namespace neuron::kernels {
namespace {

constexpr int64_t kPanelWidth = 32;  // at most

const char* element(const TensorView& view, int64_t index) {
  return static_cast<const char*>(view.data) + index * static_cast<int64_t>(dtype_size(view.dtype));
}

}  // namespace

ConvolutionWeights::ConvolutionWeights(const ConvolutionProblem& problem, const GemmMicrokernel& kernel,
                                       const ConvolutionRoutines& routines, const WindowPass& pass, int64_t group,
                                       int64_t channel, int64_t channel_end, Buffers& buffers)
    : p_(problem),
      s_(problem.shape),
      kernel_(kernel),
      widen_(*detected_gemm_microkernel()),
      routines_(routines),
      pass_(pass),
      type_(packed_source(problem.dtype())),
      group_(group),
      channel_(channel),
      channel_end_(channel_end),
      buffers_(buffers) {}

TileOperand ConvolutionWeights::take(int64_t l, int64_t depth, int64_t first, int64_t count, int width, bool as_columns,
                                     bool in_place, float* panel) {
  if (p_.pass == ConvolutionPass::Forward) {
    return take_filters(l, depth, first, count, width, in_place && !as_columns, panel);
  }
  const int64_t taps = static_cast<int64_t>(pass_.taps.size()), pitch = arranged_row();
  const int64_t filter = l / taps, filters = (l + depth + taps - 1) / taps - filter;
  float* arranged = buffers_.arranged.get<float>(filters * taps * pitch + kPanelWidth);
  if (arranged_from_ != l) arrange(filter, filters, arranged);
  arranged_from_ = l;
  const float* row = arranged + (l - filter * taps) * pitch + first;
  // Rows of the arranged weight keep apart, and behind them lies what whole panels read too much.
  if (in_place && kernel_.group == 1) return {row, sizeof(float), pitch * static_cast<int64_t>(sizeof(float))};
  offsets_.resize(static_cast<size_t>(depth));
  for (int64_t p = 0; p < depth; ++p) offsets_[p] = p * pitch;
  const CopyRun whole{0, 0, count};
  (kernel_.group == 1 ? routines_.copy_runs : routines_.copy_run_pairs)(row, offsets_.data(), depth, &whole, 1, width,
                                                                        panel);
  return kernel_.panel(panel, width);
}

TileOperand ConvolutionWeights::take_filters(int64_t l, int64_t depth, int64_t first, int64_t count, int width,
                                             bool in_place, float* panel) const {
  int64_t row = s_.group_channels() * s_.kernel_size(), size = static_cast<int64_t>(dtype_size(p_.dtype()));
  const char* source = element(p_.weight, (group_ * s_.group_filters() + channel_ + first) * row + l);
  bool words = size * kernel_.group == sizeof(float) && depth % kernel_.group == 0;
  if (in_place && words && keeps_apart(row * size)) return {source, row * size, sizeof(float)};
  kernel_.pack(type_, source, row, 1, count, depth, width, panel);
  return kernel_.panel(panel, width);
}

// Floats from one row of the arranged weight to the next.
int64_t ConvolutionWeights::arranged_row() const {
  int64_t row = (channel_end_ - channel_ + 15) / 16 * 16;
  return keeps_apart(row * static_cast<int64_t>(sizeof(float)), RowsInPlace::Crossed) ? row : row + 16;
}

// Filters of the group as [filter][tap of the pass][channel].
void ConvolutionWeights::arrange(int64_t filter, int64_t filters, float* target) const {
  int64_t kernel_size = s_.kernel_size(), channels = channel_end_ - channel_;
  float* turned = buffers_.filter.get<float>(channels * kernel_size);
  for (int64_t f = filter; f < filter + filters; ++f) {
    int64_t number = (group_ * s_.group_filters() + f) * s_.group_channels() + channel_;
    widen_.pack(type_, element(p_.weight, number * kernel_size), kernel_size, 1, channels, kernel_size,
                static_cast<int>(channels), turned);
    for (int64_t position : pass_.weights) {
      std::memcpy(target, turned + position * channels, static_cast<size_t>(channels) * sizeof(float));
      target += arranged_row();
    }
  }
}

}  // namespace neuron::kernels
