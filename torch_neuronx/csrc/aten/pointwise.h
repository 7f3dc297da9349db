// The pointwise driver: one kernel class serves every elementwise overload of ops/aten_ops.yaml, functional, in-place
// and out=. What an overload does follows from its schema and its row; its arithmetic is the lowering rule of that
// name.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <array>
#include <atomic>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "neuron/lowering/lowering.h"
#include "torch_neuronx/csrc/aten/bridge.h"
#include "torch_neuronx/csrc/aten/tracking.h"

namespace neuron::aten {

struct PointwiseRow {
  const char* op;
  const char* lowering;
  bool promote_to_float;
  uint8_t accepts;  // bit per class: bool, int, float, complex
  uint32_t common;  // bit per argument that takes part in promotion; 0: the default of the table
};

// Dtypes of an overload by the dtypes and kinds of its operands: what the CPU's kernel said before. Append-only and
// read without a lock; when it is full further combinations are asked for each time.
class DtypeMemo {
 public:
  struct Types {
    at::ScalarType common, output;
  };
  bool find(uint64_t key, Types& types) const;
  void insert(uint64_t key, Types types);

 private:
  static constexpr size_t kSlots = 24;
  struct Slot {
    std::atomic<uint64_t> key{0};
    std::atomic<uint16_t> types{0};
  };
  std::array<Slot, kSlots> slots_;
  std::mutex insertion_;
};

// What calls of one operator on tensors of the same dtypes have in common.
struct PointwisePlan {
  const lowering::Operator* op = nullptr;
  at::ScalarType common = at::ScalarType::Undefined, output = at::ScalarType::Undefined;
  // The operator's inputs: which tensor of the call, or kNumber.
  static constexpr int8_t kNumber = -1;
  c10::SmallVector<int8_t, 4> inputs;
  bool narrows_number = false;  // to `common`
  bool contiguous_result = false;

  Scalar number(const at::Scalar& value) const;
};

class PointwiseKernel {
 public:
  PointwiseKernel(const PointwiseRow& row, const lowering::Operator& op, const c10::FunctionSchema& schema,
                  OperatorRecord& record);
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, c10::Stack* stack);
  // For schemas of tensors and then at most one number. In-place operators return an undefined tensor or their first
  // argument.
  at::Tensor call(const c10::OperatorHandle& op, std::initializer_list<const at::Tensor*> tensors,
                  const at::Scalar* number);
  // For schemas of required tensors and at most one number: the plan of calls with operands like these. Empty when
  // their dtypes were not seen before, or when each call has to be looked at.
  std::optional<PointwisePlan> plan(std::span<const at::Tensor* const> tensors, const at::Scalar* number) const;

 private:
  enum class Role : uint8_t { Tensor, Number, Integer, Text, Output, Ignored };
  struct Parameter {
    Role role = Role::Ignored;
    bool optional = false;
    bool promotes = false;
    bool alpha = false;
    bool rounding_mode = false;
  };
  struct Operands;

  void run(const c10::OperatorHandle& op, c10::Stack& stack);
  void start(Operands& operands) const;
  void add_tensor(const Parameter& parameter, const at::Tensor& tensor, Operands& operands) const;
  void add_number(const Parameter& parameter, const at::Scalar& number, Operands& operands) const;
  void gather(const c10::Stack& stack, size_t base, Operands& operands) const;
  // False: the general way has to look. In-place operators leave `output` undefined.
  bool run_quickly(Operands& operands, at::Tensor& output);
  void cast_to_narrow(Operands& operands, at::ScalarType common) const;
  void record(Operands& operands, at::ScalarType common, std::span<const at::Tensor> outputs) const;
  bool by_complex_kernel(at::ScalarType common) const;
  bool accepts(at::ScalarType common) const;
  at::ScalarType common_dtype(const Operands& operands) const;
  void check_divisor(const Operands& operands, at::ScalarType common) const;

  const lowering::Operator* op_;
  const lowering::Operator* unscaled_;  // the rule without alpha, for alpha = 1
  std::vector<Parameter> parameters_;
  bool promote_to_float_;
  bool contiguous_result_;    // as the CPU's implementation makes it
  bool fills_;                // masked_fill
  bool keeps_second_number_;  // of a product or quotient
  bool computes_complex_;     // by a library kernel
  bool divides_;              // raises on an integer divisor of zero
  uint8_t accepts_;
  int inplace_ = -1;  // the argument that is written and read
  int output_count_;  // out= arguments
  bool single_result_;
  OperatorRecord& record_;
  DtypeMemo memo_;
};

void register_pointwise();
// The kernel of an overload ("add_.Tensor"), or null.
std::shared_ptr<PointwiseKernel> find_pointwise(std::string_view name);

}  // namespace neuron::aten
