// Hands the pointwise driver to the dispatcher: one kernel per row of the operator table, unboxed where the schema is
// common.
#include <map>
#include <string>

#include "torch_neuronx/csrc/aten/dispatcher.h"
#include "torch_neuronx/csrc/aten/pointwise.h"

namespace neuron::aten {
namespace {

constexpr PointwiseRow kRows[] = {
#include "aten_ops_table.inc"
};

class BoxedPointwise final : public c10::OperatorKernel {
 public:
  explicit BoxedPointwise(std::shared_ptr<PointwiseKernel> kernel) : kernel_(std::move(kernel)) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, c10::Stack* stack) {
    (*kernel_)(op, keys, stack);
  }

 private:
  std::shared_ptr<PointwiseKernel> kernel_;
};

// The signatures most calls have, without boxing: a boxed tensor costs a reference on its Python object.
class UnboxedKernel : public c10::OperatorKernel {
 public:
  UnboxedKernel(std::shared_ptr<PointwiseKernel> kernel, const c10::OperatorHandle& op)
      : kernel_(std::move(kernel)), op_(op) {}

 protected:
  std::shared_ptr<PointwiseKernel> kernel_;
  c10::OperatorHandle op_;
};

struct Unary final : UnboxedKernel {
  using UnboxedKernel::UnboxedKernel;
  at::Tensor operator()(const at::Tensor& x) { return kernel_->call(op_, {&x}, nullptr); }
};
struct UnaryNumber final : UnboxedKernel {
  using UnboxedKernel::UnboxedKernel;
  at::Tensor operator()(const at::Tensor& x, const at::Scalar& n) { return kernel_->call(op_, {&x}, &n); }
};
struct Binary final : UnboxedKernel {
  using UnboxedKernel::UnboxedKernel;
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& y) { return kernel_->call(op_, {&x, &y}, nullptr); }
};
struct BinaryNumber final : UnboxedKernel {
  using UnboxedKernel::UnboxedKernel;
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& y, const at::Scalar& n) {
    return kernel_->call(op_, {&x, &y}, &n);
  }
};
struct Ternary final : UnboxedKernel {
  using UnboxedKernel::UnboxedKernel;
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& y, const at::Tensor& z) {
    return kernel_->call(op_, {&x, &y, &z}, nullptr);
  }
};
struct TernaryNumber final : UnboxedKernel {
  using UnboxedKernel::UnboxedKernel;
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& y, const at::Tensor& z, const at::Scalar& n) {
    return kernel_->call(op_, {&x, &y, &z}, &n);
  }
};
struct UnaryInPlace final : UnboxedKernel {
  using UnboxedKernel::UnboxedKernel;
  at::Tensor& operator()(at::Tensor& x) { return kernel_->call(op_, {&x}, nullptr), x; }
};
struct UnaryNumberInPlace final : UnboxedKernel {
  using UnboxedKernel::UnboxedKernel;
  at::Tensor& operator()(at::Tensor& x, const at::Scalar& n) { return kernel_->call(op_, {&x}, &n), x; }
};
struct BinaryInPlace final : UnboxedKernel {
  using UnboxedKernel::UnboxedKernel;
  at::Tensor& operator()(at::Tensor& x, const at::Tensor& y) { return kernel_->call(op_, {&x, &y}, nullptr), x; }
};
struct BinaryNumberInPlace final : UnboxedKernel {
  using UnboxedKernel::UnboxedKernel;
  at::Tensor& operator()(at::Tensor& x, const at::Tensor& y, const at::Scalar& n) {
    return kernel_->call(op_, {&x, &y}, &n), x;
  }
};
struct TernaryInPlace final : UnboxedKernel {
  using UnboxedKernel::UnboxedKernel;
  at::Tensor& operator()(at::Tensor& x, const at::Tensor& y, const at::Tensor& z) {
    return kernel_->call(op_, {&x, &y, &z}, nullptr), x;
  }
};
struct TernaryNumberInPlace final : UnboxedKernel {
  using UnboxedKernel::UnboxedKernel;
  at::Tensor& operator()(at::Tensor& x, const at::Tensor& y, const at::Tensor& z, const at::Scalar& n) {
    return kernel_->call(op_, {&x, &y, &z}, &n), x;
  }
};

template <typename F>
c10::KernelFunction unboxed(std::shared_ptr<PointwiseKernel> kernel, const c10::OperatorHandle& op) {
  return c10::KernelFunction::makeFromUnboxedFunctor<false, F>(std::make_unique<F>(std::move(kernel), op));
}

// Empty for the signatures that stay boxed.
std::optional<c10::KernelFunction> unboxed_kernel(const c10::OperatorHandle& op,
                                                  const std::shared_ptr<PointwiseKernel>& kernel) {
  const c10::FunctionSchema& schema = op.schema();
  size_t tensors = 0, numbers = 0;
  for (const c10::Argument& argument : schema.arguments()) {
    const c10::TypeKind kind = argument.real_type()->kind();
    const bool written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    if (kind == c10::TypeKind::TensorType && numbers == 0 && !(written && argument.kwarg_only())) {
      ++tensors;
    } else if (kind == c10::TypeKind::NumberType) {
      ++numbers;
    } else {
      return std::nullopt;
    }
  }
  if (schema.returns().size() != 1 || tensors < 1 || tensors > 3 || numbers > 1) return std::nullopt;
  const bool in_place = schema.arguments()[0].alias_info() != nullptr;
  const size_t form = (in_place ? 6 : 0) + (tensors - 1) * 2 + numbers;
  switch (form) {
    case 0:
      return unboxed<Unary>(kernel, op);
    case 1:
      return unboxed<UnaryNumber>(kernel, op);
    case 2:
      return unboxed<Binary>(kernel, op);
    case 3:
      return unboxed<BinaryNumber>(kernel, op);
    case 4:
      return unboxed<Ternary>(kernel, op);
    case 5:
      return unboxed<TernaryNumber>(kernel, op);
    case 6:
      return unboxed<UnaryInPlace>(kernel, op);
    case 7:
      return unboxed<UnaryNumberInPlace>(kernel, op);
    case 8:
      return unboxed<BinaryInPlace>(kernel, op);
    case 9:
      return unboxed<BinaryNumberInPlace>(kernel, op);
    case 10:
      return unboxed<TernaryInPlace>(kernel, op);
    default:
      return unboxed<TernaryNumberInPlace>(kernel, op);
  }
}

std::map<std::string, std::shared_ptr<PointwiseKernel>, std::less<>>& kernels_by_name() {
  static auto* kernels = new std::map<std::string, std::shared_ptr<PointwiseKernel>, std::less<>>;
  return *kernels;
}

}  // namespace

std::shared_ptr<PointwiseKernel> find_pointwise(std::string_view name) {
  const auto it = kernels_by_name().find(name);
  return it == kernels_by_name().end() ? nullptr : it->second;
}

void register_pointwise() {
  for (const PointwiseRow& row : kRows) {
    const lowering::Operator* op = lowering::find_operator(row.lowering);
    if (op == nullptr) continue;
    const c10::OperatorName name = full_name(row.op);
    const c10::OperatorHandle handle = torch_operator(name);
    OperatorRecord& record = new_operator_record(c10::toString(name));
    const auto kernel = std::make_shared<PointwiseKernel>(row, *op, handle.schema(), record);
    kernels_by_name().emplace(row.op, kernel);
    if (auto function = unboxed_kernel(handle, kernel)) {
      add_kernel(name, std::move(*function));
    } else {
      add_kernel(name, c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<BoxedPointwise>(kernel)));
    }
  }
}

}  // namespace neuron::aten
