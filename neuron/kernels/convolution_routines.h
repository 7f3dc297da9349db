// The inner loops of convolutions, one set per instruction set.
#pragma once

#include <cstdint>

namespace neuron::kernels {

// `length` elements from `offset` of a source go to lanes from `lane` on.
struct CopyRun {
  int64_t lane, offset, length;
};

struct ConvolutionRoutines {
  const char* name;

  // Packs a panel of `depth` rows of `width` lanes: row p takes its runs from source + offsets[p]. Up to 15 floats
  // behind the panel are overwritten; lanes in no run have any value. `width` is at most a register, or a multiple.
  void (*copy_runs)(const float* source, const int64_t* offsets, int64_t depth, const CopyRun* runs, int run_count,
                    int width, float* panel);

  // The same for words that are pairs of bfloat16 from rows p and p + 1; behind an odd depth stands zero. The source
  // holds float32 with values of bfloat16.
  void (*copy_run_pairs)(const float* source, const int64_t* offsets, int64_t depth, const CopyRun* runs, int run_count,
                         int width, float* panel);

  // A line of a plane: `before` zeros, `count` elements, zeros up to `total`. Up to 15 floats behind it are
  // overwritten.
  void (*copy_line)(const float* source, int64_t before, int64_t count, int64_t total, float* target);

  // target[x] = sum over p < depth, in order, of weights[p] * source[offsets[p] + x], one chain of fused multiply-adds.
  // Up to 127 floats behind the source's and the target's `length` are read and overwritten.
  void (*accumulate)(const float* source, const int64_t* offsets, const float* weights, int64_t depth, int64_t length,
                     float* target);

  // target[y * target_line + x] = that sum + bias for a grid of taps that is whole: source[(y + k) * line + x + e] for
  // k < kernel_height, e < kernel_width, of `lines` target lines of `length` elements. Needs kernel_height >= 3 and
  // lines >= 4. Up to 63 floats behind a source line's end are read; target lines may be written twice, with the same
  // bits.
  void (*accumulate_grid)(const float* source, const float* weights, int64_t kernel_height, int64_t kernel_width,
                          int64_t line, int64_t lines, int64_t length, float bias, float* target, int64_t target_line);

  // target[j] = sums[j * step] + bias
  void (*add_bias)(const float* sums, int64_t step, float bias, int64_t count, float* target);

  // sums[t] = sum over lines and positions of gradient[line * length + x] * source[line_offsets[line] + offsets[t] +
  // x], for `taps` <= 8: each lane of a register is one chain over blocks of lanes and lines, then halves are added.
  void (*correlate)(const float* source, const int64_t* offsets, int taps, const float* gradient,
                    const int64_t* line_offsets, int64_t lines, int64_t length, float* sums);
};

constexpr int64_t kConvolutionSlack = 128;  // floats behind a source or a target

extern const ConvolutionRoutines convolution_routines_avx2;
extern const ConvolutionRoutines convolution_routines_avx512;

struct ConvolutionProblem;
struct GemmMicrokernel;
// The implementations with given sets, which the processor must have: lets tests compare instruction sets.
void run_convolution_tiles(const ConvolutionProblem& problem, const GemmMicrokernel& kernel,
                           const ConvolutionRoutines& routines);
void run_convolution_depthwise(const ConvolutionProblem& problem, const ConvolutionRoutines& routines);

// The best set of this processor; null when it has not even AVX2 and FMA.
const ConvolutionRoutines* detected_convolution_routines();

}  // namespace neuron::kernels
