#include "neuron/kernels/convolution_windows.h"

#include <algorithm>

#include "neuron/kernels/convolution_routines.h"

namespace neuron::kernels {
namespace {

// Phases of a dimension that kernel positions fall into.
std::vector<int64_t> phases_of(int64_t kernel, int64_t dilation, int64_t stride) {
  std::vector<int64_t> phases;
  for (int64_t k = 0; k < kernel; ++k) {
    int64_t phase = k * dilation % stride;
    if (std::find(phases.begin(), phases.end(), phase) == phases.end()) phases.push_back(phase);
  }
  std::sort(phases.begin(), phases.end());
  return phases;
}

template <typename Body>
void for_each_kernel_position(const ConvolutionShape& s, const Body& body) {
  int64_t index = 0;
  for (int64_t a = 0; a < s.kernel[0]; ++a) {
    for (int64_t b = 0; b < s.kernel[1]; ++b) {
      for (int64_t c = 0; c < s.kernel[2]; ++c, ++index) body(std::array<int64_t, 3>{a, b, c}, index);
    }
  }
}

}  // namespace

bool SourcePlanes::is_operand() const {
  if (phases.size() != 1 || extent != operand) return false;
  for (int d = 0; d < 3; ++d) {
    if (step[d] != 1 || before[d] != 0 || phases[0][d] != 0) return false;
  }
  return true;
}

void SourcePlanes::fill(PackedSource type, const void* channel, float* target) const {
  int64_t size = type == PackedSource::Float32 ? 4 : 2;
  const ConvolutionRoutines& routines = *detected_convolution_routines();
  const float* end = target + this->channel();
  for (const std::array<int64_t, 3>& phase : phases) {
    // Elements of a line that lie inside the operand.
    int64_t shift = phase[2] - before[2];
    int64_t first = std::clamp<int64_t>(shift >= 0 ? 0 : (-shift + step[2] - 1) / step[2], 0, extent[2]);
    int64_t last = operand[2] <= shift ? 0 : (operand[2] - shift + step[2] - 1) / step[2];
    last = std::clamp<int64_t>(last, first, extent[2]);
    for (int64_t a = 0; a < extent[0]; ++a) {
      for (int64_t b = 0; b < extent[1]; ++b, target += extent[2]) {
        int64_t z = a * step[0] + phase[0] - before[0], y = b * step[1] + phase[1] - before[1];
        bool outside = z < 0 || z >= operand[0] || y < 0 || y >= operand[1];
        int64_t from = outside ? extent[2] : first, to = outside ? extent[2] : last;
        // What follows this line in the channel's planes is written later, but may not reach into another channel's.
        bool room = end - target >= extent[2] + 15;
        if (type == PackedSource::Float32 && step[2] == 1 && room) {
          int64_t offset = outside ? 0 : (z * operand[1] + y) * operand[2] + from + shift;
          routines.copy_line(static_cast<const float*>(channel) + offset, from, to - from, extent[2], target);
          continue;
        }
        std::fill(target, target + from, 0.0f);
        if (to > from) {
          int64_t offset = (z * operand[1] + y) * operand[2] + from * step[2] + shift;
          gemm_microkernel_avx2.pack(type, static_cast<const char*>(channel) + offset * size, step[2], 0, to - from, 1,
                                     static_cast<int>(to - from), target + from);
        }
        std::fill(target + to, target + extent[2], 0.0f);
      }
    }
  }
}

Windows::Windows(const ConvolutionProblem& problem) {
  const ConvolutionShape& s = problem.shape;
  std::array<int64_t, 3> reach{};  // furthest tap, in plane elements
  for (int d = 0; d < 3; ++d) reach[d] = (s.kernel[d] - 1) * s.dilation[d] / s.stride[d];
  if (problem.pass == ConvolutionPass::Forward) {
    source_channels = s.group_channels(), result_channels = s.group_filters();
    result = s.output;
    // Input element i of output o and kernel position k: i + padding = o * stride + k * dilation.
    planes.operand = s.input, planes.step = s.stride, planes.before = s.padding;
    std::array<std::vector<int64_t>, 3> phases;
    for (int d = 0; d < 3; ++d) {
      planes.extent[d] = s.output[d] + reach[d];
      phases[d] = phases_of(s.kernel[d], s.dilation[d], s.stride[d]);
    }
    for (int64_t a : phases[0]) {
      for (int64_t b : phases[1]) {
        for (int64_t c : phases[2]) planes.phases.push_back({a, b, c});
      }
    }
    WindowPass& pass = passes.emplace_back();
    pass.count = s.output, pass.result_step = {1, 1, 1};
    for_each_kernel_position(s, [&](std::array<int64_t, 3> k, int64_t index) {
      std::array<int64_t, 3> phase, distance;
      for (int d = 0; d < 3; ++d) {
        phase[d] = k[d] * s.dilation[d] % s.stride[d];
        distance[d] = k[d] * s.dilation[d] / s.stride[d];
      }
      int64_t number = std::find(planes.phases.begin(), planes.phases.end(), phase) - planes.phases.begin();
      pass.taps.push_back(number * planes.plane() + at(distance[0], distance[1], distance[2]));
      pass.weights.push_back(index);
    });
    return;
  }
  source_channels = s.group_filters(), result_channels = s.group_channels();
  result = s.input;
  // Output element o = (i + padding - k * dilation) / stride, where that is whole. With i + padding = stride * q +
  // phase and the kernel positions of that phase, o = q - k * dilation / stride, rounded down.
  planes.operand = s.output, planes.step = {1, 1, 1}, planes.before = reach;
  planes.phases = {{0, 0, 0}};
  for (int d = 0; d < 3; ++d) {
    planes.extent[d] = reach[d] + (s.padding[d] + std::max<int64_t>(s.input[d], 1) - 1) / s.stride[d] + 1;
  }
  for (int64_t a = 0; a < s.stride[0]; ++a) {
    for (int64_t b = 0; b < s.stride[1]; ++b) {
      for (int64_t c = 0; c < s.stride[2]; ++c) {
        std::array<int64_t, 3> phase{a, b, c}, start;
        WindowPass pass;
        bool empty = false;
        for (int d = 0; d < 3; ++d) {
          int64_t first = (std::max<int64_t>(s.padding[d] - phase[d], 0) + s.stride[d] - 1) / s.stride[d];
          int64_t beyond = s.padding[d] + s.input[d] - phase[d];  // stride * q < beyond
          int64_t last = beyond <= 0 ? 0 : (beyond + s.stride[d] - 1) / s.stride[d];
          start[d] = first;
          pass.count[d] = std::max<int64_t>(0, last - first);
          pass.result_start[d] = s.stride[d] * first + phase[d] - s.padding[d];
          pass.result_step[d] = s.stride[d];
          empty = empty || pass.count[d] == 0;
        }
        if (empty) continue;
        for_each_kernel_position(s, [&](std::array<int64_t, 3> k, int64_t index) {
          std::array<int64_t, 3> distance;
          for (int d = 0; d < 3; ++d) {
            if (k[d] * s.dilation[d] % s.stride[d] != phase[d]) return;
            distance[d] = reach[d] + start[d] - k[d] * s.dilation[d] / s.stride[d];
          }
          pass.taps.push_back(at(distance[0], distance[1], distance[2]));
          pass.weights.push_back(index);
        });
        // The last kernel position sees the first source element: sources in ascending order, as in a forward pass.
        std::reverse(pass.taps.begin(), pass.taps.end());
        std::reverse(pass.weights.begin(), pass.weights.end());
        passes.push_back(std::move(pass));
      }
    }
  }
}

std::vector<int64_t> Windows::offsets(const WindowPass& pass) const {
  std::vector<int64_t> all;
  all.reserve(static_cast<size_t>(source_channels) * pass.taps.size());
  for (int64_t c = 0; c < source_channels; ++c) {
    for (int64_t tap : pass.taps) all.push_back(c * planes.channel() + tap);
  }
  return all;
}

}  // namespace neuron::kernels
