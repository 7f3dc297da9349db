// Matrix products: one command of the "gemm" kernel each. The addend of addmm and its kin is added in the same pass.
#include <ATen/core/Tensor.h>
#include <ATen/ops/resolve_conj_ops.h>
#include <ATen/ops/resolve_neg_ops.h>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/refuse.h"
#include "torch_neuronx/csrc/aten/registration.h"

namespace neuron::aten {
namespace {

const kernels::Kernel& gemm() {
  static const kernels::Kernel& found = kernel("gemm");
  return found;
}

// What the kernel multiplies; the CPU refuses the rest in its own words.
void check_dtype(const at::Tensor& tensor) {
  DType dtype = dtype_of(tensor);
  if (dtype == DType::Bool || (is_float(dtype) && dtype_size(dtype) == 1)) decline();
}

// torch hands products conjugated views as they are, for libraries that conjugate while they read: the kernel does not.
at::Tensor resolved(const at::Tensor& tensor) {
  at::Tensor result = tensor.is_conj() ? at::_ops::resolve_conj::call(tensor) : tensor;
  return result.is_neg() ? at::_ops::resolve_neg::call(result) : result;
}

// mm(self, mat2), bmm(self, mat2), mv(self, vec), dot(self, tensor) and their out= forms.
void product(Arguments& arguments) {
  const at::Tensor a = resolved(arguments.tensor(0)), b = resolved(arguments.tensor(1));
  check_dtype(a);
  if (a.scalar_type() != b.scalar_type()) refuse();
  const at::Tensor& out = arguments.output();
  if (out.is_conj() || out.is_neg()) decline();
  if (out.numel() == 0) return;
  record_kernel(gemm(), {out}, {a, b});
}

// vdot(self, other): of reals, the dot product.
void dot_of_conjugate(Arguments& arguments) {
  if (arguments.tensor(0).is_complex()) decline();
  product(arguments);
}

// addmm, baddbmm, addmv (self, a, b, *, beta, alpha), functional, in place and out=.
void product_with_addend(Arguments& arguments) {
  const at::Tensor self = resolved(arguments.tensor(0));
  const at::Tensor a = resolved(arguments.tensor(1)), b = resolved(arguments.tensor(2));
  check_dtype(a);
  const Scalar beta = scalar_of(arguments.scalar(3)), alpha = scalar_of(arguments.scalar(4));
  if (a.scalar_type() != b.scalar_type() || a.scalar_type() != self.scalar_type()) refuse();
  if (is_host_number(self)) decline();
  const at::Tensor& out = arguments.output();
  if (out.is_conj() || out.is_neg()) decline();
  if (out.numel() == 0) return;
  // With beta 0 the addend is not read: a NaN in it does not matter.
  record_kernel(gemm(), {out}, {a, b, beta.as_double() == 0.0 ? at::Tensor() : self}, {}, {alpha, beta});
}

const Registration registrations[] = {
    {"mm", product},
    {"mm.out", product},
    {"bmm", product},
    {"bmm.out", product},
    {"mv", product},
    {"mv.out", product},
    {"dot", product},
    {"vdot", dot_of_conjugate},
    {"addmm", product_with_addend},
    {"addmm.out", product_with_addend},
    {"addmm_", product_with_addend},
    {"baddbmm", product_with_addend},
    {"baddbmm.out", product_with_addend},
    {"baddbmm_", product_with_addend},
    {"addmv", product_with_addend},
    {"addmv.out", product_with_addend},
    {"addmv_", product_with_addend},
};

}  // namespace
}  // namespace neuron::aten
