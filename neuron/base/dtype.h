// Element types of the whole project: one table, from which sizes, names and classes come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace neuron {

// Columns: enumerator, StableHLO spelling, bytes, class.
#define NEURON_DTYPES(X)                   \
  X(Bool, "i1", 1, Boolean)                \
  X(UInt8, "ui8", 1, Unsigned)             \
  X(UInt16, "ui16", 2, Unsigned)           \
  X(UInt32, "ui32", 4, Unsigned)           \
  X(UInt64, "ui64", 8, Unsigned)           \
  X(Int8, "i8", 1, Signed)                 \
  X(Int16, "i16", 2, Signed)               \
  X(Int32, "i32", 4, Signed)               \
  X(Int64, "i64", 8, Signed)               \
  X(Float8E4M3FN, "f8E4M3FN", 1, Float)    \
  X(Float8E5M2, "f8E5M2", 1, Float)        \
  X(BFloat16, "bf16", 2, Float)            \
  X(Float16, "f16", 2, Float)              \
  X(Float32, "f32", 4, Float)              \
  X(Float64, "f64", 8, Float)              \
  X(Complex64, "complex<f32>", 8, Complex) \
  X(Complex128, "complex<f64>", 16, Complex)

enum class DType : uint8_t {
#define X(name, text, bytes, kind) name,
  NEURON_DTYPES(X)
#undef X
};

enum class DTypeClass : uint8_t { Boolean, Unsigned, Signed, Float, Complex };

inline constexpr int kDTypeCount = 0
#define X(name, text, bytes, kind) +1
    NEURON_DTYPES(X)
#undef X
    ;

constexpr size_t dtype_size(DType dtype) {
  constexpr size_t sizes[] = {
#define X(name, text, bytes, kind) bytes,
      NEURON_DTYPES(X)
#undef X
  };
  return sizes[static_cast<int>(dtype)];
}

constexpr DTypeClass dtype_class(DType dtype) {
  constexpr DTypeClass classes[] = {
#define X(name, text, bytes, kind) DTypeClass::kind,
      NEURON_DTYPES(X)
#undef X
  };
  return classes[static_cast<int>(dtype)];
}

// StableHLO's spelling of the element type ("f32", "ui8", "i1").
constexpr std::string_view dtype_name(DType dtype) {
  constexpr std::string_view names[] = {
#define X(name, text, bytes, kind) text,
      NEURON_DTYPES(X)
#undef X
  };
  return names[static_cast<int>(dtype)];
}

constexpr bool is_float(DType d) { return dtype_class(d) == DTypeClass::Float; }
constexpr bool is_complex(DType d) { return dtype_class(d) == DTypeClass::Complex; }
constexpr bool is_signed_integer(DType d) { return dtype_class(d) == DTypeClass::Signed; }
constexpr bool is_unsigned_integer(DType d) { return dtype_class(d) == DTypeClass::Unsigned; }
// Integers of either sign; bool is not one.
constexpr bool is_integer(DType d) { return is_signed_integer(d) || is_unsigned_integer(d); }
// Floats narrower than 32 bits: computed in float32 and rounded once per recorded operation.
constexpr bool is_reduced_float(DType d) { return is_float(d) && dtype_size(d) < 4; }

// The type arithmetic on `d` is done in: float32 for reduced floats, `d` itself otherwise.
constexpr DType compute_dtype(DType d) { return is_reduced_float(d) ? DType::Float32 : d; }

}  // namespace neuron
