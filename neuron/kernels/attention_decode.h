// Attention of few queries: the step of a model that generates. Bound by the memory of keys and values.
#pragma once

#include "neuron/kernels/attention.h"

namespace neuron::kernels {

// Whether the problem is one: at most kDecodeRows queries meet each key head.
constexpr int64_t kDecodeRows = 8;
inline bool decodes(const AttentionProblem& p) { return p.group() * p.queries <= kDecodeRows; }

// Outputs as those of kernel "attention".
void decode(const AttentionProblem& p, const AttentionOutputs& outputs, int threads);

}  // namespace neuron::kernels
