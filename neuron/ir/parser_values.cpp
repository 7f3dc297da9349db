#include "neuron/ir/parser_values.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "neuron/base/float_formats.h"
#include "neuron/ir/assembly.h"

namespace neuron::ir {

namespace {

// Explicit lists are held in memory element by element.
constexpr size_t deepest_list = 32;

// One number of a dense literal as written, and where; a complex element has two.
struct ElementText {
  size_t position;
  std::string_view real, imaginary;
};

struct DenseText {
  size_t position = 0;
  bool empty = false, hexadecimal = false;
  std::string bytes;  // of a hexadecimal string
  std::vector<ElementText> elements;
  std::vector<int64_t> shape;  // of nested lists; empty for a splat
};

ElementText parse_element(TextCursor& cursor) {
  cursor.peek();
  ElementText element{cursor.position(), {}, {}};
  if (!cursor.consume("(")) {
    element.real = cursor.number();
    return element;
  }
  element.real = cursor.number();
  cursor.expect(",");
  element.imaginary = cursor.number();
  cursor.expect(")");
  return element;
}

void parse_nested(TextCursor& cursor, DenseText& dense, size_t depth) {
  if (!cursor.consume("[")) {
    if (depth != dense.shape.size()) cursor.fail("an element stands where a list is expected");
    dense.elements.push_back(parse_element(cursor));
    return;
  }
  if (depth >= deepest_list) cursor.fail("lists are nested more than {} deep", deepest_list);
  // The first list of each depth decides the size there.
  bool first = depth == dense.shape.size();
  if (first && !dense.elements.empty()) cursor.fail("a list stands where an element is expected");
  if (first) dense.shape.push_back(-1);
  int64_t count = 0;
  if (!cursor.consume("]")) {
    do {
      parse_nested(cursor, dense, depth + 1);
      ++count;
    } while (cursor.consume(","));
    cursor.expect("]");
  }
  if (dense.shape[depth] >= 0 && dense.shape[depth] != count)
    cursor.fail("a list has {} entries, the one before it {}", count, dense.shape[depth]);
  dense.shape[depth] = count;
}

DenseText parse_dense(TextCursor& cursor) {
  DenseText dense;
  cursor.expect("dense");
  cursor.expect("<");
  cursor.peek();
  dense.position = cursor.position();
  if (cursor.peek() == '>') {
    dense.empty = true;
  } else if (cursor.peek() == '"') {
    dense.hexadecimal = true;
    dense.bytes = cursor.string();
  } else {
    parse_nested(cursor, dense, 0);
  }
  cursor.expect(">");
  return dense;
}

template <typename T>
bool read_whole(std::string_view text, T& value, int base) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size();
}

bool is_hexadecimal(std::string_view text) { return text.starts_with("0x") || text.starts_with("0X"); }

// False when the text is no element of the dtype.
bool read_element(DType dtype, std::string_view text, std::byte* out) {
  size_t size = dtype_size(dtype);
  if (dtype == DType::Bool) {
    bool yes = text == "true" || text == "1";
    *out = std::byte{yes};
    return yes || text == "false" || text == "0";
  }
  uint64_t bits = 0;
  if (is_hexadecimal(text)) {
    if (!read_whole(text.substr(2), bits, 16) || (size < 8 && bits >> (8 * size) != 0)) return false;
    std::memcpy(out, &bits, size);
    return true;
  }
  if (is_float(dtype)) {
    double value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return false;
    store_from_double(dtype, value, out);
    return true;
  }
  int64_t value = 0;
  if (is_unsigned_integer(dtype)) {
    if (!read_whole(text, bits, 10) || (size < 8 && bits >> (8 * size) != 0)) return false;
    value = static_cast<int64_t>(bits);
  } else if (!read_whole(text, value, 10)) {
    return false;
  }
  store_from_int(dtype, value, out);
  return is_unsigned_integer(dtype) || load_as_int(dtype, out) == value;
}

void store_element(const TextCursor& cursor, DType dtype, const ElementText& element, std::byte* out) {
  if (!is_complex(dtype)) {
    if (!element.imaginary.empty()) cursor.fail_at(element.position, "a pair is no {}", dtype_name(dtype));
    if (!read_element(dtype, element.real, out))
      cursor.fail_at(element.position, "'{}' is no {}", element.real, dtype_name(dtype));
    return;
  }
  DType part = dtype == DType::Complex64 ? DType::Float32 : DType::Float64;
  if (element.imaginary.empty()) cursor.fail_at(element.position, "{} wants a pair of numbers", dtype_name(dtype));
  if (!read_element(part, element.real, out) || !read_element(part, element.imaginary, out + dtype_size(part)))
    cursor.fail_at(element.position, "'({}, {})' is no {}", element.real, element.imaginary, dtype_name(dtype));
}

// "0x" and two digits a byte, in the order of memory.
std::vector<std::byte> read_bytes(const TextCursor& cursor, const DenseText& dense, size_t count) {
  std::string_view text = dense.bytes;
  if (!is_hexadecimal(text)) cursor.fail_at(dense.position, "a string of bytes begins with 0x");
  text.remove_prefix(2);
  if (text.size() != 2 * count)
    cursor.fail_at(dense.position, "the string has {} digits, wanted {}", text.size(), 2 * count);
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) {
    uint8_t byte = 0;
    if (!read_whole(text.substr(2 * i, 2), byte, 16))
      cursor.fail_at(dense.position, "'{}' is no byte", text.substr(2 * i, 2));
    bytes[i] = std::byte{byte};
  }
  return bytes;
}

}  // namespace

int64_t parse_entry(TextCursor& cursor) {
  cursor.peek();
  size_t position = cursor.position();
  int64_t value = cursor.integer();
  if (value > most_elements || value < -most_elements)
    cursor.fail_at(position, "{} is beyond any tensor's size", value);
  return value;
}

DType parse_dtype(TextCursor& cursor) {
  cursor.peek();
  size_t position = cursor.position();
  std::string name(cursor.identifier());
  if (name == "complex") {
    cursor.expect("<");
    name += "<" + std::string(cursor.identifier()) + ">";
    cursor.expect(">");
  }
  for (int i = 0; i < kDTypeCount; ++i) {
    if (dtype_name(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  }
  cursor.fail_at(position, "'{}' is no element type", name);
}

Type parse_type(TextCursor& cursor) {
  cursor.expect("tensor");
  cursor.expect("<");
  Type type;
  size_t position = cursor.position();
  int64_t dim = 0, count = 1;
  if (cursor.peek() == '?') cursor.fail("a dimension has no size; only text with static sizes can be read");
  while (cursor.dimension(dim)) {
    type.dims.push_back(dim);
    if (dim > most_elements / count) cursor.fail_at(position, "the tensor is too large");
    // A size of 0 must not hide sizes whose product overflows.
    count *= dim == 0 ? 1 : dim;
    if (cursor.peek() == '?') cursor.fail("a dimension has no size; only text with static sizes can be read");
  }
  type.dtype = parse_dtype(cursor);
  cursor.expect(">");
  return type;
}

std::vector<int64_t> parse_list(TextCursor& cursor) {
  std::vector<int64_t> list;
  cursor.expect("[");
  if (cursor.consume("]")) return list;
  do {
    list.push_back(parse_entry(cursor));
  } while (cursor.consume(","));
  cursor.expect("]");
  return list;
}

Literal parse_literal(TextCursor& cursor) {
  DenseText dense = parse_dense(cursor);
  cursor.expect(":");
  Literal literal{parse_type(cursor), {}};
  DType dtype = literal.type.dtype;
  size_t size = dtype_size(dtype), count = 1;
  for (Dim dim : literal.type.dims) count *= static_cast<size_t>(dim);
  if (dense.empty != (count == 0))
    cursor.fail_at(dense.position, "the literal does not fit {}", to_string(literal.type));
  if (dense.hexadecimal) {
    // Checked against the text's length before anything is allocated.
    literal.bytes = read_bytes(cursor, dense, dense.bytes.size() == 2 + 2 * size ? size : count * size);
    return literal;
  }
  bool list = !dense.shape.empty();
  if (list && !std::equal(dense.shape.begin(), dense.shape.end(), literal.type.dims.begin(), literal.type.dims.end()))
    cursor.fail_at(dense.position, "the shape of the lists is not that of {}", to_string(literal.type));
  literal.bytes.resize(dense.elements.size() * size);
  for (size_t i = 0; i < dense.elements.size(); ++i)
    store_element(cursor, dtype, dense.elements[i], literal.bytes.data() + i * size);
  // Of an empty tensor, which has no element to be a splat of, a zero is kept.
  if (dense.empty) literal.bytes.resize(size);
  return literal;
}

bool parse_bool(TextCursor& cursor) {
  if (cursor.consume("true")) return true;
  cursor.expect("false");
  return false;
}

std::vector<int64_t> parse_array(TextCursor& cursor) {
  std::vector<int64_t> list;
  cursor.expect("array");
  cursor.expect("<");
  bool flags = cursor.consume("i1");
  if (!flags) cursor.expect("i64");
  if (cursor.consume(":")) {
    do {
      list.push_back(flags ? parse_bool(cursor) : parse_entry(cursor));
    } while (cursor.consume(","));
  }
  cursor.expect(">");
  return list;
}

ComparisonDirection parse_direction(TextCursor& cursor) {
  cursor.peek();
  size_t position = cursor.position();
  std::string_view name = cursor.identifier();
  for (int i = 0; i < 6; ++i) {
    if (direction_name(static_cast<ComparisonDirection>(i)) == name) return static_cast<ComparisonDirection>(i);
  }
  cursor.fail_at(position, "'{}' is no comparison direction", name);
}

AttributeValue parse_attribute(TextCursor& cursor) {
  char next = cursor.peek();
  if (next == '"') return cursor.string();
  if (next == '#') {
    cursor.expect("#stablehlo<comparison_direction");
    ComparisonDirection direction = parse_direction(cursor);
    cursor.expect(">");
    return direction;
  }
  if (next == '-' || next == '+' || (next >= '0' && next <= '9')) {
    size_t position = cursor.position();
    std::string_view text = cursor.number();
    cursor.expect(":");
    int64_t integer = 0;
    double real = 0;
    if (cursor.consume("i64")) {
      if (!read_whole(text, integer, 10)) cursor.fail_at(position, "'{}' is no i64", text);
      return integer;
    }
    cursor.expect("f64");
    if (!read_element(DType::Float64, text, reinterpret_cast<std::byte*>(&real)))
      cursor.fail_at(position, "'{}' is no f64", text);
    return real;
  }
  if (cursor.consume("true")) return true;
  if (cursor.consume("false")) return false;
  // A word that is not taken: array and dense are followed by what parse_array and parse_literal read.
  TextCursor ahead = cursor;
  if (ahead.consume("array")) return parse_array(cursor);
  if (ahead.consume("dense")) return parse_literal(cursor);
  return parse_dtype(cursor);
}

}  // namespace neuron::ir
