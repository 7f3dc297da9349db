// Element types as C++ types: how a dtype is stored, the type its arithmetic is done in, and dispatch from a run-time
// dtype.
#pragma once

#include <bit>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "neuron/base/dtype.h"
#include "neuron/base/error.h"
#include "neuron/base/float_formats.h"

namespace neuron::kernels {

// Native types compute in themselves; unsigned arithmetic stands for wrapping signed arithmetic where a kernel needs
// it.
template <typename T>
struct NativeElement {
  using Storage = T;
  using Compute = T;
  static Compute load(Storage x) { return x; }
  static Storage store(Compute x) { return x; }
};

// A byte of another type seen as bool may be any number: what is not zero is true.
struct BoolElement {
  using Storage = uint8_t;
  using Compute = bool;
  static Compute load(Storage x) { return x != 0; }
  static Storage store(Compute x) { return x; }
};

template <float (*widen)(uint16_t), uint16_t (*narrow)(float)>
struct NarrowElement {
  using Storage = uint16_t;
  using Compute = float;
  static Compute load(Storage x) { return widen(x); }
  static Storage store(Compute x) { return narrow(x); }
};
// The functions of float_formats.h, visible to the compiler: loops over bfloat16 become vector code.
struct BFloat16Element {
  using Storage = uint16_t;
  using Compute = float;
  static Compute load(Storage x) { return std::bit_cast<float>(static_cast<uint32_t>(x) << 16); }
  static Storage store(Compute x) {
    const auto bits = std::bit_cast<uint32_t>(x);
    const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return static_cast<Storage>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
  }
};
using Float16Element = NarrowElement<float16_to_float, float_to_float16>;

template <float (*widen)(uint8_t), uint8_t (*narrow)(float)>
struct ByteFloatElement {
  using Storage = uint8_t;
  using Compute = float;
  static Compute load(Storage x) { return widen(x); }
  static Storage store(Compute x) { return narrow(x); }
};

// body(Element{}) with the element type of the dtype; every dtype but complex.
template <typename Body>
decltype(auto) dispatch_real(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::Bool:
      return body(BoolElement{});
    case DType::UInt8:
      return body(NativeElement<uint8_t>{});
    case DType::UInt16:
      return body(NativeElement<uint16_t>{});
    case DType::UInt32:
      return body(NativeElement<uint32_t>{});
    case DType::UInt64:
      return body(NativeElement<uint64_t>{});
    case DType::Int8:
      return body(NativeElement<int8_t>{});
    case DType::Int16:
      return body(NativeElement<int16_t>{});
    case DType::Int32:
      return body(NativeElement<int32_t>{});
    case DType::Int64:
      return body(NativeElement<int64_t>{});
    case DType::Float8E4M3FN:
      return body(ByteFloatElement<float8_e4m3fn_to_float, float_to_float8_e4m3fn>{});
    case DType::Float8E5M2:
      return body(ByteFloatElement<float8_e5m2_to_float, float_to_float8_e5m2>{});
    case DType::BFloat16:
      return body(BFloat16Element{});
    case DType::Float16:
      return body(Float16Element{});
    case DType::Float32:
      return body(NativeElement<float>{});
    case DType::Float64:
      return body(NativeElement<double>{});
    default:
      fail(ErrorKind::Internal, "a kernel of real numbers was given {}", dtype_name(dtype));
  }
}

// bfloat16, float16, float32 and float64.
template <typename Body>
decltype(auto) dispatch_float(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::BFloat16:
      return body(BFloat16Element{});
    case DType::Float16:
      return body(Float16Element{});
    case DType::Float32:
      return body(NativeElement<float>{});
    case DType::Float64:
      return body(NativeElement<double>{});
    default:
      fail(ErrorKind::Internal, "a kernel of floats was given {}", dtype_name(dtype));
  }
}

template <typename Body>
decltype(auto) dispatch_any(DType dtype, const Body& body) {
  if (dtype == DType::Complex64) return body(NativeElement<std::complex<float>>{});
  if (dtype == DType::Complex128) return body(NativeElement<std::complex<double>>{});
  return dispatch_real(dtype, body);
}

// body(T{}) with a type that only moves bytes of the element's size.
struct Bytes16 {
  uint64_t low, high;
};
template <typename Body>
decltype(auto) dispatch_size(size_t size, const Body& body) {
  switch (size) {
    case 1:
      return body(uint8_t{});
    case 2:
      return body(uint16_t{});
    case 4:
      return body(uint32_t{});
    case 8:
      return body(uint64_t{});
    case 16:
      return body(Bytes16{});
    default:
      fail(ErrorKind::Internal, "no element has {} bytes", size);
  }
}

// body(T{}) with int32_t or int64_t: the dtypes an index tensor may have.
template <typename Body>
decltype(auto) dispatch_index(DType dtype, const Body& body) {
  if (dtype == DType::Int64) return body(int64_t{});
  if (dtype == DType::Int32) return body(int32_t{});
  fail(ErrorKind::Internal, "an index tensor has dtype {}", dtype_name(dtype));
}

// Arithmetic as PyTorch's: integers wrap around, without the undefined behaviour of signed overflow.
template <typename C>
C add_wrapping(C x, C y) {
  if constexpr (std::is_integral_v<C>) {
    return static_cast<C>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
  } else {
    return x + y;
  }
}
template <typename C>
C multiply_wrapping(C x, C y) {
  if constexpr (std::is_integral_v<C>) {
    return static_cast<C>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
  } else {
    return x * y;
  }
}

}  // namespace neuron::kernels
