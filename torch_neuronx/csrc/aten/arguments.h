// The arguments and results of one operator call, taken from the dispatcher's stack by schema position. Wrappers use
// this instead of typed signatures so that a family file needs no dispatcher header.
#pragma once

#include <ATen/core/DimVector.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <optional>
#include <string_view>
#include <vector>

namespace c10 {
class OperatorHandle;
struct IValue;
}  // namespace c10
namespace at {
struct Generator;
}

namespace neuron::aten {

// Thrown by decline(): the call goes to the CPU instead. Only before anything was recorded or resized.
struct Declined {};
[[noreturn]] void decline();

// Lives for one call. Arguments are owned by the dispatcher's stack; references stay valid until the wrapper returns.
class Arguments {
 public:
  Arguments(const c10::OperatorHandle& op, std::vector<c10::IValue>& stack);

  const c10::OperatorHandle& op() const { return op_; }
  int size() const { return count_; }
  // True for an omitted optional argument (None).
  bool absent(int i) const;
  // Undefined for None.
  const at::Tensor& tensor(int i) const;
  // Tensor[] and Tensor?[] (None: undefined).
  std::vector<at::Tensor> tensors(int i) const;
  at::Scalar scalar(int i) const;
  int64_t integer(int i) const;  // also a SymInt without symbols
  int64_t integer(int i, int64_t otherwise) const { return absent(i) ? otherwise : integer(i); }
  double real(int i) const;
  bool boolean(int i) const;
  // int[], SymInt[] and their optional forms; a None gives an empty list (see absent()).
  at::DimVector integers(int i) const;
  std::vector<double> reals(int i) const;
  std::vector<bool> booleans(int i) const;
  std::string_view text(int i) const;
  std::optional<at::ScalarType> dtype(int i) const;
  std::optional<at::Device> device(int i) const;
  std::optional<at::MemoryFormat> memory_format(int i) const;
  std::optional<at::Generator> generator(int i) const;

  // Checks the call and prepares what it writes, by running the operator's Meta kernel on the arguments' metadata:
  // shapes, strides, dtypes and error texts are CPU's. A functional operator's outputs are allocated, out= tensors are
  // resized, an in-place operator's are its own arguments. They become the results unless the wrapper gives others. A
  // Tensor[] result is flattened; an undefined tensor result stays undefined. The inference is cached per metadata and
  // non-tensor arguments. Also checks that all tensors are on one device (0-dimensional CPU tensors pass).
  const std::vector<at::Tensor>& outputs();
  const at::Tensor& output(int i = 0) { return outputs()[static_cast<size_t>(i)]; }

  // output() of an operator that fills argument `i`, its out= tensor, in row-major order: a tensor of as many elements
  // keeps its shape and strides, as on the CPU.
  const at::Tensor& filled_output(int i);

  // Results given by hand, in order (instead of outputs()).
  void give(at::Tensor result);
  void give_list(std::vector<at::Tensor> results);
  void give(const at::Scalar& result);
  void give_boolean(bool result);
  void give_integer(int64_t result);

  // Replaces the arguments on the stack by the results: called once by the registered kernel after the wrapper
  // returned.
  void finish();

 private:
  const c10::IValue& at(int i) const;

  const c10::OperatorHandle& op_;
  std::vector<c10::IValue>& stack_;
  int count_;
  size_t base_;
  bool prepared_ = false;
  std::vector<at::Tensor> outputs_;
  std::vector<int> output_lists_;  // per schema return: -1 a tensor, else the length of the list
  std::vector<c10::IValue> results_;
};

}  // namespace neuron::aten
