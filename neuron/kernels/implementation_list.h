// Ordered implementations of one operation. The first that accepts a problem runs it; the others say in a sentence why
// they did not, so that "why is this slow" has an answer (explain()).
//
// Which implementation takes a problem may depend on the problem and on the machine, never on threads or alignment: the
// bits of a result follow from the implementation.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "neuron/base/error.h"

namespace neuron::kernels {

template <typename Problem>
struct Implementation {
  std::string_view name;
  // Empty: accepts. Otherwise the reason, without a full stop.
  std::string (*refuse)(const Problem&);
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
      std::string reason = entry.refuse(problem);
      if (reason.empty()) return text + " accepts";
      text += " refused: " + reason + "; ";
    }
    return text + "no implementation accepts";
  }

  std::span<const Implementation<Problem>> entries() const { return entries_; }

 private:
  std::string_view operation_;
  std::span<const Implementation<Problem>> entries_;
};

}  // namespace neuron::kernels
