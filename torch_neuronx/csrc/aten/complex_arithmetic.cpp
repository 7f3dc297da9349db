#include "torch_neuronx/csrc/aten/complex_arithmetic.h"

#include <ATen/ops/expand_ops.h>

#include <string>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/tensor_argument.h"

namespace neuron::aten {

const kernels::Kernel* complex_kernel(std::string_view name) {
  return kernels::find_kernel("complex_" + std::string(name));
}

namespace {

at::ScalarType result_dtype(const kernels::Kernel& kernel, at::ScalarType common) {
  const std::string_view name = kernel.name;
  if (name == "complex_abs" || name == "complex_angle") return c10::toRealValueType(common);
  return name == "complex_eq" || name == "complex_ne" ? at::ScalarType::Bool : common;
}

}  // namespace

void record_complex(const kernels::Kernel& kernel, at::ScalarType common, const at::Tensor& output,
                    std::span<const Input> inputs) {
  if (output.numel() == 0) return;
  std::vector<at::Tensor> tensors;
  std::vector<Scalar> numbers;
  at::DimVector attributes;
  for (const Input& input : inputs) {
    const bool number = input.tensor == nullptr || is_host_number(*input.tensor);
    attributes.push_back(number ? 1 : 0);
    if (!number) {
      const at::Tensor converted = to_dtype(*input.tensor, common);
      const bool fits = converted.sizes().equals(output.sizes());
      tensors.push_back(fits ? converted
                             : at::_ops::expand::call(converted, c10::fromIntArrayRefSlow(output.sizes()), false));
    } else if (input.tensor != nullptr && input.tensor->is_complex()) {
      const auto value = input.tensor->item().toComplexDouble();
      numbers.push_back(Scalar::of(value.real()));
      numbers.push_back(Scalar::of(value.imag()));
    } else {
      numbers.push_back(input.tensor == nullptr ? input.number : host_number(*input.tensor));
      numbers.push_back(Scalar::of(0.0));
    }
  }
  const at::ScalarType result = result_dtype(kernel, common);
  const bool direct = output.scalar_type() == result;
  const at::Tensor target = direct ? output : empty(output.sizes(), result, output.device());
  record_kernel(kernel, std::span(&target, 1), tensors, {attributes.data(), attributes.size()},
                {numbers.data(), numbers.size()});
  if (!direct) record_copy(output, target);
}

namespace {

// conj_physical(self) into an out= tensor.
void conjugate(Arguments& arguments) {
  const at::Tensor& self = arguments.tensor(0);
  dtype_of(self);
  const at::Tensor& out = arguments.output();
  if (out.numel() == 0) return;
  if (!self.is_complex()) return record_copy(out, self);
  static const kernels::Kernel& found = kernel("complex_conj");
  record_complex(found, self.scalar_type(), out, std::span<const Input>({Input(self)}));
}

// complex(real, imag), polar(abs, angle) and their out= forms.
template <bool kAngle>
void of_parts(Arguments& arguments) {
  const at::Tensor &x = arguments.tensor(0), &y = arguments.tensor(1);
  const at::ScalarType part = x.scalar_type();
  if ((part != at::ScalarType::Float && part != at::ScalarType::Double) || is_host_number(x) || is_host_number(y))
    decline();
  const at::Tensor& out = arguments.output();
  if (out.numel() == 0) return;
  auto expanded = [&](const at::Tensor& tensor) {
    return at::_ops::expand::call(apart_from(out, tensor), c10::fromIntArrayRefSlow(out.sizes()), false);
  };
  static const kernels::Kernel& found = kernel(kAngle ? "complex_of_angle" : "complex_of_parts");
  record_kernel(found, {out}, {expanded(x), expanded(y)});
}

const Registration registrations[] = {
    {"conj_physical.out", conjugate}, {"complex", of_parts<false>},  {"complex.out", of_parts<false>},
    {"polar", of_parts<true>},        {"polar.out", of_parts<true>},
};

}  // namespace
}  // namespace neuron::aten
