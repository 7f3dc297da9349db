// Kernel "attention". Keys are met in blocks of kKeyBlock, in order; a running maximum and a running sum of
// exponentials per query make the softmax. A query that may attend to nothing gives zeros.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/attention.h"
#include "neuron/kernels/attention_decode.h"
#include "neuron/kernels/attention_matrix.h"

namespace neuron::kernels {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr int kPanels = 6;        // of a task: they share the blocks of keys and values
constexpr int64_t kOpenKeys = 8;  // keys before a panel's first excluded one are cut to a multiple, even for pairs

struct Buffers {
  Scratch keys, values, scores, bias, keep, queries, results, rows;
};
thread_local Buffers buffers;

// What a panel keeps between blocks of keys.
struct State {
  Panel panel;
  float* query;
  float* result;
  bool started = false;
  alignas(64) float maxima[kLanes];
  alignas(64) float sums[kLanes];

  State(const Panel& panel, float* query, float* result) : panel(panel), query(query), result(result) {
    std::fill(maxima, maxima + kLanes, kLowest);
    std::fill(sums, sums + kLanes, 0.0f);
  }
};

// Lanes [lane, lane + lanes) of a panel meet keys [first, first + count).
void meet(const AttentionProblem& p, State& s, int lane, int lanes, const float* bias, Units keys, Units values,
          int64_t first, int64_t count) {
  float* scores = buffers.scores.get<float>((kKeyBlock + 1) * kLanes) + lane;
  const float* query = s.query + lane;
  const int64_t* limits = s.panel.limits + lane;
  bool crosses = first + count > s.panel.open_end;
  bool masked = bias != nullptr || crosses;
  alignas(64) float maxima[kLanes], shifts[kLanes], fades[kLanes];
  std::copy(s.maxima + lane, s.maxima + lane + lanes, maxima);
  p.products->rows_by_panel(keys.data, keys.row_bytes, count, p.units(p.depth), query, lanes, score_scale(p), scores,
                            masked ? nullptr : maxima);
  if (masked) p.tiles->mask(scores, count, lanes, bias, crosses ? limits : nullptr, first, maxima);
  p.tiles->advance(maxima, lanes, s.maxima + lane, s.sums + lane, shifts, fades);
  float* keep = nullptr;
  if (p.drops) {
    keep = buffers.keep.get<float>(kKeyBlock * kLanes);
    p.tiles->dropout(p.seed, s.panel.counters + lane, first, count, lanes, p.threshold, p.kept, keep);
  }
  p.products->exponentials(scores, count, lanes, shifts, s.sums + lane, keep);
  p.products->columns_by_panel(values.data, values.row_bytes, p.value_depth, p.units(count), scores, lanes,
                               s.started ? fades : nullptr, s.result + lane);
}

// A panel meets a block of keys. Where causal order excludes keys for some of its queries, the rest of the block is a
// block of its own, whose lanes are computed by sixteen, each only as far as its last key.
void meet_block(const AttentionProblem& p, State& s, const AttentionProblem::MaskRows& mask, Units keys, Units values,
                int64_t first, int64_t count) {
  count = std::min(count, s.panel.key_end - first);
  int64_t open = std::clamp<int64_t>(s.panel.open_end - first, 0, count) / kOpenKeys * kOpenKeys;
  if (s.panel.open_end >= first + count) open = count;
  for (auto [begin, end] : {std::pair{int64_t{0}, open}, std::pair{open, count}}) {
    if (begin == end) continue;
    float* bias = nullptr;
    if (p.mask != nullptr) {
      bias = buffers.bias.get<float>(kKeyBlock * kLanes);
      if (!load_bias(p, mask, s.panel, first + begin, end - begin, buffers.rows, bias)) continue;
    }
    Units from{keys.data + begin * keys.row_bytes, keys.row_bytes};
    Units to{values.data + p.units(begin) * values.row_bytes, values.row_bytes};
    const int lanes = (s.panel.lanes + 15) / 16 * 16;
    if (begin == 0 && end == open) {
      meet(p, s, 0, lanes, bias, from, to, first, end);
    } else {
      for (int lane = 0; lane < lanes; lane += 16) {
        int64_t last = *std::max_element(s.panel.limits + lane, s.panel.limits + lane + 16);
        int64_t met = std::min(end, last + 1 - first) - begin;
        if (met > 0) {
          meet(p, s, lane, 16, bias == nullptr ? nullptr : bias + lane, from, to, first + begin, met);
        } else if (!s.started) {
          for (int64_t j = 0; j < p.value_depth; ++j) std::fill_n(s.result + j * kLanes + lane, 16, 0.0f);
        }
      }
    }
    s.started = true;
  }
}

void finish(const AttentionProblem& p, State& s, const Rows& out, const Rows& logs, const Rows& maxima,
            const Rows& sums) {
  if (!s.started) std::fill(s.result, s.result + p.value_depth * kLanes, 0.0f);
  alignas(64) float factors[kLanes];
  for (int i = 0; i < kLanes; ++i) factors[i] = s.sums[i] == 0 ? 0.0f : 1.0f / s.sums[i];
  p.tiles->scale_lanes(s.result, p.value_depth, kLanes, factors);
  store_panel(p, out, s.panel, s.result, buffers.rows);
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

// `next` is what the thread does next.
void forward_rows(const AttentionProblem& p, const AttentionOutputs& outputs, const Task& task, const Task& next) {
  auto [batch, key_head, first_row, rows] = task;
  Rows query = p.rows_of(*p.query, batch), key = p.rows_of(*p.key, batch), value = p.rows_of(*p.value, batch);
  AttentionProblem::MaskRows mask = p.mask_rows(batch);
  float* queries = buffers.queries.get<float>(kPanels * kLanes * p.units(p.depth));
  float* results = buffers.results.get<float>(kPanels * kLanes * p.value_depth);
  std::vector<State> states;
  states.reserve(kPanels);
  int64_t key_end = 0;
  for (int64_t row = 0; row < rows; row += kLanes) {
    auto index = static_cast<int64_t>(states.size());
    Panel panel(p, batch, key_head * p.group(), first_row + row, rows - row);
    states.push_back(
        State(panel, queries + index * kLanes * p.units(p.depth), results + index * kLanes * p.value_depth));
    load_queries(p, query, panel, buffers.rows, states.back().query);
    key_end = std::max(key_end, panel.key_end);
  }
  for (int64_t first = 0; first < key_end; first += kKeyBlock) {
    int64_t count = std::min(kKeyBlock, key_end - first);
    Units keys = unit_rows(p, key, key_head, first, count, buffers.keys);
    Units values = paired_rows(p, value, key_head, first, count, buffers.values);
    if (first + kKeyBlock >= key_end) {
      prefetch_rows(p.rows_of(outputs.out, batch), key_head * p.group(), p.queries, first_row, rows);
      prefetch_rows(p.rows_of(*p.query, next.batch), next.key_head * p.group(), p.queries, next.first_row, next.rows);
    }
    for (State& s : states) {
      if (s.panel.key_end > first) meet_block(p, s, mask, keys, values, first, count);
    }
  }
  Rows out = p.rows_of(outputs.out, batch), logs = p.row_values(outputs.logsumexp, batch),
       maxima = p.row_values(outputs.maxima, batch), sums = p.row_values(outputs.sums, batch);
  for (State& s : states) finish(p, s, out, logs, maxima, sums);
}

// outputs: out [batch…, heads, queries, value depth]; float32 [batch…, heads, queries]: the logarithm of the sum of the
// scores' exponentials, the largest score (-infinity for a query without keys), and the sum of the exponentials of
// scores less the largest; on matrix units a number a little below the largest may take its place. inputs: query, key,
// value, optional mask; attributes and scalars: see AttentionProblem.
void run(const Call& call) {
  AttentionProblem p(call.inputs[0], call.inputs[1], call.inputs[2], call.inputs.size() > 3 ? &call.inputs[3] : nullptr,
                     call);
  AttentionOutputs outputs{call.outputs[0], call.outputs[1], call.outputs[2], call.outputs[3]};
  if (decodes(p)) return decode(p, outputs, call.threads);
  if (p.matrix) return attend_on_matrix_units(p, outputs, call.threads);
  int64_t rows = p.group() * p.queries;
  // How many rows a task has changes no result: fewer when there are threads to feed.
  int64_t task_rows = kPanels * kLanes;
  while (task_rows > kLanes && p.batch * p.key_heads * ((rows + task_rows - 1) / task_rows) < 2 * call.threads) {
    task_rows -= kLanes;
  }
  int64_t tasks = (rows + task_rows - 1) / task_rows;
  parallel_for(call.threads, p.batch * p.key_heads * tasks, 1, [&](int64_t begin, int64_t end) {
    auto task = [&](int64_t index) {
      int64_t head = index / tasks, first = balanced(index % tasks, tasks) * task_rows;
      return Task{head / p.key_heads, head % p.key_heads, first, std::min(task_rows, rows - first)};
    };
    for (int64_t index = begin; index < end; ++index) {
      forward_rows(p, outputs, task(index), task(std::min(index + 1, end - 1)));
    }
  });
}

const KernelRegistration registration({.name = "attention", .run = run});

}  // namespace
}  // namespace neuron::kernels
