#include "torch_neuronx/csrc/aten/wide_floats.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <string_view>
#include <vector>

#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/register/knobs.h"

namespace neuron::aten {
namespace {

// Kernels whose results depend on the precision they compute in.
constexpr std::string_view kArithmeticKernels[] = {
    "attention",
    "attention_backward",
    "attention_mask_gradient",
    "average_pool",
    "average_pool_backward",
    "col2im",
    "convolution",
    "convolution_input",
    "convolution_weight",
    "cross",
    "ctc_loss",
    "ctc_loss_backward",
    "cumprod",
    "cumsum",
    "dirichlet_gradient",
    "distances",
    "distances_backward",
    "embedding_bag",
    "embedding_bag_backward",
    "embedding_bag_weights_backward",
    "embedding_dense_backward",
    "embedding_renorm",
    "gemm",
    "grid_sample",
    "grid_sample_grid",
    "grid_sample_input",
    "index_add",
    "index_reduce",
    "logcumsumexp",
    "multi_margin_loss",
    "multi_margin_loss_backward",
    "multilabel_margin_loss",
    "multilabel_margin_loss_backward",
    "nll_loss_forward",
    "nll_loss_scales",
    "pad_backward",
    "pair_distances",
    "pair_distances_backward",
    "standard_gamma_gradient",
    "unfold_backward",
};

std::atomic<TorchAsks> torch_asks{nullptr};

bool warn_and_ask() {
  static std::atomic<bool> warned{false};
  if (!warned.load(std::memory_order_relaxed)) {
    const TorchAsks asks = torch_asks.load(std::memory_order_relaxed);
    if ((asks == nullptr || !asks()) && !warned.exchange(true)) {
      TORCH_WARN(
          "Trainium computes float64 and complex128 in float32; the embedded neuron device computes them exactly. Set "
          "torch.backends.neuron.float64 = \"float32\" to compute them as Trainium does.");
    }
  }
  return torch_neuronx::float64_as_float32();
}

at::ScalarType halved(const at::Tensor& tensor) {
  return tensor.is_complex() ? at::ScalarType::ComplexFloat : at::ScalarType::Float;
}

bool is_wide(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::ScalarType::Double || tensor.scalar_type() == at::ScalarType::ComplexDouble;
}

}  // namespace

void set_torch_asks(TorchAsks asks) { torch_asks.store(asks, std::memory_order_relaxed); }

DType region_precision(const lowering::Operator& op, DType common) {
  if (op.name == "fill" || !warn_and_ask()) return common;
  return common == DType::Float64 ? DType::Float32 : DType::Complex64;
}

bool computes_in_float32(const kernels::Kernel& kernel) {
  const bool arithmetic = kernel.name.starts_with("complex_") ||
                          std::ranges::find(kArithmeticKernels, kernel.name) != std::end(kArithmeticKernels);
  return arithmetic && warn_and_ask();
}

void record_kernel_in_float32(const kernels::Kernel& kernel, TensorReferences outputs, TensorReferences inputs,
                              std::span<const int64_t> attributes, std::span<const Scalar> scalars,
                              bool reads_outputs) {
  std::vector<at::Tensor> targets, sources;
  for (const TensorReference& output : outputs) targets.push_back(*output.tensor);
  for (const TensorReference& input : inputs) sources.push_back(*input.tensor);
  for (at::Tensor& source : sources) {
    if (source.defined() && is_wide(source)) source = to_dtype(source, halved(source));
  }
  for (at::Tensor& target : targets) {
    if (!is_wide(target)) continue;
    const at::Tensor& output = target;
    at::Tensor narrow = empty(output.sizes(), halved(output), output.device());
    if (reads_outputs) record_copy(narrow, output);
    target = narrow;
  }
  record_kernel(kernel, targets, sources, attributes, scalars, reads_outputs);
  for (size_t i = 0; i < targets.size(); ++i) {
    if (is_wide(*outputs[i].tensor)) record_copy(*outputs[i].tensor, targets[i]);
  }
}

}  // namespace neuron::aten
