#include "torch_neuronx/csrc/aten/arguments.h"

#include <ATen/core/Generator.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/resize_ops.h>

#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/infer.h"
#include "torch_neuronx/csrc/aten/refuse.h"

namespace neuron::aten {

void decline() { throw Declined(); }

Arguments::Arguments(const c10::OperatorHandle& op, std::vector<c10::IValue>& stack)
    : op_(op),
      stack_(stack),
      count_(static_cast<int>(op.schema().arguments().size())),
      base_(stack.size() - static_cast<size_t>(count_)) {}

const c10::IValue& Arguments::at(int i) const { return stack_[base_ + static_cast<size_t>(i)]; }

bool Arguments::absent(int i) const { return at(i).isNone(); }

const at::Tensor& Arguments::tensor(int i) const {
  static const at::Tensor undefined;
  const c10::IValue& value = at(i);
  return value.isNone() ? undefined : value.toTensor();
}

std::vector<at::Tensor> Arguments::tensors(int i) const {
  const c10::IValue& value = at(i);
  if (value.isNone()) return {};
  if (value.isTensorList()) return value.toTensorVector();
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& item : value.toListRef()) tensors.push_back(item.isNone() ? at::Tensor() : item.toTensor());
  return tensors;
}

at::Scalar Arguments::scalar(int i) const { return at(i).toScalar(); }
int64_t Arguments::integer(int i) const {
  const c10::IValue& value = at(i);
  return value.isSymInt() ? value.toSymInt().guard_int(__FILE__, __LINE__) : value.toInt();
}
double Arguments::real(int i) const { return at(i).toScalar().toDouble(); }
bool Arguments::boolean(int i) const { return at(i).toBool(); }

at::DimVector Arguments::integers(int i) const {
  const c10::IValue& value = at(i);
  at::DimVector integers;
  if (value.isNone()) return integers;
  if (value.isInt()) {  // int[1] given as a number
    integers.push_back(value.toInt());
    return integers;
  }
  for (const c10::IValue& item : value.toListRef()) {
    integers.push_back(item.isSymInt() ? item.toSymInt().guard_int(__FILE__, __LINE__) : item.toInt());
  }
  return integers;
}

std::vector<double> Arguments::reals(int i) const {
  std::vector<double> numbers;
  if (absent(i)) return numbers;
  for (const c10::IValue& item : at(i).toListRef()) numbers.push_back(item.toScalar().toDouble());
  return numbers;
}

std::vector<bool> Arguments::booleans(int i) const {
  std::vector<bool> flags;
  if (absent(i)) return flags;
  for (const c10::IValue& item : at(i).toListRef()) flags.push_back(item.toBool());
  return flags;
}

std::string_view Arguments::text(int i) const { return at(i).toStringView(); }

std::optional<at::ScalarType> Arguments::dtype(int i) const {
  if (absent(i)) return std::nullopt;
  return at(i).toScalarType();
}
std::optional<at::Device> Arguments::device(int i) const {
  if (absent(i)) return std::nullopt;
  return at(i).toDevice();
}
std::optional<at::MemoryFormat> Arguments::memory_format(int i) const {
  if (absent(i)) return std::nullopt;
  return at(i).toMemoryFormat();
}
std::optional<at::Generator> Arguments::generator(int i) const {
  if (absent(i)) return std::nullopt;
  return at(i).toGenerator();
}

const std::vector<at::Tensor>& Arguments::outputs() {
  if (prepared_) return outputs_;
  prepared_ = true;
  std::vector<at::Tensor> lists;  // keeps the items of Tensor[] arguments alive for the check
  c10::SmallVector<const at::Tensor*, 8> inputs;
  for (int i = 0; i < count_; ++i) {
    const c10::IValue& value = at(i);
    if (value.isTensor()) {
      inputs.push_back(&value.toTensor());
    } else if (value.isTensorList() || value.isOptionalTensorList()) {
      for (at::Tensor& tensor : tensors(i)) lists.push_back(std::move(tensor));
    }
  }
  for (const at::Tensor& tensor : lists) inputs.push_back(&tensor);
  std::optional<at::Device> device;
  for (int i = 0; i < count_ && inputs.empty(); ++i) {
    if (at(i).isDevice()) device = at(i).toDevice();
  }
  if (!device) device = common_device(std::span(inputs.data(), inputs.size()), /*host_numbers=*/true);

  bool fresh = false;
  std::shared_ptr<const Inferred> inferred;
  try {
    inferred = infer(op_, stack_, fresh);
  } catch (...) {
    // Meta kernels word some errors differently from the CPU, or check later than it.
    raise_as_cpu(op_, stack_);
    throw;
  }
  outputs_.reserve(inferred->tensors.size());
  for (const InferredTensor& result : inferred->tensors) {
    if (!result.defined) {
      outputs_.emplace_back();
    } else if (result.argument < 0) {
      outputs_.push_back(empty_strided(result.sizes, result.strides, result.dtype, *device));
    } else {
      const at::Tensor& target = tensor(result.argument);
      if (!target.sizes().equals(result.sizes)) {
        // The Meta kernel has warned about a non-empty out= tensor when it ran; a cached answer has not.
        if (!fresh) at::native::resize_output_check(target, result.sizes);
        at::_ops::resize_::call(target, c10::fromIntArrayRefSlow(result.sizes), std::nullopt);
      }
      outputs_.push_back(target);
    }
  }
  output_lists_ = inferred->lists;
  return outputs_;
}

const at::Tensor& Arguments::filled_output(int i) {
  const at::Tensor& given = tensor(i);
  const at::DimVector sizes(given.sizes()), strides(given.strides());
  const int64_t numel = given.numel();
  const at::Tensor& out = output();
  if (out.numel() == numel) out.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return out;
}

void Arguments::give(at::Tensor result) { results_.emplace_back(std::move(result)); }
void Arguments::give_list(std::vector<at::Tensor> results) { results_.emplace_back(std::move(results)); }
void Arguments::give(const at::Scalar& result) { results_.emplace_back(result); }
void Arguments::give_boolean(bool result) { results_.emplace_back(result); }
void Arguments::give_integer(int64_t result) { results_.emplace_back(result); }

void Arguments::finish() {
  if (results_.empty() && prepared_) {
    size_t next = 0;
    for (int length : output_lists_) {
      if (length == -1) {
        results_.emplace_back(std::move(outputs_[next++]));
      } else if (length >= 0) {
        results_.emplace_back(std::vector<at::Tensor>(outputs_.begin() + static_cast<std::ptrdiff_t>(next),
                                                      outputs_.begin() + static_cast<std::ptrdiff_t>(next) + length));
        next += static_cast<size_t>(length);
      }
    }
  }
  stack_.erase(stack_.begin() + static_cast<std::ptrdiff_t>(base_), stack_.end());
  for (c10::IValue& result : results_) stack_.push_back(std::move(result));
}

}  // namespace neuron::aten
