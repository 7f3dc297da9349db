// What the tests of the eager layer share: blocks of four floats, a kernel of the tests' own, and an end at which
// everything is released.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "neuron/eager/command_graph.h"
#include "neuron/eager/recorder.h"
#include "neuron/runtime/allocator.h"

namespace neuron::eager {

inline void run_increment(const kernels::Call& call) {
  const kernels::TensorView &from = call.inputs[0], &to = call.outputs[0];
  for (int64_t i = 0; i < to.sizes[0]; ++i)
    to.as<float>()[i * to.strides[0]] = from.as<float>()[i * from.strides[0]] + 1;
}
inline const kernels::Kernel increment{"test_increment", run_increment, false};

struct EagerTest : testing::Test {
  static constexpr int64_t kFour[] = {4}, kDense[] = {1};

  Stream& stream = default_stream(0);
  std::vector<runtime::Block*> blocks;

  // Zeros, allocated for whatever stream records now; what a graph captures is left alone.
  runtime::Block* block() {
    blocks.push_back(runtime::allocate(0, 16, stream_id(recording_stream(stream))));
    if (capturing_graph(stream) == nullptr) std::fill_n(static_cast<float*>(blocks.back()->address), 4, 0.0f);
    return blocks.back();
  }
  void release(runtime::Block* block) {
    std::erase(blocks, block);
    record_death(block);
    runtime::free(block);
  }
  static TensorArgument tensor(runtime::Block* block) {
    return {block->address, block, DType::Float32, kFour, kDense, nullptr};
  }
  static float value(runtime::Block* block, int i = 0) { return static_cast<float*>(block->address)[i]; }

  void TearDown() override {
    set_mode(Mode::Adaptive);
    set_synchronous_compile(false);
    while (!blocks.empty()) release(blocks.back());
    synchronize(stream, FlushReason::Synchronize);
  }
};

}  // namespace neuron::eager
