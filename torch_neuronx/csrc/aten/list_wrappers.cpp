// Foreach operators whose single operator is not a row of the pointwise driver: filling, copies, norms and powers.
#include "torch_neuronx/csrc/aten/list_operands.h"
#include "torch_neuronx/csrc/aten/norms.h"
#include "torch_neuronx/csrc/aten/powers.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"
#include "torch_neuronx/csrc/aten/tensor_argument.h"
#include "torch_neuronx/csrc/aten/unboxed_lists.h"

namespace neuron::aten {
namespace {

// On one device, of one dtype.
bool alike(at::TensorList list) {
  if (list.empty() || !is_neuron(list[0])) return false;
  for (const at::Tensor& tensor : list) {
    if (tensor.device() != list[0].device() || tensor.scalar_type() != list[0].scalar_type()) return false;
  }
  return true;
}

bool all_contiguous(at::TensorList list) {
  return std::all_of(list.begin(), list.end(), [](const at::Tensor& tensor) { return tensor.is_contiguous(); });
}

// What the region operators move as numbers (copy.cpp, fill.cpp have the rest).
bool is_number(at::ScalarType type) {
  return has_dtype(type) && !c10::isComplexType(type) && (c10::elementSize(type) > 1 || type == at::ScalarType::Bool);
}

void record_one(const lowering::Operator& op, DType common, at::TensorList outputs, at::TensorList lead,
                std::initializer_list<ListOperand> inputs) {
  const ListOperand output = outputs;
  record_list(op, common, /*reduces=*/false, lead, {&output, 1}, std::span(inputs.begin(), inputs.size()));
}

struct Zero {
  static bool run(at::TensorList self) {
    static const lowering::Operator& fill = operator_named("fill");
    if (!alike(self) || !all_contiguous(self) || !is_number(self[0].scalar_type())) return false;
    const Scalar zero = self[0].is_floating_point() ? Scalar::of(0.0) : Scalar::of(int64_t{0});
    record_one(fill, dtype_of(self[0]), self, self, {zero});
    return true;
  }
};

struct Copy {
  static bool run(at::TensorList self, at::TensorList source, bool) {
    static const lowering::Operator& copy = operator_named("copy");
    if (self.size() != source.size() || !alike(self) || !alike(source)) return false;
    if (self[0].device() != source[0].device()) return false;
    if (!is_number(self[0].scalar_type()) || !is_number(source[0].scalar_type())) return false;
    for (size_t i = 0; i < self.size(); ++i) {
      if (self[i].is_neg() || source[i].is_neg() || !runs_along(self[i], source[i])) return false;
      if (!self[i].is_same(source[i]) && self[i].storage().is_alias_of(source[i].storage())) return false;
    }
    record_one(copy, dtype_of(self[0]), self, self, {source});
    return true;
  }
};

// _foreach_norm.Scalar(self[], ord, dtype?).
struct Norm {
  static bool run(at::TensorList self, const at::Scalar& order, std::optional<at::ScalarType> dtype,
                  std::vector<at::Tensor>& results) {
    static const lowering::Operator& norm = operator_named("linalg_vector_norm");
    if (!alike(self) || !all_contiguous(self) || order.isComplex()) return false;
    const at::ScalarType type = self[0].scalar_type();
    if (!c10::isFloatingType(type) || !is_number(type) || (dtype && *dtype != type)) return false;
    for (const at::Tensor& tensor : self) {
      if (tensor.numel() == 0) return false;
    }
    for (size_t i = 0; i < self.size(); ++i) results.push_back(empty({}, type, self[i].device()));
    const ListOperand output = results, inputs[] = {self, order.toDouble()};
    const int64_t kind = static_cast<int64_t>(norm_kind(order.toDouble()));
    record_list(norm, dtype_of(type), /*reduces=*/true, self, {&output, 1}, inputs, {&kind, 1});
    return true;
  }
};

// Powers of floats; those of integers ask for the sign of the exponent.
bool record_power(at::TensorList self, const at::Scalar& exponent, at::TensorList outputs) {
  static const lowering::Operator &general = operator_named("pow"), &fill = operator_named("fill");
  const DType common = dtype_of(self[0]);
  const double number = exponent.toDouble();
  if (number == 0) {
    record_one(fill, common, outputs, outputs, {1.0});
  } else if (const lowering::Operator* op = special_power(number, /*integral=*/false)) {
    record_one(*op, common, outputs, self, {self});
  } else {
    record_one(general, common, outputs, self, {self, narrowed(scalar_of(exponent), common)});
  }
  return true;
}
bool takes_power(at::TensorList self, const at::Scalar& exponent) {
  if (!alike(self) || !all_contiguous(self) || exponent.isComplex()) return false;
  return c10::isFloatingType(self[0].scalar_type()) && is_number(self[0].scalar_type());
}

struct PowerInPlace {
  static bool run(at::TensorList self, const at::Scalar& exponent) {
    return takes_power(self, exponent) && record_power(self, exponent, self);
  }
};
struct Power {
  static bool run(at::TensorList self, const at::Scalar& exponent, std::vector<at::Tensor>& results) {
    if (!takes_power(self, exponent)) return false;
    for (const at::Tensor& tensor : self)
      results.push_back(empty(tensor.sizes(), tensor.scalar_type(), tensor.device()));
    return record_power(self, exponent, results);
  }
};

const Registration registrations[] = {
    {"_foreach_zero_", never, &make_unboxed<ListOrLoop<Zero, at::TensorList>>},
    {"_foreach_copy_", never, &make_unboxed<ListOrLoop<Copy, at::TensorList, at::TensorList, bool>>},
    {"_foreach_norm.Scalar", never,
     &make_unboxed<NewListOrLoop<Norm, at::TensorList, const at::Scalar&, std::optional<at::ScalarType>>>},
    {"_foreach_pow_.Scalar", never, &make_unboxed<ListOrLoop<PowerInPlace, at::TensorList, const at::Scalar&>>},
    {"_foreach_pow.Scalar", never, &make_unboxed<NewListOrLoop<Power, at::TensorList, const at::Scalar&>>},
};

}  // namespace
}  // namespace neuron::aten
