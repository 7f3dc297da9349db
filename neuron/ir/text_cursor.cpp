#include "neuron/ir/text_cursor.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "neuron/base/error.h"

namespace neuron::ir {

namespace {

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '$' || c == '.'; }

}  // namespace

char TextCursor::peek() {
  while (at_ < text_.size()) {
    if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
      ++at_;
    } else if (text_.substr(at_).starts_with("//")) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return text_[at_];
    }
  }
  return 0;
}

bool TextCursor::at_end() {
  peek();
  return at_ == text_.size();
}

bool TextCursor::consume(std::string_view symbol) {
  peek();
  if (!text_.substr(at_).starts_with(symbol)) return false;
  size_t end = at_ + symbol.size();
  if (is_word(symbol.back()) && end < text_.size() && is_word(text_[end]) && symbol.back() != '.') return false;
  at_ = end;
  return true;
}

void TextCursor::expect(std::string_view symbol) {
  if (!consume(symbol)) fail("expected '{}', found {}", symbol, found());
}

std::string_view TextCursor::identifier() {
  if (!is_letter(peek())) fail("expected a name, found {}", found());
  size_t begin = at_;
  while (at_ < text_.size() && is_word(text_[at_])) ++at_;
  return text_.substr(begin, at_ - begin);
}

std::string_view TextCursor::value_name() {
  if (peek() != '%') fail("expected a value, found {}", found());
  size_t begin = at_++;
  while (at_ < text_.size() && (is_word(text_[at_]) || text_[at_] == '-')) ++at_;
  if (at_ == begin + 1) fail_at(begin, "a value has no name");
  if (at_ < text_.size() && text_[at_] == '#') {
    ++at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
  }
  return text_.substr(begin, at_ - begin);
}

std::string TextCursor::symbol_name() {
  expect("@");
  return peek() == '"' ? string() : std::string(identifier());
}

std::string TextCursor::string() {
  if (peek() != '"') fail("expected a string, found {}", found());
  size_t begin = at_++;
  std::string result;
  while (at_ < text_.size() && text_[at_] != '"') {
    char c = text_[at_++];
    if (c != '\\') {
      result += c;
      continue;
    }
    if (at_ >= text_.size()) break;
    unsigned value = 0;
    const char* from = text_.data() + at_;
    if (at_ + 2 <= text_.size() && std::from_chars(from, from + 2, value, 16).ptr == from + 2) {
      result += static_cast<char>(value);
      at_ += 2;
    } else {
      char escaped = text_[at_++];
      result += escaped == 'n' ? '\n' : escaped == 't' ? '\t' : escaped;
    }
  }
  if (at_ >= text_.size()) fail_at(begin, "the string does not end");
  ++at_;
  return result;
}

int64_t TextCursor::integer() {
  char next = peek();
  size_t begin = at_;
  bool negative = next == '-';
  if (negative) ++at_;
  if (at_ >= text_.size() || !is_digit(text_[at_])) {
    at_ = begin;
    fail("expected an integer, found {}", found());
  }
  while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
  int64_t value = 0;
  auto [end, error] = std::from_chars(text_.data() + begin, text_.data() + at_, value);
  if (error != std::errc() || end != text_.data() + at_)
    fail_at(begin, "'{}' does not fit into 64 bits", text_.substr(begin, at_ - begin));
  return value;
}

std::string_view TextCursor::number() {
  peek();
  size_t begin = at_;
  if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) ++at_;
  while (at_ < text_.size()) {
    bool exponent_sign = (text_[at_] == '+' || text_[at_] == '-') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
    if (!is_word(text_[at_]) && !exponent_sign) break;
    ++at_;
  }
  if (at_ == begin) fail("expected a number, found {}", found());
  return text_.substr(begin, at_ - begin);
}

bool TextCursor::dimension(int64_t& value) {
  if (!is_digit(peek())) return false;
  size_t begin = at_;
  value = integer();
  if (at_ >= text_.size() || text_[at_] != 'x') fail_at(begin, "expected 'x' after a dimension");
  ++at_;
  return true;
}

void TextCursor::fail_with(size_t position, const std::string& message) const {
  position = std::min(position, text_.size());
  std::string_view before = text_.substr(0, position);
  auto line = std::count(before.begin(), before.end(), '\n') + 1;
  size_t start = before.rfind('\n');
  size_t column = start == std::string_view::npos ? position + 1 : position - start;
  neuron::fail(ErrorKind::Value, "line {}, column {}: {}", line, column, message);
}

std::string TextCursor::found() {
  if (at_end()) return "the end of the text";
  size_t end = at_ + 1;
  while (is_word(text_[at_]) && end < text_.size() && is_word(text_[end]) && end - at_ < 40) ++end;
  std::string result;
  for (char c : text_.substr(at_, end - at_))
    result += std::isprint(static_cast<unsigned char>(c)) ? std::string(1, c)
                                                          : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return "'" + result + "'";
}

}  // namespace neuron::ir
