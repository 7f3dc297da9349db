// The forward pass on matrix units. As in attention_forward.cpp keys are met in blocks, in order; a block is never cut
// for causal order, what it excludes is masked.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/attention_matrix.h"
#include "neuron/kernels/matrix_units.h"

namespace neuron::kernels {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr int64_t kMatrixKeys = 256;   // a block of keys
constexpr int64_t kSharedKeys = 1024;  // which a panel meets before the next one does
constexpr int64_t kPanels = 12;        // of a task: they share the blocks of keys and values

struct Buffers {
  Scratch keys, values, scores, bias, keep, queries, results, rows;
};
thread_local Buffers buffers;

struct State {
  Panel panel;
  float* query;  // [unit][lane]
  AttentionLanes lanes;

  State(const Panel& panel, float* query, float* result) : panel(panel), query(query) {
    std::fill(lanes.largest, lanes.largest + kLanes, kLowest);
    lanes.result = result;
  }
};

// A block of keys and their values, as left operands.
struct Block {
  int64_t first, count;
  LeftTiles keys, values;
};

// Keys [first, first + count) of the block.
void meet(const AttentionProblem& p, State& s, const AttentionProblem::MaskRows& mask, const Block& block,
          int64_t first, int64_t count) {
  AttentionMeeting m{.keys = block.keys.from_row(first - block.first),
                     .values = block.values.from_element(first - block.first),
                     .first = first,
                     .count = count,
                     .depth = round_up(p.depth, 32),
                     .width = round_up(p.value_depth, 16),
                     .panel = s.query,
                     .lanes = s.panel.lanes,
                     .scale = p.scale,
                     .bias = nullptr,
                     .limits = s.panel.limits,
                     .open = s.panel.open_end - first,
                     .keep = nullptr,
                     .scratch = buffers.scores.get<float>(meeting_scratch(kMatrixKeys))};
  if (p.mask != nullptr) {
    float* bias = buffers.bias.get<float>(kMatrixKeys * kLanes);
    if (!load_bias(p, mask, s.panel, first, count, buffers.rows, bias)) return;
    m.bias = bias;
  }
  if (p.drops) {
    float* keep = buffers.keep.get<float>(kMatrixKeys * kLanes);
    p.tiles->dropout(p.seed, s.panel.counters, first, count, s.panel.lanes, p.threshold, p.kept, keep);
    m.keep = keep;
  }
  attention_matrix_units.meet(m, s.lanes);
}

void finish(const AttentionProblem& p, State& s, const Rows& out, const Rows& logs, const Rows& maxima,
            const Rows& sums) {
  const AttentionLanes& lanes = s.lanes;
  const float scale = p.mask == nullptr && p.scale > 0 ? p.scale : 1.0f;
  if (!lanes.started) std::fill(lanes.result, lanes.result + p.value_depth * kLanes, 0.0f);
  alignas(64) float factors[kLanes];
  for (int i = 0; i < kLanes; ++i) factors[i] = lanes.sums[i] == 0 ? 0.0f : 1.0f / lanes.weights[i];
  store_lanes(out, s.panel, lanes.result, factors, buffers.rows);
  for (int i = 0; i < s.panel.lanes; ++i) {
    int64_t head = s.panel.heads[i], position = s.panel.positions[i];
    const float largest = lanes.largest[i] * scale, sum = lanes.sums[i];
    *reinterpret_cast<float*>(logs.at(head, position)) = sum == 0 ? kLowest : largest + std::log(sum);
    *reinterpret_cast<float*>(maxima.at(head, position)) = largest;
    *reinterpret_cast<float*>(sums.at(head, position)) = sum;
  }
}

// Rows [first_row, first_row + rows) of a key head's group.
struct Task {
  int64_t batch, key_head, first_row, rows;
};

void forward_rows(const AttentionProblem& p, const AttentionOutputs& outputs, const Task& task) {
  auto [batch, key_head, first_row, rows] = task;
  const MatrixTiles tiles;
  Rows query = p.rows_of(*p.query, batch), key = p.rows_of(*p.key, batch), value = p.rows_of(*p.value, batch);
  AttentionProblem::MaskRows mask = p.mask_rows(batch);
  const int64_t panels = (rows + kLanes - 1) / kLanes, query_size = kLanes * right_panel_units(p.depth),
                result_size = kLanes * round_up(p.value_depth, 16);
  float* queries = buffers.queries.get<float>(panels * query_size);
  float* results = buffers.results.get<float>(panels * result_size);
  std::vector<State> states;
  states.reserve(panels);
  int64_t key_end = 0;
  for (int64_t i = 0; i < panels; ++i) {
    Panel panel(p, batch, key_head * p.group(), first_row + i * kLanes, rows - i * kLanes);
    states.push_back(State(panel, queries + i * query_size, results + i * result_size));
    load_right_panel(p, query, panel, buffers.rows, states.back().query);
    key_end = std::max(key_end, panel.key_end);
  }
  for (int64_t first = 0; first < key_end; first += kSharedKeys) {
    int64_t count = std::min(kSharedKeys, key_end - first);
    Block block{first, count, left_rows(key, key_head, first, count, buffers.keys, buffers.rows),
                left_columns(value, key_head, first, count, buffers.values, buffers.rows)};
    for (State& s : states) {
      const int64_t end = std::min(first + count, s.panel.key_end);
      for (int64_t k = first; k < end; k += kMatrixKeys) meet(p, s, mask, block, k, std::min(kMatrixKeys, end - k));
    }
  }
  Rows out = p.rows_of(outputs.out, batch), logs = p.row_values(outputs.logsumexp, batch),
       maxima = p.row_values(outputs.maxima, batch), sums = p.row_values(outputs.sums, batch);
  for (State& s : states) finish(p, s, out, logs, maxima, sums);
}

}  // namespace

void attend_on_matrix_units(const AttentionProblem& p, const AttentionOutputs& outputs, int threads) {
  // How many panels a task has changes no result: equally many, fewer when there are threads to feed.
  const int64_t rows = p.group() * p.queries, panels = (rows + kLanes - 1) / kLanes;
  int64_t tasks = (panels + kPanels - 1) / kPanels;
  while (tasks < panels && p.batch * p.key_heads * tasks < 2 * threads) ++tasks;
  const int64_t task_rows = tasks == 0 ? 0 : (panels + tasks - 1) / tasks * kLanes;
  parallel_for(threads, p.batch * p.key_heads * tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      int64_t head = index / tasks, first = balanced(index % tasks, tasks) * task_rows;
      if (first >= rows) continue;
      forward_rows(p, outputs, {head / p.key_heads, head % p.key_heads, first, std::min(task_rows, rows - first)});
    }
  });
}

}  // namespace neuron::kernels
