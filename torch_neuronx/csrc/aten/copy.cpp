#include "torch_neuronx/csrc/aten/copy.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_to_copy_ops.h>
#include <ATen/ops/copy_ops.h>
#include <ATen/ops/is_pinned_ops.h>
#include <ATen/ops/resolve_conj_ops.h>
#include <ATen/ops/resolve_neg_ops.h>

#include "neuron/eager/command_graph.h"
#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/tensor_argument.h"
#include "torch_neuronx/csrc/register/errors.h"
#include "torch_neuronx/csrc/register/storage.h"

namespace neuron::aten {
namespace {

// Memory as a tensor of another geometry over the same storage.
at::Tensor view_of(const at::Tensor& tensor, at::ScalarType dtype, at::IntArrayRef sizes, at::IntArrayRef strides,
                   int64_t offset) {
  const bool host = tensor.device().is_cpu();
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(tensor.storage()), c10::DispatchKeySet(host ? c10::DispatchKey::CPU : c10::DispatchKey::PrivateUse1),
      c10::scalarTypeToTypeMeta(dtype));
  view.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return view;
}

at::ScalarType bits_of_size(size_t bytes) {
  switch (bytes) {
    case 1:
      return at::ScalarType::Byte;
    case 2:
      return at::ScalarType::Short;
    case 4:
      return at::ScalarType::Int;
    case 8:
      return at::ScalarType::Long;
    default:
      decline();
  }
}

// Where the generated code has no arithmetic for a dtype, a copy without conversion moves bits.
bool moves_bits(at::ScalarType type) {
  return !has_dtype(type) || c10::isComplexType(type) || c10::elementSize(type) == 1;
}

// Conversions the region operator "copy" does. The others (complex32, exotic float8) are converted on the host.
bool converts(at::ScalarType type) { return has_dtype(type) && !c10::isComplexType(type); }

void check_broadcast(const at::Tensor& target, const at::Tensor& source) {
  if (target.sizes().equals(source.sizes())) return;
  const at::DimVector shape = at::infer_size_dimvector(target.sizes(), source.sizes());
  TORCH_CHECK(target.sizes().equals(shape), "output with shape ", target.sizes(), " doesn't match the broadcast shape ",
              at::IntArrayRef(shape));
}

void record_region_copy(const lowering::Operator& op, const at::Tensor& target, const at::Tensor& source,
                        eager::Stream& stream) {
  eager::RegionInput input;
  if (is_host_number(source) && has_dtype(source.scalar_type()) && !c10::isComplexType(source.scalar_type())) {
    input.kind = codegen::OperandKind::Scalar;
    input.scalar = host_number(source);
  } else {
    input.tensor = read_argument(source);
  }
  const eager::TensorArgument output = is_neuron(target) ? write_argument(target) : read_argument(target);
  eager::record_region(stream, op, dtype_of(target), output.sizes, 0, {&output, 1}, {&input, 1}, {},
                       recording_threads());
}

// Same-device copy, host memory counting as foreign memory of the device: no bits of conj and neg here.
void record_plain(const at::Tensor& target, const at::Tensor& source, eager::Stream& stream) {
  static const lowering::Operator& op = operator_named("copy");
  const at::ScalarType to = target.scalar_type(), from = source.scalar_type();
  if (to == from && c10::elementSize(to) == 16) {
    record_region_copy(op, as_real(target), as_real(source), stream);
  } else if (to == from && moves_bits(to) && to != at::ScalarType::Bool) {
    const at::ScalarType bits = bits_of_size(c10::elementSize(to));
    record_region_copy(op, reinterpret(target, bits), reinterpret(source, bits), stream);
  } else if (c10::isComplexType(to) && has_dtype(to)) {
    const at::Tensor parts = as_real(target);
    if (c10::isComplexType(from) && has_dtype(from)) {
      record_region_copy(op, parts, as_real(source), stream);
    } else {
      record_region_copy(op, parts.select(-1, 0), source, stream);
      record_fill(parts.select(-1, 1), 0);
    }
  } else if (c10::isComplexType(from) && has_dtype(from)) {
    TORCH_WARN_ONCE("Casting complex values to real discards the imaginary part");
    record_region_copy(op, target, as_real(source).select(-1, 0), stream);
  } else {
    record_region_copy(op, target, source, stream);
  }
}

// The bits a copy has to apply: negation, or conjugation of complex values.
void record_with_bits(const at::Tensor& target, const at::Tensor& source, eager::Stream& stream) {
  const bool negate = target.is_neg() != source.is_neg();
  const bool conjugate = target.is_conj() != source.is_conj();
  if (!negate && !conjugate) return record_plain(target, source, stream);
  static const lowering::Operator& negation = operator_named("neg");
  if (!c10::isComplexType(target.scalar_type()) || !c10::isComplexType(source.scalar_type())) {
    record_plain(target, source, stream);
    if (negate) {
      record_elementwise(negation, dtype_of(target), target, {target});
    }
    return;
  }
  record_plain(target, source, stream);
  const at::Tensor parts = as_real(target);
  const at::Tensor real = parts.select(-1, 0), imaginary = parts.select(-1, 1);
  if (negate) record_elementwise(negation, dtype_of(real), real, {real});
  if (negate != conjugate) record_elementwise(negation, dtype_of(imaginary), imaginary, {imaginary});
}

bool convertible(const at::Tensor& target, const at::Tensor& source) {
  const at::ScalarType to = target.scalar_type(), from = source.scalar_type();
  if (to == from) return has_dtype(to) || c10::elementSize(to) <= 8;
  return has_dtype(to) && has_dtype(from);
}

at::Tensor host_to_dtype(const at::Tensor& source, at::ScalarType dtype) {
  return at::_ops::_to_copy::call(source, dtype, std::nullopt, std::nullopt, std::nullopt, false, std::nullopt);
}

// Bytes; below malloc's threshold for mapping new pages.
constexpr size_t kLargestStagedCopy = 64 * 1024;

bool pinned(const at::Tensor& tensor) { return at::_ops::is_pinned::call(tensor, std::nullopt); }

void host_to_device(const at::Tensor& target, at::Tensor source, bool non_blocking) {
  if (source.is_conj()) source = at::_ops::resolve_conj::call(source);
  if (source.is_neg()) source = at::_ops::resolve_neg::call(source);
  if (!convertible(target, source)) source = host_to_dtype(source, target.scalar_type());
  // The command runs later, and the caller may change pageable memory meanwhile: a small source is copied aside, a
  // large one (fresh pages cost more than the wait) is read before this returns.
  const bool number = source.dim() == 0 && converts(source.scalar_type());
  const bool held = number || (non_blocking && pinned(source));
  eager::Stream& stream = torch_neuronx::current_stream(target.device());
  const bool captured = eager::capturing_graph(stream) != nullptr;  // each replay reads the source again
  const bool wait = !held && source.nbytes() > kLargestStagedCopy && !captured;
  if (!held && !wait) {
    source =
        at::_ops::_to_copy::call(source, std::nullopt, std::nullopt, std::nullopt, std::nullopt, false, std::nullopt);
  }
  record_with_bits(target, source, stream);
  if (wait) eager::synchronize(stream, eager::FlushReason::Synchronize);
}

// Waits for a copy of `source` to the host, and raises when what it read has no value.
void finish_host_copy(eager::Stream& stream, const at::Tensor& source, eager::FlushReason reason) {
  const at::ScalarType type = source.scalar_type();
  if (has_dtype(type)) return eager::synchronize_for_read(stream, read_argument(source), reason);
  const at::Tensor bits = reinterpret(source, bits_of_size(c10::elementSize(type)));
  eager::synchronize_for_read(stream, read_argument(bits), reason);
}

void device_to_host(const at::Tensor& target, const at::Tensor& source, bool non_blocking) {
  eager::Stream& stream = torch_neuronx::current_stream(source.device());
  if (!convertible(target, source)) {
    at::Tensor host = target;
    at::_ops::copy_::call(host, host_copy(source), false);
    return;
  }
  record_with_bits(target, source, stream);
  if (non_blocking && pinned(target)) return;
  finish_host_copy(stream, source, eager::FlushReason::HostRead);
}

void device_to_device(const at::Tensor& target, const at::Tensor& source) {
  eager::Stream& stream = torch_neuronx::current_stream(target.device());
  if (!convertible(target, source)) {
    const at::Tensor converted = host_to_dtype(host_copy(source), target.scalar_type());
    return host_to_device(target, converted, false);
  }
  if (target.device() == source.device()) return record_with_bits(target, source, stream);
  // The copy waits for the source's writer; the source's stream waits for the copy before it may reuse or overwrite it.
  eager::Stream& from = torch_neuronx::current_stream(source.device());
  const auto written = eager::create_event(false), copied = eager::create_event(false);
  eager::record_event(from, written);
  eager::wait_event(stream, written);
  record_with_bits(target, source, stream);
  eager::record_event(stream, copied);
  eager::wait_event(from, copied);
}

}  // namespace

at::Tensor reinterpret(const at::Tensor& tensor, at::ScalarType dtype) {
  return view_of(tensor, dtype, tensor.sizes(), tensor.strides(), tensor.storage_offset());
}

at::Tensor as_real(const at::Tensor& tensor) {
  at::DimVector sizes(tensor.sizes()), strides(tensor.strides());
  for (int64_t& stride : strides) stride *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  return view_of(tensor, c10::toRealValueType(tensor.scalar_type()), sizes, strides, tensor.storage_offset() * 2);
}

void copy_tensor(const at::Tensor& target, const at::Tensor& source, bool non_blocking) {
  TORCH_CHECK(target.defined(), "self is undefined");
  TORCH_CHECK(source.defined(), "src is undefined");
  if (target.is_same(source)) return;
  if (source.is_meta()) {
    C10_THROW_ERROR(NotImplementedError, "Cannot copy out of meta tensor; no data!");
  }
  if (target.is_meta()) return;
  at::AutoDispatchBelowADInplaceOrView below;
  check_broadcast(target, source);
  if (target.numel() == 0) return;
  check_no_internal_overlap(target);
  const bool to_device = is_neuron(target), from_device = is_neuron(source);
  if (to_device && from_device) {
    // The same elements in the same order, nothing to convert: a copy onto itself.
    if (target.storage().is_alias_of(source.storage())) {
      check_no_partial_overlap(target, source);
      if (target.scalar_type() == source.scalar_type() && target.storage_offset() == source.storage_offset() &&
          target.sizes().equals(source.sizes()) && target.strides().equals(source.strides()) &&
          target.is_conj() == source.is_conj() && target.is_neg() == source.is_neg()) {
        return;
      }
    }
    device_to_device(target, source);
  } else if (to_device && source.device().is_cpu()) {
    host_to_device(target, source, non_blocking);
  } else if (from_device && target.device().is_cpu()) {
    device_to_host(target, source, non_blocking);
  } else {
    // Another accelerator: through the host.
    const at::Tensor host = from_device
                                ? host_copy(source)
                                : at::_ops::_to_copy::call(source, std::nullopt, std::nullopt, at::Device(at::kCPU),
                                                           std::nullopt, false, std::nullopt);
    at::Tensor other = target;
    at::_ops::copy_::call(other, host, non_blocking);
  }
}

void record_copy(const at::Tensor& output, const at::Tensor& input) {
  if (output.numel() == 0) return;
  if (!convertible(output, input)) decline();
  record_with_bits(output, input, torch_neuronx::current_stream(output.device()));
}

at::Tensor to_device(const at::Tensor& tensor, at::Device device) {
  if (tensor.device() == device) return tensor;
  at::Tensor moved = empty(tensor.sizes(), tensor.scalar_type(), device);
  copy_tensor(moved, tensor, false);
  return moved;
}

at::Tensor host_copy(const at::Tensor& tensor, eager::FlushReason reason) {
  at::Tensor host(at::detail::empty_cpu(tensor.sizes(), tensor.scalar_type()));
  if (tensor.numel() == 0) return host;
  eager::Stream& stream = torch_neuronx::current_stream(tensor.device());
  if (tensor.is_conj() || tensor.is_neg()) {
    host._set_conj(tensor.is_conj());
    host._set_neg(tensor.is_neg());
  }
  at::AutoDispatchBelowADInplaceOrView below;
  record_with_bits(host, tensor, stream);
  finish_host_copy(stream, tensor, reason);
  if (host.is_conj()) return at::_ops::resolve_conj::call(host);
  return host.is_neg() ? at::_ops::resolve_neg::call(host) : host;
}

namespace {

void copy_in_place(Arguments& arguments) {
  copy_tensor(arguments.tensor(0), arguments.tensor(1), arguments.boolean(2));
  arguments.give(arguments.tensor(0));
}

void copy_from(Arguments& arguments) {
  copy_tensor(arguments.tensor(1), arguments.tensor(0), arguments.boolean(2));
  arguments.give(arguments.tensor(1));
}

void copy_from_and_resize(Arguments& arguments) {
  const at::Tensor& source = arguments.tensor(0);
  const at::Tensor& target = arguments.tensor(1);
  if (!target.sizes().equals(source.sizes())) target.resize_(source.sizes());
  copy_tensor(target, source, false);
  arguments.give(target);
}

// A copy with the layout the caller asks for (default: the strides are kept).
void clone(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  const at::MemoryFormat format = arguments.memory_format(1).value_or(at::MemoryFormat::Preserve);
  at::Tensor result;
  if (format == at::MemoryFormat::Preserve) {
    result = allocate_like(self);
    if (!self.is_non_overlapping_and_dense() && self.dim() > 0) {
      const std::vector<int64_t> strides = at::infer_dense_strides(self.sizes(), self.strides());
      result.unsafeGetTensorImpl()->set_sizes_and_strides(self.sizes(), strides);
    }
  } else {
    result = empty(self.sizes(), self.scalar_type(), self.device());
    if (format != at::MemoryFormat::Contiguous) result.unsafeGetTensorImpl()->empty_tensor_restride(format);
  }
  copy_tensor(result, self, false);
  arguments.give(std::move(result));
}

const Registration registrations[] = {
    {"copy_", copy_in_place},
    {"_copy_from", copy_from},
    {"_copy_from_and_resize", copy_from_and_resize},
    {"clone", clone},
};

}  // namespace
}  // namespace neuron::aten
