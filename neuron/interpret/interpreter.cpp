#include "neuron/interpret/interpreter.h"

#include <algorithm>
#include <cfenv>
#include <cstring>

#include "neuron/base/float_formats.h"
#include "neuron/interpret/kernels.h"

namespace neuron::interpret {

namespace {

// The caller's thread may flush denormals or round otherwise; the meaning of a program does not depend on it.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() { std::fesetenv(&saved_); }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  std::fenv_t saved_;
};

void evaluate_composite(const Invocation& call) {
  const auto& name = call.operation.attributes.get<std::string>("name");
  constexpr std::string_view prefix = "neuron.";
  if (name.starts_with(prefix) && evaluate_function(std::string_view(name).substr(prefix.size()), call)) return;
  check_internal(!call.operation.regions.empty(), "composite '{}' is no function and has no decomposition", name);
  std::vector<Buffer> arguments;
  for (const Buffer* operand : call.operands) arguments.push_back(*operand);
  std::vector<Buffer> values = evaluate_graph(*call.operation.regions[0], arguments, call.symbol_sizes);
  check_internal(values.size() == call.results.size(), "composite '{}' has {} results, its decomposition {}", name,
                 call.results.size(), values.size());
  std::move(values.begin(), values.end(), call.results.begin());
}

void evaluate_operation(const Invocation& call) {
  using ir::OpCategory;
  using ir::Opcode;
  switch (call.operation.opcode) {
    case Opcode::Convert:
    case Opcode::BitcastConvert:
      return evaluate_convert(call);
    case Opcode::Compare:
      return evaluate_compare(call);
    case Opcode::DynamicSlice:
      return evaluate_dynamic_slice(call);
    case Opcode::DynamicUpdateSlice:
      return evaluate_dynamic_update_slice(call);
    case Opcode::Reduce:
      return evaluate_reduce(call);
    case Opcode::ReduceWindow:
      return evaluate_reduce_window(call);
    case Opcode::DotGeneral:
      return evaluate_dot_general(call);
    case Opcode::Convolution:
      return evaluate_convolution(call);
    case Opcode::Gather:
      return evaluate_gather(call);
    case Opcode::Scatter:
      return evaluate_scatter(call);
    case Opcode::Sort:
      return evaluate_sort(call);
    case Opcode::RngBitGenerator:
      return evaluate_rng_bit_generator(call);
    case Opcode::Composite:
      return evaluate_composite(call);
    default:
      break;
  }
  switch (ir::op_info(call.operation.opcode).category) {
    case OpCategory::Source:
      return evaluate_source(call);
    case OpCategory::Unary:
      return evaluate_unary(call);
    case OpCategory::Binary:
      return evaluate_binary(call);
    case OpCategory::Ternary:
      return evaluate_ternary(call);
    case OpCategory::Shape:
      return evaluate_shape(call);
    default:
      fail(ErrorKind::Internal, "no meaning for operation {}", ir::op_info(call.operation.opcode).name);
  }
}

std::string describe(const Buffer& buffer) { return to_string(ir::Type{buffer.dtype, buffer.sizes}); }

void check_argument(const ir::Graph& graph, size_t i, const Buffer& argument, std::span<const int64_t> symbol_sizes) {
  ir::Type want = graph.type(graph.parameters()[i]);
  want.dims = resolve_sizes(want, symbol_sizes);
  check_internal(argument.dtype == want.dtype && argument.sizes == want.dims, "argument {} of '{}' is {}, wanted {}", i,
                 graph.name(), describe(argument), to_string(want));
  size_t bytes = static_cast<size_t>(argument.numel()) * dtype_size(argument.dtype);
  check_internal(argument.bytes.size() == bytes, "argument {} of '{}' is {} and holds {} bytes, wanted {}", i,
                 graph.name(), describe(argument), argument.bytes.size(), bytes);
}

// A bool in memory may be any non-zero byte; kernels rely on 0 and 1.
void normalize_bool(Buffer& buffer) {
  if (buffer.dtype != DType::Bool) return;
  for (std::byte& byte : buffer.bytes) byte = std::byte{byte != std::byte{0}};
}

}  // namespace

Buffer::Buffer(DType element, Dims dimensions) : dtype(element), sizes(std::move(dimensions)) {
  bytes.resize(static_cast<size_t>(numel()) * dtype_size(dtype));
}

int64_t Buffer::numel() const { return product(sizes); }

Dims resolve_sizes(const ir::Type& type, std::span<const int64_t> symbol_sizes) {
  Dims sizes = type.dims;
  for (int64_t& size : sizes) {
    if (!ir::is_symbolic(size)) continue;
    auto symbol = static_cast<size_t>(ir::symbol_of(size));
    check_internal(symbol < symbol_sizes.size(), "symbol {} has no size: {} sizes are given", symbol,
                   symbol_sizes.size());
    size = symbol_sizes[symbol];
  }
  return sizes;
}

std::vector<Buffer> evaluate(const ir::Graph& graph, std::span<const Buffer> arguments,
                             std::span<const int64_t> symbol_sizes) {
  DefaultFloatEnvironment environment;
  return evaluate_graph(graph, arguments, symbol_sizes);
}

std::vector<Buffer> evaluate_graph(const ir::Graph& graph, std::span<const Buffer> arguments,
                                   std::span<const int64_t> symbol_sizes) {
  check_internal(arguments.size() == graph.parameters().size(), "'{}' takes {} arguments, {} are given", graph.name(),
                 graph.parameters().size(), arguments.size());
  std::vector<Buffer> values(static_cast<size_t>(graph.value_count()));
  for (size_t i = 0; i < arguments.size(); ++i) {
    check_argument(graph, i, arguments[i], symbol_sizes);
    Buffer& value = values[graph.parameters()[i].id];
    value = arguments[i];
    normalize_bool(value);
  }
  std::vector<const Buffer*> operands;
  for (const ir::Operation& operation : graph.operations()) {
    operands.clear();
    for (ir::Value operand : operation.operands) operands.push_back(&values[operand.id]);
    std::vector<Buffer> results;
    for (ir::Value result : operation.results) {
      const ir::Type& type = graph.type(result);
      results.emplace_back(type.dtype, resolve_sizes(type, symbol_sizes));
    }
    evaluate_operation({operation, operands, results, symbol_sizes});
    for (size_t i = 0; i < results.size(); ++i) values[operation.results[i].id] = std::move(results[i]);
  }
  std::vector<Buffer> results;
  for (ir::Value result : graph.results()) results.push_back(values[result.id]);
  return results;
}

const Buffer& widen(const Buffer& buffer, Buffer& scratch) {
  if (!is_reduced_float(buffer.dtype)) return buffer;
  scratch = Buffer(DType::Float32, buffer.sizes);
  size_t size = dtype_size(buffer.dtype);
  for (int64_t i = 0, n = buffer.numel(); i < n; ++i)
    scratch.data<float>()[i] = static_cast<float>(load_as_double(buffer.dtype, buffer.bytes.data() + i * size));
  return scratch;
}

Buffer make_wide(const Buffer& result) { return {compute_dtype(result.dtype), result.sizes}; }

void narrow(Buffer&& wide, Buffer& result) {
  if (wide.dtype == result.dtype) {
    result.bytes = std::move(wide.bytes);
    return;
  }
  size_t size = dtype_size(result.dtype);
  for (int64_t i = 0, n = wide.numel(); i < n; ++i)
    store_from_double(result.dtype, wide.data<float>()[i], result.bytes.data() + i * size);
}

void unsupported(const Invocation& call, DType dtype) {
  fail(ErrorKind::Internal, "{} is not defined for {}", ir::op_info(call.operation.opcode).mnemonic, dtype_name(dtype));
}

Buffer element_of(const Buffer& buffer, int64_t index) {
  Buffer element(buffer.dtype, {});
  size_t size = dtype_size(buffer.dtype);
  std::copy_n(buffer.bytes.data() + index * size, size, element.bytes.data());
  return element;
}

void set_element(Buffer& buffer, int64_t index, const Buffer& element) {
  std::copy(element.bytes.begin(), element.bytes.end(), buffer.bytes.data() + index * dtype_size(buffer.dtype));
}

void accumulate(const ir::Graph& body, std::vector<Buffer>& accumulators, std::vector<Buffer> elements,
                std::span<const int64_t> symbol_sizes) {
  std::vector<Buffer> arguments = std::move(accumulators);
  for (Buffer& element : elements) arguments.push_back(std::move(element));
  accumulators = evaluate_graph(body, arguments, symbol_sizes);
}

int64_t product(const Dims& sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

Dims row_major_strides(const Dims& sizes) {
  Dims strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  return strides;
}

int64_t offset_of(const Dims& index, const Dims& strides) {
  int64_t offset = 0;
  for (size_t d = 0; d < index.size(); ++d) offset += index[d] * strides[d];
  return offset;
}

}  // namespace neuron::interpret
