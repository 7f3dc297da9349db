// One suite for every driver of the device interface. What a driver that computes nothing cannot show is asserted to be
// zero.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "neuron/base/error.h"
#include "neuron/base/options.h"
#include "neuron/runtime/device.h"
#include "neuron/runtime/drivers/host/host_driver.h"
#include "neuron/runtime/drivers/null/null_driver.h"

namespace {

using namespace neuron::runtime;

struct DriverCase {
  const char* name;
  std::unique_ptr<Driver> (*make)();
};

class Conformance : public ::testing::TestWithParam<DriverCase> {
 protected:
  void SetUp() override {
    clear_environment();
    driver_ = GetParam().make();
  }
  void TearDown() override { clear_environment(); }
  static void clear_environment() {
    for (const auto& row : neuron::option_table()) unsetenv(row.name);
    neuron::reload_options();
  }
  void set(const char* name, const char* value) {
    setenv(name, value, 1);
    neuron::reload_options();
    driver_ = GetParam().make();
  }
  void init() { ASSERT_EQ(driver_->init(), Status::Success); }
  Tensor* allocate(size_t size, int core = 0) {
    Tensor* tensor = nullptr;
    EXPECT_EQ(driver_->tensor_allocate(Placement::Device, core, size, "t", &tensor), Status::Success);
    return tensor;
  }
  size_t used(int core = 0) {
    MemoryUse use;
    EXPECT_EQ(driver_->memory_use(core, &use), Status::Success);
    return use.used;
  }
  // What a computing driver gives, or zeros.
  std::vector<uint8_t> expected(std::vector<uint8_t> bytes) {
    if (!driver_->computes()) std::fill(bytes.begin(), bytes.end(), 0);
    return bytes;
  }
  std::vector<uint8_t> read(Tensor* tensor, size_t offset, size_t size) {
    std::vector<uint8_t> bytes(size, 0xee);
    EXPECT_EQ(driver_->tensor_read(tensor, bytes.data(), offset, size), Status::Success);
    return bytes;
  }

  std::unique_ptr<Driver> driver_;
};

size_t thread_count() {
  const auto tasks = std::filesystem::directory_iterator("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST_P(Conformance, QuestionsNeedNoInitialisation) {
  const size_t threads = thread_count();
  EXPECT_STREQ(driver_->name(), GetParam().name);
  EXPECT_EQ(driver_->total_core_count(), 4);
  EXPECT_EQ(driver_->visible_core_count(), 4);
  EXPECT_EQ(driver_->version().major_number, 2u);
  EXPECT_EQ(driver_->instance_info().name, "trn2.3xlarge");
  EXPECT_EQ(driver_->instance_info().family, 5u);
  EXPECT_EQ(thread_count(), threads);
  MemoryUse use;
  EXPECT_EQ(driver_->memory_use(0, &use), Status::Uninitialized);
}

TEST_P(Conformance, VisibleCores) {
  for (auto [value, count] : {std::pair("0-3", 4), std::pair("1-2", 2), std::pair("3", 1)}) {
    set("NEURON_RT_VISIBLE_CORES", value);
    EXPECT_EQ(driver_->visible_core_count(), count) << value;
    EXPECT_EQ(driver_->total_core_count(), 4);
  }
  for (const char* bad : {"4", "2-1", "0-", "x", "0,2", "-1"}) {
    set("NEURON_RT_VISIBLE_CORES", bad);
    EXPECT_THROW(driver_->visible_core_count(), neuron::Error) << bad;
  }
  clear_environment();
  set("NEURON_RT_NUM_CORES", "2");
  EXPECT_EQ(driver_->visible_core_count(), 2);
  set("NEURON_RT_VISIBLE_CORES", "0");
  EXPECT_EQ(driver_->visible_core_count(), 1);
  clear_environment();
  set("NEURON_LOGICAL_NC_CONFIG", "1");
  EXPECT_EQ(driver_->visible_core_count(), 8);
}

TEST_P(Conformance, LifeCycle) {
  Tensor* tensor = nullptr;
  EXPECT_EQ(driver_->tensor_allocate(Placement::Device, 0, 64, "t", &tensor), Status::Uninitialized);
  init();
  EXPECT_EQ(driver_->init(), Status::Invalid);
  allocate(64);
  driver_->close();
  EXPECT_EQ(driver_->tensor_allocate(Placement::Device, 0, 64, "t", &tensor), Status::Closed);
  EXPECT_EQ(driver_->init(), Status::Closed);
  driver_->close();
}

TEST_P(Conformance, BadArguments) {
  init();
  Tensor* tensor = nullptr;
  EXPECT_EQ(driver_->tensor_allocate(Placement::Device, 4, 64, "t", &tensor), Status::Invalid);
  EXPECT_EQ(driver_->tensor_allocate(Placement::Device, -1, 64, "t", &tensor), Status::Invalid);
  EXPECT_EQ(driver_->tensor_allocate(Placement::Device, 0, 0, "t", &tensor), Status::Invalid);
  EXPECT_EQ(driver_->tensor_allocate(Placement::Device, 0, 64, std::string(256, 'n'), &tensor), Status::Invalid);
  EXPECT_EQ(driver_->tensor_allocate(Placement::Device, 0, 64, "t", nullptr), Status::Invalid);
  EXPECT_EQ(tensor, nullptr);
  MemoryUse use;
  EXPECT_EQ(driver_->memory_use(9, &use), Status::Invalid);
  EXPECT_EQ(driver_->tensor_free(nullptr), Status::InvalidHandle);
  EXPECT_EQ(driver_->tensor_size(nullptr), 0u);
  EXPECT_EQ(driver_->tensor_address(nullptr), nullptr);
  tensor = allocate(64);
  EXPECT_EQ(driver_->tensor_free(tensor), Status::Success);
  EXPECT_EQ(driver_->tensor_free(tensor), Status::InvalidHandle);
}

TEST_P(Conformance, WriteReadFillCopy) {
  init();
  Tensor* first = allocate(100);
  Tensor* second = allocate(50);
  EXPECT_EQ(driver_->tensor_size(first), 100u);
  EXPECT_NE(driver_->tensor_address(first), driver_->tensor_address(second));
  EXPECT_EQ(read(first, 0, 3), (std::vector<uint8_t>{0, 0, 0}));
  const std::vector<uint8_t> bytes{1, 2, 3, 4};
  EXPECT_EQ(driver_->tensor_write(first, bytes.data(), 10, 4), Status::Success);
  EXPECT_EQ(read(first, 9, 6), expected({0, 1, 2, 3, 4, 0}));
  EXPECT_EQ(driver_->tensor_fill(second, 1, 7, 3), Status::Success);
  EXPECT_EQ(read(second, 0, 5), expected({0, 7, 7, 7, 0}));
  EXPECT_EQ(driver_->tensor_copy(first, 11, second, 2, 2), Status::Success);
  EXPECT_EQ(read(second, 0, 5), expected({0, 7, 2, 3, 0}));
  EXPECT_EQ(driver_->tensor_copy(first, 10, first, 12, 4), Status::Success);  // ranges may overlap
  EXPECT_EQ(read(first, 10, 6), expected({1, 2, 1, 2, 3, 4}));
}

TEST_P(Conformance, RangesAreChecked) {
  init();
  Tensor* tensor = allocate(16);
  Tensor* other = allocate(16, 1);
  uint8_t buffer[32] = {};
  EXPECT_EQ(driver_->tensor_write(tensor, buffer, 0, 16), Status::Success);
  EXPECT_EQ(driver_->tensor_write(tensor, buffer, 1, 16), Status::Invalid);
  EXPECT_EQ(driver_->tensor_read(tensor, buffer, 17, 0), Status::Invalid);
  EXPECT_EQ(driver_->tensor_read(tensor, buffer, SIZE_MAX, 2), Status::Invalid);
  EXPECT_EQ(driver_->tensor_fill(tensor, 8, 0, 9), Status::Invalid);
  EXPECT_EQ(driver_->tensor_copy(tensor, 0, tensor, 8, 9), Status::Invalid);
  EXPECT_EQ(driver_->tensor_copy(tensor, 0, other, 0, 4), Status::Invalid) << "tensors of two cores";
}

TEST_P(Conformance, SlicesShareMemoryAndOutliveTheirSource) {
  init();
  Tensor* source = allocate(64);
  Tensor *slice = nullptr, *inner = nullptr, *bad = nullptr;
  ASSERT_EQ(driver_->tensor_slice(source, 16, 32, "s", &slice), Status::Success);
  ASSERT_EQ(driver_->tensor_slice(slice, 8, 8, "i", &inner), Status::Success);
  EXPECT_EQ(driver_->tensor_slice(source, 60, 8, "b", &bad), Status::Invalid);
  EXPECT_EQ(driver_->tensor_address(inner), static_cast<char*>(driver_->tensor_address(source)) + 24);
  EXPECT_EQ(driver_->tensor_size(inner), 8u);
  EXPECT_EQ(driver_->tensor_fill(source, 24, 9, 2), Status::Success);
  EXPECT_EQ(driver_->tensor_free(source), Status::Success);
  EXPECT_EQ(used(), 64u);
  EXPECT_EQ(read(inner, 0, 3), expected({9, 9, 0}));
  driver_->tensor_free(slice);
  driver_->tensor_free(inner);
  EXPECT_EQ(used(), 0u);
}

TEST_P(Conformance, AttachedMemoryStaysTheCallers) {
  init();
  std::vector<uint8_t> memory{1, 2, 3, 4};
  Tensor* tensor = nullptr;
  ASSERT_EQ(driver_->tensor_attach(memory.data(), memory.size(), "a", &tensor), Status::Success);
  EXPECT_EQ(driver_->tensor_address(tensor), memory.data());
  EXPECT_EQ(used(), 0u);
  Tensor* target = allocate(4, 2);
  EXPECT_EQ(driver_->tensor_copy(tensor, 0, target, 0, 4), Status::Success);
  EXPECT_EQ(read(target, 0, 4), expected({1, 2, 3, 4}));
  EXPECT_EQ(driver_->tensor_free(tensor), Status::Success);
  EXPECT_EQ(memory, (std::vector<uint8_t>{1, 2, 3, 4}));
}

TEST_P(Conformance, LargeMemoryIsAligned) {
  init();
  for (size_t size : {size_t{2} << 20, size_t{20} << 20, (size_t{2} << 20) + 1}) {
    Tensor* tensor = allocate(size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(driver_->tensor_address(tensor)) % (size_t{2} << 20), 0u);
    driver_->tensor_free(tensor);
  }
}

TEST_P(Conformance, MemoryLimitAndAccounting) {
  set("TORCH_NEURONX_MEMORY_LIMIT", "1MiB");
  init();
  MemoryUse use;
  ASSERT_EQ(driver_->memory_use(1, &use), Status::Success);
  EXPECT_EQ(use.limit, size_t{1} << 20);
  Tensor* half = allocate(512 << 10);
  Tensor* none = nullptr;
  EXPECT_EQ(driver_->tensor_allocate(Placement::Device, 0, (512 << 10) + 1, "t", &none), Status::Resource);
  EXPECT_EQ(driver_->tensor_allocate(Placement::Device, 0, SIZE_MAX, "t", &none), Status::Resource);
  EXPECT_EQ(used(), size_t{512} << 10);
  allocate(512 << 10);
  EXPECT_EQ(driver_->tensor_allocate(Placement::Device, 0, 1, "t", &none), Status::Resource);
  allocate(1 << 20, 1);  // cores do not share their limits
  EXPECT_EQ(driver_->tensor_free(half), Status::Success);
  EXPECT_EQ(used(), size_t{512} << 10);
}

TEST_P(Conformance, Programs) {
  init();
  int runs = 0;
  ProgramImage image;
  image.name = "add";
  image.inputs = {{"a", 4}, {"b", 4}};
  image.outputs = {{"c", 4}};
  image.code = [&](std::span<void* const> in, std::span<void* const> out) {
    ++runs;
    const auto *a = static_cast<uint8_t*>(in[0]), *b = static_cast<uint8_t*>(in[1]);
    for (int i = 0; i < 4; ++i) static_cast<uint8_t*>(out[0])[i] = a[i] + b[i];
    return Status::Success;
  };
  Program* program = nullptr;
  EXPECT_EQ(driver_->load(image, 7, &program), Status::Invalid);
  ASSERT_EQ(driver_->load(image, 0, &program), Status::Success);
  Tensor *a = allocate(4), *b = allocate(4), *c = allocate(4), *wrong = allocate(8);
  driver_->tensor_fill(a, 0, 3, 4);
  driver_->tensor_fill(b, 0, 4, 4);
  TensorSet in, out, missing, sized;
  in.add("b", b);  // by name, in any order
  in.add("a", a);
  out.add("c", c);
  EXPECT_EQ(driver_->execute(program, in, out), Status::Success);
  EXPECT_EQ(runs, driver_->computes() ? 1 : 0);
  EXPECT_EQ(read(c, 0, 4), expected({7, 7, 7, 7}));
  missing.add("a", a);
  EXPECT_EQ(driver_->execute(program, missing, out), Status::ExecutionBadInput);
  sized.add("a", a);
  sized.add("b", wrong);
  EXPECT_EQ(driver_->execute(program, sized, out), Status::ExecutionBadInput);
  EXPECT_EQ(driver_->execute(nullptr, in, out), Status::InvalidHandle);
  EXPECT_EQ(driver_->unload(program), Status::Success);
  EXPECT_EQ(driver_->unload(program), Status::InvalidHandle);
  EXPECT_EQ(driver_->execute(program, in, out), Status::InvalidHandle);
}

TEST_P(Conformance, FailureOfAProgramIsAStatus) {
  init();
  ProgramImage image;
  image.code = [](std::span<void* const>, std::span<void* const>) -> Status { throw std::runtime_error("lost"); };
  Program* program = nullptr;
  ASSERT_EQ(driver_->load(image, 0, &program), Status::Success);
  EXPECT_EQ(driver_->execute(program, {}, {}), driver_->computes() ? Status::ExecutionError : Status::Success);
  ProgramImage binary;
  const std::byte bytes[4] = {};
  binary.binary = bytes;
  EXPECT_EQ(driver_->load(binary, 0, &program),
            driver_->computes() ? Status::UnsupportedProgramVersion : Status::Success);
}

TEST_P(Conformance, ManyThreads) {
  init();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        Tensor* tensor = allocate(256, t);
        driver_->tensor_fill(tensor, 0, static_cast<uint8_t>(t + 1), 256);
        EXPECT_EQ(read(tensor, 255, 1), expected({static_cast<uint8_t>(t + 1)}));
        driver_->tensor_free(tensor);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (int core = 0; core < 4; ++core) EXPECT_EQ(used(core), 0u);
}

INSTANTIATE_TEST_SUITE_P(Drivers, Conformance,
                         ::testing::Values(DriverCase{"host", make_host_driver}, DriverCase{"null", make_null_driver}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(DeviceStatus, NamesAndErrors) {
  EXPECT_STREQ(status_name(Status::Success), "NRT_SUCCESS");
  EXPECT_STREQ(status_name(Status::ExecutionOutOfBounds), "NRT_EXEC_OOB");
  EXPECT_STREQ(status_name(static_cast<Status>(77)), "NRT_UNKNOWN");
  EXPECT_NO_THROW(check_status(Status::Success, "x"));
  try {
    check_status(Status::Resource, "segment of 2 MiB");
    FAIL();
  } catch (const neuron::Error& error) {
    EXPECT_EQ(error.kind(), neuron::ErrorKind::OutOfMemory);
    EXPECT_STREQ(error.what(), "segment of 2 MiB: NRT_RESOURCE (4)");
  }
}

// The process-wide device, each time in a child so that the tests do not see each other's.
int run_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Device, ChosenByTheEnvironment) {
  EXPECT_EQ(run_child([] { return std::string(driver().name()) == "host" ? 0 : 1; }), 0);
  EXPECT_EQ(run_child([] {
              setenv("TORCH_NEURONX_DEVICE", "null", 1);
              neuron::reload_options();
              return std::string(device().name()) == "null" && core_count() == 4 ? 0 : 1;
            }),
            0);
  EXPECT_EQ(run_child([] {
              setenv("TORCH_NEURONX_DEVICE", "cuda", 1);
              neuron::reload_options();
              try {
                driver();
              } catch (const neuron::Error& error) {
                return std::string(error.what()) ==
                               "TORCH_NEURONX_DEVICE=cuda is not a valid setting: allowed are host, null"
                           ? 0
                           : 1;
              }
              return 2;
            }),
            0);
}

TEST(Device, QuestionsDoNotInitialise) {
  EXPECT_EQ(run_child([] {
              const size_t threads = thread_count();  // a sanitizer has one of its own
              if (core_count() != 4 || !unavailable_reason().empty()) return 1;
              MemoryUse use;
              if (driver().memory_use(0, &use) != Status::Uninitialized) return 2;
              if (thread_count() != threads) return 3;
              // A child forked now starts clean.
              return run_child([] {
                return device().memory_use(0, std::make_unique<MemoryUse>().get()) == Status::Success ? 0 : 1;
              });
            }),
            0);
}

TEST(Device, AChildOfAUserIsRefused) {
  EXPECT_EQ(run_child([] {
              device();
              return run_child([] {
                try {
                  device();
                } catch (const neuron::Error& error) {
                  return std::string(error.what()).find("'spawn'") != std::string::npos ? 0 : 1;
                }
                return 2;
              });
            }),
            0);
}

TEST(Device, BadEnvironmentStopsInitialisation) {
  EXPECT_EQ(run_child([] {
              setenv("TORCH_NEURONX_GUARDED", "perhaps", 1);
              neuron::reload_options();
              for (int i = 0; i < 2; ++i) {
                try {
                  device();
                  return 1;
                } catch (const neuron::Error& error) {
                  if (error.kind() != neuron::ErrorKind::Value) return 2;
                }
              }
              return 0;
            }),
            0);
}

}  // namespace
