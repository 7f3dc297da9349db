// Kernels "attention_backward" and "attention_mask_gradient". Scores are computed again, block of keys by panel of
// queries. Every gradient is summed in an order of its own: that of a key over panels, that of a query over blocks of
// keys; so it does not matter which of the two is walked outside, and threads can share keys or queries.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/attention.h"
#include "neuron/kernels/attention_matrix.h"
#include "neuron/kernels/float_lines.h"

namespace neuron::kernels {
namespace {

struct Buffers {
  Scratch keys, values, paired_keys, scores, gradients, rounded, bias, keep, panels, query_gradient, key_gradient,
      value_gradient, rows, corrections, mask_gradient;
};
thread_local Buffers buffers;

// One panel of queries with all that products need of it.
struct PanelGradient {
  Panel panel;
  const float *query, *out_gradient;           // [unit][lane]
  const void *query_rows, *out_gradient_rows;  // [unit of lanes][columns, padded to 16]; null: not asked for
  PanelSums sums;
};

// What prepare() writes for a panel, in floats.
struct PanelSizes {
  int64_t query, out_gradient, query_rows, out_gradient_rows;
  explicit PanelSizes(const AttentionProblem& p)
      : query(kLanes * p.units(p.depth)),
        out_gradient(kLanes * p.units(p.value_depth)),
        query_rows(kLanes * round_up(p.depth, 16)),
        out_gradient_rows(kLanes * round_up(p.value_depth, 16)) {}
  int64_t all() const { return query + out_gradient + query_rows + out_gradient_rows; }
};

// The panel's rows as units along the lanes, columns padded with zeros to a multiple of 16: the memory itself where it
// has this form, else `target`.
const void* lane_rows(const AttentionProblem& p, const Rows& rows, const Panel& panel, float* target) {
  int64_t width = round_up(rows.columns, 16), columns = rows.columns;
  if (!p.pairs) {
    bool adjacent = panel.heads[0] == panel.heads[panel.lanes - 1] && rows.row == width * 4;
    if (rows.dtype == DType::Float32 && rows.step() == 1 && columns == width && adjacent) {
      return rows.at(panel.heads[0], panel.positions[0]);
    }
    for (int i = 0; i < panel.lanes; ++i) {
      widen_row(rows.dtype, rows.at(panel.heads[i], panel.positions[i]), rows.step(), columns, target + i * width);
      std::fill(target + i * width + columns, target + (i + 1) * width, 0.0f);
    }
    return target;
  }
  auto* gathered = buffers.rows.get<uint16_t>(kLanes * columns + 1);
  for (int i = 0; i < panel.lanes; ++i) {
    const char* source = rows.at(panel.heads[i], panel.positions[i]);
    if (rows.step() == 1) {
      std::memcpy(gathered + i * columns, source, columns * 2);
    } else {
      for (int64_t j = 0; j < columns; ++j) std::memcpy(gathered + i * columns + j, source + j * rows.column, 2);
    }
  }
  if (columns != width) std::memset(target, 0, kLanes / 2 * width * 4);
  p.tiles->pair_rows(reinterpret_cast<const char*>(gathered), columns * 2, panel.lanes, columns,
                     reinterpret_cast<uint32_t*>(target), width);
  return target;
}

// `memory` is of PanelSizes.
PanelGradient prepare(const AttentionProblem& p, const AttentionGradients& views, int64_t batch, const Panel& panel,
                      bool with_rows, float* memory) {
  PanelGradient g{panel, nullptr, nullptr, nullptr, nullptr, PanelSums(p, views, batch, panel, buffers.corrections)};
  const PanelSizes sizes(p);
  Rows query = p.rows_of(*p.query, batch), gradient = p.rows_of(views.out_gradient, batch);
  load_queries(p, query, panel, buffers.rows, memory);
  g.query = memory;
  memory += sizes.query;
  load_panel(p, gradient, panel, buffers.rows, memory);
  g.out_gradient = memory;
  memory += sizes.out_gradient;
  g.query_rows = with_rows ? lane_rows(p, query, panel, memory) : nullptr;
  memory += sizes.query_rows;
  g.out_gradient_rows = with_rows ? lane_rows(p, gradient, panel, memory) : nullptr;
  return g;
}

// Keys [first, first + count) of one head as the products of the backward pass take them.
struct KeyBlock {
  int64_t first, count;
  Units keys, values, paired_keys;

  KeyBlock(const AttentionProblem& p, int64_t batch, int64_t key_head, int64_t first, bool with_pairs)
      : first(first), count(std::min(kKeyBlock, p.keys - first)) {
    Rows key = p.rows_of(*p.key, batch);
    keys = unit_rows(p, key, key_head, first, count, buffers.keys);
    values = unit_rows(p, p.rows_of(*p.value, batch), key_head, first, count, buffers.values);
    if (with_pairs) {
      paired_keys = p.pairs ? paired_rows(p, key, key_head, first, count, buffers.paired_keys) : keys;
    }
  }
};

// Keys [begin, end) of a block, which lanes before `lane` do not attend to.
struct Stretch {
  int64_t begin, end;
  int lane;
};

struct ScoreGradient {
  int64_t count = 0;  // of keys; 0: none of the block is attended to
  int lanes = 0;
  std::array<Stretch, kLanes / 16> stretches;
  int stretch_count = 0;
  const float* scores = nullptr;
  const char *probability_rows = nullptr, *gradient_rows = nullptr;  // [key][lane]
  int64_t row_bytes = 0;
  const void* gradient_panel = nullptr;  // [unit of keys][lane]
};

// Causal order excludes the last keys of a block for whole groups of lanes: products leave these out.
void cut(const Panel& panel, const KeyBlock& block, bool in_one, ScoreGradient& result) {
  int64_t begin = 0;
  for (int lane = 0; begin < result.count; lane += 16) {
    int64_t end = result.count;
    if (lane + 16 < panel.lanes && !in_one) {
      int64_t last = *std::max_element(panel.limits, panel.limits + lane + 16);
      end = std::clamp<int64_t>(last + 1 - block.first, begin, result.count);
    }
    if (end > begin) result.stretches[result.stretch_count++] = {begin, end, lane};
    begin = end;
  }
}

// Probabilities and gradients of the scores of one block; `products` says in which format.
ScoreGradient score_gradient(const AttentionProblem& p, const AttentionProducts& products, const PanelGradient& g,
                             const AttentionProblem::MaskRows& mask, const KeyBlock& block, float scale) {
  ScoreGradient result;
  const int lanes = g.panel.lanes;
  int64_t count = std::min(block.count, g.panel.key_end - block.first);
  if (count <= 0) return result;
  float* bias = nullptr;
  if (p.mask != nullptr) {
    bias = buffers.bias.get<float>(kKeyBlock * kLanes);
    if (!load_bias(p, mask, g.panel, block.first, count, buffers.rows, bias)) return result;
  }
  float* scores = buffers.scores.get<float>((kKeyBlock + 1) * kLanes);
  float* gradients = buffers.gradients.get<float>((kKeyBlock + 1) * kLanes);
  result.count = count;
  result.lanes = lanes;
  const bool rounds = &products == &p.tiles->pairs;
  // Pairs of keys are rounded in place, all lanes of them.
  cut(g.panel, block, rounds || !p.causal, result);
  for (int i = 0; i < result.stretch_count; ++i) {
    auto [begin, end, lane] = result.stretches[i];
    p.products->rows_by_panel(block.keys.data + begin * block.keys.row_bytes, block.keys.row_bytes, end - begin,
                              p.units(p.depth), g.query + lane, lanes - lane, score_scale(p),
                              scores + begin * kLanes + lane, nullptr);
    p.products->rows_by_panel(block.values.data + begin * block.values.row_bytes, block.values.row_bytes, end - begin,
                              p.units(p.value_depth), g.out_gradient + lane, lanes - lane, 1,
                              gradients + begin * kLanes + lane, nullptr);
  }
  int64_t open = std::clamp<int64_t>(g.panel.open_end - block.first, 0, count);
  if (bias != nullptr || open < count) {
    int64_t begin = bias != nullptr ? 0 : open;
    alignas(64) float unused[kLanes] = {};
    p.tiles->mask(scores + begin * kLanes, count - begin, lanes, bias, open < count ? g.panel.limits : nullptr,
                  block.first + begin, unused);
  }
  SoftmaxGradient inputs;
  if (p.drops) {
    float* keep = buffers.keep.get<float>(kKeyBlock * kLanes);
    p.tiles->dropout(p.seed, g.panel.counters, block.first, count, lanes, p.threshold, p.kept, keep);
    inputs.keep = keep;
  }
  inputs.scale = scale;
  auto* rounded = buffers.rounded.get<uint16_t>(2 * kKeyBlock * kLanes);
  for (int i = 0; i < result.stretch_count; ++i) {
    auto [begin, end, lane] = result.stretches[i];
    int64_t place = begin * kLanes + lane;
    SoftmaxGradient own = inputs;
    if (own.keep != nullptr) own.keep += place;
    own.maxima = g.sums.maxima + lane;
    own.inverse_sums = g.sums.inverse_sums + lane;
    own.corrections = g.sums.corrections + lane;
    products.softmax_gradient(scores + place, gradients + place, end - begin, lanes - lane, own, rounded);
    for (int64_t k = begin; k < end; ++k) std::fill_n(gradients + k * kLanes, lane, 0.0f);
  }
  result.gradient_panel = gradients;
  if (rounds) {
    result.probability_rows = reinterpret_cast<const char*>(rounded);
    result.gradient_rows = reinterpret_cast<const char*>(rounded + count * kLanes);
    result.row_bytes = kLanes * 2;
  } else {
    result.probability_rows = reinterpret_cast<const char*>(scores);
    result.gradient_rows = reinterpret_cast<const char*>(gradients);
    result.row_bytes = kLanes * 4;
  }
  return result;
}

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
        blocks_((problem.keys + kKeyBlock - 1) / kKeyBlock) {}

  int64_t heads() const { return p_.batch * p_.key_heads; }
  int64_t panels() const { return panels_; }
  int64_t blocks() const { return blocks_; }

  // All gradients of one key head and its queries.
  void head(int64_t head) const {
    int64_t panel_size = kLanes * p_.depth, prepared_size = PanelSizes(p_).all();
    float* query_gradients = buffers.query_gradient.get<float>(panels_ * panel_size);
    float* memory = buffers.panels.get<float>(panels_ * prepared_size);
    std::fill(query_gradients, query_gradients + panels_ * panel_size, 0.0f);
    std::vector<PanelGradient> prepared;
    prepared.reserve(panels_);
    for (int64_t i = 0; i < panels_; ++i) {
      prepared.push_back(prepare(p_, views_, head / p_.key_heads, panel(head, i), true, memory + i * prepared_size));
    }
    for (int64_t b = 0; b < blocks_; ++b) {
      auto panel_at = [&](int64_t i) { return &prepared[i]; };
      key_block(head, b, panel_at, [&](const KeyBlock& block, const ScoreGradient& s, int64_t panel) {
        add_query_gradient(block, s, query_gradients + panel * panel_size);
      });
    }
    for (int64_t i = 0; i < panels_; ++i) store_query_gradient(head, i, query_gradients + i * panel_size);
  }

  // Those of one block of keys alone, or of one panel of queries.
  void keys(int64_t head, int64_t index) const {
    float* memory = buffers.panels.get<float>(PanelSizes(p_).all());
    std::optional<PanelGradient> prepared;
    auto panel_at = [&](int64_t i) -> const PanelGradient* {
      Panel lanes = panel(head, i);
      if (lanes.key_end <= index * kKeyBlock) return nullptr;
      prepared.emplace(prepare(p_, views_, head / p_.key_heads, lanes, true, memory));
      return &*prepared;
    };
    key_block(head, index, panel_at, [](const KeyBlock&, const ScoreGradient&, int64_t) {});
  }
  void queries(int64_t head, int64_t index) const {
    int64_t batch = head / p_.key_heads, key_head = head % p_.key_heads;
    float* gradient = buffers.query_gradient.get<float>(kLanes * p_.depth);
    std::fill(gradient, gradient + kLanes * p_.depth, 0.0f);
    PanelGradient g =
        prepare(p_, views_, batch, panel(head, index), false, buffers.panels.get<float>(PanelSizes(p_).all()));
    for (int64_t first = 0; first < g.panel.key_end; first += kKeyBlock) {
      KeyBlock block(p_, batch, key_head, first, true);
      ScoreGradient s = score_gradient(p_, *p_.products, g, p_.mask_rows(batch), block, p_.scale);
      if (s.count > 0) add_query_gradient(block, s, gradient);
    }
    store_query_gradient(head, index, gradient);
  }

 private:
  Panel panel(int64_t head, int64_t index) const {
    return Panel(p_, head / p_.key_heads, head % p_.key_heads * p_.group(), index * kLanes, rows_ - index * kLanes);
  }

  // panel_at(i) gives panel i, or null where it attends to none of the keys.
  template <typename PanelAt, typename Visit>
  void key_block(int64_t head, int64_t index, const PanelAt& panel_at, const Visit& visit) const {
    int64_t batch = head / p_.key_heads, key_head = head % p_.key_heads;
    int64_t width = round_up(p_.depth, 16), value_width = round_up(p_.value_depth, 16);
    KeyBlock block(p_, batch, key_head, index * kKeyBlock, true);
    float* key_gradient = buffers.key_gradient.get<float>(kKeyBlock * width);
    float* value_gradient = buffers.value_gradient.get<float>(kKeyBlock * value_width);
    std::fill(key_gradient, key_gradient + block.count * width, 0.0f);
    std::fill(value_gradient, value_gradient + block.count * value_width, 0.0f);
    for (int64_t i = 0; i < panels_; ++i) {
      const PanelGradient* g = panel_at(i);
      if (g == nullptr) continue;
      ScoreGradient s = score_gradient(p_, *p_.products, *g, p_.mask_rows(batch), block, p_.scale);
      if (s.count == 0) continue;
      for (int j = 0; j < s.stretch_count; ++j) {
        auto [begin, end, lane] = s.stretches[j];
        auto product = [&](const char* left, const void* rows, int64_t columns, float* gradient) {
          p_.products->rows_by_rows(left + begin * s.row_bytes + lane * 4, s.row_bytes, end - begin,
                                    p_.units(s.lanes - lane), static_cast<const float*>(rows) + lane * columns, columns,
                                    gradient + begin * columns);
        };
        product(s.probability_rows, g->out_gradient_rows, value_width, value_gradient);
        product(s.gradient_rows, g->query_rows, width, key_gradient);
      }
      visit(block, s, i);
    }
    store_rows(key_gradient_, batch, key_head, block, key_gradient, width);
    store_rows(value_gradient_, batch, key_head, block, value_gradient, value_width);
  }

  void add_query_gradient(const KeyBlock& block, const ScoreGradient& s, float* gradient) const {
    alignas(64) float ones[kLanes];
    std::fill(ones, ones + kLanes, 1.0f);
    p_.products->columns_by_panel(block.paired_keys.data, block.paired_keys.row_bytes, p_.depth, p_.units(s.count),
                                  s.gradient_panel, s.lanes, ones, gradient);
  }

  void store_query_gradient(int64_t head, int64_t index, const float* gradient) const {
    store_panel(p_, p_.rows_of(query_gradient_, head / p_.key_heads), panel(head, index), gradient, buffers.rows);
  }

  void store_rows(const TensorView& view, int64_t batch, int64_t key_head, const KeyBlock& block, const float* values,
                  int64_t width) const {
    Rows rows = p_.rows_of(view, batch);
    for (int64_t k = 0; k < block.count; ++k) {
      round_row(rows.dtype, values + k * width, rows.columns, rows.at(key_head, block.first + k), rows.step());
    }
  }

  const AttentionProblem& p_;
  const AttentionGradients& views_;
  const TensorView &query_gradient_, &key_gradient_, &value_gradient_;
  int64_t rows_, panels_, blocks_;
};

// outputs: gradients of query, key, value; inputs: those of AttentionGradients, optional mask; attributes[0] and
// scalars: see AttentionProblem.
void run_backward(const Call& call) {
  AttentionProblem p(call.inputs[1], call.inputs[2], call.inputs[3], AttentionGradients::mask(call), call);
  AttentionGradients views(call);
  if (p.matrix) {
    return differentiate_on_matrix_units(p, views, call.outputs[0], call.outputs[1], call.outputs[2], call.threads);
  }
  Backward work(p, views, call.outputs[0], call.outputs[1], call.outputs[2]);
  if (call.threads <= work.heads()) {
    parallel_for(call.threads, work.heads(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head) work.head(head);
    });
    return;
  }
  // Too few heads to feed the threads: keys and queries are shared out instead, and scores computed for both.
  parallel_for(call.threads, work.heads() * work.blocks(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) work.keys(i / work.blocks(), balanced(i % work.blocks(), work.blocks()));
  });
  parallel_for(call.threads, work.heads() * work.panels(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) work.queries(i / work.panels(), balanced(i % work.panels(), work.panels()));
  });
}

// --- the mask's gradient: that of the scores, summed where the mask was broadcast
// -----------------------------------------

class MaskGradient {
 public:
  MaskGradient(const AttentionProblem& problem, const AttentionGradients& views, const TensorView& gradient)
      : p_(problem), views_(views), gradient_(gradient) {
    int rank = gradient.rank();
    int64_t own_keys = rank > 0 ? gradient.sizes[rank - 1] : 1, own_queries = rank > 1 ? gradient.sizes[rank - 2] : 1;
    sums_keys_ = own_keys == 1;
    sums_queries_ = own_queries == 1;
    blocks_ = sums_keys_ ? 1 : (p_.keys + kKeyBlock - 1) / kKeyBlock;
    panels_ = sums_queries_ ? 1 : (p_.queries + kLanes - 1) / kLanes;
    slices_ = 1;
    for (int d = 0; d < rank - 2; ++d) slices_ *= gradient.sizes[d];
  }

  int64_t tasks() const { return slices_ * panels_ * blocks_; }

  // A task owns elements of the gradient and sums over what they were broadcast to, in order: batch, head, panel.
  void task(int64_t index) const {
    int64_t block = index % blocks_, panel = index / blocks_ % panels_, slice = index / blocks_ / panels_;
    int64_t rows = sums_keys_ ? 1 : kKeyBlock;
    float* sums = buffers.mask_gradient.get<float>(rows * kLanes);
    std::fill(sums, sums + rows * kLanes, 0.0f);
    for (int64_t batch = 0; batch < p_.batch; ++batch) {
      for (int64_t head = 0; head < p_.heads; ++head) {
        if (slice_of(batch, head) != slice) continue;
        int64_t first = sums_queries_ ? 0 : panel * kLanes;
        int64_t last = sums_queries_ ? p_.queries : std::min(first + kLanes, p_.queries);
        for (int64_t row = first; row < last; row += kLanes) {
          add(batch, head, row, std::min<int64_t>(kLanes, last - row), block, sums);
        }
      }
    }
    write(slice, panel, block, sums);
  }

 private:
  // The leading dimensions of the mask as one index.
  int64_t slice_of(int64_t batch, int64_t head) const {
    int rank = gradient_.rank(), problem_rank = p_.query->rank();
    int64_t slice = 0, unit = 1;
    for (int d = problem_rank - 3; d >= 0; --d) {
      int own = d - (problem_rank - rank);
      int64_t size = d == problem_rank - 3 ? p_.heads : p_.query->sizes[d];
      int64_t position = d == problem_rank - 3 ? head : batch % size;
      if (d != problem_rank - 3) batch /= size;
      if (own < 0 || gradient_.sizes[own] == 1) continue;
      slice += position * unit;
      unit *= gradient_.sizes[own];
    }
    return slice;
  }

  void add(int64_t batch, int64_t head, int64_t row, int64_t rows, int64_t own_block, float* sums) const {
    Panel lanes(p_, batch, head, row, rows);
    PanelGradient g = prepare(p_, views_, batch, lanes, false, buffers.panels.get<float>(PanelSizes(p_).all()));
    int64_t begin = sums_keys_ ? 0 : own_block * kKeyBlock;
    int64_t end = sums_keys_ ? g.panel.key_end : std::min(begin + 1, g.panel.key_end);
    for (int64_t first = begin; first < end; first += kKeyBlock) {
      KeyBlock block(p_, batch, head / p_.group(), first, false);
      ScoreGradient s = score_gradient(p_, p_.tiles->floats, g, p_.mask_rows(batch), block, 1);
      auto* gradients = static_cast<const float*>(s.gradient_panel);
      for (int64_t k = 0; k < s.count; ++k) {
        float* line = sums + (sums_keys_ ? 0 : k * kLanes);
        // Lanes up to the next multiple of 16 hold zeros where there is no query.
        for (int lane = 0; lane < lanes.lanes; lane += 16) {
          for (int i = lane; i < lane + 16; ++i) line[i] += gradients[k * kLanes + i];
        }
      }
    }
  }

  void write(int64_t slice, int64_t panel, int64_t block, const float* sums) const {
    int rank = gradient_.rank();
    int64_t offset = 0;
    for (int d = rank - 3; d >= 0; --d) {
      offset += slice % gradient_.sizes[d] * gradient_.strides[d];
      slice /= gradient_.sizes[d];
    }
    auto size = static_cast<int64_t>(dtype_size(gradient_.dtype));
    int64_t row_stride = rank > 1 ? gradient_.strides[rank - 2] : 0, step = rank > 0 ? gradient_.strides[rank - 1] : 0;
    int64_t first_row = panel * kLanes, first_key = block * kKeyBlock;
    int64_t rows = sums_queries_ ? 1 : std::min<int64_t>(kLanes, p_.queries - first_row);
    int64_t keys = sums_keys_ ? 1 : std::min(kKeyBlock, p_.keys - first_key);
    float* lines = buffers.rows.get<float>(kLanes * kKeyBlock);
    if (sums_queries_) {
      // Queries that share an element: their lanes in order.
      for (int64_t k = 0; k < keys; ++k) {
        lines[k] = sums[k * kLanes];
        for (int j = 1; j < kLanes; ++j) lines[k] += sums[k * kLanes + j];
      }
    } else {
      p_.tiles->from_lanes(sums, static_cast<int>(rows), keys, lines, kKeyBlock);
    }
    for (int64_t i = 0; i < rows; ++i) {
      int64_t place = offset + (first_row + i) * row_stride + first_key * step;
      round_row(gradient_.dtype, lines + i * kKeyBlock, keys, gradient_.as<char>() + place * size, step);
    }
  }

  const AttentionProblem& p_;
  const AttentionGradients& views_;
  const TensorView& gradient_;
  bool sums_keys_, sums_queries_;
  int64_t blocks_, panels_, slices_;
};

// outputs: gradient of the mask, of its shape; inputs, attributes and scalars: as "attention_backward", with the mask.
void run_mask_gradient(const Call& call) {
  AttentionProblem p(call.inputs[1], call.inputs[2], call.inputs[3], AttentionGradients::mask(call), call);
  AttentionGradients views(call);
  MaskGradient work(p, views, call.outputs[0]);
  parallel_for(call.threads, work.tasks(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) work.task(index);
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "attention_backward", .run = run_backward}),
    KernelRegistration({.name = "attention_mask_gradient", .run = run_mask_gradient}),
};

}  // namespace
}  // namespace neuron::kernels
