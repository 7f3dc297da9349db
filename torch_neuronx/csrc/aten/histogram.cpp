// histc and histogram.
#include <ATen/native/Resize.h>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/given_output.h"
#include "torch_neuronx/csrc/aten/refuse.h"
#include "torch_neuronx/csrc/aten/registration.h"

namespace neuron::aten {
namespace {

// histc(self, bins, min, max) and its out= form. Unlike on the CPU self may be an integer tensor, as on CUDA.
void histc(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  const DType dtype = dtype_of(self);
  if (is_complex(dtype) || dtype == DType::Bool) decline();
  const int64_t bins = arguments.integer(1);
  const double low = arguments.scalar(2).toDouble(), high = arguments.scalar(3).toDouble();
  TORCH_CHECK_VALUE(bins > 0, "bins must be > 0, but got ", bins);
  TORCH_CHECK_VALUE(low <= high, "max must be larger than min, but min is ", low, " and max is ", high);
  at::Tensor out;
  if (arguments.size() > 4) {
    out = arguments.tensor(4);
    if (out.scalar_type() != self.scalar_type()) refuse();
    const at::Tensor* both[] = {&self, &out};
    common_device(both);
    at::native::resize_output(out, {bins});
    check_no_internal_overlap(out);
    check_no_overlap(out, self);
  } else {
    out = empty({bins}, self.scalar_type(), self.device());
  }
  static const kernels::Kernel& found = kernel("histogram");
  record_kernel(found, {out}, {self}, {}, {Scalar::of(low), Scalar::of(high)});
  arguments.give(std::move(out));
}

void check_samples(const at::Tensor& self, const at::Tensor& weight) {
  if (self.scalar_type() != at::ScalarType::Float && self.scalar_type() != at::ScalarType::Double) refuse();
  if (weight.defined() && (weight.scalar_type() != self.scalar_type() || !weight.sizes().equals(self.sizes())))
    refuse();
  const at::Tensor* both[] = {&self, &weight};
  common_device(both);
}

void give_histogram(Arguments& arguments, const at::Tensor& edges, const at::Tensor& weight, bool density, bool even,
                    int first_out) {
  const at::Tensor& self = arguments.tensor(0);
  const at::Tensor counts = empty({edges.size(0) - 1}, self.scalar_type(), self.device());
  static const kernels::Kernel& found = kernel("histogram_weights");
  if (counts.numel() != 0) record_kernel(found, {counts}, {self, edges, weight}, {density, even});
  give_or_write(arguments, first_out, {counts, edges});
}

// histogram.bin_ct(self, bins, *, range?, weight?, density): bins of equal width.
void histogram(Arguments& arguments) {
  const at::Tensor &self = arguments.tensor(0), &weight = arguments.tensor(3);
  check_samples(self, weight);
  const int64_t bins = arguments.integer(1);
  const std::vector<double> range = arguments.reals(2);
  if (bins <= 0 || (!arguments.absent(2) && (range.size() != 2 || !(range[0] <= range[1])))) refuse();
  const at::Tensor edges = empty({bins + 1}, self.scalar_type(), self.device());
  c10::SmallVector<Scalar, 2> scalars;
  for (double edge : range) scalars.push_back(Scalar::of(edge));
  static const kernels::Kernel& found = kernel("histogram_edges");
  const at::Tensor outputs[] = {edges}, inputs[] = {self};
  record_kernel(found, outputs, inputs, {}, std::span<const Scalar>(scalars.data(), scalars.size()));
  give_histogram(arguments, edges, weight, arguments.boolean(4), true, 5);
}

// histogram.bins_tensor(self, bins, *, weight?, density): bins of given edges.
void histogram_of_edges(Arguments& arguments) {
  const at::Tensor &self = arguments.tensor(0), &bins = arguments.tensor(1), &weight = arguments.tensor(2);
  check_samples(self, weight);
  if (bins.dim() != 1 || bins.numel() == 0 || bins.scalar_type() != self.scalar_type()) refuse();
  const at::Tensor* both[] = {&self, &bins};
  common_device(both);
  const at::Tensor edges = empty(bins.sizes(), bins.scalar_type(), bins.device());
  record_copy(edges, bins);
  give_histogram(arguments, edges, weight, arguments.boolean(3), false, 4);
}

const Registration registrations[] = {
    {"histc", histc},
    {"histc.out", histc},
    {"histogram.bin_ct", histogram},
    {"histogram.bin_ct_out", histogram},
    {"histogram.bins_tensor", histogram_of_edges},
    {"histogram.bins_tensor_out", histogram_of_edges},
};

}  // namespace
}  // namespace neuron::aten
