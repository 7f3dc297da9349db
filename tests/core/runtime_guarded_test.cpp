#include "neuron/runtime/guarded.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "neuron/base/options.h"
#include "neuron/runtime/device.h"
#include "neuron/runtime/drivers/host/host_driver.h"

namespace {

using namespace neuron::runtime;

// Whether touching the address in a child ends it.
bool faults(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

class Guarded : public ::testing::Test {
 protected:
  void SetUp() override {
    driver_ = make_host_driver();
    driver_->init();
    tensor_ = allocate();
    memory_ = static_cast<volatile char*>(driver_->tensor_address(tensor_));
  }
  void TearDown() override { set_guarded(false); }
  Tensor* allocate() {
    Tensor* tensor = nullptr;
    EXPECT_EQ(driver_->tensor_allocate(Placement::Device, 0, 4096, "t", &tensor), Status::Success);
    return tensor;
  }

  std::unique_ptr<Driver> driver_;
  Tensor* tensor_ = nullptr;
  volatile char* memory_ = nullptr;
};

TEST_F(Guarded, OffByDefault) {
  EXPECT_FALSE(guarded());
  EXPECT_FALSE(faults([&] { memory_[0] = 1; }));
  DeviceAccess access;
  EXPECT_FALSE(faults([&] { memory_[0] = 1; }));
}

TEST_F(Guarded, MemoryIsAccessibleOnlyInside) {
  set_guarded(true);
  EXPECT_TRUE(faults([&] { memory_[0] = 1; }));
  EXPECT_TRUE(faults([&] { (void)memory_[4095]; }));
  {
    DeviceAccess outer;
    memory_[0] = 5;
    {
      DeviceAccess inner;
    }
    EXPECT_EQ(memory_[0], 5);
  }
  EXPECT_TRUE(faults([&] { (void)memory_[0]; }));
  set_guarded(false);
  EXPECT_EQ(memory_[0], 5);
}

TEST_F(Guarded, NewMemoryIsGuardedToo) {
  set_guarded(true);
  volatile char* fresh = static_cast<volatile char*>(driver_->tensor_address(allocate()));
  EXPECT_TRUE(faults([&] { (void)fresh[0]; }));
  DeviceAccess access;
  volatile char* inside = static_cast<volatile char*>(driver_->tensor_address(allocate()));
  inside[0] = 1;
  fresh[0] = 1;
  EXPECT_EQ(inside[0] + fresh[0], 2);
}

TEST_F(Guarded, TransfersWork) {
  set_guarded(true);
  char value = 42, back = 0;
  EXPECT_EQ(driver_->tensor_write(tensor_, &value, 7, 1), Status::Success);
  EXPECT_EQ(driver_->tensor_read(tensor_, &back, 7, 1), Status::Success);
  EXPECT_EQ(back, 42);
  EXPECT_TRUE(faults([&] { (void)memory_[7]; }));
}

TEST_F(Guarded, SeveralThreads) {
  set_guarded(true);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        DeviceAccess access;
        memory_[t * 64] = static_cast<char>(i);
        EXPECT_EQ(memory_[t * 64], static_cast<char>(i));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(faults([&] { (void)memory_[0]; }));
}

}  // namespace
