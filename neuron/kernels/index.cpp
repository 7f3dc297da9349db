#include "neuron/kernels/index.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/avx2.h"
#include "neuron/kernels/copy_line.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/float_lines.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/order_keys.h"
#include "neuron/kernels/strided.h"

namespace neuron::kernels {
namespace {

constexpr int64_t kGrain = 16384;  // elements worth a thread

[[noreturn]] void refuse_index(int64_t value, int64_t dimension, int64_t size, IndexCheck check) {
  if (check == IndexCheck::NonNegative) fail(ErrorKind::Index, "index out of range in self");
  fail(ErrorKind::Index, "index {} is out of bounds for dimension {} with size {}", value, dimension, size);
}

// The places resolved to offsets.
struct IndexedAccess {
  std::vector<int64_t> self_offsets, other_offsets;  // one per position of the block, row-major
  Dims before_sizes, before_self, before_other;
  Dims after_sizes, after_self, after_other;
};

struct Slices {
  StridedLoop<2> before, after;  // operand 0 self, 1 other
  int64_t before_count, after_count;

  explicit Slices(const IndexedAccess& access)
      : before(access.before_sizes, {&access.before_self, &access.before_other}),
        after(access.after_sizes, {&access.after_self, &access.after_other}),
        before_count(before.rows() * before.inner_size()),
        after_count(after.rows() * after.inner_size()) {}

  // body(self offset, other offset) for element `index` of the dimensions before the block.
  template <typename Body>
  void at_before(int64_t index, const Body& body) const {
    int64_t row = index / before.inner_size(), inner = index % before.inner_size();
    before.for_rows(row, row + 1, [&](const auto& offsets) {
      body(offsets[0] + inner * before.inner_strides()[0], offsets[1] + inner * before.inner_strides()[1]);
    });
  }
};

// Visits every (place of self, place of other) line: body(self offset, other offset, count, self stride, other stride).
// Lines of one place of self come in row-major order of the block and on one thread: work is cut along the slices only,
// and along the block when `block_is_free` (reads).
// ahead(self offset) is told of a line some places before its turn.
constexpr int64_t kAhead = 3;

template <typename Body, typename Ahead>
void visit(const IndexedAccess& access, bool block_is_free, int threads, const Body& body, const Ahead& ahead) {
  Slices slices(access);
  int64_t block = static_cast<int64_t>(access.self_offsets.size());
  if (slices.before_count == 0 || slices.after_count == 0 || block == 0) return;
  int64_t self_stride = slices.after.inner_strides()[0], other_stride = slices.after.inner_strides()[1];
  int64_t inner = slices.after.inner_size();
  if (block_is_free) {
    int64_t grain = std::max<int64_t>(1, kGrain / slices.after_count);
    parallel_for(threads, slices.before_count * block, grain, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end;) {
        int64_t before = index / block, stop = std::min(end, (before + 1) * block);
        slices.at_before(before, [&](int64_t self, int64_t other) {
          if (slices.after.rows() == 1) {
            for (int64_t b = index - before * block; b < stop - before * block; ++b) {
              if (b + kAhead < block) ahead(self + access.self_offsets[b + kAhead]);
              body(self + access.self_offsets[b], other + access.other_offsets[b], inner, self_stride, other_stride);
            }
            return;
          }
          for (int64_t b = index - before * block; b < stop - before * block; ++b) {
            slices.after.for_rows(0, slices.after.rows(), [&](const auto& offsets) {
              body(self + access.self_offsets[b] + offsets[0], other + access.other_offsets[b] + offsets[1], inner,
                   self_stride, other_stride);
            });
          }
        });
        index = stop;
      }
    });
    return;
  }
  // Writes: cut along the dimensions before the block and the lines after it; a single long line is cut itself.
  int64_t lines = slices.after.rows(), pieces = 1;
  if (slices.before_count * lines == 1) pieces = std::min<int64_t>(std::max(1, threads), (inner + 255) / 256);
  int64_t piece = (inner + pieces - 1) / pieces;
  int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, block * piece));
  parallel_for(threads, slices.before_count * lines * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      int64_t start = task % pieces * piece, count = std::min(piece, inner - start);
      int64_t line = task / pieces % lines, before = task / pieces / lines;
      if (count <= 0) continue;
      slices.at_before(before, [&](int64_t self, int64_t other) {
        slices.after.for_rows(line, line + 1, [&](const auto& offsets) {
          for (int64_t b = 0; b < block; ++b) {
            body(self + access.self_offsets[b] + offsets[0] + start * self_stride,
                 other + access.other_offsets[b] + offsets[1] + start * other_stride, count, self_stride, other_stride);
          }
        });
      });
    }
  });
}

IndexedAccess resolve(const IndexedPlaces& at, const TensorView& self, const TensorView& other) {
  auto [indices, dimensions, position, check] = at;
  IndexedAccess access;
  const TensorView& first = indices[0];
  int64_t block = first.numel();
  access.self_offsets.assign(block, 0);
  access.other_offsets.resize(block);
  for (size_t t = 0; t < indices.size(); ++t) {
    int64_t dimension = dimensions[t], size = self.sizes[dimension], stride = self.strides[dimension];
    dispatch_index(indices[t].dtype, [&, check = check](auto type) {
      const auto* values = indices[t].as<decltype(type)>();
      StridedLoop<1> loop(indices[t].sizes, {&indices[t].strides});
      int64_t b = 0;
      loop.for_each([&](const auto& offsets) {
        int64_t value = values[offsets[0]];
        int64_t wrapped = value < 0 && check == IndexCheck::Wrap ? value + size : value;
        if (wrapped < 0 || wrapped >= size) refuse_index(value, dimension, size, check);
        access.self_offsets[b++] += wrapped * stride;
      });
    });
  }
  Dims block_strides;
  for (int d = 0; d < first.rank(); ++d) block_strides.push_back(other.strides[position + d]);
  StridedLoop<1> places(first.sizes, {&block_strides});
  int64_t b = 0;
  places.for_each([&](const auto& offsets) { access.other_offsets[b++] = offsets[0]; });
  int64_t in_other = 0;
  for (int d = 0; d < self.rank(); ++d) {
    if (std::find(dimensions.begin(), dimensions.end(), d) != dimensions.end()) continue;
    bool before = in_other < position;
    if (in_other == position) in_other += first.rank();
    (before ? access.before_sizes : access.after_sizes).push_back(self.sizes[d]);
    (before ? access.before_self : access.after_self).push_back(self.strides[d]);
    (before ? access.before_other : access.after_other).push_back(other.strides[in_other++]);
  }
  return access;
}

}  // namespace

void read_indexed(const IndexedPlaces& places, const TensorView& self, const TensorView& other, int threads) {
  dispatch_size(dtype_size(self.dtype), [&](auto type) {
    using T = decltype(type);
    const T* from = self.as<T>();
    T* to = other.as<T>();
    const IndexedAccess access = resolve(places, self, other);
    const bool rows = !access.after_sizes.empty() && access.after_self.back() == 1;
    const int64_t line = rows ? access.after_sizes.back() : 1;
    visit(
        access, true, threads,
        [&](int64_t x, int64_t y, int64_t count, int64_t x_stride, int64_t y_stride) {
          if (x_stride == 1 && y_stride == 1 && count > 8) {
            copy_line(to + y, from + x, count * static_cast<int64_t>(sizeof(T)));
          } else {
            for (int64_t j = 0; j < count; ++j) to[y + j * y_stride] = from[x + j * x_stride];
          }
        },
        [&](int64_t x) {
          // Rows of a large table are far apart: fetch the next ones while this one is copied.
          constexpr int64_t kLine = 64 / sizeof(T);
          const int64_t count = std::min<int64_t>(line, 32 * kLine);
          for (int64_t j = 0; j < count; j += kLine) __builtin_prefetch(from + x + j);
        });
  });
}

void write_indexed(const IndexedPlaces& places, const TensorView& self, const TensorView& other, int threads) {
  dispatch_size(dtype_size(self.dtype), [&](auto type) {
    using T = decltype(type);
    T* to = self.as<T>();
    const T* from = other.as<T>();
    IndexedAccess access = resolve(places, self, other);
    visit(
        access, false, threads,
        [&](int64_t x, int64_t y, int64_t count, int64_t x_stride, int64_t y_stride) {
          for (int64_t j = 0; j < count; ++j) to[x + j * x_stride] = from[y + j * y_stride];
        },
        [](int64_t) {});
  });
}

namespace {

// sums += scale * line, both without gaps.
template <typename C>
NEURON_AVX2 void add_scaled(C* __restrict sums, C scale, const C* __restrict line, int64_t count) {
  for (int64_t j = 0; j < count; ++j) sums[j] = add_wrapping(sums[j], multiply_wrapping(scale, line[j]));
}

// Narrow floats: every place is widened, receives all its contributions in order, and is rounded once.
template <typename E>
void add_to_narrow(const IndexedAccess& access, typename E::Storage* to, const typename E::Storage* from, float scale,
                   int threads) {
  using S = typename E::Storage;
  constexpr int64_t kPiece = 1024;
  const auto block = static_cast<int64_t>(access.self_offsets.size());
  Slices slices(access);
  if (slices.before_count == 0 || slices.after_count == 0 || block == 0) return;
  // The block's positions by place, in order within a place.
  std::vector<WideEntry> order(static_cast<size_t>(block)), spare;
  const auto [low, high] = std::minmax_element(access.self_offsets.begin(), access.self_offsets.end());
  const int64_t lowest = *low;
  const auto reach = static_cast<uint64_t>(*high - lowest);
  for (int64_t b = 0; b < block; ++b)
    order[b] = WideEntry::of(static_cast<uint64_t>(access.self_offsets[b] - lowest), b);
  sort_entries(order, spare, (std::bit_width(reach) + 7) / 8);
  const int64_t inner = slices.after.inner_size(), lines = slices.after.rows(), pieces = (inner + kPiece - 1) / kPiece;
  const int64_t self_stride = slices.after.inner_strides()[0], other_stride = slices.after.inner_strides()[1];
  [[maybe_unused]] const bool adjacent = inner == 1 || (self_stride == 1 && other_stride == 1);
  const int64_t grain = std::max<int64_t>(1, kGrain / (block * std::min(inner, kPiece)));
  parallel_for(threads, slices.before_count * lines * pieces, grain, [&](int64_t begin, int64_t end) {
    float sums[kPiece], wide[kPiece];
    std::vector<const S*> contributions;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t start = task % pieces * kPiece, count = std::min(kPiece, inner - start);
      const int64_t line = task / pieces % lines, before = task / pieces / lines;
      slices.at_before(before, [&](int64_t self, int64_t other) {
        slices.after.for_rows(line, line + 1, [&](const auto& offsets) {
          S* const places = to + self + offsets[0] + start * self_stride;
          const S* const sources = from + other + offsets[1] + start * other_stride;
          for (int64_t first = 0; first < block;) {
            S* place = places + access.self_offsets[order[first].place];
            contributions.clear();
            for (const uint64_t key = order[first].bits; first < block && order[first].bits == key; ++first)
              contributions.push_back(sources + access.other_offsets[order[first].place]);
            if constexpr (sizeof(S) == 2) {
              const auto add_lines = std::is_same_v<E, BFloat16Element> ? add_lines_bfloat16 : add_lines_float16;
              if (adjacent) {
                add_lines(place, contributions, scale, count);
                continue;
              }
            }
            load_line<E>(place, self_stride, sums, count);
            for (const S* contribution : contributions) {
              load_line<E>(contribution, other_stride, wide, count);
              add_scaled(sums, scale, wide, count);
            }
            store_line<E>(sums, place, self_stride, count);
          }
        });
      });
    }
  });
}

}  // namespace

void add_indexed(const IndexedPlaces& places, const TensorView& self, const TensorView& other, Scalar alpha,
                 int threads) {
  dispatch_any(self.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    C scale;
    if constexpr (std::is_integral_v<C>) {
      scale = static_cast<C>(alpha.as_int());
    } else {
      scale = static_cast<C>(alpha.as_double());
    }
    auto* to = self.as<typename E::Storage>();
    const auto* from = other.as<typename E::Storage>();
    const IndexedAccess access = resolve(places, self, other);
    if constexpr (kIsNarrow<E> && std::is_same_v<C, float>) {
      add_to_narrow<E>(access, to, from, scale, threads);
    } else {
      visit(
          access, false, threads,
          [&](int64_t x, int64_t y, int64_t count, int64_t x_stride, int64_t y_stride) {
            if constexpr (!kIsNarrow<E>) {
              if (x_stride == 1 && y_stride == 1) return add_scaled<C>(to + x, scale, from + y, count);
            }
            for (int64_t j = 0; j < count; ++j) {
              auto& place = to[x + j * x_stride];
              place = E::store(add_wrapping(E::load(place), multiply_wrapping(scale, E::load(from[y + j * y_stride]))));
            }
          },
          [](int64_t) {});
    }
  });
}

namespace {

template <Combine kHow, typename C>
NEURON_AVX2 void combine_line(C* __restrict places, const C* __restrict values, int64_t count) {
  for (int64_t j = 0; j < count; ++j) places[j] = combine<kHow>(places[j], values[j]);
}

}  // namespace

void combine_indexed(const IndexedPlaces& places, const TensorView& self, const TensorView& other, Combine how,
                     int threads) {
  const IndexedAccess access = resolve(places, self, other);
  dispatch_real(self.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    if constexpr (kIsNarrow<E> && std::is_same_v<C, float>) {
      fail(ErrorKind::Internal, "places of narrow floats are combined in float32");
    } else {
      with_combine(how, [&](auto constant) {
        visit(
            access, false, threads,
            [&](int64_t x, int64_t y, int64_t count, int64_t x_stride, int64_t y_stride) {
              auto* place = self.as<typename E::Storage>() + x;
              const auto* value = other.as<typename E::Storage>() + y;
              if constexpr (!kIsNarrow<E>) {
                if (x_stride == 1 && y_stride == 1) return combine_line<decltype(constant)::value>(place, value, count);
              }
              for (int64_t j = 0; j < count; ++j, place += x_stride, value += y_stride)
                *place = E::store(combine<decltype(constant)::value>(E::load(*place), E::load(*value)));
            },
            [](int64_t) {});
      });
    }
  });
}

namespace {

// "index": outputs: result; inputs: self, index tensors; attributes: position of the block in the result, then one
// dimension of self per index tensor.
void run_index(const Call& call) {
  IndexedPlaces places{call.inputs.subspan(1), call.attributes.subspan(1), call.attributes[0], IndexCheck::Wrap};
  read_indexed(places, call.inputs[0], call.outputs[0], call.threads);
}

// "index_put": outputs: self (read and written); inputs: values of the full shape, index tensors; attributes:
// accumulate, then as for "index".
void run_index_put(const Call& call) {
  IndexedPlaces places{call.inputs.subspan(1), call.attributes.subspan(2), call.attributes[1], IndexCheck::Wrap};
  if (call.attributes[0] != 0) {
    add_indexed(places, call.outputs[0], call.inputs[0], Scalar::of(int64_t{1}), call.threads);
  } else {
    write_indexed(places, call.outputs[0], call.inputs[0], call.threads);
  }
}

// "index_select": outputs: result; inputs: self, index tensor of any rank whose shape replaces the dimension
// (embedding: weight, indices); attributes: dimension.
void run_index_select(const Call& call) {
  IndexedPlaces places{call.inputs.subspan(1, 1), call.attributes.subspan(0, 1), call.attributes[0],
                       IndexCheck::NonNegative};
  read_indexed(places, call.inputs[0], call.outputs[0], call.threads);
}

// "index_add": outputs: self (read and written); inputs: source, index; attributes: dimension; scalars: alpha.
void run_index_add(const Call& call) {
  IndexedPlaces places{call.inputs.subspan(1, 1), call.attributes.subspan(0, 1), call.attributes[0],
                       IndexCheck::NonNegative};
  add_indexed(places, call.outputs[0], call.inputs[0], call.scalars[0], call.threads);
}

// "index_copy": as index_add, without alpha.
void run_index_copy(const Call& call) {
  IndexedPlaces places{call.inputs.subspan(1, 1), call.attributes.subspan(0, 1), call.attributes[0],
                       IndexCheck::NonNegative};
  write_indexed(places, call.outputs[0], call.inputs[0], call.threads);
}

// "index_reduce": outputs: self (read and written); inputs: source, index; attributes: dimension, how (Combine).
void run_index_reduce(const Call& call) {
  IndexedPlaces places{call.inputs.subspan(1, 1), call.attributes.subspan(0, 1), call.attributes[0],
                       IndexCheck::NonNegative};
  combine_indexed(places, call.outputs[0], call.inputs[0], static_cast<Combine>(call.attributes[1]), call.threads);
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "index_reduce", .run = run_index_reduce, .may_raise = true}),
    KernelRegistration({.name = "index", .run = run_index, .may_raise = true}),
    KernelRegistration({.name = "index_put", .run = run_index_put, .may_raise = true}),
    KernelRegistration({.name = "index_select", .run = run_index_select, .may_raise = true}),
    KernelRegistration({.name = "index_add", .run = run_index_add, .may_raise = true}),
    KernelRegistration({.name = "index_copy", .run = run_index_copy, .may_raise = true}),
};

}  // namespace

}  // namespace neuron::kernels
