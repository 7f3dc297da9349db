// Emits the LLVM function of one region.
//
//   void kernel(const RegionArguments*, void* scratch, int64 row_begin, row_end, column_begin, column_end)
//
// Rows are the positions of all dimensions but the innermost (Outer: but the last two), in row-major order; columns
// those of the innermost. Inner regions are called with all columns. `scratch` holds kScratchRowBytes(columns) for each
// scratch row.
#pragma once

#include <llvm/IR/Module.h>

#include "neuron/codegen/llvm/plan.h"

namespace neuron::codegen {

using KernelFunction = void (*)(const RegionArguments*, void* scratch, int64_t row_begin, int64_t row_end,
                                int64_t column_begin, int64_t column_end);

inline constexpr const char* kKernelName = "kernel";
// Space for one scratch row of any dtype, with room for a whole block past its end.
constexpr int64_t scratch_row_bytes(int64_t columns) { return (columns / 64 + 2) * 64 * 8; }

// `vector_bytes` is the register width of the target.
void emit_kernel(llvm::Module& module, const Plan& plan, int vector_bytes);

}  // namespace neuron::codegen
