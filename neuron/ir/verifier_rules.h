// Internal to the verifier: what a rule sees, and the rules by category.
#pragma once

#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "neuron/ir/graph.h"

namespace neuron::ir {

// One operation under examination.
struct Site {
  const Graph& graph;
  const Operation& operation;
  size_t index;
  int symbols;  // symbols that types may name

  const Type& operand(size_t i) const { return graph.type(operation.operands[i]); }
  const Type& result(size_t i = 0) const { return graph.type(operation.results[i]); }
  size_t operands() const { return operation.operands.size(); }
  size_t results() const { return operation.results.size(); }
  const Attributes& attributes() const { return operation.attributes; }

  // Throws "operation 3 'add' of 'main': <reason>; it is (operand types) -> (result types)".
  [[noreturn]] void refuse(const std::string& reason) const;
  template <typename... Args>
  void require(bool condition, fmt::format_string<Args...> format, Args&&... args) const {
    if (!condition) refuse(fmt::format(format, std::forward<Args>(args)...));
  }
  // A list attribute of one entry per dimension.
  const std::vector<int64_t>& ints(std::string_view name, int count) const;
  // A list attribute of distinct dimensions of a tensor of the rank.
  const std::vector<int64_t>& dimensions(std::string_view name, int rank) const;
  // Result i has this type, where sizes are known on both sides.
  void expect_result(const Type& type, size_t i = 0) const;
  // The one region takes rank-0 parameters and gives rank-0 results of these dtypes.
  void expect_region(const std::vector<DType>& parameters, const std::vector<DType>& results) const;
};

// Equal, or at least one of them is known only at run time and so nothing contradicts it.
bool may_be_equal(Dim a, Dim b);

using Rule = void (*)(const Site&);

void check_constant(const Site& site);
void check_iota(const Site& site);
void check_unary(const Site& site);
void check_convert(const Site& site);
void check_bitcast_convert(const Site& site);
void check_binary(const Site& site);
void check_compare(const Site& site);
void check_complex(const Site& site);
void check_select(const Site& site);
void check_clamp(const Site& site);
void check_composite(const Site& site);

void check_broadcast_in_dim(const Site& site);
void check_reshape(const Site& site);
void check_transpose(const Site& site);
void check_slice(const Site& site);
void check_dynamic_slice(const Site& site);
void check_dynamic_update_slice(const Site& site);
void check_concatenate(const Site& site);
void check_pad(const Site& site);
void check_reverse(const Site& site);

void check_reduce(const Site& site);
void check_reduce_window(const Site& site);
void check_dot_general(const Site& site);
void check_convolution(const Site& site);
void check_gather(const Site& site);
void check_scatter(const Site& site);
void check_sort(const Site& site);
void check_rng_bit_generator(const Site& site);

}  // namespace neuron::ir
