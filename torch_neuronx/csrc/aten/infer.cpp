#include "torch_neuronx/csrc/aten/infer.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/fill_ops.h>
#include <c10/core/DefaultDtype.h>

#include <cstring>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "neuron/base/hash.h"
#include "torch_neuronx/csrc/aten/bridge.h"

namespace neuron::aten {
namespace {

// Metadata entries kept; an entry is a few hundred bytes.
constexpr size_t kCacheCapacity = 2048;

// The key as words. Everything that can change a Meta kernel's answer is in it: metadata, not addresses; values of
// numbers.
class Key {
 public:
  Key() { bytes_.reserve(256); }  // most keys: grown once
  void word(uint64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  bool add(const c10::IValue& value);
  std::string take() { return std::move(bytes_); }

 private:
  void tensor(const at::Tensor& tensor);
  std::string bytes_;
};

void Key::tensor(const at::Tensor& tensor) {
  if (!tensor.defined()) return word(0xffff);
  const auto* impl = tensor.unsafeGetTensorImpl();
  word(static_cast<uint64_t>(tensor.scalar_type()) << 16 | static_cast<uint64_t>(tensor.dim()) << 8 |
       static_cast<uint64_t>(is_host_number(tensor)) << 1 | static_cast<uint64_t>(impl->is_wrapped_number()));
  for (int64_t size : tensor.sizes()) word(static_cast<uint64_t>(size));
  for (int64_t stride : tensor.strides()) word(static_cast<uint64_t>(stride));
}

bool Key::add(const c10::IValue& value) {
  if (value.isTensor()) {
    word(1);
    tensor(value.toTensor());
  } else if (value.isNone()) {
    word(2);
  } else if (value.isInt()) {
    word(3), word(static_cast<uint64_t>(value.toInt()));
  } else if (value.isDouble()) {
    word(4), word(std::bit_cast<uint64_t>(value.toDouble()));
  } else if (value.isBool()) {
    word(5 + (value.toBool() ? 1 : 0));
  } else if (value.isString()) {
    const std::string& text = value.toStringRef();
    word(7), word(text.size());
    bytes_ += text;
  } else if (value.isDevice()) {
    word(8);
  } else if (value.isGenerator()) {
    word(9);
  } else if (value.isComplexDouble()) {
    auto number = value.toComplexDouble();
    word(10), word(std::bit_cast<uint64_t>(number.real())), word(std::bit_cast<uint64_t>(number.imag()));
  } else if (value.isList()) {
    word(11);
    auto items = value.toListRef();
    word(items.size());
    for (const c10::IValue& item : items) {
      if (!add(item)) return false;
    }
  } else {
    return false;  // symbolic or opaque: not cached
  }
  return true;
}

class Cache {
 public:
  std::shared_ptr<const Inferred> find(const std::string& key) {
    std::lock_guard lock(mutex_);
    auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->value;
  }
  void insert(std::string key, std::shared_ptr<const Inferred> value) {
    std::lock_guard lock(mutex_);
    if (index_.contains(key)) return;
    entries_.push_front({std::move(key), std::move(value)});
    index_.emplace(entries_.front().key, entries_.begin());
    if (entries_.size() > kCacheCapacity) {
      index_.erase(entries_.back().key);
      entries_.pop_back();
    }
  }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const Inferred> value;
  };
  struct Hash {
    size_t operator()(std::string_view text) const { return hash_text(text); }
  };
  std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator, Hash> index_;
};

Cache& cache() {
  static Cache* instance = new Cache;  // outlives every thread that may still record at exit
  return *instance;
}

// A CPU tensor of the same shape: all elements are one, unless it will be written.
at::Tensor to_host(const at::Tensor& tensor, bool written) {
  if (!tensor.defined() || tensor.device().is_cpu()) return tensor;
  if (written) return at::Tensor(at::detail::empty_strided_cpu(tensor.sizes(), tensor.strides(), tensor.scalar_type()));
  at::Tensor host(at::detail::empty_cpu({}, tensor.scalar_type()));
  std::memset(host.mutable_data_ptr(), 0, host.nbytes());
  const at::DimVector strides(tensor.sizes().size(), 0);
  host.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), strides);
  return host;
}

at::Tensor one_element(const at::Tensor& tensor, bool output) {
  if (!tensor.defined() || is_host_number(tensor)) return tensor;
  if (output) return at::Tensor(at::detail::empty_cpu({0}, tensor.scalar_type()));
  const at::DimVector ones(tensor.sizes().size(), 1);
  at::Tensor host(at::detail::empty_cpu(ones, tensor.scalar_type()));
  at::_ops::fill__Scalar::call(host, 1);
  return host;
}

template <typename F>
c10::IValue map_tensors(const c10::IValue& value, F&& change) {
  if (value.isTensor()) return change(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(change(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      list.push_back(tensor ? std::optional(change(*tensor)) : std::nullopt);
    }
    return list;
  }
  return value;
}

at::Tensor to_meta(const at::Tensor& tensor) {
  // Numbers keep their device: Meta kernels tell a CPU number from a device tensor as the CPU's own do.
  if (!tensor.defined() || is_host_number(tensor)) return tensor;
  at::Tensor meta(at::detail::empty_strided_meta(tensor.sizes(), tensor.strides(), tensor.scalar_type()));
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) meta.unsafeGetTensorImpl()->set_wrapped_number(true);
  return meta;
}

c10::IValue to_meta(const c10::IValue& value) {
  if (value.isDevice() && value.toDevice().is_privateuseone()) return c10::Device(c10::DeviceType::Meta);
  if (value.isGenerator()) return c10::IValue();
  return map_tensors(value, [](const at::Tensor& tensor) { return to_meta(tensor); });
}

InferredTensor describe(const at::Tensor& tensor, const std::vector<c10::IValue>& arguments) {
  InferredTensor described;
  described.defined = tensor.defined();
  if (!described.defined) return described;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].isTensor() && arguments[i].toTensor().is_same(tensor)) described.argument = static_cast<int>(i);
  }
  described.sizes = tensor.sizes();
  described.strides = tensor.strides();
  described.dtype = tensor.scalar_type();
  return described;
}

bool is_output(const c10::Argument& argument) {
  return argument.kwarg_only() && argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

// The overload that takes the same arguments and returns what `op` writes into its out= tensors.
std::optional<c10::OperatorHandle> functional_overload(const c10::OperatorHandle& op) {
  const auto& wanted = op.schema().arguments();
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name != op.schema().name()) continue;
    auto candidate = c10::Dispatcher::singleton().findSchema(name);
    if (!candidate) continue;
    const auto& arguments = candidate->schema().arguments();
    size_t next = 0;
    bool same = true;
    for (const c10::Argument& argument : wanted) {
      if (is_output(argument)) continue;
      same = same && next < arguments.size() && arguments[next].alias_info() == nullptr &&
             arguments[next].name() == argument.name() && *arguments[next].type() == *argument.type();
      ++next;
    }
    if (same && next == arguments.size()) return candidate;
  }
  return std::nullopt;
}

const std::optional<c10::OperatorHandle>& cached_functional_overload(const c10::OperatorHandle& op) {
  static auto* found = new std::unordered_map<const void*, std::optional<c10::OperatorHandle>>;
  static auto* mutex = new std::mutex;
  std::lock_guard lock(*mutex);
  auto [entry, inserted] = found->try_emplace(&op.schema());
  if (inserted) entry->second = functional_overload(op);
  return entry->second;
}

// True when out= tensors are of other dtypes than the results would be without them. Meta kernels do not look at
// that; on the CPU some operators convert and some refuse.
bool has_foreign_outputs(const c10::OperatorHandle& op, const std::vector<c10::IValue>& meta_arguments) {
  const auto& schema = op.schema().arguments();
  std::vector<c10::IValue> stack;
  std::vector<at::ScalarType> given;
  for (size_t i = 0; i < schema.size(); ++i) {
    if (!is_output(schema[i])) {
      stack.push_back(meta_arguments[i]);
    } else if (meta_arguments[i].isTensor()) {
      given.push_back(meta_arguments[i].toTensor().scalar_type());
    }
  }
  if (given.empty()) return false;
  const auto& functional = cached_functional_overload(op);
  if (!functional) return false;
  try {
    at::AutoDispatchBelowADInplaceOrView below;
    functional->redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &stack);
  } catch (const std::exception&) {
    return true;
  }
  if (stack.size() != given.size()) return false;
  for (size_t i = 0; i < given.size(); ++i) {
    if (stack[i].isTensor() && stack[i].toTensor().scalar_type() != given[i]) return true;
  }
  return false;
}

}  // namespace

std::shared_ptr<const Inferred> infer(const c10::OperatorHandle& op, const std::vector<c10::IValue>& stack,
                                      bool& fresh) {
  const size_t count = op.schema().arguments().size();
  const size_t base = stack.size() - count;
  Key key;
  key.word(reinterpret_cast<uint64_t>(&op.schema()));
  key.word(static_cast<uint64_t>(c10::get_default_dtype_as_scalartype()));
  bool cacheable = true;
  for (size_t i = 0; i < count && cacheable; ++i) cacheable = key.add(stack[base + i]);
  std::string text = key.take();
  fresh = false;
  if (cacheable) {
    if (auto found = cache().find(text)) return found;
  }
  fresh = true;

  std::vector<c10::IValue> arguments;
  arguments.reserve(count);
  for (size_t i = 0; i < count; ++i) arguments.push_back(to_meta(stack[base + i]));
  std::vector<c10::IValue> results = arguments;
  try {
    at::AutoDispatchBelowADInplaceOrView below;
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &results);
  } catch (const std::exception&) {
    raise_as_cpu(op, stack);
    throw;
  }
  if (has_foreign_outputs(op, arguments)) raise_as_cpu(op, stack);
  auto inferred = std::make_shared<Inferred>();
  for (const c10::IValue& result : results) {
    if (result.isTensor()) {
      inferred->lists.push_back(-1);
      inferred->tensors.push_back(describe(result.toTensor(), arguments));
    } else if (result.isTensorList()) {
      auto tensors = result.toTensorVector();
      inferred->lists.push_back(static_cast<int>(tensors.size()));
      for (const at::Tensor& tensor : tensors) inferred->tensors.push_back(describe(tensor, arguments));
    } else {
      inferred->lists.push_back(result.isNone() ? -1 : -2);
      if (result.isNone()) inferred->tensors.emplace_back().defined = false;
    }
  }
  if (cacheable) cache().insert(std::move(text), inferred);
  return inferred;
}

namespace {

std::vector<c10::IValue> run_on_cpu(const c10::OperatorHandle& op, const std::vector<c10::IValue>& stack,
                                    at::Tensor (*change)(const at::Tensor&, bool output, bool written)) {
  const auto& arguments = op.schema().arguments();
  const size_t base = stack.size() - arguments.size();
  std::vector<c10::IValue> values;
  at::AutoDispatchBelowADInplaceOrView below;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& value = stack[base + i];
    const bool written = arguments[i].alias_info() != nullptr && arguments[i].alias_info()->isWrite();
    const bool output = written && arguments[i].kwarg_only();
    if (value.isDevice() && value.toDevice().is_privateuseone()) {
      values.emplace_back(c10::Device(c10::DeviceType::CPU));
    } else if (value.isGenerator()) {
      values.emplace_back();
    } else {
      values.push_back(map_tensors(value, [&](const at::Tensor& tensor) { return change(tensor, output, written); }));
    }
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &values);
  return values;
}

}  // namespace

void raise_as_cpu(const c10::OperatorHandle& op, const std::vector<c10::IValue>& stack) {
  run_on_cpu(op, stack, [](const at::Tensor& tensor, bool, bool written) { return to_host(tensor, written); });
}

std::vector<at::ScalarType> result_dtypes_as_cpu(const c10::OperatorHandle& op, const std::vector<c10::IValue>& stack) {
  std::vector<at::ScalarType> dtypes;
  for (const c10::IValue& result :
       run_on_cpu(op, stack, [](const at::Tensor& tensor, bool output, bool) { return one_element(tensor, output); })) {
    dtypes.push_back(result.toTensor().scalar_type());
  }
  return dtypes;
}

}  // namespace neuron::aten
