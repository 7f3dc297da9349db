// Kernels "embedding_bag", "embedding_bag_backward" and "embedding_bag_weights_backward": rows of a table, reduced bag
// by bag. Sums are taken in the order of the indices, narrow floats in float32.
#include <algorithm>
#include <vector>

#include "neuron/base/error.h"
#include "neuron/base/thread_pool.h"
#include "neuron/kernels/avx2.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/float_lines.h"
#include "neuron/kernels/kernel.h"

namespace neuron::kernels {
namespace {

enum Mode : int64_t { kSum, kMean, kMax };

constexpr int64_t kGrain = 8192;  // elements worth a thread

std::vector<int64_t> integers_of(const TensorView& view) {
  std::vector<int64_t> values(static_cast<size_t>(view.sizes[0]));
  dispatch_index(view.dtype, [&](auto type) {
    for (int64_t i = 0; i < view.sizes[0]; ++i) values[i] = view.as<decltype(type)>()[i * view.strides[0]];
  });
  return values;
}

void store_integers(const TensorView& view, const std::vector<int64_t>& values) {
  dispatch_index(view.dtype, [&](auto type) {
    using I = decltype(type);
    for (size_t i = 0; i < values.size(); ++i) view.as<I>()[i] = static_cast<I>(values[i]);
  });
}

void check_offsets(const std::vector<int64_t>& offsets, int64_t count) {
  if (offsets.empty()) return;
  if (offsets[0] != 0) {
    fail(ErrorKind::Runtime,
         "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, "
         "got {}",
         offsets.front());
  }
  if (offsets.back() > count) {
    fail(ErrorKind::Runtime, "offsets[-1] can not be greater than input's length {} but got offsets[-1] of {}", count,
         offsets.back());
  }
  if (!std::is_sorted(offsets.begin(), offsets.end())) fail(ErrorKind::Runtime, "offsets of bags have to ascend");
}

// sums += scale * line, both without gaps.
template <typename C>
NEURON_AVX2 void add_scaled(C* __restrict sums, const C* __restrict line, C scale, int64_t count) {
  for (int64_t j = 0; j < count; ++j) sums[j] += line[j] * scale;
}

// A line without gaps in the type of the arithmetic: itself, or a copy in `wide`.
template <typename E>
const typename E::Compute* widened(const typename E::Storage* line, int64_t stride,
                                   std::vector<typename E::Compute>& wide) {
  if constexpr (!kIsNarrow<E>) {
    if (stride == 1) return line;
  }
  load_line<E>(line, stride, wide.data(), static_cast<int64_t>(wide.size()));
  return wide.data();
}

// outputs, without gaps: result [bags, width]; and of the dtype of the indices: the bag of each index, the size of each
// bag without what is padding, and for maxima the index of each element [bags, width] (-1 in an empty bag). inputs:
// table [rows, width], indices, offsets (the first index of each bag), optional weights of the indices; attributes:
// mode, padding index (-1: none), whether a last offset closes the last bag.
void run_forward(const Call& call) {
  const TensorView &result = call.outputs[0], &table = call.inputs[0];
  const int64_t mode = call.attributes[0], padding = call.attributes[1];
  const int64_t rows = table.sizes[0], width = table.sizes[1], bags = result.sizes[0];
  const std::vector<int64_t> indices = integers_of(call.inputs[1]);
  std::vector<int64_t> offsets = integers_of(call.inputs[2]);
  const auto count = static_cast<int64_t>(indices.size());
  check_offsets(offsets, count);
  if (call.attributes[2] == 0) offsets.push_back(count);
  for (int64_t index : indices) {
    if (index < 0 || index >= rows) {
      fail(ErrorKind::Runtime, "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {}",
           index);
    }
  }
  std::vector<int64_t> bag_of(indices.size(), bags), sizes(static_cast<size_t>(bags));
  std::vector<int64_t> maxima(static_cast<size_t>(mode == kMax ? bags * width : 0), -1);
  for (int64_t bag = 0; bag < bags; ++bag) {
    for (int64_t i = offsets[bag]; i < offsets[bag + 1]; ++i) {
      bag_of[i] = bag;
      sizes[bag] += indices[i] != padding;
    }
  }
  dispatch_float(table.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    using S = typename E::Storage;
    const S* weights = call.inputs.size() > 3 ? call.inputs[3].as<S>() : nullptr;
    const int64_t weight_stride = weights != nullptr ? call.inputs[3].strides[0] : 0, step = table.strides[1];
    const int64_t grain =
        std::max<int64_t>(1, kGrain / std::max<int64_t>(1, width * (count / std::max<int64_t>(1, bags) + 1)));
    // Rows of a large table are far apart: those to come are asked for.
    constexpr int64_t kAhead = 6, kLine = 64 / sizeof(S);
    parallel_for(call.threads, bags, grain, [&](int64_t begin, int64_t end) {
      std::vector<C> sums(static_cast<size_t>(width)), wide(sums);
      for (int64_t bag = begin; bag < end; ++bag) {
        std::fill(sums.begin(), sums.end(), C(0));
        bool first = true;
        for (int64_t i = offsets[bag]; i < offsets[bag + 1]; ++i) {
          if (indices[i] == padding) continue;
          const S* row = table.as<S>() + indices[i] * table.strides[0];
          if (i + kAhead < count) {
            const S* later = table.as<S>() + indices[i + kAhead] * table.strides[0];
            for (int64_t j = 0; j < std::min<int64_t>(width, 32 * kLine); j += kLine) __builtin_prefetch(later + j);
          }
          if (mode == kMax) {
            for (int64_t j = 0; j < width; ++j) {
              const C value = E::load(row[j * step]);
              if (!first && !(value > sums[j])) continue;
              sums[j] = value;
              maxima[bag * width + j] = indices[i];
            }
          } else {
            const C weight = weights != nullptr ? E::load(weights[i * weight_stride]) : C(1);
            add_scaled(sums.data(), widened<E>(row, step, wide), weight, width);
          }
          first = false;
        }
        if (mode == kMean && sizes[bag] > 1) {
          for (C& sum : sums) sum /= static_cast<C>(sizes[bag]);
        }
        narrow_line<E>(sums.data(), result.as<S>() + bag * width, width);
      }
    });
  });
  store_integers(call.outputs[1], bag_of);
  store_integers(call.outputs[2], sizes);
  if (mode == kMax) store_integers(call.outputs[3], maxima);
}

// What each row of the table receives: places of contributions, grouped by row, in order within a row.
struct Groups {
  std::vector<int64_t> starts, places;

  // row_of(place): the row, or -1 for what counts nowhere.
  template <typename RowOf>
  Groups(int64_t rows, int64_t count, const RowOf& row_of) : starts(static_cast<size_t>(rows) + 2) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = row_of(i);
      if (row >= rows) fail(ErrorKind::Index, "index out of range in self");
      if (row >= 0) ++starts[row + 2];
    }
    for (int64_t row = 0; row < rows; ++row) starts[row + 2] += starts[row + 1];
    places.resize(static_cast<size_t>(starts[rows + 1]));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = row_of(i);
      if (row >= 0) places[starts[row + 1]++] = i;
    }
  }
};

// outputs: gradient of the table [rows, width] without gaps; inputs: gradient [bags, width], indices, the bag of each
// index, the size of each bag, for maxima the index of each element, optional weights; attributes: mode, padding index,
// scale by frequency.
void run_backward(const Call& call) {
  const TensorView &out = call.outputs[0], &gradient = call.inputs[0];
  const int64_t mode = call.attributes[0], padding = call.attributes[1], rows = out.sizes[0], width = out.sizes[1];
  const bool by_frequency = call.attributes[2] != 0;
  const std::vector<int64_t> indices = integers_of(call.inputs[1]), bag_of = integers_of(call.inputs[2]),
                             sizes = integers_of(call.inputs[3]);
  dispatch_float(out.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    using S = typename E::Storage;
    const S* from = gradient.as<S>();
    const int64_t bag_step = gradient.strides[0], step = gradient.strides[1];
    S* to = out.as<S>();
    if (mode == kMax) {
      // Elements of one column only meet each other.
      const TensorView& maxima = call.inputs[4];
      parallel_for(call.threads, width, std::max<int64_t>(1, kGrain / (rows + 1)), [&](int64_t begin, int64_t end) {
        std::vector<C> sums(static_cast<size_t>(rows));
        for (int64_t j = begin; j < end; ++j) {
          std::fill(sums.begin(), sums.end(), C(0));
          dispatch_index(maxima.dtype, [&](auto type) {
            for (int64_t bag = 0; bag < gradient.sizes[0]; ++bag) {
              const int64_t row = maxima.as<decltype(type)>()[bag * maxima.strides[0] + j * maxima.strides[1]];
              if (row >= 0 && row < rows && sizes[bag] > 0) sums[row] += E::load(from[bag * bag_step + j * step]);
            }
          });
          for (int64_t row = 0; row < rows; ++row) to[row * width + j] = E::store(sums[row]);
        }
      });
      return;
    }
    const auto bags = static_cast<int64_t>(sizes.size());
    const Groups groups(rows, static_cast<int64_t>(indices.size()),
                        [&](int64_t i) { return indices[i] == padding || bag_of[i] >= bags ? -1 : indices[i]; });
    const TensorView* weights = call.inputs.size() > 4 ? &call.inputs[4] : nullptr;
    parallel_for(call.threads, rows, std::max<int64_t>(1, kGrain / (width + 1)), [&](int64_t begin, int64_t end) {
      std::vector<C> sums(static_cast<size_t>(width)), wide(sums);
      for (int64_t row = begin; row < end; ++row) {
        std::fill(sums.begin(), sums.end(), C(0));
        const int64_t first = groups.starts[row], last = groups.starts[row + 1];
        for (int64_t g = first; g < last; ++g) {
          const int64_t i = groups.places[g], bag = bag_of[i];
          C scale = weights != nullptr ? E::load(weights->as<S>()[i * weights->strides[0]]) : C(1);
          if (by_frequency) scale /= static_cast<C>(last - first);
          if (mode == kMean) scale /= static_cast<C>(std::max<int64_t>(1, sizes[bag]));
          add_scaled(sums.data(), widened<E>(from + bag * bag_step, step, wide), scale, width);
        }
        narrow_line<E>(sums.data(), to + row * width, width);
      }
    });
  });
}

// outputs: gradient of the weights of the indices, without gaps; inputs: gradient [bags, width], table, indices, the
// bag of each index; attributes: padding index.
void run_weights_backward(const Call& call) {
  const TensorView &out = call.outputs[0], &gradient = call.inputs[0], &table = call.inputs[1];
  const std::vector<int64_t> indices = integers_of(call.inputs[2]), bag_of = integers_of(call.inputs[3]);
  const int64_t padding = call.attributes[0], width = table.sizes[1];
  for (int64_t index : indices) {
    if (index < 0 || index >= table.sizes[0]) fail(ErrorKind::Index, "index out of range in self");
  }
  dispatch_float(out.dtype, [&](auto element) {
    using E = decltype(element);
    using S = typename E::Storage;
    const int64_t grain = std::max<int64_t>(1, kGrain / (width + 1));
    parallel_for(call.threads, out.sizes[0], grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        typename E::Compute sum(0);
        if (indices[i] != padding && bag_of[i] < gradient.sizes[0]) {
          const S* left = gradient.as<S>() + bag_of[i] * gradient.strides[0];
          const S* right = table.as<S>() + indices[i] * table.strides[0];
          for (int64_t j = 0; j < width; ++j)
            sum += E::load(left[j * gradient.strides[1]]) * E::load(right[j * table.strides[1]]);
        }
        out.as<S>()[i] = E::store(sum);
      }
    });
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "embedding_bag", .run = run_forward, .may_raise = true}),
    KernelRegistration({.name = "embedding_bag_backward", .run = run_backward, .may_raise = true}),
    KernelRegistration({.name = "embedding_bag_weights_backward", .run = run_weights_backward, .may_raise = true}),
};

}  // namespace
}  // namespace neuron::kernels
