// Sampling of images and volumes at the positions of a grid, with the gradients of both.
#include <algorithm>
#include <array>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/dense_kernel.h"
#include "torch_neuronx/csrc/aten/registration.h"

namespace neuron::aten {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 31;  // of a plane or volume: places are int32

// Number of dimensions, then the arguments from schema position `first` on: interpolation_mode, padding_mode,
// align_corners.
template <int kRank>
std::array<int64_t, 4> attributes_of(const Arguments& arguments, int first) {
  return {kRank, arguments.integer(first), arguments.integer(first + 1), arguments.boolean(first + 2) ? 1 : 0};
}

void check(const at::Tensor& input, const at::Tensor& grid) {
  const DType dtype = dtype_of(input);
  if (!is_float(dtype) || dtype_size(dtype) < 2 || grid.scalar_type() != input.scalar_type()) decline();
  if (input.dim() < 4 || input.numel() / std::max<int64_t>(1, input.size(0) * input.size(1)) >= kMostElements)
    decline();
}

// grid_sampler_*d(input, grid, interpolation_mode, padding_mode, align_corners)
template <int kRank>
void grid_sampler(Arguments& arguments) {
  const at::Tensor &input = arguments.tensor(0), &grid = arguments.tensor(1);
  check(input, grid);
  const at::Tensor out = arguments.output();
  if (out.numel() == 0) return;
  static const kernels::Kernel& found = kernel("grid_sample");
  record_dense_kernel(found, {out}, {input, grid}, attributes_of<kRank>(arguments, 2));
}

// grid_sampler_*d_backward(grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask); the
// gradient of the grid is always computed.
template <int kRank>
void grid_sampler_backward(Arguments& arguments) {
  const at::Tensor &gradient = arguments.tensor(0), &input = arguments.tensor(1), &grid = arguments.tensor(2);
  check(input, grid);
  const std::array<int64_t, 4> attributes = attributes_of<kRank>(arguments, 3);
  const bool empty_samples = gradient.numel() == 0;
  at::Tensor of_input, of_grid = empty(grid.sizes(), grid.scalar_type(), grid.device());
  if (arguments.booleans(6)[0]) {
    of_input = empty(input.sizes(), input.scalar_type(), input.device());
    static const kernels::Kernel& found = kernel("grid_sample_input");
    if (empty_samples) {
      if (of_input.numel() != 0) record_fill(of_input, 0);
    } else {
      record_dense_kernel(found, {of_input}, {gradient, grid}, attributes);
    }
  }
  static const kernels::Kernel& found = kernel("grid_sample_grid");
  const bool nearest = attributes[1] == 1;
  if (of_grid.numel() != 0) {
    if (empty_samples || nearest) {
      record_fill(of_grid, 0);
    } else {
      record_dense_kernel(found, {of_grid}, {gradient, input, grid}, attributes);
    }
  }
  arguments.give(std::move(of_input));
  arguments.give(std::move(of_grid));
}

const Registration registrations[] = {
    {"grid_sampler_2d", grid_sampler<2>},
    {"grid_sampler_2d.out", grid_sampler<2>},
    {"grid_sampler_3d", grid_sampler<3>},
    {"grid_sampler_3d.out", grid_sampler<3>},
    {"grid_sampler_2d_backward", grid_sampler_backward<2>},
    {"grid_sampler_3d_backward", grid_sampler_backward<3>},
};

}  // namespace
}  // namespace neuron::aten
