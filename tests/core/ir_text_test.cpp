// Printer and parser: golden texts, round trips, errors, damaged text.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "neuron/base/error.h"
#include "neuron/interpret/interpreter.h"
#include "neuron/ir/decompositions.h"
#include "neuron/ir/parser.h"
#include "neuron/ir/printer.h"
#include "neuron/ir/verifier.h"
#include "tests/core/interpret_testing.h"
#include "tests/core/ir_programs.h"

namespace neuron::ir {
namespace {

using testing::all_programs;
using testing::Program;

std::string golden_path(const std::string& name) { return NEURON_SOURCE_DIR "/tests/programs/" + name + ".mlir"; }

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// After a wanted change of the syntax: NEURON_UPDATE_GOLDEN=1 ctest -R ir_text_test writes the files anew.
TEST(Text, IsTheGoldenTextOfEveryProgram) {
  for (const Program& program : all_programs()) {
    SCOPED_TRACE(program.name);
    verify(program.graph);
    std::string text = print(program.graph, program.symbol_sizes);
    if (std::getenv("NEURON_UPDATE_GOLDEN") != nullptr) std::ofstream(golden_path(program.name)) << text;
    EXPECT_EQ(text, read_file(golden_path(program.name)));
  }
}

TEST(Text, ProgramsCoverEveryOperationAndFunction) {
  std::set<std::string> seen;
  for (const Program& program : all_programs()) {
    for (const Operation& operation : program.graph.operations()) {
      seen.insert(std::string(op_info(operation.opcode).name));
      if (operation.opcode == Opcode::Composite) seen.insert(operation.attributes.get<std::string>("name"));
    }
  }
  for (int i = 0; i < kOpcodeCount; ++i)
    EXPECT_TRUE(seen.contains(std::string(op_info(static_cast<Opcode>(i)).name))) << i;
#define NEURON_FUNCTION(name, operands) EXPECT_TRUE(seen.contains("neuron." #name));
#include "neuron/ir/functions.def"
#undef NEURON_FUNCTION
}

TEST(Text, RoundTripsEveryProgram) {
  for (const Program& program : all_programs()) {
    SCOPED_TRACE(program.name);
    std::string text = print(program.graph, program.symbol_sizes);
    Graph read = parse(text);
    EXPECT_EQ(print(read), text);
    EXPECT_EQ(read.aliases(), program.graph.aliases());
    EXPECT_EQ(read.donated(), program.graph.donated());
    ASSERT_EQ(read.operations().size(), program.graph.operations().size());
    for (size_t i = 0; i < read.operations().size(); ++i) {
      const Operation &a = program.graph.operations()[i], &b = read.operations()[i];
      EXPECT_EQ(a.opcode, b.opcode);
      EXPECT_EQ(a.operands, b.operands);
      EXPECT_EQ(a.regions.size(), b.regions.size());
      for (const auto& [name, value] : a.attributes.entries()) {
        // The literal of an empty tensor has no element to keep.
        ASSERT_NE(b.attributes.find(name), nullptr) << name;
        bool empty = a.opcode == Opcode::Constant && program.graph.type(a.results[0]).dims == Dims{0, 3};
        EXPECT_TRUE(empty || *b.attributes.find(name) == value) << op_info(a.opcode).name << " " << name;
      }
    }
  }
}

// Decompositions agree with the interpreter's own functions.
void expect_decomposition(const char* name, DType dtype, double tolerance, std::vector<double> points) {
  interpret::Buffer x = interpret::testing::floats(dtype, {static_cast<int64_t>(points.size())}, points);
  Graph body = function_decomposition(name, {dtype, x.sizes});
  verify(body);
  interpret::Buffer got = interpret::evaluate(body, {&x, 1}, {})[0];
  Graph direct;
  Value parameter = direct.add_parameter({dtype, x.sizes}), result = Builder(direct).function(name, parameter);
  direct.set_results({&result, 1});
  interpret::Buffer want = interpret::evaluate(direct, {&x, 1}, {})[0];
  for (size_t i = 0; i < points.size(); ++i) {
    size_t at = i * dtype_size(dtype);
    double a = load_as_double(dtype, got.bytes.data() + at), b = load_as_double(dtype, want.bytes.data() + at);
    bool same = (std::isnan(a) && std::isnan(b)) || a == b || std::fabs(a - b) <= tolerance * (1 + std::fabs(b));
    EXPECT_TRUE(same) << name << "(" << load_as_double(dtype, x.bytes.data() + at) << ") is " << a << ", wanted " << b;
  }
}

TEST(Decompositions, AgreeWithTheFunctionsTheyReplace) {
  using interpret::testing::inf;
  std::vector<double> points = {0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, inf, -inf, interpret::testing::nan, 1e-6, 100, -20};
  for (double x = -6.05; x < 6; x += 0.1) points.push_back(x);
  for (double x = -0.999; x < 1; x += 0.037) points.push_back(x);
#define NEURON_FUNCTION(name, operands)                              \
  if (operands == 1) {                                               \
    expect_decomposition(#name, DType::Float64, 2e-12, points);      \
    expect_decomposition(#name, DType::Float32, 3e-5, points);       \
    expect_decomposition(#name, DType::BFloat16, 1.0 / 128, points); \
  }
#include "neuron/ir/functions.def"
#undef NEURON_FUNCTION
}

TEST(Decompositions, RandomNumbersAreThoseOfTheInterpreter) {
  constexpr int64_t kCount = 150;
  std::vector<interpret::Buffer> operands;
  for (int64_t first : {int64_t{0}, int64_t{0x123456789abcdef0}, int64_t{0xfffffff4}}) {
    interpret::Buffer& operand = operands.emplace_back(DType::Int64, Dims{kCount});
    for (int64_t i = 0; i < kCount; ++i) operand.data<int64_t>()[i] = first + (first == 0 ? i : 0);
  }
  for (DType dtype : {DType::UInt32, DType::UInt64, DType::Float32, DType::Float64}) {
    SCOPED_TRACE(dtype_name(dtype));
    Graph body = random_decomposition(is_float(dtype) ? "random_normal" : "random_bits", {dtype, {kCount}}), direct;
    verify(body);
    Value p[3];
    for (Value& parameter : p) parameter = direct.add_parameter({DType::Int64, {kCount}});
    Builder b(direct);
    Value result =
        is_float(dtype) ? random_normal(b, p[0], p[1], p[2], dtype) : random_bits(b, p[0], p[1], p[2], dtype);
    direct.set_results({&result, 1});
    interpret::Buffer got = interpret::evaluate(body, operands, {})[0],
                      want = interpret::evaluate(direct, operands, {})[0];
    EXPECT_TRUE(is_float(dtype) || got.bytes == want.bytes);
    for (int64_t i = 0; i < kCount && is_float(dtype); ++i) {
      const size_t at = static_cast<size_t>(i) * dtype_size(dtype);
      EXPECT_NEAR(load_as_double(dtype, got.bytes.data() + at), load_as_double(dtype, want.bytes.data() + at),
                  dtype == DType::Float32 ? 5e-6 : 1e-13);
    }
  }
}

TEST(Decompositions, RandomBitsAreThoseOfTheInterpreter) {
  for (DType dtype : {DType::UInt32, DType::UInt64, DType::Int32, DType::UInt8, DType::Int64, DType::Int16}) {
    interpret::Buffer state(DType::UInt64, {2});
    state.data<uint64_t>()[0] = 0x123456789abcdef0;
    state.data<uint64_t>()[1] = 0xfffffffe;  // carries into the high half of the counter
    Type types[] = {{DType::UInt64, {2}}, {dtype, {3, 2}}};
    Graph body = rng_decomposition(types[1]), direct;
    verify(body);
    Value parameter = direct.add_parameter(types[0]);
    Attributes attributes;
    attributes.set("rng_algorithm", std::string("PHILOX"));
    direct.add_operation(Opcode::RngBitGenerator, {&parameter, 1}, types, attributes);
    direct.set_results(direct.operations()[0].results);
    EXPECT_EQ(interpret::evaluate(body, {&state, 1}, {}), interpret::evaluate(direct, {&state, 1}, {}));
  }
}

std::string error_of(const std::string& text) {
  try {
    parse(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Value);
    return error.what();
  }
  return "";
}

std::string function(const std::string& body) {
  return "module @m {\n  func.func public @main(%arg0: tensor<2xf32>) -> (tensor<2xf32>) {\n" + body + "  }\n}\n";
}

TEST(Parser, SaysWhereItFailed) {
  EXPECT_EQ(error_of(""), "line 1, column 1: expected 'module', found the end of the text");
  EXPECT_EQ(error_of("module @m {\n  func.fun"), "line 2, column 3: expected 'func.func', found 'func.fun'");
  EXPECT_EQ(error_of("module @m {}"), "line 1, column 13: the module has no function @main");
  EXPECT_EQ(error_of(function("    %0 = stablehlo.add %arg0, %x : tensor<2xf32>\n")),
            "line 3, column 31: '%x' is not defined here");
  EXPECT_EQ(error_of(function("    %0 = stablehlo.plus %arg0 : tensor<2xf32>\n")),
            "line 3, column 10: 'stablehlo.plus' is no operation");
  EXPECT_EQ(error_of(function("    %0 = stablehlo.abs %arg0 : tensor<3xf32>\n")),
            "line 3, column 32: operand 0 is tensor<2xf32>, not tensor<3xf32>");
  EXPECT_EQ(error_of(function("    %0 = stablehlo.abs %arg0 : tensor<2xf99>\n")),
            "line 3, column 41: 'f99' is no element type");
  EXPECT_EQ(error_of(function("    %0 = stablehlo.abs %arg0 : tensor<?xf32>\n")),
            "line 3, column 39: a dimension has no size; only text with static sizes can be read");
  EXPECT_EQ(error_of(function("    %arg0 = stablehlo.abs %arg0 : tensor<2xf32>\n")),
            "line 3, column 5: '%arg0' is defined twice");
  EXPECT_EQ(error_of(function("    %0 = stablehlo.constant dense<[1.0, x]> : tensor<2xf32>\n")),
            "line 3, column 41: 'x' is no f32");
  EXPECT_EQ(error_of(function("    %0 = stablehlo.constant dense<300> : tensor<2xi8>\n")),
            "line 3, column 35: '300' is no i8");
  EXPECT_EQ(error_of(function("    return %arg0 : tensor<2xf64>\n")), "line 3, column 20: result 0 is tensor<2xf32>");
  EXPECT_EQ(
      error_of(function("    %0 = stablehlo.composite \"neuron.f\" %arg0 {decomposition = @f} : (tensor<2xf32>) -> "
                        "tensor<2xf32>\n")),
      "line 3, column 64: function '@f' is not defined before its use");
  // Well-formed, but no program.
  EXPECT_EQ(error_of(function("    %0 = stablehlo.not %arg0 : tensor<2xf32>\n    return %0 : tensor<2xf32>\n")),
            "operation 0 'not' of 'm': it is not defined for f32; it is (tensor<2xf32>) -> (tensor<2xf32>)");
}

TEST(Parser, ReadsCommentsAndFreeSpacing) {
  Graph graph = parse(
      "// A comment.\nmodule{func.func @main(%x:tensor<2xf32>)->tensor<2xf32>{ // another\n"
      "%y=stablehlo.add %x,%x:(tensor<2xf32>,tensor<2xf32>)->tensor<2xf32>\nreturn %y:tensor<2xf32>}}");
  EXPECT_EQ(graph.operations().size(), 1u);
}

// Every prefix, and many random changes of a byte, of every text: an error or a graph, never anything worse.
TEST(Parser, SurvivesDamagedText) {
  std::mt19937 random(7);
  auto pick = [&](size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random); };
  size_t refused = 0;
  for (const Program& program : all_programs()) {
    std::string text = print(program.graph, program.symbol_sizes);
    if (text.size() > 20000) text = text.substr(text.size() - 20000);
    auto attempt = [&](const std::string& damaged) {
      try {
        parse(damaged);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::Value) << error.what();
        ++refused;
      }
    };
    for (int i = 0; i < 15; ++i) attempt(text.substr(0, pick(text.size())));
    for (int i = 0; i < 40; ++i) {
      std::string damaged = print(program.graph, program.symbol_sizes);
      if (damaged.size() > 60000) break;
      static constexpr char alphabet[] = "{}()[]<>,:=%#\"x0-9a.\n\xff";
      size_t at = pick(damaged.size());
      switch (pick(3)) {
        case 0:
          damaged[at] = alphabet[pick(sizeof alphabet - 1)];
          break;
        case 1:
          damaged.erase(at, 1 + pick(8));
          break;
        default:
          damaged.insert(at, 1, alphabet[pick(sizeof alphabet - 1)]);
      }
      attempt(damaged);
    }
  }
  EXPECT_GT(refused, 500u);
}

TEST(Parser, RefusesWhatWouldExhaustMemory) {
  EXPECT_NE(error_of(function("    %0 = stablehlo.constant dense<" + std::string(5000, '[') + "> : tensor<2xf32>\n")),
            "");
  EXPECT_NE(error_of(function("    %0 = stablehlo.constant dense<1.0> : tensor<99999999999x99999999999xf32>\n")), "");
  EXPECT_NE(error_of(function("    %0 = stablehlo.constant dense<1.0> : tensor<999999999999999999999xf32>\n")), "");
}

TEST(Printer, ShowsSymbolsToPeopleAndNamesMissingSizes) {
  Graph graph("g");
  Dim d = graph.add_symbol();
  Value x = graph.add_parameter({DType::Float32, {d, graph.add_symbol()}});
  graph.set_results({&x, 1});
  EXPECT_NE(print(graph).find("%arg0: tensor<?x?xf32>"), std::string::npos);
  int64_t one = 1;
  try {
    print(graph, {&one, 1});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "print: symbol 1 has no size, 1 sizes are given");
  }
}

}  // namespace
}  // namespace neuron::ir
