// Keys are cut into splits of kSplit, each with a maximum, a sum and a result of its own; those are joined in order. So
// one long sequence occupies all threads, and how many there are changes nothing.
#include "neuron/kernels/attention_decode.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "neuron/base/philox.h"
#include "neuron/base/thread_pool.h"
#include "neuron/kernels/attention_matrix.h"
#include "neuron/kernels/float_lines.h"
#include "neuron/kernels/matrix_units.h"

namespace neuron::kernels {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr int64_t kSplit = 512;  // part of the order of summation
static_assert(kSplit <= kMostWeighed && kDecodeRows <= kMostVectors);

constexpr int64_t kMatrixRows = 3;   // from as many on products run on matrix units
constexpr int64_t kPairedKeys = 32;  // whose values are paired before they are weighed

struct Buffers {
  Scratch partials, queries, keys, values, weights, bias, scores, rounded, results, widened;
};
thread_local Buffers buffers;

// What a split gives for one row: its weighted values, at the beginning of a cache line, its largest score and its sum
// of exponentials.
struct Partial {
  static int64_t floats(int64_t value_depth) { return (value_depth + 2 + 15) / 16 * 16; }
  float *values, *maximum, *sum;
  Partial(float* memory, int64_t index, int64_t value_depth)
      : values(memory + index * floats(value_depth)), maximum(values + value_depth), sum(maximum + 1) {}
};

class Decode {
 public:
  Decode(const AttentionProblem& problem, const AttentionOutputs& outputs)
      : p_(problem),
        outputs_(outputs),
        rows_(problem.group() * problem.queries),
        lanes_(rows_ <= 2   ? static_cast<int>(rows_)
               : rows_ <= 4 ? 4
                            : 8),
        splits_(std::max<int64_t>(1, (problem.keys + kSplit - 1) / kSplit)),
        matrix_(problem.matrix && problem.group() * problem.queries >= kMatrixRows),
        partials_(buffers.partials.get<float>(problem.batch * problem.key_heads * splits_ * rows_ *
                                              Partial::floats(problem.value_depth))) {}

  struct Place {
    int64_t batch, key_head, first, count;  // of keys
  };
  Place place(int64_t index) const {
    const int64_t first = index % splits_ * kSplit;
    return {index / splits_ / p_.key_heads, index / splits_ % p_.key_heads, first, std::min(kSplit, p_.keys - first)};
  }

  int64_t splits() const { return p_.batch * p_.key_heads * splits_; }
  int64_t results() const { return p_.batch * p_.key_heads * rows_; }

  // Splits [begin, end), whose queries are loaded once for a key head.
  void splits(int64_t begin, int64_t end) const {
    for (int64_t index = begin; index < end; ++index) {
      const Place at = place(index);
      if (!matrix_ && (index == begin || at.first == 0)) load_queries(at.batch, at.key_head);
      split(index, at, index + 1 == end);
    }
  }

  // `last`: this thread takes no split after it, whose keys would be asked for.
  void split(int64_t index, const Place& at, bool last) const {
    const int64_t count = at.count;
    Rows key = p_.rows_of(*p_.key, at.batch), value = p_.rows_of(*p_.value, at.batch);
    float* weights = buffers.weights.get<float>(kDecodeRows * kSplit);
    // Of a row, and of one of its keys; on matrix units row after row.
    const int64_t row_step = matrix_ ? kSplit : 1, key_step = matrix_ ? 1 : lanes_;
    if (matrix_) {
      score_on_matrix_units(at, key, weights);
    } else {
      score(at, source(key, at, buffers.keys), alike(key, value) ? value.at(at.key_head, at.first) : nullptr, weights);
    }
    if (p_.mask != nullptr) add_mask(at, weights, row_step, key_step);
    for (int64_t r = 0; p_.causal && r < rows_; ++r) {
      for (int64_t k = std::max<int64_t>(0, r % p_.queries + 1 - at.first); k < count; ++k) {
        weights[r * row_step + k * key_step] = kLowest;
      }
    }
    softmax(weights, count, index);
    if (p_.drops) {
      for (int64_t r = 0; r < rows_; ++r) {
        drop(p_.counter(at.batch, at.key_head * p_.group() + r / p_.queries, r % p_.queries), at.first, count,
             weights + r * row_step, key_step);
      }
    }
    if (matrix_) return weigh_on_matrix_units(at, value, weights, index);
    Source values = source(value, at, buffers.values);
    const char* next = nullptr;
    if (!last && alike(key, value)) {
      const Place after = place(index + 1);
      next = p_.rows_of(*p_.key, after.batch).at(after.key_head, after.first);
    }
    values.products->weigh(values.units.data, values.units.row_bytes, count, p_.value_depth, weights, lanes_,
                           static_cast<int>(rows_), Partial(partials_, index * rows_, p_.value_depth).values,
                           Partial::floats(p_.value_depth), next);
  }

  void join(int64_t index) const {
    int64_t row = index % rows_, key_head = index / rows_ % p_.key_heads, batch = index / rows_ / p_.key_heads;
    int64_t first = index / rows_ * splits_;
    float largest = kLowest, sum = 0;
    for (int64_t s = 0; s < splits_; ++s) {
      largest = std::max(largest, *Partial(partials_, (first + s) * rows_ + row, p_.value_depth).maximum);
    }
    float* result = buffers.bias.get<float>(p_.value_depth);
    std::fill(result, result + p_.value_depth, 0.0f);
    for (int64_t s = 0; s < splits_; ++s) {
      Partial partial(partials_, (first + s) * rows_ + row, p_.value_depth);
      float fade = *partial.maximum == largest ? 1.0f : std::exp(*partial.maximum - largest);
      sum += fade * *partial.sum;
      for (int64_t j = 0; j < p_.value_depth; ++j) result[j] += fade * partial.values[j];
    }
    float factor = sum == 0 ? 0.0f : 1.0f / sum;
    for (int64_t j = 0; j < p_.value_depth; ++j) result[j] *= factor;
    int64_t head = key_head * p_.group() + row / p_.queries, position = row % p_.queries;
    Rows out = p_.rows_of(outputs_.out, batch);
    round_row(out.dtype, result, out.columns, out.at(head, position), out.step());
    *reinterpret_cast<float*>(p_.row_values(outputs_.logsumexp, batch).at(head, position)) =
        sum == 0 ? kLowest : largest + std::log(sum);
    *reinterpret_cast<float*>(p_.row_values(outputs_.maxima, batch).at(head, position)) = largest;
    *reinterpret_cast<float*>(p_.row_values(outputs_.sums, batch).at(head, position)) = sum;
  }

 private:
  // Whether rows of one may be asked for as those of the other.
  static bool alike(const Rows& x, const Rows& y) {
    return x.row == y.row && x.columns == y.columns && x.step() == 1 && y.step() == 1;
  }

  // Rows of keys or values, and the products that take them: as they lie in memory where elements of a row are
  // adjacent.
  struct Source {
    Units units;
    const AttentionRows* products;
  };
  Source source(const Rows& rows, const Place& at, Scratch& scratch) const {
    if (!p_.pairs && rows.step() == 1) return {{rows.at(at.key_head, at.first), rows.row}, &rows_in_memory()};
    return {unit_rows(p_, rows, at.key_head, at.first, at.count, scratch),
            p_.pairs ? &p_.tiles->bfloat16_pair_rows : &p_.tiles->float_rows};
  }
  const AttentionRows& rows_in_memory() const {
    switch (p_.key->dtype) {
      case DType::Float32:
        return p_.tiles->float_rows;
      case DType::Float16:
        return p_.tiles->half_rows;
      default:
        return p_.pairs ? p_.tiles->bfloat16_pair_rows : p_.tiles->bfloat16_rows;
    }
  }

  // Puts the queries of a key head where score() takes them.
  void load_queries(int64_t batch, int64_t key_head) const {
    const int64_t units = p_.units(p_.depth), padded = (units + 15) / 16 * 16;
    const bool grouped = lanes_ > 2;
    Rows query = p_.rows_of(*p_.query, batch);
    char* queries = buffers.queries.get<char>(lanes_ * padded * 4);
    std::memset(queries, 0, lanes_ * padded * 4);
    for (int64_t r = 0; r < rows_; ++r) {
      Units row = unit_rows(p_, query, key_head * p_.group() + r / p_.queries, r % p_.queries, 1, buffers.bias);
      char* target = queries + (grouped ? panel_place(static_cast<int>(r), lanes_) * 16 : r * padded * 4);
      const int64_t together = grouped ? 4 : units;
      for (int64_t u = 0; u < units; u += together, target += lanes_ * 16) {
        std::memcpy(target, row.data + u * 4, std::min(together, units - u) * 4);
      }
    }
  }

  // weights[key][lane] = scale * the products of queries and keys.
  void score(const Place& at, const Source& keys, const char* next, float* weights) const {
    const int64_t units = p_.units(p_.depth), padded = (units + 15) / 16 * 16;
    const bool grouped = lanes_ > 2;
    const char* queries = buffers.queries.get<char>(lanes_ * padded * 4);
    const char* data = keys.units.data;
    if (grouped) {
      keys.products->dot_groups(data, keys.units.row_bytes, at.count, units, reinterpret_cast<const float*>(queries),
                                lanes_, p_.scale, weights, next, buffers.widened.get<float>(kWidenedRows * padded));
    } else {
      keys.products->dot(data, keys.units.row_bytes, at.count, units, queries, padded, lanes_, p_.scale, weights);
    }
  }

  void add_mask(const Place& at, float* weights, int64_t row_step, int64_t key_step) const {
    const AttentionProblem::MaskRows mask = p_.mask_rows(at.batch);
    float* bias = buffers.bias.get<float>(kSplit);
    // One line for all.
    const bool shared =
        !matrix_ && (mask.head == 0 || p_.group() == 1) && (mask.row == 0 || p_.queries == 1) && lanes_ >= 4;
    for (int64_t r = 0; r < (shared ? 1 : rows_); ++r) {
      const int64_t head = at.key_head * p_.group() + r / p_.queries, position = r % p_.queries;
      widen_mask(p_, mask.data + head * mask.head + position * mask.row + at.first * mask.step, mask.step, at.count,
                 bias);
      if (shared) {
        lanes_ == 4 ? add_to_lanes<4>(bias, at.count, weights) : add_to_lanes<8>(bias, at.count, weights);
      } else {
        for (int64_t k = 0; k < at.count; ++k) weights[r * row_step + k * key_step] += bias[k];
      }
    }
  }
  template <int kLanesOfKey>
  static void add_to_lanes(const float* bias, int64_t keys, float* weights) {
    for (int64_t k = 0; k < keys; ++k, weights += kLanesOfKey) {
      for (int l = 0; l < kLanesOfKey; ++l) weights[l] += bias[k];
    }
  }

  // Scores become exponentials; largest scores and sums are those of the split.
  void softmax(float* weights, int64_t count, int64_t index) const {
    float maxima[kDecodeRows], shifts[kDecodeRows], sums[kDecodeRows];
    const auto shift = [](float maximum) { return maximum == kLowest ? 0.0f : maximum; };
    if (matrix_) {
      for (int64_t r = 0; r < rows_; ++r) {
        maxima[r] = p_.tiles->row_maximum(weights + r * kSplit, count);
        sums[r] = p_.tiles->row_exponentials(weights + r * kSplit, count, shift(maxima[r]));
      }
    } else {
      p_.tiles->lane_maxima(weights, count, lanes_, maxima);
      std::transform(maxima, maxima + lanes_, shifts, shift);
      p_.tiles->lane_exponentials(weights, count, lanes_, shifts, sums);
    }
    for (int64_t r = 0; r < rows_; ++r) {
      Partial partial(partials_, index * rows_ + r, p_.value_depth);
      *partial.maximum = maxima[r];
      *partial.sum = sums[r];
    }
  }

  // The same of all rows at once, each in a lane of a tile.
  void score_on_matrix_units(const Place& at, const Rows& key, float* weights) const {
    const MatrixTiles tiles;
    const int64_t count = at.count;
    Rows query = p_.rows_of(*p_.query, at.batch);
    float* queries = buffers.queries.get<float>(kLanes * right_panel_units(p_.depth));
    const Panel panel(p_, at.batch, at.key_head * p_.group(), 0, rows_);
    load_right_panel(p_, query, panel, buffers.bias, queries);
    // Memory of whole tiles is read as it is.
    const bool whole = key.step() == 1 && p_.depth % 32 == 0 && count % 16 == 0;
    LeftTiles keys = whole ? LeftTiles{key.at(at.key_head, at.first), key.row}
                           : left_rows(key, at.key_head, at.first, count, buffers.keys, buffers.bias);
    float* scores = buffers.scores.get<float>(kSplit * 16);
    attention_matrix_units.multiply(keys, round_up(count, 16), round_up(p_.depth, 32), queries, kLanes * 4, 16, scores,
                                    16, false);
    attention_matrix_units.turn(scores, count, static_cast<int>(rows_), p_.scale, weights, kSplit);
  }

  void weigh_on_matrix_units(const Place& at, const Rows& value, const float* weights, int64_t index) const {
    const MatrixTiles tiles;
    const int64_t count = at.count;
    const int64_t width = round_up(p_.value_depth, 16), row_bytes = round_up(count, 32) * 2;
    char* rounded = buffers.rounded.get<char>(16 * row_bytes);
    std::memset(rounded, 0, 16 * row_bytes);
    attention_matrix_units.store_rows(weights, kSplit, rows_, count, 1, rounded, row_bytes);
    float* results = buffers.results.get<float>(16 * width);
    auto* units = buffers.values.get<uint32_t>(kPairedKeys / 2 * width);
    for (int64_t k = 0; k < count; k += kPairedKeys) {
      const int64_t part = std::min(kPairedKeys, count - k), padded = round_up(part, 32);
      Units rows = adjacent_rows(value, at.key_head, at.first + k, part, buffers.keys);
      // Weights of zero do not silence what a missing key's memory held.
      if (part < padded) std::memset(units + part / 2 * width, 0, (padded / 2 - part / 2) * width * 4);
      p_.tiles->pair_rows(rows.data, rows.row_bytes, part, p_.value_depth, units, width);
      attention_matrix_units.multiply({rounded + 2 * k, row_bytes}, 16, padded, units, width * 4, width, results, width,
                                      k > 0);
    }
    for (int64_t r = 0; r < rows_; ++r) {
      std::copy_n(results + r * width, p_.value_depth, Partial(partials_, index * rows_ + r, p_.value_depth).values);
    }
  }

  void drop(uint64_t counter, int64_t first, int64_t count, float* line, int64_t step) const {
    for (int64_t k = 0; k < count; k += 4) {
      auto words = philox(p_.seed, counter + static_cast<uint64_t>(first + k) / 4);
      for (int64_t i = 0; i < 4 && k + i < count; ++i) {
        line[(k + i) * step] *= words[i] >> 8 < p_.threshold ? p_.kept : 0.0f;
      }
    }
  }

  const AttentionProblem& p_;
  const AttentionOutputs& outputs_;
  int64_t rows_;
  int lanes_;
  int64_t splits_;
  bool matrix_;
  float* partials_;
};

}  // namespace

void decode(const AttentionProblem& p, const AttentionOutputs& outputs, int threads) {
  const Decode work(p, outputs);
  parallel_for(threads, work.splits(), 1, [&](int64_t begin, int64_t end) { work.splits(begin, end); });
  parallel_for(threads, work.results(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) work.join(index);
  });
}

}  // namespace neuron::kernels
