// Marks functions of one file that use the matrix units and the AVX-512 sets that processors with them have. For the
// .cpp files of such kernels only: run them where has_bfloat16_matrix_units().
#pragma once

#include "neuron/kernels/matrix_units.h"

// The compiler's own header leaves the unused operand of masked intrinsics undefined and then warns of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#define NEURON_TARGET __attribute__((target(NEURON_MATRIX_UNITS)))
#define NEURON_INLINE NEURON_TARGET __attribute__((always_inline)) inline
