// Literals as text. Every element is printed so that reading it back gives the same bits.
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "neuron/base/float_formats.h"
#include "neuron/ir/printer.h"

namespace neuron::ir {

namespace {

// Above this a literal is printed as a string of hexadecimal bytes.
constexpr int64_t longest_list = 64;

std::string hex_bits(const std::byte* element, size_t size) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, size);
  return fmt::format("0x{:0{}X}", bits, 2 * size);
}

// MLIR wants a point and digits before it: 1e+30 is written 1.0e+30.
std::string with_point(std::string text) {
  size_t exponent = text.find('e');
  if (text.find('.') == std::string::npos) text.insert(exponent == std::string::npos ? text.size() : exponent, ".0");
  return text;
}

// Readers go through double: the short form of a float32 is used when that gives the same float back.
std::string print_float(DType dtype, const std::byte* element) {
  double value = load_as_double(dtype, element);
  if (!std::isfinite(value)) return hex_bits(element, dtype_size(dtype));
  if (dtype_size(dtype) <= 4) {
    std::string text = fmt::format("{}", static_cast<float>(value));
    if (static_cast<float>(std::strtod(text.c_str(), nullptr)) == static_cast<float>(value)) return with_point(text);
  }
  return with_point(fmt::format("{}", value));
}

void print_nested(const Literal& literal, const Dims& sizes, size_t dimension, int64_t& next, std::string& text) {
  size_t size = dtype_size(literal.type.dtype);
  if (dimension == sizes.size()) {
    text += print_element(literal.type.dtype, literal.bytes.data() + static_cast<size_t>(next++) * size);
    return;
  }
  text += "[";
  for (int64_t i = 0; i < sizes[dimension]; ++i) {
    if (i > 0) text += ", ";
    print_nested(literal, sizes, dimension + 1, next, text);
  }
  text += "]";
}

}  // namespace

std::string print_element(DType dtype, const std::byte* element) {
  switch (dtype_class(dtype)) {
    case DTypeClass::Boolean:
      return load_as_int(dtype, element) != 0 ? "true" : "false";
    case DTypeClass::Unsigned:
      return fmt::format("{}", static_cast<uint64_t>(load_as_int(dtype, element)));
    case DTypeClass::Signed:
      return fmt::format("{}", load_as_int(dtype, element));
    case DTypeClass::Float:
      return print_float(dtype, element);
    case DTypeClass::Complex: {
      DType part = dtype == DType::Complex64 ? DType::Float32 : DType::Float64;
      return fmt::format("({}, {})", print_float(part, element), print_float(part, element + dtype_size(part)));
    }
  }
  return {};
}

std::string print_dense(const Literal& literal, const Dims& sizes) {
  DType dtype = literal.type.dtype;
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  if (count == 0) return "dense<>";
  if (literal.is_splat()) return fmt::format("dense<{}>", print_element(dtype, literal.bytes.data()));
  std::string text = "dense<";
  // The bytes of i1 would be packed bits.
  if (count > longest_list && dtype != DType::Bool) {
    text += "\"0x";
    for (std::byte byte : literal.bytes) text += fmt::format("{:02X}", static_cast<int>(byte));
    return text + "\">";
  }
  int64_t next = 0;
  print_nested(literal, sizes, 0, next, text);
  return text + ">";
}

}  // namespace neuron::ir
