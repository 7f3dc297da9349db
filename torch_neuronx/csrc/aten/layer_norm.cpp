// Layer and root-mean-square normalisation over the last dimensions.
#include <limits>

#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

// The mask of the normalised dimensions (the last ones) and of the rows before them.
struct Split {
  uint64_t inner, outer;
  int64_t count;
};
Split split(const at::Tensor& input, size_t normalized_rank) {
  const auto outer_rank = static_cast<size_t>(input.dim()) - normalized_rank;
  const uint64_t all = dimension_mask({}, input.dim());
  const uint64_t outer = (uint64_t{1} << outer_rank) - 1;
  const uint64_t inner = all & ~outer;
  return {inner, outer, reduced_count(input, inner)};
}

using Inputs = c10::SmallVector<Input, 8>;

void record(const lowering::Operator& op, DType common, const at::Tensor& input, uint64_t mask,
            std::initializer_list<at::Tensor> outputs, const Inputs& inputs,
            std::initializer_list<int64_t> attributes) {
  record_rows(op, common, input.sizes(), mask, std::span(outputs.begin(), outputs.size()),
              std::span(inputs.data(), inputs.size()), std::span(attributes.begin(), attributes.size()));
}

// The gradient of a weight: sums over the rows. Without rows the weight's shape is the input's.
void record_over_rows(const lowering::Operator& op, DType common, const at::Tensor& input, uint64_t outer,
                      std::initializer_list<at::Tensor> outputs, std::initializer_list<Input> inputs) {
  record_rows(op, common, input.sizes(), outer, outputs, inputs);
}

at::Tensor prepared(const at::Tensor& tensor) {
  require_row_dtype(tensor);
  return contiguous(tensor);
}

// Rows are read as one dimension, so a weight of several has to be one too.
at::Tensor parameter(const at::Tensor& tensor) { return tensor.defined() ? contiguous(tensor) : tensor; }

// native_layer_norm(input, normalized_shape, weight?, bias?, eps) -> (output, mean, rstd).
void layer_norm(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("native_layer_norm");
  const at::Tensor weight = parameter(arguments.tensor(2)), bias = parameter(arguments.tensor(3));
  const auto& outputs = arguments.outputs();
  const at::Tensor input = prepared(arguments.tensor(0));
  const Split parts = split(input, arguments.integers(1).size());
  Inputs inputs{Input(input)};
  if (weight.defined()) inputs.push_back(weight);
  if (bias.defined()) inputs.push_back(bias);
  inputs.push_back(Input(arguments.real(4)));
  inputs.push_back(Input(parts.count));
  record(op, dtype_of(input), input, parts.inner, {outputs[0], outputs[1], outputs[2]}, inputs,
         {weight.defined(), bias.defined()});
}

// native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight?, bias?, output_mask).
void layer_norm_backward(Arguments& arguments) {
  static const lowering::Operator &of_input = operator_named("native_layer_norm_backward"),
                                  &of_weight = operator_named("layer_norm_weight_gradient"),
                                  &of_bias = operator_named("sum");
  const at::Tensor &mean = arguments.tensor(3), &rstd = arguments.tensor(4), &bias = arguments.tensor(6);
  const at::Tensor weight = parameter(arguments.tensor(5));
  const std::vector<bool> wanted = arguments.booleans(7);
  const at::Tensor gradient = prepared(arguments.tensor(0)), input = prepared(arguments.tensor(1));
  const Split parts = split(input, arguments.integers(2).size());
  const DType common = dtype_of(input);
  at::Tensor input_gradient, weight_gradient, bias_gradient;
  if (wanted[0]) {
    input_gradient = empty(input.sizes(), input.scalar_type(), input.device());
    Inputs inputs{Input(gradient), Input(input), Input(mean), Input(rstd)};
    if (weight.defined()) inputs.push_back(weight);
    inputs.push_back(Input(parts.count));
    record(of_input, common, input, parts.inner, {input_gradient}, inputs, {weight.defined()});
  }
  const bool wants_weight = wanted[1] && weight.defined(),
             wants_bias = wanted[2] && (bias.defined() || weight.defined());
  if (wants_weight) weight_gradient = empty(weight.sizes(), weight.scalar_type(), input.device());
  if (wants_bias) {
    const at::Tensor& like = bias.defined() ? bias : weight;
    bias_gradient = empty(like.sizes(), like.scalar_type(), input.device());
  }
  if (wants_weight && wants_bias) {
    record_over_rows(of_weight, dtype_of(weight), input, parts.outer, {weight_gradient, bias_gradient},
                     {Input(gradient), Input(input), Input(mean), Input(rstd)});
  } else if (wants_weight) {
    record_over_rows(of_weight, dtype_of(weight), input, parts.outer, {weight_gradient},
                     {Input(gradient), Input(input), Input(mean), Input(rstd)});
  } else if (wants_bias) {
    record_over_rows(of_bias, dtype_of(bias_gradient), input, parts.outer, {bias_gradient}, {Input(gradient)});
  }
  arguments.give(input_gradient);
  arguments.give(weight_gradient);
  arguments.give(bias_gradient);
}

// _fused_rms_norm(input, normalized_shape, weight?, eps?) -> (output, rstd).
void rms_norm(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("_fused_rms_norm");
  const at::Tensor weight = parameter(arguments.tensor(2));
  const at::Tensor input = prepared(arguments.tensor(0));
  const Split parts = split(input, arguments.integers(1).size());
  const DType common = dtype_of(input), wide = compute_dtype(common);
  double eps = wide == DType::Float64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  if (!arguments.absent(3)) eps = arguments.real(3);
  at::Tensor output = empty(input.sizes(), input.scalar_type(), input.device());
  at::Tensor rstd = empty(kept_sizes(input, parts.inner), scalar_type_of(wide), input.device());
  Inputs inputs{Input(input)};
  if (weight.defined()) inputs.push_back(weight);
  inputs.push_back(Input(eps));
  inputs.push_back(Input(parts.count));
  record(op, common, input, parts.inner, {output, rstd}, inputs, {weight.defined()});
  arguments.give(output);
  arguments.give(rstd);
}

// _fused_rms_norm_backward(grad_out, input, normalized_shape, rstd, weight?, output_mask).
void rms_norm_backward(Arguments& arguments) {
  static const lowering::Operator &of_input = operator_named("_fused_rms_norm_backward"),
                                  &of_weight = operator_named("rms_norm_weight_gradient");
  const at::Tensor& rstd = arguments.tensor(3);
  const at::Tensor weight = parameter(arguments.tensor(4));
  const std::vector<bool> wanted = arguments.booleans(5);
  const at::Tensor gradient = prepared(arguments.tensor(0)), input = prepared(arguments.tensor(1));
  const Split parts = split(input, arguments.integers(2).size());
  at::Tensor input_gradient, weight_gradient;
  if (wanted[0]) {
    input_gradient = empty(input.sizes(), input.scalar_type(), input.device());
    Inputs inputs{Input(gradient), Input(input), Input(rstd)};
    if (weight.defined()) inputs.push_back(weight);
    inputs.push_back(Input(parts.count));
    record(of_input, dtype_of(input), input, parts.inner, {input_gradient}, inputs, {weight.defined()});
  }
  if (wanted[1] && weight.defined()) {
    weight_gradient = empty(weight.sizes(), weight.scalar_type(), input.device());
    record_over_rows(of_weight, dtype_of(weight), input, parts.outer, {weight_gradient},
                     {Input(gradient), Input(input), Input(rstd)});
  }
  arguments.give(input_gradient);
  arguments.give(weight_gradient);
}

const Registration registrations[] = {
    {"native_layer_norm", layer_norm},
    {"native_layer_norm_backward", layer_norm_backward},
    {"_fused_rms_norm", rms_norm},
    {"_fused_rms_norm_backward", rms_norm_backward},
};

}  // namespace
}  // namespace neuron::aten
