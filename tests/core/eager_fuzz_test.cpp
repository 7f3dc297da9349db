// Random programs on raw blocks (views with overlapping storage, in-place writes, deaths, recycled memory, row
// operators, library kernels) give the same bits fused and unfused.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "neuron/eager/recorder.h"
#include "neuron/runtime/allocator.h"

namespace neuron::eager {
namespace {

// A kernel of the test: output[i] = input[n - 1 - i] for one-dimensional views.
void run_reverse(const kernels::Call& call) {
  const kernels::TensorView &from = call.inputs[0], &to = call.outputs[0];
  int64_t count = to.sizes[0];
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = from.as<float>()[(count - 1 - i) * from.strides[0]];
  for (int64_t i = 0; i < count; ++i) to.as<float>()[i * to.strides[0]] = values[i];
}
const kernels::Kernel reverse_kernel{"test_reverse", run_reverse, false};

struct View {
  size_t tensor = 0;
  int64_t offset = 0;
  Dims sizes, strides;
};

struct Tensor {
  runtime::Block* block = nullptr;
  int64_t numel = 0;
};

bool column_sums = true;

class Program {
 public:
  explicit Program(uint32_t seed) : random_(seed) {}

  std::vector<float> run() {
    Stream& stream = default_stream(0);
    for (int i = 0; i < 3; ++i) new_tensor();
    int steps = 30 + pick(60);
    for (int i = 0; i < steps; ++i) step(stream);
    synchronize(stream, FlushReason::Synchronize);
    std::vector<float> result;
    for (Tensor& tensor : tensors_) {
      const auto* data = static_cast<const float*>(tensor.block->address);
      result.insert(result.end(), data, data + tensor.numel);
    }
    while (!tensors_.empty()) destroy(tensors_.size() - 1);
    synchronize(stream, FlushReason::Synchronize);
    return result;
  }

 private:
  int pick(int count) { return static_cast<int>(random_() % count); }

  TensorArgument argument(const View& view) {
    Tensor& tensor = tensors_[view.tensor];
    return {static_cast<float*>(tensor.block->address) + view.offset,
            tensor.block,
            DType::Float32,
            view.sizes,
            view.strides,
            nullptr};
  }

  void new_tensor() {
    int64_t numel = pick(2) ? 48 : 96;
    tensors_.push_back({runtime::allocate(0, numel * sizeof(float), stream_id(default_stream(0))), numel});
    View all{tensors_.size() - 1, 0, Dims{numel}, Dims{1}};
    RegionInput index{codegen::OperandKind::Index, {}, Scalar::of(int64_t{pick(7)}), all.strides};
    TensorArgument output = argument(all);
    record("copy", all.sizes, 0, {&output, 1}, {&index, 1}, DType::Float32);
  }

  void destroy(size_t index) {
    record_death(tensors_[index].block);
    runtime::free(tensors_[index].block);
    tensors_.erase(tensors_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  // A view of `count` elements shaped [count/inner, inner], contiguous, strided, transposed or overlapping.
  View random_view(int64_t count, bool writable) {
    View view;
    view.tensor = pick(static_cast<int>(tensors_.size()));
    int64_t numel = tensors_[view.tensor].numel;
    int64_t inner = 4;
    view.sizes = Dims{count / inner, inner};
    switch (pick(writable ? 3 : 4)) {
      case 0:
        view.strides = Dims{inner, 1};
        break;
      case 1:
        view.strides = Dims{1, count / inner};
        break;
      case 2:
        view.strides = numel >= 2 * count ? Dims{2 * inner, 2} : Dims{inner, 1};
        break;
      case 3:
        view.strides = pick(2) ? Dims{1, 1} : Dims{0, 1};
        break;
    }
    int64_t reach = (view.sizes[0] - 1) * view.strides[0] + (view.sizes[1] - 1) * view.strides[1];
    if (reach >= numel) {
      view.strides = Dims{0, 1};
      if (writable) return random_view(count, writable);
      reach = inner - 1;
    }
    view.offset = pick(3) == 0 ? pick(static_cast<int>(numel - reach)) : 0;
    return view;
  }

  void record(std::string_view name, std::span<const int64_t> sizes, uint64_t reduced,
              std::span<const TensorArgument> outputs, std::span<const RegionInput> inputs, DType common) {
    const lowering::Operator* op = lowering::find_operator(name);
    ASSERT_NE(op, nullptr) << name;
    record_region(default_stream(0), *op, common, sizes, reduced, outputs, inputs, {}, 1);
  }

  RegionInput tensor_input(const View& view) { return {codegen::OperandKind::Tensor, argument(view), {}, {}}; }

  View output_view(int64_t count) {
    if (pick(2)) return random_view(count, true);
    tensors_.push_back({runtime::allocate(0, count * sizeof(float), stream_id(default_stream(0))), count});
    return {tensors_.size() - 1, 0, Dims{count / 4, 4}, Dims{4, 1}};
  }

  bool overlaps_differently(const View& a, const View& b) {
    if (a.tensor != b.tensor) return false;
    return a.offset != b.offset || !(a.strides == b.strides);
  }

  void step(Stream& stream) {
    int64_t count = pick(2) ? 24 : 12;
    int kind = pick(10);
    if (kind == 0 && tensors_.size() > 3) return destroy(3 + pick(static_cast<int>(tensors_.size()) - 3));
    if (kind == 1) {
      View from{static_cast<size_t>(pick(static_cast<int>(tensors_.size()))), 0, Dims{12}, Dims{1}};
      View to{static_cast<size_t>(pick(static_cast<int>(tensors_.size()))), 0, Dims{12}, Dims{2}};
      TensorArgument output = argument(to), input = argument(from);
      record_kernel(stream, reverse_kernel, {&output, 1}, {&input, 1}, {}, {}, false, 1);
      return;
    }
    View a = random_view(count, false), b = random_view(count, false);
    // A fresh output is written completely, so that no program reads memory nobody wrote.
    View out = kind == 2 || kind == 3 ? random_view(count, true) : output_view(count);
    // PyTorch refuses or leaves undefined an output that partly overlaps an input of the same operation.
    if (overlaps_differently(out, a) || overlaps_differently(out, b)) {
      // Nobody wrote a fresh output.
      bool fresh = out.tensor + 1 == tensors_.size() && tensors_[out.tensor].numel == count && out.offset == 0;
      if (fresh && tensors_.size() > 3) destroy(out.tensor);
      return;
    }
    if (kind == 2) {
      View row{out.tensor, out.offset, Dims{out.sizes[0]}, Dims{out.strides[0]}};
      if (out.tensor == a.tensor) return;
      TensorArgument output = argument(row);
      RegionInput input = tensor_input(a);
      if (pick(2)) {
        // Sum, something per row in place, and the row's value used over the whole row again.
        record("sum", a.sizes, 2, {&output, 1}, {&input, 1}, DType::Float32);
        RegionInput rows[] = {
            tensor_input(row), tensor_input(row), {codegen::OperandKind::Scalar, {}, Scalar::of(0.25), {}}};
        record("add", row.sizes, 0, {&output, 1}, rows, DType::Float32);
        View spread{row.tensor, row.offset, a.sizes, Dims{row.strides[0], 0}};
        View whole = random_view(count, true);
        if (overlaps_differently(whole, a) || whole.tensor == row.tensor) whole = {0, 0, a.sizes, Dims{4, 1}};
        if (overlaps_differently(whole, a) || whole.tensor == row.tensor) return;
        TensorArgument result = argument(whole);
        RegionInput both[] = {tensor_input(a), tensor_input(spread)};
        return record("mul", a.sizes, 0, {&result, 1}, both, DType::Float32);
      }
      return record("sum", a.sizes, 2, {&output, 1}, {&input, 1}, DType::Float32);
    }
    if (kind == 3 && column_sums) {
      if (out.tensor == a.tensor) return;
      View column{out.tensor, out.offset, Dims{out.sizes[1]}, Dims{out.strides[1]}};
      TensorArgument output = argument(column);
      RegionInput input = tensor_input(a);
      return record("sum", a.sizes, 1, {&output, 1}, {&input, 1}, DType::Float32);
    }
    TensorArgument output = argument(out);
    RegionInput inputs[] = {tensor_input(a), tensor_input(b), {codegen::OperandKind::Scalar, {}, Scalar::of(0.5), {}}};
    if (kind < 7) return record("add", a.sizes, 0, {&output, 1}, inputs, DType::Float32);
    return record("mul", a.sizes, 0, {&output, 1}, std::span(inputs, 2), DType::Float32);
  }

  std::mt19937 random_;
  std::vector<Tensor> tensors_;
};

bool equal_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    bool both_nan = a[i] != a[i] && b[i] != b[i];
    if (!both_nan && std::memcmp(&a[i], &b[i], sizeof(float)) != 0) return false;
  }
  return true;
}

void compare_modes(int programs) {
  set_synchronous_compile(true);
  reset_statistics();
  for (int seed = 1; seed <= programs; ++seed) {
    set_mode(Mode::Immediate);
    std::vector<float> expected = Program(seed).run();
    set_mode(Mode::Adaptive);
    std::vector<float> fused = Program(seed).run();
    ASSERT_TRUE(equal_bits(expected, fused)) << "seed " << seed;
  }
  Statistics counts = statistics();
  EXPECT_GT(counts.fused_commands, counts.region_commands / 8);
}

TEST(EagerFuzz, FusedEqualsUnfusedInterpreted) {
  set_interpret(true);
  compare_modes(300);
  set_interpret(false);
}

// Compiled equals interpreted, unfused and fused; and a program's windows replayed from their plans equal their first
// run.
TEST(EagerFuzz, CompiledEqualsInterpreted) {
  set_synchronous_compile(true);
  column_sums = false;
  for (int seed = 1; seed <= 40; ++seed) {
    set_mode(Mode::Immediate);
    set_interpret(true);
    std::vector<float> expected = Program(seed).run();
    set_interpret(false);
    ASSERT_TRUE(equal_bits(expected, Program(seed).run())) << "immediate, seed " << seed;
    set_mode(Mode::Adaptive);
    set_fusion(false);
    ASSERT_TRUE(equal_bits(expected, Program(seed).run())) << "adaptive without fusion, seed " << seed;
    set_fusion(true);
    for (int round = 1; round <= 3; ++round) {
      ASSERT_TRUE(equal_bits(expected, Program(seed).run())) << "adaptive, seed " << seed << ", round " << round;
    }
  }
}

}  // namespace
}  // namespace neuron::eager
