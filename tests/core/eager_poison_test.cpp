// Memory without a value (poison.h): how far a failure reaches, and what ends it, for kernels and for fused regions.
#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include "neuron/base/error.h"
#include "neuron/eager/command_graph.h"
#include "neuron/eager/poison.h"
#include "neuron/eager/recorder.h"
#include "neuron/eager/stream.h"
#include "neuron/runtime/allocator.h"
#include "tests/core/eager_fixture.h"

namespace neuron::eager {
namespace {

bool failing = true;  // read by run_failure when it is executed

void run_failure(const kernels::Call& call) {
  if (failing) fail(ErrorKind::Index, "failure {}", call.attributes[0]);
  run_increment(call);
}
void run_accumulate(const kernels::Call& call) { call.outputs[0].as<float>()[0] += call.inputs[0].as<float>()[0]; }
void run_out_of_memory(const kernels::Call&) { throw std::bad_alloc(); }
void run_unknown(const kernels::Call&) { throw 5; }  // NOLINT: what a foreign library may do

const kernels::Kernel failure{"test_failure", run_failure, true};
const kernels::Kernel accumulate{"test_accumulate", run_accumulate, false};
const kernels::Kernel out_of_memory{"test_out_of_memory", run_out_of_memory, true};
const kernels::Kernel unknown{"test_unknown", run_unknown, true};

constexpr int64_t kCount = 4;
constexpr int64_t kOne[] = {1}, kTwo[] = {2}, kThree[] = {3};
constexpr int64_t kSizes[] = {1, 2, 4};  // sizes[n] has its own address for the spans

struct Poisoned : EagerTest {
  static TensorArgument part(runtime::Block* block, int64_t offset, const int64_t* count, const int64_t (&stride)[1]) {
    return {static_cast<float*>(block->address) + offset, block, DType::Float32, {count, 1}, stride, nullptr};
  }
  void run(const kernels::Kernel& kernel, const TensorArgument& out, const TensorArgument& in, int64_t attribute = 0,
           Stream* on = nullptr, bool reads_outputs = false) {
    record_kernel(recording_stream(on ? *on : stream), kernel, {&out, 1}, {&in, 1}, {&attribute, 1}, {}, reads_outputs,
                  1);
  }
  void run(const kernels::Kernel& kernel, runtime::Block* out, runtime::Block* in, int64_t attribute = 0,
           Stream* on = nullptr) {
    run(kernel, tensor(out), tensor(in), attribute, on);
  }
  // out = a + number, and out = a + b, as regions.
  void add(runtime::Block* out, runtime::Block* a, double number) {
    add(out, {{codegen::OperandKind::Tensor, tensor(a), {}, {}},
              {codegen::OperandKind::Scalar, {}, Scalar::of(number), {}}});
  }
  void add(runtime::Block* out, runtime::Block* a, runtime::Block* b) {
    add(out, {{codegen::OperandKind::Tensor, tensor(a), {}, {}}, {codegen::OperandKind::Tensor, tensor(b), {}, {}}});
  }
  void add(runtime::Block* out, std::vector<RegionInput> inputs) {
    inputs.push_back({codegen::OperandKind::Scalar, {}, Scalar::of(1.0), {}});  // alpha
    const TensorArgument output = tensor(out);
    record_region(recording_stream(stream), *lowering::find_operator("add"), DType::Float32, {&kSizes[2], 1}, 0,
                  {&output, 1}, inputs, {}, 1);
  }

  // What a synchronising call raises; empty: nothing.
  template <typename F>
  static std::string raised(F&& body) {
    try {
      body();
    } catch (const Error& error) {
      return std::string(error.what()).substr(0, std::string(error.what()).find('\n'));
    }
    return {};
  }
  std::string wait(Stream* on = nullptr) {
    return raised([&] { synchronize(on ? *on : stream, FlushReason::Synchronize); });
  }
  template <typename What>
  std::string read(What what, Stream* on = nullptr) {
    return raised([&] { synchronize_for_read(on ? *on : stream, what, FlushReason::HostRead); });
  }

  void SetUp() override { failing = true; }
  void TearDown() override {
    while (!blocks.empty()) release(blocks.back());
    for_each_stream([&](Stream& each) { wait(&each); });
    wait();
    EXPECT_FALSE(Poison::instance().any());  // nothing is remembered of what is gone
    EagerTest::TearDown();
  }
};

TEST_F(Poisoned, FollowsABlockToAnotherStream) {
  Stream& side = create_stream(0, 0);
  runtime::Block *a = block(), *b = block(), *c = block(), *d = block();
  auto written = create_event(false);
  run(failure, b, a);
  record_event(stream, written);
  wait_event(side, written);
  run(increment, c, b, 0, &side);
  run(increment, d, a, 0, &side);
  EXPECT_EQ(wait(&side), "");  // the failure is the other stream's
  EXPECT_EQ(wait(), "failure 0");
  EXPECT_EQ(read(c, &side), "failure 0");
  EXPECT_EQ(read(c), "failure 0");
  EXPECT_EQ(read(d, &side), "");
  EXPECT_EQ(value(d), 1.0f);
  run(increment, b, a, 0, &side);  // written anew by a stream that did not fail
  EXPECT_EQ(wait(&side), "");
  EXPECT_EQ(read(b), "");
}

TEST_F(Poisoned, AnotherDeviceTakesItOver) {
  Stream& other = default_stream(1);
  runtime::Block *a = block(), *b = block();
  runtime::Block* far = runtime::allocate(1, 16, stream_id(other));
  auto written = create_event(false);
  run(failure, b, a);
  record_event(stream, written);
  wait_event(other, written);
  run(increment, far, b, 0, &other);
  EXPECT_EQ(wait(&other), "");
  EXPECT_EQ(read(far, &other), "failure 0");
  record_death(far);
  runtime::free(far);
  EXPECT_EQ(wait(), "failure 0");
}

TEST_F(Poisoned, CommandsRecordedBeforeADeathStillFindIt) {
  for (bool waits : {false, true}) {
    runtime::Block *a = block(), *b = block(), *c = block();
    run(failure, b, a);
    if (waits) flush(stream, FlushReason::Explicit);
    run(increment, c, b);
    void* address = b->address;
    release(b);
    runtime::Block* again = block();  // the same memory, clean
    EXPECT_EQ(again->address, address);
    run(increment, again, a);
    EXPECT_EQ(wait(), "failure 0");
    EXPECT_EQ(read(again), "");
    EXPECT_EQ(value(again), 1.0f);
    EXPECT_EQ(read(c), "failure 0");
  }
}

TEST_F(Poisoned, AFailureAfterTheDeathDoesNotReachTheNextOwner) {
  runtime::Block *a = block(), *b = block();
  run(failure, b, a);
  release(b);
  runtime::Block* again = block();
  EXPECT_EQ(wait(), "failure 0");
  EXPECT_EQ(read(again), "");
}

TEST_F(Poisoned, OnlyWhatIsWrittenBecomesGood) {
  runtime::Block *a = block(), *b = block();
  run(failure, b, a);
  EXPECT_EQ(wait(), "failure 0");
  // The first and the last element: as far apart as the block is long.
  run(increment, part(b, 0, &kSizes[1], kThree), part(a, 0, &kSizes[1], kThree));
  EXPECT_EQ(read(part(b, 0, &kSizes[1], kThree)), "");
  EXPECT_EQ(read(part(b, 3, &kSizes[0], kOne)), "");
  EXPECT_EQ(read(part(b, 0, &kSizes[1], kTwo)), "failure 0");
  EXPECT_EQ(read(b), "failure 0");
  run(increment, part(b, 1, &kSizes[1], kOne), part(a, 1, &kSizes[1], kOne));
  EXPECT_EQ(read(b), "");
  for (int i = 0; i < kCount; ++i) EXPECT_EQ(value(b, i), 1.0f);
}

TEST_F(Poisoned, OnlyWhatIsNotWrittenBecomesBad) {
  runtime::Block *a = block(), *b = block(), *c = block();
  run(increment, b, a);
  run(failure, part(b, 1, &kSizes[1], kTwo), part(a, 0, &kSizes[1], kOne));
  run(increment, part(c, 0, &kSizes[1], kOne), part(b, 0, &kSizes[1], kTwo));  // between the holes
  run(increment, part(c, 2, &kSizes[1], kOne), part(b, 2, &kSizes[1], kOne));
  EXPECT_EQ(wait(), "failure 0");
  EXPECT_EQ(read(part(c, 0, &kSizes[1], kOne)), "");
  EXPECT_EQ(value(c, 1), 2.0f);
  EXPECT_EQ(read(part(c, 2, &kSizes[0], kOne)), "failure 0");
}

TEST_F(Poisoned, AddingToItDoesNotMakeItGood) {
  runtime::Block *a = block(), *b = block();
  run(failure, b, a);
  EXPECT_EQ(wait(), "failure 0");
  run(accumulate, tensor(b), tensor(a), 0, nullptr, true);
  EXPECT_EQ(wait(), "");
  EXPECT_EQ(read(b), "failure 0");
}

TEST_F(Poisoned, TheFirstInputWithoutAValueIsNamed) {
  runtime::Block *a = block(), *b = block(), *c = block(), *d = block();
  run(failure, b, a, 1);
  run(failure, c, a, 2);
  run(failure, d, a, 3);
  EXPECT_EQ(wait(), "failure 1");
  add(d, c, b);
  EXPECT_EQ(wait(), "");
  EXPECT_EQ(read(d), "failure 2");
}

TEST_F(Poisoned, ForeignMemoryRaisesWhereItIsWaitedFor) {
  runtime::Block *a = block(), *b = block();
  run(failure, b, a);
  EXPECT_EQ(wait(), "failure 0");
  std::vector<float> host(4, 7.0f);
  for (int round = 0; round < 2; ++round) {
    run(increment, {host.data(), nullptr, DType::Float32, {&kSizes[2], 1}, kOne, nullptr}, tensor(b));
    EXPECT_EQ(wait(), "failure 0");
    EXPECT_EQ(wait(), "");
  }
  EXPECT_EQ(host[0], 7.0f);
}

TEST_F(Poisoned, FailuresOfTheAllocatorAndOfForeignLibrariesAreErrors) {
  runtime::Block *a = block(), *b = block();
  run(out_of_memory, b, a);
  try {
    synchronize(stream, FlushReason::Synchronize);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::OutOfMemory);
    EXPECT_NE(std::string(error.what()).find("out of memory"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("test_out_of_memory(f32[4])"), std::string::npos) << error.what();
  }
  run(unknown, b, a);
  EXPECT_EQ(wait(), "an exception of unknown type");
  EXPECT_EQ(read(b), "an exception of unknown type");
}

// What each command of a fused region would have read decides for it alone: where the window is planned, and where its
// plan is that of an earlier one.
TEST_F(Poisoned, CommandsOfARegionFailOneByOne) {
  set_synchronous_compile(true);
  runtime::Block *good = block(), *source = block(), *bad = block();
  runtime::Block *x = block(), *y = block(), *z = block(), *w = block();
  for (int round = 0; round < 8; ++round) {
    failing = round > 3 && round % 2 == 1;
    run(failure, bad, source);
    add(x, good, 3.0);
    add(y, bad, x);
    add(z, x, 1.0);
    add(w, y, z);
    if (failing) {
      EXPECT_EQ(wait(), "failure 0") << round;
      EXPECT_EQ(read(y), "failure 0") << round;
      EXPECT_EQ(read(w), "failure 0") << round;
    } else {
      EXPECT_EQ(read(w), "") << round;
      EXPECT_EQ(value(y), 4.0f);
      EXPECT_EQ(value(w), 8.0f);
    }
    EXPECT_EQ(read(x), "") << round;
    EXPECT_EQ(read(z), "") << round;
    EXPECT_EQ(value(x), 3.0f);
    EXPECT_EQ(value(z), 4.0f);
  }
  EXPECT_GT(statistics().plan_hits, 0u);
}

TEST_F(Poisoned, OfSeveralFailuresTheOneRecordedFirstIsRaised) {
  set_synchronous_compile(true);
  runtime::Block *a = block(), *old = block(), *b = block();
  run(failure, old, a, 1);
  EXPECT_EQ(wait(), "failure 1");
  run(failure, b, a, 2);
  // Foreign memory: a failure of its own, of a command that fusion may run before the other.
  float host[4] = {};
  const TensorArgument output{host, nullptr, DType::Float32, {&kSizes[2], 1}, kOne, nullptr};
  const RegionInput input{codegen::OperandKind::Tensor, tensor(old), {}, {}};
  record_region(stream, *lowering::find_operator("copy"), DType::Float32, {&kSizes[2], 1}, 0, {&output, 1}, {&input, 1},
                {}, 1);
  EXPECT_EQ(wait(), "failure 2");
}

TEST_F(Poisoned, AReplayLeavesItAndTheNextTakesItAway) {
  runtime::Block *a = block(), *out = block(), *copy = block();
  auto pool = std::make_shared<GraphPool>(0);
  CommandGraph first, second;
  first.begin(stream, pool);
  runtime::Block* between = block();
  run(failure, between, a);
  add(out, between, 1.0);
  release(between);
  first.end();
  failing = false;
  for (int round = 0; round < 3; ++round) {
    failing = true;
    first.replay(stream, {});
    run(increment, copy, out);
    EXPECT_EQ(wait(), "failure 0");
    EXPECT_EQ(read(out), "failure 0");
    EXPECT_EQ(read(copy), "failure 0");
    failing = false;
    first.replay(stream, {});
    EXPECT_EQ(read(out), "");
    EXPECT_EQ(value(out), 2.0f);
  }
}

TEST_F(Poisoned, OneGraphFindsWhatAnotherLeft) {
  runtime::Block *a = block(), *out = block();
  auto pool = std::make_shared<GraphPool>(0);
  CommandGraph first, second;
  first.begin(stream, pool);
  runtime::Block* between = block();
  run(failure, between, a);
  first.end();
  second.begin(stream, pool);
  run(increment, out, between);
  second.end();
  release(between);  // the memory stays the graphs'
  first.replay(stream, {});
  EXPECT_EQ(wait(), "failure 0");
  EXPECT_EQ(wait(), "");
  second.replay(stream, {});
  EXPECT_EQ(wait(), "");
  EXPECT_EQ(read(out), "failure 0");
  failing = false;
  first.replay(stream, {});
  second.replay(stream, {});
  EXPECT_EQ(read(out), "");
  EXPECT_EQ(value(out), 2.0f);
}

TEST_F(Poisoned, ManyFailuresOfValuesThatAreGoneAreForgotten) {
  runtime::Block* a = block();
  for (int round = 0; round < 300; ++round) {
    runtime::Block *b = block(), *c = block();
    run(failure, b, a);
    run(increment, c, b);
    release(b);
    release(c);
    EXPECT_EQ(wait(), "failure 0");
    EXPECT_FALSE(Poison::instance().any());
  }
}

}  // namespace
}  // namespace neuron::eager
