// scaled_dot_product_attention: which calls take the tiled kernels, and the pair of operators that PyTorch offers for
// them. Everything else is composed of products and softmax by PyTorch itself.
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/scalar_tensor_ops.h>
#include <ATen/ops/sum_ops.h>

#include <algorithm>
#include <cmath>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/philox.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

bool is_kernel_dtype(at::ScalarType type) {
  return type == at::ScalarType::Float || type == at::ScalarType::BFloat16 || type == at::ScalarType::Half;
}

// The sizes both broadcast to; false when they do not.
bool broadcast(int64_t& size, int64_t other) {
  if (size == 1) size = other;
  return size == other || other == 1;
}

// [batch…, heads, queries, depth]: what the kernels are given. Dimensions that broadcast have stride 0 in the views;
// fewer heads of keys than of queries are kept when they divide.
struct Operands {
  at::Tensor query, key, value;
  at::DimVector sizes;  // of the result
};

// Nothing when the kernels do not take them.
std::optional<Operands> operands(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  // torch.vmap has no rule for the tiled kernel; the operations of the math path have theirs.
  for (const at::Tensor* tensor : {&query, &key, &value}) {
    if (tensor->key_set().has(c10::DispatchKey::FuncTorchBatched)) return std::nullopt;
  }
  const at::ScalarType type = query.scalar_type();
  if (!is_kernel_dtype(type) || key.scalar_type() != type || value.scalar_type() != type) return std::nullopt;
  const int64_t rank = query.dim();
  if (rank < 2 || key.dim() != rank || value.dim() != rank) return std::nullopt;
  if (key.size(rank - 1) != query.size(rank - 1) || value.size(rank - 2) != key.size(rank - 2)) return std::nullopt;
  if (query.size(rank - 1) == 0) return std::nullopt;
  at::DimVector sizes(query.sizes());
  sizes[static_cast<size_t>(rank - 1)] = value.size(rank - 1);
  for (int64_t d = 0; d < rank - 3; ++d) {
    int64_t& size = sizes[static_cast<size_t>(d)];
    if (!broadcast(size, key.size(d)) || !broadcast(size, value.size(d))) return std::nullopt;
  }
  int64_t key_heads = 1;
  if (rank > 2) {
    int64_t& heads = sizes[static_cast<size_t>(rank - 3)];
    key_heads = key.size(rank - 3);
    if (!broadcast(key_heads, value.size(rank - 3))) return std::nullopt;
    if (heads == 1) heads = key_heads;
    const bool divides = key_heads == 0 ? heads == 0 : heads % key_heads == 0;
    if (!divides) return std::nullopt;
  }
  auto view = [&](const at::Tensor& tensor, int64_t heads) {
    at::DimVector shape, strides;
    if (rank == 2) {
      shape.push_back(1);
      strides.push_back(0);
    }
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t size = d >= rank - 2 ? tensor.size(d) : d == rank - 3 ? heads : sizes[static_cast<size_t>(d)];
      shape.push_back(size);
      strides.push_back(tensor.size(d) == size ? tensor.stride(d) : 0);
    }
    return alias(tensor, shape, strides);
  };
  const int64_t heads = rank > 2 ? sizes[static_cast<size_t>(rank - 3)] : 1;
  return Operands{view(query, heads), view(key, key_heads), view(value, key_heads), sizes};
}

bool takes_mask(const at::Tensor& mask, at::IntArrayRef sizes, int64_t keys) {
  if (!is_kernel_dtype(mask.scalar_type()) && mask.scalar_type() != at::ScalarType::Bool) return false;
  const auto rank = static_cast<int64_t>(sizes.size());
  if (mask.dim() > rank) return false;
  for (int64_t d = 1; d <= mask.dim(); ++d) {
    const int64_t size = d == 1 ? keys : sizes[static_cast<size_t>(rank - d)];
    if (mask.size(-d) != 1 && mask.size(-d) != size) return false;
  }
  return true;
}

// Heads of keys that are fewer than the queries' are an error without enable_gqa, unless one broadcasts.
bool heads_are_allowed(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, bool enable_gqa) {
  if (query.dim() < 3) return true;
  const int64_t heads = query.size(-3), key_heads = key.size(-3), value_heads = value.size(-3);
  if (enable_gqa) return key_heads == value_heads && key_heads != 0 && heads % key_heads == 0;
  auto fits = [&](int64_t other) { return other == heads || other == 1 || heads == 1; };
  return fits(key_heads) && fits(value_heads);
}

// A program that asks for any of PyTorch's fused kernels gets this device's.
bool fused_is_allowed() {
  const at::Context& context = at::globalContext();
  return context.userEnabledOverrideableSDP() || context.userEnabledFlashSDP() ||
         context.userEnabledMemEfficientSDP() || context.userEnabledCuDNNSDP();
}

int64_t choose(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
               const std::optional<at::Tensor>& mask, double dropout, bool, std::optional<double>, bool enable_gqa) {
  if (fused_is_allowed() && dropout >= 0.0 && dropout <= 1.0 && heads_are_allowed(query, key, value, enable_gqa)) {
    const std::optional<Operands> found = operands(query, key, value);
    const bool masked = mask.has_value() && mask->defined();
    if (found && (!masked || takes_mask(*mask, found->sizes, key.size(-2)))) {
      return static_cast<int64_t>(at::SDPBackend::overrideable);
    }
  }
  const bool composed = at::globalContext().userEnabledMathSDP();
  return static_cast<int64_t>(composed ? at::SDPBackend::math : at::SDPBackend::error);
}

// _fused_sdp_choice(query, key, value, attn_mask?, dropout_p, is_causal, *, scale?, enable_gqa), asked by programs
// directly.
void fused_choice(Arguments& arguments) {
  arguments.give_integer(choose(arguments.tensor(0), arguments.tensor(1), arguments.tensor(2), arguments.tensor(3),
                                arguments.real(4), arguments.boolean(5), std::nullopt, arguments.boolean(7)));
}

// `sizes` in the order of dimensions that `model` has in memory: joining the heads of the result is then a view.
at::Tensor empty_in_order_of(const at::Tensor& model, at::IntArrayRef sizes) {
  const size_t rank = sizes.size();
  at::DimVector strides, order;
  for (size_t i = 0; i < rank; ++i) strides.push_back(0);
  for (size_t i = 0; i < rank - 1; ++i) order.push_back(static_cast<int64_t>(i));
  if (model.sizes().slice(0, rank - 1) == sizes.slice(0, rank - 1)) {
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t x, int64_t y) { return model.stride(x) > model.stride(y); });
  }
  order.push_back(static_cast<int64_t>(rank) - 1);
  int64_t stride = 1;
  for (size_t i = rank; i-- > 0;) {
    const auto d = static_cast<size_t>(order[i]);
    strides[d] = stride;
    stride *= std::max<int64_t>(1, sizes[d]);
  }
  return empty_strided(sizes, strides, model.scalar_type(), model.device());
}

// A 2-dimensional tensor with a dimension of one head.
at::Tensor with_heads(const at::Tensor& tensor, size_t rank) {
  if (static_cast<size_t>(tensor.dim()) >= rank) return tensor;
  at::DimVector sizes(tensor.sizes()), strides(tensor.strides());
  sizes.insert(sizes.begin(), 1);
  strides.insert(strides.begin(), 0);
  return alias(tensor, sizes, strides);
}

// scale; with dropout also its probability, seed and offset.
c10::SmallVector<Scalar, 4> scalars(const Arguments& arguments, int scale, const at::Tensor& query, double dropout,
                                    PhiloxState state) {
  const double factor =
      arguments.absent(scale) ? 1.0 / std::sqrt(static_cast<double>(query.size(-1))) : arguments.real(scale);
  c10::SmallVector<Scalar, 4> result{Scalar::of(factor)};
  if (dropout != 0.0) {
    for (Scalar value : {Scalar::of(dropout), Scalar::of(state.seed), Scalar::of(state.offset)}) {
      result.push_back(value);
    }
  }
  return result;
}

at::Tensor host_integer(int64_t value) {
  return at::_ops::scalar_tensor::call(value, at::ScalarType::Long, std::nullopt, at::Device(at::kCPU), std::nullopt);
}

// (query, key, value, attn_bias?, dropout_p, is_causal, return_debug_mask, *, scale?)
void forward(Arguments& arguments) {
  const at::Tensor &query = arguments.tensor(0), &key = arguments.tensor(1), &value = arguments.tensor(2),
                   &mask = arguments.tensor(3);
  const double dropout = arguments.real(4);
  const std::optional<Operands> found = operands(query, key, value);
  TORCH_CHECK(
      found && dropout >= 0.0 && dropout <= 1.0 && (!mask.defined() || takes_mask(mask, found->sizes, key.size(-2))),
      "scaled_dot_product_attention on neuron takes query, key and value of one rank (at least 2) and dtype "
      "(float32, bfloat16 or float16), a mask that broadcasts to the scores and a dropout_p in [0, 1]; got "
      "query ",
      query.scalar_type(), query.sizes(), ", key ", key.scalar_type(), key.sizes(), ", value ", value.scalar_type(),
      value.sizes(), ", mask ", mask.defined() ? mask.sizes() : at::IntArrayRef{}, " and dropout_p ", dropout);
  const at::Tensor* all[] = {&query, &key, &value, &mask};
  common_device(all);
  const at::IntArrayRef rows(found->sizes.data(), found->sizes.size() - 1);
  at::Tensor out = empty_in_order_of(query, found->sizes);
  at::Tensor logsumexp = empty(rows, at::ScalarType::Float, query.device());
  at::Tensor maxima = empty(rows, at::ScalarType::Float, query.device());
  at::Tensor sums = empty(rows, at::ScalarType::Float, query.device());
  PhiloxState state{0, 0};
  if (dropout != 0.0) state = reserve(std::nullopt, query.device(), logsumexp.numel() * ((key.size(-2) + 3) / 4));
  if (logsumexp.numel() != 0) {
    static const kernels::Kernel& found_kernel = kernel("attention");
    const auto rank = static_cast<size_t>(found->query.dim());
    const auto numbers = scalars(arguments, 7, query, dropout, state);
    record_kernel(found_kernel,
                  std::initializer_list<at::Tensor>{with_heads(out, rank), with_heads(logsumexp, rank - 1),
                                                    with_heads(maxima, rank - 1), with_heads(sums, rank - 1)},
                  std::initializer_list<at::Tensor>{found->query, found->key, found->value, mask},
                  std::initializer_list<int64_t>{arguments.boolean(5)}, std::span(numbers.data(), numbers.size()));
  }
  arguments.give(std::move(out));
  arguments.give(std::move(logsumexp));
  // cum_seq_q and cum_seq_k serve nested tensors, which this device has not. Their places take the largest scores and
  // the sums to the backward pass: where scores are large, as in rows of a mask that are all finfo.min, logsumexp alone
  // has lost what the sum was.
  arguments.give(std::move(maxima));
  arguments.give(std::move(sums));
  arguments.give_integer(query.size(-2));
  arguments.give_integer(key.size(-2));
  arguments.give(dropout != 0.0 ? host_integer(state.seed) : at::Tensor());
  arguments.give(dropout != 0.0 ? host_integer(state.offset) : at::Tensor());
  arguments.give(at::Tensor());  // debug_attn_mask
}

// The gradient of what was broadcast: the sum over those dimensions.
at::Tensor sum_to(const at::Tensor& gradient, at::IntArrayRef sizes) {
  at::DimVector dimensions;
  for (int64_t d = 0; d < gradient.dim(); ++d) {
    if (gradient.size(d) != sizes[static_cast<size_t>(d)]) dimensions.push_back(d);
  }
  if (dimensions.empty()) return gradient;
  return at::_ops::sum_dim_IntList::call(gradient, at::OptionalIntArrayRef(dimensions), true, std::nullopt);
}

// (grad_out, query, key, value, attn_bias, grad_input_mask, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k,
// dropout_p, is_causal, philox_seed, philox_offset, *, scale?)
void backward(Arguments& arguments) {
  const at::Tensor &gradient = arguments.tensor(0), &query = arguments.tensor(1), &key = arguments.tensor(2),
                   &value = arguments.tensor(3), &mask = arguments.tensor(4), &out = arguments.tensor(6),
                   &logsumexp = arguments.tensor(7), &maxima = arguments.tensor(8), &sums = arguments.tensor(9);
  const std::vector<bool> wanted = arguments.booleans(5);
  const double dropout = arguments.real(12);
  const std::optional<Operands> found = operands(query, key, value);
  TORCH_CHECK(found, "the gradient of scaled_dot_product_attention on neuron was asked for query ", query.sizes(),
              ", key ", key.sizes(), " and value ", value.sizes(), ", which its forward operator does not take");
  PhiloxState state{0, 0};
  if (dropout != 0.0) state = {arguments.tensor(14).item<int64_t>(), arguments.tensor(15).item<int64_t>()};
  const auto rank = static_cast<size_t>(found->query.dim());
  const auto numbers = scalars(arguments, 16, query, dropout, state);
  const bool exact = maxima.defined() && sums.defined();
  const std::vector<at::Tensor> inputs{with_heads(gradient, rank),
                                       found->query,
                                       found->key,
                                       found->value,
                                       with_heads(out, rank),
                                       with_heads(logsumexp, rank - 1),
                                       exact ? with_heads(maxima, rank - 1) : at::Tensor(),
                                       exact ? with_heads(sums, rank - 1) : at::Tensor(),
                                       mask};
  const int64_t attributes[] = {arguments.boolean(13), exact};
  const bool nothing = logsumexp.numel() == 0;
  const at::Tensor* originals[] = {&query, &key, &value};
  at::Tensor results[4];
  if (wanted[0] || wanted[1] || wanted[2]) {
    std::vector<at::Tensor> buffers, written;
    const at::Tensor* expanded[] = {&found->query, &found->key, &found->value};
    for (int i = 0; i < 3; ++i) {
      at::DimVector sizes(expanded[i]->sizes());
      if (rank > static_cast<size_t>(query.dim())) sizes.erase(sizes.begin());
      buffers.push_back(empty_in_order_of(*originals[i], sizes));
      written.push_back(with_heads(buffers.back(), rank));
    }
    if (nothing || key.size(-2) == 0) {
      for (const at::Tensor& buffer : buffers) record_fill(buffer, 0);
    } else {
      static const kernels::Kernel& found_kernel = kernel("attention_backward");
      record_kernel(found_kernel, std::span<const at::Tensor>(written), std::span<const at::Tensor>(inputs),
                    std::span<const int64_t>(attributes), std::span(numbers.data(), numbers.size()));
    }
    for (int i = 0; i < 3; ++i) {
      if (wanted[static_cast<size_t>(i)]) {
        results[i] = sum_to(buffers[static_cast<size_t>(i)], originals[i]->sizes());
      }
    }
  }
  if (wanted[3] && mask.defined()) {
    results[3] = empty(mask.sizes(), mask.scalar_type(), mask.device());
    if (nothing) {
      record_fill(results[3], 0);
    } else if (results[3].numel() != 0) {
      static const kernels::Kernel& found_kernel = kernel("attention_mask_gradient");
      record_kernel(found_kernel, std::span<const at::Tensor>(&results[3], 1), std::span<const at::Tensor>(inputs),
                    std::span<const int64_t>(attributes), std::span(numbers.data(), numbers.size()));
    }
  }
  for (at::Tensor& result : results) arguments.give(std::move(result));
}

const Registration registrations[] = {
    {"_fused_sdp_choice", fused_choice},
    {"_scaled_dot_product_fused_attention_overrideable", forward},
    {"_scaled_dot_product_fused_attention_overrideable_backward", backward},
};

}  // namespace
}  // namespace neuron::aten

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &neuron::aten::choose)
}  // namespace at::native
