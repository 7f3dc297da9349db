// The planner on windows built by hand: the order of regions whose commands share addresses, and which windows a plan
// is good for.
#include "neuron/eager/planner.h"

#include <gtest/gtest.h>

#include <array>

#include "neuron/eager/reuse_hazards.h"
#include "neuron/eager/window_signature.h"

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
  // `whole`: of which `input` is a part.
  void record_kernel(Range& output, Range& input, Range* whole = nullptr) {
    Command& command = add(CommandKind::Kernel, output, input);
    command.kernel = &kernel;
    if (whole == nullptr) return;
    command.operands[1].block = &whole->block;
    command.operands[1].generation = whole->block.generation;
  }
  void record_negation(Range& output, Range& input) {
    Command& command = add(CommandKind::Region, output, input);
    command.op = lowering::find_operator("neg");
    command.rank = 1;
    command.sizes = command.operands[0].sizes;
  }
  void record_death(Range& range) {
    window_.deaths.push_back({static_cast<uint32_t>(window_.commands.size()), &range.block, range.block.generation});
  }
  void use_other_streams() { window_.other_streams = true; }
  const Window& window() const { return window_; }
  const Plan& plan() {
    Planner().plan(window_, true, plan_);
    return plan_;
  }
  std::vector<int32_t> regions() {
    const Plan& plan = this->plan();
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
  Plan plan_;
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

// What a step of a model does whose cache grows: a library kernel over `keys` elements, and work of a fixed size.
void record_step(WindowBuilder& builder, int64_t keys, int64_t reused_at, bool result_dies = false) {
  auto &cache = builder.range(0, keys), &longer = builder.range(64, keys + 1), &x = builder.range(160, 8),
       &y = builder.range(176, 8), &z = builder.range(reused_at, 8);
  builder.record_negation(y, x);
  builder.record_kernel(longer, cache);
  builder.record_death(cache);
  builder.record_death(x);
  if (result_dies) builder.record_death(longer);
  builder.record_negation(z, y);  // joins the region of y: before the kernel
}

WindowSignature signature_of(const WindowBuilder& builder) { return SignatureBuilder().build(builder.window()); }

TEST(WindowSignature, SizesOfLibraryKernelsAndReuseOfMemoryAreNoPartOfIt) {
  WindowBuilder one, longer, reusing, other;
  record_step(one, 20, 192);
  record_step(longer, 21, 192);
  record_step(reusing, 20, 0);
  EXPECT_EQ(signature_of(one), signature_of(longer));
  EXPECT_EQ(signature_of(one), signature_of(reusing));
  auto &x = other.range(0, 8), &y = other.range(8, 8);
  other.record_negation(y, x);
  WindowBuilder wider;
  auto &a = wider.range(0, 9), &b = wider.range(16, 9);
  wider.record_negation(b, a);
  EXPECT_NE(signature_of(other), signature_of(wider));
}

// Values and the order of what happens to them are.
TEST(WindowSignature, TellsValuesApart) {
  WindowBuilder same, different, dying;
  auto &x = same.range(0, 8), &y = same.range(8, 8), &z = same.range(16, 8);
  same.record_kernel(y, x);
  same.record_kernel(z, x);
  auto &u = different.range(0, 8), &v = different.range(8, 8), &w = different.range(16, 8);
  different.record_kernel(v, u);
  different.record_kernel(w, v);
  auto &r = dying.range(0, 8), &s = dying.range(8, 8), &t = dying.range(16, 8);
  dying.record_kernel(s, r);
  dying.record_kernel(t, r);
  dying.record_death(r);
  EXPECT_NE(signature_of(same), signature_of(different));
  EXPECT_NE(signature_of(same), signature_of(dying));
}

// Ranges of one value are told by the order of their ends.
TEST(WindowSignature, TellsHowRangesOfAValueLie) {
  auto record = [](WindowBuilder& builder, int64_t first, int64_t second) {
    auto &whole = builder.range(0, 32), &part = builder.range(first, second);
    auto &x = builder.range(64, 32), &y = builder.range(96, second);
    builder.record_kernel(whole, x);
    builder.record_kernel(y, part, &whole);
  };
  WindowBuilder inside, also_inside, to_the_end, beyond;
  record(inside, 4, 8);
  record(also_inside, 5, 9);
  record(to_the_end, 4, 28);
  record(beyond, 4, 40);
  EXPECT_EQ(signature_of(inside), signature_of(also_inside));
  EXPECT_NE(signature_of(inside), signature_of(to_the_end));
  EXPECT_NE(signature_of(inside), signature_of(beyond));
}

TEST(ReuseHazards, APlanIsForWindowsWhoseMemoryAllowsItsOrder) {
  WindowBuilder planned, elsewhere, over_the_source, over_the_result, over_part;
  record_step(planned, 20, 192);
  std::vector<ReuseHazard> hazards;
  EXPECT_EQ(planned.regions(), (std::vector<int32_t>{0, 1, 0}));
  ASSERT_TRUE(find_reuse_hazards(planned.plan(), planned.window(), hazards));
  EXPECT_TRUE(keeps_values_apart(hazards, planned.window()));
  record_step(elsewhere, 21, 200);
  EXPECT_TRUE(keeps_values_apart(hazards, elsewhere.window()));
  // z takes the memory of the cache, which the kernel reads after the region of z.
  record_step(over_the_source, 21, 0);
  EXPECT_FALSE(keeps_values_apart(hazards, over_the_source.window()));
  EXPECT_EQ(over_the_source.regions(), (std::vector<int32_t>{0, 1, 2}));
  // z over a part of what the same region reads.
  record_step(over_part, 21, 164);
  EXPECT_FALSE(keeps_values_apart(hazards, over_part.window()));

  WindowBuilder planned_to_die;
  record_step(planned_to_die, 20, 192, true);
  ASSERT_TRUE(find_reuse_hazards(planned_to_die.plan(), planned_to_die.window(), hazards));
  record_step(over_the_result, 21, 64, true);
  EXPECT_EQ(signature_of(over_the_result), signature_of(planned_to_die));
  EXPECT_FALSE(keeps_values_apart(hazards, over_the_result.window()));
}

// Memory whose value lives to the end of the window cannot be taken by another one, unless deaths are told elsewhere.
TEST(ReuseHazards, OnlyMemoryThatWasFreeInTimeIsLookedAt) {
  auto record = [](WindowBuilder& builder, bool dies_first) {
    auto &source = builder.range(0, 20), &copy = builder.range(64, 20), &x = builder.range(160, 8),
         &y = builder.range(176, 8), &z = builder.range(192, 8);
    builder.record_negation(y, x);
    builder.record_kernel(copy, source);
    if (dies_first) builder.record_death(source);
    builder.record_negation(z, y);
    if (!dies_first) builder.record_death(source);
  };
  auto hazards_of = [](WindowBuilder& builder) {
    std::vector<ReuseHazard> hazards;
    EXPECT_TRUE(find_reuse_hazards(builder.plan(), builder.window(), hazards));
    return hazards.size();
  };
  WindowBuilder freed, too_late, elsewhere;
  record(freed, true);
  record(too_late, false);
  record(elsewhere, false);
  elsewhere.use_other_streams();
  EXPECT_EQ(hazards_of(freed), 1u);  // z with the source of the kernel
  EXPECT_EQ(hazards_of(too_late), 0u);
  EXPECT_GT(hazards_of(elsewhere), 1u);  // and with what else the commands before use
  EXPECT_NE(signature_of(too_late), signature_of(elsewhere));
}

// A result in the memory of what it is made from: where the plan allows it, and nowhere else.
TEST(ReuseHazards, TheSameElementsMayCoincideWhereThePlanAllowsIt) {
  WindowBuilder reusing, shifted, apart;
  record_step(reusing, 20, 160);
  EXPECT_EQ(reusing.regions(), (std::vector<int32_t>{0, 1, 0}));
  std::vector<ReuseHazard> hazards;
  ASSERT_TRUE(find_reuse_hazards(reusing.plan(), reusing.window(), hazards));
  EXPECT_TRUE(keeps_values_apart(hazards, reusing.window()));
  record_step(shifted, 20, 161);
  EXPECT_FALSE(keeps_values_apart(hazards, shifted.window()));
  record_step(apart, 20, 200);
  EXPECT_TRUE(keeps_values_apart(hazards, apart.window()));
}

}  // namespace
}  // namespace neuron::eager
