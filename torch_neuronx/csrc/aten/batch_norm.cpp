// Batch normalisation: statistics per channel over all other dimensions, then a pointwise affine map. The input is seen
// as (batch, channel, position).
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

// Everything of one call that both directions need.
struct Channels {
  at::Tensor input;  // (batch, channel, position), contiguous
  int64_t batch, channels, positions;
  DType common, wide;

  explicit Channels(const at::Tensor& tensor) {
    require_row_dtype(tensor);
    batch = tensor.size(0);
    channels = tensor.size(1);
    positions = 1;
    for (int64_t d = 2; d < tensor.dim(); ++d) positions *= tensor.size(d);
    input = spaced(tensor);
    common = dtype_of(tensor);
    wide = compute_dtype(common);
  }
  at::Tensor spaced(const at::Tensor& tensor) const {
    return alias(contiguous(tensor), {batch, channels, positions}, {channels * positions, positions, 1});
  }
  // A vector of channels beside the input.
  at::Tensor per_channel(const at::Tensor& vector) const {
    return alias(vector, {1, channels, 1}, {0, vector.stride(0), 0});
  }
  int64_t count() const { return batch * positions; }
  at::Tensor statistics() const { return empty({channels}, scalar_type_of(wide), input.device()); }
};

// sums[i] <- the sums over batch and position that the operator `each` gives: positions first, then the batch.
void record_channel_sums(const lowering::Operator& each, const Channels& c, std::initializer_list<Input> inputs,
                         std::span<const at::Tensor> sums) {
  static const lowering::Operator& sum = operator_named("sum");
  c10::SmallVector<at::Tensor, 2> partial;
  for (size_t i = 0; i < sums.size(); ++i)
    partial.push_back(empty({c.batch, c.channels, 1}, scalar_type_of(c.wide), c.input.device()));
  record_rows(each, c.common, c.input.sizes(), 0b100, std::span<const at::Tensor>(partial.data(), partial.size()),
              std::span(inputs.begin(), inputs.size()));
  for (size_t i = 0; i < sums.size(); ++i) {
    const at::Tensor rows = alias(partial[i], {c.batch, c.channels}, {c.channels, 1});
    record_rows(sum, c.wide, rows.sizes(), 0b01, {sums[i]}, {Input(rows)});
  }
}

struct Parameters {
  const at::Tensor &weight, &bias;
};

void record_affine(const Channels& c, const at::Tensor& output, const at::Tensor& mean, const at::Tensor& rstd,
                   const Parameters& parameters) {
  static const lowering::Operator& op = operator_named("normalize_affine");
  c10::SmallVector<Input, 5> inputs;
  const at::Tensor mean_view = c.per_channel(mean), rstd_view = c.per_channel(rstd);
  at::Tensor weight, bias;
  for (const Input& input : {Input(c.input), Input(mean_view), Input(rstd_view)}) inputs.push_back(input);
  if (parameters.weight.defined()) inputs.push_back(weight = c.per_channel(parameters.weight));
  if (parameters.bias.defined()) inputs.push_back(bias = c.per_channel(parameters.bias));
  const int64_t attributes[] = {parameters.weight.defined(), parameters.bias.defined()};
  record_elementwise(op, c.common, c.spaced(output), std::span(inputs.data(), inputs.size()), attributes);
}

struct Results {
  at::Tensor output, mean, rstd;
};

Results normalize(const at::Tensor& input, const Parameters& parameters, const at::Tensor& running_mean,
                  const at::Tensor& running_variance, bool training, double momentum, double eps) {
  static const lowering::Operator &squares = operator_named("centered_square_sum"), &plain_sum = operator_named("sum"),
                                  &inverse = operator_named("inverse_standard_deviation"),
                                  &average = operator_named("running_average"),
                                  &scaled = operator_named("variance_of_sum");
  if (input.dim() < 2) decline();
  const Channels c(input);
  const at::ScalarType wide = scalar_type_of(c.wide);
  Results results;
  results.output = empty(input.sizes(), input.scalar_type(), input.device());
  if (!training) {
    const at::Tensor rstd = c.statistics();
    record_elementwise(inverse, c.wide, rstd, {Input(running_variance), Input(eps)});
    record_affine(c, results.output, running_mean, rstd, parameters);
    results.mean = empty({0}, wide, input.device());
    results.rstd = empty({0}, wide, input.device());
    return results;
  }
  TORCH_CHECK(c.count() != 0 || c.channels == 0,
              "Expected more than 1 value per channel when training, got input size ", input.sizes());
  results.mean = c.statistics();
  results.rstd = c.statistics();
  const at::Tensor total = c.statistics(), variance = c.statistics();
  record_channel_sums(plain_sum, c, {Input(c.input)}, {&total, 1});
  record_elementwise(scaled, c.wide, results.mean, {Input(total), Input(c.count()), Input(0.0)});
  const at::Tensor square_sum = c.statistics(), mean_view = c.per_channel(results.mean);
  record_channel_sums(squares, c, {Input(c.input), Input(mean_view)}, {&square_sum, 1});
  record_elementwise(scaled, c.wide, variance, {Input(square_sum), Input(c.count()), Input(0.0)});
  record_elementwise(inverse, c.wide, results.rstd, {Input(variance), Input(eps)});
  if (running_mean.defined()) {
    record_elementwise(average, dtype_of(running_mean), running_mean,
                       {Input(running_mean), Input(results.mean), Input(momentum)});
  }
  if (running_variance.defined()) {
    const at::Tensor unbiased = c.statistics();
    record_elementwise(scaled, c.wide, unbiased, {Input(square_sum), Input(c.count()), Input(1.0)});
    record_elementwise(average, dtype_of(running_variance), running_variance,
                       {Input(running_variance), Input(unbiased), Input(momentum)});
  }
  record_affine(c, results.output, results.mean, results.rstd, parameters);
  return results;
}

void give(Arguments& arguments, Results results) {
  arguments.give(std::move(results.output));
  arguments.give(std::move(results.mean));
  arguments.give(std::move(results.rstd));
}

// native_batch_norm(input, weight?, bias?, running_mean?, running_var?, training, momentum, eps).
void batch_norm(Arguments& a) {
  give(a, normalize(a.tensor(0), {a.tensor(1), a.tensor(2)}, a.tensor(3), a.tensor(4), a.boolean(5), a.real(6),
                    a.real(7)));
}
// The same without running statistics: (input, weight?, bias?, training, momentum, eps).
void batch_norm_no_stats(Arguments& a) {
  give(a, normalize(a.tensor(0), {a.tensor(1), a.tensor(2)}, {}, {}, a.boolean(3), a.real(4), a.real(5)));
}
// (input, weight?, bias?, running_mean, running_var, momentum, eps).
void batch_norm_inference(Arguments& a) {
  give(a, normalize(a.tensor(0), {a.tensor(1), a.tensor(2)}, a.tensor(3), a.tensor(4), false, a.real(5), a.real(6)));
}

// (grad_out, input, weight?, running_mean?, running_var?, save_mean?, save_invstd?, train, eps, output_mask).
void batch_norm_backward(Arguments& arguments) {
  static const lowering::Operator &sums = operator_named("normalized_gradient_sums"),
                                  &of_input = operator_named("normalize_backward"),
                                  &inverse = operator_named("inverse_standard_deviation");
  const at::Tensor &input = arguments.tensor(1), &weight = arguments.tensor(2);
  if (input.dim() < 2) decline();
  const bool training = arguments.boolean(7);
  const std::vector<bool> wanted = arguments.booleans(9);
  const Channels c(input);
  require_row_dtype(arguments.tensor(0));
  const at::Tensor gradient = c.spaced(arguments.tensor(0));
  at::Tensor mean = arguments.tensor(5), rstd = arguments.tensor(6);
  if (!training) {
    mean = arguments.tensor(3);
    rstd = c.statistics();
    record_elementwise(inverse, c.wide, rstd, {Input(arguments.tensor(4)), Input(arguments.real(8))});
  }
  const at::Tensor mean_view = c.per_channel(mean), rstd_view = c.per_channel(rstd);
  const at::Tensor totals[] = {c.statistics(), c.statistics()};
  record_channel_sums(sums, c, {Input(gradient), Input(c.input), Input(mean_view), Input(rstd_view)}, totals);
  at::Tensor input_gradient, weight_gradient, bias_gradient;
  if (wanted[0]) {
    input_gradient = empty(input.sizes(), input.scalar_type(), input.device());
    const at::Tensor first = c.per_channel(totals[0]), second = c.per_channel(totals[1]);
    at::Tensor scale;
    c10::SmallVector<Input, 8> inputs{Input(gradient), Input(c.input), Input(mean_view), Input(rstd_view)};
    inputs.push_back(training ? Input(first) : Input(0.0));
    inputs.push_back(training ? Input(second) : Input(0.0));
    inputs.push_back(Input(c.count()));
    if (weight.defined()) inputs.push_back(scale = c.per_channel(weight));
    const int64_t attributes[] = {weight.defined()};
    record_elementwise(of_input, c.common, c.spaced(input_gradient), std::span(inputs.data(), inputs.size()),
                       attributes);
  }
  const at::ScalarType type = weight.defined() ? weight.scalar_type() : input.scalar_type();
  if (wanted[1]) weight_gradient = to_dtype(totals[1], type);
  if (wanted[2]) bias_gradient = to_dtype(totals[0], type);
  arguments.give(input_gradient);
  arguments.give(weight_gradient);
  arguments.give(bias_gradient);
}

const Registration registrations[] = {
    {"native_batch_norm", batch_norm},
    {"_native_batch_norm_legit", batch_norm},
    {"_native_batch_norm_legit.no_stats", batch_norm_no_stats},
    {"_native_batch_norm_legit_no_training", batch_norm_inference},
    {"native_batch_norm_backward", batch_norm_backward},
};

}  // namespace
}  // namespace neuron::aten
