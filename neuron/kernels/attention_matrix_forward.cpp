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
constexpr int64_t kPanels = 12;  // of a task: they share the blocks of keys and values

struct Buffers {
  Scratch keys, values, scores, bias, keep, queries, results, rows;
};
thread_local Buffers buffers;

// What a panel keeps between blocks of keys.
struct State {
  Panel panel;
  float *query, *result;  // [unit][lane], [column][lane]
  bool started = false;
  alignas(64) float maxima[kLanes], sums[kLanes] = {};

  State(const Panel& panel, float* query, float* result) : panel(panel), query(query), result(result) {
    std::fill(maxima, maxima + kLanes, kLowest);
  }
  int lanes() const { return static_cast<int>(round_up(panel.lanes, 16)); }
};

// A block of keys and their values, as left operands.
struct Block {
  int64_t first, count;
  Units keys, values;
};

// Scores of a panel, and in `largest` the largest of them and earlier ones. Returns late_scale().
float score(const AttentionProblem& p, const State& s, const Block& block, int64_t count, const float* bias,
            float* scores, float* largest) {
  const AttentionMatrixUnits& units = attention_matrix_units;
  const int lanes = s.lanes();
  const int64_t depth = round_up(p.depth, 32);
  const int64_t* limits = block.first + count > s.panel.open_end ? s.panel.limits : nullptr;
  std::copy(s.maxima, s.maxima + kLanes, largest);
  if (bias != nullptr || !(p.scale > 0)) {
    units.scores(block.keys.data, block.keys.row_bytes, count, depth, s.query, lanes, scores, nullptr);
    units.mask(scores, count, lanes, p.scale, bias, limits, block.first, largest);
    return 0;
  }
  alignas(64) float plain[kLanes];
  std::fill(plain, plain + kLanes, kLowest);
  units.scores(block.keys.data, block.keys.row_bytes, count, depth, s.query, lanes, scores,
               limits == nullptr ? plain : nullptr);
  if (limits != nullptr) units.mask(scores, count, lanes, 1, nullptr, limits, block.first, plain);
  for (int i = 0; i < kLanes; ++i) largest[i] = std::max(largest[i], plain[i] * p.scale);
  const float scale = late_scale(p, largest, lanes);
  if (scale == 0) units.mask(scores, count, lanes, p.scale, nullptr, nullptr, block.first, plain);
  return scale;
}

void meet(const AttentionProblem& p, State& s, const AttentionProblem::MaskRows& mask, const Block& block) {
  const AttentionMatrixUnits& units = attention_matrix_units;
  const int lanes = s.lanes();
  const int64_t count = std::min(block.count, s.panel.key_end - block.first);
  float* bias = nullptr;
  if (p.mask != nullptr) {
    bias = buffers.bias.get<float>(kMatrixKeys * kLanes);
    if (!load_bias(p, mask, s.panel, block.first, count, buffers.rows, bias)) return;
  }
  float* scores = buffers.scores.get<float>(kMatrixKeys * kLanes);
  alignas(64) float largest[kLanes], shifts[kLanes], fades[kLanes];
  const float scale = score(p, s, block, count, bias, scores, largest);
  p.tiles->advance(largest, lanes, s.maxima, s.sums, shifts, fades);
  float* keep = nullptr;
  if (p.drops) {
    keep = buffers.keep.get<float>(kMatrixKeys * kLanes);
    p.tiles->dropout(p.seed, s.panel.counters, block.first, count, lanes, p.threshold, p.kept, keep);
  }
  units.exponentials(scores, count, lanes, scale, shifts, s.sums, keep);
  const int64_t width = round_up(p.value_depth, 16);
  if (s.started && std::any_of(fades, fades + lanes, [](float fade) { return fade != 1.0f; })) {
    p.tiles->scale_lanes(s.result, width, lanes, fades);
  }
  units.multiply(block.values.data, block.values.row_bytes, width, round_up(count, 32), scores, kLanes * 4, lanes,
                 s.result, kLanes, s.started);
  s.started = true;
}

void finish(const AttentionProblem& p, State& s, const Rows& out, const Rows& logs, const Rows& maxima,
            const Rows& sums) {
  if (!s.started) std::fill(s.result, s.result + p.value_depth * kLanes, 0.0f);
  alignas(64) float factors[kLanes];
  for (int i = 0; i < kLanes; ++i) factors[i] = s.sums[i] == 0 ? 0.0f : 1.0f / s.sums[i];
  store_lanes(out, s.panel, s.result, factors, buffers.rows);
  for (int i = 0; i < s.panel.lanes; ++i) {
    int64_t head = s.panel.heads[i], position = s.panel.positions[i];
    bool nothing = s.sums[i] == 0;
    *reinterpret_cast<float*>(logs.at(head, position)) = nothing ? kLowest : s.maxima[i] + std::log(s.sums[i]);
    *reinterpret_cast<float*>(maxima.at(head, position)) = s.maxima[i];
    *reinterpret_cast<float*>(sums.at(head, position)) = s.sums[i];
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
  for (int64_t first = 0; first < key_end; first += kMatrixKeys) {
    int64_t count = std::min(kMatrixKeys, key_end - first);
    Block block{first, count, left_rows(key, key_head, first, count, buffers.keys, buffers.rows),
                left_columns(value, key_head, first, count, buffers.values, buffers.rows)};
    for (State& s : states) {
      if (s.panel.key_end > first) meet(p, s, mask, block);
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
