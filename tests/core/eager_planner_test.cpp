// The planner on windows built by hand: the order of regions whose commands share addresses.
#include "neuron/eager/planner.h"

#include <gtest/gtest.h>

#include <array>

namespace neuron::eager {
namespace {

void run_nothing(const kernels::Call&) {}
const kernels::Kernel kernel{"test_kernel", run_nothing, false};

// Blocks of one piece of memory, and commands over whole blocks of float32.
class WindowBuilder {
 public:
  struct Range {
    runtime::Block block;
    int64_t size = 0;
  };

  Range& range(int64_t first, int64_t size) {
    Range& result = ranges_.at(used_++);
    result.block.address = memory_.data() + first;
    result.block.generation = ++generation_;
    result.size = size;
    return result;
  }
  void record_kernel(Range& output, Range& input) { add(CommandKind::Kernel, output, input).kernel = &kernel; }
  void record_negation(Range& output, Range& input) {
    Command& command = add(CommandKind::Region, output, input);
    command.op = lowering::find_operator("neg");
    command.rank = 1;
    command.sizes = command.operands[0].sizes;
  }
  void record_death(Range& range) {
    window_.deaths.push_back({static_cast<uint32_t>(window_.commands.size()), &range.block, range.block.generation});
  }
  std::vector<int32_t> regions() {
    Planner planner;
    Plan plan;
    planner.plan(window_, true, plan);
    std::vector<int32_t> result;
    for (const PlannedCommand& command : plan.commands) result.push_back(command.region);
    return result;
  }

 private:
  Command& add(CommandKind kind, Range& output, Range& input) {
    Command& command = window_.commands.emplace_back();
    command = Command{};
    command.kind = kind;
    command.common = DType::Float32;
    command.output_count = command.input_count = 1;
    command.callback = -1;
    command.operands = window_.arena.allocate<Operand>(2);
    command.operands[0] = operand(output);
    command.operands[1] = operand(input);
    return command;
  }
  Operand operand(Range& range) {
    static constexpr int64_t kStride = 1;
    Operand result{};
    result.kind = codegen::OperandKind::Tensor;
    result.dtype = DType::Float32;
    result.rank = 1;
    result.block = &range.block;
    result.generation = range.block.generation;
    result.data = result.low = static_cast<char*>(range.block.address);
    result.high = result.low + range.size * sizeof(float);
    result.sizes = window_.arena.copy(std::span<const int64_t>(&range.size, 1));
    result.strides = window_.arena.copy(std::span<const int64_t>(&kStride, 1));
    return result;
  }

  std::array<float, 256> memory_{};
  std::array<Range, 16> ranges_;
  size_t used_ = 0;
  uint64_t generation_ = 0;
  Window window_;
};

// Segments are divided and merged between uses: a block may have been part of another one, and that of a third. An old
// write over the whole of it says nothing about what happened since in the blocks that it was divided into.
TEST(Planner, AWriteWaitsForReadsOfEveryBlockThatHadItsMemory) {
  WindowBuilder window;
  auto &large = window.range(0, 32), &part = window.range(16, 16), &reused = window.range(16, 16);
  auto &x = window.range(64, 32), &y = window.range(96, 16), &z = window.range(112, 16), &t = window.range(128, 16);
  window.record_kernel(large, x);
  window.record_death(large);
  window.record_kernel(part, t);
  window.record_negation(y, t);
  window.record_kernel(z, part);
  window.record_death(part);
  window.record_negation(reused, y);  // by its input alone it could join the region of y
  EXPECT_EQ(window.regions(), (std::vector<int32_t>{0, 1, 2, 3, 4}));
}

// The same without the reader: the two negations are one region.
TEST(Planner, AWriteOverMemoryThatNobodyReadsJoinsItsProducer) {
  WindowBuilder window;
  auto &large = window.range(0, 32), &part = window.range(16, 16), &reused = window.range(16, 16);
  auto &x = window.range(64, 32), &y = window.range(96, 16), &t = window.range(128, 16);
  window.record_kernel(large, x);
  window.record_death(large);
  window.record_kernel(part, t);
  window.record_death(part);
  window.record_negation(y, t);
  window.record_negation(reused, y);
  EXPECT_EQ(window.regions(), (std::vector<int32_t>{0, 1, 2, 2}));
}

}  // namespace
}  // namespace neuron::eager
