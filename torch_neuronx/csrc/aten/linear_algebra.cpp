// Matrix products: one command of the "gemm" kernel each. The addend of addmm and its kin is added in the same pass.
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

// mm(self, mat2), bmm(self, mat2), mv(self, vec), dot(self, tensor) and their out= forms.
void product(Arguments& arguments) {
  const at::Tensor& a = arguments.tensor(0);
  const at::Tensor& b = arguments.tensor(1);
  check_dtype(a);
  if (a.scalar_type() != b.scalar_type()) refuse();
  const at::Tensor& out = arguments.output();
  if (out.numel() == 0) return;
  record_kernel(gemm(), {out}, {a, b});
}

// addmm, baddbmm, addmv (self, a, b, *, beta, alpha), functional, in place and out=.
void product_with_addend(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  const at::Tensor& a = arguments.tensor(1);
  const at::Tensor& b = arguments.tensor(2);
  check_dtype(a);
  const Scalar beta = scalar_of(arguments.scalar(3)), alpha = scalar_of(arguments.scalar(4));
  if (a.scalar_type() != b.scalar_type() || a.scalar_type() != self.scalar_type()) refuse();
  if (is_host_number(self)) decline();
  const at::Tensor& out = arguments.output();
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
