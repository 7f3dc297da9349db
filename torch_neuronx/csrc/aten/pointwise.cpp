#include "torch_neuronx/csrc/aten/pointwise.h"

#include <ATen/core/ivalue.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TypeProperties.h>
#include <c10/core/DefaultDtype.h>
#include <c10/util/strides.h>

#include <cmath>
#include <list>

#include "neuron/lowering/operator_attributes.h"
#include "torch_neuronx/csrc/aten/complex_arithmetic.h"
#include "torch_neuronx/csrc/aten/fallback.h"
#include "torch_neuronx/csrc/aten/infer.h"
#include "torch_neuronx/csrc/aten/layout.h"
#include "torch_neuronx/csrc/aten/tensor_argument.h"
#include "torch_neuronx/csrc/register/errors.h"

namespace neuron::aten {

namespace {

// An operand that takes part in type promotion.
struct Promoting {
  const at::Tensor* tensor;  // null: a number
  at::ScalarType number;     // only its kind matters
};

at::Scalar number_of_kind(at::ScalarType kind) {
  if (kind == at::ScalarType::Bool) return true;
  if (c10::isComplexType(kind)) return c10::complex<double>(1);
  return c10::isFloatingType(kind) ? at::Scalar(1.0) : at::Scalar(1);
}

}  // namespace

// What one call brings, in schema order.
struct PointwiseKernel::Operands {
  c10::SmallVector<Input, 6> inputs;
  c10::SmallVector<const at::Tensor*, 6> tensors;
  c10::SmallVector<int64_t, 6> attributes;
  c10::SmallVector<Promoting, 4> promoting;
  const lowering::Operator* op = nullptr;
  bool promote_to_float = false;
  bool plain = true;  // device tensors of one device and numbers; nothing that needs a second look
  uint32_t cast = 0;  // bit i: inputs[i] is cast to the common dtype before the operation
  c10::SmallVector<at::Tensor, 4> casts;
  uint64_t key = 0;  // dtypes and kinds of the operands, 9 bits each
  int operands = 0;

  void extend_key(uint64_t bits) {
    key = key << 9 | bits;
    plain &= ++operands <= 6;
  }
};

namespace {

enum Kind : uint64_t { Dimensioned = 1, ZeroDimensional = 2, Wrapped = 3, NegativeNumber = 0 };

uint64_t key_bits(at::ScalarType type, Kind kind) { return static_cast<uint64_t>(type) << 2 | kind; }

bool is_text(const c10::TypePtr& type) { return type->kind() == c10::TypeKind::StringType; }

// A string argument as the enumerations of operator_attributes.h; false when it is none of them (the CPU raises).
bool text_attribute(std::string_view text, int64_t& value) {
  using lowering::Approximate, lowering::RoundingMode;
  if (text == "none") return value = static_cast<int64_t>(Approximate::None), true;
  if (text == "tanh") return value = static_cast<int64_t>(Approximate::Tanh), true;
  if (text == "trunc") return value = static_cast<int64_t>(RoundingMode::Trunc), true;
  if (text == "floor") return value = static_cast<int64_t>(RoundingMode::Floor), true;
  return false;
}

bool promotes_by_default(const c10::Argument& argument, bool tensor) {
  static constexpr std::string_view numbers[] = {"other", "exponent", "self", "min", "max"};
  if (tensor) return true;
  return std::find(std::begin(numbers), std::end(numbers), argument.name()) != std::end(numbers);
}

}  // namespace

bool DtypeMemo::find(uint64_t key, Types& types) const {
  for (const Slot& slot : slots_) {
    const uint64_t found = slot.key.load(std::memory_order_acquire);
    if (found == 0) return false;
    if (found != key) continue;
    const uint16_t packed = slot.types.load(std::memory_order_relaxed);
    types = {static_cast<at::ScalarType>(packed & 0xff), static_cast<at::ScalarType>(packed >> 8)};
    return true;
  }
  return false;
}

void DtypeMemo::insert(uint64_t key, Types types) {
  std::lock_guard lock(insertion_);
  for (Slot& slot : slots_) {
    const uint64_t found = slot.key.load(std::memory_order_relaxed);
    if (found == key) return;
    if (found != 0) continue;
    slot.types.store(static_cast<uint16_t>(static_cast<int>(types.common) | static_cast<int>(types.output) << 8),
                     std::memory_order_relaxed);
    slot.key.store(key, std::memory_order_release);
    return;
  }
}

PointwiseKernel::PointwiseKernel(const PointwiseRow& row, const lowering::Operator& op,
                                 const c10::FunctionSchema& schema, OperatorRecord& record)
    : op_(&op),
      unscaled_(lowering::find_operator(std::string(row.lowering) + "_unscaled")),
      promote_to_float_(row.promote_to_float),
      accepts_(row.accepts),
      output_count_(0),
      single_result_(schema.returns().size() == 1),
      record_(record) {
  const std::string_view rule = row.lowering;
  contiguous_result_ =
      rule == "masked_fill" || rule == "log_sigmoid_forward" || std::string_view(row.op) == "pow.Scalar";
  fills_ = rule == "masked_fill";
  keeps_second_number_ = rule == "mul" || rule == "div" || rule == "floor_divide";
  computes_complex_ = complex_kernel(rule) != nullptr;
  divides_ = rule == "div" || rule == "floor_divide" || rule == "remainder" || rule == "fmod";
  for (const c10::Argument& argument : schema.arguments()) {
    Parameter parameter;
    const int position = static_cast<int>(parameters_.size());
    c10::TypePtr type = argument.real_type();
    if (auto optional = type->cast<c10::OptionalType>()) {
      parameter.optional = true;
      type = optional->getElementType();
    }
    const bool written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    const bool tensor = type->kind() == c10::TypeKind::TensorType;
    if (tensor && written && argument.kwarg_only()) {
      parameter.role = Role::Output;
      ++output_count_;
    } else if (tensor) {
      parameter.role = Role::Tensor;
      if (written) inplace_ = position;
    } else if (type->kind() == c10::TypeKind::NumberType || type->kind() == c10::TypeKind::FloatType) {
      parameter.role = Role::Number;
      parameter.alpha = argument.name() == "alpha";
    } else if (is_text(type)) {
      parameter.role = Role::Text;
      parameter.rounding_mode = argument.name() == "rounding_mode";
    } else if (type->kind() == c10::TypeKind::BoolType || type->kind() == c10::TypeKind::IntType) {
      parameter.role = Role::Integer;
    }
    parameter.promotes = row.common == 0 ? promotes_by_default(argument, tensor) : (row.common >> position & 1) != 0;
    parameters_.push_back(parameter);
  }
}

bool PointwiseKernel::accepts(at::ScalarType common) const {
  if (!has_dtype(common)) return false;
  switch (dtype_class(dtype_of(common))) {
    case DTypeClass::Boolean:
      return (accepts_ & 1) != 0;
    // The CPU has few kernels for the wide unsigned integers: what it lacks, it refuses with its own text.
    case DTypeClass::Unsigned:
      return (accepts_ & 2) != 0 && common == at::ScalarType::Byte;
    case DTypeClass::Signed:
      return (accepts_ & 2) != 0;
    case DTypeClass::Float:
      return (accepts_ & 4) != 0 && dtype_size(dtype_of(common)) > 1;
    case DTypeClass::Complex:
      return (accepts_ & 8) != 0;
  }
  return false;
}

void PointwiseKernel::start(Operands& operands) const {
  operands.op = op_;
  operands.promote_to_float = promote_to_float_;
  operands.key = static_cast<uint64_t>(c10::get_default_dtype_as_scalartype()) & 15;
}

void PointwiseKernel::add_tensor(const Parameter& parameter, const at::Tensor& tensor, Operands& operands) const {
  if (!tensor.defined()) decline();
  const bool wrapped = tensor.unsafeGetTensorImpl()->is_wrapped_number();
  operands.extend_key(key_bits(tensor.scalar_type(), wrapped             ? Wrapped
                                                     : tensor.dim() == 0 ? ZeroDimensional
                                                                         : Dimensioned));
  if (parameter.promotes) {
    operands.promoting.push_back({&tensor, at::ScalarType::Undefined});
    operands.cast |= 1u << operands.inputs.size();
  }
  operands.tensors.push_back(&tensor);
  operands.inputs.emplace_back(tensor);
}

void PointwiseKernel::add_number(const Parameter& parameter, const at::Scalar& number, Operands& operands) const {
  if (number.isSymbolic()) decline();
  if (parameter.promotes) operands.promoting.push_back({nullptr, number.type()});
  const Scalar operand = scalar_of(number);
  // Type rules look at the sign of a number (integer powers) and at its kind, not at more of its value.
  operands.extend_key(key_bits(number.type(), operand.as_double() < 0 ? NegativeNumber : Wrapped) | 1ull << 8);
  if (parameter.alpha && unscaled_ != nullptr && operand.as_double() == 1) {
    operands.op = unscaled_;
  } else {
    if (parameter.promotes || parameter.alpha) operands.cast |= 1u << operands.inputs.size();
    operands.inputs.emplace_back(operand);
  }
}

void PointwiseKernel::gather(const c10::Stack& stack, size_t base, Operands& operands) const {
  start(operands);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    const c10::IValue& value = stack[base + i];
    if (parameter.optional && parameter.role != Role::Ignored) {
      if (parameter.role == Role::Text) {
        if (value.isNone()) operands.attributes.push_back(0);
      } else {
        operands.attributes.push_back(value.isNone() ? 0 : 1);
      }
      if (value.isNone()) {
        if (parameter.rounding_mode) operands.promote_to_float = true;
        operands.extend_key(0);
        continue;
      }
    }
    switch (parameter.role) {
      case Role::Tensor:
        add_tensor(parameter, value.toTensor(), operands);
        break;
      case Role::Number:
        add_number(parameter, value.toScalar(), operands);
        break;
      case Role::Integer:
        operands.attributes.push_back(value.isBool() ? static_cast<int64_t>(value.toBool()) : value.toInt());
        break;
      case Role::Text: {
        int64_t attribute = 0;
        if (!text_attribute(value.toStringRef(), attribute)) decline();
        operands.attributes.push_back(attribute);
        operands.extend_key(static_cast<uint64_t>(attribute) + 1);
        break;
      }
      case Role::Output:
        operands.extend_key(key_bits(value.toTensor().scalar_type(), Dimensioned));
        break;
      case Role::Ignored:
        break;
    }
  }
}

void PointwiseKernel::check_divisor(const Operands& operands, at::ScalarType common) const {
  if (!divides_ || !c10::isIntegralType(common, /*includeBool=*/true) || operands.promote_to_float) return;
  const Input& divisor = operands.inputs[1];
  const bool host = divisor.tensor == nullptr || is_host_number(*divisor.tensor);
  if (host) {
    const Scalar number = divisor.tensor == nullptr ? divisor.number : host_number(*divisor.tensor);
    TORCH_CHECK(number.as_double() != 0, "ZeroDivisionError");
    return;
  }
  const kernels::Kernel* check = kernels::find_kernel("check_divisor");
  if (check == nullptr) decline();
  if (divisor.tensor->numel() != 0) record_kernel(*check, {}, {*divisor.tensor});
}

// What takes part in type promotion is cast to the common dtype first, numbers and alpha too: for a narrow float that
// is a rounding. CPU's products and quotients take their second operand as it is when it is a single element.
void PointwiseKernel::cast_to_narrow(Operands& operands, at::ScalarType common) const {
  operands.casts.reserve(operands.inputs.size());
  for (size_t i = 0; i < operands.inputs.size(); ++i) {
    Input& input = operands.inputs[i];
    if ((operands.cast >> i & 1) == 0) continue;
    const bool number = input.tensor == nullptr || is_host_number(*input.tensor);
    if (keeps_second_number_ && i == 1 && (number || input.tensor->numel() == 1)) continue;
    if (number) {
      input = Input(narrowed(input.tensor == nullptr ? input.number : host_number(*input.tensor), dtype_of(common)));
    } else if (input.tensor->scalar_type() != common) {
      operands.casts.push_back(to_dtype(*input.tensor, common));
      input.tensor = &operands.casts.back();
    }
  }
}

bool PointwiseKernel::by_complex_kernel(at::ScalarType common) const {
  return c10::isComplexType(common) && (accepts_ & 8) == 0;
}

void PointwiseKernel::record(Operands& operands, at::ScalarType common, std::span<const at::Tensor> outputs) const {
  if (by_complex_kernel(common)) [[unlikely]] {
    return record_complex(*complex_kernel(operands.op->name), common, outputs[0],
                          {operands.inputs.data(), operands.inputs.size()});
  }
  if (common == at::ScalarType::BFloat16 || common == at::ScalarType::Half) cast_to_narrow(operands, common);
  const std::span inputs(operands.inputs.data(), operands.inputs.size());
  const std::span attributes(operands.attributes.data(), operands.attributes.size());
  if (outputs.size() == 1) {
    record_elementwise(*operands.op, dtype_of(common), outputs[0], inputs, attributes);
  } else {
    record_row(*operands.op, dtype_of(common), outputs[0].sizes(), 0, outputs, inputs, attributes);
  }
}

// Where most calls end: operands that are row-major, or all of one dense layout, on one device, with dtypes seen
// before.
bool PointwiseKernel::run_quickly(Operands& operands, at::Tensor& output) {
  DtypeMemo::Types types;
  if (!operands.plain || output_count_ != 0 || !single_result_ || !memo_.find(operands.key, types)) return false;
  const at::Tensor* lead = nullptr;  // the first operand that is not a number
  bool same = true;                  // sizes and strides as the lead's
  bool contiguous = true;
  for (const at::Tensor* tensor : operands.tensors) {
    if (is_host_number(*tensor)) continue;
    if (!is_neuron(*tensor)) return false;
    if (lead == nullptr) {
      lead = tensor;
    } else {
      if (tensor->device() != lead->device()) return false;
      same &= tensor->sizes().equals(lead->sizes()) && tensor->strides().equals(lead->strides());
    }
    contiguous &= tensor->is_contiguous();
  }
  if (lead == nullptr || !contiguous) return false;

  if (inplace_ >= 0) {
    const at::Tensor& self = *operands.tensors[0];
    if (lead != &self) return false;
    for (const at::Tensor* tensor : operands.tensors) {
      if (tensor == &self || is_host_number(*tensor)) continue;
      if (!same && !expands_to(tensor->sizes(), self.sizes())) return false;
      // The same storage: identical views are fine, anything else has to be looked at.
      if (!tensor->is_same(self) && tensor->storage().is_alias_of(self.storage())) return false;
    }
    check_divisor(operands, types.common);
    record(operands, types.common, {&self, 1});
    return true;
  }

  if (same) {
    output = empty(lead->sizes(), types.output, lead->device());
  } else {
    // Broadcast row-major operands give a row-major result.
    at::DimVector sizes(lead->sizes());
    for (const at::Tensor* tensor : operands.tensors) {
      if (!broadcast_into(sizes, tensor->sizes())) return false;
    }
    output = empty(sizes, types.output, lead->device());
  }
  check_divisor(operands, types.common);
  record(operands, types.common, {&output, 1});
  return true;
}

Scalar PointwisePlan::number(const at::Scalar& value) const {
  const Scalar operand = scalar_of(value);
  return narrows_number ? narrowed(operand, dtype_of(common)) : operand;
}

std::optional<PointwisePlan> PointwiseKernel::plan(std::span<const at::Tensor* const> tensors,
                                                   const at::Scalar* number) const {
  if (!single_result_) return std::nullopt;
  Operands operands;
  start(operands);
  size_t next = 0;
  bool number_taken = number == nullptr;  // alpha is 1 when it is not given
  for (const Parameter& parameter : parameters_) {
    if (parameter.optional) return std::nullopt;
    if (parameter.role == Role::Tensor && next < tensors.size()) {
      add_tensor(parameter, *tensors[next++], operands);
    } else if (parameter.role == Role::Number && !number_taken) {
      add_number(parameter, *number, operands);
      number_taken = true;
    } else if (parameter.role == Role::Number && parameter.alpha) {
      add_number(parameter, at::Scalar(1), operands);
    } else {
      return std::nullopt;
    }
  }
  DtypeMemo::Types types;
  if (next != tensors.size() || !number_taken || !operands.plain || !memo_.find(operands.key, types))
    return std::nullopt;
  if (divides_ && c10::isIntegralType(types.common, /*includeBool=*/true)) return std::nullopt;  // looks at values
  PointwisePlan plan;
  plan.op = operands.op;
  plan.common = types.common;
  plan.output = types.output;
  plan.contiguous_result = contiguous_result_;
  const bool narrow = types.common == at::ScalarType::BFloat16 || types.common == at::ScalarType::Half;
  for (size_t i = 0; i < operands.inputs.size(); ++i) {
    const Input& input = operands.inputs[i];
    const bool cast = narrow && (operands.cast >> i & 1) != 0;
    if (input.tensor == nullptr) {
      plan.narrows_number = cast && !(keeps_second_number_ && i == 1);
      plan.inputs.push_back(PointwisePlan::kNumber);
      continue;
    }
    if (cast && input.tensor->scalar_type() != types.common) return std::nullopt;  // is converted before
    const auto position = std::find(tensors.begin(), tensors.end(), input.tensor) - tensors.begin();
    plan.inputs.push_back(static_cast<int8_t>(position));
  }
  return plan;
}

at::ScalarType PointwiseKernel::common_dtype(const Operands& operands) const {
  at::native::ResultTypeState state;
  for (const Promoting& operand : operands.promoting) {
    state = operand.tensor != nullptr ? at::native::update_result_type_state(*operand.tensor, state)
                                      : at::native::update_result_type_state(number_of_kind(operand.number), state);
  }
  const at::ScalarType common = at::native::result_type(state);
  if (operands.promote_to_float && c10::isIntegralType(common, /*includeBool=*/true)) {
    return c10::get_default_dtype_as_scalartype();
  }
  return common;
}

void PointwiseKernel::run(const c10::OperatorHandle& op, c10::Stack& stack) {
  const size_t base = stack.size() - parameters_.size();
  Operands operands;
  gather(stack, base, operands);
  at::Tensor quick;
  if (run_quickly(operands, quick)) {
    stack.erase(stack.begin() + static_cast<std::ptrdiff_t>(base) + (inplace_ >= 0 ? 1 : 0), stack.end());
    if (inplace_ < 0) stack.emplace_back(std::move(quick));
    return;
  }

  c10::SmallVector<const at::Tensor*, 8> all(operands.tensors.begin(), operands.tensors.end());
  c10::SmallVector<at::Tensor, 2> outputs;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].role == Role::Output) outputs.push_back(stack[base + i].toTensor());
  }
  for (const at::Tensor& output : outputs) all.push_back(&output);
  const at::ScalarType common = common_dtype(operands);
  const bool complex = by_complex_kernel(common);
  for (const at::Tensor* tensor : all) {
    // Results too: a complex one of a real operation is the CPU's.
    if (!has_dtype(tensor->scalar_type()) || (tensor->is_complex() && !complex && (accepts_ & 8) == 0)) decline();
  }
  const bool choices = std::ranges::any_of(operands.attributes, [](int64_t value) { return value != 0; });
  if (complex ? !computes_complex_ || !single_result_ || choices || !has_dtype(common) : !accepts(common)) decline();
  const at::Device device = common_device(std::span(all.data(), all.size()), /*host_numbers=*/true);
  if (inplace_ >= 0) outputs.push_back(*operands.tensors[0]);
  std::list<at::Tensor> numbers;  // that fill, which may be elements of what they fill
  for (const at::Tensor& output : outputs) {
    // A number on the host cannot be written by the device.
    TORCH_CHECK(is_neuron(output), "Expected all tensors to be on the same device, but found at least two devices, ",
                device, " and ", output.device(), "!");
    check_no_internal_overlap(output);
    for (const at::Tensor*& tensor : operands.tensors) {
      if (tensor->is_same(output) || is_host_number(*tensor)) continue;
      if (fills_ && tensor->dim() == 0) tensor = &numbers.emplace_back(apart_from(output, *tensor));
      check_no_partial_overlap(output, *tensor);
    }
  }

  at::DimVector sizes;
  bool fits = true;
  for (const at::Tensor* tensor : operands.tensors) fits = fits && broadcast_into(sizes, tensor->sizes());
  if (fits && inplace_ >= 0) fits = outputs[0].sizes().equals(sizes);
  if (!fits) {
    raise_as_cpu(op, stack);
    decline();
  }
  DtypeMemo::Types types;
  std::vector<at::ScalarType> dtypes;
  const bool memorable = operands.plain && single_result_;
  if (memorable && memo_.find(operands.key, types)) {
    dtypes.push_back(types.output);
  } else {
    dtypes = result_dtypes_as_cpu(op, stack);
    if (memorable) memo_.insert(operands.key, {common, dtypes[0]});
  }
  if (outputs.empty()) {
    const at::DimVector strides = contiguous_result_
                                      ? c10::contiguous_strides(sizes)
                                      : pointwise_strides(sizes, {operands.tensors.data(), operands.tensors.size()});
    for (at::ScalarType dtype : dtypes) outputs.push_back(empty_strided(sizes, strides, dtype, device));
  } else if (inplace_ < 0) {
    for (const at::Tensor& output : outputs) {
      if (at::native::resize_output(output, sizes)) {
        const at::DimVector strides = pointwise_strides(sizes, {operands.tensors.data(), operands.tensors.size()});
        output.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
      }
    }
  }
  check_divisor(operands, common);
  record(operands, common, {outputs.data(), outputs.size()});
  stack.erase(stack.begin() + static_cast<std::ptrdiff_t>(base), stack.end());
  for (at::Tensor& output : outputs) stack.emplace_back(std::move(output));
}

void PointwiseKernel::operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, c10::Stack* stack) {
  try {
    run(op, *stack);
    note_executed(record_);
  } catch (const Declined&) {
    fall_back(op, *stack);
  } catch (const Error& error) {
    torch_neuronx::rethrow_as_torch(error);
  }
}

at::Tensor PointwiseKernel::call(const c10::OperatorHandle& op, std::initializer_list<const at::Tensor*> tensors,
                                 const at::Scalar* number) {
  try {
    Operands operands;
    start(operands);
    size_t next = 0;
    for (const at::Tensor* tensor : tensors) add_tensor(parameters_[next++], *tensor, operands);
    if (number != nullptr) add_number(parameters_[next], *number, operands);
    at::Tensor output;
    if (run_quickly(operands, output)) {
      note_executed(record_);
      return output;
    }
  } catch (const Declined&) {  // nothing is recorded yet: the general way declines again
  } catch (const Error& error) {
    torch_neuronx::rethrow_as_torch(error);
  }
  c10::Stack stack;
  for (const at::Tensor* tensor : tensors) stack.emplace_back(*tensor);
  if (number != nullptr) stack.emplace_back(*number);
  (*this)(op, c10::DispatchKeySet(), &stack);
  return std::move(stack.back()).toTensor();
}

}  // namespace neuron::aten
