// Internal to the interpreter: what a kernel of one operation is given, and how it reaches typed elements.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "neuron/base/error.h"
#include "neuron/interpret/interpreter.h"

namespace neuron::interpret {

// One operation about to be evaluated. `results` have their dtype and sizes and are zero-filled.
struct Invocation {
  const ir::Operation& operation;
  std::span<const Buffer* const> operands;
  std::span<Buffer> results;
  std::span<const int64_t> symbol_sizes;

  const Buffer& operand(size_t i) const { return *operands[i]; }
  Buffer& result(size_t i = 0) const { return results[i]; }
};

// evaluate() without setting up the floating-point environment: for graphs inside operations.
std::vector<Buffer> evaluate_graph(const ir::Graph& graph, std::span<const Buffer> arguments,
                                   std::span<const int64_t> symbol_sizes);

// Kernels by category. Each handles every opcode of its category in operations.def, or fails naming it.
void evaluate_source(const Invocation& call);
void evaluate_unary(const Invocation& call);
void evaluate_convert(const Invocation& call);
void evaluate_binary(const Invocation& call);
void evaluate_compare(const Invocation& call);
void evaluate_ternary(const Invocation& call);
void evaluate_shape(const Invocation& call);
void evaluate_reduce(const Invocation& call);
void evaluate_reduce_window(const Invocation& call);
void evaluate_dot_general(const Invocation& call);
void evaluate_convolution(const Invocation& call);
void evaluate_dynamic_slice(const Invocation& call);
void evaluate_dynamic_update_slice(const Invocation& call);
void evaluate_gather(const Invocation& call);
void evaluate_scatter(const Invocation& call);
void evaluate_sort(const Invocation& call);
void evaluate_rng_bit_generator(const Invocation& call);
// A function of functions.def; false when `name` (without "neuron.") is none.
bool evaluate_function(std::string_view name, const Invocation& call);

template <typename T>
struct Tag {
  using type = T;
};

// Calls body(Tag<T>) with the C++ type arithmetic on the dtype is done in. Narrow floats have none: widen() first.
template <typename Body>
void visit(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::Bool:
      return body(Tag<bool>{});
    case DType::UInt8:
      return body(Tag<uint8_t>{});
    case DType::UInt16:
      return body(Tag<uint16_t>{});
    case DType::UInt32:
      return body(Tag<uint32_t>{});
    case DType::UInt64:
      return body(Tag<uint64_t>{});
    case DType::Int8:
      return body(Tag<int8_t>{});
    case DType::Int16:
      return body(Tag<int16_t>{});
    case DType::Int32:
      return body(Tag<int32_t>{});
    case DType::Int64:
      return body(Tag<int64_t>{});
    case DType::Float32:
      return body(Tag<float>{});
    case DType::Float64:
      return body(Tag<double>{});
    case DType::Complex64:
      return body(Tag<std::complex<float>>{});
    case DType::Complex128:
      return body(Tag<std::complex<double>>{});
    default:
      fail(ErrorKind::Internal, "a {} buffer was not widened", dtype_name(dtype));
  }
}

template <typename T>
inline constexpr bool is_complex_type = false;
template <typename T>
inline constexpr bool is_complex_type<std::complex<T>> = true;

// Narrow floats as float32 (in `scratch`); any other buffer as it is.
const Buffer& widen(const Buffer& buffer, Buffer& scratch);
// A buffer of the result's sizes in its compute dtype, to be handed to narrow() when it is filled.
Buffer make_wide(const Buffer& result);
// Rounds `wide` into the result (moves it when the dtypes agree).
void narrow(Buffer&& wide, Buffer& result);

[[noreturn]] void unsupported(const Invocation& call, DType dtype);

// Steps through all positions of `sizes` in row-major order. `sizes` with a 0 has no position: check numel first.
class Position {
 public:
  explicit Position(const Dims& sizes) : sizes_(sizes), index_(sizes.size(), 0) {}
  const Dims& index() const { return index_; }
  int64_t operator[](size_t d) const { return index_[d]; }
  void next() {
    for (size_t d = sizes_.size(); d-- > 0;) {
      if (++index_[d] < sizes_[d]) return;
      index_[d] = 0;
    }
  }

 private:
  Dims sizes_;
  Dims index_;
};

// One element as a buffer of rank 0, the operand form of regions; and back.
Buffer element_of(const Buffer& buffer, int64_t index);
void set_element(Buffer& buffer, int64_t index, const Buffer& element);
// `body` applied to (accumulators…, elements…), all of rank 0; its results become the accumulators.
void accumulate(const ir::Graph& body, std::vector<Buffer>& accumulators, std::vector<Buffer> elements,
                std::span<const int64_t> symbol_sizes);

int64_t product(const Dims& sizes);
// Strides of a dense row-major tensor, in elements.
Dims row_major_strides(const Dims& sizes);
// Element number of a position.
int64_t offset_of(const Dims& index, const Dims& strides);

}  // namespace neuron::interpret
