// Writes the pack of prebuilt kernels that is shipped beside libneuron.so: the single-operation kernels that most
// programs meet first, so that a cold start compiles little.
//
//   neuron-pack FILE
//
// Each operator is recorded on small tensors in the layouts that ask for different kernels, once per dtype.
#include <cstdio>
#include <string>
#include <vector>

#include "neuron/base/error.h"
#include "neuron/cache/build_id.h"
#include "neuron/cache/pack.h"
#include "neuron/eager/kernel_store.h"
#include "neuron/eager/recorder.h"
#include "neuron/runtime/allocator.h"

namespace {

namespace eager = neuron::eager;
namespace lowering = neuron::lowering;
namespace codegen = neuron::codegen;
namespace runtime = neuron::runtime;
namespace cache = neuron::cache;
using neuron::DType;
using neuron::Error;
using neuron::ErrorKind;
using neuron::is_float;
using neuron::Scalar;

class Recorder {
 public:
  Recorder() : stream_(eager::default_stream(0)) {
    block_ = runtime::allocate(0, 1 << 16, eager::stream_id(stream_));
    std::fill_n(static_cast<char*>(block_->address), 1 << 16, 0);
  }

  // One command over [8, 32]: every input a full tensor, or the last one a number, or the last one a row to broadcast.
  enum class Last { Tensor, Number, Row };
  void elementwise(std::string_view name, int inputs, DType dtype, DType output, Last last,
                   std::vector<int64_t> attributes = {}) {
    const lowering::Operator* op = lowering::find_operator(name);
    if (op == nullptr) neuron::fail(ErrorKind::Internal, "no operator {}", name);
    std::vector<eager::RegionInput> operands;
    for (int i = 0; i < inputs; ++i) {
      bool is_last = i + 1 == inputs && inputs > 1;
      if (is_last && last == Last::Number) {
        operands.push_back(
            {codegen::OperandKind::Scalar, {}, is_float(dtype) ? Scalar::of(0.5) : Scalar::of(int64_t{2}), {}});
      } else if (is_last && last == Last::Row) {
        operands.push_back({codegen::OperandKind::Tensor, tensor(i + 1, dtype, kRow, kRowStrides), {}, {}});
      } else {
        operands.push_back({codegen::OperandKind::Tensor, tensor(i + 1, dtype, kSizes, kStrides), {}, {}});
      }
    }
    eager::TensorArgument out = tensor(0, output, kSizes, kStrides);
    eager::record_region(stream_, *op, dtype, kSizes, 0, {&out, 1}, operands, attributes, 1);
  }

  void finish() { eager::synchronize(stream_, eager::FlushReason::Explicit); }

 private:
  static constexpr int64_t kSizes[] = {8, 32}, kStrides[] = {32, 1}, kRow[] = {32}, kRowStrides[] = {1};

  eager::TensorArgument tensor(int slot, DType dtype, std::span<const int64_t> sizes,
                               std::span<const int64_t> strides) {
    return {static_cast<char*>(block_->address) + slot * 8192, block_, dtype, sizes, strides, nullptr};
  }

  eager::Stream& stream_;
  runtime::Block* block_;
};

void record_everything() {
  Recorder recorder;
  using Last = Recorder::Last;
  const DType floats[] = {DType::Float32, DType::BFloat16};
  const DType numbers[] = {DType::Float32, DType::BFloat16, DType::Int64};
  for (DType dtype : numbers) {
    for (Last last : {Last::Tensor, Last::Number, Last::Row}) {
      for (const char* name : {"mul", "maximum", "minimum"}) recorder.elementwise(name, 2, dtype, dtype, last);
      for (const char* name : {"eq", "ne", "lt", "le", "gt", "ge"})
        recorder.elementwise(name, 2, dtype, DType::Bool, last);
    }
    for (DType to : {DType::Float32, DType::BFloat16, DType::Int64, DType::Bool})
      recorder.elementwise("copy", 1, dtype, to, Last::Tensor);
    for (const char* name : {"neg", "abs"}) recorder.elementwise(name, 1, dtype, dtype, Last::Tensor);
  }
  for (DType dtype : floats) {
    for (const char* name :
         {"exp", "log", "sqrt", "rsqrt", "reciprocal", "tanh", "sigmoid", "relu", "silu", "sin", "cos"}) {
      recorder.elementwise(name, 1, dtype, dtype, Last::Tensor);
    }
  }
  recorder.finish();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: neuron-pack FILE\n");
    return 2;
  }
  try {
    eager::set_mode(eager::Mode::Immediate);
    eager::KernelStore& store = eager::KernelStore::instance();
    store.keep_specs();
    record_everything();
    // A package is used on other processors than it is built on.
    auto kernels = store.stored_kernels(codegen::HostTarget::Avx2);
    for (auto& kernel : store.stored_kernels(codegen::HostTarget::Avx512)) kernels.push_back(std::move(kernel));
    cache::write_pack(arguments[1], cache::build_id(), kernels);
    std::printf("%zu kernels in %s\n", kernels.size(), arguments[1]);
    eager::shutdown();
  } catch (const Error& error) {
    std::fprintf(stderr, "neuron-pack: %s\n", error.what());
    return 1;
  }
  return 0;
}
