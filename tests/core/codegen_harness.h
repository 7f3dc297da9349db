// Runs a region as a generated kernel on strided memory and as the interpreter on dense buffers, and compares.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "neuron/base/error.h"
#include "neuron/base/float_formats.h"
#include "neuron/codegen/region.h"
#include "neuron/interpret/interpreter.h"
#include "neuron/ir/builder.h"

namespace neuron::codegen {

// A graph whose symbols are the sizes of an iteration space.
struct RegionBuilder {
  explicit RegionBuilder(int rank, Reduction reduction = Reduction::None)
      : graph(std::make_shared<ir::Graph>()), builder(*graph) {
    spec.rank = rank;
    spec.reduction = reduction;
    for (int d = 0; d < rank; ++d) space.push_back(graph->add_symbol());
  }
  ir::Value tensor(DType dtype, InnerStride inner = InnerStride::One) {
    spec.inputs.push_back({OperandKind::Tensor, dtype, inner});
    return graph->add_parameter({dtype, space});
  }
  ir::Value index(InnerStride inner = InnerStride::One, DType dtype = DType::Int64) {
    spec.inputs.push_back({OperandKind::Index, dtype, inner});
    return graph->add_parameter({dtype, space});
  }
  // A number, broadcast over the space and converted.
  ir::Value scalar(DType kind, DType dtype) {
    spec.inputs.push_back({OperandKind::Scalar, kind, InnerStride::Zero});
    return spread(builder.convert(graph->add_parameter({kind, {}}), dtype));
  }
  ir::Value spread(ir::Value value) {
    std::vector<int64_t> kept;
    const int rank = builder.type(value).rank();
    for (int d = 0; d < rank; ++d) kept.push_back(d);
    return builder.broadcast_in_dim(value, space, kept);
  }
  ir::Value constant(DType dtype, double value) { return builder.constant({dtype, space}, value); }
  ir::Value reduce(ir::Opcode opcode, ir::Value x, double init) {
    const int64_t dimension = spec.rank - (spec.reduction == Reduction::Outer ? 2 : 1);
    return builder.reduce(opcode, x, builder.constant({builder.type(x).dtype, {}}, init), {dimension});
  }
  void result(ir::Value value, InnerStride inner = InnerStride::One) {
    results.push_back(value);
    const bool reduced_row = spec.reduction == Reduction::Inner && builder.type(value).rank() < spec.rank;
    spec.outputs.push_back({OperandKind::Tensor, builder.type(value).dtype, reduced_row ? InnerStride::Zero : inner});
  }
  RegionSpec finish() {
    graph->set_results(results);
    spec.graph = graph;
    return spec;
  }

  std::shared_ptr<ir::Graph> graph;
  ir::Builder builder;
  RegionSpec spec;
  Dims space;
  std::vector<ir::Value> results;
};

// Bits or values of an element that must be the same; all NaN are one.
inline bool same_element(DType dtype, const std::byte* a, const std::byte* b, double ulps) {
  if (std::memcmp(a, b, dtype_size(dtype)) == 0) return true;
  if (!is_float(dtype)) return false;
  const double x = load_as_double(dtype, a), y = load_as_double(dtype, b);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (ulps == 0) return false;
  const int mantissa = dtype == DType::Float64    ? 52
                       : dtype == DType::Float32  ? 23
                       : dtype == DType::Float16  ? 10
                       : dtype == DType::BFloat16 ? 7
                                                  : 2;
  const int smallest = dtype == DType::Float64   ? -1074
                       : dtype == DType::Float32 ? -149
                       : dtype == DType::Float16 ? -24
                                                 : -9;
  int exponent = 0;
  std::frexp(y, &exponent);
  return std::fabs(x - y) <= ulps * std::ldexp(1.0, std::max(exponent - 1 - mantissa, smallest));
}

class RegionRun {
 public:
  RegionRun(const RegionSpec& spec, std::vector<int64_t> sizes, uint32_t seed = 1)
      : spec_(spec), sizes_(std::move(sizes)), random_(seed) {
    for (size_t k = 0; k < spec.inputs.size() + spec.outputs.size(); ++k) add_operand(k);
  }

  // Values are drawn from [low, high) for floats.
  double low = -4, high = 4;
  bool special_values = false;  // some NaN, infinities, zeros, subnormals, extreme integers
  int threads = 1;

  void fill() {
    for (size_t k = 0; k < spec_.inputs.size(); ++k) fill_input(k);
    for (size_t k = spec_.inputs.size(); k < memory_.size(); ++k)
      std::memset(memory_[k].data(), 0xa5, memory_[k].size());
  }

  // Output memory, dense, after a run.
  std::vector<interpret::Buffer> run(const Executable& executable) {
    RegionArguments arguments{sizes_.data(), pointers_.data(), strides_.data(), scalars_.data(), threads};
    executable.run(arguments);
    check_surroundings();
    std::vector<interpret::Buffer> outputs;
    for (size_t k = spec_.inputs.size(); k < memory_.size(); ++k) outputs.push_back(gather(k));
    return outputs;
  }
  std::vector<interpret::Buffer> expected() {
    std::vector<interpret::Buffer> inputs;
    for (size_t k = 0; k < spec_.inputs.size(); ++k) inputs.push_back(gather(k));
    return interpret::evaluate(*spec_.graph, inputs, sizes_);
  }

  static ::testing::AssertionResult same(const std::vector<interpret::Buffer>& a,
                                         const std::vector<interpret::Buffer>& b, double ulps = 0) {
    for (size_t k = 0; k < a.size(); ++k) {
      const size_t size = dtype_size(a[k].dtype);
      if (a[k].bytes.size() != b[k].bytes.size())
        return ::testing::AssertionFailure() << "result " << k << " differs in size";
      for (size_t i = 0; i < a[k].bytes.size() / size; ++i) {
        const std::byte *x = a[k].bytes.data() + i * size, *y = b[k].bytes.data() + i * size;
        if (same_element(a[k].dtype, x, y, ulps)) continue;
        return ::testing::AssertionFailure() << "result " << k << " of " << dtype_name(a[k].dtype) << " at " << i
                                             << ": " << fmt::format("{:.17g}", load_as_double(a[k].dtype, x))
                                             << " instead of " << fmt::format("{:.17g}", load_as_double(b[k].dtype, y));
      }
    }
    return ::testing::AssertionSuccess();
  }

 private:
  // Bytes before and after each operand that nobody may write.
  static constexpr size_t kGuard = 64;

  // Of the outputs, only their elements were written: neither the guards nor the gaps between rows.
  void check_surroundings() {
    for (size_t k = spec_.inputs.size(); k < memory_.size(); ++k) {
      std::vector<bool> owned(memory_[k].size());
      const size_t size = dtype_size(signature(k).dtype);
      visit(k, [&](int64_t, int64_t offset) {
        for (size_t byte = 0; byte < size; ++byte) owned[kGuard + static_cast<size_t>(offset) * size + byte] = true;
      });
      for (size_t at = 0; at < owned.size(); ++at) {
        if (owned[at] || memory_[k][at] == std::byte{0xa5}) continue;
        ADD_FAILURE() << "output " << k - spec_.inputs.size() << " was written at byte "
                      << static_cast<int64_t>(at) - static_cast<int64_t>(kGuard) << ", which is none of its elements";
        return;
      }
    }
  }

  const OperandSignature& signature(size_t k) const {
    return k < spec_.inputs.size() ? spec_.inputs[k] : spec_.outputs[k - spec_.inputs.size()];
  }
  int reduced_dimension(size_t k) const {
    if (k < spec_.inputs.size()) return -1;
    const ir::Value result = spec_.graph->results()[k - spec_.inputs.size()];
    if (spec_.graph->type(result).rank() == spec_.rank) return -1;
    return spec_.rank - (spec_.reduction == Reduction::Outer ? 2 : 1);
  }

  void add_operand(size_t k) {
    const OperandSignature& operand = signature(k);
    const int rank = spec_.rank, reduced = reduced_dimension(k);
    std::vector<int64_t> strides(static_cast<size_t>(rank), 0);
    int64_t extent = operand.inner == InnerStride::Other ? 3 : 1;
    for (int d = rank - 1; d >= 0; --d) {
      if (d == reduced || (d == rank - 1 && operand.inner == InnerStride::Zero)) continue;
      // Some outer dimensions are broadcast, the others have gaps.
      if (d < rank - 1 && k < spec_.inputs.size() && random_() % 4 == 0) continue;
      strides[d] = extent;
      extent = extent * sizes_[d] + (d > 0 ? static_cast<int64_t>(random_() % 3) : 0);
    }
    strides_.insert(strides_.end(), strides.begin(), strides.end());
    scalars_.push_back(0);
    const bool tensor = operand.kind == OperandKind::Tensor;
    const size_t bytes = tensor ? dtype_size(operand.dtype) * static_cast<size_t>(std::max<int64_t>(extent, 1)) : 0;
    memory_.emplace_back(bytes + 2 * kGuard);
    pointers_.push_back(tensor ? memory_.back().data() + kGuard : nullptr);
  }

  double draw() {
    if (special_values && random_() % 4 == 0) {
      static constexpr double specials[] = {0.0,   -0.0, INFINITY, -INFINITY,    NAN,           1e-40,  -1e-42,
                                            1.0,   -1.0, 0.5,      2147483648.0, -2147483649.0, 9.3e18, -9.3e18,
                                            127.5, 255,  1e30,     65504,        448,           464};
      return specials[random_() % std::size(specials)];
    }
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  void fill_input(size_t k) {
    const OperandSignature& operand = signature(k);
    if (operand.kind == OperandKind::Scalar) {
      scalars_[k] =
          operand.dtype == DType::Float64 ? std::bit_cast<uint64_t>(draw()) : static_cast<uint64_t>(random_() % 7);
    } else if (operand.kind == OperandKind::Index) {
      scalars_[k] = random_() % 100;
    } else {
      const size_t size = dtype_size(operand.dtype);
      for (size_t at = 0; at + size <= memory_[k].size(); at += size) {
        if (is_float(operand.dtype)) {
          store_from_double(operand.dtype, draw(), memory_[k].data() + at);
        } else if (special_values && random_() % 8 == 0) {
          const int64_t value = random_() % 2 ? std::numeric_limits<int64_t>::min() >> (64 - 8 * size) : -1;
          std::memcpy(memory_[k].data() + at, &value, size);
        } else {
          store_from_int(operand.dtype,
                         static_cast<int64_t>(random_() % 23) - (is_signed_integer(operand.dtype) ? 11 : 0),
                         memory_[k].data() + at);
        }
      }
    }
  }
  // Calls body(index, offset) for each element in row-major order.
  template <typename Body>
  void visit(size_t k, Body body) {
    const Dims sizes = sizes_of(k);
    const int reduced = reduced_dimension(k);
    int64_t count = 1;
    for (int64_t size : sizes) count *= size;
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i, offset = 0;
      int d = spec_.rank - 1;
      for (size_t j = sizes.size(); j-- > 0; --d) {
        if (d == reduced) --d;
        offset += rest % sizes[j] * strides_[k * spec_.rank + d];
        rest /= sizes[j];
      }
      body(i, offset);
    }
  }
  Dims sizes_of(size_t k) const {
    const int reduced = reduced_dimension(k);
    Dims sizes;
    for (int d = 0; d < spec_.rank && signature(k).kind != OperandKind::Scalar; ++d) {
      if (d != reduced) sizes.push_back(sizes_[d]);
    }
    return sizes;
  }
  interpret::Buffer gather(size_t k) {
    const OperandSignature& operand = signature(k);
    interpret::Buffer buffer(operand.dtype, sizes_of(k));
    const size_t size = dtype_size(operand.dtype);
    visit(k, [&](int64_t i, int64_t offset) {
      std::byte* to = buffer.bytes.data() + i * size;
      if (operand.kind == OperandKind::Tensor) {
        std::memcpy(to, memory_[k].data() + kGuard + offset * size, size);
        if (operand.dtype == DType::Bool && k < spec_.inputs.size()) *to = std::byte{*to != std::byte{0}};
      } else {
        const uint64_t value = scalars_[k] + (operand.kind == OperandKind::Index ? static_cast<uint64_t>(offset) : 0);
        std::memcpy(to, &value, size);
      }
    });
    return buffer;
  }

  const RegionSpec& spec_;
  std::vector<int64_t> sizes_;
  std::mt19937 random_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<void*> pointers_;
  std::vector<int64_t> strides_;
  std::vector<uint64_t> scalars_;
};

// The targets that this processor can run.
inline std::vector<HostTarget> runnable_targets() {
  if (detected_host_target() == HostTarget::Avx512) return {HostTarget::Avx2, HostTarget::Avx512};
  return {HostTarget::Avx2};
}

// Compiled once for all the sizes that a test tries.
inline std::shared_ptr<const Executable> compiled(const RegionSpec& spec, HostTarget target) {
  static std::map<std::pair<std::string, HostTarget>, std::shared_ptr<const Executable>> kept;
  auto& executable = kept[{region_signature(spec), target}];
  if (!executable) executable = host_compiler().compile_for(spec, target);
  return executable;
}

// Compiles for every runnable target, runs with one and two threads, and compares with the interpreter within `ulps`
// and the runs with each other bit by bit.
inline void check_region(const RegionSpec& spec, const std::vector<int64_t>& sizes, double ulps = 0,
                         bool special_values = false, double low = -4, double high = 4) {
  RegionRun run(spec, sizes);
  run.special_values = special_values;
  run.low = low;
  run.high = high;
  run.fill();
  const auto expected = run.expected();
  std::vector<interpret::Buffer> first;
  for (HostTarget target : runnable_targets()) {
    auto executable = compiled(spec, target);
    for (int threads : {1, 2}) {
      run.threads = threads;
      auto outputs = run.run(*executable);
      EXPECT_TRUE(RegionRun::same(outputs, expected, ulps))
          << host_target_name(target) << ", " << threads << " threads";
      if (first.empty()) first = outputs;
      EXPECT_TRUE(RegionRun::same(outputs, first))
          << host_target_name(target) << ", " << threads << " threads, against the first run";
    }
  }
}

}  // namespace neuron::codegen
