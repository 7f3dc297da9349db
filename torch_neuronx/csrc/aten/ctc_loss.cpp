// ctc_loss and its gradient. Lengths are needed on the host: given as tensors they cost one flush.
#include <ATen/core/Tensor.h>

#include <algorithm>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/refuse.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

// The integers of an argument that is a list or a tensor.
at::DimVector lengths(const Arguments& arguments, int i, bool tensors) {
  if (!tensors) return arguments.integers(i);
  const at::Tensor& given = arguments.tensor(i);
  if (!c10::isIntegralType(given.scalar_type(), false)) decline();
  const at::Tensor host = host_copy(is_neuron(given) ? to_dtype(given, at::ScalarType::Long) : given);
  at::DimVector values;
  for (int64_t n = 0; n < host.numel(); ++n) {
    values.push_back(host.scalar_type() == at::ScalarType::Long
                         ? static_cast<const int64_t*>(host.const_data_ptr())[n]
                         : static_cast<const int32_t*>(host.const_data_ptr())[n]);
  }
  return values;
}

// The kernels' attributes, when the lengths fit the tensors. Values of tensors the CPU has to check again.
at::DimVector checked_attributes(const at::Tensor& log_probs, const at::Tensor& targets, const at::DimVector& inputs,
                                 const at::DimVector& labels, int64_t blank, bool zero_infinity, bool tensors) {
  auto check = [&](bool fine) {
    if (fine) return;
    if (tensors) decline();
    refuse();
  };
  check(log_probs.dim() == 3 &&
        (log_probs.scalar_type() == at::ScalarType::Float || log_probs.scalar_type() == at::ScalarType::Double));
  check(targets.scalar_type() == at::ScalarType::Long || targets.scalar_type() == at::ScalarType::Int);
  const int64_t steps = log_probs.size(0), batch = log_probs.size(1);
  check(batch > 0 && static_cast<int64_t>(inputs.size()) == batch && static_cast<int64_t>(labels.size()) == batch);
  check(blank >= 0 && blank < log_probs.size(2));
  int64_t most = 0, sum = 0;
  for (int64_t length : labels) {
    check(length >= 0);
    most = std::max(most, length);
    sum += length;
  }
  for (int64_t length : inputs) check(length >= 0 && length <= steps);
  check(targets.dim() == 1 ? targets.size(0) == sum
                           : targets.dim() == 2 && targets.size(0) == batch && targets.size(1) >= most);
  at::DimVector attributes{blank, zero_infinity};
  attributes.append(inputs.begin(), inputs.end());
  attributes.append(labels.begin(), labels.end());
  return attributes;
}

// _ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity) -> (losses, log_alpha)
template <bool kTensors>
void ctc_loss(Arguments& arguments) {
  const at::Tensor &log_probs = arguments.tensor(0), &targets = arguments.tensor(1);
  const at::DimVector labels = lengths(arguments, 3, kTensors);
  const at::DimVector attributes = checked_attributes(log_probs, targets, lengths(arguments, 2, kTensors), labels,
                                                      arguments.integer(4), arguments.boolean(5), kTensors);
  const at::Tensor* both[] = {&log_probs, &targets};
  const at::Device device = common_device(both);
  const int64_t states = 2 * *std::max_element(labels.begin(), labels.end()) + 1;
  const at::Tensor losses = empty({log_probs.size(1)}, log_probs.scalar_type(), device);
  const at::Tensor alphas = empty({log_probs.size(1), log_probs.size(0), states}, log_probs.scalar_type(), device);
  static const kernels::Kernel& found = kernel("ctc_loss");
  const at::Tensor outputs[] = {losses, alphas}, inputs[] = {log_probs, targets};
  record_kernel(found, outputs, inputs, std::span<const int64_t>(attributes.data(), attributes.size()));
  arguments.give(losses);
  arguments.give(alphas);
}

// _ctc_loss_backward(grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, log_alpha, blank,
// zero_infinity)
template <bool kTensors>
void ctc_loss_backward(Arguments& arguments) {
  const at::Tensor &gradient = arguments.tensor(0), &log_probs = arguments.tensor(1), &targets = arguments.tensor(2),
                   &losses = arguments.tensor(5), &alphas = arguments.tensor(6);
  const at::DimVector attributes =
      checked_attributes(log_probs, targets, lengths(arguments, 3, kTensors), lengths(arguments, 4, kTensors),
                         arguments.integer(7), arguments.boolean(8), kTensors);
  if (gradient.dim() != 1 || gradient.scalar_type() != log_probs.scalar_type() || losses.dim() != 1 ||
      alphas.dim() != 3)
    refuse();
  const at::Tensor* all[] = {&gradient, &log_probs, &targets, &losses, &alphas};
  const at::Tensor out = empty(log_probs.sizes(), log_probs.scalar_type(), common_device(all));
  static const kernels::Kernel& found = kernel("ctc_loss_backward");
  const at::Tensor outputs[] = {out}, inputs[] = {gradient, log_probs, targets, losses, contiguous(alphas)};
  if (out.numel() != 0)
    record_kernel(found, outputs, inputs, std::span<const int64_t>(attributes.data(), attributes.size()));
  arguments.give(out);
}

const Registration registrations[] = {
    {"_ctc_loss", ctc_loss<false>},
    {"_ctc_loss.Tensor", ctc_loss<true>},
    {"_ctc_loss_backward", ctc_loss_backward<false>},
    {"_ctc_loss_backward.Tensor", ctc_loss_backward<true>},
};

}  // namespace
}  // namespace neuron::aten
