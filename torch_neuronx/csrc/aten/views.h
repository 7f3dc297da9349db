#pragma once

namespace neuron::aten {

// Registers the view operators, set_, resize_ and what Module.to() and conj() need to treat device tensors as plain
// ones.
void register_views();
// Registers the views that only move sizes and strides (transpose, slice …).
void register_strided_views();
// Registers empty and empty_strided.
void register_factories();

}  // namespace neuron::aten
