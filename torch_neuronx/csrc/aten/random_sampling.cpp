// Permutations and draws from discrete distributions: library kernels on reserved random numbers.
#include <ATen/core/Generator.h>
#include <ATen/ops/view_ops.h>

#include "torch_neuronx/csrc/aten/float_limits.h"
#include "torch_neuronx/csrc/aten/philox.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"
#include "torch_neuronx/csrc/register/device.h"

namespace neuron::aten {
namespace {

// The CPU's check: whole numbers up to n - 1 are exact in the dtype.
void check_represents(at::ScalarType type, int64_t n) {
  const int digits = float_limits(type).digits;
  if (digits == 0) return;
  const int64_t most = (int64_t{1} << digits) + 1;
  TORCH_CHECK(n <= most, "n cannot be greater than ", most, " for ", type, " type.");
}

void record_permutation(const at::Tensor& out, const std::optional<at::Generator>& generator) {
  static const kernels::Kernel& op = kernel("random_permutation");
  if (out.numel() == 0) return;
  check_represents(out.scalar_type(), out.numel());
  const PhiloxState state = reserve(generator, out.device(), out.numel());
  record_kernel(op, {out}, {}, {}, {Scalar::of(state.seed), Scalar::of(state.offset)});
}

// randperm(n, *, [generator], dtype?, layout?, device?, pin_memory?).
void permutation(Arguments& arguments, int options, const std::optional<at::Generator>& generator) {
  const int64_t n = arguments.integer(0);
  TORCH_CHECK(n >= 0, "n must be non-negative, got", n);
  const at::Device asked = arguments.device(options + 2).value_or(at::Device(c10::DeviceType::PrivateUse1));
  const at::Device device(c10::DeviceType::PrivateUse1, torch_neuronx::resolve_index(asked));
  const at::Tensor out = empty({n}, arguments.dtype(options).value_or(at::ScalarType::Long), device);
  require_row_dtype(out);
  record_permutation(out, generator);
  arguments.give(out);
}
void randperm(Arguments& arguments) { permutation(arguments, 1, std::nullopt); }
void randperm_generator(Arguments& arguments) { permutation(arguments, 2, arguments.generator(1)); }

void permutation_out(Arguments& arguments, int position, const std::optional<at::Generator>& generator) {
  const at::Tensor& out = arguments.filled_output(position);
  require_row_dtype(out);
  check_no_internal_overlap(out);
  if (out.dim() == 1) return record_permutation(out, generator);
  const at::Tensor line = empty({out.numel()}, out.scalar_type(), out.device());
  record_permutation(line, generator);
  record_copy(out, at::_ops::view::call(line, c10::fromIntArrayRefSlow(out.sizes())));
}
void randperm_out(Arguments& arguments) { permutation_out(arguments, 1, std::nullopt); }
void randperm_generator_out(Arguments& arguments) { permutation_out(arguments, 2, arguments.generator(1)); }

// multinomial(self, num_samples, replacement, *, generator?).
void multinomial(Arguments& arguments) {
  static const kernels::Kernel& op = kernel("multinomial");
  const at::Tensor& self = arguments.tensor(0);
  const int64_t samples = arguments.integer(1);
  const bool replacement = arguments.boolean(2);
  TORCH_CHECK(self.dim() > 0 && self.dim() <= 2, "prob_dist must be 1 or 2 dim");
  TORCH_CHECK(self.is_floating_point(),
              "multinomial only supports floating-point dtypes for input, got: ", self.scalar_type());
  TORCH_CHECK(samples > 0, "cannot sample n_sample <= 0 samples");
  TORCH_CHECK(replacement || samples <= self.size(-1),
              "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  require_row_dtype(self);
  const at::Tensor& out = arguments.output();
  if (out.numel() == 0) return;
  const int64_t rows = self.dim() == 2 ? self.size(0) : 1, categories = self.size(-1);
  const PhiloxState state = reserve(arguments.generator(3), self.device(), rows * (replacement ? samples : categories));
  const at::Tensor target = self.dim() == 2 ? out : alias(out, {1, samples}, {0, out.stride(0)});
  const at::Tensor weights = self.dim() == 2 ? self : alias(self, {1, categories}, {0, self.stride(0)});
  record_kernel(op, {target}, {weights}, {replacement}, {Scalar::of(state.seed), Scalar::of(state.offset)});
}

const Registration registrations[] = {
    {"randperm", randperm},         {"randperm.generator", randperm_generator},
    {"randperm.out", randperm_out}, {"randperm.generator_out", randperm_generator_out},
    {"multinomial", multinomial},   {"multinomial.out", multinomial},
};

}  // namespace
}  // namespace neuron::aten
