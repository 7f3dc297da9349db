// The list driver: one kernel class serves the foreach overloads that apply one elementwise overload to each tensor of
// a list. The tensors become the items of one list command (neuron/eager/list_recording.h); from the first one on that
// is not plain (strided differently, broadcast, of another dtype), PyTorch's own loop over the single operators goes
// on.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Scalar.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "neuron/eager/list_recording.h"
#include "torch_neuronx/csrc/aten/pointwise.h"
#include "torch_neuronx/csrc/aten/tracking.h"

namespace neuron::aten {

// The arguments of a foreach operator in schema order.
struct ListCall {
  std::array<at::TensorList, 3> lists;
  size_t list_count = 0;
  const at::Tensor* shared = nullptr;  // a tensor that takes part in every item, after the list's own
  const at::Scalar* number = nullptr;  // of every item
  at::ArrayRef<at::Scalar> numbers;    // one an item
  bool has_numbers = false;

  size_t size() const { return lists[0].size(); }
};

class ListKernel {
 public:
  // `form`: the types of the arguments; l a list of tensors, t a tensor, n a number, m a list of numbers.
  ListKernel(c10::OperatorHandle op, std::string form, std::shared_ptr<PointwiseKernel> each, OperatorRecord& record);
  // In place when `results` is null.
  void run(const ListCall& call, std::vector<at::Tensor>* results) const;

 private:
  size_t record(const ListCall& call, std::vector<at::Tensor>* results) const;
  void loop(const ListCall& call, size_t first, std::vector<at::Tensor>* results) const;

  c10::OperatorHandle op_;
  std::string form_;
  std::shared_ptr<PointwiseKernel> each_;
  OperatorRecord* record_;
};

// True when the elements of `tensor` lie in memory in the order of those of `lead`, which is dense.
inline bool runs_along(const at::Tensor& lead, const at::Tensor& tensor) {
  if (!tensor.sizes().equals(lead.sizes())) return false;
  if (lead.is_contiguous() && tensor.is_contiguous()) return true;
  return lead.is_non_overlapping_and_dense() && tensor.strides().equals(lead.strides());
}

// PyTorch's own loop for the items from `first` on: `arguments` are those of the call. Results are appended.
void call_composite(const c10::OperatorHandle& op, std::vector<c10::IValue> arguments, size_t first,
                    std::vector<at::Tensor>* results);

void register_lists();

}  // namespace neuron::aten
