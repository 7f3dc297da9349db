// The backward pass on matrix units. As in attention_backward.cpp every gradient is summed in an order of its own: that
// of a key over panels, that of a query over blocks of keys. Panels meet keys in pairs, whose lanes fill three tiles.
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/attention_matrix.h"
#include "neuron/kernels/matrix_units.h"

namespace neuron::kernels {
namespace {

constexpr int64_t kGradientKeys = 128;  // a block of keys; part of the order of summation
constexpr int64_t kKeysTogether = 64;   // whose scores stay in the nearest cache
constexpr int64_t kPairLanes = 2 * kLanes;

struct Buffers {
  Scratch keys, values, key_columns, scores, gradients, units, probability_rows, gradient_rows, bias, keep, panels,
      panel_rows, query_gradient, key_gradient, value_gradient, rows, corrections;
};
thread_local Buffers buffers;

struct PanelGradient {
  Panel panel;
  const float *query, *out_gradient;  // right operands
  PanelSums sums;
  float scale;  // late_scale()
};

// Keys [first, first + count) of one head.
struct KeyBlock {
  int64_t first, count;
  LeftTiles keys, values, key_columns;

  KeyBlock(const AttentionProblem& p, int64_t batch, int64_t key_head, int64_t first)
      : first(first), count(std::min(kGradientKeys, p.keys - first)) {
    Rows key = p.rows_of(*p.key, batch), value = p.rows_of(*p.value, batch);
    keys = left_rows(key, key_head, first, count, buffers.keys, buffers.rows);
    values = left_rows(value, key_head, first, count, buffers.values, buffers.rows);
    key_columns = left_columns(key, key_head, first, count, buffers.key_columns, buffers.rows);
  }
};

class Backward {
 public:
  Backward(const AttentionProblem& problem, const AttentionGradients& views, const TensorView& query_gradient,
           const TensorView& key_gradient, const TensorView& value_gradient)
      : p_(problem),
        views_(views),
        query_gradient_(query_gradient),
        key_gradient_(key_gradient),
        value_gradient_(value_gradient),
        rows_(problem.group() * problem.queries),
        panels_((rows_ + kLanes - 1) / kLanes),
        blocks_((problem.keys + kGradientKeys - 1) / kGradientKeys),
        width_(round_up(problem.depth, 16)),
        value_width_(round_up(problem.value_depth, 16)),
        query_size_(kLanes * right_panel_units(problem.depth)),
        prepared_size_(query_size_ + kLanes * right_panel_units(problem.value_depth)),
        rows_size_(kLanes / 2 * (width_ + value_width_)) {}

  int64_t heads() const { return p_.batch * p_.key_heads; }
  int64_t panels() const { return panels_; }
  int64_t blocks() const { return blocks_; }

  // All gradients of one key head and its queries.
  void head(int64_t head) const {
    const MatrixTiles tiles;
    const int64_t gradient_size = kLanes * width_;
    float* gradients = buffers.query_gradient.get<float>(panels_ * gradient_size);
    std::fill(gradients, gradients + panels_ * gradient_size, 0.0f);
    float* memory = buffers.panels.get<float>(panels_ * prepared_size_);
    float* rows = buffers.panel_rows.get<float>(round_up(panels_, 2) * rows_size_);
    std::vector<PanelGradient> prepared;
    prepared.reserve(panels_);
    for (int64_t i = 0; i < panels_; ++i) {
      prepared.push_back(prepare(head, i, memory + i * prepared_size_));
      load_rows(head, prepared.back().panel, i % 2, rows + i / 2 * 2 * rows_size_);
    }
    for (int64_t b = 0; b < blocks_; ++b) {
      auto pair_at = [&](int64_t i) {
        return Pair{{&prepared[i], i + 1 < panels_ ? &prepared[i + 1] : nullptr}, rows + i * rows_size_};
      };
      key_block(head, b, pair_at, [&](const KeyBlock& block, const float* units, int lanes, int64_t panel) {
        add_query_gradient(block, units, lanes, gradients + panel * gradient_size);
      });
    }
    for (int64_t i = 0; i < panels_; ++i) store_query_gradient(head, prepared[i].panel, gradients + i * gradient_size);
  }

  // Those of one block of keys alone, or of one panel of queries.
  void keys(int64_t head, int64_t index) const {
    const MatrixTiles tiles;
    float* memory = buffers.panels.get<float>(2 * prepared_size_);
    float* rows = buffers.panel_rows.get<float>(2 * rows_size_);
    std::optional<PanelGradient> prepared[2];
    auto pair_at = [&](int64_t i) {
      Pair pair{{nullptr, nullptr}, rows};
      for (int64_t j = 0; j < 2 && i + j < panels_; ++j) {
        Panel lanes = panel(head, i + j);
        load_rows(head, lanes, j, rows);
        if (lanes.key_end <= index * kGradientKeys) continue;
        pair.panels[j] = &prepared[j].emplace(prepare(head, i + j, memory + j * prepared_size_));
      }
      return pair;
    };
    key_block(head, index, pair_at, [](const KeyBlock&, const float*, int, int64_t) {});
  }
  void queries(int64_t head, int64_t index) const {
    const MatrixTiles tiles;
    float* gradient = buffers.query_gradient.get<float>(kLanes * width_);
    std::fill(gradient, gradient + kLanes * width_, 0.0f);
    PanelGradient g = prepare(head, index, buffers.panels.get<float>(prepared_size_));
    auto* probabilities = buffers.probability_rows.get<uint16_t>(kGradientKeys * kPairLanes);
    auto* gradients = buffers.gradient_rows.get<uint16_t>(kGradientKeys * kPairLanes);
    float* units = buffers.units.get<float>(kGradientKeys / 2 * kLanes);
    for (int64_t first = 0; first < g.panel.key_end; first += kGradientKeys) {
      KeyBlock block(p_, head / p_.key_heads, head % p_.key_heads, first);
      if (score_gradient(head, g, block, probabilities, gradients, units)) {
        add_query_gradient(block, units, g.panel.lanes, gradient);
      }
    }
    store_query_gradient(head, g.panel, gradient);
  }

 private:
  // Two neighbours; null: it has no queries, or they attend to none of the keys. Of both, one after the other: rows of
  // the gradient of out summed over lanes, then those of the queries.
  struct Pair {
    const PanelGradient* panels[2];
    const float* rows;
  };

  Panel panel(int64_t head, int64_t index) const {
    return Panel(p_, head / p_.key_heads, head % p_.key_heads * p_.group(), index * kLanes, rows_ - index * kLanes);
  }

  PanelGradient prepare(int64_t head, int64_t index, float* memory) const {
    const int64_t batch = head / p_.key_heads;
    Panel lanes = panel(head, index);
    load_right_panel(p_, p_.rows_of(*p_.query, batch), lanes, buffers.rows, memory);
    load_right_panel(p_, p_.rows_of(views_.out_gradient, batch), lanes, buffers.rows, memory + query_size_);
    PanelGradient g{lanes, memory, memory + query_size_, PanelSums(p_, views_, batch, lanes, buffers.corrections), 0};
    g.scale = late_scale(p_, g.sums.maxima, lanes.lanes);
    return g;
  }

  // The first of a pair clears what there may be no second one for.
  void load_rows(int64_t head, const Panel& lanes, int64_t index, float* rows) const {
    const int64_t batch = head / p_.key_heads, value_size = kLanes / 2 * value_width_, size = kLanes / 2 * width_;
    if (index == 0) {
      std::memset(rows + value_size, 0, value_size * sizeof(float));
      std::memset(rows + 2 * value_size + size, 0, size * sizeof(float));
    }
    load_right_rows(p_, p_.rows_of(views_.out_gradient, batch), lanes, buffers.rows, rows + index * value_size);
    load_right_rows(p_, p_.rows_of(*p_.query, batch), lanes, buffers.rows, rows + 2 * value_size + index * size);
  }

  // Probabilities and gradients of the scores of a panel and a block of keys, the former as rows of a pair's lanes,
  // the latter also as units of keys. False when the panel attends to none of the keys.
  bool score_gradient(int64_t head, const PanelGradient& g, const KeyBlock& block, uint16_t* probabilities,
                      uint16_t* gradients, float* units) const {
    const AttentionMatrixUnits& matrix = attention_matrix_units;
    const int lanes = static_cast<int>(round_up(g.panel.lanes, 16));
    const int64_t count = std::min(block.count, g.panel.key_end - block.first);
    if (count <= 0) return false;
    float* bias = nullptr;
    if (p_.mask != nullptr) {
      bias = buffers.bias.get<float>(kGradientKeys * kLanes);
      AttentionProblem::MaskRows mask = p_.mask_rows(head / p_.key_heads);
      if (!load_bias(p_, mask, g.panel, block.first, count, buffers.rows, bias)) return false;
    }
    float* keep = nullptr;
    if (p_.drops) {
      keep = buffers.keep.get<float>(kGradientKeys * kLanes);
      p_.tiles->dropout(p_.seed, g.panel.counters, block.first, count, lanes, p_.threshold, p_.kept, keep);
    }
    float* scores = buffers.scores.get<float>(kKeysTogether * kLanes);
    float* score_gradients = buffers.gradients.get<float>(kKeysTogether * kLanes);
    SoftmaxGradient inputs;
    inputs.maxima = g.sums.maxima;
    inputs.inverse_sums = g.sums.inverse_sums;
    inputs.corrections = g.sums.corrections;
    for (int64_t k = 0; k < count; k += kKeysTogether) {
      const int64_t part = std::min(kKeysTogether, count - k), first = block.first + k;
      matrix.scores(block.keys.from_row(k), part, round_up(p_.depth, 32), g.query, lanes, scores);
      matrix.scores(block.values.from_row(k), part, round_up(p_.value_depth, 32), g.out_gradient, lanes,
                    score_gradients);
      const bool crosses = first + part > g.panel.open_end;
      if (crosses || g.scale == 0) {
        matrix.mask(scores, part, lanes, g.scale == 0 ? p_.scale : 1.0f, bias == nullptr ? nullptr : bias + k * kLanes,
                    crosses ? g.panel.limits : nullptr, first);
      }
      inputs.keep = keep == nullptr ? nullptr : keep + k * kLanes;
      matrix.softmax_gradient(scores, score_gradients, part, lanes, g.scale, inputs, probabilities + k * kPairLanes,
                              gradients + k * kPairLanes, kPairLanes, units + k / 2 * kLanes);
    }
    for (int64_t k = round_up(count, 32); k < round_up(block.count, 32); ++k) {
      std::fill_n(probabilities + k * kPairLanes, kLanes, uint16_t{0});
      std::fill_n(gradients + k * kPairLanes, kLanes, uint16_t{0});
      if (k % 2 == 0) std::fill_n(units + k / 2 * kLanes, kLanes, 0.0f);
    }
    return true;
  }

  // pair_at(i) gives panels i and i + 1.
  template <typename PairAt, typename Visit>
  void key_block(int64_t head, int64_t index, const PairAt& pair_at, const Visit& visit) const {
    const int64_t batch = head / p_.key_heads, key_head = head % p_.key_heads;
    KeyBlock block(p_, batch, key_head, index * kGradientKeys);
    const int64_t padded = round_up(block.count, 16);
    float* key_gradient = buffers.key_gradient.get<float>(kGradientKeys * width_);
    float* value_gradient = buffers.value_gradient.get<float>(kGradientKeys * value_width_);
    auto* probabilities = buffers.probability_rows.get<uint16_t>(kGradientKeys * kPairLanes);
    auto* gradients = buffers.gradient_rows.get<uint16_t>(kGradientKeys * kPairLanes);
    float* units = buffers.units.get<float>(kGradientKeys / 2 * kLanes);
    bool started = false;
    for (int64_t i = 0; i < panels_; i += 2) {
      const Pair pair = pair_at(i);
      bool met[2] = {};
      for (int j = 0; j < 2; ++j) {
        const PanelGradient* g = pair.panels[j];
        met[j] =
            g != nullptr && score_gradient(head, *g, block, probabilities + j * kLanes, gradients + j * kLanes, units);
        if (met[j]) visit(block, units, g->panel.lanes, i + j);
      }
      if (!met[0] && !met[1]) continue;
      for (int j = 0; j < 2; ++j) {
        for (int64_t k = 0; k < padded && !met[j]; ++k) {
          std::fill_n(probabilities + k * kPairLanes + j * kLanes, kLanes, uint16_t{0});
          std::fill_n(gradients + k * kPairLanes + j * kLanes, kLanes, uint16_t{0});
        }
      }
      auto product = [&](const uint16_t* left, const float* right, int64_t width, float* gradient) {
        attention_matrix_units.multiply({reinterpret_cast<const char*>(left), kPairLanes * 2}, padded, kPairLanes,
                                        right, width * 4, width, gradient, width, started);
      };
      product(probabilities, pair.rows, value_width_, value_gradient);
      product(gradients, pair.rows + kLanes * value_width_, width_, key_gradient);
      started = true;
    }
    if (!started) {
      std::fill(key_gradient, key_gradient + kGradientKeys * width_, 0.0f);
      std::fill(value_gradient, value_gradient + kGradientKeys * value_width_, 0.0f);
    }
    store_rows(key_gradient_, batch, key_head, block, key_gradient, width_, p_.scale);
    store_rows(value_gradient_, batch, key_head, block, value_gradient, value_width_, 1);
  }

  void add_query_gradient(const KeyBlock& block, const float* units, int lanes, float* gradient) const {
    attention_matrix_units.multiply(block.key_columns, width_, round_up(block.count, 32), units, kLanes * 4,
                                    round_up(lanes, 16), gradient, kLanes, true);
  }

  void store_query_gradient(int64_t head, const Panel& lanes, const float* gradient) const {
    alignas(64) float factors[kLanes];
    std::fill(factors, factors + kLanes, p_.scale);
    store_lanes(p_.rows_of(query_gradient_, head / p_.key_heads), lanes, gradient, factors, buffers.rows);
  }

  void store_rows(const TensorView& view, int64_t batch, int64_t key_head, const KeyBlock& block, const float* values,
                  int64_t stride, float factor) const {
    Rows rows = p_.rows_of(view, batch);
    char* target = rows.at(key_head, block.first);
    if (rows.step() == 1) {
      attention_matrix_units.store_rows(values, stride, block.count, rows.columns, factor, target, rows.row);
      return;
    }
    char* copy = buffers.rows.get<char>(rows.columns * 2);
    for (int64_t k = 0; k < block.count; ++k) {
      attention_matrix_units.store_rows(values + k * stride, stride, 1, rows.columns, factor, copy, 0);
      for (int64_t j = 0; j < rows.columns; ++j) std::memcpy(target + k * rows.row + j * rows.column, copy + 2 * j, 2);
    }
  }

  const AttentionProblem& p_;
  const AttentionGradients& views_;
  const TensorView &query_gradient_, &key_gradient_, &value_gradient_;
  int64_t rows_, panels_, blocks_, width_, value_width_;
  int64_t query_size_, prepared_size_, rows_size_;  // of a panel's right operands, in floats
};

}  // namespace

void differentiate_on_matrix_units(const AttentionProblem& p, const AttentionGradients& views,
                                   const TensorView& query_gradient, const TensorView& key_gradient,
                                   const TensorView& value_gradient, int threads) {
  Backward work(p, views, query_gradient, key_gradient, value_gradient);
  if (threads <= work.heads()) {
    parallel_for(threads, work.heads(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head) work.head(head);
    });
    return;
  }
  // Too few heads to feed the threads: keys and queries are shared out instead, and scores computed for both.
  parallel_for(threads, work.heads() * work.blocks(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) work.keys(i / work.blocks(), balanced(i % work.blocks(), work.blocks()));
  });
  parallel_for(threads, work.heads() * work.panels(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) work.queries(i / work.panels(), balanced(i % work.panels(), work.panels()));
  });
}

}  // namespace neuron::kernels
