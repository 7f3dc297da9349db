// Attention: softmax(scale q k^T + mask) v without the matrix of scores in memory. What its kernels (forward, decode,
// backward, gradient of the mask) share: the problem, its rows as the products of attention_tiles.h take them, panels.
#pragma once

#include <array>
#include <cstdint>

#include "neuron/kernels/attention_tiles.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/scratch.h"

namespace neuron::kernels {

constexpr int64_t kKeyBlock = 128;  // part of the order of summation

// Rows of one batch entry: [heads, rows, columns], strides in bytes.
struct Rows {
  char* data = nullptr;
  DType dtype = DType::Float32;
  int64_t head = 0, row = 0, column = 0, columns = 0;

  char* at(int64_t h, int64_t r) const { return data + h * head + r * row; }
  int64_t step() const { return column / static_cast<int64_t>(dtype_size(dtype)); }  // of columns, in elements
};

struct AttentionProblem {
  // Leading dimensions are the batch; all three have the same, of stride 0 where one of them broadcasts.
  const TensorView* query;           // [batch…, heads, queries, depth]
  const TensorView* key;             // [batch…, key heads, keys, depth]; heads is a multiple of key heads
  const TensorView* value;           // [batch…, key heads, keys, value depth]
  const TensorView* mask = nullptr;  // broadcasts from the right to [batch…, heads, queries, keys]; added to scores, or
                                     // bool: false excludes
  bool causal = false;               // query i attends to keys 0 to i
  float scale = 1;
  int64_t batch, heads, key_heads, queries, keys, depth, value_depth;

  // A probability is kept where its number is below the threshold, of 2^24, and then multiplied by `kept`. Numbers of
  // row r (row-major in [batch…, heads, queries]) start at counter offset + r * ceil(keys / 4); see AttentionTiles.
  bool drops = false;
  uint64_t seed = 0, offset = 0;
  uint32_t threshold = 0;
  float kept = 1;

  const AttentionTiles* tiles;
  const AttentionProducts* products;  // those for the operands' dtype
  bool pairs;                         // products read pairs of bfloat16
  bool matrix;                        // they may run on matrix units, see attention_matrix.h

  // attributes: causal; a second one is the kernel's; a third one chooses AttentionUnits. scalars: scale; with dropout
  // also its probability, seed, offset.
  AttentionProblem(const TensorView& query, const TensorView& key, const TensorView& value, const TensorView* mask,
                   const Call& call);
  int64_t group() const { return heads / key_heads; }
  int64_t units(int64_t elements) const { return pairs ? (elements + 1) / 2 : elements; }
  Rows rows_of(const TensorView& view, int64_t batch_index) const;
  // Of [batch…, heads, queries]: one float for each query.
  Rows row_values(const TensorView& view, int64_t batch_index) const;
  uint64_t counter(int64_t batch_index, int64_t head, int64_t position) const {
    int64_t row = (batch_index * heads + head) * queries + position;
    return offset + static_cast<uint64_t>(row) * static_cast<uint64_t>((keys + 3) / 4);
  }
  // The mask's element for a head, query and key 0; `step` between keys and the strides are in bytes.
  struct MaskRows {
    const char* data = nullptr;
    int64_t head = 0, row = 0, step = 0;
  };
  MaskRows mask_rows(int64_t batch_index) const;
};

struct AttentionOutputs {
  const TensorView &out, &logsumexp, &maxima, &sums;
};

// What the forward pass left.
struct AttentionGradients {
  const TensorView &out_gradient, &out, &logsumexp;
  // Null: probabilities follow from logsumexp alone, which is less exact where scores are large.
  const TensorView *maxima = nullptr, *sums = nullptr;

  // inputs: gradient of out, query, key, value, out, logsumexp, and maxima and sums when attributes[1] is set.
  explicit AttentionGradients(const Call& call)
      : out_gradient(call.inputs[0]), out(call.inputs[4]), logsumexp(call.inputs[5]) {
    if (call.attributes[1] == 0) return;
    maxima = &call.inputs[6];
    sums = &call.inputs[7];
  }
  static const TensorView* mask(const Call& call) {
    size_t index = call.attributes[1] != 0 ? 8 : 6;
    return call.inputs.size() > index ? &call.inputs[index] : nullptr;
  }
};

// Rows of units in memory.
struct Units {
  const char* data;
  int64_t row_bytes;
};

// Asks for rows that are met later: [first, first + count) of a group of heads with `queries` rows each.
void prefetch_rows(const Rows& rows, int64_t first_head, int64_t queries, int64_t first, int64_t count);

// Rows [first, first + count) as units along the columns: the memory itself where that is possible, else a copy.
Units unit_rows(const AttentionProblem& p, const Rows& rows, int64_t head, int64_t first, int64_t count,
                Scratch& scratch);
// The same rows as units along the rows: [ceil(count / 2)][columns] pairs, or the rows as floats.
Units paired_rows(const AttentionProblem& p, const Rows& rows, int64_t head, int64_t first, int64_t count,
                  Scratch& scratch);

// Queries of one batch entry that lie side by side. Row r of a key head's group is query r % queries of its head
// r / queries.
struct Panel {
  int lanes = 0;
  std::array<int64_t, kLanes> heads, positions;
  alignas(64) int64_t limits[kLanes];     // the last key a lane attends to, when causal
  alignas(64) uint64_t counters[kLanes];  // of dropout
  int64_t key_end = 0;                    // keys from here on are excluded for all lanes
  int64_t open_end = 0;                   // keys before this one are excluded for none, the mask apart

  Panel(const AttentionProblem& p, int64_t batch_index, int64_t first_head, int64_t first_row, int64_t rows);
};

// Of one panel, by lane: what its scores' exponentials are taken less, one over their sum (zero for a query without
// keys), and the sum of the probabilities' gradients, weighted by the probabilities.
struct PanelSums {
  alignas(64) float maxima[kLanes] = {}, inverse_sums[kLanes] = {}, corrections[kLanes] = {};
  PanelSums(const AttentionProblem& p, const AttentionGradients& views, int64_t batch, const Panel& panel,
            Scratch& scratch);
};

// panel[unit][lane] of rows, those of the panel's queries.
void load_panel(const AttentionProblem& p, const Rows& rows, const Panel& panel, Scratch& scratch, float* target);
// The panel's queries. Floats are scaled here, pairs after their product: `score_scale` is what is left to do then.
void load_queries(const AttentionProblem& p, const Rows& rows, const Panel& panel, Scratch& scratch, float* target);
inline float score_scale(const AttentionProblem& p) { return p.pairs ? p.scale : 1.0f; }
// rows = panel[column][lane], rounded.
void store_panel(const AttentionProblem& p, const Rows& rows, const Panel& panel, const float* source,
                 Scratch& scratch);

// bias[key][lane] of keys [first, first + count); false when the mask excludes them all.
bool load_bias(const AttentionProblem& p, const AttentionProblem::MaskRows& mask, const Panel& panel, int64_t first,
               int64_t count, Scratch& scratch, float* bias);
// One row of the mask as floats.
void widen_mask(const AttentionProblem& p, const char* mask, int64_t step, int64_t count, float* values);

// The order in which tasks of a head start: the first, the last, the second, … so that equal shares of them are equal
// work when the later ones have more keys.
inline int64_t balanced(int64_t index, int64_t count) { return index % 2 == 0 ? index / 2 : count - 1 - index / 2; }

}  // namespace neuron::kernels
