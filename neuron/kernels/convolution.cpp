// Kernels "convolution", "convolution_input" and "convolution_weight": from a Call to a problem, and the list of
// implementations.
#include "neuron/kernels/convolution.h"

namespace neuron::kernels {
namespace {

// outputs: result [batch, filters, spatial…]; inputs: input [batch, channels, spatial…], weight [filters, channels /
// groups, kernel…], optional bias [filters]; attributes: ConvolutionShape.
void run_forward(const Call& call) {
  const TensorView &out = call.outputs[0], &in = call.inputs[0], &weight = call.inputs[1];
  ConvolutionProblem problem{ConvolutionPass::Forward,
                             ConvolutionShape(in, out, weight, call.attributes),
                             out,
                             {},
                             in,
                             weight,
                             call.inputs.size() > 2 ? call.inputs[2] : TensorView{},
                             call.threads};
  convolution_implementations().run(problem);
}

// The gradient of the input, and the forward of a transposed convolution. outputs: [batch, channels, spatial…]; inputs:
// gradient of the output, weight, optional bias [channels]; attributes: ConvolutionShape.
void run_input(const Call& call) {
  const TensorView &in = call.outputs[0], &out = call.inputs[0], &weight = call.inputs[1];
  ConvolutionProblem problem{ConvolutionPass::Input,
                             ConvolutionShape(in, out, weight, call.attributes),
                             in,
                             out,
                             {},
                             weight,
                             call.inputs.size() > 2 ? call.inputs[2] : TensorView{},
                             call.threads};
  convolution_implementations().run(problem);
}

// outputs: gradient of the weight; inputs: gradient of the output, input; attributes: ConvolutionShape.
void run_weight(const Call& call) {
  const TensorView &weight = call.outputs[0], &out = call.inputs[0], &in = call.inputs[1];
  ConvolutionProblem problem{ConvolutionPass::Weight,
                             ConvolutionShape(in, out, weight, call.attributes),
                             weight,
                             out,
                             in,
                             {},
                             {},
                             call.threads};
  convolution_implementations().run(problem);
}

const KernelRegistration registrations[] = {
    KernelRegistration({.name = "convolution", .run = run_forward}),
    KernelRegistration({.name = "convolution_input", .run = run_input}),
    KernelRegistration({.name = "convolution_weight", .run = run_weight}),
};

}  // namespace

ConvolutionShape::ConvolutionShape(const TensorView& in, const TensorView& out, const TensorView& weight,
                                   std::span<const int64_t> attributes) {
  int rank = static_cast<int>(attributes[0]);
  batch = in.sizes[0];
  channels = in.sizes[1];
  filters = out.sizes[1];
  groups = attributes[1 + 3 * rank];
  for (int d = 0; d < rank; ++d) {
    int at = 3 - rank + d;
    input[at] = in.sizes[2 + d];
    output[at] = out.sizes[2 + d];
    kernel[at] = weight.sizes[2 + d];
    stride[at] = attributes[1 + d];
    padding[at] = attributes[1 + rank + d];
    dilation[at] = attributes[1 + 2 * rank + d];
  }
}

const ImplementationList<ConvolutionProblem>& convolution_implementations() {
  static const Implementation<ConvolutionProblem> entries[] = {convolution_depthwise, convolution_matrix_units,
                                                               convolution_tiles, convolution_columns};
  static const ImplementationList<ConvolutionProblem> list("convolution", entries);
  return list;
}

}  // namespace neuron::kernels
