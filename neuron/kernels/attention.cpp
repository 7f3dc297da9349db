#include "neuron/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "neuron/base/error.h"
#include "neuron/kernels/float_lines.h"
#include "neuron/kernels/matrix_units.h"

namespace neuron::kernels {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// Whether a row of the view is units as it lies in memory.
bool is_units(const AttentionProblem& p, const Rows& rows) {
  if (rows.step() != 1) return false;
  return p.pairs ? rows.columns % 2 == 0 : rows.dtype == DType::Float32;
}

// One row as units; the last pair of an odd row is filled with zero.
void copy_units(const AttentionProblem& p, const Rows& rows, const char* source, char* target) {
  if (!p.pairs) {
    widen_row(rows.dtype, source, rows.step(), rows.columns, reinterpret_cast<float*>(target));
    return;
  }
  auto* elements = reinterpret_cast<uint16_t*>(target);
  for (int64_t j = 0; j < rows.columns; ++j) std::memcpy(elements + j, source + j * rows.column, 2);
  if (rows.columns % 2 != 0) elements[rows.columns] = 0;
}

const AttentionTiles& tiles_of(AttentionUnits units) {
  switch (units) {
    case AttentionUnits::Avx2:
      return attention_tiles_avx2;
    case AttentionUnits::Avx512:
      return attention_tiles_avx512;
    case AttentionUnits::Avx512BFloat16:
      return attention_tiles_avx512_bf16;
    case AttentionUnits::Best:
      break;
  }
  return detected_attention_tiles();
}

AttentionUnits units_of(const Call& call) {
  return call.attributes.size() > 2 ? static_cast<AttentionUnits>(call.attributes[2]) : AttentionUnits::Best;
}

}  // namespace

AttentionProblem::AttentionProblem(const TensorView& query, const TensorView& key, const TensorView& value,
                                   const TensorView* mask, const Call& call)
    : query(&query),
      key(&key),
      value(&value),
      mask(mask),
      causal(call.attributes[0] != 0),
      scale(static_cast<float>(call.scalars[0].as_double())),
      tiles(&tiles_of(units_of(call))) {
  int rank = query.rank();
  check_internal(rank >= 3 && key.rank() == rank && value.rank() == rank, "attention: ranks {}, {} and {}", rank,
                 key.rank(), value.rank());
  check_internal(query.dtype == DType::Float32 || query.dtype == DType::BFloat16 || query.dtype == DType::Float16,
                 "attention was given {}", dtype_name(query.dtype));
  batch = 1;
  for (int d = 0; d < rank - 3; ++d) batch *= query.sizes[d];
  heads = query.sizes[rank - 3];
  key_heads = key.sizes[rank - 3];
  queries = query.sizes[rank - 2];
  keys = key.sizes[rank - 2];
  depth = query.sizes[rank - 1];
  value_depth = value.sizes[rank - 1];
  check_internal(key_heads > 0 && heads % key_heads == 0, "attention: {} query heads for {} key heads", heads,
                 key_heads);
  pairs = query.dtype == DType::BFloat16 && tiles->pairs.rows_by_panel != nullptr;
  matrix = pairs && units_of(call) == AttentionUnits::Best && has_bfloat16_matrix_units();
  products = pairs ? &tiles->pairs : &tiles->floats;
  if (call.scalars.size() > 1) {
    drops = true;
    double keep = 1.0 - call.scalars[1].as_double();
    threshold = static_cast<uint32_t>(std::ceil(static_cast<double>(static_cast<float>(keep)) * 0x1p24));
    kept = keep > 0 ? static_cast<float>(1.0 / keep) : 0.0f;
    seed = static_cast<uint64_t>(call.scalars[2].as_int());
    offset = static_cast<uint64_t>(call.scalars[3].as_int());
  }
}

Rows AttentionProblem::rows_of(const TensorView& view, int64_t batch_index) const {
  int rank = view.rank();
  auto size = static_cast<int64_t>(dtype_size(view.dtype));
  int64_t offset_elements = 0;
  for (int d = rank - 4; d >= 0; --d) {
    offset_elements += batch_index % view.sizes[d] * view.strides[d];
    batch_index /= view.sizes[d];
  }
  return {view.as<char>() + offset_elements * size,
          view.dtype,
          view.strides[rank - 3] * size,
          view.strides[rank - 2] * size,
          view.strides[rank - 1] * size,
          view.sizes[rank - 1]};
}

Rows AttentionProblem::row_values(const TensorView& view, int64_t batch_index) const {
  TensorView column = view;
  column.sizes.push_back(1);
  column.strides.push_back(1);
  return rows_of(column, batch_index);
}

AttentionProblem::MaskRows AttentionProblem::mask_rows(int64_t batch_index) const {
  if (mask == nullptr) return {};
  int rank = mask->rank(), problem_rank = query->rank();
  auto size = static_cast<int64_t>(dtype_size(mask->dtype));
  MaskRows rows{mask->as<char>()};
  for (int d = problem_rank - 1; d >= 0; --d) {
    int own = d - (problem_rank - rank);
    bool spans = own >= 0 && mask->sizes[own] != 1;
    int64_t stride = spans ? mask->strides[own] * size : 0;
    if (d == problem_rank - 1) {
      rows.step = stride;
    } else if (d == problem_rank - 2) {
      rows.row = stride;
    } else if (d == problem_rank - 3) {
      rows.head = stride;
    } else {
      rows.data += batch_index % query->sizes[d] * stride;
      batch_index /= query->sizes[d];
    }
  }
  return rows;
}

void prefetch_rows(const Rows& rows, int64_t first_head, int64_t queries, int64_t first, int64_t count) {
  constexpr int64_t kLine = 64;
  if (rows.step() != 1) return;
  int64_t bytes = rows.columns * static_cast<int64_t>(dtype_size(rows.dtype));
  for (int64_t r = first; r < first + count; ++r) {
    const char* row = rows.at(first_head + r / queries, r % queries);
    for (int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch(row + at, 0, 2);
  }
}

Units unit_rows(const AttentionProblem& p, const Rows& rows, int64_t head, int64_t first, int64_t count,
                Scratch& scratch) {
  if (is_units(p, rows)) return {rows.at(head, first), rows.row};
  int64_t row_bytes = p.units(rows.columns) * 4;
  char* copy = scratch.get<char>(count * row_bytes);
  for (int64_t i = 0; i < count; ++i) copy_units(p, rows, rows.at(head, first + i), copy + i * row_bytes);
  return {copy, row_bytes};
}

Units paired_rows(const AttentionProblem& p, const Rows& rows, int64_t head, int64_t first, int64_t count,
                  Scratch& scratch) {
  if (!p.pairs) return unit_rows(p, rows, head, first, count, scratch);
  int64_t columns = rows.columns, paired = (count + 1) / 2;
  bool adjacent = rows.step() == 1;
  // Rows that do not lie together are gathered behind the units.
  int64_t gathered_bytes = adjacent ? 0 : count * columns * 2;
  char* memory = scratch.get<char>(paired * columns * 4 + gathered_bytes);
  const char* source = rows.at(head, first);
  int64_t row_bytes = rows.row;
  if (!adjacent) {
    char* copy = memory + paired * columns * 4;
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        std::memcpy(copy + (i * columns + j) * 2, rows.at(head, first + i) + j * rows.column, 2);
      }
    }
    source = copy;
    row_bytes = columns * 2;
  }
  p.tiles->pair_rows(source, row_bytes, count, columns, reinterpret_cast<uint32_t*>(memory), columns);
  return {memory, columns * 4};
}

Panel::Panel(const AttentionProblem& p, int64_t batch_index, int64_t first_head, int64_t first_row, int64_t rows)
    : lanes(static_cast<int>(std::min<int64_t>(kLanes, rows))) {
  int64_t last = 0, least = p.queries;
  for (int i = 0; i < kLanes; ++i) {
    int64_t row = first_row + std::min(i, lanes - 1);
    heads[i] = first_head + row / p.queries;
    positions[i] = row % p.queries;
    limits[i] = positions[i];
    counters[i] = p.counter(batch_index, heads[i], positions[i]);
    last = std::max(last, positions[i]);
    least = std::min(least, positions[i]);
  }
  key_end = p.causal ? std::min(p.keys, last + 1) : p.keys;
  open_end = p.causal ? std::min(p.keys, least + 1) : p.keys;
}

PanelSums::PanelSums(const AttentionProblem& p, const AttentionGradients& views, int64_t batch, const Panel& panel,
                     Scratch& scratch) {
  Rows gradient = p.rows_of(views.out_gradient, batch), out = p.rows_of(views.out, batch),
       logs = p.row_values(views.logsumexp, batch), largest, sums;
  if (views.maxima != nullptr) largest = p.row_values(*views.maxima, batch), sums = p.row_values(*views.sums, batch);
  float* values = scratch.get<float>(2 * p.value_depth);
  auto floats = [&](const Rows& rows, int lane, float* target) -> const float* {
    const char* source = rows.at(panel.heads[lane], panel.positions[lane]);
    if (rows.dtype == DType::Float32 && rows.step() == 1) return reinterpret_cast<const float*>(source);
    widen_row(rows.dtype, source, rows.step(), p.value_depth, target);
    return target;
  };
  for (int i = 0; i < panel.lanes; ++i) {
    int64_t head = panel.heads[i], position = panel.positions[i];
    corrections[i] =
        p.tiles->row_dot(floats(gradient, i, values), floats(out, i, values + p.value_depth), p.value_depth);
    float shift = *reinterpret_cast<const float*>(logs.at(head, position));
    // A query without keys: its scores are all -infinity, and so are the arguments of their exponentials.
    if (shift == kLowest) continue;
    inverse_sums[i] = 1;
    if (views.maxima != nullptr) {
      shift = *reinterpret_cast<const float*>(largest.at(head, position));
      inverse_sums[i] = 1.0f / *reinterpret_cast<const float*>(sums.at(head, position));
    }
    maxima[i] = shift;
  }
}

void load_panel(const AttentionProblem& p, const Rows& rows, const Panel& panel, Scratch& scratch, float* target) {
  const char* sources[kLanes];
  int64_t units = p.units(rows.columns);
  char* copies = is_units(p, rows) ? nullptr : scratch.get<char>(kLanes * units * 4);
  for (int i = 0; i < panel.lanes; ++i) {
    const char* row = rows.at(panel.heads[i], panel.positions[i]);
    if (copies != nullptr) {
      copy_units(p, rows, row, copies + i * units * 4);
      row = copies + i * units * 4;
    }
    sources[i] = row;
  }
  p.tiles->to_lanes(sources, panel.lanes, units, target);
}

void load_queries(const AttentionProblem& p, const Rows& rows, const Panel& panel, Scratch& scratch, float* target) {
  load_panel(p, rows, panel, scratch, target);
  if (p.pairs) return;
  alignas(64) float factors[kLanes];
  std::fill(factors, factors + kLanes, p.scale);
  p.tiles->scale_lanes(target, p.depth, panel.lanes, factors);
}

void store_panel(const AttentionProblem& p, const Rows& rows, const Panel& panel, const float* source,
                 Scratch& scratch) {
  if (rows.dtype == DType::Float32 && rows.step() == 1 && panel.heads[0] == panel.heads[panel.lanes - 1]) {
    auto* target = reinterpret_cast<float*>(rows.at(panel.heads[0], panel.positions[0]));
    p.tiles->from_lanes(source, panel.lanes, rows.columns, target, rows.row / static_cast<int64_t>(sizeof(float)));
    return;
  }
  float* values = scratch.get<float>(kLanes * rows.columns);
  p.tiles->from_lanes(source, panel.lanes, rows.columns, values, rows.columns);
  for (int i = 0; i < panel.lanes; ++i) {
    round_row(rows.dtype, values + i * rows.columns, rows.columns, rows.at(panel.heads[i], panel.positions[i]),
              rows.step());
  }
}

void widen_mask(const AttentionProblem& p, const char* mask, int64_t step, int64_t count, float* values) {
  DType dtype = p.mask->dtype;
  if (dtype == DType::Bool && step == 1) {
    for (int64_t j = 0; j < count; ++j) values[j] = mask[j] != 0 ? 0.0f : kLowest;
  } else if (dtype == DType::Bool) {
    for (int64_t j = 0; j < count; ++j) values[j] = mask[j * step] != 0 ? 0.0f : kLowest;
  } else {
    widen_row(dtype, mask, step / static_cast<int64_t>(dtype_size(dtype)), count, values);
  }
}

bool load_bias(const AttentionProblem& p, const AttentionProblem::MaskRows& mask, const Panel& panel, int64_t first,
               int64_t count, Scratch& scratch, float* bias) {
  bool direct = p.mask->dtype == DType::Float32 && mask.step == static_cast<int64_t>(sizeof(float));
  bool shared = mask.row == 0 && mask.head == 0;
  int rows = shared ? 1 : panel.lanes;
  float* copies = direct ? nullptr : scratch.get<float>(kLanes * count);
  const char* sources[kLanes];
  bool open = false;
  for (int i = 0; i < rows; ++i) {
    const char* row = mask.data + panel.heads[i] * mask.head + panel.positions[i] * mask.row + first * mask.step;
    if (copies != nullptr) {
      widen_mask(p, row, mask.step, count, copies + i * count);
      row = reinterpret_cast<const char*>(copies + i * count);
    }
    sources[i] = row;
    auto* values = reinterpret_cast<const float*>(row);
    for (int64_t j = 0; j < count && !open; ++j) open = values[j] != kLowest;
  }
  if (!open) return false;
  if (shared) {
    auto* values = reinterpret_cast<const float*>(sources[0]);
    for (int64_t k = 0; k < count; ++k) std::fill(bias + k * kLanes, bias + (k + 1) * kLanes, values[k]);
  } else {
    p.tiles->to_lanes(sources, panel.lanes, count, bias);
  }
  return true;
}

}  // namespace neuron::kernels
