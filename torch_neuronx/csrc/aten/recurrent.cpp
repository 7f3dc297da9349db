// Cells of nn.LSTM, nn.GRU and their one-step modules. torch asks devices of this kind for fused cells (it has no
// composite of them): one command a step, beside the two matrix products.
#include <ATen/core/Tensor.h>
#include <ATen/ops/sum_ops.h>

#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

using Tensors = c10::SmallVector<at::Tensor, 20>;

// Part `index` of `count` equal parts of the last dimension.
at::Tensor part(const at::Tensor& tensor, int64_t index, int64_t count) {
  at::DimVector sizes(tensor.sizes());
  sizes.back() /= count;
  at::Tensor view = alias(tensor, sizes, tensor.strides());
  view.unsafeGetTensorImpl()->set_storage_offset(tensor.storage_offset() + index * sizes.back() * tensor.stride(-1));
  return view;
}

void add_parts(Tensors& tensors, const at::Tensor& tensor, int64_t count) {
  for (int64_t i = 0; i < count; ++i) tensors.push_back(part(tensor, i, count));
}

at::Tensor gates_like(const at::Tensor& tensor, int64_t count) {
  at::DimVector sizes(tensor.sizes());
  sizes.back() *= count;
  return empty(sizes, tensor.scalar_type(), tensor.device());
}

at::Tensor like(const at::Tensor& tensor) { return empty(tensor.sizes(), tensor.scalar_type(), tensor.device()); }

void record(const lowering::Operator& op, const at::Tensor& state, const Tensors& outputs, const Tensors& inputs,
            std::initializer_list<int64_t> attributes) {
  c10::SmallVector<Input, 20> operands;
  for (const at::Tensor& input : inputs) operands.push_back(input);
  record_row(op, dtype_of(state), state.sizes(), 0, std::span(outputs.data(), outputs.size()),
             std::span(operands.data(), operands.size()), std::span(attributes.begin(), attributes.size()));
}

at::Tensor bias_gradient(const at::Tensor& gates) {
  const int64_t batch[] = {0};
  return at::_ops::sum_dim_IntList::call(gates, at::OptionalIntArrayRef(batch), false, std::nullopt);
}

// (input_gates, hidden_gates, state, input_bias?, hidden_bias?) -> (hy, [cy], workspace).
template <bool kLstm>
void cell(Arguments& arguments) {
  static const lowering::Operator& op = operator_named(kLstm ? "_thnn_fused_lstm_cell" : "_thnn_fused_gru_cell");
  constexpr int64_t kGates = kLstm ? 4 : 3, kKept = kLstm ? 4 : 5;
  const at::Tensor& state = arguments.tensor(2);
  const bool biased = arguments.tensor(3).defined();
  Tensors inputs, outputs;
  add_parts(inputs, arguments.tensor(0), kGates);
  add_parts(inputs, arguments.tensor(1), kGates);
  inputs.push_back(state);
  for (int i = 3; biased && i < 5; ++i) add_parts(inputs, arguments.tensor(i), kGates);
  for (int i = 0; i < (kLstm ? 2 : 1); ++i) outputs.push_back(like(state));
  const at::Tensor workspace = gates_like(state, kKept);
  const size_t states = outputs.size();
  add_parts(outputs, workspace, kKept);
  record(op, state, outputs, inputs, {biased});
  for (size_t i = 0; i < states; ++i) arguments.give(outputs[i]);
  arguments.give(workspace);
}

// _thnn_fused_lstm_cell_backward_impl(grad_hy?, grad_cy?, cx, cy, workspace, has_bias) -> (gates, cx, bias).
void lstm_backward(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("lstm_cell_backward");
  const at::Tensor &of_hy = arguments.tensor(0), &of_cy = arguments.tensor(1), &cx = arguments.tensor(2);
  if (!of_hy.defined() && !of_cy.defined()) {
    for (int i = 0; i < 3; ++i) arguments.give(at::Tensor());
    return;
  }
  Tensors inputs{cx, arguments.tensor(3)}, outputs;
  add_parts(inputs, arguments.tensor(4), 4);
  if (of_hy.defined()) inputs.push_back(of_hy);
  if (of_cy.defined()) inputs.push_back(of_cy);
  const at::Tensor gates = gates_like(cx, 4), of_cx = like(cx);
  add_parts(outputs, gates, 4);
  outputs.push_back(of_cx);
  record(op, cx, outputs, inputs, {of_hy.defined(), of_cy.defined()});
  arguments.give(gates);
  arguments.give(of_cx);
  arguments.give(arguments.boolean(5) ? bias_gradient(gates) : at::Tensor());
}

// _thnn_fused_gru_cell_backward(grad_hy, workspace, has_bias) -> (input gates, hidden gates, hx, input bias, hidden
// bias).
void gru_backward(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("gru_cell_backward");
  const at::Tensor& of_hy = arguments.tensor(0);
  Tensors inputs{of_hy}, outputs;
  add_parts(inputs, arguments.tensor(1), 5);
  const at::Tensor of_input = gates_like(of_hy, 3), of_hidden = gates_like(of_hy, 3), of_hx = like(of_hy);
  add_parts(outputs, of_input, 3);
  add_parts(outputs, of_hidden, 3);
  outputs.push_back(of_hx);
  record(op, of_hy, outputs, inputs, {});
  const bool biased = arguments.boolean(2);
  arguments.give(of_input);
  arguments.give(of_hidden);
  arguments.give(of_hx);
  arguments.give(biased ? bias_gradient(of_input) : at::Tensor());
  arguments.give(biased ? bias_gradient(of_hidden) : at::Tensor());
}

const Registration registrations[] = {
    {"_thnn_fused_lstm_cell", cell<true>},
    {"_thnn_fused_lstm_cell_backward_impl", lstm_backward},
    {"_thnn_fused_gru_cell", cell<false>},
    {"_thnn_fused_gru_cell_backward", gru_backward},
};

}  // namespace
}  // namespace neuron::aten
