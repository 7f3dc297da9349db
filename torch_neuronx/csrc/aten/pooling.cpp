// Pooling over the last two or three dimensions: maximum, average and their adaptive forms, with their gradients, and
// the inverse of maximum pooling.
#include <array>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/dense_kernel.h"
#include "torch_neuronx/csrc/aten/registration.h"

namespace neuron::aten {
namespace {

void check_dtype(const at::Tensor& tensor) {
  const DType dtype = dtype_of(tensor);
  if (!is_float(dtype) || dtype_size(dtype) < 2) decline();
}

// The attributes of neuron/kernels/pooling.h.
class Attributes {
 public:
  explicit Attributes(int rank) : rank_(rank) { values_.push_back(rank); }
  // int[2] or int[3]: one number stands for all; over two dimensions the outermost has `otherwise`.
  void append(const at::DimVector& numbers, int64_t otherwise) {
    if (rank_ == 2) values_.push_back(otherwise);
    for (int d = 0; d < rank_; ++d) values_.push_back(numbers[numbers.size() == 1 ? 0 : d]);
  }
  void append(int64_t number) { values_.push_back(number); }
  // kernel_size, stride (empty: the kernel's size) and padding, from schema position `first` on.
  void append_windows(const Arguments& arguments, int first) {
    const at::DimVector kernel = arguments.integers(first), stride = arguments.integers(first + 1);
    append(kernel, 1);
    append(stride.empty() ? kernel : stride, 1);
    append(arguments.integers(first + 2), 0);
  }
  std::span<const int64_t> span() const { return {values_.data(), values_.size()}; }

 private:
  int rank_;
  at::DimVector values_;
};

// max_pool*d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode) and
// adaptive_max_pool*d(self, output_size)
template <int kRank, bool kAdaptive>
void max_pool(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  check_dtype(self);
  const at::Tensor values = arguments.output(0), indices = arguments.output(1);
  if (values.numel() == 0) return;
  Attributes attributes(kRank);
  if (!kAdaptive) {
    attributes.append_windows(arguments, 1);
    attributes.append(arguments.integers(4), 1);
  }
  static const kernels::Kernel& found = kernel("max_pool");
  record_dense_kernel(found, {values, indices}, {self}, attributes.span());
}

// max_pool*d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices) and
// adaptive_max_pool*d_backward(grad_output, self, indices)
template <int kRank, bool kAdaptive>
void max_pool_backward(Arguments& arguments) {
  const at::Tensor& gradient = arguments.tensor(0);
  check_dtype(gradient);
  const at::Tensor out = arguments.output();
  if (out.numel() == 0) return;
  static const kernels::Kernel& found = kernel("max_pool_backward");
  record_dense_kernel(found, {out}, {gradient, arguments.tensor(kAdaptive ? 2 : 7)}, Attributes(kRank).span());
}

// max_unpool2d(self, indices, output_size), max_unpool3d(self, indices, output_size, stride, padding)
template <int kRank>
void max_unpool(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  check_dtype(self);
  const at::Tensor out = arguments.output();
  if (out.numel() == 0) return;
  static const kernels::Kernel& found = kernel("max_unpool");
  record_dense_kernel(found, {out}, {self, arguments.tensor(1)}, Attributes(kRank).span());
}

// avg_pool*d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override?) and
// avg_pool*d_backward(grad_output, self, the same)
template <int kRank, bool kBackward>
void average_pool(Arguments& arguments) {
  const at::Tensor& input = arguments.tensor(0);
  check_dtype(input);
  const at::Tensor out = arguments.output();
  if (out.numel() == 0) return;
  const int first = kBackward ? 2 : 1;
  Attributes attributes(kRank);
  attributes.append_windows(arguments, first);
  attributes.append(arguments.boolean(first + 4) ? 1 : 0);
  attributes.append(arguments.integer(first + 5, 0));
  static const kernels::Kernel& found = kernel(kBackward ? "average_pool_backward" : "average_pool");
  record_dense_kernel(found, {out}, {input}, attributes.span());
}

// _adaptive_avg_pool*d(self, output_size), _adaptive_avg_pool*d_backward(grad_output, self)
template <int kRank, bool kBackward>
void adaptive_average_pool(Arguments& arguments) {
  const at::Tensor& input = arguments.tensor(0);
  check_dtype(input);
  const at::Tensor out = arguments.output();
  if (out.numel() == 0) return;
  static const kernels::Kernel& found = kernel(kBackward ? "average_pool_backward" : "average_pool");
  record_dense_kernel(found, {out}, {input}, Attributes(kRank).span());
}

#define NEURON_FORWARD(name, wrapper) \
  {name, wrapper}, { name ".out", wrapper }
#define NEURON_BACKWARD(name, wrapper) \
  {name "_backward", wrapper}, { name "_backward.grad_input", wrapper }

const Registration registrations[] = {
    NEURON_FORWARD("max_pool2d_with_indices", (max_pool<2, false>)),
    NEURON_FORWARD("max_pool3d_with_indices", (max_pool<3, false>)),
    NEURON_BACKWARD("max_pool2d_with_indices", (max_pool_backward<2, false>)),
    NEURON_BACKWARD("max_pool3d_with_indices", (max_pool_backward<3, false>)),
    NEURON_FORWARD("adaptive_max_pool2d", (max_pool<2, true>)),
    NEURON_FORWARD("adaptive_max_pool3d", (max_pool<3, true>)),
    NEURON_BACKWARD("adaptive_max_pool2d", (max_pool_backward<2, true>)),
    NEURON_BACKWARD("adaptive_max_pool3d", (max_pool_backward<3, true>)),
    NEURON_FORWARD("max_unpool2d", max_unpool<2>),
    NEURON_FORWARD("max_unpool3d", max_unpool<3>),
    NEURON_FORWARD("avg_pool2d", (average_pool<2, false>)),
    NEURON_FORWARD("avg_pool3d", (average_pool<3, false>)),
    NEURON_BACKWARD("avg_pool2d", (average_pool<2, true>)),
    NEURON_BACKWARD("avg_pool3d", (average_pool<3, true>)),
    {"_adaptive_avg_pool2d", adaptive_average_pool<2, false>},
    {"_adaptive_avg_pool2d_backward", adaptive_average_pool<2, true>},
    {"_adaptive_avg_pool3d", adaptive_average_pool<3, false>},
    {"_adaptive_avg_pool3d_backward", adaptive_average_pool<3, true>},
};

#undef NEURON_FORWARD
#undef NEURON_BACKWARD

}  // namespace
}  // namespace neuron::aten
