// Convolutions of 1 to 3 spatial dimensions with groups, and their gradients. All tensors are contiguous.
//
// Three kernels share one description of the problem: "convolution" (forward), "convolution_input" (gradient of the
// input, and the forward of a transposed convolution) and "convolution_weight" (gradient of the weight). Each runs the
// first implementation that accepts.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "neuron/kernels/implementation_list.h"
#include "neuron/kernels/kernel.h"

namespace neuron::kernels {

// Three spatial dimensions; missing ones come first and have extent 1.
struct ConvolutionShape {
  int64_t batch, channels, filters, groups;  // channels of the input, filters of the output
  std::array<int64_t, 3> input{1, 1, 1}, output{1, 1, 1}, kernel{1, 1, 1};
  std::array<int64_t, 3> stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};

  // attributes: spatial rank, strides, paddings, dilations, groups.
  ConvolutionShape(const TensorView& in, const TensorView& out, const TensorView& weight,
                   std::span<const int64_t> attributes);

  int64_t input_size() const { return input[0] * input[1] * input[2]; }
  int64_t output_size() const { return output[0] * output[1] * output[2]; }
  int64_t kernel_size() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t group_channels() const { return channels / groups; }
  int64_t group_filters() const { return filters / groups; }
};

enum class ConvolutionPass : uint8_t { Forward, Input, Weight };

struct ConvolutionProblem {
  ConvolutionPass pass;
  ConvolutionShape shape;
  TensorView result;
  TensorView gradient;  // of the output; unused by Forward
  TensorView input;     // unused by Input
  TensorView weight;    // unused by Weight
  TensorView bias;      // [filters], or [channels] for Input; data null: none
  int threads = 1;

  DType dtype() const { return result.dtype; }
};

const ImplementationList<ConvolutionProblem>& convolution_implementations();

extern const Implementation<ConvolutionProblem> convolution_depthwise;
extern const Implementation<ConvolutionProblem> convolution_matrix_units;
extern const Implementation<ConvolutionProblem> convolution_tiles;
extern const Implementation<ConvolutionProblem> convolution_columns;

}  // namespace neuron::kernels
