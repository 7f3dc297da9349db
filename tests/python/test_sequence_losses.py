"""ctc_loss and the margin losses with their gradients on the device against the CPU in float64."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from reference import check, check_gradients

NATIVE = {
    "_ctc_loss", "_ctc_loss_backward", "multi_margin_loss", "multi_margin_loss_backward", "multilabel_margin_loss_forward",
    "multilabel_margin_loss_backward",
}  # fmt: skip


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


LABELS = torch.tensor([[1, 2, 2, 0], [3, 0, 0, 0], [4, 1, 4, 1]])


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("zero_infinity", [False, True])
@pytest.mark.parametrize("given", ["lists", "tensors"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ctc(reduction, zero_infinity, given, dtype):
    inputs, labels = [12, 9, 12], [3, 1, 4]
    targets = {"matrix": LABELS, "row": torch.cat([LABELS[i, :n] for i, n in enumerate(labels)])}
    scores = numbers(12, 3, 5).log_softmax(-1).to(dtype)
    for target in targets.values():
        for index in (torch.int64, torch.int32):

            def loss(scores, target, lengths, counts):
                return F.ctc_loss(
                    scores, target, lengths, counts, blank=0, reduction=reduction, zero_infinity=zero_infinity
                )

            arguments = [scores, target.clamp(min=1).to(index), inputs, labels]
            if given == "tensors":
                arguments[2:] = [torch.tensor(inputs), torch.tensor(labels)]
            check(loss, arguments, epsilons=32, scale=1.0)
            check_gradients(loss, arguments, epsilons=64)


def test_ctc_of_odd_problems():
    scores = numbers(5, 3, 6).log_softmax(-1)

    def loss(scores, targets, inputs, labels, zero=False, blank=5):
        return F.ctc_loss(scores, targets, inputs, labels, blank=blank, reduction="none", zero_infinity=zero)

    # No labels; too many for the steps; no steps.
    targets = torch.tensor([[1, 1, 1, 1], [2, 3, 2, 0], [0, 4, 1, 2]])
    for inputs, labels in (([5, 5, 5], [0, 2, 1]), ([5, 5, 5], [4, 4, 4]), ([0, 3, 0], [0, 0, 2])):
        check(loss, [scores, targets, inputs, labels], epsilons=32, scale=1.0)
        for zero in (True,):
            check_gradients(lambda s, t, i, n, z=zero: loss(s, t, i, n, z), [scores, targets, inputs, labels])
    strided = numbers(3, 5, 6).log_softmax(-1).transpose(0, 1)
    check(loss, [strided, targets.t().contiguous().t(), [5, 4, 3], [2, 3, 1]], epsilons=32, scale=1.0)
    one = numbers(4, 3).log_softmax(-1)
    check(
        lambda s, t: F.ctc_loss(s, t, torch.tensor(4, device=s.device), torch.tensor(2, device=s.device)),
        [one, torch.tensor([1, 2])],
        epsilons=32,
    )


@pytest.mark.parametrize(
    ("inputs", "labels", "blank", "targets"),
    [([6, 5], [1, 1], 0, [[1], [1]]), ([5, 5], [2, 1], 0, [[1], [1]]), ([5], [1, 1], 0, [[1], [1]]),
     ([5, 5], [1, 1], 7, [[1], [1]]), ([5, 5], [1, 1], 0, [1, 1, 1]), ([5, 5], [1, 1], 0, [[1.0], [1.0]])],
)  # fmt: skip
def test_errors_of_ctc_are_the_cpus(inputs, labels, blank, targets):
    def run(device):
        scores = numbers(5, 2, 3).log_softmax(-1).to(device)
        return torch._ctc_loss(scores, torch.tensor(targets, device=device), inputs, labels, blank)

    with pytest.raises(RuntimeError) as expected:
        run("cpu")
    with pytest.raises(RuntimeError) as actual:
        run("neuron")
    assert str(expected.value).splitlines()[0] == str(actual.value).splitlines()[0]


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_multi_margin(reduction, dtype):
    weight = torch.tensor([0.5, 2.0, 1.0, 1.5], dtype=dtype)
    target = torch.tensor([0, 3, 1])
    for scores in (numbers(3, 4), numbers(4, 3).t(), numbers(3, 8)[:, ::2]):
        for p, margin, w in ((1, 1.0, None), (2, 0.5, None), (1, 2.0, weight), (2, 1.0, weight)):

            def loss(x, t, w, p=p, margin=margin):
                return F.multi_margin_loss(x, t, p=p, margin=margin, weight=w, reduction=reduction)

            check(loss, [scores.to(dtype), target, w], epsilons=16, scale=1.0)
            check_gradients(
                lambda x, t, w=w, f=loss: f(x, t, None if w is None else w.to(x)), [scores.to(dtype), target]
            )
    check(
        lambda x, t: F.multi_margin_loss(x, t, reduction=reduction), [numbers(4).to(dtype), torch.tensor(2)], scale=1.0
    )
    check(lambda x, t: F.multi_margin_loss(x, t, reduction="none"), [numbers(0, 4).to(dtype), target[:0]])


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_multilabel_margin(reduction, dtype):
    def loss(x, t):
        return F.multilabel_margin_loss(x, t, reduction=reduction)

    target = torch.tensor([[0, 2, -1, 1], [-1, 0, 0, 0], [3, 1, 0, 2]])
    for scores in (numbers(3, 4), numbers(4, 3).t(), numbers(3, 8)[:, ::2]):
        check(loss, [scores.to(dtype), target], epsilons=16, scale=1.0)
        check_gradients(loss, [scores.to(dtype), target])
    check(loss, [numbers(4).to(dtype), target[0]], scale=1.0)
    check_gradients(loss, [numbers(4).to(dtype), target[0]])


def test_errors_of_margin_losses_are_the_cpus():
    cases = [
        lambda d: F.multi_margin_loss(torch.ones(2, 3, device=d), torch.tensor([0, 3], device=d)),
        lambda d: F.multi_margin_loss(torch.ones(2, 3, device=d), torch.tensor([0], device=d)),
        lambda d: F.multi_margin_loss(torch.ones(2, 3, device=d), torch.tensor([0, 1], device=d), p=3),
        lambda d: F.multi_margin_loss(torch.ones(2, 3, device=d).half(), torch.tensor([0, 1], device=d)),
        lambda d: F.multilabel_margin_loss(torch.ones(2, 3, device=d), torch.tensor([[0, 1, 4], [0, 1, 2]], device=d)),
        lambda d: F.multilabel_margin_loss(torch.ones(2, 3, device=d), torch.tensor([[0, 1], [0, 1]], device=d)),
    ]
    for case in cases:
        with pytest.raises(Exception) as expected:  # noqa: PT011
            case("cpu")
        with pytest.raises(type(expected.value)) as actual:
            case("neuron").cpu()
        assert str(expected.value).splitlines()[0] == str(actual.value).splitlines()[0]
