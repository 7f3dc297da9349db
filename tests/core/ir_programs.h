// One program for every operation, function and syntax of the IR, by name. Their printed texts are the golden files in
// tests/programs/, which the round-trip test and the comparison with StableHLO's own tools read.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "neuron/base/float_formats.h"
#include "neuron/ir/builder.h"
#include "neuron/ir/random_functions.h"

namespace neuron::ir::testing {

struct Program {
  std::string name;
  Graph graph;
  std::vector<int64_t> symbol_sizes;
};

using Values = std::vector<Value>;

// A program from a function (builder, parameters) -> results.
template <typename Build>
Program make_program(std::string name, std::vector<Type> parameters, Build build) {
  Program program{name, Graph(name), {}};
  Values values;
  for (const Type& type : parameters) values.push_back(program.graph.add_parameter(type));
  Builder builder(program.graph);
  program.graph.set_results(build(builder, values));
  return program;
}

inline std::string short_name(DType dtype) {
  if (dtype == DType::Complex64) return "c64";
  if (dtype == DType::Complex128) return "c128";
  return std::string(dtype_name(dtype));
}

inline void add_unary_programs(std::vector<Program>& programs) {
  static constexpr Opcode floats[] = {Opcode::Abs,
                                      Opcode::Cbrt,
                                      Opcode::Ceil,
                                      Opcode::Cosine,
                                      Opcode::Exponential,
                                      Opcode::ExponentialMinusOne,
                                      Opcode::Floor,
                                      Opcode::IsFinite,
                                      Opcode::Log,
                                      Opcode::LogPlusOne,
                                      Opcode::Logistic,
                                      Opcode::Negate,
                                      Opcode::RoundNearestAfz,
                                      Opcode::RoundNearestEven,
                                      Opcode::Rsqrt,
                                      Opcode::Sign,
                                      Opcode::Sine,
                                      Opcode::Sqrt,
                                      Opcode::Tan,
                                      Opcode::Tanh};
  static constexpr Opcode integers[] = {Opcode::CountLeadingZeros, Opcode::Not, Opcode::PopulationCount,
                                        Opcode::Negate};
  static constexpr Opcode complexes[] = {
      Opcode::Abs,    Opcode::Cosine, Opcode::Exponential, Opcode::ExponentialMinusOne,
      Opcode::Imag,   Opcode::Log,    Opcode::LogPlusOne,  Opcode::Logistic,
      Opcode::Negate, Opcode::Real,   Opcode::Rsqrt,       Opcode::Sign,
      Opcode::Sine,   Opcode::Sqrt,   Opcode::Tanh};
  auto add = [&](std::span<const Opcode> list, DType dtype) {
    programs.push_back(make_program("unary_" + short_name(dtype), {{dtype, {4, 8}}}, [&](Builder& b, Values& p) {
      Values results;
      for (Opcode opcode : list) results.push_back(b.unary(opcode, p[0]));
      return results;
    }));
  };
  for (DType dtype : {DType::Float32, DType::Float64, DType::BFloat16, DType::Float16}) add(floats, dtype);
  for (DType dtype : {DType::Int32, DType::UInt8, DType::Int64}) add(integers, dtype);
  add(complexes, DType::Complex64);
  programs.push_back(make_program("unary_signed", {{DType::Int8, {16}}}, [](Builder& b, Values& p) {
    return Values{b.unary(Opcode::Abs, p[0]), b.unary(Opcode::Sign, p[0])};
  }));
}

inline void add_binary_programs(std::vector<Program>& programs) {
  static constexpr Opcode floats[] = {Opcode::Add,     Opcode::Atan2,     Opcode::Divide,
                                      Opcode::Maximum, Opcode::Minimum,   Opcode::Multiply,
                                      Opcode::Power,   Opcode::Remainder, Opcode::Subtract};
  static constexpr Opcode integers[] = {Opcode::Add,
                                        Opcode::And,
                                        Opcode::Divide,
                                        Opcode::Maximum,
                                        Opcode::Minimum,
                                        Opcode::Multiply,
                                        Opcode::Or,
                                        Opcode::Remainder,
                                        Opcode::ShiftLeft,
                                        Opcode::ShiftRightArithmetic,
                                        Opcode::ShiftRightLogical,
                                        Opcode::Subtract,
                                        Opcode::Xor};
  static constexpr Opcode booleans[] = {Opcode::Add,      Opcode::And, Opcode::Maximum, Opcode::Minimum,
                                        Opcode::Multiply, Opcode::Or,  Opcode::Xor};
  static constexpr Opcode complexes[] = {Opcode::Add, Opcode::Divide, Opcode::Multiply, Opcode::Subtract};
  auto add = [&](std::span<const Opcode> list, DType dtype, bool ordered) {
    Type type{dtype, {32}};
    programs.push_back(make_program("binary_" + short_name(dtype), {type, type}, [&](Builder& b, Values& p) {
      Values results;
      for (Opcode opcode : list) results.push_back(b.binary(opcode, p[0], p[1]));
      using enum ComparisonDirection;
      for (ComparisonDirection direction : {EQ, NE, LT, LE, GT, GE}) {
        if (ordered || direction == EQ || direction == NE) results.push_back(b.compare(direction, p[0], p[1]));
      }
      return results;
    }));
  };
  for (DType dtype : {DType::Float32, DType::Float64, DType::BFloat16, DType::Float16}) add(floats, dtype, true);
  for (DType dtype : {DType::Int32, DType::UInt8, DType::Int64, DType::UInt32, DType::Int16})
    add(integers, dtype, true);
  add(booleans, DType::Bool, true);
  add(complexes, DType::Complex64, false);
  programs.push_back(make_program("power_i32", {{DType::Int32, {32}}}, [](Builder& b, Values& p) {
    return Values{b.binary(Opcode::Power, p[0], b.constant_int({DType::Int32, {32}}, 5))};
  }));
  programs.push_back(make_program("complex_parts", {{DType::Float32, {8}}, {DType::Float32, {8}}},
                                  [](Builder& b, Values& p) { return Values{b.binary(Opcode::Complex, p[0], p[1])}; }));
  programs.push_back(make_program(
      "select_clamp", {{DType::Bool, {8}}, {DType::Float32, {8}}, {DType::Float32, {8}}, {DType::Bool, {}}},
      [](Builder& b, Values& p) {
        Value operands[] = {p[3], p[1], p[2]};
        Type type = b.type(p[1]);
        Value by_scalar = b.operation(Opcode::Select, operands, {&type, 1});
        Value low = b.constant({DType::Float32, {}}, -1), high = b.constant({DType::Float32, {}}, 2);
        Value bounds[] = {low, p[1], high};
        Value clamped = b.operation(Opcode::Clamp, bounds, {&type, 1});
        return Values{b.select(p[0], p[1], p[2]), by_scalar, clamped, b.clamp(p[2], p[1], p[2])};
      }));
}

inline void add_conversion_programs(std::vector<Program>& programs) {
  static constexpr DType all[] = {DType::Bool,    DType::UInt8,        DType::UInt16,     DType::UInt32,
                                  DType::UInt64,  DType::Int8,         DType::Int16,      DType::Int32,
                                  DType::Int64,   DType::Float8E4M3FN, DType::Float8E5M2, DType::BFloat16,
                                  DType::Float16, DType::Float32,      DType::Float64,    DType::Complex64};
  for (DType from : {DType::Float32, DType::Int32, DType::UInt8, DType::BFloat16, DType::Bool, DType::Float64}) {
    programs.push_back(make_program("convert_" + short_name(from), {{from, {8}}}, [&](Builder& b, Values& p) {
      Values results;
      for (DType to : all) {
        if (to != from) results.push_back(b.convert(p[0], to));
      }
      return results;
    }));
  }
  programs.push_back(make_program("bitcast", {{DType::Float32, {8}}, {DType::Int16, {8}}}, [](Builder& b, Values& p) {
    return Values{b.bitcast_convert(p[0], DType::UInt32), b.bitcast_convert(p[1], DType::BFloat16)};
  }));
}

inline void add_shape_programs(std::vector<Program>& programs) {
  Type t{DType::Float32, {2, 3, 4}};
  programs.push_back(make_program("shape", {t, {DType::Float32, {}}, {DType::Float32, {3}}}, [](Builder& b, Values& p) {
    Value parts[] = {p[0], b.reverse(p[0], {0, 2}), p[0]};
    return Values{b.broadcast_in_dim(p[2], {2, 3, 4}, {1}),
                  b.broadcast_in_dim(b.reshape(p[2], {3, 1}), {3, 5}, {0, 1}),
                  b.broadcast_in_dim(p[1], {2, 2}, {}),
                  b.reshape(p[0], {6, 4}),
                  b.transpose(p[0], {2, 0, 1}),
                  b.slice(p[0], {0, 1, 0}, {2, 3, 4}, {1, 1, 3}),
                  b.concatenate(parts, 1),
                  b.pad(p[0], p[1], {0, 1, -1}, {2, 0, 0}, {0, 1, 2}),
                  b.reverse(p[0], {1}),
                  b.iota({DType::Int32, {2, 3}}, 1),
                  b.iota({DType::BFloat16, {4}}, 0)};
  }));
  programs.push_back(make_program(
      "dynamic_slices", {{DType::Float32, {4, 5}}, {DType::Float32, {2, 2}}, {DType::Int32, {}}, {DType::Int32, {}}},
      [](Builder& b, Values& p) {
        std::span<const Value> starts(&p[2], 2);
        return Values{b.dynamic_slice(p[0], starts, {2, 3}), b.dynamic_update_slice(p[0], p[1], starts)};
      }));
}

inline Literal literal_of(DType dtype, Dims sizes, std::vector<double> values) {
  Literal literal{{dtype, std::move(sizes)}, std::vector<std::byte>(values.size() * dtype_size(dtype))};
  for (size_t i = 0; i < values.size(); ++i)
    store_from_double(dtype, values[i], literal.bytes.data() + i * dtype_size(dtype));
  return literal;
}

inline void add_constant_programs(std::vector<Program>& programs) {
  programs.push_back(make_program("constants", {}, [](Builder& b, Values&) {
    constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    Values results;
    for (DType dtype : {DType::Float32, DType::Float64, DType::BFloat16, DType::Float16, DType::Float8E5M2})
      results.push_back(b.constant(literal_of(dtype, {2, 4}, {0.0, -0.0, 0.1, -1.5, inf, -inf, nan, 1e-8})));
    results.push_back(b.constant(literal_of(DType::Float8E4M3FN, {3}, {nan, 448, -0.25})));
    results.push_back(b.constant(literal_of(DType::Bool, {3}, {1, 0, 1})));
    for (DType dtype : {DType::Int8, DType::Int16, DType::Int32, DType::Int64})
      results.push_back(b.constant(literal_of(dtype, {3}, {-128, 0, 127})));
    for (DType dtype : {DType::UInt8, DType::UInt16, DType::UInt32, DType::UInt64})
      results.push_back(b.constant_int({dtype, {2, 2}}, -1));
    results.push_back(b.constant({DType::Complex128, {2}}, 2.5));
    results.push_back(b.constant({DType::Float32, {}}, 1e30));
    results.push_back(b.constant({DType::Float32, {0, 3}}, 1));
    std::vector<double> many(80);
    for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<double>(i) / 7 - 3;
    results.push_back(b.constant(literal_of(DType::Float32, {8, 10}, many)));
    return results;
  }));
}

// A region of several operations: the (value, index) reducer of the first maximum.
inline std::shared_ptr<const Graph> first_maximum(DType value, DType index) {
  auto body = std::make_shared<Graph>("first_maximum");
  Value a = body->add_parameter({value, {}}), i = body->add_parameter({index, {}});
  Value c = body->add_parameter({value, {}}), j = body->add_parameter({index, {}});
  Builder b(*body);
  Value better = b.compare(ComparisonDirection::GT, c, a);
  Value results[] = {b.select(better, c, a), b.select(better, j, i)};
  body->set_results(results);
  return body;
}

inline void add_reduction_programs(std::vector<Program>& programs) {
  programs.push_back(
      make_program("reduce", {{DType::Float32, {3, 4, 5}}, {DType::Bool, {3, 4}}}, [](Builder& b, Values& p) {
        Type scalar{DType::Float32, {}}, flag{DType::Bool, {}};
        Value zero = b.constant(scalar, 0), one = b.constant(scalar, 1);
        Value inputs[] = {p[0], b.iota({DType::Int32, {3, 4, 5}}, 1)};
        Value inits[] = {b.constant(scalar, -1e30), b.constant_int({DType::Int32, {}}, -1)};
        std::vector<Value> first = b.reduce(inputs, inits, {1}, first_maximum(DType::Float32, DType::Int32));
        return Values{b.reduce(Opcode::Add, p[0], zero, {2}),
                      b.reduce(Opcode::Multiply, p[0], one, {0, 2}),
                      b.reduce(Opcode::Maximum, p[0], zero, {0}),
                      b.reduce(Opcode::Minimum, p[0], zero, {0, 1, 2}),
                      b.reduce(Opcode::Or, p[1], b.constant(flag, 0), {1}),
                      b.reduce(Opcode::And, p[1], b.constant(flag, 1), {0}),
                      first[0],
                      first[1]};
      }));
  programs.push_back(make_program("reduce_window", {{DType::Float32, {1, 2, 7, 6}}}, [](Builder& b, Values& p) {
    Type scalar{DType::Float32, {}};
    return Values{b.reduce_window(Opcode::Add, p[0], b.constant(scalar, 0), {1, 1, 3, 2}, {1, 1, 2, 1}, {1, 1, 1, 2},
                                  {0, 0, 0, 0, 1, 1, 0, 1}),
                  b.reduce_window(Opcode::Maximum, p[0], b.constant(scalar, -1e30), {1, 1, 2, 2}, {1, 1, 2, 2},
                                  {1, 1, 1, 1}, {0, 0, 0, 0, 1, 0, 0, 0})};
  }));
}

inline void add_contraction_programs(std::vector<Program>& programs) {
  for (DType dtype : {DType::Float32, DType::BFloat16, DType::Float64, DType::Int32, DType::Complex64}) {
    DType result = dtype == DType::BFloat16 ? DType::Float32 : dtype;
    programs.push_back(make_program("dot_" + short_name(dtype),
                                    {{dtype, {2, 3, 4}}, {dtype, {2, 4, 5}}, {dtype, {4, 3}}},
                                    [&](Builder& b, Values& p) {
                                      return Values{b.dot_general(p[0], p[1], {{0}, {0}, {2}, {1}}, result),
                                                    b.dot_general(p[0], p[2], {{}, {}, {2, 1}, {0, 1}}, result)};
                                    }));
  }
  programs.push_back(make_program(
      "convolution",
      {{DType::Float32, {2, 4, 6, 5}},
       {DType::Float32, {4, 2, 3, 2}},
       {DType::Float32, {6, 4, 2}},
       {DType::Float32, {2, 4, 9}}},
      [](Builder& b, Values& p) {
        Value grouped = b.convolution(p[0], p[1], {{2, 1}, {1, 1, 0, 2}, {1, 2}, {1, 2}, {}, 2, 1}, DType::Float32);
        Value reversed = b.convolution(p[3], p[2], {{1}, {1, 1}, {3}, {1}, {1}, 1, 1}, DType::Float32);
        Value batched = b.convolution(p[3], p[2], {{1}, {0, 0}, {1}, {1}, {}, 1, 2}, DType::Float32);
        return Values{grouped, reversed, batched};
      }));
}

inline Attributes attributes_of(std::vector<std::pair<const char*, std::vector<int64_t>>> lists, int64_t vector_dim,
                                std::vector<const char*> flags) {
  Attributes attributes;
  for (auto& [name, list] : lists) attributes.set(name, std::move(list));
  attributes.set("index_vector_dim", vector_dim);
  for (const char* flag : flags) attributes.set(flag, false);
  return attributes;
}

inline void add_indexed_programs(std::vector<Program>& programs) {
  programs.push_back(make_program("gather", {{DType::Float32, {5, 3}}, {DType::Int32, {4}}, {DType::Int64, {5, 2, 1}}},
                                  [](Builder& b, Values& p) {
                                    Attributes rows = attributes_of({{"offset_dims", {1}},
                                                                     {"collapsed_slice_dims", {0}},
                                                                     {"operand_batching_dims", {}},
                                                                     {"start_indices_batching_dims", {}},
                                                                     {"start_index_map", {0}},
                                                                     {"slice_sizes", {1, 3}}},
                                                                    1, {"indices_are_sorted"});
                                    Attributes along = attributes_of({{"offset_dims", {}},
                                                                      {"collapsed_slice_dims", {1}},
                                                                      {"operand_batching_dims", {0}},
                                                                      {"start_indices_batching_dims", {0}},
                                                                      {"start_index_map", {1}},
                                                                      {"slice_sizes", {1, 1}}},
                                                                     2, {"indices_are_sorted"});
                                    Type by_row{DType::Float32, {4, 3}}, taken{DType::Float32, {5, 2}};
                                    Value first[] = {p[0], p[1]}, second[] = {p[0], p[2]};
                                    return Values{b.operation(Opcode::Gather, first, {&by_row, 1}, rows),
                                                  b.operation(Opcode::Gather, second, {&taken, 1}, along)};
                                  }));
  programs.push_back(make_program(
      "scatter", {{DType::Float32, {5, 3}}, {DType::Int32, {4, 1}}, {DType::Float32, {4, 3}}},
      [](Builder& b, Values& p) {
        Attributes attributes = attributes_of({{"update_window_dims", {1}},
                                               {"inserted_window_dims", {0}},
                                               {"input_batching_dims", {}},
                                               {"scatter_indices_batching_dims", {}},
                                               {"scatter_dims_to_operand_dims", {0}}},
                                              1, {"indices_are_sorted", "unique_indices"});
        Type type = b.type(p[0]);
        return Values{b.operation(Opcode::Scatter, p, {&type, 1}, attributes, {make_reducer(Opcode::Add, type.dtype)})};
      }));
}

inline void add_other_programs(std::vector<Program>& programs) {
  programs.push_back(make_program("sort", {{DType::Float32, {3, 6}}}, [](Builder& b, Values& p) {
    auto comparator = std::make_shared<Graph>("comparator");
    Value x = comparator->add_parameter({DType::Float32, {}}), y = comparator->add_parameter({DType::Float32, {}});
    comparator->add_parameter({DType::Int32, {}});
    comparator->add_parameter({DType::Int32, {}});
    Value less = Builder(*comparator).compare(ComparisonDirection::LT, x, y);
    comparator->set_results({&less, 1});
    Type types[] = {b.type(p[0]), b.type(p[0]).with(DType::Int32)};
    Value operands[] = {p[0], b.iota(types[1], 1)};
    Attributes attributes;
    attributes.set("dimension", int64_t{1});
    attributes.set("is_stable", true);
    b.operation(Opcode::Sort, operands, types, attributes, {comparator});
    const auto& results = b.graph().operations().back().results;
    return Values(results.begin(), results.end());
  }));
  programs.push_back(make_program("random", {{DType::UInt64, {2}}}, [](Builder& b, Values& p) {
    Values results;
    for (DType dtype : {DType::UInt32, DType::Int64, DType::UInt8}) {
      Type types[] = {{DType::UInt64, {2}}, {dtype, {2, 3}}};
      Attributes attributes;
      attributes.set("rng_algorithm", std::string("PHILOX"));
      Value state = results.empty() ? p[0] : results.end()[-2];
      b.operation(Opcode::RngBitGenerator, {&state, 1}, types, attributes);
      for (Value result : b.graph().operations().back().results) results.push_back(result);
    }
    return results;
  }));

  std::vector<const char*> real, both;
  for (const char* name : {"acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "exp2", "log10", "log2", "sinh"})
    both.push_back(name);
  real = both;
  for (const char* name : {"digamma", "erf", "erfc", "erfinv", "gelu_derivative", "lgamma", "trunc"})
    real.push_back(name);
  auto add_functions = [&](DType dtype, const std::vector<const char*>& names) {
    programs.push_back(make_program("functions_" + short_name(dtype), {{dtype, {4, 8}}}, [&](Builder& b, Values& p) {
      Values results;
      for (const char* name : names) results.push_back(b.function(name, p[0]));
      return results;
    }));
  };
  for (DType dtype : {DType::Float32, DType::Float64, DType::BFloat16}) add_functions(dtype, real);
  add_functions(DType::Complex64, both);
  programs.push_back(make_program("fma", {{DType::Float32, {8}}, {DType::Float32, {8}}, {DType::Float32, {8}}},
                                  [](Builder& b, Values& p) { return Values{b.function("fma", p)}; }));
  const Type elements{DType::Int64, {4, 20}};
  programs.push_back(make_program("random_numbers", {elements, elements, elements}, [](Builder& b, Values& p) {
    return Values{random_bits(b, p[0], p[1], p[2], DType::UInt32), random_bits(b, p[0], p[1], p[2], DType::UInt64),
                  random_normal(b, p[0], p[1], p[2], DType::Float32),
                  random_normal(b, p[0], p[1], p[2], DType::Float64)};
  }));

  // Symbolic sizes, a composite with attributes of every kind, aliasing and donation.
  Program program{"composite", Graph("composite"), {3, 4}};
  Graph& graph = program.graph;
  Dim rows = graph.add_symbol("rows"), columns = graph.add_symbol("columns");
  Type type{DType::Float32, {rows, columns}};
  auto body = std::make_shared<Graph>("softmax");
  Builder inside(*body);
  Value x = body->add_parameter(type);
  Value maximum = inside.reduce(Opcode::Maximum, x, inside.constant({DType::Float32, {}}, -1e30), {1});
  Value power = inside.unary(Opcode::Exponential, inside.subtract(x, inside.broadcast_in_dim(maximum, type.dims, {0})));
  Value sum = inside.reduce(Opcode::Add, power, inside.constant({DType::Float32, {}}, 0), {1});
  Value softmax = inside.divide(power, inside.broadcast_in_dim(sum, type.dims, {0}));
  body->set_results({&softmax, 1});
  Value p = graph.add_parameter(type), q = graph.add_parameter(type);
  Builder b(graph);
  Attributes attributes;
  attributes.set("axis", int64_t{-1});
  attributes.set("half", false);
  attributes.set("scale", 0.125);
  attributes.set("note", std::string("a \"quoted\"\nline"));
  attributes.set("sizes", std::vector<int64_t>{1, 2});
  attributes.set("empty", std::vector<int64_t>{});
  attributes.set("type", DType::BFloat16);
  attributes.set("order", ComparisonDirection::GE);
  attributes.set("table", literal_of(DType::Int32, {2}, {5, 6}));
  Value first = b.composite("neuron.softmax", {&p, 1}, attributes, body)[0];
  Value again = b.composite("neuron.softmax", {&first, 1}, {}, body)[0];
  Value results[] = {again, b.add(first, q)};
  graph.set_results(results);
  graph.add_alias({1, 0});
  graph.donate(1);
  programs.push_back(std::move(program));
}

inline std::vector<Program> all_programs() {
  std::vector<Program> programs;
  add_unary_programs(programs);
  add_binary_programs(programs);
  add_conversion_programs(programs);
  add_shape_programs(programs);
  add_constant_programs(programs);
  add_reduction_programs(programs);
  add_contraction_programs(programs);
  add_indexed_programs(programs);
  add_other_programs(programs);
  return programs;
}

}  // namespace neuron::ir::testing
