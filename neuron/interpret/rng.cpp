// rng_bit_generator: Philox4x32-10, element i takes the block of counter offset + i.
#include "neuron/base/float_formats.h"
#include "neuron/base/philox.h"
#include "neuron/interpret/kernels.h"

namespace neuron::interpret {

// The state is (seed, offset); the new offset is past the elements taken. 64-bit results are word 1 and word 0 of a
// block, narrower ones the low bits of word 0.
void evaluate_rng_bit_generator(const Invocation& call) {
  const Buffer& state = call.operand(0);
  check_internal(state.dtype == DType::UInt64 && state.numel() == 2, "rng_bit_generator: the state must be 2xui64");
  Buffer& bits = call.result(1);
  if (!is_integer(bits.dtype)) unsupported(call, bits.dtype);
  uint64_t seed = state.data<uint64_t>()[0], offset = state.data<uint64_t>()[1];
  size_t size = dtype_size(bits.dtype);
  auto count = static_cast<uint64_t>(bits.numel());
  for (uint64_t i = 0; i < count; ++i) {
    auto block = philox(seed, offset + i);
    uint64_t word = size == 8 ? uint64_t{block[1]} << 32 | block[0] : block[0];
    store_from_int(bits.dtype, static_cast<int64_t>(word), bits.bytes.data() + i * size);
  }
  call.result(0).data<uint64_t>()[0] = seed;
  call.result(0).data<uint64_t>()[1] = offset + count;
}

}  // namespace neuron::interpret
