// Convolution with one channel per group on the summing side: each result plane is a weighted sum of shifted planes,
// taken in registers along lines. Float32, bfloat16 and float16; narrow floats are widened once.
//
// Order of summation: forward and gradient of the input, one chain of fused multiply-adds from zero over (filter of the
// group, kernel position). Gradient of the weight: per image, lanes as wide as a register take the positions of each
// output line in turn, then halves of the lanes are added; images are added in order.
#include <algorithm>
#include <cstring>
#include <vector>

#include "neuron/base/thread_pool.h"
#include "neuron/kernels/convolution.h"
#include "neuron/kernels/convolution_routines.h"
#include "neuron/kernels/convolution_windows.h"
#include "neuron/kernels/scratch.h"

namespace neuron::kernels {
namespace {

struct Buffers {
  Scratch source, sums, gradient, weights;
};
thread_local Buffers buffers;

char* element(const TensorView& view, int64_t index) {
  return static_cast<char*>(view.data) + index * static_cast<int64_t>(dtype_size(view.dtype));
}

float value(const TensorView& view, int64_t index) {
  float result;
  gemm_microkernel_avx2.pack(packed_source(view.dtype), element(view, index), 1, 0, 1, 1, 1, &result);
  return result;
}

// `count` elements as float32: where they lie, or widened into `scratch`.
const float* widened(const TensorView& view, int64_t index, int64_t count, Scratch& scratch) {
  const char* from = element(view, index);
  PackedSource type = packed_source(view.dtype);
  if (type == PackedSource::Float32) return reinterpret_cast<const float*>(from);
  auto* values = scratch.get<float>(count);
  gemm_microkernel_avx2.pack(type, from, 1, 0, count, 1, static_cast<int>(count), values);
  return values;
}

// Planes of a group's source channels, one after the other, in this thread's memory.
const float* group_planes(const Windows& windows, const TensorView& source, int64_t first_channel) {
  const SourcePlanes& planes = windows.planes;
  float* filled = buffers.source.get<float>(windows.source_channels * planes.channel() + kConvolutionSlack);
  for (int64_t c = 0; c < windows.source_channels; ++c) {
    planes.fill(packed_source(source.dtype), element(source, (first_channel + c) * planes.operand_size()),
                filled + c * planes.channel());
  }
  return filled;
}

// Forward and gradient of the input.
void run_windows(const ConvolutionProblem& p, const ConvolutionRoutines& routines) {
  const ConvolutionShape& s = p.shape;
  const Windows windows(p);
  const bool forward = p.pass == ConvolutionPass::Forward;
  const TensorView& source = forward ? p.input : p.gradient;
  const int64_t kernel_size = s.kernel_size(), result_size = windows.result[0] * windows.result[1] * windows.result[2];
  std::vector<std::vector<int64_t>> offsets;
  for (const WindowPass& pass : windows.passes) offsets.push_back(windows.offsets(pass));
  // The taps are all of a plane's neighbours: the routine for whole grids.
  const bool grid = windows.source_channels == 1 && windows.planes.phases.size() == 1 && windows.passes.size() == 1 &&
                    windows.passes[0].count[1] >= 4 && s.kernel[0] == 1 && s.kernel[1] >= 3 && s.dilation[1] == 1 &&
                    s.dilation[2] == 1 && s.stride[1] == 1 && s.stride[2] == 1;
  const bool direct = grid && p.dtype() == DType::Float32;  // stride 1: the sums are the result
  auto run_result = [&](const float* planes, int64_t image, int64_t group, int64_t channel) {
    int64_t number = group * windows.result_channels + channel;
    char* target = element(p.result, (image * windows.result_channels * s.groups + number) * result_size);
    float bias = p.bias.data != nullptr ? value(p.bias, number) : -0.0f;  // which changes no sum
    std::vector<float> weights;
    for (size_t i = 0; i < windows.passes.size(); ++i) {
      const WindowPass& pass = windows.passes[i];
      weights.clear();
      for (int64_t c = 0; c < windows.source_channels; ++c) {
        // [filter][channel of the group][kernel position]: one of the two has only one element in a group.
        int64_t filter = forward ? number : group * s.group_filters() + c;
        int64_t inner = forward ? c : channel;
        const float* all =
            widened(p.weight, (filter * s.group_channels() + inner) * kernel_size, kernel_size, buffers.weights);
        for (int64_t w : pass.weights) weights.push_back(all[w]);
      }
      int64_t width = pass.count[2], line = windows.planes.extent[2];
      int64_t slice = (pass.count[1] - 1) * line + width;  // of one z, with what lies between lines
      float* sums = direct ? nullptr : buffers.sums.get<float>(slice + kConvolutionSlack);
      for (int64_t z = 0; z < pass.count[0]; ++z) {
        const float* source = planes + windows.at(z, 0, 0);
        if (grid) {
          float* to = direct ? reinterpret_cast<float*>(target) + z * pass.count[1] * width : sums;
          routines.accumulate_grid(source + offsets[i][0], weights.data(), s.kernel[1], s.kernel[2], line,
                                   pass.count[1], width, bias, to, direct ? width : line);
          if (direct) continue;
        } else {
          routines.accumulate(source, offsets[i].data(), weights.data(), static_cast<int64_t>(weights.size()), slice,
                              sums);
        }
        for (int64_t y = 0; y < pass.count[1]; ++y) {
          float* from = sums + y * line;
          int64_t at = ((pass.result_start[0] + z * pass.result_step[0]) * windows.result[1] + pass.result_start[1] +
                        y * pass.result_step[1]) *
                           windows.result[2] +
                       pass.result_start[2];
          auto size = static_cast<int64_t>(dtype_size(p.dtype()));
          char* to = target + at * size;
          int64_t step = pass.result_step[2];
          if (p.dtype() == DType::Float32 && step == 1) {
            routines.add_bias(from, 1, bias, width, reinterpret_cast<float*>(to));
            continue;
          }
          if (!grid) routines.add_bias(from, 1, bias, width, from);
          if (step == 1) {
            gemm_microkernel_avx2.store(packed_source(p.dtype()), from, width, to);
          } else {
            for (int64_t x = 0; x < width; ++x) {
              gemm_microkernel_avx2.store(packed_source(p.dtype()), from + x, 1, to + x * step * size);
            }
          }
        }
      }
    }
  };
  int64_t work = std::max<int64_t>(1, result_size * kernel_size * windows.result_channels * windows.source_channels);
  parallel_for(p.threads, s.batch * s.groups, std::max<int64_t>(1, 65536 / work), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      int64_t image = task / s.groups, group = task % s.groups;
      const float* planes = group_planes(windows, source, task * windows.source_channels);
      for (int64_t channel = 0; channel < windows.result_channels; ++channel) {
        run_result(planes, image, group, channel);
      }
    }
  });
}

void run_weight(const ConvolutionProblem& p, const ConvolutionRoutines& routines) {
  const ConvolutionShape& s = p.shape;
  ConvolutionProblem forward = p;  // whose planes are those the weight has seen
  forward.pass = ConvolutionPass::Forward;
  const Windows windows(forward);
  const WindowPass& pass = windows.passes[0];
  const int64_t kernel_size = s.kernel_size(), output_size = s.output_size();
  std::vector<int64_t> lines;
  for (int64_t z = 0; z < pass.count[0]; ++z) {
    for (int64_t y = 0; y < pass.count[1]; ++y) lines.push_back(windows.at(z, y, 0));
  }
  const PackedSource type = packed_source(p.dtype());
  int64_t work = std::max<int64_t>(1, s.batch * output_size * kernel_size * s.group_filters());
  parallel_for(p.threads, s.groups, std::max<int64_t>(1, 65536 / work), [&](int64_t begin, int64_t end) {
    std::vector<float> totals(static_cast<size_t>(s.group_filters() * kernel_size));
    for (int64_t group = begin; group < end; ++group) {
      std::fill(totals.begin(), totals.end(), 0.0f);
      for (int64_t image = 0; image < s.batch; ++image) {
        const float* planes = group_planes(windows, p.input, image * s.channels + group);
        for (int64_t f = 0; f < s.group_filters(); ++f) {
          int64_t filter = group * s.group_filters() + f;
          const float* gradient =
              widened(p.gradient, (image * s.filters + filter) * output_size, output_size, buffers.gradient);
          float* total = totals.data() + f * kernel_size;
          for (int64_t t = 0; t < kernel_size;) {
            // A kernel line of seven at once, else eight: as many sums as there are registers for.
            int64_t count = s.kernel[2] == 7 ? 7 : std::min<int64_t>(8, kernel_size - t);
            float sums[8];
            routines.correlate(planes, pass.taps.data() + t, static_cast<int>(count), gradient, lines.data(),
                               static_cast<int64_t>(lines.size()), s.output[2], sums);
            for (int64_t i = 0; i < count; ++i) total[t + i] += sums[i];
            t += count;
          }
        }
      }
      gemm_microkernel_avx2.store(type, totals.data(), s.group_filters() * kernel_size,
                                  element(p.result, group * s.group_filters() * kernel_size));
    }
  });
}

Refusal refuse(const ConvolutionProblem& p) {
  const ConvolutionShape& s = p.shape;
  DType dtype = p.dtype();
  if (dtype != DType::Float32 && dtype != DType::BFloat16 && dtype != DType::Float16) {
    return {"takes float32, bfloat16 and float16; the problem is {}", dtype_name(dtype)};
  }
  if (s.groups == 1 || s.group_channels() != 1 || s.group_filters() > 4) {
    return {"takes groups of one channel and at most four filters; {} channels give {} filters in {} groups",
            s.channels, s.filters, s.groups};
  }
  if (detected_convolution_routines() == nullptr) return "the processor lacks AVX2, FMA or F16C";
  if (s.batch == 0 || s.output_size() == 0 || s.filters == 0 || s.input_size() == 0) return "the problem is empty";
  return {};
}

void run(const ConvolutionProblem& problem) { run_convolution_depthwise(problem, *detected_convolution_routines()); }

}  // namespace

void run_convolution_depthwise(const ConvolutionProblem& problem, const ConvolutionRoutines& routines) {
  if (problem.pass == ConvolutionPass::Weight) {
    run_weight(problem, routines);
  } else {
    run_windows(problem, routines);
  }
}

const ConvolutionRoutines* detected_convolution_routines() {
  const GemmMicrokernel* kernel = detected_gemm_microkernel();
  if (kernel == nullptr) return nullptr;
  return kernel == &gemm_microkernel_avx512 ? &convolution_routines_avx512 : &convolution_routines_avx2;
}

const Implementation<ConvolutionProblem> convolution_depthwise = {"depthwise", refuse, run};

}  // namespace neuron::kernels
