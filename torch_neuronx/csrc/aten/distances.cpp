// cdist and pdist with their gradients.
#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_euclidean_dist_ops.h>
#include <ATen/ops/expand_ops.h>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/refuse.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

// From here on products of matrices pay, as on the CPU.
constexpr int64_t kFewRows = 25;

void check_rows(const at::Tensor& tensor) {
  if (tensor.scalar_type() != at::ScalarType::Float && tensor.scalar_type() != at::ScalarType::Double) refuse();
}

// [batch, rows, width] without gaps, of rows that are broadcast to `batch`.
at::Tensor batched(const at::Tensor& tensor, at::IntArrayRef batch) {
  at::DimVector sizes(batch);
  sizes.push_back(tensor.size(-2));
  sizes.push_back(tensor.size(-1));
  const at::Tensor dense = contiguous(at::_ops::expand::call(tensor, c10::fromIntArrayRefSlow(sizes), false));
  const int64_t rows = sizes[sizes.size() - 2], width = sizes.back();
  const int64_t count = c10::multiply_integers(batch);
  return alias(dense, {count, rows, width}, {rows * width, width, 1});
}

at::DimVector batch_sizes(const at::Tensor& a, const at::Tensor& b) {
  return at::infer_size_dimvector(a.sizes().slice(0, static_cast<size_t>(a.dim()) - 2),
                                  b.sizes().slice(0, static_cast<size_t>(b.dim()) - 2));
}

// _cdist_forward(x1, x2, p, compute_mode?)
void cdist(Arguments& arguments) {
  const at::Tensor &x1 = arguments.tensor(0), &x2 = arguments.tensor(1);
  const double p = arguments.real(2);
  const int64_t how = arguments.integer(3, 0);
  check_rows(x1);
  if (x1.scalar_type() != x2.scalar_type() || x1.dim() < 2 || x2.dim() < 2 || x1.size(-1) != x2.size(-1) || !(p >= 0) ||
      how < 0 || how > 2) {
    refuse();
  }
  const at::Tensor* both[] = {&x1, &x2};
  const at::Device device = common_device(both);
  const at::DimVector batch = batch_sizes(x1, x2);
  at::DimVector sizes(batch);
  sizes.push_back(x1.size(-2));
  sizes.push_back(x2.size(-2));
  const bool many = x1.size(-2) > kFewRows || x2.size(-2) > kFewRows;
  at::Tensor out = empty(sizes, x1.scalar_type(), device);
  static const kernels::Kernel& found = kernel("distances");
  if (out.numel() == 0) {
  } else if (x1.size(-1) == 0) {
    record_fill(out, 0);
  } else if (p == 2 && (how == 1 || (how == 0 && many))) {
    const at::Tensor left = batched(x1, batch), right = batched(x2, batch);
    out = at::_ops::_euclidean_dist::call(left, right).view(sizes);
  } else {
    const int64_t n = x1.size(-2), m = x2.size(-2);
    record_kernel(found, {alias(out, {c10::multiply_integers(batch), n, m}, {n * m, m, 1})},
                  {batched(x1, batch), batched(x2, batch)}, {}, {Scalar::of(p)});
  }
  arguments.give(std::move(out));
}

// _cdist_backward(grad, x1, x2, p, cdist): the gradient of x1 as broadcast.
void cdist_backward(Arguments& arguments) {
  const at::Tensor &gradient = arguments.tensor(0), &x1 = arguments.tensor(1), &x2 = arguments.tensor(2),
                   &distances = arguments.tensor(4);
  check_rows(x1);
  if (x1.dim() < 2 || x2.dim() < 2 || x1.scalar_type() != x2.scalar_type() ||
      gradient.scalar_type() != x1.scalar_type() || distances.scalar_type() != x1.scalar_type()) {
    refuse();
  }
  const at::Tensor* all[] = {&gradient, &x1, &x2, &distances};
  const at::Device device = common_device(all);
  const at::DimVector batch = batch_sizes(x1, x2);
  at::DimVector sizes(batch);
  sizes.push_back(x1.size(-2));
  sizes.push_back(x1.size(-1));
  at::Tensor out = empty(sizes, x1.scalar_type(), device);
  static const kernels::Kernel& found = kernel("distances_backward");
  if (out.numel() == 0) {
  } else if (x2.size(-2) == 0) {
    record_fill(out, 0);
  } else {
    const int64_t n = x1.size(-2), width = x1.size(-1);
    record_kernel(found, {alias(out, {c10::multiply_integers(batch), n, width}, {n * width, width, 1})},
                  {batched(gradient, batch), batched(x1, batch), batched(x2, batch), batched(distances, batch)}, {},
                  {Scalar::of(arguments.real(3))});
  }
  arguments.give(std::move(out));
}

// _pdist_forward(self, p)
void pdist(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  check_rows(self);
  const double p = arguments.real(1);
  if (self.dim() != 2 || !(p >= 0)) refuse();
  const int64_t n = self.size(0);
  at::Tensor out = empty({n < 2 ? 0 : n * (n - 1) / 2}, self.scalar_type(), self.device());
  static const kernels::Kernel& found = kernel("pair_distances");
  if (out.numel() == 0) {
  } else if (self.size(1) == 0) {
    record_fill(out, 0);
  } else {
    record_kernel(found, {out}, {contiguous(self)}, {}, {Scalar::of(p)});
  }
  arguments.give(std::move(out));
}

// _pdist_backward(grad, self, p, pdist)
void pdist_backward(Arguments& arguments) {
  const at::Tensor &gradient = arguments.tensor(0), &self = arguments.tensor(1), &distances = arguments.tensor(3);
  check_rows(self);
  if (self.dim() != 2 || gradient.dim() != 1 || !gradient.sizes().equals(distances.sizes()) ||
      gradient.scalar_type() != self.scalar_type() || distances.scalar_type() != self.scalar_type()) {
    refuse();
  }
  const at::Tensor* all[] = {&gradient, &self, &distances};
  at::Tensor out = empty(self.sizes(), self.scalar_type(), common_device(all));
  static const kernels::Kernel& found = kernel("pair_distances_backward");
  if (out.numel() == 0) {
  } else if (distances.numel() == 0) {
    record_fill(out, 0);
  } else {
    record_kernel(found, {out}, {gradient, distances, contiguous(self)}, {}, {Scalar::of(arguments.real(2))});
  }
  arguments.give(std::move(out));
}

const Registration registrations[] = {
    {"_cdist_forward", cdist},
    {"_cdist_backward", cdist_backward},
    {"_pdist_forward", pdist},
    {"_pdist_backward", pdist_backward},
};

}  // namespace
}  // namespace neuron::aten
