// Internal to the parser: a position in the text. All errors are thrown from here, with line and column.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace neuron::ir {

class TextCursor {
 public:
  explicit TextCursor(std::string_view text) : text_(text) {}

  size_t position() const { return at_; }
  bool at_end();
  // The next character after spaces and comments; 0 at the end.
  char peek();

  // Takes the symbol if it comes next. A symbol that ends in a letter must end a word.
  bool consume(std::string_view symbol);
  void expect(std::string_view symbol);

  // [A-Za-z_][A-Za-z0-9_$.]*
  std::string_view identifier();
  // %name, with "#1" when it follows; @name or @"name" without the sign.
  std::string_view value_name();
  std::string symbol_name();
  // A quoted string with MLIR's escapes resolved.
  std::string string();
  int64_t integer();
  // The characters of a number as written (decimal, hexadecimal, with point or exponent), or true or false.
  std::string_view number();
  // Digits that "x" follows, as in tensor<4x5xf32>: true and the value when there are some.
  bool dimension(int64_t& value);

  // Throws Error(Value): "line 3, column 7: <message>". `position` is where the fault begins.
  template <typename... Args>
  [[noreturn]] void fail_at(size_t position, fmt::format_string<Args...> format, Args&&... args) const {
    fail_with(position, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
    peek();
    fail_with(at_, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  [[noreturn]] void fail_with(size_t position, const std::string& message) const;
  // What stands at the position, for messages.
  std::string found();

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace neuron::ir
