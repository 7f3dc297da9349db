// Kernels of operators on lists of tensors without boxing: a boxed list costs a reference on every tensor's Python
// object, twice.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>

#include "torch_neuronx/csrc/aten/dispatcher.h"
#include "torch_neuronx/csrc/aten/fallback.h"
#include "torch_neuronx/csrc/aten/lists.h"
#include "torch_neuronx/csrc/aten/refuse.h"

namespace neuron::aten {

// The wrapper of operators whose unboxed kernels take every call.
inline void never(Arguments&) { decline(); }

inline c10::IValue boxed(at::TensorList list) { return list.vec(); }
template <typename T>
c10::IValue boxed(const T& value) {
  return value;
}

// `Body::run(arguments…)` records an operator that returns nothing. What it declines runs on the CPU, what it refuses
// is worded by the CPU.
template <typename Body, typename... Values>
class UnboxedList final : public c10::OperatorKernel {
 public:
  explicit UnboxedList(GeneralKernel general) : general_(std::move(general)) {}
  void operator()(Values... values) {
    try {
      general_.quickly([&] {
        Body::run(values...);
        return true;
      });
      return;
    } catch (const Declined&) {
      c10::Stack stack{boxed(values)...};
      fall_back(general_.op(), stack);
    } catch (const Refused&) {
      const c10::Stack stack{boxed(values)...};
      raise_as_cpu(general_.op(), stack);
      TORCH_CHECK(false, "the neuron kernel of ", general_.op().operator_name(), " does not take these arguments");
    }
  }

 private:
  GeneralKernel general_;
};

// `Body::run(arguments…)` records a foreach operator as lists; false when these tensors need PyTorch's own loop.
template <typename Body, typename... Values>
class ListOrLoop final : public c10::OperatorKernel {
 public:
  explicit ListOrLoop(GeneralKernel general) : general_(std::move(general)) {}
  void operator()(Values... values) {
    if (general_.attempt([&] { return Body::run(values...); })) return;
    call_composite(general_.op(), {boxed(values)...}, 0, nullptr);
  }

 private:
  GeneralKernel general_;
};
// The same for operators that make a list; `Body::run(arguments…, results)`.
template <typename Body, typename... Values>
class NewListOrLoop final : public c10::OperatorKernel {
 public:
  explicit NewListOrLoop(GeneralKernel general) : general_(std::move(general)) {}
  std::vector<at::Tensor> operator()(Values... values) {
    std::vector<at::Tensor> results;
    if (general_.attempt([&] { return Body::run(values..., results); })) return results;
    results.clear();
    call_composite(general_.op(), {boxed(values)...}, 0, &results);
    return results;
  }

 private:
  GeneralKernel general_;
};

}  // namespace neuron::aten
