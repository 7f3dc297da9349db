// Streams, late errors, poison, events and threads of the eager layer, with kernels of the test's own.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "neuron/base/error.h"
#include "neuron/eager/recorder.h"
#include "neuron/eager/stream.h"
#include "neuron/runtime/allocator.h"
#include "tests/core/eager_fixture.h"

namespace neuron::eager {
namespace {

void run_failure(const kernels::Call& call) { fail(ErrorKind::Index, "index 7 is out of range"); }
std::atomic<int> raising_runs{0};
void run_counted(const kernels::Call&) { ++raising_runs; }

const kernels::Kernel failure{"test_failure", run_failure, true};
const kernels::Kernel counted{"test_counted", run_counted, true};

struct Device : EagerTest {
  void run(const kernels::Kernel& kernel, runtime::Block* out, runtime::Block* in, Stream* on = nullptr) {
    TensorArgument output = tensor(out), input = tensor(in);
    record_kernel(on ? *on : stream, kernel, {&output, 1}, {&input, 1}, {}, {}, false, 1);
  }
};

TEST_F(Device, NothingRunsBeforeSomebodyAsks) {
  runtime::Block* a = block();
  run(increment, a, a);
  EXPECT_EQ(value(a), 0.0f);
  EXPECT_TRUE(has_pending_work(stream));
  synchronize_for_read(stream, a, FlushReason::HostRead);
  EXPECT_EQ(value(a), 1.0f);
  EXPECT_FALSE(has_pending_work(stream));
}

TEST_F(Device, AFailureIsRaisedOnceAndPoisonsWhatItShouldHaveWritten) {
  runtime::Block *a = block(), *b = block(), *c = block(), *d = block();
  run(failure, b, a);
  run(increment, c, b);  // reads b: skipped and poisoned too
  run(increment, d, a);  // does not
  try {
    synchronize(stream, FlushReason::Synchronize);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Index);
    EXPECT_NE(std::string(error.what()).find("index 7 is out of range"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("test_failure(f32[4])"), std::string::npos) << error.what();
  }
  synchronize(stream, FlushReason::Synchronize);  // cleared
  EXPECT_EQ(value(d), 1.0f);
  EXPECT_THROW(synchronize_for_read(stream, c, FlushReason::HostRead), Error);
  EXPECT_THROW(synchronize_for_read(stream, b, FlushReason::HostRead), Error);
  synchronize_for_read(stream, d, FlushReason::HostRead);
  // Writing it anew makes the storage good again.
  run(increment, c, a);
  synchronize_for_read(stream, c, FlushReason::HostRead);
  EXPECT_EQ(value(c), 1.0f);
}

TEST_F(Device, ALateErrorNamesTheLocationTheProviderGave) {
  runtime::Block *a = block(), *b = block();
  set_location_provider([] { return "train.py:12 in step"; });
  run(failure, b, a);
  set_location_provider(nullptr);
  run(increment, b, a);
  try {
    synchronize(stream, FlushReason::Synchronize);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("test_failure(f32[4]), recorded at train.py:12 in step)"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(Device, BlockingModeRaisesAtTheCall) {
  runtime::Block *a = block(), *b = block();
  set_mode(Mode::Blocking);
  EXPECT_THROW(run(failure, b, a), Error);
  run(increment, b, a);
  EXPECT_EQ(value(b), 1.0f);
}

TEST_F(Device, ACommandThatCanRaiseRunsThoughItsOutputDied) {
  runtime::Block *a = block(), *b = block();
  int before = raising_runs;
  run(counted, b, a);
  blocks.pop_back();
  record_death(b);
  runtime::free(b);
  synchronize(stream, FlushReason::Synchronize);
  EXPECT_EQ(raising_runs, before + 1);
}

TEST_F(Device, AnotherStreamWaitsForAnEvent) {
  Stream& side = create_stream(0, 0);
  runtime::Block* a = block();
  for (int round = 0; round < 50; ++round) {
    auto event = create_event(true), done = create_event(true);
    run(increment, a, a);
    record_event(stream, event);
    wait_event(side, event);
    run(increment, a, a, &side);
    record_event(side, done);
    wait_event(stream, done);
  }
  run(increment, a, a);
  synchronize(stream, FlushReason::Synchronize);
  EXPECT_EQ(value(a), 101.0f);
}

TEST_F(Device, EventsMeasureTheTimeBetweenThem) {
  auto start = create_event(true), end = create_event(true);
  EXPECT_TRUE(query_event(*start));
  EXPECT_THROW(elapsed_milliseconds(*start, *end), Error);
  record_event(stream, start);
  record_callback(stream, [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
  record_event(stream, end);
  synchronize_event(*end);
  double elapsed = elapsed_milliseconds(*start, *end);
  EXPECT_GE(elapsed, 19.0);
  EXPECT_LT(elapsed, 2000.0);
  EXPECT_EQ(elapsed_milliseconds(*end, *end), 0.0);
}

TEST_F(Device, CallbacksRunInOrderAndTheirErrorsAreLate) {
  runtime::Block* a = block();
  float seen = -1;
  run(increment, a, a);
  record_callback(stream, [&] { seen = value(a); });
  run(increment, a, a);
  synchronize(stream, FlushReason::Synchronize);
  EXPECT_EQ(seen, 1.0f);
  record_callback(stream, [] { fail(ErrorKind::Value, "bad callback"); });
  EXPECT_THROW(synchronize(stream, FlushReason::Synchronize), Error);
}

TEST_F(Device, SeveralThreadsRecordIntoOneStream) {
  runtime::Block* counters[4];
  for (auto& counter : counters) counter = block();
  std::vector<std::thread> threads;
  for (auto* counter : counters) {
    threads.emplace_back([&, counter] {
      for (int i = 0; i < 1000; ++i) run(increment, counter, counter);
    });
  }
  for (auto& thread : threads) thread.join();
  synchronize(stream, FlushReason::Synchronize);
  for (auto* counter : counters) EXPECT_EQ(value(counter), 1000.0f);
}

TEST_F(Device, DeathsAloneDoNotFillAWindow) {
  runtime::Block* a = block();
  run(increment, a, a);
  for (int i = 0; i < 20000; ++i) {
    runtime::Block* unused = runtime::allocate(0, 16, stream_id(stream));
    record_death(unused);
    runtime::free(unused);
  }
  for (int i = 0; i < 1000 && has_pending_work(stream); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(value(a), 1.0f);
}

TEST_F(Device, AfterAWaitTheFirstWindowsAreShort) {
  runtime::Block* a = block();
  synchronize(stream, FlushReason::Synchronize);
  std::vector<int> ends;  // how many commands had been recorded when a window was handed over
  for (int recorded = 1; recorded <= 400; ++recorded) {
    const uint64_t before = stream.queue().submitted();
    run(increment, a, a);
    if (stream.queue().submitted() != before) ends.push_back(recorded);
  }
  ASSERT_GE(ends.size(), 3u);
  EXPECT_EQ(std::vector(ends.begin(), ends.begin() + 3), (std::vector{48, 48 + 96, 48 + 96 + 192}));
  synchronize_for_read(stream, a, FlushReason::HostRead);
  EXPECT_EQ(value(a), 400.0f);
  // A wait begins anew, and so it is in each round.
  const uint64_t before = stream.queue().submitted();
  for (int recorded = 1; recorded <= 48; ++recorded) run(increment, a, a);
  EXPECT_EQ(stream.queue().submitted(), before + 1);
}

TEST_F(Device, ForeignMemoryIsHeldUntilTheCommandRan) {
  auto owner = std::make_shared<std::vector<float>>(4, 41.0f);
  std::weak_ptr<std::vector<float>> watch = owner;
  runtime::Block* a = block();
  TensorArgument output = tensor(a);
  TensorArgument input{owner->data(), nullptr, DType::Float32, kFour, kDense, owner};
  record_kernel(stream, increment, {&output, 1}, {&input, 1}, {}, {}, false, 1);
  input.owner.reset();
  owner.reset();
  EXPECT_FALSE(watch.expired());
  synchronize(stream, FlushReason::Synchronize);
  EXPECT_EQ(value(a), 42.0f);
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace neuron::eager
