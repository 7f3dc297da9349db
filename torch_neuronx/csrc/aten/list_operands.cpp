#include "torch_neuronx/csrc/aten/list_operands.h"

#include "torch_neuronx/csrc/aten/lists.h"
#include "torch_neuronx/csrc/aten/rows.h"
#include "torch_neuronx/csrc/aten/tensor_argument.h"
#include "torch_neuronx/csrc/aten/wide_floats.h"
#include "torch_neuronx/csrc/register/storage.h"

namespace neuron::aten {

namespace {

// All operands of the item can be gone through in the order of memory.
bool is_flat(const at::Tensor& lead, size_t item, bool reduces, std::span<const ListOperand> operands) {
  if (reduces ? !lead.is_contiguous() : !lead.is_non_overlapping_and_dense()) return false;
  for (const ListOperand& operand : operands) {
    if (!operand.is_list()) continue;
    const at::Tensor& tensor = *operand.tensor(item);
    if (is_host_number(tensor)) continue;
    if (tensor.device() != lead.device()) return false;
    if (!tensor.is_same(lead) && tensor.numel() != 1 && !runs_along(lead, tensor)) return false;
  }
  return true;
}

int64_t element_offset(const ListOperand& operand, size_t item, size_t items) {
  return operand.column() * static_cast<int64_t>(items) + static_cast<int64_t>(item);
}

at::Tensor element(const ListOperand& operand, size_t item, size_t items) {
  at::Tensor view = alias(*operand.tensor(item), {}, {});
  view.unsafeGetTensorImpl()->set_storage_offset(view.storage_offset() + element_offset(operand, item, items));
  return view;
}

// Of the same device and size as the item's first tensor, or one element.
void check_operand(const at::Tensor& lead, const at::Tensor& tensor) {
  if (is_host_number(tensor)) return;
  TORCH_CHECK(tensor.device() == lead.device(),
              "Expected all tensors to be on the same device, but found at least two devices, ", lead.device(), " and ",
              tensor.device(), "!");
  TORCH_CHECK(tensor.numel() == 1 || tensor.sizes().equals(lead.sizes()),
              "Expected the tensors at one position of all lists to have the same size, but found ", lead.sizes(),
              " and ", tensor.sizes());
}

void record_item(const lowering::Operator& op, DType common, bool reduces, const at::Tensor& lead, size_t item,
                 size_t items, std::span<const ListOperand> outputs, std::span<const ListOperand> inputs,
                 std::span<const int64_t> attributes) {
  c10::SmallVector<at::Tensor, 8> kept;
  kept.reserve(outputs.size() + inputs.size());
  auto tensor = [&](const ListOperand& operand) -> const at::Tensor& {
    return operand.is_table() ? kept.emplace_back(element(operand, item, items)) : *operand.tensor(item);
  };
  c10::SmallVector<at::Tensor, 6> targets;
  for (const ListOperand& output : outputs) targets.push_back(tensor(output));
  c10::SmallVector<Input, 16> sources;
  for (const ListOperand& input : inputs) {
    sources.push_back(input.tensor(item) == nullptr ? Input(input.number()) : Input(tensor(input)));
  }
  const std::span to(targets.data(), targets.size());
  const std::span from(sources.data(), sources.size());
  if (!reduces) return record_row(op, common, lead.sizes(), 0, to, from, attributes);
  const at::Tensor row_major = contiguous(lead);
  for (Input& input : sources)
    if (input.tensor == &lead) input.tensor = &row_major;
  record_rows(op, common, lead.sizes(), dimension_mask({}, lead.dim()), to, from, attributes);
}

}  // namespace

void record_list(const lowering::Operator& op, DType common, bool reduces, at::TensorList lead,
                 std::span<const ListOperand> outputs, std::span<const ListOperand> inputs,
                 std::span<const int64_t> attributes) {
  const size_t items = lead.size();
  if (items == 0) return;
  bool all_flat = true;
  for (size_t item = 0; item < items && all_flat; ++item) {
    all_flat = lead[item].device() == lead[0].device() && is_flat(lead[item], item, reduces, inputs) &&
               (reduces || is_flat(lead[item], item, reduces, outputs));
  }
  if (!all_flat) {
    for (size_t item = 0; item < items; ++item) {
      TORCH_CHECK(is_neuron(lead[item]), "Expected a tensor on a neuron device, but found one on ",
                  lead[item].device());
      for (const auto& operands : {outputs, inputs}) {
        for (const ListOperand& operand : operands)
          if (operand.tensor(item) != nullptr && !operand.is_table()) check_operand(lead[item], *operand.tensor(item));
      }
    }
    for (size_t item = 0; item < items; ++item) {
      if (lead[item].numel() == 0) continue;
      record_item(op, common, reduces, lead[item], item, items, outputs, inputs, attributes);
    }
    return;
  }
  if (is_wide(common)) [[unlikely]]
    common = region_precision(op, common);
  eager::ListRecording list(torch_neuronx::current_stream(lead[0].device()), op, common, reduces,
                            static_cast<int>(outputs.size()), static_cast<int>(inputs.size()), attributes, items,
                            recording_threads());
  for (size_t item = 0; item < items; ++item) {
    const int64_t count = lead[item].numel();
    if (count == 0) continue;
    list.begin_item(count);
    for (const ListOperand& output : outputs) {
      add_output(list, *output.tensor(item), output.is_table() ? element_offset(output, item, items) : 0);
    }
    for (const ListOperand& input : inputs) {
      const at::Tensor* tensor = input.tensor(item);
      if (tensor == nullptr) {
        list.add_input(input.number());
      } else if (is_host_number(*tensor)) {
        list.add_input(host_number(*tensor));
      } else {
        const bool table = input.is_table();
        add_input(list, *tensor, table || (count != 1 && tensor->numel() == 1),
                  table ? element_offset(input, item, items) : 0);
      }
    }
  }
  list.finish();
}

}  // namespace neuron::aten
