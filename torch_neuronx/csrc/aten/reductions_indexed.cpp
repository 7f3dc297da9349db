// Extremes with their positions: argmax, argmin, max and min along a dimension.
#include <c10/core/WrapDimMinimal.h>

#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

// Row-major positions within the reduced dimensions, 0 strides elsewhere.
at::DimVector position_strides(const at::Tensor& self, uint64_t mask) {
  at::DimVector strides(static_cast<size_t>(self.dim()), 0);
  int64_t stride = 1;
  for (int64_t d = self.dim() - 1; d >= 0; --d) {
    if ((mask >> d & 1) == 0) continue;
    strides[static_cast<size_t>(d)] = stride;
    stride *= self.size(d);
  }
  return strides;
}

void record_extreme(const lowering::Operator& op, const at::Tensor& self, uint64_t mask,
                    std::initializer_list<at::Tensor> outputs) {
  const at::Tensor input = mergeable(self, mask);
  at::DimVector strides = position_strides(self, mask);
  if (mask == 0) strides.insert(strides.begin(), 0);
  record_rows(op, dtype_of(self), input.sizes(), mask, outputs,
              {Input(input), Input::index(0, {strides.data(), strides.size()})});
}

// argmax, argmin(self, dim?, keepdim): over everything without a dimension.
template <bool maximum>
void arg_extreme(Arguments& arguments) {
  static const lowering::Operator& op = operator_named(maximum ? "argmax" : "argmin");
  const at::Tensor& self = arguments.tensor(0);
  require_row_dtype(self);
  const at::Tensor& out = arguments.output();
  const at::DimVector dims = arguments.absent(1) ? at::DimVector() : at::DimVector{arguments.integer(1)};
  record_extreme(op, self, dimension_mask(dims, self.dim()), {out});
}

// max.dim, min.dim(self, dim, keepdim) -> (values, indices).
template <bool maximum>
void extreme_with_index(Arguments& arguments) {
  static const lowering::Operator& op = operator_named(maximum ? "max" : "min");
  const at::Tensor& self = arguments.tensor(0);
  require_row_dtype(self);
  const int64_t dim = c10::maybe_wrap_dim(arguments.integer(1), self.dim());
  TORCH_CHECK_INDEX(self.numel() != 0 || self.dim() == 0 || self.size(dim) != 0, maximum ? "max" : "min",
                    "(): Expected reduction dim ", dim, " to have non-zero size.");
  const auto& outputs = arguments.outputs();
  record_extreme(op, self, dimension_mask({arguments.integer(1)}, self.dim()), {outputs[0], outputs[1]});
}

// aminmax(self, *, dim?, keepdim).
void aminmax(Arguments& arguments) {
  static const lowering::Operator& op = operator_named("aminmax");
  const at::Tensor& self = arguments.tensor(0);
  require_row_dtype(self);
  const auto& outputs = arguments.outputs();
  const at::DimVector dims = arguments.absent(1) ? at::DimVector() : at::DimVector{arguments.integer(1)};
  const uint64_t mask = dimension_mask(dims, self.dim());
  const at::Tensor input = mergeable(self, mask);
  record_rows(op, dtype_of(self), input.sizes(), mask, {outputs[0], outputs[1]}, {Input(input)});
}

const Registration registrations[] = {
    {"argmax", arg_extreme<true>},
    {"argmax.out", arg_extreme<true>},
    {"argmin", arg_extreme<false>},
    {"argmin.out", arg_extreme<false>},
    {"max.dim", extreme_with_index<true>},
    {"max.dim_max", extreme_with_index<true>},
    {"min.dim", extreme_with_index<false>},
    {"min.dim_min", extreme_with_index<false>},
    {"aminmax", aminmax},
    {"aminmax.out", aminmax},
};

}  // namespace
}  // namespace neuron::aten
