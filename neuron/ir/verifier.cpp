#include "neuron/ir/verifier.h"

#include <algorithm>
#include <initializer_list>

#include "neuron/base/error.h"
#include "neuron/ir/verifier_rules.h"

namespace neuron::ir {

namespace {

struct Row {
  Opcode opcode;
  Rule rule;
  int results;  // -1: any number
  // Attributes the operation may have; the rule reads those that it must have.
  std::initializer_list<std::string_view> attributes;
};

const Row rows[] = {
    {Opcode::Constant, check_constant, 1, {"value"}},
    {Opcode::Iota, check_iota, 1, {"iota_dimension"}},
    {Opcode::Abs, check_unary, 1, {}},
    {Opcode::Cbrt, check_unary, 1, {}},
    {Opcode::Ceil, check_unary, 1, {}},
    {Opcode::Cosine, check_unary, 1, {}},
    {Opcode::CountLeadingZeros, check_unary, 1, {}},
    {Opcode::Exponential, check_unary, 1, {}},
    {Opcode::ExponentialMinusOne, check_unary, 1, {}},
    {Opcode::Floor, check_unary, 1, {}},
    {Opcode::Imag, check_unary, 1, {}},
    {Opcode::IsFinite, check_unary, 1, {}},
    {Opcode::Log, check_unary, 1, {}},
    {Opcode::LogPlusOne, check_unary, 1, {}},
    {Opcode::Logistic, check_unary, 1, {}},
    {Opcode::Negate, check_unary, 1, {}},
    {Opcode::Not, check_unary, 1, {}},
    {Opcode::PopulationCount, check_unary, 1, {}},
    {Opcode::Real, check_unary, 1, {}},
    {Opcode::RoundNearestAfz, check_unary, 1, {}},
    {Opcode::RoundNearestEven, check_unary, 1, {}},
    {Opcode::Rsqrt, check_unary, 1, {}},
    {Opcode::Sign, check_unary, 1, {}},
    {Opcode::Sine, check_unary, 1, {}},
    {Opcode::Sqrt, check_unary, 1, {}},
    {Opcode::Tan, check_unary, 1, {}},
    {Opcode::Tanh, check_unary, 1, {}},
    {Opcode::Convert, check_convert, 1, {}},
    {Opcode::BitcastConvert, check_bitcast_convert, 1, {}},
    {Opcode::Add, check_binary, 1, {}},
    {Opcode::And, check_binary, 1, {}},
    {Opcode::Atan2, check_binary, 1, {}},
    {Opcode::Compare, check_compare, 1, {"comparison_direction"}},
    {Opcode::Complex, check_complex, 1, {}},
    {Opcode::Divide, check_binary, 1, {}},
    {Opcode::Maximum, check_binary, 1, {}},
    {Opcode::Minimum, check_binary, 1, {}},
    {Opcode::Multiply, check_binary, 1, {}},
    {Opcode::Or, check_binary, 1, {}},
    {Opcode::Power, check_binary, 1, {}},
    {Opcode::Remainder, check_binary, 1, {}},
    {Opcode::ShiftLeft, check_binary, 1, {}},
    {Opcode::ShiftRightArithmetic, check_binary, 1, {}},
    {Opcode::ShiftRightLogical, check_binary, 1, {}},
    {Opcode::Subtract, check_binary, 1, {}},
    {Opcode::Xor, check_binary, 1, {}},
    {Opcode::Select, check_select, 1, {}},
    {Opcode::Clamp, check_clamp, 1, {}},
    {Opcode::BroadcastInDim, check_broadcast_in_dim, 1, {"broadcast_dimensions"}},
    {Opcode::Reshape, check_reshape, 1, {}},
    {Opcode::Transpose, check_transpose, 1, {"permutation"}},
    {Opcode::Slice, check_slice, 1, {"start_indices", "limit_indices", "strides"}},
    {Opcode::DynamicSlice, check_dynamic_slice, 1, {"slice_sizes"}},
    {Opcode::DynamicUpdateSlice, check_dynamic_update_slice, 1, {}},
    {Opcode::Concatenate, check_concatenate, 1, {"dimension"}},
    {Opcode::Pad, check_pad, 1, {"edge_padding_low", "edge_padding_high", "interior_padding"}},
    {Opcode::Reverse, check_reverse, 1, {"dimensions"}},
    {Opcode::Reduce, check_reduce, -1, {"dimensions"}},
    {Opcode::ReduceWindow,
     check_reduce_window,
     -1,
     {"window_dimensions", "window_strides", "window_dilations", "padding"}},
    {Opcode::DotGeneral,
     check_dot_general,
     1,
     {"lhs_batching_dimensions", "rhs_batching_dimensions", "lhs_contracting_dimensions",
      "rhs_contracting_dimensions"}},
    {Opcode::Convolution,
     check_convolution,
     1,
     {"window_strides", "padding", "lhs_dilation", "rhs_dilation", "window_reversal", "feature_group_count",
      "batch_group_count"}},
    {Opcode::Gather,
     check_gather,
     1,
     {"offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims", "start_index_map",
      "index_vector_dim", "slice_sizes", "indices_are_sorted"}},
    {Opcode::Scatter,
     check_scatter,
     -1,
     {"update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims",
      "scatter_dims_to_operand_dims", "index_vector_dim", "indices_are_sorted", "unique_indices"}},
    {Opcode::Sort, check_sort, -1, {"dimension", "is_stable"}},
    {Opcode::RngBitGenerator, check_rng_bit_generator, 2, {"rng_algorithm"}},
    {Opcode::Composite, check_composite, -1, {}},
};

const Row* find_row(Opcode opcode) {
  const Row* found = std::find_if(std::begin(rows), std::end(rows), [&](const Row& r) { return r.opcode == opcode; });
  return found == std::end(rows) ? nullptr : found;
}

void check_type(const Site& site, const Type& type) {
  for (Dim dim : type.dims) {
    site.require(!is_symbolic(dim) || symbol_of(dim) < site.symbols, "a type names symbol {}, the graph has {}",
                 is_symbolic(dim) ? symbol_of(dim) : 0, site.symbols);
  }
}

void check_operation(const Site& site) {
  const OpInfo& info = op_info(site.operation.opcode);
  const Row* row = find_row(site.operation.opcode);
  site.require(row != nullptr, "it has no rule");
  site.require(info.operands < 0 || static_cast<size_t>(info.operands) == site.operands(),
               "it takes {} operands and has {}", info.operands, site.operands());
  site.require(row->results < 0 || static_cast<size_t>(row->results) == site.results(),
               "it gives {} results and has {}", row->results, site.results());
  site.require(info.operands >= 0 || site.operands() > 0 || site.operation.opcode == Opcode::Composite,
               "it has no operands");
  for (size_t i = 0; i < site.results(); ++i) check_type(site, site.result(i));
  if (site.operation.opcode != Opcode::Composite) {
    for (const auto& [name, value] : site.attributes().entries()) {
      bool known = std::find(row->attributes.begin(), row->attributes.end(), name) != row->attributes.end();
      site.require(known, "it has no attribute '{}'", name);
    }
    for (std::string_view name : row->attributes)
      site.require(site.attributes().has(name), "attribute '{}' is missing", name);
  }
  try {
    row->rule(site);
  } catch (const Error& error) {
    // Attributes of another kind than the rule reads, met inside Attributes::get.
    if (std::string_view(error.what()).starts_with("attribute '")) site.refuse(error.what());
    throw;
  }
}

void check_results_and_memory(const Graph& graph) {
  auto require = [&](bool condition, const std::string& text) {
    check_internal(condition, "graph '{}': {}", graph.name(), text);
  };
  auto parameters = static_cast<int>(graph.parameters().size()), results = static_cast<int>(graph.results().size());
  for (Value result : graph.results())
    require(result.id >= 0 && result.id < graph.value_count(),
            fmt::format("result value {} does not exist", result.id));
  std::vector<int> aliased(static_cast<size_t>(parameters)), written(static_cast<size_t>(results));
  for (const Alias& alias : graph.aliases()) {
    require(alias.result >= 0 && alias.result < results,
            fmt::format("alias names result {} of {}", alias.result, results));
    require(alias.parameter >= 0 && alias.parameter < parameters,
            fmt::format("alias names parameter {} of {}", alias.parameter, parameters));
    const Type& from = graph.type(graph.results()[alias.result]);
    const Type& to = graph.type(graph.parameters()[alias.parameter]);
    require(from == to, fmt::format("result {} of type {} cannot alias parameter {} of type {}", alias.result,
                                    to_string(from), alias.parameter, to_string(to)));
    require(++aliased[alias.parameter] == 1, fmt::format("parameter {} is aliased twice", alias.parameter));
    require(++written[alias.result] == 1, fmt::format("result {} is aliased twice", alias.result));
  }
  std::vector<int> donated(static_cast<size_t>(parameters));
  for (int parameter : graph.donated()) {
    require(parameter >= 0 && parameter < parameters, fmt::format("donates parameter {} of {}", parameter, parameters));
    require(++donated[parameter] == 1, fmt::format("parameter {} is donated twice", parameter));
    require(aliased[parameter] == 0, fmt::format("parameter {} is donated and aliased", parameter));
  }
}

void verify(const Graph& graph, int outer_symbols) {
  int symbols = std::max(outer_symbols, graph.symbol_count());
  for (Value parameter : graph.parameters()) {
    for (Dim dim : graph.type(parameter).dims) {
      check_internal(!is_symbolic(dim) || symbol_of(dim) < symbols,
                     "graph '{}': parameter {} names symbol {}, the graph has {}", graph.name(),
                     graph.result_index(parameter), is_symbolic(dim) ? symbol_of(dim) : 0, symbols);
    }
  }
  for (size_t i = 0; i < graph.operations().size(); ++i) {
    const Operation& operation = graph.operations()[i];
    for (size_t k = 0; k < operation.operands.size(); ++k) {
      Value operand = operation.operands[k];
      bool defined = operand.id >= 0 && operand.id < graph.value_count() &&
                     graph.defining_operation(operand) < static_cast<int>(i);
      check_internal(defined, "operation {} '{}' of '{}': operand {} is value {}, which is not defined before it", i,
                     op_info(operation.opcode).mnemonic, graph.name(), k, operand.id);
    }
    check_operation({graph, operation, i, symbols});
    for (const auto& region : operation.regions) verify(*region, symbols);
  }
  check_results_and_memory(graph);
}

}  // namespace

void verify(const Graph& graph) { verify(graph, 0); }

bool has_rule(Opcode opcode) { return find_row(opcode) != nullptr; }

int function_operands(std::string_view name) {
  static constexpr std::pair<std::string_view, int> functions[] = {
#define NEURON_FUNCTION(name, operands) {#name, operands},
#include "neuron/ir/functions.def"
#undef NEURON_FUNCTION
  };
  for (const auto& [function, operands] : functions) {
    if (function == name) return operands;
  }
  return 0;
}

void Site::refuse(const std::string& reason) const {
  auto list = [&](const auto& values) {
    std::string text;
    for (Value value : values) text += (text.empty() ? "" : ", ") + to_string(graph.type(value));
    return text;
  };
  fail(ErrorKind::Internal, "operation {} '{}' of '{}': {}; it is ({}) -> ({})", index,
       op_info(operation.opcode).mnemonic, graph.name(), reason, list(operation.operands), list(operation.results));
}

const std::vector<int64_t>& Site::ints(std::string_view name, int count) const {
  const auto& list = attributes().get_ints(name);
  require(list.size() == static_cast<size_t>(count), "{} has {} entries, wanted {}", name, list.size(), count);
  return list;
}

const std::vector<int64_t>& Site::dimensions(std::string_view name, int rank) const {
  const auto& list = attributes().get_ints(name);
  for (size_t i = 0; i < list.size(); ++i) {
    require(list[i] >= 0 && list[i] < rank, "{} names dimension {} of rank {}", name, list[i], rank);
    require(std::find(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(i), list[i]) ==
                list.begin() + static_cast<std::ptrdiff_t>(i),
            "{} names dimension {} twice", name, list[i]);
  }
  return list;
}

bool may_be_equal(Dim a, Dim b) { return a == b || is_symbolic(a) || is_symbolic(b); }

void Site::expect_result(const Type& type, size_t i) const {
  bool equal = result(i).dtype == type.dtype && result(i).rank() == type.rank();
  for (int d = 0; equal && d < type.rank(); ++d) equal = may_be_equal(result(i).dims[d], type.dims[d]);
  require(equal, "result {} should be {}", i, to_string(type));
}

void Site::expect_region(const std::vector<DType>& parameters, const std::vector<DType>& results) const {
  require(operation.regions.size() == 1 && operation.regions[0] != nullptr, "it has {} regions, wanted 1",
          operation.regions.size());
  const Graph& region = *operation.regions[0];
  auto fits = [&](const std::vector<Value>& values, const std::vector<DType>& want) {
    return std::equal(values.begin(), values.end(), want.begin(), want.end(),
                      [&](Value value, DType dtype) { return region.type(value) == Type{dtype, {}}; });
  };
  require(fits(region.parameters(), parameters), "its region should take {} rank-0 values of the operands' dtypes",
          parameters.size());
  require(fits(region.results(), results), "its region should give {} rank-0 values of the results' dtypes",
          results.size());
}

}  // namespace neuron::ir
