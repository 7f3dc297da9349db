#include "neuron/runtime/queue.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "neuron/base/error.h"

namespace {

using neuron::Error;
using neuron::runtime::create_queue;
using neuron::runtime::notify_queues;
using neuron::runtime::Queue;
using neuron::runtime::Task;

class Call final : public Task {
 public:
  explicit Call(
      std::function<void()> body, std::function<bool()> ready = [] { return true; })
      : body_(std::move(body)), ready_(std::move(ready)) {}
  bool ready() override { return ready_(); }
  void run() noexcept override { body_(); }

 private:
  std::function<void()> body_;
  std::function<bool()> ready_;
};

template <typename... Args>
std::unique_ptr<Task> call(Args&&... args) {
  return std::make_unique<Call>(std::forward<Args>(args)...);
}

void expect_child_succeeds(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Queue, RunsInSubmissionOrderAndCounts) {
  Queue& queue = create_queue(0);
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(queue.submit(call([&order, i] { order.push_back(i); })), static_cast<uint64_t>(i + 1));
  }
  EXPECT_EQ(queue.submitted(), 100u);
  queue.wait(100);
  EXPECT_EQ(queue.completed(), 100u);
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

TEST(Queue, RunNeedsNoOtherThread) {
  Queue& queue = create_queue(1);
  std::thread::id ran_on;
  EXPECT_EQ(queue.run(call([&] { ran_on = std::this_thread::get_id(); })), 1u);
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(Queue, SubmittedWorkRunsWithoutAWaiter) {
  Queue& queue = create_queue(0);
  std::promise<void> ran;
  queue.submit(call([&] { ran.set_value(); }));
  EXPECT_EQ(ran.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

TEST(Queue, TaskIsDestroyedBeforeItCountsAsComplete) {
  Queue& queue = create_queue(0);
  auto held = std::make_shared<int>(1);
  for (int i = 0; i < 100; ++i) {
    const uint64_t sequence = queue.submit(call([copy = held] {}));
    queue.wait(sequence);
    ASSERT_EQ(held.use_count(), 1);
  }
}

TEST(Queue, WaitsForReadinessAndTurnsToOtherQueues) {
  Queue& first = create_queue(2);
  Queue& second = create_queue(2);
  std::atomic<bool> event{false};
  std::vector<int> order;
  const uint64_t waiting = first.submit(call([&] { order.push_back(2); }, [&] { return event.load(); }));
  second.submit(call([&] {
    order.push_back(1);
    event = true;
  }));
  first.wait(waiting);
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(Queue, EventOfAnotherCore) {
  Queue& consumer = create_queue(0);
  Queue& producer = create_queue(3);
  for (int round = 0; round < 200; ++round) {
    std::atomic<bool> event{false};
    int value = 0, seen = 0;
    const uint64_t sequence = consumer.submit(call([&] { seen = value; }, [&] { return event.load(); }));
    producer.submit(call([&] {
      value = round + 1;
      event = true;
      notify_queues(0);
    }));
    consumer.wait(sequence);
    ASSERT_EQ(seen, round + 1);
    producer.wait(producer.submitted());
  }
}

TEST(Queue, ManyThreadsSubmitAndWait) {
  constexpr int kThreads = 4, kQueues = 3, kRounds = 300;
  std::vector<Queue*> queues;
  for (int q = 0; q < kQueues; ++q) queues.push_back(&create_queue(q % 2));
  std::vector<std::vector<uint64_t>> counts(kQueues, std::vector<uint64_t>(1));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < kRounds; ++round) {
        const int q = (t + round) % kQueues;
        auto body = [&counts, q] { ++counts[q][0]; };  // only the queue's order protects it
        const uint64_t sequence = round % 3 == 0 ? queues[q]->run(call(body)) : queues[q]->submit(call(body));
        if (round % 5 == 0) queues[q]->wait(sequence);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  uint64_t total = 0;
  for (int q = 0; q < kQueues; ++q) {
    queues[q]->wait(queues[q]->submitted());
    EXPECT_EQ(queues[q]->completed(), queues[q]->submitted());
    EXPECT_EQ(counts[q][0], queues[q]->submitted());
    total += counts[q][0];
  }
  EXPECT_EQ(total, static_cast<uint64_t>(kThreads * kRounds));
}

TEST(Queue, WaitingForWhatWasNeverSubmittedIsAnError) {
  Queue& queue = create_queue(0);
  EXPECT_THROW(queue.wait(1), Error);
}

TEST(Queue, ATaskCannotWait) {
  Queue& queue = create_queue(0);
  EXPECT_FALSE(neuron::runtime::inside_task());
  std::string message;
  queue.run(call([&] {
    EXPECT_TRUE(neuron::runtime::inside_task());
    try {
      queue.wait(1);
    } catch (const Error& error) {
      message = error.what();
    }
  }));
  EXPECT_EQ(message, "a task waits for task 1 of a queue");
  EXPECT_FALSE(neuron::runtime::inside_task());
}

TEST(Queue, ChildOfAUserIsRefused) {
  Queue& queue = create_queue(0);
  queue.run(call([] {}));
  expect_child_succeeds([&] {
    neuron::runtime::shutdown_queues();  // does nothing here
    notify_queues(0);
    try {
      queue.submit(call([] {}));
    } catch (const Error& error) {
      return error.kind() == neuron::ErrorKind::Runtime &&
             std::string(error.what()).find("'spawn'") != std::string::npos;
    }
    return false;
  });
}

TEST(Queue, HelpedTaskCostsLessThanAMicrosecond) {
  Queue& queue = create_queue(1);
  class Nothing final : public Task {
    void run() noexcept override {}
  };
  constexpr int kTasks = 20000;
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kTasks; ++i) queue.run(std::make_unique<Nothing>());
    best = std::min(best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count());
  }
  std::printf("run(): %.0f ns a task\n", best / kTasks);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  EXPECT_LT(best / kTasks, 1000);
#endif
}

std::atomic<int> left{0}, entered{0};

TEST(Queue, AThreadThatWaitsForAnotherGivesUpWhatTheOtherNeeds) {
  static const neuron::runtime::WaitHooks hooks{[]() -> void* {
                                                  ++left;
                                                  return &left;
                                                },
                                                [](void* state) { entered += state == &left; }};
  neuron::runtime::set_wait_hooks(&hooks);
  Queue& queue = create_queue(3);
  queue.run(call([] {}));  // which the waiting thread does itself
  EXPECT_EQ(left, 0);
  std::promise<void> runs;
  const uint64_t sequence = queue.submit(call([&] {
    runs.set_value();
    while (left == 0) std::this_thread::yield();
  }));
  runs.get_future().wait();  // on the executor
  queue.wait(sequence);
  EXPECT_EQ(left, 1);
  EXPECT_EQ(entered, 1);
  neuron::runtime::set_wait_hooks(nullptr);
}

// Last: nothing can be submitted afterwards.
TEST(QueueShutdown, DrainsAndRefuses) {
  Queue& queue = create_queue(0);
  Queue& never = create_queue(1);
  std::atomic<int> ran{0};
  for (int i = 0; i < 50; ++i) queue.submit(call([&] { ++ran; }));
  never.submit(call([&] { ran = -1; }, [] { return false; }));
  neuron::runtime::shutdown_queues();
  EXPECT_EQ(ran, 50);
  EXPECT_EQ(never.completed(), 0u);
  try {
    queue.submit(call([] {}));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the neuron runtime has been shut down: core 0 takes no more work");
  }
  neuron::runtime::shutdown_queues();
}

}  // namespace
