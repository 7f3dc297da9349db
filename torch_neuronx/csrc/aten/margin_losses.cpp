// multi_margin_loss and multilabel_margin_loss with their gradients.
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>

#include "neuron/kernels/kernel.h"
#include "torch_neuronx/csrc/aten/given_output.h"
#include "torch_neuronx/csrc/aten/indexed.h"
#include "torch_neuronx/csrc/aten/refuse.h"
#include "torch_neuronx/csrc/aten/registration.h"
#include "torch_neuronx/csrc/aten/rows.h"

namespace neuron::aten {
namespace {

void check_scores(const at::Tensor& self, const at::Tensor& target) {
  if (self.scalar_type() != at::ScalarType::Float && self.scalar_type() != at::ScalarType::Double) refuse();
  if (self.dim() > 2 || target.scalar_type() != at::ScalarType::Long) refuse();
  if (self.dim() > 0 && self.size(-1) == 0) refuse();
}

// Scores or targets as a matrix without gaps.
at::Tensor matrix(const at::Tensor& tensor) {
  const int64_t rows = tensor.dim() < 2 ? 1 : tensor.size(0), width = tensor.dim() == 0 ? 1 : tensor.size(-1);
  return alias(contiguous(tensor), {rows, width}, {width, 1});
}

struct MultiMargin {
  const at::Tensor &self, &target, &weight;
  int64_t p, reduction;
  double margin;

  MultiMargin(const Arguments& arguments, int first)
      : self(arguments.tensor(first)),
        target(arguments.tensor(first + 1)),
        weight(arguments.tensor(first + 4)),
        p(arguments.scalar(first + 2).toLong()),
        reduction(arguments.integer(first + 5)),
        margin(arguments.scalar(first + 3).toDouble()) {
    check_scores(self, target);
    const int64_t rows = self.dim() < 2 ? 1 : self.size(0);
    if ((p != 1 && p != 2) || target.dim() > 1 || target.numel() != rows) refuse();
    if (weight.defined() &&
        (weight.scalar_type() != self.scalar_type() || weight.numel() != (self.dim() == 0 ? 1 : self.size(-1)))) {
      refuse();
    }
    const at::Tensor* all[] = {&self, &target, &weight};
    common_device(all);
  }
  at::Tensor weights() const { return weight.defined() ? contiguous(weight) : at::Tensor(); }
};

// multi_margin_loss(self, target, p, margin, weight?, reduction)
void multi_margin_loss(Arguments& arguments) {
  const MultiMargin given(arguments, 0);
  const bool each = given.reduction == at::Reduction::None && given.target.dim() > 0;
  const at::Tensor out =
      empty(each ? given.target.sizes() : at::IntArrayRef(), given.self.scalar_type(), given.self.device());
  static const kernels::Kernel& found = kernel("multi_margin_loss");
  const at::Tensor scores = matrix(given.self);
  if (scores.numel() == 0) {
    if (!each) record_fill(out, 0);
  } else {
    record_kernel(found, {out}, {scores, as_line(given.target), given.weights()}, {given.p, given.reduction},
                  {Scalar::of(given.margin)});
  }
  give_or_write(arguments, 6, {out});
}

// multi_margin_loss_backward(grad_output, self, target, p, margin, weight?, reduction)
void multi_margin_loss_backward(Arguments& arguments) {
  const MultiMargin given(arguments, 1);
  const at::Tensor& gradient = arguments.tensor(0);
  const at::Tensor scores = matrix(given.self);
  if (gradient.scalar_type() != given.self.scalar_type() ||
      gradient.numel() != (given.reduction == at::Reduction::None ? scores.size(0) : 1)) {
    refuse();
  }
  const at::Tensor out = empty(given.self.sizes(), given.self.scalar_type(), given.self.device());
  static const kernels::Kernel& found = kernel("multi_margin_loss_backward");
  if (out.numel() != 0) {
    record_kernel(found, {matrix(out)}, {as_line(gradient), scores, as_line(given.target), given.weights()},
                  {given.p, given.reduction}, {Scalar::of(given.margin)});
  }
  give_or_write(arguments, 7, {out});
}

void check_multilabel(const at::Tensor& self, const at::Tensor& target) {
  check_scores(self, target);
  if (self.numel() != target.numel() || (self.dim() == 2 && !self.sizes().equals(target.sizes()))) refuse();
  const at::Tensor* both[] = {&self, &target};
  common_device(both);
}

// multilabel_margin_loss_forward(self, target, reduction) -> (output, is_target)
void multilabel_margin_loss(Arguments& arguments) {
  const at::Tensor &self = arguments.tensor(0), &target = arguments.tensor(1);
  const int64_t reduction = arguments.integer(2);
  check_multilabel(self, target);
  const at::Tensor scores = matrix(self);
  const bool each = reduction == at::Reduction::None && self.dim() == 2;
  const int64_t rows[] = {scores.size(0)};
  const at::Tensor out = empty(each ? at::IntArrayRef(rows) : at::IntArrayRef(), self.scalar_type(), self.device());
  const at::Tensor is_target = empty(target.sizes(), self.scalar_type(), self.device());
  static const kernels::Kernel& found = kernel("multilabel_margin_loss");
  if (scores.numel() == 0) {
    if (!each) record_fill(out, 0);
  } else {
    record_kernel(found, {out, matrix(is_target)}, {scores, matrix(target)}, {reduction});
  }
  give_or_write(arguments, 3, {out, is_target});
}

// multilabel_margin_loss_backward(grad_output, self, target, reduction, is_target)
void multilabel_margin_loss_backward(Arguments& arguments) {
  const at::Tensor &gradient = arguments.tensor(0), &self = arguments.tensor(1), &target = arguments.tensor(2),
                   &is_target = arguments.tensor(4);
  const int64_t reduction = arguments.integer(3);
  check_multilabel(self, target);
  const at::Tensor scores = matrix(self);
  if (is_target.scalar_type() != self.scalar_type() || !is_target.sizes().equals(target.sizes()) ||
      gradient.scalar_type() != self.scalar_type() ||
      gradient.numel() != (reduction == at::Reduction::None ? scores.size(0) : 1)) {
    refuse();
  }
  const at::Tensor out = empty(self.sizes(), self.scalar_type(), self.device());
  static const kernels::Kernel& found = kernel("multilabel_margin_loss_backward");
  if (out.numel() != 0) {
    record_kernel(found, {matrix(out)}, {as_line(gradient), scores, matrix(target), matrix(is_target)}, {reduction});
  }
  give_or_write(arguments, 5, {out});
}

const Registration registrations[] = {
    {"multi_margin_loss", multi_margin_loss},
    {"multi_margin_loss.out", multi_margin_loss},
    {"multi_margin_loss_backward", multi_margin_loss_backward},
    {"multi_margin_loss_backward.grad_input", multi_margin_loss_backward},
    {"multilabel_margin_loss_forward", multilabel_margin_loss},
    {"multilabel_margin_loss_forward.output", multilabel_margin_loss},
    {"multilabel_margin_loss_backward", multilabel_margin_loss_backward},
    {"multilabel_margin_loss_backward.grad_input", multilabel_margin_loss_backward},
};

}  // namespace
}  // namespace neuron::aten
