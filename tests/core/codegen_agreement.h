// Runs a graph as a generated kernel on the dense arguments of the interpreter and expects the interpreter's results.
#pragma once

#include "tests/core/codegen_harness.h"

namespace neuron::codegen {

// `reduced`: the reduced dimension of the space, -1 for none. Graphs of complex numbers and of no dimension are no
// regions.
inline void expect_kernel_agrees(const ir::Graph& graph, const Dims& sizes, int reduced,
                                 std::vector<interpret::Buffer> arguments,
                                 const std::vector<interpret::Buffer>& expected, double ulps) {
  const int rank = static_cast<int>(sizes.size());
  if (rank == 0 || (reduced >= 0 && reduced < rank - 2)) return;
  RegionSpec spec;
  spec.graph = std::make_shared<const ir::Graph>(graph);
  spec.rank = rank;
  spec.reduction = reduced < 0 ? Reduction::None : reduced == rank - 1 ? Reduction::Inner : Reduction::Outer;
  std::vector<interpret::Buffer> outputs = expected;
  std::vector<void*> pointers;
  std::vector<int64_t> strides;
  std::vector<uint64_t> scalars;
  auto add = [&](interpret::Buffer& buffer, bool input) {
    if (is_complex(buffer.dtype)) return false;
    const bool scalar = input && buffer.sizes.empty();
    const bool lower = !scalar && static_cast<int>(buffer.sizes.size()) < rank;
    const bool row = lower && spec.reduction == Reduction::Inner;
    const OperandSignature signature{scalar ? OperandKind::Scalar : OperandKind::Tensor, buffer.dtype,
                                     row ? InnerStride::Zero : InnerStride::One};
    (input ? spec.inputs : spec.outputs).push_back(signature);
    pointers.push_back(scalar ? nullptr : buffer.bytes.data());
    std::vector<int64_t> own(static_cast<size_t>(rank), 0);
    int64_t stride = 1;
    for (int d = rank - 1; d >= 0 && !scalar; --d) {
      if (lower && d == reduced) continue;
      own[d] = stride;
      stride *= sizes[d];
    }
    strides.insert(strides.end(), own.begin(), own.end());
    uint64_t bits = 0;
    if (scalar) std::memcpy(&bits, buffer.bytes.data(), dtype_size(buffer.dtype));
    scalars.push_back(bits);
    return !(scalar && buffer.dtype != DType::Float64 && buffer.dtype != DType::Int64);
  };
  for (interpret::Buffer& argument : arguments) {
    if (!add(argument, true)) return;
  }
  for (interpret::Buffer& output : outputs) {
    if (!add(output, false)) return;
    std::fill(output.bytes.begin(), output.bytes.end(), std::byte{0xa5});
  }
  for (HostTarget target : runnable_targets()) {
    compiled(spec, target)->run({sizes.data(), pointers.data(), strides.data(), scalars.data(), 1});
    EXPECT_TRUE(RegionRun::same(outputs, expected, ulps)) << "the generated kernel for " << host_target_name(target);
  }
}

}  // namespace neuron::codegen
