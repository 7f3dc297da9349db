// Attention of bfloat16 on the processor's matrix units: the kernels' other way, and what both passes share of it. The
// arithmetic is in attention_matrix_units.h.
#pragma once

#include "neuron/kernels/attention.h"
#include "neuron/kernels/attention_matrix_units.h"

namespace neuron::kernels {

inline int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// The same as kernel "attention", and as "attention_backward", for problems that say `matrix`.
void attend_on_matrix_units(const AttentionProblem& p, const AttentionOutputs& outputs, int threads);
void differentiate_on_matrix_units(const AttentionProblem& p, const AttentionGradients& views,
                                   const TensorView& query_gradient, const TensorView& key_gradient,
                                   const TensorView& value_gradient, int threads);

// Rows whose elements lie side by side: the memory, or a gathered copy.
Units adjacent_rows(const Rows& rows, int64_t head, int64_t first, int64_t count, Scratch& gathered);
// Left operands: rows [first, first + count), and their columns.
LeftTiles left_rows(const Rows& rows, int64_t head, int64_t first, int64_t count, Scratch& scratch, Scratch& gathered);
LeftTiles left_columns(const Rows& rows, int64_t head, int64_t first, int64_t count, Scratch& scratch,
                       Scratch& gathered);
// Right operands of a panel's rows, summed over their elements, [unit][kLanes], and over the lanes,
// [kLanes / 2][columns filled up to a multiple of 16].
int64_t right_panel_units(int64_t columns);
void load_right_panel(const AttentionProblem& p, const Rows& rows, const Panel& panel, Scratch& scratch, float* target);
void load_right_rows(const AttentionProblem& p, const Rows& rows, const Panel& panel, Scratch& scratch, float* target);
// rows = factors[lane] * panel[column][lane], rounded.
void store_lanes(const Rows& rows, const Panel& panel, const float* source, const float* factors, Scratch& scratch);

// What scores are multiplied by when they meet their exponential; 0 where that must have happened before: a mask is
// added to them, or they are so large that the rounding of their maximum's multiple counts.
float late_scale(const AttentionProblem& p, const float* maxima, int lanes);

}  // namespace neuron::kernels
