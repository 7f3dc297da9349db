// What the host code generator compiles: one region, that is an IR graph evaluated at every point of an iteration
// space, with strides known only at its boundary. Eager fusion and torch.compile both hand regions to it.
//
// Graph convention
//   * The iteration space has `rank` dimensions; the graph's symbols 0 … rank-1 are their sizes, in order.
//   * A parameter is one of
//       Tensor  type [d0 … d(rank-1)], any dtype; broadcast dimensions have stride 0
//       Index   type [d0 … d(rank-1)], i64; i32 beside values of 32 bits, whose vectors it would halve otherwise. Its
//               value is base + sum(position[d] * stride[d]), in that type.
//               It owns no memory.
//       Scalar  rank 0, f64 or i64 (bool as i64): a number given at run time
//   * A result is a full tensor [d0 … d(rank-1)] or, in a region with a reduction, a tensor without the reduced
//     dimension; in an Inner region also a full value that does not vary along the row, with `inner` Zero, stored once
//     a row.
//   * Operations inside: constant, iota is not allowed (use Index), elementwise operations, composites of
//   functions.def,
//     broadcast_in_dim (of rank-0 values, or of reduced values back to the space), and reduce over the one reduced
//     dimension with a simple reducer, the variadic (value, index) reducer that make_arg_reducer() builds, or any body
//     of elementwise operations whose initial values may enter several times.
//   * `reduction`: None; Inner (dimension rank-1; reduced values may be broadcast back and used again, any number of
//     times: softmax, layer_norm); Outer (dimension rank-2, innermost kept: column sums; no broadcast back).
//
// Meaning: exactly the interpreter's, element by element, in the summation order of docs/numerics.md. Nothing is
// contracted or reassociated. Any NaN equals any NaN. Kernels run under default rounding and denormal control.
//
// Aliasing: a full output may have the same address, strides and dtype size as an input (in-place). All reads of a row
// (None and Outer: of a vector) happen before the first write to it, so such an alias is exact; other overlaps are the
// caller's mistake.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "neuron/ir/graph.h"

namespace neuron::codegen {

enum class OperandKind : uint8_t { Tensor, Index, Scalar };
// Stride along the innermost iteration dimension: the only layout fact that a kernel is specialised on.
enum class InnerStride : uint8_t { Zero, One, Other };
enum class Reduction : uint8_t { None, Inner, Outer };

struct OperandSignature {
  OperandKind kind = OperandKind::Tensor;
  DType dtype = DType::Float32;
  InnerStride inner = InnerStride::One;
  friend bool operator==(const OperandSignature&, const OperandSignature&) = default;
};

struct RegionSpec {
  std::shared_ptr<const ir::Graph> graph;
  int rank = 1;  // >= 1; >= 2 for Outer
  Reduction reduction = Reduction::None;
  std::vector<OperandSignature> inputs;   // one per graph parameter
  std::vector<OperandSignature> outputs;  // one per graph result, kind Tensor; for a reduced result of an Inner region
                                          // `inner` is Zero
};

struct RegionArguments {
  const int64_t* sizes;     // [rank]
  void* const* pointers;    // [inputs + outputs]; null for Index and Scalar
  const int64_t* strides;   // [inputs + outputs][rank], in elements (Index: in units of its value); 0 along the
                            // reduced dimension for reduced outputs; ignored for Scalar
  const uint64_t* scalars;  // [inputs]: bits of a Scalar (f64 or i64), base of an Index, unused for a Tensor
  int threads = 1;          // upper bound; the result does not depend on it
};

// A compiled region. Immutable; run() may be called from many threads at once.
class Executable {
 public:
  virtual ~Executable() = default;
  // Sizes may be 0: empty outer dimensions do nothing, an empty reduced dimension yields the reducer's init.
  virtual void run(const RegionArguments& arguments) const = 0;
  // Self-contained bytes for the disk cache; HostCompiler::load() turns them back. Empty: not cacheable.
  virtual std::string serialize() const = 0;
};

// The instruction set a kernel is generated for.
enum class HostTarget : uint8_t { Avx2, Avx512 };
HostTarget detected_host_target();
const char* host_target_name(HostTarget target);

class HostCompiler {
 public:
  virtual ~HostCompiler() = default;
  // Thread-safe. Throws Error(Internal) for a graph outside the convention, naming the operation.
  virtual std::shared_ptr<const Executable> compile(const RegionSpec& spec) = 0;
  // The same for a given target: to be run only where the processor can; tests compare the bits of both.
  virtual std::shared_ptr<const Executable> compile_for(const RegionSpec& spec, HostTarget target) = 0;
  // Throws Error(Runtime) when the bytes are damaged or of another target or build.
  virtual std::shared_ptr<const Executable> load(const std::string& bytes) = 0;
  // Assembly text for any target, whether or not it can run here.
  virtual std::string disassemble(const RegionSpec& spec, HostTarget target) = 0;
  // LLVM version and generator revision: part of every cache key.
  virtual std::string build_id() const = 0;
};

// The compiler for this process: opens libneuron_codegen.so, which holds LLVM, on the first call. Thread-safe; throws
// Error(Runtime) saying where it looked when the library is missing.
HostCompiler& host_compiler();

// Canonical bytes of a region: equal bytes, same kernel. Sizes and strides do not enter.
std::string region_signature(const RegionSpec& spec);

}  // namespace neuron::codegen
