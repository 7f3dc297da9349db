// Matrix products: one command of the "gemm" kernel each. The addend of addmm and its kin is added in the same pass.
#include <ATen/core/Tensor.h>
#include <ATen/ops/expand_ops.h>
#include <ATen/ops/reshape_ops.h>
#include <ATen/ops/resolve_conj_ops.h>
#include <ATen/ops/resolve_neg_ops.h>
#include <ATen/ops/transpose_ops.h>
#include <c10/core/WrapDimMinimal.h>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/dispatcher.h"
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

// addbmm(self, batch1, batch2, *, beta, alpha), functional, in place and out=: the sum of the products of a batch is
// one product of matrices side by side.
void sum_of_products(Arguments& arguments) {
  const at::Tensor self = resolved(arguments.tensor(0));
  const at::Tensor a = resolved(arguments.tensor(1)), b = resolved(arguments.tensor(2));
  check_dtype(a);
  const Scalar beta = scalar_of(arguments.scalar(3)), alpha = scalar_of(arguments.scalar(4));
  if (a.scalar_type() != b.scalar_type() || a.scalar_type() != self.scalar_type()) refuse();
  const at::Tensor& out = arguments.output();
  if (out.is_conj() || out.is_neg()) decline();
  if (out.numel() == 0) return;
  const int64_t batch = a.size(0), rows = a.size(1), inner = a.size(2), columns = b.size(2);
  const int64_t left_sizes[] = {rows, batch * inner}, right_sizes[] = {batch * inner, columns};
  const at::Tensor left =
      at::_ops::reshape::call(at::_ops::transpose_int::call(a, 0, 1), c10::fromIntArrayRefSlow(left_sizes));
  const at::Tensor right = at::_ops::reshape::call(b, c10::fromIntArrayRefSlow(right_sizes));
  record_kernel(gemm(), {out}, {left, right, beta.as_double() == 0.0 ? at::Tensor() : self}, {}, {alpha, beta});
}

// linalg_cross(self, other, *, dim)
void cross(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  check_dtype(self);
  if (self.scalar_type() != arguments.tensor(1).scalar_type()) decline();
  const at::Tensor& out = arguments.output();
  check_no_internal_overlap(out);
  if (out.numel() == 0) return;
  const auto expanded = [&](const at::Tensor& tensor) {
    return at::_ops::expand::call(resolved(tensor), c10::fromIntArrayRefSlow(out.sizes()), false);
  };
  static const kernels::Kernel& found = kernel("cross");
  record_kernel(found, {out}, {expanded(self), expanded(arguments.tensor(1))},
                {c10::maybe_wrap_dim(arguments.integer(2), out.dim())});
}

// The calls of most programs, without boxing and without inference: operands of one floating-point dtype on one device
// whose shapes fit. The wrappers above take the rest and raise the errors.
class QuickProduct : public c10::OperatorKernel {
 public:
  explicit QuickProduct(GeneralKernel general)
      : general_(std::move(general)), rank_(general_.op().schema().name().find("bmm") != std::string::npos ? 3 : 2) {}

 protected:
  static bool is_plain(const at::Tensor& tensor) { return is_neuron(tensor) && !tensor.is_conj() && !tensor.is_neg(); }
  static bool same_kind(const at::Tensor& a, const at::Tensor& b) {
    return a.scalar_type() == b.scalar_type() && a.device() == b.device();
  }
  // Matrices, or batches of them, with elements.
  bool fits(const at::Tensor& a, const at::Tensor& b) const {
    const at::IntArrayRef left = a.sizes(), right = b.sizes();
    if (left.size() != rank_ || right.size() != rank_ || left.back() != right[rank_ - 2]) return false;
    if (rank_ == 3 && left[0] != right[0]) return false;
    if (!is_plain(a) || !is_plain(b) || !same_kind(a, b) || a.numel() == 0 || b.numel() == 0) return false;
    return c10::isFloatingType(a.scalar_type()) && a.itemsize() > 1;
  }
  static at::Tensor allocate_product(const at::Tensor& a, const at::Tensor& b) {
    at::DimVector sizes(a.sizes());
    sizes.back() = b.sizes().back();
    return empty(sizes, a.scalar_type(), a.device());
  }

  GeneralKernel general_;
  size_t rank_;
};

struct QuickMatrixProduct final : QuickProduct {
  using QuickProduct::QuickProduct;
  at::Tensor operator()(const at::Tensor& a, const at::Tensor& b) {
    if (!fits(a, b)) return general_.call(a, b);
    return general_.quickly([&] {
      at::Tensor out = allocate_product(a, b);
      record_kernel(gemm(), {out}, {a, b});
      return out;
    });
  }
};

struct QuickProductWithAddend final : QuickProduct {
  using QuickProduct::QuickProduct;
  at::Tensor operator()(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                        const at::Scalar& alpha) {
    if (!fits(a, b) || !is_plain(self) || !same_kind(self, a) || !is_row_of(self, b) || beta.isComplex() ||
        alpha.isComplex()) {
      return general_.call(self, a, b, beta, alpha);
    }
    return general_.quickly([&] {
      at::Tensor out = allocate_product(a, b);
      const at::Tensor none;
      const Scalar scale = scalar_of(beta);
      record_kernel(gemm(), {out}, {a, b, scale.as_double() == 0.0 ? none : self}, {}, {scalar_of(alpha), scale});
      return out;
    });
  }

 private:
  // A bias: one row for all rows of the result.
  static bool is_row_of(const at::Tensor& self, const at::Tensor& b) {
    return self.dim() == 1 && self.sizes().back() == b.sizes().back();
  }
};

const Registration registrations[] = {
    {"mm", product, &make_unboxed<QuickMatrixProduct>},
    {"mm.out", product},
    {"bmm", product, &make_unboxed<QuickMatrixProduct>},
    {"bmm.out", product},
    {"mv", product},
    {"mv.out", product},
    {"dot", product},
    {"vdot", dot_of_conjugate},
    {"addmm", product_with_addend, &make_unboxed<QuickProductWithAddend>},
    {"addmm.out", product_with_addend},
    {"addmm_", product_with_addend},
    {"baddbmm", product_with_addend},
    {"baddbmm.out", product_with_addend},
    {"baddbmm_", product_with_addend},
    {"addbmm", sum_of_products},
    {"addbmm.out", sum_of_products},
    {"addbmm_", sum_of_products},
    {"linalg_cross", cross},
    {"linalg_cross.out", cross},
    {"addmv", product_with_addend},
    {"addmv.out", product_with_addend},
    {"addmv_", product_with_addend},
};

}  // namespace
}  // namespace neuron::aten
