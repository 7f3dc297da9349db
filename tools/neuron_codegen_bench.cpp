// Times generated kernels: compile time, call overhead on a tiny tensor, and throughput against memcpy over the same
// bytes.
//   neuron-codegen-bench [name] [elements] [columns | --asm [target]]
// --asm prints the code instead, also for a processor that this one is not: avx2 or avx512.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "neuron/codegen/region.h"
#include "neuron/ir/builder.h"

namespace neuron::codegen {
namespace {

using ir::Opcode;
using ir::Value;

struct Kernel {
  std::string name;
  int rank = 1;
  Reduction reduction = Reduction::None;
  int inputs = 1;
  std::function<Value(ir::Builder&, std::vector<Value>)> emit;
  DType dtype = DType::Float32;
  bool transposed = false;  // the first input
};

// Of this thread: other work on the machine does not count.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double seconds(const std::function<void()>& work, int repeats) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repeats; ++i) {
    const double start = processor_seconds();
    work();
    best = std::min(best, processor_seconds() - start);
  }
  return best;
}

Value spread(ir::Builder& b, Value reduced, Value like) { return b.broadcast_in_dim(reduced, b.type(like).dims, {0}); }

Value reduce(ir::Builder& b, Opcode opcode, Value x, double init, int64_t dimension) {
  return b.reduce(opcode, x, b.constant({b.type(x).dtype, {}}, init), {dimension});
}

Value softmax(ir::Builder& b, std::vector<Value> x) {
  Value top = spread(b, reduce(b, Opcode::Maximum, x[0], -std::numeric_limits<double>::infinity(), 1), x[0]);
  Value e = b.unary(Opcode::Exponential, b.subtract(x[0], top));
  Value sum = reduce(b, Opcode::Add, e, 0, 1);
  return b.multiply(e, spread(b, b.divide(b.constant_like(sum, 1), sum), x[0]));
}

Value layer_norm(ir::Builder& b, std::vector<Value> x) {
  Value count = b.constant({DType::Float32, {b.type(x[0]).dims[0]}}, 1024);
  Value centred = b.subtract(x[0], spread(b, b.divide(reduce(b, Opcode::Add, x[0], 0, 1), count), x[0]));
  Value variance = b.divide(reduce(b, Opcode::Add, b.multiply(centred, centred), 0, 1), count);
  Value scale = b.unary(Opcode::Rsqrt, b.add(variance, b.constant_like(variance, 1e-5)));
  return b.multiply(centred, spread(b, scale, x[0]));
}

Value gelu(ir::Builder& b, std::vector<Value> x) {
  Value half = b.constant_like(x[0], 0.5), one = b.constant_like(x[0], 1);
  Value cdf =
      b.multiply(half, b.add(one, b.function("erf", b.multiply(x[0], b.constant_like(x[0], 0.70710678118654752)))));
  return b.multiply(x[0], cdf);
}

std::vector<Kernel> kernels() {
  std::vector<Kernel> all;
  auto unary = [&](const char* name, Opcode opcode) {
    all.push_back({name, 1, Reduction::None, 1,
                   [opcode](ir::Builder& b, std::vector<Value> x) { return b.unary(opcode, x[0]); }});
  };
  auto function = [&](const char* name) {
    all.push_back(
        {name, 1, Reduction::None, 1, [name](ir::Builder& b, std::vector<Value> x) { return b.function(name, x[0]); }});
  };
  all.push_back({"add", 1, Reduction::None, 2, [](ir::Builder& b, std::vector<Value> x) { return b.add(x[0], x[1]); }});
  all.push_back({"add_bf16", 1, Reduction::None, 2,
                 [](ir::Builder& b, std::vector<Value> x) { return b.add(x[0], x[1]); }, DType::BFloat16});
  all.push_back({"add_i64", 1, Reduction::None, 2,
                 [](ir::Builder& b, std::vector<Value> x) { return b.add(x[0], x[1]); }, DType::Int64});
  all.push_back({"sum_rows_bf16", 2, Reduction::Inner, 1,
                 [](ir::Builder& b, std::vector<Value> x) {
                   return b.convert(reduce(b, Opcode::Add, b.convert(x[0], DType::Float32), 0, 1), DType::BFloat16);
                 },
                 DType::BFloat16});
  all.push_back({"softmax_bf16", 2, Reduction::Inner, 1,
                 [](ir::Builder& b, std::vector<Value> x) {
                   return b.convert(softmax(b, {b.convert(x[0], DType::Float32)}), DType::BFloat16);
                 },
                 DType::BFloat16});
  all.push_back({"relu", 1, Reduction::None, 1,
                 [](ir::Builder& b, std::vector<Value> x) { return b.maximum(x[0], b.constant_like(x[0], 0)); }});
  all.push_back(
      {"add_rows", 2, Reduction::None, 2, [](ir::Builder& b, std::vector<Value> x) { return b.add(x[0], x[1]); }});
  all.push_back({"transpose", 2, Reduction::None, 1,
                 [](ir::Builder& b, std::vector<Value> x) { return b.negate(x[0]); }, DType::Float32, true});
  unary("exp", Opcode::Exponential);
  unary("log", Opcode::Log);
  unary("tanh", Opcode::Tanh);
  unary("logistic", Opcode::Logistic);
  unary("sin", Opcode::Sine);
  function("erf");
  function("atan");
  all.push_back({"gelu", 1, Reduction::None, 1, gelu});
  all.push_back({"gelu_bf16", 1, Reduction::None, 1,
                 [](ir::Builder& b, std::vector<Value> x) {
                   return b.convert(gelu(b, {b.convert(x[0], DType::Float32)}), DType::BFloat16);
                 },
                 DType::BFloat16});
  for (auto [name, opcode] : {std::pair("logistic_bf16", Opcode::Logistic), std::pair("tanh_bf16", Opcode::Tanh),
                              std::pair("exp_bf16", Opcode::Exponential)}) {
    all.push_back({name, 1, Reduction::None, 1,
                   [opcode](ir::Builder& b, std::vector<Value> x) { return b.unary(opcode, x[0]); }, DType::BFloat16});
  }
  all.push_back({"pow", 1, Reduction::None, 2,
                 [](ir::Builder& b, std::vector<Value> x) { return b.binary(Opcode::Power, x[0], x[1]); }});
  all.push_back({"sum_rows", 2, Reduction::Inner, 1,
                 [](ir::Builder& b, std::vector<Value> x) { return reduce(b, Opcode::Add, x[0], 0, 1); }});
  all.push_back({"sum_columns", 2, Reduction::Outer, 1,
                 [](ir::Builder& b, std::vector<Value> x) { return reduce(b, Opcode::Add, x[0], 0, 0); }});
  all.push_back({"softmax", 2, Reduction::Inner, 1, softmax});
  all.push_back({"layer_norm", 2, Reduction::Inner, 1, layer_norm});
  return all;
}

void bench(const Kernel& kernel, int64_t elements, int64_t columns, std::optional<HostTarget> assembly) {
  auto graph = std::make_shared<ir::Graph>();
  Dims space;
  for (int d = 0; d < kernel.rank; ++d) space.push_back(graph->add_symbol());
  std::vector<Value> inputs;
  RegionSpec spec;
  for (int i = 0; i < kernel.inputs; ++i) {
    inputs.push_back(graph->add_parameter({kernel.dtype, space}));
    spec.inputs.push_back(
        {OperandKind::Tensor, kernel.dtype, kernel.transposed && i == 0 ? InnerStride::Other : InnerStride::One});
  }
  ir::Builder builder(*graph);
  Value result = kernel.emit(builder, inputs);
  graph->set_results({&result, 1});
  const bool reduced = graph->type(result).rank() < kernel.rank;
  spec.graph = graph;
  spec.rank = kernel.rank;
  spec.reduction = kernel.reduction;
  spec.outputs.push_back({OperandKind::Tensor, kernel.dtype,
                          reduced && kernel.reduction == Reduction::Inner ? InnerStride::Zero : InnerStride::One});

  if (assembly) {
    std::puts(host_compiler().disassemble(spec, *assembly).c_str());
    return;
  }
  auto executable = host_compiler().compile(spec);
  const double compile = seconds([&] { executable = host_compiler().compile(spec); }, 20);

  const size_t size = dtype_size(kernel.dtype);
  std::vector<std::vector<char>> memory(static_cast<size_t>(kernel.inputs) + 1,
                                        std::vector<char>(static_cast<size_t>(elements) * size));
  std::vector<void*> pointers;
  for (auto& block : memory) pointers.push_back(block.data());
  for (int i = 0; i < kernel.inputs; ++i) {
    for (int64_t j = 0; j < elements; ++j) {
      const float value = static_cast<float>(j % 977) / 977 * 4 - (i == 0 ? 0 : 2);
      if (kernel.dtype == DType::Float32) std::memcpy(memory[i].data() + j * 4, &value, 4);
      if (kernel.dtype == DType::BFloat16)
        std::memcpy(memory[i].data() + j * 2, reinterpret_cast<const char*>(&value) + 2, 2);
    }
  }
  std::vector<int64_t> sizes{elements}, strides;
  if (kernel.rank == 2) sizes = {elements / columns, columns};
  for (int i = 0; i <= kernel.inputs; ++i) {
    const bool out = i == kernel.inputs && reduced;
    if (kernel.rank == 2)
      strides.push_back(out ? (kernel.reduction == Reduction::Inner ? 1 : 0) : kernel.rank == 2 ? columns : 1);
    strides.push_back(out && kernel.reduction == Reduction::Inner ? 0 : 1);
  }
  if (kernel.transposed) strides[0] = 1, strides[1] = elements / columns;
  std::vector<uint64_t> scalars(static_cast<size_t>(kernel.inputs), 0);
  auto run = [&] { executable->run({sizes.data(), pointers.data(), strides.data(), scalars.data(), 1}); };
  // Small work several times: it takes less than the clock shows.
  const int64_t times = std::max<int64_t>(1, (int64_t{1} << 20) / elements);
  auto each = [&](const std::function<void()>& work) {
    return seconds(
               [&] {
                 for (int64_t i = 0; i < times; ++i) work();
               },
               5) /
           static_cast<double>(times);
  };
  const double whole = each(run);
  const int streams = kernel.inputs + (reduced ? 0 : 1);
  const double bytes = static_cast<double>(elements) * static_cast<double>(size) * streams;
  std::vector<char> from(static_cast<size_t>(bytes / 2)), to(from.size(), 1);
  const double copy = each([&] { std::memcpy(to.data(), from.data(), from.size()); });

  std::vector<int64_t> tiny = sizes;
  tiny.back() = 10;
  if (kernel.rank == 2) tiny[0] = 2;
  const double call = seconds(
      [&] {
        for (int i = 0; i < 1000; ++i)
          executable->run({tiny.data(), pointers.data(), strides.data(), scalars.data(), 1});
      },
      5);
  std::printf(
      "%-12s compile %5.1f ms  call of 10 %5.0f ns  %6.2f ms  %6.3f ns/element  %5.1f GB/s  %3.0f %% of copy rate\n",
      kernel.name.c_str(), compile * 1e3, call * 1e6, whole * 1e3, whole / static_cast<double>(elements) * 1e9,
      bytes / whole / 1e9, copy / whole * 100);
}

}  // namespace
}  // namespace neuron::codegen

int main(int argc, char** argv) {
  using namespace neuron::codegen;
  std::string wanted = argc > 1 ? argv[1] : "all";
  const int64_t elements = argc > 2 ? std::stoll(argv[2]) : 4 << 20;
  std::optional<HostTarget> assembly;
  if (argc > 3 && std::string(argv[3]) == "--asm") {
    assembly = detected_host_target();
    for (HostTarget target : {HostTarget::Avx2, HostTarget::Avx512}) {
      if (argc > 4 && std::string(argv[4]) == host_target_name(target)) assembly = target;
    }
  }
  const int64_t columns = argc > 3 && !assembly ? std::stoll(argv[3]) : 1024;
  std::printf("target %s, %s\n", host_target_name(detected_host_target()), host_compiler().build_id().c_str());
  for (const auto& kernel : kernels()) {
    if (wanted == "all" || kernel.name == wanted) bench(kernel, elements, columns, assembly);
  }
}
