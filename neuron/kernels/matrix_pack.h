// Packing tiles for the matrix units. Tiles are 16 lines of 64 bytes, without gaps. Needs the processor to have the
// units.
#pragma once

#include <cstdint>

namespace neuron::kernels {

// Two ways an operand may lie in memory: element (lane, position) is source[lane * lane_stride + position *
// depth_stride]. Lanes are rows of the left or columns of the right operand, positions those of the sum.

// Tiles of the left operand: line l of tile t at step s holds positions 32 s … 32 s + 31 of lane 16 t + l, at target +
// s * step + t * kTileBytes + l * kLineBytes; positions behind `depth` are zero, lanes behind `lanes` are anything.
void pack_left_tiles(const uint16_t* source, int64_t lane_stride, int64_t depth_stride, int64_t lanes, int64_t depth,
                     char* target, int64_t step);

// Tiles of the right operand: line l of tile t at step s holds the words (pairs of positions 32 s + 2 l and the next)
// of lanes 16 t … 16 t + 15, at target + s * step + t * kTileBytes + l * kLineBytes. Zeros behind depth and lanes.
void pack_right_tiles(const uint16_t* source, int64_t lane_stride, int64_t depth_stride, int64_t lanes, int64_t depth,
                      char* target, int64_t step);

// A step of two tiles of the right operand from lines of 32 lanes, one for each of 32 positions: position p at source +
// places[p], or zeros where that is negative.
void pack_right_lines(const char* source, const int64_t* places, char* target);

}  // namespace neuron::kernels
