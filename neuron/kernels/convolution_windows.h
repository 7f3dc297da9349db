// Forward convolutions and gradients of inputs as one thing: every position of a result sums, over source channels and
// taps, a weight times the source at a fixed distance from the position. Sources are copied into padded float32 planes
// in which positions follow each other along a line with stride 1; a strided convolution has a plane per phase.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "neuron/kernels/convolution.h"
#include "neuron/kernels/gemm_memory.h"

namespace neuron::kernels {

// How the channels of one operand lie in memory as padded planes.
struct SourcePlanes {
  // Element q of a plane's dimension d is element q * step[d] + phase - before[d] of the operand; outside it is zero.
  std::array<int64_t, 3> extent{}, operand{}, step{}, before{};
  std::vector<std::array<int64_t, 3>> phases;

  int64_t plane() const { return extent[0] * extent[1] * extent[2]; }
  int64_t channel() const { return plane() * static_cast<int64_t>(phases.size()); }
  int64_t operand_size() const { return operand[0] * operand[1] * operand[2]; }
  // The operand is its own plane.
  bool is_operand() const;
  // Fills the planes of one channel.
  void fill(PackedSource type, const void* channel, float* target) const;
};

// The result positions that see the source through the same taps: all of them in a forward pass, those of one phase in
// the gradient of a strided convolution's input.
struct WindowPass {
  std::array<int64_t, 3> count{}, result_start{}, result_step{};
  std::vector<int64_t> taps;     // distance in the planes of a channel
  std::vector<int64_t> weights;  // position in the kernel, for each tap

  int64_t positions() const { return count[0] * count[1] * count[2]; }
};

struct Windows {
  SourcePlanes planes;
  std::vector<WindowPass> passes;
  int64_t source_channels, result_channels;  // of a group
  std::array<int64_t, 3> result;             // extents

  explicit Windows(const ConvolutionProblem& problem);  // Forward or Input

  // Distance of position (z, y, x) of a pass.
  int64_t at(int64_t z, int64_t y, int64_t x) const { return (z * planes.extent[1] + y) * planes.extent[2] + x; }
  // Of every (channel, tap), channels outermost, taps in the order of their sources: the order of summation.
  std::vector<int64_t> offsets(const WindowPass& pass) const;
};

}  // namespace neuron::kernels
