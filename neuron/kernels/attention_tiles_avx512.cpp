// AVX-512 without products of bfloat16: those are widened to floats first.
#include <immintrin.h>

#include "neuron/kernels/attention_tiles.h"

// GCC 12 takes the intrinsics' undefined operands for uses of uninitialised variables.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#define NEURON_TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,fma")))
#define NEURON_INLINE NEURON_TARGET __attribute__((always_inline)) inline

namespace neuron::kernels {
namespace {

#include "neuron/kernels/attention_vectors_avx512.h"
// After the vectors it is written on.
#include "neuron/kernels/attention_tile_loops.h"
// After the units it is written on.
#include "neuron/kernels/attention_row_loops.h"
// After the rows ahead of which it asks.
#include "neuron/kernels/attention_group_loops.h"

}  // namespace

const AttentionTiles attention_tiles_avx512 = {
    .name = "avx512",
    .floats = {rows_by_panel<FloatUnits>, columns_by_panel<FloatUnits>, rows_by_rows<FloatUnits>,
               exponentials<FloatUnits>, softmax_gradient<FloatUnits>},
    .pairs = {},
    .float_rows = {dot_rows<FloatElements>, dot_groups<FloatGroup>, weigh_rows<FloatElements>},
    .half_rows = {dot_rows<HalfElements>, dot_groups_widened<HalfElements>, weigh_rows<HalfElements>},
    .bfloat16_rows = {dot_rows<BFloat16Elements>, dot_groups_widened<BFloat16Elements>, weigh_rows<BFloat16Elements>},
    .bfloat16_pair_rows = {},
    .mask = mask_scores,
    .advance = advance,
    .scale_lanes = scale_lanes,
    .dropout = dropout,
    .to_lanes = to_lanes,
    .from_lanes = from_lanes,
    .pair_rows = nullptr,
    .row_exponentials = row_exponentials,
    .row_maximum = row_maximum,
    .lane_exponentials = lane_exponentials,
    .lane_maxima = lane_maxima,
    .row_dot = row_dot};

}  // namespace neuron::kernels
