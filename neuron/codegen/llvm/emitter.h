// Emits the LLVM function of one region.
//
//   void kernel(const RegionArguments*, const KernelRange*)
//
// Rows are the positions of all dimensions but the innermost (Outer: but the last two), in row-major order; columns
// those of the innermost. Reductions go by chunks of the reduced dimension (docs/numerics.md), whose partial results
// another phase can combine.
#pragma once

#include <llvm/IR/Module.h>

#include "neuron/codegen/llvm/plan.h"

namespace neuron::codegen {

// Read by generated code.
enum class Phase : int64_t {
  Whole,       // reduce and store
  Accumulate,  // only write the partial results of the chunks
  Finish,      // combine the partial results of all chunks, and store
};

struct KernelRange {
  int64_t row_begin, row_end;
  int64_t column_begin, column_end;  // Inner: all columns
  int64_t chunk_begin, chunk_end;    // regions with a reduction
  Phase phase;
  // Accumulate and Finish, of the one row in range. Inner: 8 bytes for each (chunk, accumulator); Outer: the same
  // number of rows of padded_row_bytes(columns).
  void* partials;
  void* scratch;  // padded_row_bytes(columns) for each scratch row of the plan, rows_together() times
};

using KernelFunction = void (*)(const RegionArguments*, const KernelRange*);

inline constexpr const char* kKernelName = "kernel";
inline constexpr int64_t kInnerChunk = 4096;
inline constexpr int64_t kOuterChunk = 256;

// Space for a row of any dtype, with room for a whole block past its end.
constexpr int64_t padded_row_bytes(int64_t columns) { return (columns / 64 + 2) * 64 * 8; }

// `vector_bytes` is the register width of the target.
void emit_kernel(llvm::Module& module, const Plan& plan, int vector_bytes);

// Whether the kernel knows Phase::Accumulate and Phase::Finish.
bool has_phases(const Plan& plan);

// How many short rows the kernel works on at a time; each has its own scratch rows.
int rows_together(const Plan& plan);

}  // namespace neuron::codegen
