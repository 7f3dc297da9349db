#include "neuron/base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <csignal>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using neuron::parallel_for;

TEST(ThreadPool, CoversEveryItemOnce) {
  for (int threads : {1, 2, 3, 7, 16}) {
    for (int64_t count : {0, 1, 2, 5, 64, 1000}) {
      for (int64_t grain : {1, 3, 100}) {
        std::vector<std::atomic<int>> visits(count);
        std::atomic<int> parts{0};
        parallel_for(threads, count, grain, [&](int64_t begin, int64_t end) {
          ++parts;
          EXPECT_TRUE(end - begin >= std::min(grain, count)) << begin << ".." << end;
          for (int64_t i = begin; i < end; ++i) ++visits[i];
        });
        for (int64_t i = 0; i < count; ++i) ASSERT_EQ(visits[i], 1) << i;
        EXPECT_LE(parts, threads);
      }
    }
  }
}

TEST(ThreadPool, PartitionDependsOnTheProblemOnly) {
  auto partition = [] {
    std::mutex mutex;
    std::set<std::pair<int64_t, int64_t>> parts;
    parallel_for(4, 10, 1, [&](int64_t begin, int64_t end) {
      std::lock_guard lock(mutex);
      parts.emplace(begin, end);
    });
    return parts;
  };
  const std::set<std::pair<int64_t, int64_t>> expected{{0, 3}, {3, 6}, {6, 8}, {8, 10}};
  for (int i = 0; i < 200; ++i) ASSERT_EQ(partition(), expected);
}

TEST(ThreadPool, NestedCallsRunInline) {
  std::atomic<int> total{0};
  parallel_for(4, 4, 1, [&](int64_t begin, int64_t end) {
    const auto outer = std::this_thread::get_id();
    for (int64_t i = begin; i < end; ++i) {
      parallel_for(4, 100, 1, [&](int64_t b, int64_t e) {
        EXPECT_EQ(std::this_thread::get_id(), outer);
        EXPECT_EQ(e - b, 100);
        total += static_cast<int>(e - b);
      });
    }
  });
  EXPECT_EQ(total, 400);
}

TEST(ThreadPool, RethrowsTheFailureOfTheLowestPart) {
  for (int i = 0; i < 50; ++i) {
    std::atomic<int> done{0};
    try {
      parallel_for(4, 4, 1, [&](int64_t begin, int64_t) {
        ++done;
        if (begin >= 1) throw std::out_of_range("part " + std::to_string(begin));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::out_of_range& error) {
      EXPECT_STREQ(error.what(), "part 1");
    }
    EXPECT_EQ(done, 4);
  }
  int64_t sum = 0;  // and the pool works on
  parallel_for(1, 3, 1, [&](int64_t b, int64_t e) { sum += e - b; });
  EXPECT_EQ(sum, 3);
}

TEST(ThreadPool, ManyCallersAtOnce) {
  std::vector<std::thread> callers;
  std::vector<int64_t> sums(6);
  for (int c = 0; c < 6; ++c) {
    callers.emplace_back([&, c] {
      for (int round = 0; round < 300; ++round) {
        std::vector<int64_t> values(64);
        parallel_for(3, 64, 1, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) values[i] = i + c;
        });
        sums[c] += std::accumulate(values.begin(), values.end(), int64_t{0});
      }
    });
  }
  for (auto& caller : callers) caller.join();
  for (int c = 0; c < 6; ++c) EXPECT_EQ(sums[c], 300 * (64 * 63 / 2 + 64 * c));
}

TEST(ThreadPool, SleepingWorkersWakeUp) {
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(500));
    std::atomic<int> items{0};
    parallel_for(4, 8, 1, [&](int64_t begin, int64_t end) { items += static_cast<int>(end - begin); });
    EXPECT_EQ(items, 8);
  }
}

TEST(ThreadPool, WorkersHaveDefaultRoundingAndNoSignals) {
  // A pool that is larger than before starts workers here, from a thread with another rounding mode.
  std::fesetround(FE_UPWARD);
  const auto caller = std::this_thread::get_id();
  std::atomic<int> wrong{0};
  parallel_for(24, 24, 1, [&](int64_t, int64_t) {
    if (std::this_thread::get_id() == caller) return;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    if (std::fegetround() != FE_TONEAREST || sigismember(&mask, SIGINT) != 1) ++wrong;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(wrong, 0);
}

#ifndef __SANITIZE_THREAD__  // its runtime cannot follow threads that a forked child starts
TEST(ThreadPool, ForkedChildMakesItsOwnThreads) {
  std::atomic<int> warm{0};
  parallel_for(4, 4, 1, [&](int64_t, int64_t) { ++warm; });
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    std::atomic<int64_t> sum{0};
    for (int i = 0; i < 10; ++i) {
      parallel_for(4, 100, 1, [&](int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) sum += j;
      });
    }
    _exit(sum == 10 * 4950 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(ThreadPool, ForkBesideABusyPool) {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) parallel_for(4, 64, 1, [](int64_t, int64_t) {});
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      std::atomic<int64_t> items{0};
      parallel_for(4, 64, 1, [&](int64_t begin, int64_t end) { items += end - begin; });
      _exit(items == 64 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  busy.join();
}

#endif

TEST(ThreadPool, HardwareThreadsIsPositive) { EXPECT_GE(neuron::hardware_threads(), 1); }

}  // namespace
