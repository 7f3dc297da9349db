// Random numbers: a part of the generator's sequence is reserved when the operation is recorded; the values follow from
// (seed, offset, position) alone (docs/numerics.md).
#include <ATen/core/Generator.h>
#include <c10/util/strides.h>

#include <cmath>
#include <limits>

#include "neuron/lowering/operator_attributes.h"
#include "torch_neuronx/csrc/aten/float_limits.h"
#include "torch_neuronx/csrc/aten/philox.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"
#include "torch_neuronx/csrc/register/storage.h"

namespace neuron::aten {

PhiloxState reserve(const std::optional<at::Generator>& generator, at::Device device, int64_t count) {
  const torch_neuronx::PhiloxReservation reserved = torch_neuronx::reserve_philox(generator, device, count);
  return {static_cast<int64_t>(reserved.seed), static_cast<int64_t>(reserved.offset)};
}

namespace {

// output <- the distribution, with its parameters as inputs.
void record_distribution(const lowering::Operator& op, const at::Tensor& output,
                         const std::optional<at::Generator>& generator, std::initializer_list<Input> parameters,
                         std::initializer_list<int64_t> attributes = {}) {
  if (output.numel() == 0) return;
  check_no_internal_overlap(output);
  const PhiloxState state = reserve(generator, output.device(), output.numel());
  const at::DimVector strides = c10::contiguous_strides(output.sizes());
  c10::SmallVector<Input, 8> inputs{Input::index(0, {strides.data(), strides.size()}), Input(state.seed),
                                    Input(state.offset)};
  for (const Input& parameter : parameters) inputs.push_back(parameter);
  record_elementwise(op, dtype_of(output), output, std::span(inputs.data(), inputs.size()),
                     std::span(attributes.begin(), attributes.size()));
}

// The CPU raises for what is no real floating point tensor.
const at::Tensor& float_self(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  if (!self.is_floating_point()) decline();
  arguments.give(self);
  return self;
}

void uniform(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("uniform");
  const double from = arguments.real(1), to = arguments.real(2);
  const at::Tensor& self = float_self(arguments);
  TORCH_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
  TORCH_CHECK(to - from <= float_limits(self.scalar_type()).largest, "uniform_ expects to-from <= std::numeric_limits<",
              self.scalar_type(), ">::max(), but found to=", to, " and from=", from,
              " which result in to-from to exceed the limit");
  record_distribution(op, self, arguments.generator(3), {Input(from), Input(to)});
}

void normal(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("normal");
  const double mean = arguments.real(1), deviation = arguments.real(2);
  TORCH_CHECK(deviation >= 0.0, "normal expects std >= 0.0, but found std ", deviation);
  record_distribution(op, float_self(arguments), arguments.generator(3), {Input(mean), Input(deviation)});
}

void log_normal(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("log_normal");
  const double mean = arguments.real(1), deviation = arguments.real(2);
  TORCH_CHECK(deviation > 0.0, "log_normal_ expects std > 0.0, but found std=", deviation);
  record_distribution(op, float_self(arguments), arguments.generator(3), {Input(mean), Input(deviation)});
}

void exponential(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("exponential");
  const double rate = arguments.real(1);
  TORCH_CHECK(rate > 0.0, "exponential_ expects lambda > 0.0, but found lambda=", rate);
  record_distribution(op, float_self(arguments), arguments.generator(2), {Input(rate)});
}

void cauchy(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("cauchy");
  const double median = arguments.real(1), sigma = arguments.real(2);
  TORCH_CHECK(sigma > 0.0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  record_distribution(op, float_self(arguments), arguments.generator(3), {Input(median), Input(sigma)});
}

void geometric(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("geometric");
  const at::Tensor& self = arguments.tensor(0);
  const double p = arguments.real(1);
  TORCH_CHECK(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  if (self.is_complex()) decline();
  record_distribution(op, self, arguments.generator(2), {Input(p)});
  arguments.give(self);
}

void bernoulli_number(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("bernoulli");
  const at::Tensor& self = arguments.tensor(0);
  const double p = arguments.real(1);
  TORCH_CHECK(0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  if (self.is_complex()) decline();
  record_distribution(op, self, arguments.generator(2), {Input(p)});
  arguments.give(self);
}
void bernoulli_tensor(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("bernoulli");
  const at::Tensor &self = arguments.tensor(0), &p = arguments.tensor(1);
  if (self.is_complex() || !p.is_floating_point()) decline();
  record_distribution(op, self, arguments.generator(2), {Input(p)});
  arguments.give(self);
}

// The largest value `random_` gives for a dtype: what the type, or the significand of a float, holds.
int64_t largest_random(at::ScalarType type) {
  switch (type) {
    case at::ScalarType::Double:
      return int64_t{1} << 53;
    case at::ScalarType::Float:
      return int64_t{1} << 24;
    case at::ScalarType::Half:
      return int64_t{1} << 11;
    case at::ScalarType::BFloat16:
      return int64_t{1} << 8;
    case at::ScalarType::Bool:
      return 1;
    case at::ScalarType::Byte:
      return std::numeric_limits<uint8_t>::max();
    case at::ScalarType::Char:
      return std::numeric_limits<int8_t>::max();
    case at::ScalarType::Short:
      return std::numeric_limits<int16_t>::max();
    case at::ScalarType::Int:
      return std::numeric_limits<int32_t>::max();
    case at::ScalarType::Long:
      return std::numeric_limits<int64_t>::max();
    default:
      decline();
  }
}
double lowest_random(at::ScalarType type) {
  switch (type) {
    case at::ScalarType::Bool:
    case at::ScalarType::Byte:
      return 0;
    case at::ScalarType::Char:
      return std::numeric_limits<int8_t>::min();
    case at::ScalarType::Short:
      return std::numeric_limits<int16_t>::min();
    case at::ScalarType::Int:
      return std::numeric_limits<int32_t>::min();
    case at::ScalarType::Half:
      return -65504;
    default:
      return -std::numeric_limits<double>::infinity();
  }
}

// Integers from `from`; `range` counts them, 0 stands for 2^64.
void record_random(const at::Tensor& self, const std::optional<at::Generator>& generator, int64_t from,
                   uint64_t range) {
  static const lowering::Operator& op = operator_named("random");
  const auto kind = range == 0                   ? lowering::RandomRange::Full
                    : range < uint64_t{1} << 32  ? lowering::RandomRange::Narrow
                    : (range & (range - 1)) == 0 ? lowering::RandomRange::PowerOfTwo
                                                 : lowering::RandomRange::Wide;
  record_distribution(op, self, generator, {Input(from), Input(static_cast<int64_t>(range))},
                      {static_cast<int64_t>(kind)});
}

void check_bound(int64_t value, const char* name, at::ScalarType type) {
  const double upper = type == at::ScalarType::Half ? 65504.0
                       : c10::isFloatingType(type)  ? std::numeric_limits<double>::infinity()
                                                    : static_cast<double>(largest_random(type));
  TORCH_CHECK(static_cast<double>(value) >= lowest_random(type) && static_cast<double>(value) <= upper, name,
              " is out of bounds for ", c10::scalarTypeToTypeMeta(type).name());
}

void random(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  record_random(self, arguments.generator(1), 0, static_cast<uint64_t>(largest_random(self.scalar_type())) + 1);
  arguments.give(self);
}

void random_between(Arguments& arguments, int64_t from, int64_t to, int generator) {
  const at::Tensor& self = arguments.tensor(0);
  TORCH_CHECK(from < to, "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", to);
  largest_random(self.scalar_type());
  check_bound(from, "from", self.scalar_type());
  check_bound(to - 1, "to - 1", self.scalar_type());
  record_random(self, arguments.generator(generator), from, static_cast<uint64_t>(to) - static_cast<uint64_t>(from));
  arguments.give(self);
}
void random_to(Arguments& arguments) { random_between(arguments, 0, arguments.integer(1), 2); }
void random_from(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  const int64_t from = arguments.integer(1);
  if (!arguments.absent(2)) return random_between(arguments, from, arguments.integer(2), 3);
  check_bound(from, "from", self.scalar_type());
  const auto largest = static_cast<uint64_t>(largest_random(self.scalar_type()));
  record_random(self, arguments.generator(3), from, largest - static_cast<uint64_t>(from) + 1);
  arguments.give(self);
}

// normal(mean, std) with one or both of them tensors.
void normal_of(Arguments& arguments, const Input& mean, const Input& deviation) {
  static const lowering::Operator& op = operator_named("normal");
  const at::Tensor& out = arguments.output();
  if (!out.is_floating_point()) decline();
  record_distribution(op, out, arguments.generator(2), {mean, deviation});
}
void normal_tensor_number(Arguments& arguments) {
  const double deviation = arguments.real(1);
  TORCH_CHECK(deviation >= 0.0, "normal expects std >= 0.0, but found std ", deviation);
  normal_of(arguments, Input(arguments.tensor(0)), Input(deviation));
}
void normal_number_tensor(Arguments& arguments) {
  normal_of(arguments, Input(arguments.real(0)), Input(arguments.tensor(1)));
}
void normal_tensors(Arguments& arguments) {
  normal_of(arguments, Input(arguments.tensor(0)), Input(arguments.tensor(1)));
}

// Sizes of the tensor, and its strides where they are dense.
at::Tensor dense_like(const at::Tensor& input, at::ScalarType type) {
  if (!input.is_non_overlapping_and_dense()) return empty(input.sizes(), type, input.device());
  return empty_strided(input.sizes(), input.strides(), type, input.device());
}

// native_dropout(input, p, train?) -> (output, mask).
void dropout(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("native_dropout");
  const at::Tensor& input = arguments.tensor(0);
  const double p = arguments.real(1);
  if (!input.is_floating_point()) decline();
  require_row_dtype(input);
  at::Tensor output = dense_like(input, input.scalar_type()), mask = dense_like(input, at::ScalarType::Bool);
  if (!arguments.absent(2) && !arguments.boolean(2)) {
    record_copy(output, input);
    record_fill(mask, true);
  } else if (input.numel() != 0) {
    const PhiloxState state = reserve(std::nullopt, input.device(), input.numel());
    const at::DimVector strides = c10::contiguous_strides(input.sizes());
    record_row(op, dtype_of(input), input.sizes(), 0, {output, mask},
               {Input::index(0, {strides.data(), strides.size()}), Input(state.seed), Input(state.offset), Input(input),
                Input(p)});
  }
  arguments.give(output);
  arguments.give(mask);
}

const Registration registrations[] = {
    {"uniform_", uniform},
    {"normal_", normal},
    {"log_normal_", log_normal},
    {"exponential_", exponential},
    {"cauchy_", cauchy},
    {"geometric_", geometric},
    {"bernoulli_.float", bernoulli_number},
    {"bernoulli_.Tensor", bernoulli_tensor},
    {"random_", random},
    {"random_.to", random_to},
    {"random_.from", random_from},
    {"normal.Tensor_float", normal_tensor_number},
    {"normal.Tensor_float_out", normal_tensor_number},
    {"normal.float_Tensor", normal_number_tensor},
    {"normal.float_Tensor_out", normal_number_tensor},
    {"normal.Tensor_Tensor", normal_tensors},
    {"normal.Tensor_Tensor_out", normal_tensors},
    {"native_dropout", dropout},
};

}  // namespace
}  // namespace neuron::aten
