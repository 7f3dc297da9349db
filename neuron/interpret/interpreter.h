// The reference interpreter: the meaning of every operation of the IR, on plain row-major buffers.
//
// It is written to be read and trusted, not to be fast: one loop per operation, no fusion, no threads. Tests compare
// generated code with it, constant folding calls it, and eager mode can run on it ("interpret"). Elementwise operations
// other than transcendentals, integers and reductions with a simple reducer are bit-exact (docs/numerics.md);
// transcendentals go through double and are rounded once.
//
// May be called from any thread; calls share nothing. Runs under default rounding and denormal control and restores the
// thread's. The graph must verify (neuron/ir/verifier.h): attributes are not checked again.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "neuron/ir/graph.h"

namespace neuron::interpret {

// A dense row-major tensor that owns its bytes. bool is one byte, 0 or 1.
struct Buffer {
  DType dtype = DType::Float32;
  Dims sizes;
  std::vector<std::byte> bytes;

  Buffer() = default;
  // Zero-filled.
  Buffer(DType element, Dims dimensions);

  int64_t numel() const;
  template <typename T>
  T* data() {
    return reinterpret_cast<T*>(bytes.data());
  }
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes.data());
  }
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

// Runs the graph. `symbol_sizes[i]` is the size of the graph's symbol i; arguments must have the parameters' dtypes and
// sizes. Throws Error(Internal) naming the operation when a graph is malformed, or the argument when it does not fit.
std::vector<Buffer> evaluate(const ir::Graph& graph, std::span<const Buffer> arguments,
                             std::span<const int64_t> symbol_sizes);

// The sizes of a type once its symbols have sizes.
Dims resolve_sizes(const ir::Type& type, std::span<const int64_t> symbol_sizes);

}  // namespace neuron::interpret
