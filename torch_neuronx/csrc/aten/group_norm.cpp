// Group normalisation: a row is a group of channels with their positions; weights belong to channels.
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

// The input as (batch, group, channel of the group, position).
struct Groups {
  at::Tensor input;
  int64_t batch, groups, channels, positions;

  Groups(const at::Tensor& tensor, int64_t n, int64_t c, int64_t position_count, int64_t group)
      : batch(n), groups(group), channels(c / group), positions(position_count) {
    require_row_dtype(tensor);
    input = spaced(tensor);
  }
  at::Tensor spaced(const at::Tensor& tensor) const {
    const int64_t row = channels * positions;
    return alias(contiguous(tensor), {batch, groups, channels, positions}, {groups * row, row, positions, 1});
  }
  at::Tensor rows(const at::Tensor& four) const {
    const int64_t row = channels * positions;
    return alias(four, {batch * groups, row}, {row, 1});
  }
  // Statistics (batch, group) and parameters (channel) beside the input.
  at::Tensor per_group(const at::Tensor& statistics) const {
    return alias(statistics, {batch, groups, 1, 1}, {groups, 1, 0, 0});
  }
  at::Tensor per_channel(const at::Tensor& vector) const {
    return alias(vector, {1, groups, channels, 1}, {0, channels * vector.stride(0), vector.stride(0), 0});
  }
};

// native_group_norm(input, weight?, bias?, N, C, HxW, group, eps) -> (output, mean, rstd).
void group_norm(Arguments& arguments) {
  static const lowering::Operator &statistics = operator_named("mean_rstd"),
                                  &affine = operator_named("normalize_affine");
  const at::Tensor &input = arguments.tensor(0), &weight = arguments.tensor(1), &bias = arguments.tensor(2);
  const Groups g(input, arguments.integer(3), arguments.integer(4), arguments.integer(5), arguments.integer(6));
  const DType common = dtype_of(input);
  const at::ScalarType wide = scalar_type_of(compute_dtype(common));
  at::Tensor output = empty(input.sizes(), input.scalar_type(), input.device());
  at::Tensor mean = empty({g.batch, g.groups}, wide, input.device());
  at::Tensor rstd = empty({g.batch, g.groups}, wide, input.device());
  const at::Tensor rows = g.rows(g.input);
  const int64_t count = g.batch * g.groups;
  record_rows(statistics, common, rows.sizes(), 0b10, {alias(mean, {count}, {1}), alias(rstd, {count}, {1})},
              {Input(rows), Input(arguments.real(7)), Input(g.channels * g.positions)});
  const at::Tensor mean_view = g.per_group(mean), rstd_view = g.per_group(rstd);
  at::Tensor weight_view, bias_view;
  c10::SmallVector<Input, 5> inputs{Input(g.input), Input(mean_view), Input(rstd_view)};
  if (weight.defined()) inputs.push_back(weight_view = g.per_channel(weight));
  if (bias.defined()) inputs.push_back(bias_view = g.per_channel(bias));
  const int64_t attributes[] = {weight.defined(), bias.defined()};
  record_elementwise(affine, common, g.spaced(output), std::span(inputs.data(), inputs.size()), attributes);
  arguments.give(output);
  arguments.give(mean);
  arguments.give(rstd);
}

// The sums over the positions of each channel: of the gradient, and of it times the normalised input.
struct ChannelSums {
  at::Tensor gradient, product;  // (batch, group, channel, 1)
};
ChannelSums record_channel_sums(const Groups& g, const at::Tensor& gradient, const at::Tensor& mean,
                                const at::Tensor& rstd, DType wide) {
  static const lowering::Operator& sums = operator_named("normalized_gradient_sums");
  const int64_t sizes[] = {g.batch, g.groups, g.channels, 1};
  const at::ScalarType type = scalar_type_of(wide);
  ChannelSums result{empty(sizes, type, g.input.device()), empty(sizes, type, g.input.device())};
  record_rows(sums, wide, g.input.sizes(), 0b1000, {result.gradient, result.product},
              {Input(gradient), Input(g.input), Input(mean), Input(rstd)});
  return result;
}

// The input's gradient from the sums of the channels: what a group's elements share is their sum weighted by channel.
void record_input_gradient(const Groups& g, const at::Tensor& result, const at::Tensor& gradient,
                           const at::Tensor& mean, const at::Tensor& rstd, const at::Tensor& weight,
                           const ChannelSums& sums, DType common) {
  static const lowering::Operator &weigh = operator_named("weighted_sums"),
                                  &of_input = operator_named("group_norm_backward");
  const DType wide = compute_dtype(common);
  const at::ScalarType type = scalar_type_of(wide);
  const at::Tensor first = empty({g.batch, g.groups, 1}, type, result.device()),
                   second = empty({g.batch, g.groups, 1}, type, result.device());
  const int64_t sizes[] = {g.batch, g.groups, g.channels}, strides[] = {g.groups * g.channels, g.channels, 1};
  const at::Tensor by_channel =
      alias(weight, {1, g.groups, g.channels}, {0, g.channels * weight.stride(0), weight.stride(0)});
  record_rows(
      weigh, wide, sizes, 0b100, {first, second},
      {Input(alias(sums.gradient, sizes, strides)), Input(alias(sums.product, sizes, strides)), Input(by_channel)});
  const at::Tensor first_view = g.per_group(first), second_view = g.per_group(second),
                   weight_view = g.per_channel(weight);
  record_elementwise(of_input, common, g.spaced(result),
                     {Input(gradient), Input(g.input), Input(mean), Input(rstd), Input(first_view), Input(second_view),
                      Input(g.channels * g.positions), Input(weight_view)});
}

// The same without a weight: the sums are those of the whole rows.
void record_unweighted_input_gradient(const Groups& g, const at::Tensor& result, const at::Tensor& gradient,
                                      const at::Tensor& mean, const at::Tensor& rstd, DType common) {
  static const lowering::Operator &sums = operator_named("normalized_gradient_sums"),
                                  &of_input = operator_named("normalize_backward");
  const DType wide = compute_dtype(common);
  const int64_t count = g.batch * g.groups;
  const at::Tensor rows = g.rows(g.input), gradient_rows = g.rows(gradient);
  const at::Tensor first = empty({count, 1}, scalar_type_of(wide), result.device()),
                   second = empty({count, 1}, scalar_type_of(wide), result.device());
  const at::Tensor mean_rows = alias(mean, {count, 1}, {1, 0}), rstd_rows = alias(rstd, {count, 1}, {1, 0});
  record_rows(sums, wide, rows.sizes(), 0b10, {first, second},
              {Input(gradient_rows), Input(rows), Input(mean_rows), Input(rstd_rows)});
  record_elementwise(of_input, common, g.rows(g.spaced(result)),
                     {Input(gradient_rows), Input(rows), Input(mean_rows), Input(rstd_rows), Input(first),
                      Input(second), Input(g.channels * g.positions)},
                     {0});
}

// native_group_norm_backward(grad_out, input, mean, rstd, weight?, N, C, HxW, group, output_mask).
void group_norm_backward(Arguments& arguments) {
  static const lowering::Operator& sum = operator_named("sum");
  const at::Tensor &input = arguments.tensor(1), &mean = arguments.tensor(2), &rstd = arguments.tensor(3);
  const at::Tensor& weight = arguments.tensor(4);
  const Groups g(input, arguments.integer(5), arguments.integer(6), arguments.integer(7), arguments.integer(8));
  const std::vector<bool> wanted = arguments.booleans(9);
  const DType common = dtype_of(input);
  const at::Tensor gradient = g.spaced(arguments.tensor(0));
  const at::Tensor mean_view = g.per_group(contiguous(mean)), rstd_view = g.per_group(contiguous(rstd));
  at::Tensor input_gradient, weight_gradient, bias_gradient;
  if (wanted[0]) input_gradient = empty(input.sizes(), input.scalar_type(), input.device());
  if (wanted[0] && !weight.defined())
    record_unweighted_input_gradient(g, input_gradient, gradient, mean_view, rstd_view, common);
  if (weight.defined() && (wanted[0] || wanted[1] || wanted[2])) {
    const ChannelSums sums = record_channel_sums(g, gradient, mean_view, rstd_view, compute_dtype(common));
    if (wanted[0]) record_input_gradient(g, input_gradient, gradient, mean_view, rstd_view, weight, sums, common);
    auto over_batch = [&](const at::Tensor& by_channel) {
      const int64_t channels = g.groups * g.channels;
      at::Tensor result = empty({channels}, weight.scalar_type(), input.device());
      const at::Tensor rows = alias(by_channel, {g.batch, channels}, {channels, 1});
      record_rows(sum, dtype_of(weight), rows.sizes(), 0b01, {result}, {Input(rows)});
      return result;
    };
    if (wanted[2]) bias_gradient = over_batch(sums.gradient);
    if (wanted[1]) weight_gradient = over_batch(sums.product);
  }
  arguments.give(input_gradient);
  arguments.give(weight_gradient);
  arguments.give(bias_gradient);
}

const Registration registrations[] = {
    {"native_group_norm", group_norm},
    {"native_group_norm_backward", group_norm_backward},
};

}  // namespace
}  // namespace neuron::aten
