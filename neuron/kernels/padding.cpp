// Kernels "pad" and "pad_backward": planes of one to three dimensions continued beyond their edges by what is inside,
// of contiguous tensors. A negative width cuts off.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/elements.h"
#include "neuron/kernels/float_lines.h"
#include "neuron/kernels/kernel.h"
#include "neuron/kernels/plane_sums.h"
#include "neuron/kernels/scratch.h"

namespace neuron::kernels {
namespace {

enum Mode : int64_t { Reflection, Replication };

// Which input position each output position along a dimension repeats; those of [inner, inner_end) follow one another.
struct Edge {
  int64_t in = 1, inner = 0, inner_end = 1;
  std::vector<int64_t> source{0};

  Edge() = default;
  Edge(Mode mode, int64_t in, int64_t out, int64_t before)
      : in(in), inner(std::clamp<int64_t>(before, 0, out)), inner_end(std::clamp<int64_t>(before + in, inner, out)) {
    source.resize(out);
    for (int64_t i = 0; i < out; ++i) {
      const int64_t place = i - before;
      source[i] = mode == Replication ? std::clamp<int64_t>(place, 0, in - 1)
                  : place < 0         ? -place
                  : place >= in       ? 2 * (in - 1) - place
                                      : place;
    }
  }
  int64_t out() const { return static_cast<int64_t>(source.size()); }
};

// The padded dimensions as three, outermost first.
struct Frame {
  std::array<Edge, 3> edges;

  // attributes: mode, number of dimensions, then of each, outermost first, how many positions lie before the input's.
  Frame(const Call& call, const TensorView& small, const TensorView& large) {
    const auto rank = static_cast<int>(call.attributes[1]);
    for (int d = 0; d < rank; ++d) {
      edges[3 - rank + d] = Edge(static_cast<Mode>(call.attributes[0]), small.sizes[small.rank() - rank + d],
                                 large.sizes[large.rank() - rank + d], call.attributes[2 + d]);
    }
  }
  int64_t in_size() const { return edges[0].in * edges[1].in * edges[2].in; }
  int64_t out_size() const { return edges[0].out() * edges[1].out() * edges[2].out(); }

  // body(first element of an output row, first element of the input row it repeats), in order.
  template <typename Body>
  void for_each_row(const Body& body) const {
    int64_t to = 0;
    for (int64_t z : edges[0].source)
      for (int64_t y : edges[1].source) {
        body(to, (z * edges[1].in + y) * edges[2].in);
        to += edges[2].out();
      }
  }
};

int64_t planes_at_once(int64_t size) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, size)); }

// outputs: padded; inputs: original, of any dtype.
void run_pad(const Call& call) {
  const TensorView &out = call.outputs[0], &in = call.inputs[0];
  const Frame frame(call, in, out);
  const Edge& row = frame.edges[2];
  dispatch_size(dtype_size(in.dtype), [&](auto element) {
    using T = decltype(element);
    parallel_for(call.threads, out.numel() / frame.out_size(), planes_at_once(frame.out_size()),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t plane = begin; plane < end; ++plane) {
                     const T* from = in.as<T>() + plane * frame.in_size();
                     T* to = out.as<T>() + plane * frame.out_size();
                     frame.for_each_row([&](int64_t target, int64_t source) {
                       T* line = to + target;
                       const T* original = from + source;
                       for (int64_t x = 0; x < row.inner; ++x) line[x] = original[row.source[x]];
                       if (row.inner < row.inner_end)
                         std::memcpy(line + row.inner, original + row.source[row.inner],
                                     (row.inner_end - row.inner) * sizeof(T));
                       for (int64_t x = row.inner_end; x < row.out(); ++x) line[x] = original[row.source[x]];
                     });
                   }
                 });
  });
}

// outputs: gradient of the original; inputs: gradient of the padded. A position receives in row-major order, narrow
// floats in float32.
template <typename E>
void add_back(const Call& call) {
  using C = typename E::Compute;
  const TensorView &result = call.outputs[0], &gradient = call.inputs[0];
  const Frame frame(call, result, gradient);
  const Edge& row = frame.edges[2];
  parallel_for(call.threads, result.numel() / frame.in_size(), planes_at_once(frame.out_size()),
               [&](int64_t begin, int64_t end) {
                 static thread_local Scratch memory;
                 for (int64_t plane = begin; plane < end; ++plane) {
                   const auto* from = gradient.as<typename E::Storage>() + plane * frame.out_size();
                   PlaneSums<E> sums(result.as<typename E::Storage>() + plane * frame.in_size(), frame.in_size());
                   frame.for_each_row([&](int64_t source, int64_t target) {
                     const C* line;
                     if constexpr (kIsNarrow<E>) {
                       C* wide = memory.get<C>(row.out());
                       widen_line<E>(from + source, wide, row.out());
                       line = wide;
                     } else {
                       line = from + source;
                     }
                     C* into = sums.data() + target;
                     for (int64_t x = 0; x < row.inner; ++x) into[row.source[x]] += line[x];
                     if (row.inner < row.inner_end) {
                       C* inner = into + row.source[row.inner] - row.inner;
                       for (int64_t x = row.inner; x < row.inner_end; ++x) inner[x] += line[x];
                     }
                     for (int64_t x = row.inner_end; x < row.out(); ++x) into[row.source[x]] += line[x];
                   });
                   sums.finish();
                 }
               });
}

void run_pad_backward(const Call& call) {
  switch (call.outputs[0].dtype) {
    case DType::Complex64:
      return add_back<NativeElement<std::complex<float>>>(call);
    case DType::Complex128:
      return add_back<NativeElement<std::complex<double>>>(call);
    default:
      dispatch_float(call.outputs[0].dtype, [&](auto element) { add_back<decltype(element)>(call); });
  }
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "pad", .run = run_pad}),
    KernelRegistration({.name = "pad_backward", .run = run_pad_backward}),
};

}  // namespace
}  // namespace neuron::kernels
