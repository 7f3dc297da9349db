// The C interface for foreign kernels: order with recorded commands, errors, ownership, what it refuses.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "neuron/base/error.h"
#include "neuron/eager/recorder.h"
#include "neuron/foreign.h"
#include "neuron/runtime/allocator.h"

namespace neuron::eager {
namespace {

constexpr int64_t kSizes[] = {4};
constexpr int64_t kStrides[] = {1};

void run_increment(const kernels::Call& call) {
  for (int64_t i = 0; i < call.outputs[0].numel(); ++i)
    call.outputs[0].as<float>()[i] = call.inputs[0].as<float>()[i] + 1;
}
const kernels::Kernel increment{"test_increment", run_increment, false};

struct Context {
  float* out = nullptr;
  const float* in = nullptr;
  int runs = 0, releases = 0, threads = 0;
  neuron_status result = NEURON_OK;
};

neuron_status scale(void* opaque, int threads) {
  auto* context = static_cast<Context*>(opaque);
  ++context->runs;
  context->threads = threads;
  if (context->result != NEURON_OK) {
    neuron_set_error("scale was asked to fail");
    return context->result;
  }
  for (int i = 0; i < 4; ++i) context->out[i] = context->in[i] * 10;
  return NEURON_OK;
}
void release(void* opaque) { ++static_cast<Context*>(opaque)->releases; }

struct Foreign : testing::Test {
  neuron_stream* stream = nullptr;
  std::vector<runtime::Block*> blocks;

  void SetUp() override { ASSERT_EQ(neuron_current_stream(-1, &stream), NEURON_OK); }
  void TearDown() override {
    set_mode(Mode::Adaptive);
    for (runtime::Block* block : blocks) {
      record_death(block);
      runtime::free(block);
    }
    neuron_synchronize(stream);
  }
  float* memory() {
    blocks.push_back(runtime::allocate(0, 16, stream_id(default_stream(0))));
    std::fill_n(static_cast<float*>(blocks.back()->address), 4, 1.0f);
    return static_cast<float*>(blocks.back()->address);
  }
  void record_increment(float* out, float* in) {
    TensorArgument output{out, runtime::find_block(out), DType::Float32, kSizes, kStrides, nullptr};
    TensorArgument input{in, runtime::find_block(in), DType::Float32, kSizes, kStrides, nullptr};
    record_kernel(default_stream(0), increment, {&output, 1}, {&input, 1}, {}, {}, false, 1);
  }
  neuron_status enqueue(Context& context, std::vector<neuron_range> ranges) {
    neuron_command command{sizeof command, "scale", scale, release, &context, ranges.data(), ranges.size(), 3};
    return neuron_enqueue(stream, &command);
  }
};

TEST_F(Foreign, RunsInOrderWithRecordedCommands) {
  float *a = memory(), *b = memory();
  Context context{b, a};
  record_increment(a, a);
  ASSERT_EQ(enqueue(context, {{b, 16, NEURON_WRITE}, {a, 16, NEURON_READ}}), NEURON_OK);
  record_increment(a, a);  // after the foreign command has read a
  record_increment(b, b);
  EXPECT_EQ(context.runs, 0);
  ASSERT_EQ(neuron_synchronize(stream), NEURON_OK);
  EXPECT_EQ(context.runs, 1);
  EXPECT_EQ(context.releases, 1);
  EXPECT_EQ(context.threads, 3);
  EXPECT_EQ(a[0], 3.0f);
  EXPECT_EQ(b[0], 21.0f);
}

TEST_F(Foreign, ACommandWithoutRangesIsABarrier) {
  float* a = memory();
  std::vector<float> seen(4);
  Context context{seen.data(), a};
  record_increment(a, a);
  ASSERT_EQ(enqueue(context, {}), NEURON_OK);
  record_increment(a, a);
  ASSERT_EQ(neuron_synchronize(stream), NEURON_OK);
  EXPECT_EQ(seen[0], 20.0f);
  EXPECT_EQ(a[0], 3.0f);
}

TEST_F(Foreign, AFailureIsLateAndPoisonsWhatItShouldHaveWritten) {
  float *a = memory(), *b = memory(), *c = memory();
  Context failing{b, a}, skipped{c, b};
  failing.result = NEURON_INDEX_ERROR;
  ASSERT_EQ(enqueue(failing, {{b, 16, NEURON_WRITE}, {a, 16, NEURON_READ}}), NEURON_OK);
  ASSERT_EQ(enqueue(skipped, {{c, 16, NEURON_WRITE}, {b, 16, NEURON_READ}}), NEURON_OK);
  EXPECT_EQ(neuron_synchronize(stream), NEURON_INDEX_ERROR);
  EXPECT_NE(std::string(neuron_error_message()).find("scale was asked to fail"), std::string::npos);
  EXPECT_NE(std::string(neuron_error_message()).find("scale(ui8[16])"), std::string::npos) << neuron_error_message();
  EXPECT_EQ(failing.runs, 1);
  EXPECT_EQ(skipped.runs, 0);
  EXPECT_EQ(skipped.releases, 1);
  EXPECT_EQ(neuron_synchronize(stream), NEURON_OK);
  EXPECT_THROW(synchronize_for_read(default_stream(0), runtime::find_block(c), FlushReason::HostRead), Error);
}

TEST_F(Foreign, FreedMemoryIsNotReusedBeforeTheCommandRan) {
  Stream& side = create_stream(0, 0);
  runtime::Block* block = runtime::allocate(0, 16, stream_id(side));  // of another stream
  auto* a = static_cast<float*>(block->address);
  std::fill_n(a, 4, 5.0f);
  float* b = memory();
  Context context{b, a};
  ASSERT_EQ(enqueue(context, {{b, 16, NEURON_WRITE}, {a, 16, NEURON_READ}}), NEURON_OK);
  record_death(block);
  runtime::free(block);
  runtime::Block* next = runtime::allocate(0, 16, stream_id(side));
  EXPECT_NE(next->address, a);
  ASSERT_EQ(neuron_synchronize(stream), NEURON_OK);
  EXPECT_EQ(b[0], 50.0f);
  runtime::free(next);
}

TEST_F(Foreign, ReadWriteKeepsWhatWasThere) {
  float *a = memory(), *b = memory();
  struct Half {
    float* out;
  } half{a};
  const auto first_two = [](void* opaque, int) {
    auto* out = static_cast<Half*>(opaque)->out;
    out[0] *= 100;
    out[1] *= 100;
    return NEURON_OK;
  };
  record_increment(a, b);  // 2 everywhere
  neuron_range range{a, 8, NEURON_READ_WRITE};
  neuron_command command{sizeof command, "half", first_two, nullptr, &half, &range, 1, 0};
  ASSERT_EQ(neuron_enqueue(stream, &command), NEURON_OK);
  record_increment(a, a);
  ASSERT_EQ(neuron_synchronize(stream), NEURON_OK);
  EXPECT_EQ(a[0], 201.0f);
  EXPECT_EQ(a[3], 3.0f);
}

TEST_F(Foreign, SaysWhatItRefuses) {
  float* a = memory();
  Context context{a, a};
  EXPECT_EQ(enqueue(context, {{a, size_t{1} << 40, NEURON_READ}}), NEURON_VALUE_ERROR);
  EXPECT_NE(std::string(neuron_error_message()).find("beyond its allocation"), std::string::npos);
  EXPECT_EQ(context.releases, 1);
  EXPECT_EQ(enqueue(context, {{a, 16, static_cast<neuron_access>(0)}}), NEURON_VALUE_ERROR);
  EXPECT_EQ(enqueue(context, {{nullptr, 16, NEURON_READ}}), NEURON_VALUE_ERROR);
  EXPECT_EQ(context.releases, 3);
  neuron_command other_version{8, "scale", scale, nullptr, nullptr, nullptr, 0, 0};
  EXPECT_EQ(neuron_enqueue(stream, &other_version), NEURON_VALUE_ERROR);
  EXPECT_NE(std::string(neuron_error_message()).find("struct_bytes"), std::string::npos);
  EXPECT_EQ(neuron_synchronize(nullptr), NEURON_VALUE_ERROR);
  EXPECT_EQ(context.runs, 0);
}

TEST_F(Foreign, TellsWhatIsKnownOfAnAddress) {
  float* a = memory();
  neuron_pointer_info info{sizeof info, 7, nullptr, 0};
  ASSERT_EQ(neuron_get_pointer_info(a + 1, &info), NEURON_OK);
  EXPECT_EQ(info.device, 0);
  EXPECT_EQ(info.base, a);
  EXPECT_GE(info.bytes, 16u);
  int host = 0;
  ASSERT_EQ(neuron_get_pointer_info(&host, &info), NEURON_OK);
  EXPECT_EQ(info.device, -1);
  EXPECT_EQ(info.bytes, 0u);
  EXPECT_EQ(neuron_foreign_version(), NEURON_FOREIGN_VERSION);
}

TEST_F(Foreign, ManyCommandsWithoutRangesPassAWindowsEnd) {
  Context context{};
  context.result = NEURON_OK;
  std::vector<float> host(8, 1.0f);
  context.out = host.data();
  context.in = host.data() + 4;
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(enqueue(context, {}), NEURON_OK);
  ASSERT_EQ(neuron_synchronize(stream), NEURON_OK);
  EXPECT_EQ(context.runs, 2000);
  EXPECT_EQ(context.releases, 2000);
}

TEST_F(Foreign, ParallelForCoversTheRange) {
  std::vector<int> hits(1000, 0);
  auto body = [](void* opaque, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++static_cast<int*>(opaque)[i];
  };
  ASSERT_EQ(neuron_parallel_for(4, 1000, 10, body, hits.data()), NEURON_OK);
  EXPECT_EQ(hits, std::vector<int>(1000, 1));
  EXPECT_EQ(neuron_parallel_for(4, 1000, 0, body, hits.data()), NEURON_VALUE_ERROR);
}

}  // namespace
}  // namespace neuron::eager
