// Convolutions of 1 to 3 spatial dimensions, plain and transposed, and their gradients.
#include <ATen/core/Tensor.h>
#include <ATen/ops/sum_ops.h>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/registration.h"

namespace neuron::aten {
namespace {

const kernels::Kernel& forward_kernel() {
  static const kernels::Kernel& found = kernel("convolution");
  return found;
}
const kernels::Kernel& input_kernel() {
  static const kernels::Kernel& found = kernel("convolution_input");
  return found;
}

// The parameters at schema positions first…: stride, padding, dilation, transposed, output_padding, groups.
struct Parameters {
  at::DimVector stride, padding, dilation, output_padding;
  bool transposed;
  int64_t groups;
  Parameters(const Arguments& arguments, int first, int64_t spatial)
      : stride(spread(arguments.integers(first), spatial)),
        padding(spread(arguments.integers(first + 1), spatial)),
        dilation(spread(arguments.integers(first + 2), spatial)),
        output_padding(spread(arguments.integers(first + 4), spatial)),
        transposed(arguments.boolean(first + 3)),
        groups(arguments.integer(first + 5)) {}
  static at::DimVector spread(at::DimVector values, int64_t spatial) {
    if (values.size() == 1) values.resize(static_cast<size_t>(spatial), values[0]);
    return values;
  }
  // The kernel's attributes: rank, strides, paddings, dilations, groups.
  at::DimVector attributes() const {
    at::DimVector all{static_cast<int64_t>(stride.size())};
    for (const at::DimVector* values : {&stride, &padding, &dilation}) all.append(values->begin(), values->end());
    all.push_back(groups);
    return all;
  }
};

void check_dtypes(const at::Tensor& input, const at::Tensor& weight) {
  const at::ScalarType type = input.scalar_type();
  if (!has_dtype(type) || !is_float(dtype_of(type)) || dtype_size(dtype_of(type)) < 2) decline();
  TORCH_CHECK(input.scalar_type() == weight.scalar_type(), "Input type (", input.toString(), ") and weight type (",
              weight.toString(), ") should be the same");
}

std::span<const int64_t> span_of(const at::DimVector& values) { return {values.data(), values.size()}; }

// convolution_overrideable(input, weight, bias?, stride, padding, dilation, transposed, output_padding, groups). Shapes
// have been checked by at::convolution.
void forward(Arguments& arguments) {
  const at::Tensor &input = arguments.tensor(0), &weight = arguments.tensor(1), &bias = arguments.tensor(2);
  check_dtypes(input, weight);
  const at::Tensor* all[] = {&input, &weight, &bias};
  const at::Device device = common_device(all);
  const int64_t spatial = input.dim() - 2;
  const Parameters parameters(arguments, 3, spatial);
  at::DimVector sizes{input.size(0), parameters.transposed ? weight.size(1) * parameters.groups : weight.size(0)};
  for (size_t d = 0; d < static_cast<size_t>(spatial); ++d) {
    const int64_t size = input.size(static_cast<int64_t>(d) + 2), kernel = weight.size(static_cast<int64_t>(d) + 2);
    const int64_t reach = parameters.dilation[d] * (kernel - 1);
    sizes.push_back(parameters.transposed ? (size - 1) * parameters.stride[d] - 2 * parameters.padding[d] + reach +
                                                parameters.output_padding[d] + 1
                                          : (size + 2 * parameters.padding[d] - reach - 1) / parameters.stride[d] + 1);
  }
  at::Tensor out = empty(sizes, input.scalar_type(), device);
  if (out.numel() != 0) {
    const at::Tensor inputs[] = {contiguous(input), contiguous(weight), bias.defined() ? contiguous(bias) : bias};
    const at::DimVector attributes = parameters.attributes();
    record_kernel(parameters.transposed ? input_kernel() : forward_kernel(), {&out, 1}, inputs, span_of(attributes));
  }
  arguments.give(std::move(out));
}

// convolution_backward_overrideable(grad_output, input, weight, stride, padding, dilation, transposed, output_padding,
// groups, output_mask) -> gradients of input, weight, bias
void backward(Arguments& arguments) {
  const at::Tensor &input = arguments.tensor(1), &weight = arguments.tensor(2);
  check_dtypes(input, weight);
  const at::Tensor gradient = contiguous(arguments.tensor(0));
  const Parameters parameters(arguments, 3, input.dim() - 2);
  const at::DimVector attributes = parameters.attributes();
  const std::vector<bool> wanted = arguments.booleans(9);
  at::Tensor input_gradient, weight_gradient, bias_gradient;
  if (wanted[0]) {
    input_gradient = empty(input.sizes(), input.scalar_type(), input.device());
    const at::Tensor inputs[] = {gradient, contiguous(weight)};
    if (input_gradient.numel() != 0) {
      record_kernel(parameters.transposed ? forward_kernel() : input_kernel(), {&input_gradient, 1}, inputs,
                    span_of(attributes));
    }
  }
  if (wanted[1]) {
    weight_gradient = empty(weight.sizes(), weight.scalar_type(), weight.device());
    const at::Tensor data = contiguous(input);
    // A transposed convolution is the gradient of a plain one: its input plays the gradient's part.
    const at::Tensor inputs[] = {parameters.transposed ? data : gradient, parameters.transposed ? gradient : data};
    static const kernels::Kernel& found = kernel("convolution_weight");
    if (weight_gradient.numel() != 0) record_kernel(found, {&weight_gradient, 1}, inputs, span_of(attributes));
  }
  if (wanted[2]) {
    at::DimVector others{0};
    for (int64_t d = 2; d < gradient.dim(); ++d) others.push_back(d);
    bias_gradient = at::_ops::sum_dim_IntList::call(gradient, at::OptionalIntArrayRef(others), false, std::nullopt);
  }
  arguments.give(std::move(input_gradient));
  arguments.give(std::move(weight_gradient));
  arguments.give(std::move(bias_gradient));
}

const Registration registrations[] = {
    {"convolution_overrideable", forward},
    {"convolution_backward_overrideable", backward},
};

}  // namespace
}  // namespace neuron::aten
