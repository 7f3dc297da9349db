// embedding_bag and its gradients. Offsets and indices are checked when the command runs.
#include <ATen/core/Tensor.h>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/indexed.h"
#include "torch_neuronx/csrc/aten/promotion.h"
#include "torch_neuronx/csrc/aten/refuse.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

enum Mode : int64_t { kSum, kMean, kMax };

void check_float(const at::Tensor& tensor) {
  require_row_dtype(tensor);
  if (!tensor.is_floating_point()) refuse();
}

// _embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights?, include_last_offset,
// padding_idx) -> (output, the bag of each index, the size of each bag, the indices of maxima).
void embedding_bag(Arguments& arguments) {
  const at::Tensor &weight = arguments.tensor(0), &samples = arguments.tensor(6);
  const int64_t mode = arguments.integer(4);
  const bool last_offset = arguments.boolean(7);
  check_float(weight);
  const at::Tensor &given_indices = arguments.tensor(1), &given_offsets = arguments.tensor(2);
  if (weight.dim() != 2 || given_indices.dim() != 1 || given_offsets.dim() != 1 || !is_index(given_indices) ||
      !is_index(given_offsets) || mode < kSum || mode > kMax || (last_offset && given_offsets.numel() < 1)) {
    refuse();
  }
  if (samples.defined() && (mode != kSum || samples.dim() != 1 || samples.numel() != given_indices.numel() ||
                            samples.scalar_type() != weight.scalar_type())) {
    refuse();
  }
  const at::Tensor* all[] = {&weight, &given_indices, &given_offsets, &samples};
  const at::Device device = common_device(all);
  const at::ScalarType type = common_dtype(given_indices, given_offsets);
  const at::Tensor indices = to_dtype(given_indices, type), offsets = to_dtype(given_offsets, type);
  const int64_t bags = offsets.numel() - (last_offset ? 1 : 0), width = weight.size(1);
  at::Tensor out = empty({bags, width}, weight.scalar_type(), device);
  at::Tensor bag_of = empty({indices.numel()}, type, device), sizes = empty({bags}, type, device);
  const bool maxima = mode == kMax;
  at::Tensor places = maxima ? empty({bags, width}, type, device) : empty({bags}, type, device);
  static const kernels::Kernel& found = kernel("embedding_bag");
  if (bags == 0 && indices.numel() == 0) {
  } else if (maxima) {
    record_kernel(found, {out, bag_of, sizes, places}, {weight, indices, offsets},
                  {mode, arguments.integer(8), last_offset});
  } else {
    record_kernel(found, {out, bag_of, sizes}, {weight, indices, offsets, samples},
                  {mode, arguments.integer(8), last_offset});
    if (bags != 0) record_copy(places, sizes);
  }
  arguments.give(std::move(out));
  arguments.give(std::move(bag_of));
  arguments.give(std::move(sizes));
  arguments.give(std::move(places));
}

struct Bags {
  const at::Tensor &gradient, &indices, &bag_of, &sizes, &maxima, &samples;
  int64_t rows, mode, padding;
  bool by_frequency;
};

void give_table_gradient(Arguments& arguments, const Bags& bags) {
  check_float(bags.gradient);
  // What the CPU's forward left out it computes in the backward.
  if (!is_index(bags.indices) || bags.bag_of.numel() != bags.indices.numel() || bags.gradient.dim() != 2) decline();
  const at::Tensor* all[] = {&bags.gradient, &bags.indices, &bags.bag_of, &bags.sizes, &bags.samples};
  const at::Device device = common_device(all);
  at::Tensor out = empty({bags.rows, bags.gradient.size(1)}, bags.gradient.scalar_type(), device);
  static const kernels::Kernel& found = kernel("embedding_bag_backward");
  const std::initializer_list<int64_t> attributes{bags.mode, bags.padding, bags.by_frequency};
  if (out.numel() == 0) {
  } else if (bags.gradient.size(0) == 0) {
    record_fill(out, 0);
  } else {
    record_kernel(
        found, {out},
        {bags.gradient, bags.indices, bags.bag_of, bags.sizes, bags.mode == kMax ? bags.maxima : bags.samples},
        attributes);
  }
  arguments.give(std::move(out));
}

// _embedding_bag_backward(grad, indices, offsets, offset2bag, bag_size, maximum_indices, num_weights,
// scale_grad_by_freq, mode, sparse, per_sample_weights?, padding_idx)
void embedding_bag_backward(Arguments& arguments) {
  if (arguments.boolean(9)) decline();  // a sparse gradient
  give_table_gradient(arguments, {arguments.tensor(0), arguments.tensor(1), arguments.tensor(3), arguments.tensor(4),
                                  arguments.tensor(5), arguments.tensor(10), arguments.integer(6), arguments.integer(8),
                                  arguments.integer(11), arguments.boolean(7)});
}

// _embedding_bag_dense_backward(grad, indices, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq,
// mode, per_sample_weights?, padding_idx)
void embedding_bag_dense_backward(Arguments& arguments) {
  give_table_gradient(arguments, {arguments.tensor(0), arguments.tensor(1), arguments.tensor(2), arguments.tensor(3),
                                  arguments.tensor(4), arguments.tensor(8), arguments.integer(5), arguments.integer(7),
                                  arguments.integer(9), arguments.boolean(6)});
}

// _embedding_bag_per_sample_weights_backward(grad, weight, indices, offsets, offset2bag, mode, padding_idx)
void embedding_bag_weights_backward(Arguments& arguments) {
  const at::Tensor &gradient = arguments.tensor(0), &weight = arguments.tensor(1), &indices = arguments.tensor(2),
                   &bag_of = arguments.tensor(4);
  check_float(gradient);
  if (arguments.integer(5) != kSum || gradient.scalar_type() != weight.scalar_type() || gradient.dim() != 2 ||
      weight.dim() != 2 || indices.dim() != 1 || !is_index(indices) || weight.size(1) != gradient.size(1)) {
    refuse();
  }
  if (bag_of.numel() != indices.numel()) decline();
  const at::Tensor* all[] = {&gradient, &weight, &indices, &bag_of};
  at::Tensor out = empty({indices.numel()}, gradient.scalar_type(), common_device(all));
  static const kernels::Kernel& found = kernel("embedding_bag_weights_backward");
  if (out.numel() != 0) record_kernel(found, {out}, {gradient, weight, indices, bag_of}, {arguments.integer(6)});
  arguments.give(std::move(out));
}

const Registration registrations[] = {
    {"_embedding_bag", embedding_bag},
    {"_embedding_bag_forward_only", embedding_bag},
    {"_embedding_bag_backward", embedding_bag_backward},
    {"_embedding_bag_dense_backward", embedding_bag_dense_backward},
    {"_embedding_bag_per_sample_weights_backward", embedding_bag_weights_backward},
};

}  // namespace
}  // namespace neuron::aten
