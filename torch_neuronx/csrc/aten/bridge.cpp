#include "torch_neuronx/csrc/aten/bridge.h"

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/Parallel.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>

#include "neuron/base/error.h"
#include "neuron/base/float_formats.h"
#include "torch_neuronx/csrc/aten/known_numbers.h"
#include "torch_neuronx/csrc/aten/tensor_argument.h"
#include "torch_neuronx/csrc/aten/wide_floats.h"
#include "torch_neuronx/csrc/register/device.h"
#include "torch_neuronx/csrc/register/storage.h"

namespace neuron::aten {

namespace {

constexpr uint8_t kNoDType = 0xff;

constexpr uint8_t to_core(at::ScalarType type) {
  switch (type) {
    case at::ScalarType::Bool:
      return static_cast<uint8_t>(DType::Bool);
    case at::ScalarType::Byte:
      return static_cast<uint8_t>(DType::UInt8);
    case at::ScalarType::UInt16:
      return static_cast<uint8_t>(DType::UInt16);
    case at::ScalarType::UInt32:
      return static_cast<uint8_t>(DType::UInt32);
    case at::ScalarType::UInt64:
      return static_cast<uint8_t>(DType::UInt64);
    case at::ScalarType::Char:
      return static_cast<uint8_t>(DType::Int8);
    case at::ScalarType::Short:
      return static_cast<uint8_t>(DType::Int16);
    case at::ScalarType::Int:
      return static_cast<uint8_t>(DType::Int32);
    case at::ScalarType::Long:
      return static_cast<uint8_t>(DType::Int64);
    case at::ScalarType::Float8_e4m3fn:
      return static_cast<uint8_t>(DType::Float8E4M3FN);
    case at::ScalarType::Float8_e5m2:
      return static_cast<uint8_t>(DType::Float8E5M2);
    case at::ScalarType::BFloat16:
      return static_cast<uint8_t>(DType::BFloat16);
    case at::ScalarType::Half:
      return static_cast<uint8_t>(DType::Float16);
    case at::ScalarType::Float:
      return static_cast<uint8_t>(DType::Float32);
    case at::ScalarType::Double:
      return static_cast<uint8_t>(DType::Float64);
    case at::ScalarType::ComplexFloat:
      return static_cast<uint8_t>(DType::Complex64);
    case at::ScalarType::ComplexDouble:
      return static_cast<uint8_t>(DType::Complex128);
    default:
      return kNoDType;
  }
}

constexpr int kScalarTypes = static_cast<int>(at::ScalarType::NumOptions);
constexpr auto kToCore = [] {
  std::array<uint8_t, kScalarTypes> table{};
  for (int i = 0; i < kScalarTypes; ++i) table[static_cast<size_t>(i)] = to_core(static_cast<at::ScalarType>(i));
  return table;
}();
constexpr auto kToTorch = [] {
  std::array<at::ScalarType, kDTypeCount> table{};
  for (int i = 0; i < kScalarTypes; ++i) {
    uint8_t dtype = kToCore[static_cast<size_t>(i)];
    if (dtype != kNoDType) table[dtype] = static_cast<at::ScalarType>(i);
  }
  return table;
}();

template <typename T>
T host_value(const at::Tensor& tensor) {
  return *static_cast<const T*>(tensor.const_data_ptr());
}

// Allocates on `device`, which need not be the calling thread's current one.
c10::DataPtr allocate(size_t bytes, at::Device device) {
  static c10::Allocator* const allocator = c10::GetAllocator(c10::DeviceType::PrivateUse1);
  if (device.index() == torch_neuronx::current_device()) [[likely]]
    return allocator->allocate(bytes);
  const c10::DeviceGuard guard(device);
  return allocator->allocate(bytes);
}

}  // namespace

bool has_dtype(at::ScalarType type) { return kToCore[static_cast<size_t>(type)] != kNoDType; }

DType dtype_of(at::ScalarType type) {
  uint8_t dtype = kToCore[static_cast<size_t>(type)];
  if (dtype == kNoDType) [[unlikely]]
    decline();
  return static_cast<DType>(dtype);
}

at::ScalarType scalar_type_of(DType dtype) { return kToTorch[static_cast<size_t>(dtype)]; }

Scalar scalar_of(const at::Scalar& value) {
  if (value.isFloatingPoint()) return Scalar::of(value.toDouble());
  if (value.isIntegral(/*includeBool=*/false)) {
    // uint64 values above int64 keep their bits: the operations convert to the dtype modulo 2^64.
    return Scalar::of(value.type() == at::ScalarType::UInt64 ? static_cast<int64_t>(value.toUInt64()) : value.toLong());
  }
  if (value.isBoolean()) return Scalar::of(static_cast<int64_t>(value.toBool()));
  decline();
}

Scalar narrowed(const Scalar& number, DType common) {
  const auto single = static_cast<float>(number.as_double());
  float rounded = single;
  if (common == DType::BFloat16) rounded = bfloat16_to_float(float_to_bfloat16(single));
  if (common == DType::Float16) rounded = float16_to_float(float_to_float16(single));
  const bool same = !is_reduced_float(common) || static_cast<double>(rounded) == number.as_double();
  return same ? number : Scalar::of(static_cast<double>(rounded));
}

Scalar host_number(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::ScalarType::Double:
      return Scalar::of(host_value<double>(tensor));
    case at::ScalarType::Float:
      return Scalar::of(static_cast<double>(host_value<float>(tensor)));
    case at::ScalarType::Long:
      return Scalar::of(host_value<int64_t>(tensor));
    case at::ScalarType::Int:
      return Scalar::of(static_cast<int64_t>(host_value<int32_t>(tensor)));
    case at::ScalarType::Short:
      return Scalar::of(static_cast<int64_t>(host_value<int16_t>(tensor)));
    case at::ScalarType::Char:
      return Scalar::of(static_cast<int64_t>(host_value<int8_t>(tensor)));
    case at::ScalarType::Byte:
      return Scalar::of(static_cast<int64_t>(host_value<uint8_t>(tensor)));
    case at::ScalarType::UInt16:
      return Scalar::of(static_cast<int64_t>(host_value<uint16_t>(tensor)));
    case at::ScalarType::UInt32:
      return Scalar::of(static_cast<int64_t>(host_value<uint32_t>(tensor)));
    case at::ScalarType::UInt64:
      return Scalar::of(static_cast<int64_t>(host_value<uint64_t>(tensor)));
    case at::ScalarType::Bool:
      return Scalar::of(static_cast<int64_t>(host_value<bool>(tensor)));
    case at::ScalarType::Half:
      return Scalar::of(static_cast<double>(static_cast<float>(host_value<at::Half>(tensor))));
    case at::ScalarType::BFloat16:
      return Scalar::of(static_cast<double>(static_cast<float>(host_value<at::BFloat16>(tensor))));
    default:
      decline();
  }
}

at::Device common_device(std::span<const at::Tensor* const> tensors, bool host_numbers) {
  std::optional<at::Device> device;
  for (const at::Tensor* tensor : tensors) {
    if (!tensor->defined() || (host_numbers && is_host_number(*tensor))) continue;
    if (!device) {
      device = tensor->device();
    } else if (*device != tensor->device()) {
      TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two devices, ", *device,
                  " and ", tensor->device(), "!");
    }
  }
  if (!device) {
    return at::Device(c10::DeviceType::PrivateUse1, torch_neuronx::current_device());
  }
  TORCH_CHECK(device->type() == c10::DeviceType::PrivateUse1, "Expected a tensor on a neuron device, but found one on ",
              *device);
  return *device;
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype, at::Device device) {
  const auto meta = c10::scalarTypeToTypeMeta(dtype);
  const size_t bytes = at::detail::computeStorageNbytes(sizes, strides, meta.itemsize());
  static c10::Allocator* const allocator = c10::GetAllocator(c10::DeviceType::PrivateUse1);
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                       allocate(bytes, device), allocator, /*resizable=*/true);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(std::move(storage)), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), meta);
  if (sizes.size() != 1 || sizes[0] != 0 || strides[0] != 1) {  // a new TensorImpl has sizes {0}
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  }
  return tensor;
}

at::Tensor empty(at::IntArrayRef sizes, at::ScalarType dtype, at::Device device) {
  Dims strides(sizes.size(), 1);
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= std::max<int64_t>(sizes[d], 1);
  }
  return empty_strided(sizes, at::IntArrayRef(strides.data(), strides.size()), dtype, device);
}

at::Tensor allocate_like(const at::Tensor& tensor) {
  if (tensor.is_non_overlapping_and_dense()) {
    return empty_strided(tensor.sizes(), tensor.strides(), tensor.scalar_type(), tensor.device());
  }
  return empty(tensor.sizes(), tensor.scalar_type(), tensor.device());
}

namespace {

at::Tensor copied(const at::Tensor& tensor) {
  at::Tensor copy = empty(tensor.sizes(), tensor.scalar_type(), tensor.device());
  record_copy(copy, tensor);
  return copy;
}

}  // namespace

at::Tensor contiguous(const at::Tensor& tensor) { return tensor.is_contiguous() ? tensor : copied(tensor); }

at::Tensor to_dtype(const at::Tensor& tensor, at::ScalarType dtype) {
  if (tensor.scalar_type() == dtype) return tensor;
  at::Tensor converted = tensor.is_non_overlapping_and_dense()
                             ? empty_strided(tensor.sizes(), tensor.strides(), dtype, tensor.device())
                             : empty(tensor.sizes(), dtype, tensor.device());
  record_copy(converted, tensor);
  return converted;
}

namespace {

// The bytes a tensor's elements lie between.
std::pair<const char*, const char*> memory_range(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  const auto* begin = static_cast<const char*>(impl.unsafe_storage().unsafeGetStorageImpl()->data());
  begin += static_cast<size_t>(impl.storage_offset()) * impl.itemsize();
  int64_t last = 0;
  for (int64_t d = 0; d < impl.dim(); ++d) last += (impl.size(d) - 1) * impl.stride(d);
  return {begin, begin + static_cast<size_t>(last + 1) * impl.itemsize()};
}

bool share_memory(const at::Tensor& a, const at::Tensor& b) {
  const auto storage = [](const at::Tensor& tensor) {
    return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  };
  if (storage(a) != storage(b) || a.numel() == 0 || b.numel() == 0) return false;
  const auto [a_begin, a_end] = memory_range(a);
  const auto [b_begin, b_end] = memory_range(b);
  return a_begin < b_end && b_begin < a_end;
}

bool are_identical_views(const at::Tensor& a, const at::Tensor& b) {
  return a.storage_offset() == b.storage_offset() && a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         a.strides() == b.strides();
}

// Whether an operation that writes `output` may find `input` changed before it has read it.
bool interferes(const at::Tensor& output, const at::Tensor& input, bool element_wise) {
  return share_memory(output, input) && !(element_wise && are_identical_views(output, input));
}

}  // namespace

at::Tensor apart_from(const at::Tensor& output, const at::Tensor& input, bool element_wise) {
  return interferes(output, input, element_wise) ? copied(input) : input;
}

void check_no_overlap(const at::Tensor& output, const at::Tensor& input) { at::assert_no_overlap(output, input); }
void check_no_partial_overlap(const at::Tensor& output, const at::Tensor& input) {
  at::assert_no_partial_overlap(output, input);
}
void check_no_internal_overlap(const at::Tensor& output) { at::assert_no_internal_overlap(output); }

const lowering::Operator& operator_named(std::string_view name) {
  const lowering::Operator* op = lowering::find_operator(name);
  check_internal(op != nullptr, "no lowering for operator '{}'", name);
  return *op;
}

const kernels::Kernel& kernel(std::string_view name) {
  const kernels::Kernel* kernel = kernels::find_kernel(name);
  check_internal(kernel != nullptr, "no library kernel '{}'", name);
  return *kernel;
}

int recording_threads() { return at::get_num_threads(); }

eager::TensorArgument read_argument(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  const c10::StorageImpl& storage = *impl.unsafe_storage().unsafeGetStorageImpl();
  eager::TensorArgument argument;
  argument.dtype = dtype_of(tensor.scalar_type());
  argument.data = const_cast<char*>(static_cast<const char*>(storage.data())) +
                  static_cast<size_t>(impl.storage_offset()) * impl.itemsize();
  argument.sizes = {impl.sizes().data(), impl.sizes().size()};
  argument.strides = {impl.strides().data(), impl.strides().size()};
  argument.block = torch_neuronx::block_of(storage);
  if (argument.block == nullptr) [[unlikely]] {
    argument.owner = std::make_shared<c10::Storage>(impl.unsafe_storage());
  }
  return argument;
}

eager::TensorArgument write_argument(const at::Tensor& tensor) {
  torch_neuronx::arm_storage(*tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
  return read_argument(tensor);
}

namespace {

eager::FlatArgument flat(eager::ListRecording& list, const c10::TensorImpl& impl, bool repeated, int64_t element) {
  const c10::StorageImpl& storage = *impl.unsafe_storage().unsafeGetStorageImpl();
  const size_t offset = static_cast<size_t>(impl.storage_offset() + element) * impl.itemsize();
  char* data = const_cast<char*>(static_cast<const char*>(storage.data())) + offset;
  runtime::Block* block = torch_neuronx::block_of(storage);
  if (block == nullptr) [[unlikely]]
    list.keep(std::make_shared<c10::Storage>(impl.unsafe_storage()));
  return {data, block, dtype_of(impl.dtype().toScalarType()), repeated};
}

}  // namespace

void add_input(eager::ListRecording& list, const at::Tensor& tensor, bool repeated, int64_t element) {
  list.add_input(flat(list, *tensor.unsafeGetTensorImpl(), repeated, element));
}

void add_output(eager::ListRecording& list, const at::Tensor& tensor, int64_t element) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  torch_neuronx::arm_storage(*impl.unsafe_storage().unsafeGetStorageImpl());
  list.add_output(flat(list, impl, false, element));
}

namespace {

using TensorArguments = c10::SmallVector<eager::TensorArgument, 4>;
using References = c10::SmallVector<TensorReference, 8>;
using RegionInputs = c10::SmallVector<eager::RegionInput, 6>;
using Copies = c10::SmallVector<at::Tensor, 1>;

// `input`, or a recorded copy of it, which `copies` keeps, where an output shares its memory.
const at::Tensor& separated(TensorReferences outputs, const at::Tensor& input, bool element_wise, Copies& copies) {
  for (const TensorReference& output : outputs) {
    if (interferes(*output.tensor, input, element_wise)) return copies.emplace_back(copied(input));
  }
  return input;
}

References references_to(std::span<const at::Tensor> tensors) {
  References references;
  references.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) references.emplace_back(tensor);
  return references;
}

void add_input(RegionInputs& inputs, const Input& input) {
  eager::RegionInput& added = inputs.emplace_back();
  if (input.tensor != nullptr && input.tensor->dim() == 0 && input.tensor->device().is_cpu()) {
    added.kind = codegen::OperandKind::Scalar;
    added.scalar = host_number(*input.tensor);
  } else if (input.tensor != nullptr) {
    added.tensor = read_argument(*input.tensor);
  } else if (input.is_index) {
    added.kind = codegen::OperandKind::Index;
    added.scalar = input.number;
    added.index_strides = input.index_strides;
  } else {
    added.kind = codegen::OperandKind::Scalar;
    added.scalar = input.number;
  }
}

}  // namespace

void record_elementwise(const lowering::Operator& op, DType common, const at::Tensor& output,
                        std::span<const Input> inputs, std::span<const int64_t> attributes) {
  if (output.numel() == 0) return;
  if (is_wide(common)) [[unlikely]]
    common = region_precision(op, common);
  eager::Stream& stream = torch_neuronx::current_stream(output.device());
  RegionInputs region_inputs;
  for (const Input& input : inputs) {
    add_input(region_inputs, input);
    eager::RegionInput& added = region_inputs.back();
    if (added.kind != codegen::OperandKind::Tensor || !added.tensor.sizes.empty() || output.dim() == 0) continue;
    if (const std::optional<Scalar> number = known_number(added.tensor, stream)) {
      added = {};
      added.kind = codegen::OperandKind::Scalar;
      added.scalar = *number;
    }
  }
  const eager::TensorArgument target = write_argument(output);
  eager::record_region(stream, op, common, target.sizes, 0, {&target, 1}, {region_inputs.data(), region_inputs.size()},
                       attributes, recording_threads());
}

void record_row(const lowering::Operator& op, DType common, at::IntArrayRef sizes, uint64_t reduced,
                TensorReferences outputs, std::span<const Input> inputs, std::span<const int64_t> attributes) {
  TensorArguments targets;
  bool writes = false;
  for (const TensorReference& output : outputs) {
    writes |= output.tensor->numel() != 0;
    targets.push_back(write_argument(*output.tensor));
  }
  if (!writes) return;
  if (is_wide(common)) [[unlikely]]
    common = region_precision(op, common);
  // A row's results may be written before another row is read.
  Copies copies;
  RegionInputs region_inputs;
  for (const Input& input : inputs) {
    const bool on_device = input.tensor != nullptr && is_neuron(*input.tensor);
    add_input(region_inputs, on_device ? Input(separated(outputs, *input.tensor, true, copies)) : input);
  }
  eager::record_region(torch_neuronx::current_stream(outputs.front().tensor->device()), op, common,
                       {sizes.data(), sizes.size()}, reduced, {targets.data(), targets.size()},
                       {region_inputs.data(), region_inputs.size()}, attributes, recording_threads());
}

void record_row(const lowering::Operator& op, DType common, at::IntArrayRef sizes, uint64_t reduced,
                std::span<const at::Tensor> outputs, std::span<const Input> inputs,
                std::span<const int64_t> attributes) {
  const References references = references_to(outputs);
  record_row(op, common, sizes, reduced, TensorReferences(references.data(), references.size()), inputs, attributes);
}

void record_kernel(const kernels::Kernel& kernel, TensorReferences outputs, TensorReferences inputs,
                   std::span<const int64_t> attributes, std::span<const Scalar> scalars, bool reads_outputs) {
  TensorArguments targets, sources;
  Copies copies;  // kernels read and write in orders of their own
  bool wide = false;
  for (const TensorReference& output : outputs) {
    wide |= is_wide(targets.emplace_back(write_argument(*output.tensor)).dtype);
  }
  for (const TensorReference& input : inputs) {
    if (!input.tensor->defined()) continue;
    const at::Tensor& source = separated(outputs, *input.tensor, false, copies);
    wide |= is_wide(sources.emplace_back(read_argument(source)).dtype);
  }
  if (wide && computes_in_float32(kernel)) [[unlikely]] {
    return record_kernel_in_float32(kernel, outputs, inputs, attributes, scalars, reads_outputs);
  }
  const at::Device device = (outputs.empty() ? inputs : outputs).front().tensor->device();
  eager::record_kernel(torch_neuronx::current_stream(device), kernel, {targets.data(), targets.size()},
                       {sources.data(), sources.size()}, attributes, scalars, reads_outputs, recording_threads());
}

void record_kernel(const kernels::Kernel& kernel, std::span<const at::Tensor> outputs,
                   std::span<const at::Tensor> inputs, std::span<const int64_t> attributes,
                   std::span<const Scalar> scalars, bool reads_outputs) {
  const References targets = references_to(outputs), sources = references_to(inputs);
  record_kernel(kernel, TensorReferences(targets.data(), targets.size()),
                TensorReferences(sources.data(), sources.size()), attributes, scalars, reads_outputs);
}

}  // namespace neuron::aten
