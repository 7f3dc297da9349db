// poisson, binomial, gamma and Dirichlet variates: library kernels on reserved random numbers; their slopes; and
// rrelu's noise.
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/le_ops.h>
#include <ATen/ops/leaky_relu_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/uniform_ops.h>
#include <ATen/ops/where_ops.h>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/layout.h"
#include "torch_neuronx/csrc/aten/philox.h"
#include "torch_neuronx/csrc/aten/refuse.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

void record_samples(const kernels::Kernel& kernel, const at::Tensor& out, std::span<const at::Tensor> parameters,
                    const std::optional<at::Generator>& generator) {
  if (out.numel() == 0) return;
  const PhiloxState state = reserve(generator, out.device(), out.numel());
  const Scalar scalars[] = {Scalar::of(state.seed), Scalar::of(state.offset)};
  record_kernel(kernel, std::span(&out, 1), parameters, {}, scalars);
}

void check_native_float(const at::Tensor& tensor) {
  if (tensor.scalar_type() != at::ScalarType::Float && tensor.scalar_type() != at::ScalarType::Double) refuse();
}

// poisson(self, generator?)
void poisson(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  if (!self.is_floating_point()) refuse();
  require_row_dtype(self);
  const at::Tensor out = empty(self.sizes(), self.scalar_type(), self.device());
  record_samples(kernel("poisson"), out, std::span(&self, 1), arguments.generator(1));
  arguments.give(out);
}

// binomial(count, prob, generator?)
void binomial(Arguments& arguments) {
  const at::Tensor &count = arguments.tensor(0), &chance = arguments.tensor(1);
  check_native_float(count);
  if (chance.scalar_type() != count.scalar_type()) refuse();
  const at::Tensor* both[] = {&count, &chance};
  const at::Device device = common_device(both);
  at::DimVector sizes(count.sizes());
  if (!broadcast_into(sizes, chance.sizes())) refuse();
  const at::Tensor out = empty(sizes, count.scalar_type(), device);
  const at::Tensor parameters[] = {count.expand(sizes), chance.expand(sizes)};
  record_samples(kernel("binomial"), out, parameters, arguments.generator(2));
  arguments.give(out);
}

// _standard_gamma(self, generator?)
void standard_gamma(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  check_native_float(self);
  const at::Tensor out = empty(self.sizes(), self.scalar_type(), self.device());
  record_samples(kernel("standard_gamma"), out, std::span(&self, 1), arguments.generator(1));
  arguments.give(out);
}

// _sample_dirichlet(self, generator?): along the last dimension.
void sample_dirichlet(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  check_native_float(self);
  const at::Tensor out = empty(self.sizes(), self.scalar_type(), self.device());
  if (out.numel() != 0) {
    const int64_t width = self.dim() == 0 ? 1 : self.size(-1), rows = self.numel() / width;
    auto matrix = [&](const at::Tensor& tensor) { return alias(tensor, {rows, width}, {width, 1}); };
    const at::Tensor parameters[] = {matrix(contiguous(self))};
    record_samples(kernel("dirichlet"), matrix(out), parameters, arguments.generator(1));
  }
  arguments.give(out);
}

// The slope of each sample by its shape.
void give_slopes(Arguments& arguments, const kernels::Kernel& kernel, std::initializer_list<at::Tensor> operands) {
  const at::Tensor& first = *operands.begin();
  check_native_float(first);
  for (const at::Tensor& operand : operands) {
    if (operand.scalar_type() != first.scalar_type()) refuse();
    if (!operand.sizes().equals(first.sizes()) || operand.device() != first.device()) decline();
  }
  const at::Tensor out = empty(first.sizes(), first.scalar_type(), first.device());
  if (out.numel() != 0) record_kernel(kernel, std::span(&out, 1), std::span(operands.begin(), operands.size()));
  arguments.give(out);
}
// _standard_gamma_grad(self, output)
void standard_gamma_gradient(Arguments& arguments) {
  give_slopes(arguments, kernel("standard_gamma_gradient"), {arguments.tensor(0), arguments.tensor(1)});
}
// _dirichlet_grad(x, alpha, total)
void dirichlet_gradient(Arguments& arguments) {
  give_slopes(arguments, kernel("dirichlet_gradient"), {arguments.tensor(0), arguments.tensor(1), arguments.tensor(2)});
}

// rrelu_with_noise(self, noise!, lower, upper, training, generator?)
void rrelu_with_noise(Arguments& arguments) {
  const at::Tensor &self = arguments.tensor(0), &noise = arguments.tensor(1);
  const double lower = arguments.scalar(2).toDouble(), upper = arguments.scalar(3).toDouble();
  if (self.scalar_type() == at::ScalarType::Half || !self.is_floating_point()) refuse();
  require_row_dtype(self);
  const bool training = arguments.boolean(4);
  if (lower > upper) refuse();
  if (training && (noise.scalar_type() != self.scalar_type() || !noise.sizes().equals(self.sizes()))) refuse();
  at::Tensor out = arguments.output();
  if (out.numel() == 0) return;
  if (!training) {
    at::_ops::leaky_relu_out::call(self, (lower + upper) / 2, out);
    return;
  }
  at::Tensor slopes = empty(self.sizes(), self.scalar_type(), self.device());
  at::_ops::uniform_::call(slopes, lower, upper, arguments.generator(5));
  record_copy(noise, at::_ops::where_ScalarOther::call(at::_ops::le_Scalar::call(self, 0), slopes, 1));
  at::_ops::mul_out::call(self, noise, out);
}

const Registration registrations[] = {
    {"poisson", poisson},
    {"binomial", binomial},
    {"_standard_gamma", standard_gamma},
    {"_sample_dirichlet", sample_dirichlet},
    {"_standard_gamma_grad", standard_gamma_gradient},
    {"_dirichlet_grad", dirichlet_gradient},
    {"rrelu_with_noise", rrelu_with_noise},
    {"rrelu_with_noise.out", rrelu_with_noise},
    {"rrelu_with_noise_", rrelu_with_noise},
};

}  // namespace
}  // namespace neuron::aten
