// Hands the list driver to the dispatcher: one unboxed kernel per row of kind list in the operator table.
#include <string>

#include "torch_neuronx/csrc/aten/dispatcher.h"
#include "torch_neuronx/csrc/aten/lists.h"

namespace neuron::aten {
namespace {

struct ListRow {
  const char* op;
  const char* each;
};
constexpr ListRow kRows[] = {
#include "aten_lists_table.inc"
};

void take(ListCall& call, at::TensorList list) { call.lists[call.list_count++] = list; }
void take(ListCall& call, const at::Tensor& tensor) { call.shared = &tensor; }
void take(ListCall& call, const at::Scalar& number) { call.number = &number; }
void take(ListCall& call, at::ArrayRef<at::Scalar> numbers) {
  call.numbers = numbers;
  call.has_numbers = true;
}

template <typename... Arguments>
struct InPlace final : c10::OperatorKernel {
  explicit InPlace(ListKernel kernel) : kernel(std::move(kernel)) {}
  void operator()(Arguments... arguments) {
    ListCall call;
    (take(call, arguments), ...);
    kernel.run(call, nullptr);
  }
  ListKernel kernel;
};

template <typename... Arguments>
struct Functional final : c10::OperatorKernel {
  explicit Functional(ListKernel kernel) : kernel(std::move(kernel)) {}
  std::vector<at::Tensor> operator()(Arguments... arguments) {
    ListCall call;
    (take(call, arguments), ...);
    std::vector<at::Tensor> results;
    kernel.run(call, &results);
    return results;
  }
  ListKernel kernel;
};

template <typename... Arguments>
c10::KernelFunction unboxed(ListKernel kernel, bool in_place) {
  if (in_place) {
    return c10::KernelFunction::makeFromUnboxedFunctor<false, InPlace<Arguments...>>(
        std::make_unique<InPlace<Arguments...>>(std::move(kernel)));
  }
  return c10::KernelFunction::makeFromUnboxedFunctor<false, Functional<Arguments...>>(
      std::make_unique<Functional<Arguments...>>(std::move(kernel)));
}

using List = at::TensorList;
using Number = const at::Scalar&;
using Numbers = at::ArrayRef<at::Scalar>;
using Tensor = const at::Tensor&;

std::string form_of(const c10::FunctionSchema& schema) {
  std::string form;
  for (const c10::Argument& argument : schema.arguments()) {
    const c10::TypePtr& type = argument.real_type();
    if (type->kind() == c10::TypeKind::TensorType) {
      form += 't';
    } else if (type->kind() != c10::TypeKind::ListType) {
      form += 'n';
    } else {
      const bool tensors = type->castRaw<c10::ListType>()->getElementType()->kind() == c10::TypeKind::TensorType;
      form += tensors ? 'l' : 'm';
    }
  }
  return form;
}

c10::KernelFunction kernel_of(const std::string& form, ListKernel kernel, bool in_place) {
  if (form == "l") return unboxed<List>(std::move(kernel), in_place);
  if (form == "ln") return unboxed<List, Number>(std::move(kernel), in_place);
  if (form == "lm") return unboxed<List, Numbers>(std::move(kernel), in_place);
  if (form == "ll") return unboxed<List, List>(std::move(kernel), in_place);
  if (form == "lln") return unboxed<List, List, Number>(std::move(kernel), in_place);
  if (form == "llm") return unboxed<List, List, Numbers>(std::move(kernel), in_place);
  if (form == "lt") return unboxed<List, Tensor>(std::move(kernel), in_place);
  if (form == "ltn") return unboxed<List, Tensor, Number>(std::move(kernel), in_place);
  if (form == "lll") return unboxed<List, List, List>(std::move(kernel), in_place);
  if (form == "llln") return unboxed<List, List, List, Number>(std::move(kernel), in_place);
  if (form == "lllm") return unboxed<List, List, List, Numbers>(std::move(kernel), in_place);
  if (form == "lllt") return unboxed<List, List, List, Tensor>(std::move(kernel), in_place);
  if (form == "nl") return unboxed<Number, List>(std::move(kernel), in_place);
  TORCH_INTERNAL_ASSERT(false, "no list kernel takes the arguments ", form);
}

}  // namespace

void register_lists() {
  for (const ListRow& row : kRows) {
    const c10::OperatorName name = full_name(row.op);
    const c10::OperatorHandle handle = torch_operator(name);
    auto each = find_pointwise(row.each);
    if (each == nullptr) continue;  // its rule does not exist yet
    const std::string form = form_of(handle.schema());
    ListKernel kernel(handle, form, std::move(each), new_operator_record(c10::toString(name)));
    add_kernel(name, kernel_of(form, std::move(kernel), /*in_place=*/handle.schema().returns().empty()));
  }
}

}  // namespace neuron::aten
