// The weight of a convolution as an operand of its product, for forward passes and gradients of inputs: lanes are
// channels of the result, the depth is (channel of the source, tap).
#pragma once

#include <cstdint>
#include <vector>

#include "neuron/kernels/convolution.h"
#include "neuron/kernels/convolution_routines.h"
#include "neuron/kernels/convolution_windows.h"
#include "neuron/kernels/gemm_tiles.h"
#include "neuron/kernels/scratch.h"

namespace neuron::kernels {

// Channels [channel, channel_end) of a group; for one thread, which lends its buffers.
class ConvolutionWeights {
 public:
  struct Buffers {
    Scratch arranged, filter;
  };

  ConvolutionWeights(const ConvolutionProblem& problem, const GemmMicrokernel& kernel,
                     const ConvolutionRoutines& routines, const WindowPass& pass, int64_t group, int64_t channel,
                     int64_t channel_end, Buffers& buffers);

  // Positions [l, l + depth) of the sum for lanes [first, first + count) after `channel`: a panel of `width` lanes, or,
  // where that is allowed and tiles read it as well, an operand in place.
  TileOperand take(int64_t l, int64_t depth, int64_t first, int64_t count, int width, bool as_columns, bool in_place,
                   float* panel);

 private:
  TileOperand take_filters(int64_t l, int64_t depth, int64_t first, int64_t count, int width, bool in_place,
                           float* panel) const;
  void arrange(int64_t filter, int64_t filters, float* target) const;
  int64_t arranged_row() const;

  const ConvolutionProblem& p_;
  const ConvolutionShape& s_;
  const GemmMicrokernel& kernel_;
  const GemmMicrokernel& widen_;  // packs to float32
  const ConvolutionRoutines& routines_;
  const WindowPass& pass_;
  PackedSource type_;
  int64_t group_, channel_, channel_end_;
  Buffers& buffers_;
  int64_t arranged_from_ = -1;  // position of the sum
  std::vector<int64_t> offsets_;
};

}  // namespace neuron::kernels
