#include "torch_neuronx/csrc/aten/lists.h"

#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>

#include "torch_neuronx/csrc/aten/tensor_argument.h"
#include "torch_neuronx/csrc/aten/wide_floats.h"
#include "torch_neuronx/csrc/register/errors.h"
#include "torch_neuronx/csrc/register/storage.h"

namespace neuron::aten {

namespace {

using Operands = c10::SmallVector<const at::Tensor*, 4>;

void item_operands(const ListCall& call, size_t item, Operands& operands) {
  operands.clear();
  for (size_t list = 0; list < call.list_count; ++list) operands.push_back(&call.lists[list][item]);
  if (call.shared != nullptr) operands.push_back(call.shared);
}

const at::Scalar* item_number(const ListCall& call, size_t item) {
  return call.has_numbers ? &call.numbers[item] : call.number;
}

// PyTorch's loop words the error otherwise.
bool lengths_agree(const ListCall& call) {
  if (call.size() == 0) return false;
  for (size_t list = 1; list < call.list_count; ++list)
    if (call.lists[list].size() != call.size()) return false;
  return !call.has_numbers || call.numbers.size() == call.size();
}

// What the first item tells of all.
struct Expected {
  at::Device device;
  c10::SmallVector<at::ScalarType, 4> dtypes;
  c10::SmallVector<bool, 4> zero_dimensional;
  bool one_dtype = true;  // whether an operand has dimensions then plays no part in type promotion
};

// Type promotion treats both alike.
bool same_kind(const at::Scalar& a, const at::Scalar& b) {
  if (a.type() != b.type()) return false;
  return a.isFloatingPoint() || (a.isIntegral(/*includeBool=*/true) && (a.toLong() < 0) == (b.toLong() < 0));
}

// The numbers of addcmul and addcdiv as a tensor on the host; empty: PyTorch's loop looks at it.
std::vector<at::Scalar> numbers_of(const at::Tensor& tensor, size_t count) {
  std::vector<at::Scalar> numbers;
  if (!tensor.device().is_cpu() || tensor.dim() != 1 || static_cast<size_t>(tensor.numel()) != count) return numbers;
  if (!tensor.is_contiguous()) return numbers;
  for (size_t i = 0; i < count; ++i) {
    if (tensor.scalar_type() == at::ScalarType::Double) {
      numbers.emplace_back(static_cast<const double*>(tensor.const_data_ptr())[i]);
    } else if (tensor.scalar_type() == at::ScalarType::Float) {
      numbers.emplace_back(static_cast<const float*>(tensor.const_data_ptr())[i]);
    }
  }
  return numbers;
}

bool shares_storage(const at::Tensor& a, const at::Tensor& b) {
  return a.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl() ==
         b.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

bool is_plain(const at::Tensor& lead, const at::Tensor& tensor) {
  if (&tensor == &lead || runs_along(lead, tensor)) return true;
  return tensor.numel() == 1 && tensor.dim() <= lead.dim();  // one element for all
}

}  // namespace

ListKernel::ListKernel(c10::OperatorHandle op, std::string form, std::shared_ptr<PointwiseKernel> each,
                       OperatorRecord& record)
    : op_(std::move(op)), form_(std::move(form)), each_(std::move(each)), record_(&record) {}

// Records the leading items that are plain; returns how many.
size_t ListKernel::record(const ListCall& call, std::vector<at::Tensor>* results) const {
  if (!lengths_agree(call)) return 0;
  Operands operands;
  item_operands(call, 0, operands);
  const at::Tensor& first = *operands[0];
  if (!is_neuron(first)) return 0;
  if (call.shared != nullptr && call.shared->dim() != 0) return 0;  // an error, in PyTorch's words
  const std::optional<PointwisePlan> plan = each_->plan({operands.data(), operands.size()}, item_number(call, 0));
  if (!plan) return 0;

  Expected expected{first.device(), {}, {}};
  for (const at::Tensor* operand : operands) {
    expected.dtypes.push_back(operand->scalar_type());
    expected.zero_dimensional.push_back(operand->dim() == 0);
    expected.one_dtype &= operand->scalar_type() == plan->common;
  }
  const bool shared_on_host = call.shared != nullptr && is_host_number(*call.shared);
  auto plain = [&](size_t item) {
    const at::Tensor& lead = call.lists[0][item];
    if (!lead.is_non_overlapping_and_dense() || (plan->contiguous_result && !lead.is_contiguous())) return false;
    for (size_t k = 0; k < operands.size(); ++k) {
      const at::Tensor& tensor = k < call.list_count ? call.lists[k][item] : *call.shared;
      if (k >= call.list_count && shared_on_host) continue;
      if (tensor.device() != expected.device || tensor.scalar_type() != expected.dtypes[k] ||
          (!expected.one_dtype && (tensor.dim() == 0) != expected.zero_dimensional[k]) || !is_plain(lead, tensor)) {
        return false;
      }
      // Written and read through different views of the same memory: each operator has to look at that.
      if (results == nullptr && k > 0 && shares_storage(tensor, lead) &&
          (tensor.storage_offset() != lead.storage_offset() || !runs_along(lead, tensor))) {
        return false;
      }
    }
    return !call.has_numbers || same_kind(call.numbers[item], call.numbers[0]);
  };
  size_t count = 0;
  while (count < call.size() && plain(count)) ++count;
  if (count == 0) return 0;
  if (results != nullptr) {
    for (size_t item = 0; item < count; ++item) {
      const at::Tensor& lead = call.lists[0][item];
      results->push_back(lead.is_contiguous()
                             ? empty(lead.sizes(), plan->output, expected.device)
                             : empty_strided(lead.sizes(), lead.strides(), plan->output, expected.device));
    }
  }
  DType common = dtype_of(plan->common);
  if (is_wide(common)) [[unlikely]]
    common = region_precision(*plan->op, common);
  const Scalar shared_number = shared_on_host ? host_number(*call.shared) : Scalar();
  const Scalar same_number = call.number != nullptr ? plan->number(*call.number) : Scalar();

  eager::ListRecording list(torch_neuronx::current_stream(expected.device), *plan->op, common, /*reduces=*/false, 1,
                            static_cast<int>(plan->inputs.size()), {}, count, recording_threads());
  for (size_t item = 0; item < count; ++item) {
    const at::Tensor& lead = call.lists[0][item];
    const int64_t elements = lead.numel();
    if (elements == 0) continue;
    list.begin_item(elements);
    add_output(list, results != nullptr ? (*results)[item] : lead);
    for (const int8_t input : plan->inputs) {
      if (input == PointwisePlan::kNumber) {
        list.add_input(call.has_numbers ? plan->number(call.numbers[item]) : same_number);
      } else if (static_cast<size_t>(input) >= call.list_count) {
        shared_on_host ? list.add_input(shared_number) : add_input(list, *call.shared, true);
      } else {
        const at::Tensor& tensor = call.lists[static_cast<size_t>(input)][item];
        add_input(list, tensor, tensor.numel() != elements);
      }
    }
  }
  list.finish();
  return count;
}

void ListKernel::run(const ListCall& call, std::vector<at::Tensor>* results) const {
  size_t done = 0;
  if (results != nullptr) results->reserve(call.size());
  try {
    if (call.list_count == 3 && call.shared != nullptr) {
      ListCall with_numbers = call;
      const std::vector<at::Scalar> numbers = numbers_of(*call.shared, call.size());
      with_numbers.shared = nullptr;
      with_numbers.numbers = numbers;
      with_numbers.has_numbers = true;
      done = record(with_numbers, results);
    } else {
      done = record(call, results);
    }
  } catch (const Declined&) {  // nothing is recorded yet: the loop goes the general way
  } catch (const Error& error) {
    torch_neuronx::rethrow_as_torch(error);
  }
  if (done != 0) note_executed(*record_);
  if (done == 0 || done < call.size()) loop(call, done, results);
}

void ListKernel::loop(const ListCall& call, size_t first, std::vector<at::Tensor>* results) const {
  std::vector<c10::IValue> arguments;
  size_t list = 0;
  for (const char kind : form_) {
    if (kind == 't') {
      // A tensor of numbers has one an item.
      const bool numbers = call.list_count == 3 && first != 0;
      arguments.emplace_back(numbers ? call.shared->slice(0, static_cast<int64_t>(first)) : *call.shared);
    } else if (kind == 'n') {
      arguments.emplace_back(*call.number);
    } else if (kind == 'l') {
      arguments.emplace_back(call.lists[list++].vec());
    } else {
      arguments.emplace_back(call.numbers.vec());
    }
  }
  call_composite(op_, std::move(arguments), first, results);
}

void call_composite(const c10::OperatorHandle& op, std::vector<c10::IValue> arguments, size_t first,
                    std::vector<at::Tensor>* results) {
  for (c10::IValue& argument : arguments) {
    if (first == 0) break;
    if (argument.isTensorList()) {
      std::vector<at::Tensor> rest = argument.toTensorVector();
      rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(std::min(first, rest.size())));
      argument = std::move(rest);
    } else if (argument.isList()) {
      c10::List<c10::IValue> rest = argument.toList().copy();
      rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(std::min(first, rest.size())));
      argument = std::move(rest);
    }
  }
  op.callBoxedForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd, arguments);
  if (results == nullptr) return;
  for (at::Tensor& result : arguments.back().toTensorVector()) results->push_back(std::move(result));
}

}  // namespace neuron::aten
