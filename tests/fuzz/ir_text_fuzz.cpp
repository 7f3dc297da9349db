// The parser of IR text: any bytes give a graph or Error(Value). A graph prints as text that reads back as the same
// text, stays valid through the passes, and where it is small enough to evaluate, the passes keep every bit.
#include <cmath>
#include <optional>
#include <vector>

#include "neuron/base/float_formats.h"
#include "neuron/interpret/interpreter.h"
#include "neuron/ir/parser.h"
#include "neuron/ir/printer.h"
#include "neuron/passes/pipeline.h"
#include "tests/fuzz/input.h"

namespace neuron::fuzz {
namespace {

using interpret::Buffer;
using ir::Graph;

// Elements of all values, bodies included; an operation is counted as often as its operands' elements.
constexpr int64_t kMostElements = 4096;
constexpr int64_t kMostWork = 1 << 16;

int64_t elements(const ir::Type& type) {
  int64_t count = 1;
  for (int64_t size : type.dims) {
    if (size > kMostElements) return kMostElements + 1;
    count *= size;
    if (count > kMostElements) return count;
  }
  return count;
}

// An upper bound of the interpreter's steps, or more than kMostWork.
int64_t work_of(const Graph& graph, int depth = 0) {
  if (depth > 8) return kMostWork + 1;
  int64_t total = 0;
  for (const ir::Operation& operation : graph.operations()) {
    int64_t own = 1, inputs = 1;
    for (ir::Value result : operation.results) own += elements(graph.type(result));
    for (ir::Value operand : operation.operands) inputs += elements(graph.type(operand));
    const bool products = operation.opcode == ir::Opcode::DotGeneral || operation.opcode == ir::Opcode::Convolution ||
                          operation.opcode == ir::Opcode::ReduceWindow || operation.opcode == ir::Opcode::Sort;
    int64_t step = own + inputs;
    if (products) step = own * inputs;
    for (const auto& region : operation.regions) {
      const int64_t body = 1 + work_of(*region, depth + 1);
      if (body > kMostWork || step > kMostWork) return kMostWork + 1;
      step *= body;
    }
    total += step;
    if (total > kMostWork) return total;
  }
  return total;
}

// A window is as large as its text says, whatever the sizes of the values are.
bool has_wide_windows(const Graph& graph) {
  for (const ir::Operation& operation : graph.operations()) {
    if (const auto* window = operation.attributes.find("window_dimensions")) {
      int64_t count = 1;
      for (int64_t size : std::get<std::vector<int64_t>>(*window)) {
        if (size > 64 || (count *= size) > 64) return true;
      }
    }
    for (const auto& region : operation.regions) {
      if (has_wide_windows(*region)) return true;
    }
  }
  return false;
}

bool same_number(double a, double b) { return (std::isnan(a) && std::isnan(b)) || a == b; }

bool same_element(DType dtype, const std::byte* a, const std::byte* b) {
  const size_t size = dtype_size(dtype);
  if (std::equal(a, a + size, b)) return true;
  if (is_complex(dtype)) {
    const DType part = dtype == DType::Complex64 ? DType::Float32 : DType::Float64;
    return same_element(part, a, b) && same_element(part, a + size / 2, b + size / 2);
  }
  return is_float(dtype) && std::isnan(load_as_double(dtype, a)) &&
         same_number(load_as_double(dtype, a), load_as_double(dtype, b));
}

void check_equal(const std::vector<Buffer>& expected, const std::vector<Buffer>& actual) {
  for (size_t r = 0; r < expected.size(); ++r) {
    const size_t size = dtype_size(expected[r].dtype);
    for (int64_t i = 0; i < expected[r].numel(); ++i) {
      if (!same_element(expected[r].dtype, expected[r].bytes.data() + i * size, actual[r].bytes.data() + i * size)) {
        finding("the passes change element {} of result {}", i, r);
      }
    }
  }
}

void check_values(const Graph& graph, const Graph& optimized) {
  if (work_of(graph) > kMostWork || has_wide_windows(graph)) return;
  std::vector<Buffer> arguments;
  for (ir::Value parameter : graph.parameters()) {
    const ir::Type& type = graph.type(parameter);
    if (elements(type) > kMostElements) return;
    Buffer& buffer = arguments.emplace_back(type.dtype, type.dims);
    for (int64_t i = 0; i < buffer.numel(); ++i) {
      if (is_complex(type.dtype)) continue;
      store_from_double(type.dtype, static_cast<double>(i % 7) - (is_unsigned_integer(type.dtype) ? 0 : 2),
                        buffer.bytes.data() + i * dtype_size(type.dtype));
    }
  }
  check_equal(interpret::evaluate(graph, arguments, {}), interpret::evaluate(optimized, arguments, {}));
}

void run(std::string_view text) {
  std::optional<Graph> graph;
  try {
    graph = ir::parse(text);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Value) finding("the parser throws another kind of error: {}", error.what());
    return;
  }
  const std::string printed = ir::print(*graph);
  const std::string again = ir::print(ir::parse(printed));
  if (printed != again) finding("printed as\n{}\nand then as\n{}", printed, again);
  check_values(*graph, passes::run_pipeline(*graph, {.observe = {}, .verify = true}));
}

}  // namespace
}  // namespace neuron::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    neuron::fuzz::run({reinterpret_cast<const char*>(data), size});
  } catch (const neuron::Error& error) {
    neuron::fuzz::finding("an error where none is allowed: {}", error.what());
  }
  return 0;
}
