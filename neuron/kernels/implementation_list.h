// Ordered implementations of one operation. The first that accepts a problem runs it; the others say in a sentence why
// they did not, so that "why is this slow" has an answer (explain()).
//
// Which implementation takes a problem may depend on the problem and on the machine, never on threads or alignment: the
// bits of a result follow from the implementation.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "neuron/base/error.h"

namespace neuron::kernels {

// Why an implementation does not take a problem. Put into words only when somebody asks: small problems are refused
// more quickly than a sentence is written.
class Refusal {
 public:
  Refusal() = default;  // accepts
  // A sentence without a full stop, in which each {} stands for one of the arguments: integers, or texts that live for
  // ever.
  template <typename... Arguments>
  Refusal(const char* sentence, const Arguments&... arguments)  // NOLINT(google-explicit-constructor)
      : sentence_(sentence), arguments_{Argument(arguments)...} {
    static_assert(sizeof...(Arguments) <= 3);
  }

  bool empty() const { return sentence_ == nullptr; }

  std::string text() const {
    if (empty()) return {};
    std::string result;
    std::string_view rest = sentence_;
    for (const Argument& argument : arguments_) {
      const size_t place = rest.find("{}");
      if (place == std::string_view::npos) break;
      result += rest.substr(0, place);
      result += argument.text.data() != nullptr ? std::string(argument.text) : std::to_string(argument.number);
      rest.remove_prefix(place + 2);
    }
    result += rest;
    return result;
  }

 private:
  struct Argument {
    std::string_view text;
    int64_t number = 0;
    Argument() = default;
    explicit Argument(std::string_view value) : text(value) {}
    explicit Argument(std::integral auto value) : number(static_cast<int64_t>(value)) {}
  };
  const char* sentence_ = nullptr;
  std::array<Argument, 3> arguments_{};
};

template <typename Problem>
struct Implementation {
  std::string_view name;
  Refusal (*refuse)(const Problem&);
  void (*run)(const Problem&);
};

template <typename Problem>
class ImplementationList {
 public:
  constexpr ImplementationList(std::string_view operation, std::span<const Implementation<Problem>> entries)
      : operation_(operation), entries_(entries) {}

  const Implementation<Problem>& choose(const Problem& problem) const {
    for (const auto& entry : entries_) {
      if (entry.refuse(problem).empty()) return entry;
    }
    fail(ErrorKind::NotImplemented, "{}", explain(problem));
  }

  void run(const Problem& problem) const { choose(problem).run(problem); }

  // "gemm: process_blas refused: …; packed accepts" up to the one that would run.
  std::string explain(const Problem& problem) const {
    std::string text(operation_);
    text += ": ";
    for (const auto& entry : entries_) {
      text += entry.name;
      const Refusal reason = entry.refuse(problem);
      if (reason.empty()) return text + " accepts";
      text += " refused: " + reason.text() + "; ";
    }
    return text + "no implementation accepts";
  }

  std::span<const Implementation<Problem>> entries() const { return entries_; }

 private:
  std::string_view operation_;
  std::span<const Implementation<Problem>> entries_;
};

}  // namespace neuron::kernels
