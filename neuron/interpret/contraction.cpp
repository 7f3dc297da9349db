// dot_general and convolution, from their definitions. Floats accumulate in double and are rounded to float32 (float64:
// not at all) and then to the result; integers wrap around.
#include <algorithm>
#include <complex>
#include <vector>

#include "neuron/base/float_formats.h"
#include "neuron/interpret/arithmetic.h"
#include "neuron/interpret/kernels.h"

namespace neuron::interpret {

namespace {

template <typename T>
struct AccumulatorOf {
  using type = uint64_t;  // wraps around; its low bits are those of any narrower sum
};
template <>
struct AccumulatorOf<float> {
  using type = double;
};
template <>
struct AccumulatorOf<double> {
  using type = double;
};
template <typename T>
struct AccumulatorOf<std::complex<T>> {
  using type = std::complex<double>;
};
template <typename T>
using Accumulator = typename AccumulatorOf<T>::type;

template <typename A>
void store(const Invocation& call, int64_t index, A value) {
  Buffer& out = call.result();
  std::byte* address = out.bytes.data() + index * dtype_size(out.dtype);
  if constexpr (is_complex_type<A>) {
    if (out.dtype == DType::Complex64) {
      out.data<std::complex<float>>()[index] = std::complex<float>(value);
    } else if (out.dtype == DType::Complex128) {
      out.data<std::complex<double>>()[index] = value;
    } else {
      unsupported(call, out.dtype);
    }
  } else if constexpr (std::is_same_v<A, double>) {
    if (!is_float(out.dtype)) unsupported(call, out.dtype);
    store_from_double(out.dtype, value, address);
  } else {
    if (is_float(out.dtype) || is_complex(out.dtype)) unsupported(call, out.dtype);
    store_from_int(out.dtype, static_cast<int64_t>(value), address);
  }
}

// Calls body(Tag<T>, lhs, rhs) with both operands widened.
template <typename Body>
void with_operands(const Invocation& call, Body body) {
  Buffer lhs_scratch, rhs_scratch;
  const Buffer &lhs = widen(call.operand(0), lhs_scratch), &rhs = widen(call.operand(1), rhs_scratch);
  check_internal(lhs.dtype == rhs.dtype, "{}: operands are {} and {}", ir::op_info(call.operation.opcode).mnemonic,
                 dtype_name(call.operand(0).dtype), dtype_name(call.operand(1).dtype));
  visit(lhs.dtype, [&]<typename T>(Tag<T> tag) { body(tag, lhs, rhs); });
}

template <typename T>
Accumulator<T> product_of(T x, T y) {
  return multiply(static_cast<Accumulator<T>>(x), static_cast<Accumulator<T>>(y));
}

bool contains(const std::vector<int64_t>& list, size_t value) {
  return std::find(list.begin(), list.end(), static_cast<int64_t>(value)) != list.end();
}

}  // namespace

void evaluate_dot_general(const Invocation& call) {
  const ir::Attributes& attributes = call.operation.attributes;
  const auto& lhs_batching = attributes.get_ints("lhs_batching_dimensions");
  const auto& rhs_batching = attributes.get_ints("rhs_batching_dimensions");
  const auto& lhs_contracting = attributes.get_ints("lhs_contracting_dimensions");
  const auto& rhs_contracting = attributes.get_ints("rhs_contracting_dimensions");
  with_operands(call, [&]<typename T>(Tag<T>, const Buffer& lhs, const Buffer& rhs) {
    Dims lhs_strides = row_major_strides(lhs.sizes), rhs_strides = row_major_strides(rhs.sizes);
    // What one step along each dimension of the result, and of the contraction, means in the operands. The result is
    // (batch…, the other dimensions of lhs…, the other dimensions of rhs…).
    Dims lhs_step, rhs_step;
    for (size_t b = 0; b < lhs_batching.size(); ++b) {
      lhs_step.push_back(lhs_strides[lhs_batching[b]]);
      rhs_step.push_back(rhs_strides[rhs_batching[b]]);
    }
    for (size_t d = 0; d < lhs.sizes.size(); ++d) {
      if (contains(lhs_batching, d) || contains(lhs_contracting, d)) continue;
      lhs_step.push_back(lhs_strides[d]);
      rhs_step.push_back(0);
    }
    for (size_t d = 0; d < rhs.sizes.size(); ++d) {
      if (contains(rhs_batching, d) || contains(rhs_contracting, d)) continue;
      lhs_step.push_back(0);
      rhs_step.push_back(rhs_strides[d]);
    }
    Dims inner, lhs_inner, rhs_inner;
    for (size_t c = 0; c < lhs_contracting.size(); ++c) {
      inner.push_back(lhs.sizes[lhs_contracting[c]]);
      lhs_inner.push_back(lhs_strides[lhs_contracting[c]]);
      rhs_inner.push_back(rhs_strides[rhs_contracting[c]]);
    }
    int64_t length = product(inner);
    Position position(call.result().sizes);
    for (int64_t i = 0, n = call.result().numel(); i < n; ++i, position.next()) {
      const T* x = lhs.data<T>() + offset_of(position.index(), lhs_step);
      const T* y = rhs.data<T>() + offset_of(position.index(), rhs_step);
      Accumulator<T> sum{};
      Position at(inner);
      for (int64_t k = 0; k < length; ++k, at.next())
        sum += product_of<T>(x[offset_of(at.index(), lhs_inner)], y[offset_of(at.index(), rhs_inner)]);
      store(call, i, sum);
    }
  });
}

// Layouts are the Builder's: input [batch, feature, spatial…], kernel [output, input / groups, spatial…].
void evaluate_convolution(const Invocation& call) {
  const ir::Attributes& attributes = call.operation.attributes;
  const auto& step = attributes.get_ints("window_strides");
  const auto& padding = attributes.get_ints("padding");
  const auto& lhs_dilation = attributes.get_ints("lhs_dilation");
  const auto& rhs_dilation = attributes.get_ints("rhs_dilation");
  const auto& reversal = attributes.get_ints("window_reversal");
  int64_t feature_groups = attributes.get_int("feature_group_count");
  int64_t batch_groups = attributes.get_int("batch_group_count");
  with_operands(call, [&]<typename T>(Tag<T>, const Buffer& input, const Buffer& kernel) {
    size_t spatial = step.size();
    Dims input_strides = row_major_strides(input.sizes), kernel_strides = row_major_strides(kernel.sizes);
    Dims window(kernel.sizes.size() - 1);  // [input feature of the group, spatial…]
    for (size_t d = 0; d < window.size(); ++d) window[d] = kernel.sizes[d + 1];
    int64_t length = product(window);
    int64_t outputs = kernel.sizes[0];
    int64_t batches = batch_groups == 0 ? 0 : input.sizes[0] / batch_groups;
    Position position(call.result().sizes);
    for (int64_t i = 0, n = call.result().numel(); i < n; ++i, position.next()) {
      int64_t output = position[1];
      int64_t batch = position[0] + output / (outputs / batch_groups) * batches;
      int64_t first_feature = output / (outputs / feature_groups) * window[0];
      Accumulator<T> sum{};
      Position at(window);
      for (int64_t w = 0; w < length; ++w, at.next()) {
        int64_t source = batch * input_strides[0] + (first_feature + at[0]) * input_strides[1];
        int64_t weight = output * kernel_strides[0] + at[0] * kernel_strides[1];
        bool inside = true;
        for (size_t d = 0; d < spatial; ++d) {
          int64_t dilated = position[2 + d] * step[d] + at[1 + d] * rhs_dilation[d] - padding[2 * d];
          int64_t x = dilated / lhs_dilation[d];
          inside &= dilated >= 0 && dilated % lhs_dilation[d] == 0 && x < input.sizes[2 + d];
          source += x * input_strides[2 + d];
          int64_t tap = reversal[d] ? window[1 + d] - 1 - at[1 + d] : at[1 + d];
          weight += tap * kernel_strides[2 + d];
        }
        if (inside) sum += product_of<T>(input.data<T>()[source], kernel.data<T>()[weight]);
      }
      store(call, i, sum);
    }
  });
}

}  // namespace neuron::interpret
