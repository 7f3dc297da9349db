// renorm and embedding_renorm_: slices are scaled to a largest norm.
#include <ATen/core/Tensor.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/gt_ops.h>
#include <ATen/ops/linalg_vector_norm_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/reciprocal_ops.h>
#include <ATen/ops/where_ops.h>
#include <c10/core/WrapDimMinimal.h>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/indexed.h"
#include "torch_neuronx/csrc/aten/refuse.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

// renorm(self, p, dim, maxnorm): slices along the dimension.
void renorm(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  require_row_dtype(self);
  at::Tensor out = arguments.output();
  if (out.numel() == 0) return;
  const int64_t dimension = c10::maybe_wrap_dim(arguments.integer(2), self.dim());
  at::DimVector others;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d != dimension) others.push_back(d);
  }
  const at::Scalar largest = arguments.scalar(3);
  const bool narrow = is_reduced_float(dtype_of(self));
  const at::Tensor norm = at::_ops::linalg_vector_norm::call(self, arguments.scalar(1), others, true,
                                                             narrow ? at::ScalarType::Float : self.scalar_type());
  const at::Tensor inverse = at::_ops::reciprocal::call(at::_ops::add_Scalar::call(norm, 1e-7, 1));
  const at::Tensor scale = at::_ops::where_ScalarOther::call(at::_ops::gt_Scalar::call(norm, largest),
                                                             at::_ops::mul_Scalar::call(inverse, largest), 1);
  at::_ops::mul_out::call(self, to_dtype(scale, self.scalar_type()), out);
}

// embedding_renorm_(self, indices, max_norm, norm_type): the rows that are looked up.
void embedding_renorm(Arguments& arguments) {
  const at::Tensor &self = arguments.tensor(0), &indices = arguments.tensor(1);
  require_row_dtype(self);
  if (!is_index(indices) || self.dim() != 2 || !self.is_floating_point()) refuse();
  const at::Tensor* both[] = {&self, &indices};
  common_device(both);
  check_no_internal_overlap(self);
  if (indices.numel() != 0) {
    static const kernels::Kernel& found = kernel("embedding_renorm");
    record_kernel(found, {self}, {indices}, {}, {Scalar::of(arguments.real(2)), Scalar::of(arguments.real(3))}, true);
  }
  arguments.give(self);
}

const Registration registrations[] = {
    {"renorm", renorm},
    {"renorm.out", renorm},
    {"renorm_", renorm},
    {"embedding_renorm_", embedding_renorm},
};

}  // namespace
}  // namespace neuron::aten
