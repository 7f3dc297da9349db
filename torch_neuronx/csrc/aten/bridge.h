// The bridge from ATen to the recorder: what every operator wrapper of this folder is written with.
//
// A wrapper checks, infers and allocates its outputs, records one or more commands and returns at once. A complete one,
// in a family file (linear_algebra.cpp), for `mm(Tensor self, Tensor mat2) -> Tensor` and its out= overload:
//
//   #include "torch_neuronx/csrc/aten/bridge.h"
//   #include "torch_neuronx/csrc/aten/registration.h"
//
//   namespace neuron::aten {
//   namespace {
//
//   void mm(Arguments& arguments) {
//     const at::Tensor& self = arguments.tensor(0);
//     const at::Tensor& mat2 = arguments.tensor(1);
//     if (self.is_complex()) decline();               // the CPU computes it: counted as a fallback, refused in strict
//     mode
//     // Runs the Meta kernel (shapes, dtypes and error texts are CPU's), allocates, or resizes out=. Becomes the
//     result. const at::Tensor& out = arguments.output(); if (out.numel() == 0) return; record_kernel(kernel("matmul"),
//     {out}, {self, mat2}, {/*attributes*/});
//   }
//
//   // A reduction: sum over dimension `dim`, as a region operator.
//   //   record_row(operator_named("sum"), common, self.sizes(), reduced_mask, {out}, {self}, {attributes});
//
//   const Registration registrations[] = {{"mm", mm}, {"mm.out", mm}};
//
//   }  // namespace
//   }  // namespace neuron::aten
//
// Rules: never call data_ptr() or mutable_data_ptr() (it exports the pointer and flushes); never wait for the device
// unless a value is needed on the host (then `host_copy`); no device guard is needed, everything takes the device from
// its tensors. Thread: any; the GIL may be held. Core errors (neuron::Error) become the Python class of their kind in
// registration.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <span>
#include <string_view>

#include "neuron/eager/recorder.h"
#include "torch_neuronx/csrc/aten/arguments.h"

namespace neuron::aten {

// --- dtypes. dtype_of declines (CPU fallback) for a dtype the core does not have (complex32, quantized, sub-byte).
bool has_dtype(at::ScalarType type);
DType dtype_of(at::ScalarType type);
inline DType dtype_of(const at::Tensor& tensor) { return dtype_of(tensor.scalar_type()); }
at::ScalarType scalar_type_of(DType dtype);
Scalar scalar_of(const at::Scalar& value);  // bool and integers: Int64; complex declines

// --- tensors
inline bool is_neuron(const at::Tensor& tensor) { return tensor.device().type() == c10::DeviceType::PrivateUse1; }
// A 0-dimensional CPU tensor: takes part in an operation on the device as a number.
inline bool is_host_number(const at::Tensor& tensor) { return tensor.dim() == 0 && tensor.device().is_cpu(); }
// Raises CPU's text when the tensors (undefined ones skipped) are not all on one neuron device; returns that device.
// 0-dimensional CPU tensors pass when `host_numbers`.
at::Device common_device(std::span<const at::Tensor* const> tensors, bool host_numbers = false);
// Uninitialised output memory on a device, allocated in the order of its current stream.
at::Tensor empty(at::IntArrayRef sizes, at::ScalarType dtype, at::Device device);
at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype, at::Device device);
at::Tensor allocate_like(const at::Tensor& tensor);  // strides kept when dense, as at::empty_like
// `tensor` itself, or a recorded contiguous copy of it.
at::Tensor contiguous(const at::Tensor& tensor);
// A recorded conversion (itself when it has the dtype).
at::Tensor to_dtype(const at::Tensor& tensor, at::ScalarType dtype);
// A host tensor as a device tensor (small index or number tensors that a caller passed on the CPU).
at::Tensor to_device(const at::Tensor& tensor, at::Device device);
// Waits for the device and returns the values on the CPU, contiguous. A flush: only for data-dependent shapes and
// values.
at::Tensor host_copy(const at::Tensor& tensor, eager::FlushReason reason = eager::FlushReason::HostRead);
// Records output <- input with broadcasting and conversion.
void record_copy(const at::Tensor& output, const at::Tensor& input);
void record_fill(const at::Tensor& output, const at::Scalar& value);
// `input`, or a recorded copy of it where it shares memory with `output`. Identical views are shared on purpose by what
// works element for element: `element_wise` lets them pass.
at::Tensor apart_from(const at::Tensor& output, const at::Tensor& input, bool element_wise = false);
// CPU's texts: "unsupported operation: some elements of the input tensor and the written-to tensor …".
void check_no_overlap(const at::Tensor& output, const at::Tensor& input);          // any overlap
void check_no_partial_overlap(const at::Tensor& output, const at::Tensor& input);  // identical views pass
void check_no_internal_overlap(const at::Tensor& output);

// --- recording
// What a command reads: a device tensor, a number, or (region commands) an index operand. Converts from each of them.
struct Input {
  const at::Tensor* tensor = nullptr;
  Scalar number;
  std::span<const int64_t> index_strides;
  bool is_index = false;

  Input(const at::Tensor& tensor) : tensor(&tensor) {}            // NOLINT: implicit by design
  Input(Scalar number) : number(number) {}                        // NOLINT
  Input(const at::Scalar& number) : number(scalar_of(number)) {}  // NOLINT
  Input(double number) : number(Scalar::of(number)) {}            // NOLINT
  Input(int64_t number) : number(Scalar::of(number)) {}           // NOLINT
  // base + sum(position[d] * strides[d]) over the iteration space, as Int64 or Int32.
  static Input index(int64_t base, std::span<const int64_t> strides, DType dtype = DType::Int64) {
    Input input(base);
    input.number.dtype = dtype;
    input.index_strides = strides;
    input.is_index = true;
    return input;
  }
};

// A tensor named in a call that records: not copied, because each copy costs a reference on its Python object.
struct TensorReference {
  const at::Tensor* tensor;
  TensorReference(const at::Tensor& tensor) : tensor(&tensor) {}  // NOLINT: implicit by design
};
using TensorReferences = std::span<const TensorReference>;

// The region operator or library kernel of a name. Throws Error(Internal) when it does not exist; keep the reference in
// a function-local static.
const lowering::Operator& operator_named(std::string_view name);
const kernels::Kernel& kernel(std::string_view name);

// output[…] = op(inputs…) point by point over output's shape. A 0-dimensional CPU tensor among the inputs is read as a
// number. `common`: PyTorch's common dtype of the operation. Nothing is recorded for an empty output.
void record_elementwise(const lowering::Operator& op, DType common, const at::Tensor& output,
                        std::span<const Input> inputs, std::span<const int64_t> attributes = {});
inline void record_elementwise(const lowering::Operator& op, DType common, const at::Tensor& output,
                               std::initializer_list<Input> inputs, std::initializer_list<int64_t> attributes = {}) {
  record_elementwise(op, common, output, std::span(inputs.begin(), inputs.size()),
                     std::span(attributes.begin(), attributes.size()));
}
// A region operator of kind Reduce or Normalize over the iteration space `sizes`; bit d of `reduced` is set for a
// reduced dimension (recorder.h: they must be adjacent). Outputs have the space's shape, or size 1 or no dimension
// where reduced.
void record_row(const lowering::Operator& op, DType common, at::IntArrayRef sizes, uint64_t reduced,
                TensorReferences outputs, std::span<const Input> inputs, std::span<const int64_t> attributes = {});
void record_row(const lowering::Operator& op, DType common, at::IntArrayRef sizes, uint64_t reduced,
                std::span<const at::Tensor> outputs, std::span<const Input> inputs,
                std::span<const int64_t> attributes = {});
inline void record_row(const lowering::Operator& op, DType common, at::IntArrayRef sizes, uint64_t reduced,
                       std::initializer_list<TensorReference> outputs, std::initializer_list<Input> inputs,
                       std::initializer_list<int64_t> attributes = {}) {
  record_row(op, common, sizes, reduced, TensorReferences(outputs.begin(), outputs.size()),
             std::span(inputs.begin(), inputs.size()), std::span(attributes.begin(), attributes.size()));
}
// A library kernel. Undefined tensors among the inputs are left out. The caller skips the call when nothing is to be
// written.
void record_kernel(const kernels::Kernel& kernel, TensorReferences outputs, TensorReferences inputs,
                   std::span<const int64_t> attributes = {}, std::span<const Scalar> scalars = {},
                   bool reads_outputs = false);
void record_kernel(const kernels::Kernel& kernel, std::span<const at::Tensor> outputs,
                   std::span<const at::Tensor> inputs, std::span<const int64_t> attributes = {},
                   std::span<const Scalar> scalars = {}, bool reads_outputs = false);
inline void record_kernel(const kernels::Kernel& kernel, std::initializer_list<TensorReference> outputs,
                          std::initializer_list<TensorReference> inputs, std::initializer_list<int64_t> attributes = {},
                          std::initializer_list<Scalar> scalars = {}, bool reads_outputs = false) {
  record_kernel(kernel, TensorReferences(outputs.begin(), outputs.size()),
                TensorReferences(inputs.begin(), inputs.size()), std::span(attributes.begin(), attributes.size()),
                std::span(scalars.begin(), scalars.size()), reads_outputs);
}

}  // namespace neuron::aten
