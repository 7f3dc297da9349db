// Nested tensors as nn.TransformerEncoder makes them of a padded batch when it evaluates without gradients: packed, run
// through its layers, padded with zeros again. Each layer pads for itself, so that the device computes on dense
// batches. Everything else on nested tensors is refused (register/dispatch_keys.cpp).
#include <ATen/EmptyTensor.h>
#include <ATen/NestedTensorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_transformer_encoder_layer_fwd_ops.h>
#include <ATen/ops/narrow_ops.h>
#include <ATen/ops/select_ops.h>
#include <ATen/ops/view_ops.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/dispatcher.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/register/errors.h"

namespace neuron::aten {
namespace {

at::Tensor narrowed(const at::Tensor& tensor, int64_t start, int64_t length) {
  return at::_ops::narrow::call(tensor, 0, start, length);
}

at::Tensor entry(const at::Tensor& batch, int64_t index) { return at::_ops::select_int::call(batch, 0, index); }

// A batch of sequences of `lengths` elements of `width` features, one after the other in memory.
struct Packed {
  at::Tensor buffer;  // 1-dimensional
  std::vector<int64_t> lengths;
  int64_t width;

  // The places of each sequence, as [length, width].
  std::vector<at::Tensor> sequences() const {
    std::vector<at::Tensor> result;
    int64_t start = 0;
    for (int64_t length : lengths) {
      const c10::SymInt sizes[] = {length, width};
      result.push_back(at::_ops::view::call(narrowed(buffer, start, length * width), sizes));
      start += length * width;
    }
    return result;
  }
  int64_t longest() const { return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end()); }
};

at::Tensor host_matrix(const std::vector<int64_t>& values, int64_t columns, at::ScalarType dtype) {
  const auto rows = static_cast<int64_t>(values.size()) / columns;
  at::Tensor result(at::detail::empty_cpu({rows, columns}, at::TensorOptions(dtype)));
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == at::ScalarType::Bool) {
      result.mutable_data_ptr<bool>()[i] = values[i] != 0;
    } else {
      result.mutable_data_ptr<int64_t>()[i] = values[i];
    }
  }
  return result;
}

at::Tensor nested(const Packed& packed) {
  std::vector<int64_t> sizes;
  for (int64_t length : packed.lengths) {
    sizes.push_back(length);
    sizes.push_back(packed.width);
  }
  return at::detail::make_tensor<at::native::NestedTensorImpl>(packed.buffer,
                                                               host_matrix(sizes, 2, at::ScalarType::Long));
}

Packed unpacked(const at::Tensor& tensor) {
  const at::native::NestedTensorImpl* impl = at::native::get_nested_tensor_impl(tensor);
  const at::Tensor& sizes = impl->get_nested_sizes();
  TORCH_CHECK(tensor.dim() == 3 && sizes.size(0) > 0,
              "nested tensors on neuron are batches of [length, features]; got one of ", tensor.dim(),
              " dimensions and ", sizes.dim() > 0 ? sizes.size(0) : 0, " entries");
  Packed packed{impl->get_buffer(), {}, 0};
  const at::Tensor rows = sizes.contiguous();
  const int64_t* values = rows.const_data_ptr<int64_t>();
  packed.width = values[1];
  for (int64_t i = 0; i < rows.size(0); ++i) {
    packed.lengths.push_back(values[2 * i]);
    TORCH_CHECK(values[2 * i + 1] == packed.width, "nested tensors on neuron have as many features in each entry; got ",
                packed.width, " and ", values[2 * i + 1]);
  }
  return packed;
}

at::Tensor pad(const Packed& packed, int64_t length, const at::Scalar& padding) {
  const auto batch = static_cast<int64_t>(packed.lengths.size());
  at::Tensor result = empty({batch, length, packed.width}, packed.buffer.scalar_type(), packed.buffer.device());
  record_fill(result, padding);
  const std::vector<at::Tensor> sequences = packed.sequences();
  for (int64_t i = 0; i < batch; ++i) {
    const int64_t own = packed.lengths[static_cast<size_t>(i)];
    if (own > 0) record_copy(narrowed(entry(result, i), 0, own), sequences[static_cast<size_t>(i)]);
  }
  return result;
}

Packed pack(const at::Tensor& batch, std::vector<int64_t> lengths) {
  int64_t total = 0;
  for (int64_t length : lengths) total += length;
  Packed packed{empty({total * batch.size(2)}, batch.scalar_type(), batch.device()), std::move(lengths), batch.size(2)};
  const std::vector<at::Tensor> sequences = packed.sequences();
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (packed.lengths[i] > 0) {
      record_copy(sequences[i], narrowed(entry(batch, static_cast<int64_t>(i)), 0, packed.lengths[i]));
    }
  }
  return packed;
}

// How many places of each row are kept; `aligned` becomes false when one follows a place that is not.
std::vector<int64_t> lengths_of(const at::Tensor& batch, const at::Tensor& mask, bool& aligned) {
  TORCH_CHECK(mask.scalar_type() == at::ScalarType::Bool, "Expected mask to be of ScalarType Bool, but got ",
              mask.scalar_type(), " instead.");
  TORCH_CHECK(mask.dim() == 2, "Padding mask should be 2D");
  TORCH_CHECK(batch.dim() == 3, "Input should be a 3D tensor, N * L * D");
  TORCH_CHECK(batch.size(0) == mask.size(0) && batch.size(1) == mask.size(1), "Mask size should match input size");
  const at::Tensor host = host_copy(mask);
  const bool* kept = host.const_data_ptr<bool>();
  std::vector<int64_t> lengths;
  aligned = true;
  for (int64_t i = 0; i < mask.size(0); ++i, kept += mask.size(1)) {
    lengths.push_back(std::count(kept, kept + mask.size(1), true));
    aligned = aligned && std::all_of(kept, kept + lengths.back(), [](bool x) { return x; });
  }
  return lengths;
}

// _nested_tensor_from_mask_left_aligned(t, mask).
void left_aligned(Arguments& arguments) {
  bool aligned = true;
  lengths_of(arguments.tensor(0), arguments.tensor(1), aligned);
  arguments.give_boolean(aligned);
}

// _nested_tensor_from_mask(t, mask, mask_check).
void from_mask(Arguments& arguments) {
  const at::Tensor& batch = arguments.tensor(0);
  bool aligned = true;
  std::vector<int64_t> lengths = lengths_of(batch, arguments.tensor(1), aligned);
  TORCH_CHECK(aligned || !arguments.boolean(2), "Mask must be left-aligned without gaps");
  arguments.give(nested(pack(batch, std::move(lengths))));
}

// to_padded_tensor(self, padding, output_size?) of a nested tensor.
void to_padded(Arguments& arguments) {
  const Packed packed = unpacked(arguments.tensor(0));
  int64_t length = packed.longest();
  if (!arguments.absent(2)) {
    const at::DimVector sizes = arguments.integers(2);
    TORCH_CHECK(sizes.size() == 3 && sizes[0] == static_cast<int64_t>(packed.lengths.size()) && sizes[1] >= length &&
                    sizes[2] == packed.width,
                "to_padded_tensor: a nested tensor of ", packed.lengths.size(), " entries, at most ", length, " by ",
                packed.width, ", does not fit output_size ", at::IntArrayRef(sizes));
    length = sizes[1];
  }
  arguments.give(pad(packed, length, arguments.real(1)));
}

// _transformer_encoder_layer_fwd with a nested src: the dense one, with a mask of what was padded.
void encoder_layer(Arguments& arguments) {
  const Packed packed = unpacked(arguments.tensor(0));
  TORCH_CHECK(arguments.absent(18), "_transformer_encoder_layer_fwd takes no mask beside a nested tensor");
  const int64_t longest = packed.longest();
  std::vector<int64_t> padded;
  for (int64_t length : packed.lengths) {
    for (int64_t i = 0; i < longest; ++i) padded.push_back(i >= length);
  }
  const at::Tensor mask =
      to_device(host_matrix(padded, std::max<int64_t>(1, longest), at::ScalarType::Bool), packed.buffer.device());
  auto tensor = [&](int i) -> const at::Tensor& { return arguments.tensor(i); };
  const at::Tensor result = at::_ops::_transformer_encoder_layer_fwd::call(
      pad(packed, longest, 0), arguments.integer(1), arguments.integer(2), tensor(3), tensor(4), tensor(5), tensor(6),
      arguments.boolean(7), arguments.boolean(8), arguments.real(9), tensor(10), tensor(11), tensor(12), tensor(13),
      tensor(14), tensor(15), tensor(16), tensor(17), mask, 1);
  arguments.give(nested(pack(result, packed.lengths)));
}

[[maybe_unused]] const bool nested_kernels = [] {
  constexpr auto kKey = c10::DispatchKey::NestedTensorPrivateUse1;
  for (auto [name, wrapper] : {std::pair<const char*, Wrapper>{"to_padded_tensor", to_padded},
                               {"_transformer_encoder_layer_fwd", encoder_layer}}) {
    add_kernel(full_name(name), make_boxed(general_kernel(full_name(name), wrapper)), kKey);
  }
  return true;
}();

const Registration registrations[] = {
    {"_nested_tensor_from_mask_left_aligned", left_aligned},
    {"_nested_tensor_from_mask", from_mask},
};

}  // namespace
}  // namespace neuron::aten
