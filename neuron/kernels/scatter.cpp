// Kernels "gather" and "scatter": one index per element along one dimension.
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/avx2.h"
#include "neuron/kernels/combine.h"
#include "neuron/kernels/copy.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/float_lines.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/scratch.h"
#include "neuron/kernels/strided.h"

namespace neuron::kernels {
namespace {

constexpr int64_t kGrain = 8192;  // elements worth a thread

// Whether one of `count` indices is outside [0, size): then it or what is left to the last place is negative.
template <typename I>
NEURON_AVX2 bool any_outside(const I* values, int64_t count, int64_t size) {
  const auto last = static_cast<I>(std::min<int64_t>(size - 1, std::numeric_limits<I>::max()));
  std::make_unsigned_t<I> signs = 0;
  for (int64_t j = 0; j < count; ++j) {
    const auto value = static_cast<std::make_unsigned_t<I>>(values[j]);
    signs |= value | (static_cast<std::make_unsigned_t<I>>(last) - value);
  }
  return static_cast<I>(signs) < 0;
}

// Throws when one of `count` indices is outside [0, size).
template <typename I>
void check_line(const I* values, int64_t stride, int64_t count, int64_t dimension, int64_t size) {
  if (stride == 1 && !any_outside(values, count, size)) return;
  for (int64_t j = 0; j < count; ++j) {
    const int64_t value = values[j * stride];
    if (value < 0 || value >= size)
      fail(ErrorKind::Runtime, "index {} is out of bounds for dimension {} with size {}", value, dimension, size);
  }
}

void check_indices(const TensorView& index, int64_t dimension, int64_t size) {
  dispatch_index(index.dtype, [&](auto type) {
    const auto* values = index.as<decltype(type)>();
    StridedLoop<1> loop(index.sizes, {&index.strides});
    loop.for_rows(0, loop.rows(), [&](const auto& offsets) {
      check_line(values + offsets[0], loop.inner_strides()[0], loop.inner_size(), dimension, size);
    });
  });
}

// Rank 0 is treated as one element of rank 1.
TensorView at_least_1d(TensorView view) {
  if (view.rank() == 0) {
    view.sizes.push_back(1);
    view.strides.push_back(1);
  }
  return view;
}

// outputs: result; inputs: self, index of the result's shape; attributes: dimension.
void run_gather(const Call& call) {
  TensorView result = at_least_1d(call.outputs[0]), self = at_least_1d(call.inputs[0]),
             index = at_least_1d(call.inputs[1]);
  int64_t dimension = call.attributes[0], along = self.strides[dimension];
  Dims rest = self.strides;
  rest[dimension] = 0;
  StridedLoop<3> loop(index.sizes, {&result.strides, &rest, &index.strides});
  int64_t count = loop.inner_size();
  dispatch_index(index.dtype, [&](auto index_type) {
    const auto* picks = index.as<decltype(index_type)>();
    dispatch_size(dtype_size(self.dtype), [&](auto type) {
      using T = decltype(type);
      T* to = result.as<T>();
      const T* from = self.as<T>();
      auto strides = loop.inner_strides();
      parallel_for(call.threads, loop.rows(), std::max<int64_t>(1, kGrain / count), [&](int64_t begin, int64_t end) {
        loop.for_rows(begin, end, [&](const auto& offsets) {
          const auto* pick = picks + offsets[2];
          check_line(pick, strides[2], count, dimension, self.sizes[dimension]);
          T* target = to + offsets[0];
          const T* source = from + offsets[1];
          if (strides[0] == 1 && strides[1] == 0 && strides[2] == 1 && along == 1) {
            for (int64_t j = 0; j < count; ++j) target[j] = source[pick[j]];
          } else {
            for (int64_t j = 0; j < count; ++j)
              target[j * strides[0]] = source[j * strides[1] + pick[j * strides[2]] * along];
          }
        });
      });
    });
  });
}

// update(place of self, element of source) for every index. Elements that may meet lie in one line along the dimension;
// a line is one thread's, in order.
template <typename C, typename S, typename Update>
void scatter_lines(const TensorView& self, C* to, const TensorView& index, const TensorView& source, const S* from,
                   int64_t dimension, int threads, const Update& update) {
  Dims lines = index.sizes, self_rest = self.strides;
  lines[dimension] = 1;
  StridedLoop<3> loop(lines, {&self_rest, &index.strides, &source.strides});
  int64_t length = index.sizes[dimension], inner = loop.inner_size();
  int64_t along = self.strides[dimension], index_along = index.strides[dimension],
          source_along = source.strides[dimension];
  auto strides = loop.inner_strides();
  dispatch_index(index.dtype, [&](auto index_type) {
    const auto* picks = index.as<decltype(index_type)>();
    int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, length));
    // Cut the innermost lines too: a matrix scattered along its rows has only one outer row.
    parallel_for(threads, loop.rows() * inner, grain, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end;) {
        int64_t row = line / inner, first = line % inner, stop = std::min(inner, first + (end - line));
        loop.for_rows(row, row + 1, [&](const auto& offsets) {
          auto element = [&](int64_t l, int64_t j) {
            int64_t pick = picks[offsets[1] + j * strides[1] + l * index_along];
            C& place = to[offsets[0] + j * strides[0] + pick * along];
            update(place, from[offsets[2] + j * strides[2] + l * source_along]);
          };
          if (index_along == 1 && source_along == 1 && along == 1) {
            for (int64_t j = first; j < stop; ++j) {
              C* line_to = to + offsets[0] + j * strides[0];
              const auto* pick = picks + offsets[1] + j * strides[1];
              const S* line_from = from + offsets[2] + j * strides[2];
              for (int64_t l = 0; l < length; ++l) update(line_to[pick[l]], line_from[l]);
            }
          } else if (index_along == 1) {
            for (int64_t j = first; j < stop; ++j)
              for (int64_t l = 0; l < length; ++l) element(l, j);
          } else {
            for (int64_t l = 0; l < length; ++l)
              for (int64_t j = first; j < stop; ++j) element(l, j);
          }
        });
        line += stop - first;
      }
    });
  });
}

// The same for narrow floats where lines have no gaps: each line is widened, receives its contributions and is rounded.
// Indices are checked line by line: what was written before one is refused has no value.
template <typename E, typename Update>
void scatter_narrow_lines(const TensorView& self, const TensorView& index, const TensorView& source, int64_t dimension,
                          int threads, const Update& update) {
  using S = typename E::Storage;
  using C = typename E::Compute;
  Dims lines = index.sizes;
  lines[dimension] = 1;
  StridedLoop<3> loop(lines, {&self.strides, &index.strides, &source.strides});
  const int64_t length = index.sizes[dimension], width = self.sizes[dimension], inner = loop.inner_size();
  const auto steps = loop.inner_strides();
  dispatch_index(index.dtype, [&](auto index_type) {
    const auto* picks = index.as<decltype(index_type)>();
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, length));
    parallel_for(threads, loop.rows() * inner, grain, [&](int64_t begin, int64_t end) {
      static thread_local Scratch memory;
      C* wide = memory.get<C>(width);
      for (int64_t item = begin; item < end;) {
        const int64_t row = item / inner, first = item % inner, stop = std::min(inner, first + (end - item));
        loop.for_rows(row, row + 1, [&](const auto& offsets) {
          for (int64_t j = first; j < stop; ++j) {
            S* line = self.as<S>() + offsets[0] + j * steps[0];
            const auto* pick = picks + offsets[1] + j * steps[1];
            const S* value = source.as<S>() + offsets[2] + j * steps[2];
            check_line(pick, 1, length, dimension, width);
            load_line<E>(line, 1, wide, width);
            for (int64_t l = 0; l < length; ++l) update(wide[pick[l]], value[l]);
            store_line<E>(wide, line, 1, width);
          }
        });
        item += stop - first;
      }
    });
  });
}

template <typename C>
void add_complex(const Call& call, const TensorView& self, const TensorView& index, const TensorView& source) {
  scatter_lines(self, self.as<C>(), index, source, source.as<C>(), call.attributes[0], call.threads,
                [](C& place, const C& value) { place += value; });
}

// outputs: self (read and written); inputs: index, source (may be larger than the index) or none; attributes:
// dimension, combine; scalars: the value when there is no source. Narrow floats are combined in float32 and rounded
// once; complex numbers are assigned or added.
void run_scatter(const Call& call) {
  TensorView self = at_least_1d(call.outputs[0]), index = at_least_1d(call.inputs[0]);
  int64_t dimension = call.attributes[0];
  auto how = static_cast<Combine>(call.attributes[1]);
  if (index.numel() == 0) return;
  TensorView source = index;
  alignas(16) char value[16] = {};
  if (call.inputs.size() > 1) {
    source = at_least_1d(call.inputs[1]);
  } else {
    if (call.scalars[0].dtype == DType::Int64) {
      store_from_int(self.dtype, call.scalars[0].as_int(), value);
    } else {
      store_from_double(self.dtype, call.scalars[0].as_double(), value);
    }
    source.data = value;
    for (int64_t& stride : source.strides) stride = 0;
  }
  const bool narrow = is_reduced_float(self.dtype);
  const bool plain = self.strides[dimension] == 1 && index.strides[dimension] == 1 && source.strides[dimension] == 1;
  if (how == Combine::Assign || !narrow || !plain) check_indices(index, dimension, self.sizes[dimension]);
  if (how == Combine::Assign) {
    dispatch_size(dtype_size(self.dtype), [&](auto type) {
      using T = decltype(type);
      scatter_lines(self, self.as<T>(), index, source, source.as<T>(), dimension, call.threads,
                    [](T& place, const T& value) { place = value; });
    });
    return;
  }
  if (is_complex(self.dtype)) {
    check_internal(how == Combine::Add, "complex numbers are only added by scatter");
    if (self.dtype == DType::Complex64) return add_complex<std::complex<float>>(call, self, index, source);
    return add_complex<std::complex<double>>(call, self, index, source);
  }
  dispatch_real(self.dtype, [&](auto element) {
    using E = decltype(element);
    using C = typename E::Compute;
    const auto* from = source.as<typename E::Storage>();
    with_combine(how, [&](auto constant) {
      auto update = [](C& place, typename E::Storage value) {
        place = combine<decltype(constant)::value>(place, E::load(value));
      };
      if constexpr (!kIsNarrow<E>) {
        scatter_lines(self, self.as<C>(), index, source, from, dimension, call.threads, update);
      } else {
        if (plain) return scatter_narrow_lines<E>(self, index, source, dimension, call.threads, update);
        static thread_local Scratch memory;
        C* wide = memory.get<C>(self.numel());
        TensorView sums = self;
        sums.data = wide;
        int64_t stride = 1;
        for (int d = self.rank() - 1; d >= 0; --d) {
          sums.strides[d] = stride;
          stride *= self.sizes[d];
        }
        auto* to = self.as<typename E::Storage>();
        StridedLoop<2> loop(self.sizes, {&self.strides, &sums.strides});
        const int64_t inner = loop.inner_size(), step = loop.inner_strides()[0];
        loop.for_rows(0, loop.rows(),
                      [&](const auto& offsets) { load_line<E>(to + offsets[0], step, wide + offsets[1], inner); });
        scatter_lines(sums, wide, index, source, from, dimension, call.threads, update);
        loop.for_rows(0, loop.rows(),
                      [&](const auto& offsets) { store_line<E>(wide + offsets[1], to + offsets[0], step, inner); });
      }
    });
  });
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "gather", .run = run_gather, .may_raise = true}),
    KernelRegistration({.name = "scatter", .run = run_scatter, .may_raise = true}),
};

}  // namespace
}  // namespace neuron::kernels
