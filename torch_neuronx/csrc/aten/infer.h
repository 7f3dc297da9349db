// Output metadata of any operator, from its Meta kernel: sizes, strides, dtypes and error texts are those of CPU
// PyTorch. Results are kept in a bounded cache keyed by the operator, the metadata of the tensors and the other
// arguments, because a Meta kernel costs several microseconds (some are Python).
#pragma once

#include <ATen/core/DimVector.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>

#include <memory>
#include <vector>

namespace c10 {
class OperatorHandle;
}

namespace neuron::aten {

struct InferredTensor {
  bool defined = true;
  int argument = -1;  // >= 0: the result is this (written) argument
  at::DimVector sizes, strides;
  at::ScalarType dtype = at::ScalarType::Undefined;
};

struct Inferred {
  std::vector<InferredTensor> tensors;  // Tensor[] results flattened
  std::vector<int> lists;               // per schema return: -1 a tensor, -2 something else, else the length of a list
};

// `fresh` tells whether the Meta kernel really ran (and gave its warnings). The arguments are the top of the stack and
// stay.
std::shared_ptr<const Inferred> infer(const c10::OperatorHandle& op, const std::vector<c10::IValue>& stack,
                                      bool& fresh);

// Runs the operator on CPU tensors of the arguments' shapes with meaningless contents, so that it raises what is wrong
// with the call in its own words. Returns when the CPU finds nothing wrong.
void raise_as_cpu(const c10::OperatorHandle& op, const std::vector<c10::IValue>& stack);

// Dtypes of the results on the CPU, from a run on tensors of one element; raises the CPU's own errors about dtypes and
// numbers.
std::vector<at::ScalarType> result_dtypes_as_cpu(const c10::OperatorHandle& op, const std::vector<c10::IValue>& stack);

}  // namespace neuron::aten
