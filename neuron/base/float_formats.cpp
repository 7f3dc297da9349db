#include "neuron/base/float_formats.h"

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "neuron/base/error.h"

namespace neuron {

namespace {

template <typename T>
T load(const void* address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

template <typename T>
void store(void* address, T value) {
  std::memcpy(address, &value, sizeof value);
}

// Rounds |value| to a format with `mantissa` stored bits and exponent bias `bias`; returns exponent and mantissa bits
// packed as an integer that simply overflows into the next binade when rounding carries.
uint32_t round_magnitude(float magnitude, int mantissa, int bias) {
  uint32_t bits = std::bit_cast<uint32_t>(magnitude);
  int exponent = static_cast<int>(bits >> 23) - 127 + bias;
  uint32_t significand = (bits & 0x7fffffu) | 0x800000u;
  int shift = 23 - mantissa;
  if (exponent <= 0) {
    shift += 1 - exponent;
    if (shift > 25) return 0;
    exponent = 0;
  } else {
    significand &= 0x7fffffu;
  }
  uint32_t kept = significand >> shift;
  uint32_t rest = significand & ((1u << shift) - 1);
  uint32_t half = 1u << (shift - 1);
  if (rest > half || (rest == half && (kept & 1))) ++kept;
  return (static_cast<uint32_t>(exponent) << mantissa) + kept;
}

float expand_magnitude(uint32_t bits, int mantissa, int bias) {
  uint32_t exponent = bits >> mantissa;
  uint32_t fraction = bits & ((1u << mantissa) - 1);
  if (exponent == 0) return std::ldexp(static_cast<float>(fraction), 1 - bias - mantissa);
  return std::bit_cast<float>(((exponent + 127 - bias) << 23) | (fraction << (23 - mantissa)));
}

}  // namespace

float bfloat16_to_float(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t float_to_bfloat16(float value) {
  if (std::isnan(value)) return 0x7fc0;
  uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

float float16_to_float(uint16_t bits) {
  float sign = (bits & 0x8000) ? -1.0f : 1.0f;
  uint32_t magnitude = bits & 0x7fff;
  if (magnitude > 0x7c00) return std::numeric_limits<float>::quiet_NaN();
  if (magnitude == 0x7c00) return sign * std::numeric_limits<float>::infinity();
  return std::copysign(expand_magnitude(magnitude, 10, 15), sign);
}

uint16_t float_to_float16(float value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return sign | 0x7e00;
  float magnitude = std::fabs(value);
  if (magnitude >= 65520.0f) return sign | 0x7c00;
  return static_cast<uint16_t>(sign | round_magnitude(magnitude, 10, 15));
}

float float8_e4m3fn_to_float(uint8_t bits) {
  if ((bits & 0x7f) == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  return std::copysign(expand_magnitude(bits & 0x7f, 3, 7), (bits & 0x80) ? -1.0f : 1.0f);
}

uint8_t float_to_float8_e4m3fn(float value) {
  uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return sign | 0x7f;
  float magnitude = std::fabs(value);
  uint32_t rounded = magnitude >= 480.0f ? 0x7e : round_magnitude(magnitude, 3, 7);
  return static_cast<uint8_t>(sign | (rounded > 0x7e ? 0x7e : rounded));
}

float float8_e5m2_to_float(uint8_t bits) { return float16_to_float(static_cast<uint16_t>(bits) << 8); }

uint8_t float_to_float8_e5m2(float value) {
  uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return sign | 0x7f;
  float magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return sign | 0x7c;
  uint32_t rounded = magnitude >= 65536.0f ? 0x7c : round_magnitude(magnitude, 2, 15);
  return static_cast<uint8_t>(sign | (rounded > 0x7c ? 0x7c : rounded));
}

double load_as_double(DType dtype, const void* address) {
  switch (dtype) {
    case DType::Bool:
      return load<uint8_t>(address) != 0 ? 1.0 : 0.0;
    case DType::UInt8:
      return load<uint8_t>(address);
    case DType::UInt16:
      return load<uint16_t>(address);
    case DType::UInt32:
      return load<uint32_t>(address);
    case DType::UInt64:
      return static_cast<double>(load<uint64_t>(address));
    case DType::Int8:
      return load<int8_t>(address);
    case DType::Int16:
      return load<int16_t>(address);
    case DType::Int32:
      return load<int32_t>(address);
    case DType::Int64:
      return static_cast<double>(load<int64_t>(address));
    case DType::Float8E4M3FN:
      return float8_e4m3fn_to_float(load<uint8_t>(address));
    case DType::Float8E5M2:
      return float8_e5m2_to_float(load<uint8_t>(address));
    case DType::BFloat16:
      return bfloat16_to_float(load<uint16_t>(address));
    case DType::Float16:
      return float16_to_float(load<uint16_t>(address));
    case DType::Float32:
    case DType::Complex64:
      return load<float>(address);
    case DType::Float64:
    case DType::Complex128:
      return load<double>(address);
  }
  fail(ErrorKind::Internal, "unknown dtype {}", static_cast<int>(dtype));
}

int64_t load_as_int(DType dtype, const void* address) {
  switch (dtype) {
    case DType::UInt64:
      return static_cast<int64_t>(load<uint64_t>(address));
    case DType::Int64:
      return load<int64_t>(address);
    default:
      return static_cast<int64_t>(load_as_double(dtype, address));
  }
}

void store_from_double(DType dtype, double value, void* address) {
  switch (dtype) {
    case DType::Bool:
      return store<uint8_t>(address, value != 0.0);
    case DType::UInt8:
      return store(address, static_cast<uint8_t>(static_cast<int64_t>(value)));
    case DType::UInt16:
      return store(address, static_cast<uint16_t>(static_cast<int64_t>(value)));
    case DType::UInt32:
      return store(address, static_cast<uint32_t>(static_cast<int64_t>(value)));
    case DType::UInt64:
      return store(address, static_cast<uint64_t>(value));
    case DType::Int8:
      return store(address, static_cast<int8_t>(static_cast<int64_t>(value)));
    case DType::Int16:
      return store(address, static_cast<int16_t>(static_cast<int64_t>(value)));
    case DType::Int32:
      return store(address, static_cast<int32_t>(static_cast<int64_t>(value)));
    case DType::Int64:
      return store(address, static_cast<int64_t>(value));
    case DType::Float8E4M3FN:
      return store(address, float_to_float8_e4m3fn(static_cast<float>(value)));
    case DType::Float8E5M2:
      return store(address, float_to_float8_e5m2(static_cast<float>(value)));
    case DType::BFloat16:
      return store(address, float_to_bfloat16(static_cast<float>(value)));
    case DType::Float16:
      return store(address, float_to_float16(static_cast<float>(value)));
    case DType::Float32:
      return store(address, static_cast<float>(value));
    case DType::Float64:
      return store(address, value);
    case DType::Complex64:
      return store(address, std::complex<float>(static_cast<float>(value), 0.0f));
    case DType::Complex128:
      return store(address, std::complex<double>(value, 0.0));
  }
}

void store_from_int(DType dtype, int64_t value, void* address) {
  switch (dtype) {
    case DType::Bool:
      return store<uint8_t>(address, value != 0);
    case DType::UInt8:
    case DType::Int8:
      return store(address, static_cast<uint8_t>(value));
    case DType::UInt16:
    case DType::Int16:
      return store(address, static_cast<uint16_t>(value));
    case DType::UInt32:
    case DType::Int32:
      return store(address, static_cast<uint32_t>(value));
    case DType::UInt64:
    case DType::Int64:
      return store(address, value);
    case DType::Float32:
      return store(address, static_cast<float>(value));
    case DType::Complex64:
      return store(address, std::complex<float>(static_cast<float>(value), 0.0f));
    default:
      return store_from_double(dtype, static_cast<double>(value), address);
  }
}

}  // namespace neuron
