// Kernels "attention" and "attention_backward": softmax(scale q k^T + mask) v without the matrix of scores in memory.
// Blocks of 64 queries meet blocks of 256 keys in order; a running maximum and sum per query make the softmax. A query
// that may attend to nothing gives zeros.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/attention_blocks.h"
#include "neuron/kernels/attention_rows.h"

namespace neuron::kernels {
namespace {

struct Buffers {
  Scratch query, key, value, scores, result, gradient, row_state, query_gradient, key_gradient, value_gradient;
};
thread_local Buffers buffers;

constexpr float kLowest = -std::numeric_limits<float>::infinity();

void forward_block(const AttentionProblem& p, const TensorView& out, const TensorView& logsumexp, int64_t batch,
                   int64_t head, int64_t row) {
  int64_t rows = std::min(kQueryBlock, p.queries - row), key_end = p.key_end(row, rows), key_head = head / p.group();
  Matrix query = block_of(*p.query, batch, head, row, rows, buffers.query);
  Matrix scores{buffers.scores.get<float>(kQueryBlock * kKeyBlock), kKeyBlock};
  Matrix result{buffers.result.get<float>(kQueryBlock * p.value_depth), p.value_depth};
  float maxima[kQueryBlock], sums[kQueryBlock];
  std::fill(maxima, maxima + rows, kLowest);
  std::fill(sums, sums + rows, 0.0f);
  if (key_end == 0) std::fill(result.data, result.data + rows * p.value_depth, 0.0f);
  for (int64_t first = 0; first < key_end; first += kKeyBlock) {
    int64_t keys = std::min(kKeyBlock, key_end - first);
    Matrix key = block_of(*p.key, batch, key_head, first, keys, buffers.key);
    masked_scores(p, batch, head, query, row, rows, key, first, keys, scores);
    for (int64_t i = 0; i < rows; ++i) {
      float* line = scores.data + i * scores.stride;
      float maximum = std::max(maxima[i], row_maximum(line, keys));
      float shift = maximum == kLowest ? 0.0f : maximum;
      float sum = exponentials(line, keys, shift);
      if (first > 0) {
        float fade = maxima[i] == kLowest ? 0.0f : std::exp(maxima[i] - shift);
        if (fade != 1.0f) scale_row(result.data + i * result.stride, p.value_depth, fade);
        sum = sums[i] * fade + sum;
      }
      sums[i] = sum;
      maxima[i] = maximum;
    }
    Matrix value = block_of(*p.value, batch, key_head, first, keys, buffers.value);
    multiply(scores, false, value, false, result, rows, p.value_depth, keys, 1, first > 0 ? 1 : 0);
  }
  auto* logs = logsumexp.as<float>() + batch * logsumexp.strides[0] + head * logsumexp.strides[1];
  for (int64_t i = 0; i < rows; ++i) {
    bool nothing = sums[i] == 0;
    scale_row(result.data + i * result.stride, p.value_depth, nothing ? 0.0f : 1.0f / sums[i]);
    logs[(row + i) * logsumexp.strides[2]] = nothing ? kLowest : maxima[i] + std::log(sums[i]);
  }
  store_block(out, batch, head, row, rows, result);
}

// outputs: out [batch, heads, queries, value depth], logsumexp float32 [batch, heads, queries]; inputs: query, key,
// value, optional mask; attributes: causal; scalars: scale.
void run_forward(const Call& call) {
  AttentionProblem p(call.inputs[0], call.inputs[1], call.inputs[2], call.inputs.size() > 3 ? &call.inputs[3] : nullptr,
                     call.attributes[0] != 0, call.scalars[0].as_double());
  int64_t blocks = (p.queries + kQueryBlock - 1) / kQueryBlock;
  parallel_for(call.threads, p.batch * p.heads * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      int64_t block = task % blocks, head = task / blocks % p.heads, batch = task / blocks / p.heads;
      forward_block(p, call.outputs[0], call.outputs[1], batch, head, block * kQueryBlock);
    }
  });
}

struct BackwardViews {
  const TensorView &out_gradient, &out, &logsumexp;
  const TensorView &query_gradient, &key_gradient, &value_gradient;
};

// All query heads of one key head: its gradients are sums over them, in order.
void backward_head(const AttentionProblem& p, const BackwardViews& views, int64_t batch, int64_t key_head) {
  Matrix key_gradient{buffers.key_gradient.get<float>(p.keys * p.depth), p.depth};
  Matrix value_gradient{buffers.value_gradient.get<float>(p.keys * p.value_depth), p.value_depth};
  std::fill(key_gradient.data, key_gradient.data + p.keys * p.depth, 0.0f);
  std::fill(value_gradient.data, value_gradient.data + p.keys * p.value_depth, 0.0f);
  Matrix keys = block_of(*p.key, batch, key_head, 0, p.keys, buffers.key);
  Matrix values = block_of(*p.value, batch, key_head, 0, p.keys, buffers.value);
  Matrix scores{buffers.scores.get<float>(2 * kQueryBlock * kKeyBlock), kKeyBlock};
  Matrix score_gradient{scores.data + kQueryBlock * kKeyBlock, kKeyBlock};
  Matrix query_gradient{buffers.query_gradient.get<float>(kQueryBlock * p.depth), p.depth};
  for (int64_t head = key_head * p.group(); head < (key_head + 1) * p.group(); ++head) {
    const float* logs =
        views.logsumexp.as<float>() + batch * views.logsumexp.strides[0] + head * views.logsumexp.strides[1];
    for (int64_t row = 0; row < p.queries; row += kQueryBlock) {
      int64_t rows = std::min(kQueryBlock, p.queries - row), key_end = p.key_end(row, rows);
      Matrix query = block_of(*p.query, batch, head, row, rows, buffers.query);
      Matrix gradient = block_of(views.out_gradient, batch, head, row, rows, buffers.gradient);
      Matrix out = block_of(views.out, batch, head, row, rows, buffers.result);
      float corrections[kQueryBlock];
      for (int64_t i = 0; i < rows; ++i) {
        corrections[i] = row_dot(gradient.data + i * gradient.stride, out.data + i * out.stride, p.value_depth);
      }
      if (key_end == 0) std::fill(query_gradient.data, query_gradient.data + rows * p.depth, 0.0f);
      for (int64_t first = 0; first < key_end; first += kKeyBlock) {
        int64_t count = std::min(kKeyBlock, key_end - first);
        Matrix key{keys.data + first * keys.stride, keys.stride};
        Matrix value{values.data + first * values.stride, values.stride};
        masked_scores(p, batch, head, query, row, rows, key, first, count, scores);
        for (int64_t i = 0; i < rows; ++i) {
          float log = logs[(row + i) * views.logsumexp.strides[2]];
          float* line = scores.data + i * scores.stride;
          // A query without keys: its scores are all -infinity, and so are their exponentials' arguments.
          exponentials(line, count, log == kLowest ? 0.0f : log);
        }
        multiply(scores, true, gradient, false,
                 {value_gradient.data + first * value_gradient.stride, value_gradient.stride}, count, p.value_depth,
                 rows, 1, 1);
        multiply(gradient, false, value, true, score_gradient, rows, count, p.value_depth, 1, 0);
        for (int64_t i = 0; i < rows; ++i) {
          score_gradients(scores.data + i * scores.stride, score_gradient.data + i * score_gradient.stride, count,
                          corrections[i], p.scale);
        }
        multiply(scores, false, key, false, query_gradient, rows, p.depth, count, 1, first > 0 ? 1 : 0);
        multiply(scores, true, query, false, {key_gradient.data + first * key_gradient.stride, key_gradient.stride},
                 count, p.depth, rows, 1, 1);
      }
      store_block(views.query_gradient, batch, head, row, rows, query_gradient);
    }
  }
  store_block(views.key_gradient, batch, key_head, 0, p.keys, key_gradient);
  store_block(views.value_gradient, batch, key_head, 0, p.keys, value_gradient);
}

// outputs: gradients of query, key, value; inputs: gradient of out, query, key, value, out, logsumexp, optional mask;
// attributes: causal; scalars: scale.
void run_backward(const Call& call) {
  AttentionProblem p(call.inputs[1], call.inputs[2], call.inputs[3], call.inputs.size() > 6 ? &call.inputs[6] : nullptr,
                     call.attributes[0] != 0, call.scalars[0].as_double());
  BackwardViews views{call.inputs[0],  call.inputs[4],  call.inputs[5],
                      call.outputs[0], call.outputs[1], call.outputs[2]};
  parallel_for(call.threads, p.batch * p.key_heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) backward_head(p, views, task / p.key_heads, task % p.key_heads);
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "attention", .run = run_forward}),
    KernelRegistration({.name = "attention_backward", .run = run_backward}),
};

}  // namespace
}  // namespace neuron::kernels
