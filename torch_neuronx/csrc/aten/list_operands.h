// One region operator on each item of lists of tensors, for wrappers whose operator is not one of the elementwise
// overloads: optimizer steps, gradient scaling, norms. One list command where the tensors of every item lie in memory
// alike, a command per item otherwise.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "torch_neuronx/csrc/aten/bridge.h"

namespace neuron::aten {

// What an item reads or writes: its tensor of a list, one element that all items share, a number, or an element of a
// table that has one for each item (`column` * items + item of a flat tensor).
class ListOperand {
 public:
  ListOperand(at::TensorList list) : list_(list) {}                  // NOLINT: implicit by design
  ListOperand(const std::vector<at::Tensor>& list) : list_(list) {}  // NOLINT
  ListOperand(const at::Tensor& one) : tensor_(&one) {}              // NOLINT
  ListOperand(double number) : number_(Scalar::of(number)) {}        // NOLINT
  ListOperand(Scalar number) : number_(number) {}                    // NOLINT
  static ListOperand element_of(const at::Tensor& table, int column = 0) {
    ListOperand operand(table);
    operand.column_ = column;
    return operand;
  }

  bool is_list() const { return !list_.empty(); }
  bool is_table() const { return column_ >= 0; }
  const at::Tensor* tensor(size_t item) const { return is_list() ? &list_[item] : tensor_; }
  const Scalar& number() const { return number_; }
  int column() const { return column_; }

 private:
  at::TensorList list_;
  const at::Tensor* tensor_ = nullptr;
  Scalar number_;
  int column_ = -1;
};
using ListOperands = c10::SmallVector<ListOperand, 16>;

// Over the elements of each tensor of `lead`; nothing for empty ones. `reduces`: all of an item's elements are combined
// (row-major tensors, operators of kind Reduce), the outputs are one element.
void record_list(const lowering::Operator& op, DType common, bool reduces, at::TensorList lead,
                 std::span<const ListOperand> outputs, std::span<const ListOperand> inputs,
                 std::span<const int64_t> attributes = {});

}  // namespace neuron::aten
