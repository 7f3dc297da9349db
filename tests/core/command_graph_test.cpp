// Command graphs: capture, replay, random numbers, memory, and what a capture refuses. Kernels are the test's own.
#include <gtest/gtest.h>

#include "neuron/base/error.h"
#include "neuron/eager/command_graph.h"
#include "neuron/eager/recorder.h"
#include "tests/core/eager_fixture.h"

namespace neuron::eager {
namespace {

// Writes the seed and the offset it is given.
void run_random(const kernels::Call& call) {
  call.outputs[0].as<float>()[0] = static_cast<float>(call.scalars[0].as_int());
  call.outputs[0].as<float>()[1] = static_cast<float>(call.scalars[1].as_int());
}
const kernels::Kernel random_kernel{"test_random", run_random, false};

struct Graphs : EagerTest {
  void run(runtime::Block* out, runtime::Block* in, Stream* on = nullptr) {
    TensorArgument output = tensor(out), input = tensor(in);
    record_kernel(recording_stream(on ? *on : stream), increment, {&output, 1}, {&input, 1}, {}, {}, false, 1);
  }
  void wait() { synchronize(stream, FlushReason::Synchronize); }
};

TEST_F(Graphs, RunsNothingDuringTheCaptureAndEverythingAtEachReplay) {
  runtime::Block *a = block(), *b = nullptr;
  CommandGraph graph;
  graph.begin(stream, std::make_shared<GraphPool>(0));
  b = block();
  run(b, a);
  run(a, b);
  graph.end();
  wait();
  EXPECT_EQ(value(a), 0.0f);
  for (int round = 1; round <= 3; ++round) {
    graph.replay(stream, {});
    wait();
    EXPECT_EQ(value(a), 2.0f * static_cast<float>(round));
    EXPECT_EQ(value(b), 2.0f * static_cast<float>(round) - 1);
  }
  run(a, a);  // the stream is free again
  graph.replay(stream, {});
  wait();
  EXPECT_EQ(value(a), 9.0f);
}

TEST_F(Graphs, LongCapturesAreKeptInSeveralWindows) {
  runtime::Block* a = block();
  CommandGraph graph;
  graph.begin(stream, std::make_shared<GraphPool>(0));
  for (int i = 0; i < 3000; ++i) run(a, a);
  graph.end();
  graph.replay(stream, {});
  graph.replay(stream, {});
  wait();
  EXPECT_EQ(value(a), 6000.0f);
}

TEST_F(Graphs, MemoryOfTheGraphIsNotHandedToAnybodyElse) {
  runtime::Block* a = block();
  auto pool = std::make_shared<GraphPool>(0);
  CommandGraph graph;
  graph.begin(stream, pool);
  runtime::Block* temporary = block();
  void* address = temporary->address;
  run(temporary, a);
  run(a, temporary);
  release(temporary);
  runtime::Block* reused = block();  // by the graph itself: yes
  EXPECT_EQ(reused->address, address);
  run(reused, a);
  graph.end();
  release(reused);
  for (int i = 0; i < 4; ++i) EXPECT_NE(block()->address, address);
  runtime::empty_cache(0);  // gives nothing of the graph back
  graph.replay(stream, {});
  wait();
  EXPECT_EQ(value(a), 2.0f);
  EXPECT_EQ(static_cast<float*>(address)[0], 3.0f);
}

TEST_F(Graphs, RandomNumbersGoOnFromTheGeneratorAtEachReplay) {
  runtime::Block *a = block(), *b = block();
  int generator = 0;
  CommandGraph graph;
  graph.begin(stream, std::make_shared<GraphPool>(0));
  for (runtime::Block* out : {a, b}) {
    RandomState state = graph.reserve_random(&generator, nullptr, 8);
    TensorArgument output = tensor(out);
    Scalar scalars[] = {Scalar::of(static_cast<int64_t>(state.seed)), Scalar::of(static_cast<int64_t>(state.offset))};
    record_kernel(recording_stream(stream), random_kernel, {&output, 1}, {}, {}, scalars, false, 1);
  }
  graph.end();
  ASSERT_EQ(graph.random_uses().size(), 1u);
  EXPECT_EQ(graph.random_uses()[0].count, 16u);
  for (uint64_t round = 0; round < 3; ++round) {
    RandomState state{7, 100 * round};
    graph.replay(stream, {&state, 1});
    wait();
    EXPECT_EQ(value(a, 0), 7.0f);
    EXPECT_EQ(value(a, 1), 100.0f * static_cast<float>(round));
    EXPECT_EQ(value(b, 1), 100.0f * static_cast<float>(round) + 8);
  }
}

TEST_F(Graphs, NumbersThatNoCommandTakesFailTheCapture) {
  runtime::Block* a = block();
  int generator = 0;
  CommandGraph graph;
  graph.begin(stream, std::make_shared<GraphPool>(0));
  RandomState state = graph.reserve_random(&generator, nullptr, 4);
  EXPECT_NE(state.seed, 0u);
  run(a, a);
  graph.end();
  EXPECT_THROW(graph.replay(stream, {&state, 1}), Error);
}

TEST_F(Graphs, WaitingInsideACaptureIsRefusedAndFailsIt) {
  runtime::Block* a = block();
  CommandGraph graph;
  graph.begin(stream, std::make_shared<GraphPool>(0));
  run(a, a);
  try {
    synchronize_for_read(recording_stream(stream), a, FlushReason::HostRead);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("while a graph is being captured: the value of a tensor was asked for"),
              std::string::npos);
  }
  graph.end();
  try {
    graph.replay(stream, {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("the capture of this graph failed"), std::string::npos);
  }
  graph.reset();
  graph.begin(stream, std::make_shared<GraphPool>(0));
  run(a, a);
  graph.end();
  graph.replay(stream, {});
  wait();
  EXPECT_EQ(value(a), 1.0f);
}

TEST_F(Graphs, FreedMemoryIsNoticedAtTheReplay) {
  runtime::Block *a = block(), *b = block();
  CommandGraph graph;
  graph.begin(stream, std::make_shared<GraphPool>(0));
  run(a, b);
  graph.end();
  graph.replay(stream, {});
  wait();
  release(b);
  for (int i = 0; i < 100; ++i) block();  // somebody has the memory now
  try {
    graph.replay(stream, {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("freed after the capture"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("test_increment"), std::string::npos);
  }
}

TEST_F(Graphs, AStreamThatWaitsForTheCaptureJoinsIt) {
  Stream& side = create_stream(0, 0);
  runtime::Block *a = block(), *b = block();
  CommandGraph graph;
  graph.begin(stream, std::make_shared<GraphPool>(0));
  run(a, a);
  auto forked = create_event(false), joined = create_event(false);
  record_event(recording_stream(stream), forked);
  wait_event(recording_stream(side), forked);
  run(b, a, &side);
  record_event(recording_stream(side), joined);
  wait_event(recording_stream(stream), joined);
  run(b, b);
  EXPECT_THROW(query_event(*joined), Error);
  graph.end();
  EXPECT_EQ(capturing_graph(side), nullptr);
  graph.replay(stream, {});
  wait();
  EXPECT_EQ(value(a), 1.0f);
  EXPECT_EQ(value(b), 3.0f);
}

TEST_F(Graphs, StatesThatDoNotFitAreNamed) {
  runtime::Block* a = block();
  auto pool = std::make_shared<GraphPool>(0);
  CommandGraph graph, other;
  EXPECT_THROW(graph.replay(stream, {}), Error);
  EXPECT_THROW(graph.end(), Error);
  graph.begin(stream, pool);
  EXPECT_THROW(graph.begin(stream, pool), Error);
  EXPECT_THROW(other.begin(stream, std::make_shared<GraphPool>(0)), Error);
  EXPECT_THROW(graph.replay(stream, {}), Error);
  run(a, a);
  graph.end();
  EXPECT_THROW(graph.begin(stream, pool), Error);
  EXPECT_NE(graph.dot().find("test_increment"), std::string::npos);
}

TEST_F(Graphs, StreamsOfPoolsAreUsedAgain) {
  uint64_t first;
  {
    GraphPool pool(0);
    first = stream_id(pool.stream());
  }
  GraphPool pool(0);
  EXPECT_EQ(stream_id(pool.stream()), first);
}

}  // namespace
}  // namespace neuron::eager
