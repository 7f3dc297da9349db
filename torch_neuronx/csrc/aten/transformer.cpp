// What nn.TransformerEncoderLayer and nn.MultiheadAttention call in place of their modules when they evaluate without
// gradients: composed of the operators they are made of, which the device fuses by itself.
#include <ATen/core/Tensor.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/layer_norm_ops.h>
#include <ATen/ops/linear_ops.h>
#include <ATen/ops/logical_not_ops.h>
#include <ATen/ops/masked_fill_ops.h>
#include <ATen/ops/matmul_ops.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/relu_ops.h>
#include <ATen/ops/reshape_ops.h>
#include <ATen/ops/scaled_dot_product_attention_ops.h>
#include <ATen/ops/select_ops.h>
#include <ATen/ops/softmax_ops.h>
#include <ATen/ops/transpose_ops.h>

#include <cmath>
#include <limits>

#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/registration.h"

namespace neuron::aten {
namespace {

struct Attention {
  int64_t heads;
  at::Tensor qkv_weight, qkv_bias, projection_weight, projection_bias;
  at::Tensor mask;  // true: not attended to; broadcasts to [batch, heads, length, length]; or undefined
};

at::Tensor reshape(const at::Tensor& tensor, at::IntArrayRef sizes) {
  return at::_ops::reshape::call(tensor, c10::fromIntArrayRefSlow(sizes));
}

// Type 0: [length, length]; 1: padding, [batch, length]; 2: [batch, heads, length, length]. Other dtypes than bool mark
// what is left out by anything but 0.
at::Tensor mask_of(const at::Tensor& mask, bool padding) {
  if (!mask.defined()) return mask;
  const at::Tensor truth = to_dtype(mask, at::ScalarType::Bool);
  return padding ? reshape(truth, {truth.size(0), 1, 1, truth.size(1)}) : truth;
}

// Self attention of x [batch, length, embedding]. Gives the weights too [batch, heads, length, length] when `weights`
// is not null.
at::Tensor attend(const at::Tensor& x, const Attention& a, at::Tensor* weights) {
  const int64_t batch = x.size(0), length = x.size(1), width = x.size(2), depth = width / a.heads;
  const at::Tensor qkv =
      reshape(at::_ops::linear::call(x, a.qkv_weight, a.qkv_bias), {batch, length, 3, a.heads, depth});
  at::Tensor parts[3];
  for (int i = 0; i < 3; ++i) {
    parts[i] = at::_ops::transpose_int::call(at::_ops::select_int::call(qkv, 2, i), 1, 2);
  }
  at::Tensor out;
  if (weights == nullptr) {
    std::optional<at::Tensor> attended;
    if (a.mask.defined()) attended = at::_ops::logical_not::call(a.mask);
    out = at::_ops::scaled_dot_product_attention::call(parts[0], parts[1], parts[2], attended, 0.0, false, std::nullopt,
                                                       false);
  } else {
    const at::Tensor query = at::_ops::mul_Scalar::call(parts[0], 1.0 / std::sqrt(static_cast<double>(depth)));
    at::Tensor scores = at::_ops::matmul::call(query, at::_ops::transpose_int::call(parts[1], 2, 3));
    if (a.mask.defined()) {
      scores = at::_ops::masked_fill_Scalar::call(scores, a.mask, -std::numeric_limits<double>::infinity());
    }
    *weights = at::_ops::softmax_int::call(scores, 3, std::nullopt);
    out = at::_ops::matmul::call(*weights, parts[2]);
  }
  out = reshape(at::_ops::transpose_int::call(out, 1, 2), {batch, length, width});
  return at::_ops::linear::call(out, a.projection_weight, a.projection_bias);
}

at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps) {
  return at::_ops::layer_norm::call(x, c10::fromIntArrayRefSlow(x.sizes().slice(2)), weight, bias, eps, true);
}

// _transformer_encoder_layer_fwd(src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu,
// norm_first, eps, norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2,
// ffn_bias_2, mask?, mask_type?).
void encoder_layer(Arguments& arguments) {
  const at::Tensor& src = arguments.tensor(0);
  if (src.dim() != 3) decline();
  const bool use_gelu = arguments.boolean(7), norm_first = arguments.boolean(8);
  const double eps = arguments.real(9);
  const Attention attention{arguments.integer(2), arguments.tensor(3),
                            arguments.tensor(4),  arguments.tensor(5),
                            arguments.tensor(6),  mask_of(arguments.tensor(18), arguments.integer(19, 0) == 1)};
  auto first = [&](const at::Tensor& x) { return norm(x, arguments.tensor(10), arguments.tensor(11), eps); };
  auto second = [&](const at::Tensor& x) { return norm(x, arguments.tensor(12), arguments.tensor(13), eps); };
  auto add = [](const at::Tensor& x, const at::Tensor& y) { return at::_ops::add_Tensor::call(x, y, 1); };
  auto feed_forward = [&](const at::Tensor& x) {
    const at::Tensor hidden = at::_ops::linear::call(x, arguments.tensor(14), arguments.tensor(15));
    const at::Tensor active = use_gelu ? at::_ops::gelu::call(hidden, "none") : at::_ops::relu::call(hidden);
    return at::_ops::linear::call(active, arguments.tensor(16), arguments.tensor(17));
  };
  if (norm_first) {
    const at::Tensor x = add(src, attend(first(src), attention, nullptr));
    arguments.give(add(x, feed_forward(second(x))));
  } else {
    const at::Tensor x = first(add(src, attend(src, attention, nullptr)));
    arguments.give(second(add(x, feed_forward(x))));
  }
}

// _native_multi_head_attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias,
// mask?, need_weights, average_attn_weights, mask_type?) -> (output, weights).
void multi_head_attention(Arguments& arguments) {
  const at::Tensor& query = arguments.tensor(0);
  const bool self_attention =
      query.is_same(arguments.tensor(1)) && query.is_same(arguments.tensor(2)) && query.dim() == 3;
  if (!self_attention) decline();
  const Attention attention{arguments.integer(4), arguments.tensor(5),
                            arguments.tensor(6),  arguments.tensor(7),
                            arguments.tensor(8),  mask_of(arguments.tensor(9), arguments.integer(12, 0) == 1)};
  const bool need_weights = arguments.boolean(10), average = arguments.boolean(11);
  at::Tensor weights;
  arguments.give(attend(query, attention, need_weights ? &weights : nullptr));
  const int64_t heads[] = {1};
  if (need_weights && average) weights = at::_ops::mean_dim::call(weights, heads, false, std::nullopt);
  arguments.give(weights);
}

const Registration registrations[] = {
    {"_transformer_encoder_layer_fwd", encoder_layer},
    {"_native_multi_head_attention", multi_head_attention},
};

}  // namespace
}  // namespace neuron::aten
