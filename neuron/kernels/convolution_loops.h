// The routines of convolution_routines.h for one instruction set. The file that includes this header includes that of
// its `Vector` before.
#pragma once

#include "neuron/kernels/convolution_routines.h"

namespace neuron::kernels {
namespace {

// A register of a panel's rows: the lanes of each piece come from a place of its own.
struct Piece {
  int64_t offset;  // of lane 0, from the source of a row
  int64_t begin, end;
};

constexpr int kMostPieces = Vector::kLanes;

// kPieces: 0 when there is one, which is a whole register, and kMostPieces for `count`.
template <int kPieces>
NEURON_TARGET void copy_register(const float* source, const int64_t* offsets, int64_t depth, const Piece* pieces,
                                 int count, int width, float* panel) {
  Vector::Lanes lanes[kPieces + 1];
  if constexpr (kPieces != kMostPieces) count = kPieces;
  for (int i = 0; i < count; ++i) lanes[i] = Vector::lanes(pieces[i].begin, pieces[i].end);
  for (int64_t p = 0; p < depth; ++p, panel += width) {
    const float* row = source + offsets[p];
    Vector::Register values;
    if constexpr (kPieces == 0) {
      values = Vector::load(row + pieces[0].offset);
    } else {
      values = Vector::zero();
#pragma GCC unroll 4
      for (int i = 0; i < count; ++i) values = Vector::load_lanes(row + pieces[i].offset, lanes[i], values);
    }
    __builtin_prefetch(row + pieces[0].offset + width);  // where the next panel reads
    Vector::store(panel, values);
  }
}

// A panel is narrower than a register, or as wide as some; what a store writes too much the next row overwrites.
NEURON_TARGET void copy_runs(const float* source, const int64_t* offsets, int64_t depth, const CopyRun* runs,
                             int run_count, int width, float* panel) {
  constexpr int kLanes = Vector::kLanes;
  for (int lane = 0; lane < width; lane += kLanes) {
    Piece pieces[kLanes];
    int used = 0;
    for (int r = 0; r < run_count; ++r) {
      int64_t begin = runs[r].lane - lane, end = begin + runs[r].length;
      Piece piece{runs[r].offset - begin, begin > 0 ? begin : 0, end < kLanes ? end : kLanes};
      if (piece.begin < piece.end) pieces[used++] = piece;
    }
    float* target = panel + lane;
    if (used == 0) continue;
    bool whole = used == 1 && pieces[0].begin == 0 && pieces[0].end == kLanes;
    auto* copy = whole       ? copy_register<0>
                 : used == 1 ? copy_register<1>
                 : used == 2 ? copy_register<2>
                 : used == 3 ? copy_register<3>
                 : used == 4 ? copy_register<4>
                             : copy_register<kMostPieces>;
    copy(source, offsets, depth, pieces, used, width, target);
  }
}

NEURON_TARGET void copy_run_pairs(const float* source, const int64_t* offsets, int64_t depth, const CopyRun* runs,
                                  int run_count, int width, float* panel) {
  constexpr int kLanes = Vector::kLanes;
  for (int64_t p = 0; p < depth; p += 2, panel += width) {
    bool odd = p + 1 == depth;
    for (int r = 0; r < run_count; ++r) {
      const float* low = source + offsets[p] + runs[r].offset;
      const float* high = odd ? low : source + offsets[p + 1] + runs[r].offset;
      float* to = panel + runs[r].lane;
      for (int64_t left = runs[r].length; left > 0; left -= kLanes, low += kLanes, high += kLanes, to += kLanes) {
        Vector::Register x = left >= kLanes ? Vector::load(low) : Vector::load_first(low, left);
        Vector::Register y = Vector::zero();
        if (!odd) y = left >= kLanes ? Vector::load(high) : Vector::load_first(high, left);
        Vector::store(to, Vector::pair(x, y));
      }
    }
  }
}

NEURON_TARGET void copy_line(const float* source, int64_t before, int64_t count, int64_t total, float* target) {
  constexpr int kLanes = Vector::kLanes;
  int64_t x = 0;
  for (; x < before; x += kLanes) Vector::store(target + x, Vector::zero());
  x = before;
  for (; x + kLanes <= before + count; x += kLanes) Vector::store(target + x, Vector::load(source + x - before));
  if (x < before + count) {  // the lanes behind are zero
    Vector::store(target + x, Vector::load_first(source + x - before, before + count - x));
    x += kLanes;
  }
  for (; x < total; x += kLanes) Vector::store(target + x, Vector::zero());
}

template <int kRegisters>
NEURON_INLINE void accumulate_block(const float* source, const int64_t* offsets, const float* weights, int64_t depth,
                                    float* target) {
  Vector::Register sums[kRegisters];
#pragma GCC unroll 8
  for (int i = 0; i < kRegisters; ++i) sums[i] = Vector::zero();
  for (int64_t p = 0; p < depth; ++p) {
    Vector::Register weight = Vector::broadcast(weights[p]);
    const float* from = source + offsets[p];
#pragma GCC unroll 8
    for (int i = 0; i < kRegisters; ++i) {
      sums[i] = Vector::multiply_add(weight, Vector::load(from + i * Vector::kLanes), sums[i]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRegisters; ++i) Vector::store(target + i * Vector::kLanes, sums[i]);
}

NEURON_TARGET void accumulate(const float* source, const int64_t* offsets, const float* weights, int64_t depth,
                              int64_t length, float* target) {
  constexpr int kLanes = Vector::kLanes;
  int64_t x = 0;
  for (; x + 6 * kLanes < length; x += 8 * kLanes) {
    accumulate_block<8>(source + x, offsets, weights, depth, target + x);
  }
  for (; x + 2 * kLanes < length; x += 4 * kLanes) {
    accumulate_block<4>(source + x, offsets, weights, depth, target + x);
  }
  for (; x < length; x += 2 * kLanes) accumulate_block<2>(source + x, offsets, weights, depth, target + x);
}

// Four target lines at a time: each source element is loaded once for all of them.
constexpr int kGridLines = 4, kGridRegisters = Vector::kSums >= 24 ? 4 : 2;

// Source line r meets target lines kFirst … kLast of the four, with kernel line r - target line.
template <int kFirst, int kLast, int kRegisters>
NEURON_INLINE void accumulate_source_line(Vector::Register sums[kGridLines][kRegisters], const float* source,
                                          const float* weights, int64_t kernel_width) {
  for (int64_t e = 0; e < kernel_width; ++e) {
    Vector::Register values[kRegisters];
#pragma GCC unroll 4
    for (int i = 0; i < kRegisters; ++i) values[i] = Vector::load(source + e + i * Vector::kLanes);
#pragma GCC unroll 4
    for (int j = kFirst; j <= kLast; ++j) {
      Vector::Register weight = Vector::broadcast(weights[e - j * kernel_width]);
#pragma GCC unroll 4
      for (int i = 0; i < kRegisters; ++i) sums[j][i] = Vector::multiply_add(weight, values[i], sums[j][i]);
    }
  }
}

// `count` elements of each of the four lines, at most kRegisters of them.
template <int kRegisters>
NEURON_TARGET void accumulate_four_lines(const float* source, const float* weights, int64_t kernel_height,
                                         int64_t kernel_width, int64_t line, int64_t count, float bias, float* target,
                                         int64_t target_line) {
  Vector::Register sums[kGridLines][kRegisters];
#pragma GCC unroll 4
  for (int j = 0; j < kGridLines; ++j) {
#pragma GCC unroll 4
    for (int i = 0; i < kRegisters; ++i) sums[j][i] = Vector::zero();
  }
  accumulate_source_line<0, 0>(sums, source, weights, kernel_width);
  accumulate_source_line<0, 1>(sums, source + line, weights + kernel_width, kernel_width);
  accumulate_source_line<0, 2>(sums, source + 2 * line, weights + 2 * kernel_width, kernel_width);
  int64_t r = 3;
  for (; r < kernel_height; ++r) {
    accumulate_source_line<0, 3>(sums, source + r * line, weights + r * kernel_width, kernel_width);
  }
  accumulate_source_line<1, 3>(sums, source + r * line, weights + r * kernel_width, kernel_width);
  ++r;
  accumulate_source_line<2, 3>(sums, source + r * line, weights + r * kernel_width, kernel_width);
  ++r;
  accumulate_source_line<3, 3>(sums, source + r * line, weights + r * kernel_width, kernel_width);
  Vector::Register shift = Vector::broadcast(bias);
#pragma GCC unroll 4
  for (int j = 0; j < kGridLines; ++j) {
#pragma GCC unroll 4
    for (int i = 0; i < kRegisters; ++i) {
      float* to = target + j * target_line + i * Vector::kLanes;
      int64_t left = count - i * Vector::kLanes;
      Vector::Register sum = Vector::add(sums[j][i], shift);
      if (left >= Vector::kLanes) {
        Vector::store(to, sum);
      } else if (left > 0) {
        Vector::store_first(to, left, sum);
      }
    }
  }
}

void accumulate_grid(const float* source, const float* weights, int64_t kernel_height, int64_t kernel_width,
                     int64_t line, int64_t lines, int64_t length, float bias, float* target, int64_t target_line) {
  constexpr int64_t kStep = kGridRegisters * Vector::kLanes;
  for (int64_t y = 0; y < lines; y += kGridLines) {
    int64_t first = y + kGridLines <= lines ? y : lines - kGridLines;  // the last four lines may be done anew
    for (int64_t x = 0; x < length; x += kStep) {
      int64_t count = length - x < kStep ? length - x : kStep;
      auto* run = 2 * count > kStep ? accumulate_four_lines<kGridRegisters> : accumulate_four_lines<kGridRegisters / 2>;
      run(source + first * line + x, weights, kernel_height, kernel_width, line, count, bias,
          target + first * target_line + x, target_line);
    }
  }
}

NEURON_TARGET void add_bias(const float* sums, int64_t step, float bias, int64_t count, float* target) {
  if (step != 1) {
    for (int64_t j = 0; j < count; ++j) target[j] = sums[j * step] + bias;
    return;
  }
  Vector::Register shift = Vector::broadcast(bias);
  int64_t j = 0;
  for (; j + Vector::kLanes <= count; j += Vector::kLanes) {
    Vector::store(target + j, Vector::add(Vector::load(sums + j), shift));
  }
  if (j < count)
    Vector::store_first(target + j, count - j, Vector::add(Vector::load_first(sums + j, count - j), shift));
}

template <int kTaps>
NEURON_INLINE void correlate_taps(const float* source, const int64_t* offsets, const float* gradient,
                                  const int64_t* line_offsets, int64_t lines, int64_t length, float* sums) {
  constexpr int kLanes = Vector::kLanes;
  Vector::Register totals[kTaps];
#pragma GCC unroll 8
  for (int t = 0; t < kTaps; ++t) totals[t] = Vector::zero();
  for (int64_t line = 0; line < lines; ++line, gradient += length) {
    const float* from = source + line_offsets[line];
    int64_t x = 0;
    for (; x + kLanes <= length; x += kLanes) {
      Vector::Register above = Vector::load(gradient + x);
#pragma GCC unroll 8
      for (int t = 0; t < kTaps; ++t) {
        totals[t] = Vector::multiply_add(above, Vector::load(from + offsets[t] + x), totals[t]);
      }
    }
    if (x < length) {
      Vector::Register above = Vector::load_first(gradient + x, length - x);
#pragma GCC unroll 8
      for (int t = 0; t < kTaps; ++t) {
        totals[t] = Vector::multiply_add(above, Vector::load_first(from + offsets[t] + x, length - x), totals[t]);
      }
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < kTaps; ++t) sums[t] = Vector::sum(totals[t]);
}

NEURON_TARGET void correlate(const float* source, const int64_t* offsets, int taps, const float* gradient,
                             const int64_t* line_offsets, int64_t lines, int64_t length, float* sums) {
  switch (taps) {
    case 8:
      return correlate_taps<8>(source, offsets, gradient, line_offsets, lines, length, sums);
    case 7:
      return correlate_taps<7>(source, offsets, gradient, line_offsets, lines, length, sums);
    default:
      for (int t = 0; t < taps; ++t) {
        correlate_taps<1>(source, offsets + t, gradient, line_offsets, lines, length, sums + t);
      }
  }
}

}  // namespace
}  // namespace neuron::kernels
