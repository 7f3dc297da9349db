// List commands: the items run like commands recorded one after the other, stay together in regions, and come back
// from prepared plans.
#include <gtest/gtest.h>

#include "neuron/base/error.h"
#include "neuron/eager/list_recording.h"
#include "neuron/eager/recorder.h"
#include "neuron/eager/stream.h"
#include "neuron/runtime/allocator.h"
#include "tests/core/eager_fixture.h"

namespace neuron::eager {
namespace {

constexpr int kItems = 5;

struct Lists : EagerTest {
  void SetUp() override {
    set_synchronous_compile(true);
    reset_statistics();
  }
  static int64_t count_of(int item) { return 3 + 20 * item; }
  std::vector<FlatArgument> list(float first) {
    std::vector<FlatArgument> result;
    for (int item = 0; item < kItems; ++item) {
      const size_t bytes = static_cast<size_t>(count_of(item)) * sizeof(float);
      blocks.push_back(runtime::allocate(0, bytes, stream_id(stream)));
      std::fill_n(static_cast<float*>(blocks.back()->address), count_of(item), first + static_cast<float>(item));
      result.push_back({blocks.back()->address, blocks.back(), DType::Float32, false});
    }
    return result;
  }
  // x = x op y, item by item.
  void apply(const char* name, const std::vector<FlatArgument>& x, const std::vector<FlatArgument>& y) {
    ListRecording recording(stream, *lowering::find_operator(name), DType::Float32, false, 1, 2, {}, kItems, 1);
    for (int item = 0; item < kItems; ++item) {
      recording.begin_item(count_of(item));
      recording.add_output(x[item]);
      recording.add_input(x[item]);
      recording.add_input(y[item]);
    }
    recording.finish();
  }
  void scale(const std::vector<FlatArgument>& x, double factor) {
    ListRecording recording(stream, *lowering::find_operator("mul"), DType::Float32, false, 1, 2, {}, kItems, 1);
    for (int item = 0; item < kItems; ++item) {
      recording.begin_item(count_of(item));
      recording.add_output(x[item]);
      recording.add_input(x[item]);
      recording.add_input(Scalar::of(factor + item));
    }
    recording.finish();
  }
  static void expect(const std::vector<FlatArgument>& x, int item, float value) {
    const auto* data = static_cast<const float*>(x[item].data);
    for (int64_t i = 0; i < count_of(item); ++i) ASSERT_EQ(data[i], value) << "item " << item << ", element " << i;
  }
};

TEST_F(Lists, ItemsAreCommandsOfTheirOwnAndFuseAlongEachItem) {
  auto x = list(1), y = list(10);
  for (int round = 1; round <= 3; ++round) {  // planned, prepared, replayed
    Statistics before = statistics();
    scale(x, 2);
    apply("add_unscaled", x, y);
    apply("mul", x, y);
    synchronize(stream, FlushReason::Synchronize);
    Statistics after = statistics();
    EXPECT_EQ(after.region_commands - before.region_commands, 3u * kItems);
    EXPECT_EQ(after.regions_run - before.regions_run, static_cast<uint64_t>(kItems));
    EXPECT_EQ(after.plan_hits - before.plan_hits, round == 3 ? 1u : 0u);
    if (round > 1) continue;
    for (int item = 0; item < kItems; ++item) {
      const float a = 1.0f + static_cast<float>(item), b = 10.0f + static_cast<float>(item);
      expect(x, item, (a * (2.0f + static_cast<float>(item)) + b) * b);
    }
  }
}

TEST_F(Lists, ItemsOnTheSameMemoryRunInOrder) {
  auto x = list(1), y = list(10);
  std::vector<FlatArgument> same(kItems, x[kItems - 1]);
  for (auto mode : {Mode::Immediate, Mode::Adaptive}) {
    set_mode(mode);
    std::fill_n(static_cast<float*>(same[0].data), count_of(kItems - 1), 1.0f);
    scale(same, 1);  // 1 * 2 * 3 * 4 * 5, over ever more elements
    synchronize(stream, FlushReason::Synchronize);
    EXPECT_EQ(static_cast<float*>(same[0].data)[0], 120.0f);
    EXPECT_EQ(static_cast<float*>(same[0].data)[count_of(0)], 120.0f);
    EXPECT_EQ(static_cast<float*>(same[0].data)[count_of(3)], 5.0f);
  }
}

TEST_F(Lists, SumsOfEachItem) {
  auto x = list(1), sums = list(0);
  ListRecording recording(stream, *lowering::find_operator("sum"), DType::Float32, true, 1, 1, {}, kItems, 1);
  for (int item = 0; item < kItems; ++item) {
    recording.begin_item(count_of(item));
    recording.add_output(sums[item]);
    recording.add_input(x[item]);
  }
  recording.finish();
  synchronize(stream, FlushReason::Synchronize);
  for (int item = 0; item < kItems; ++item) {
    EXPECT_EQ(static_cast<float*>(sums[item].data)[0], static_cast<float>((1 + item) * count_of(item)));
    EXPECT_EQ(static_cast<float*>(sums[item].data)[1], static_cast<float>(item));  // not written
  }
}

void run_failure(const kernels::Call&) { fail(ErrorKind::Index, "index 7 is out of range"); }
const kernels::Kernel failure{"test_list_failure", run_failure, true};

TEST_F(Lists, AnItemWithoutAValueDoesNotStopTheOthers) {
  auto x = list(0), y = list(10);
  for (int round = 0; round < 4; ++round) {  // planned, prepared, replayed
    {
      ListRecording recording(stream, *lowering::find_operator("fill"), DType::Float32, false, 1, 1, {}, kItems, 1);
      for (int item = 0; item < kItems; ++item) {
        recording.begin_item(count_of(item));
        recording.add_output(x[item]);
        recording.add_input(Scalar::of(1.0));
      }
      recording.finish();
    }
    synchronize(stream, FlushReason::Synchronize);
    const int64_t sizes[] = {count_of(2)}, strides[] = {1};
    const TensorArgument broken{x[2].data, x[2].block, DType::Float32, sizes, strides, nullptr};
    record_kernel(stream, failure, {&broken, 1}, {}, {}, {}, false, 1);
    scale(x, 2);
    apply("add_unscaled", x, y);
    EXPECT_THROW(synchronize(stream, FlushReason::Synchronize), Error);
    for (int item : {0, 1, 3, 4}) {
      synchronize_for_read(stream, x[item].block, FlushReason::HostRead);
      expect(x, item, 2.0f + static_cast<float>(item) + 10.0f + static_cast<float>(item));
    }
    EXPECT_THROW(synchronize_for_read(stream, x[2].block, FlushReason::HostRead), Error) << "round " << round;
  }
}

TEST_F(Lists, WhatIsNotFinishedIsNotRecorded) {
  auto x = list(1);
  {
    ListRecording recording(stream, *lowering::find_operator("mul"), DType::Float32, false, 1, 2, {}, kItems, 1);
    recording.begin_item(count_of(0));
    recording.add_output(x[0]);
  }
  {
    ListRecording recording(stream, *lowering::find_operator("mul"), DType::Float32, false, 1, 2, {}, kItems, 1);
    recording.finish();  // of no items
  }
  EXPECT_FALSE(has_pending_work(stream));
  scale(x, 2);
  synchronize(stream, FlushReason::Synchronize);
  expect(x, 0, 2.0f);
}

}  // namespace
}  // namespace neuron::eager
