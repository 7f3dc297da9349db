// scaled_dot_product_attention: which calls take the tiled kernel, and the pair of operators that PyTorch offers for
// it.
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/transformers/attention.h>

#include <algorithm>
#include <cmath>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/registration.h"

namespace neuron::aten {
namespace {

bool is_supported(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  const at::ScalarType type = query.scalar_type();
  if (type != at::ScalarType::Float && type != at::ScalarType::BFloat16 && type != at::ScalarType::Half) return false;
  if (key.scalar_type() != type || value.scalar_type() != type) return false;
  if (query.dim() != 4 || key.dim() != 4 || value.dim() != 4) return false;
  if (query.numel() == 0 || key.numel() == 0 || value.numel() == 0) return false;
  return key.size(0) == query.size(0) && value.size(0) == query.size(0) && key.size(1) == value.size(1) &&
         key.size(2) == value.size(2) && key.size(3) == query.size(3) && query.size(1) % key.size(1) == 0;
}

int64_t choose(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
               const std::optional<at::Tensor>& mask, double dropout, bool, std::optional<double>, bool) {
  const bool allowed = at::globalContext().userEnabledOverrideableSDP();
  const bool masked = mask.has_value() && mask->defined();
  const bool plain_mask = !masked || (!mask->requires_grad() && mask->dim() <= 4);
  return static_cast<int64_t>(allowed && dropout == 0.0 && plain_mask && is_supported(query, key, value)
                                  ? at::SDPBackend::overrideable
                                  : at::SDPBackend::math);
}

// _fused_sdp_choice(query, key, value, attn_mask?, dropout_p, is_causal, *, scale?, enable_gqa), asked by programs
// directly.
void fused_choice(Arguments& arguments) {
  arguments.give_integer(choose(arguments.tensor(0), arguments.tensor(1), arguments.tensor(2), arguments.tensor(3),
                                arguments.real(4), arguments.boolean(5), std::nullopt, arguments.boolean(7)));
}

// The result has the query's order of dimensions in memory: joining the heads again is then a view.
at::Tensor like_query(const at::Tensor& query, int64_t depth) {
  at::DimVector sizes(query.sizes()), strides(4), order{0, 1, 2};
  sizes[3] = depth;
  std::stable_sort(order.begin(), order.end(), [&](int64_t x, int64_t y) { return query.stride(x) > query.stride(y); });
  order.push_back(3);
  int64_t stride = 1;
  for (size_t i = 4; i-- > 0;) {
    strides[static_cast<size_t>(order[i])] = stride;
    stride *= sizes[static_cast<size_t>(order[i])];
  }
  return empty_strided(sizes, strides, query.scalar_type(), query.device());
}

Scalar scale_of(const Arguments& arguments, int i, const at::Tensor& query) {
  return Scalar::of(arguments.absent(i) ? 1.0 / std::sqrt(static_cast<double>(query.size(3))) : arguments.real(i));
}

// (query, key, value, attn_bias?, dropout_p, is_causal, return_debug_mask, *, scale?)
void forward(Arguments& arguments) {
  const at::Tensor &query = arguments.tensor(0), &key = arguments.tensor(1), &value = arguments.tensor(2),
                   &mask = arguments.tensor(3);
  TORCH_CHECK(is_supported(query, key, value) && arguments.real(4) == 0.0,
              "scaled_dot_product_attention on neuron takes 4-dimensional float32, bfloat16 or float16 tensors of one "
              "dtype without dropout; got query ",
              query.sizes(), ", key ", key.sizes(), ", value ", value.sizes(), " and dropout_p ", arguments.real(4));
  const at::Tensor* all[] = {&query, &key, &value, &mask};
  common_device(all);
  at::Tensor out = like_query(query, value.size(3));
  at::Tensor logsumexp = empty({query.size(0), query.size(1), query.size(2)}, at::ScalarType::Float, query.device());
  static const kernels::Kernel& found = kernel("attention");
  record_kernel(found, {out, logsumexp}, {query, key, value, mask}, {arguments.boolean(5)},
                {scale_of(arguments, 7, query)});
  arguments.give(std::move(out));
  arguments.give(std::move(logsumexp));
  arguments.give(at::Tensor());  // cum_seq_q, cum_seq_k: for nested tensors only
  arguments.give(at::Tensor());
  arguments.give_integer(query.size(2));
  arguments.give_integer(key.size(2));
  arguments.give(at::Tensor());  // philox_seed, philox_offset: no dropout
  arguments.give(at::Tensor());
  arguments.give(at::Tensor());  // debug_attn_mask
}

// (grad_out, query, key, value, attn_bias, grad_input_mask, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k,
// dropout_p, is_causal, philox_seed, philox_offset, *, scale?)
void backward(Arguments& arguments) {
  const at::Tensor &gradient = arguments.tensor(0), &query = arguments.tensor(1), &key = arguments.tensor(2),
                   &value = arguments.tensor(3), &mask = arguments.tensor(4), &out = arguments.tensor(6),
                   &logsumexp = arguments.tensor(7);
  at::Tensor query_gradient = like_query(query, query.size(3)), key_gradient = like_query(key, key.size(3)),
             value_gradient = like_query(value, value.size(3));
  static const kernels::Kernel& found = kernel("attention_backward");
  record_kernel(found, {query_gradient, key_gradient, value_gradient},
                {gradient, query, key, value, out, logsumexp, mask}, {arguments.boolean(13)},
                {scale_of(arguments, 16, query)});
  arguments.give(std::move(query_gradient));
  arguments.give(std::move(key_gradient));
  arguments.give(std::move(value_gradient));
  arguments.give(at::Tensor());
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
