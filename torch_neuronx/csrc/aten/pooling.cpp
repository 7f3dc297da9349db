// Pooling over the last two dimensions: maximum, average and adaptive average, with their gradients.
#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/registration.h"

namespace neuron::aten {
namespace {

void check_dtype(const at::Tensor& tensor) {
  const DType dtype = dtype_of(tensor);
  if (!is_float(dtype) || dtype_size(dtype) < 2) decline();
}

// int[2] arguments: one number stands for both, an empty stride for the kernel's size.
void append(at::DimVector& attributes, at::DimVector values, bool is_stride = false) {
  if (is_stride && values.empty()) values.append(attributes.begin(), attributes.begin() + 2);
  if (values.size() == 1) values.push_back(values[0]);
  attributes.append(values.begin(), values.end());
}

std::span<const int64_t> span_of(const at::DimVector& values) { return {values.data(), values.size()}; }

// Kernels write dense planes: an out= tensor or a channels-last result of another layout gets a copy.
void record_dense(const kernels::Kernel& kernel, std::span<const at::Tensor> outputs,
                  std::span<const at::Tensor> inputs, std::span<const int64_t> attributes) {
  std::vector<at::Tensor> dense_outputs, dense_inputs;
  for (const at::Tensor& output : outputs) {
    dense_outputs.push_back(output.is_contiguous() ? output
                                                   : empty(output.sizes(), output.scalar_type(), output.device()));
  }
  for (const at::Tensor& input : inputs) dense_inputs.push_back(contiguous(input));
  record_kernel(kernel, dense_outputs, dense_inputs, attributes);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].is_same(dense_outputs[i])) record_copy(outputs[i], dense_outputs[i]);
  }
}

// max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)
void max_pool(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  check_dtype(self);
  const at::Tensor outputs[] = {arguments.output(0), arguments.output(1)};
  if (outputs[0].numel() == 0) return;
  at::DimVector attributes;
  append(attributes, arguments.integers(1));
  append(attributes, arguments.integers(2), true);
  append(attributes, arguments.integers(3));
  append(attributes, arguments.integers(4));
  static const kernels::Kernel& found = kernel("max_pool");
  record_dense(found, outputs, {&self, 1}, span_of(attributes));
}

// max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices)
void max_pool_backward(Arguments& arguments) {
  const at::Tensor& gradient = arguments.tensor(0);
  check_dtype(gradient);
  const at::Tensor out = arguments.output();
  if (out.numel() == 0) return;
  const at::Tensor inputs[] = {gradient, arguments.tensor(7)};
  static const kernels::Kernel& found = kernel("max_pool_backward");
  record_dense(found, {&out, 1}, inputs, {});
}

// The parameters of avg_pool2d from schema position `first` on: kernel_size, stride, padding, ceil_mode,
// count_include_pad, divisor_override?
at::DimVector average_attributes(const Arguments& arguments, int first) {
  at::DimVector attributes;
  append(attributes, arguments.integers(first));
  append(attributes, arguments.integers(first + 1), true);
  append(attributes, arguments.integers(first + 2));
  attributes.push_back(arguments.boolean(first + 4));
  attributes.push_back(arguments.integer(first + 5, 0));
  return attributes;
}

// avg_pool2d(self, …)
void average_pool(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  check_dtype(self);
  const at::Tensor out = arguments.output();
  if (out.numel() == 0) return;
  static const kernels::Kernel& found = kernel("average_pool");
  record_dense(found, {&out, 1}, {&self, 1}, span_of(average_attributes(arguments, 1)));
}

// avg_pool2d_backward(grad_output, self, …)
void average_pool_backward(Arguments& arguments) {
  const at::Tensor& gradient = arguments.tensor(0);
  check_dtype(gradient);
  const at::Tensor out = arguments.output();
  if (out.numel() == 0) return;
  static const kernels::Kernel& found = kernel("average_pool_backward");
  record_dense(found, {&out, 1}, {&gradient, 1}, span_of(average_attributes(arguments, 2)));
}

// _adaptive_avg_pool2d(self, output_size), _adaptive_avg_pool2d_backward(grad_output, self)
void adaptive_average_pool(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  check_dtype(self);
  const at::Tensor out = arguments.output();
  if (out.numel() == 0) return;
  static const kernels::Kernel& found = kernel("average_pool");
  record_dense(found, {&out, 1}, {&self, 1}, {});
}

void adaptive_average_pool_backward(Arguments& arguments) {
  const at::Tensor& gradient = arguments.tensor(0);
  check_dtype(gradient);
  const at::Tensor out = arguments.output();
  if (out.numel() == 0) return;
  static const kernels::Kernel& found = kernel("average_pool_backward");
  record_dense(found, {&out, 1}, {&gradient, 1}, {});
}

const Registration registrations[] = {
    {"max_pool2d_with_indices", max_pool},
    {"max_pool2d_with_indices.out", max_pool},
    {"max_pool2d_with_indices_backward", max_pool_backward},
    {"max_pool2d_with_indices_backward.grad_input", max_pool_backward},
    {"avg_pool2d", average_pool},
    {"avg_pool2d.out", average_pool},
    {"avg_pool2d_backward", average_pool_backward},
    {"avg_pool2d_backward.grad_input", average_pool_backward},
    {"_adaptive_avg_pool2d", adaptive_average_pool},
    {"_adaptive_avg_pool2d_backward", adaptive_average_pool_backward},
};

}  // namespace
}  // namespace neuron::aten
