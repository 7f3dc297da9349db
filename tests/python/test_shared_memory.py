"""Results that are written over an operand: what is computed is what separate memory would give."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

SIZE = 70


def square(seed: int = 0) -> Tensor:
    return torch.rand(SIZE, SIZE, generator=torch.Generator().manual_seed(seed))


def long(*shape: int) -> Tensor:
    return torch.zeros(*shape, dtype=torch.long, device="neuron")


ORDER = torch.randperm(SIZE, generator=torch.Generator().manual_seed(1))
# name -> (writes over its operand x on the device, what belongs there given x on the CPU)
CASES: dict[str, tuple[Callable[[Tensor], object], Callable[[Tensor], Tensor]]] = {
    "sort": (lambda x: torch.sort(x, out=(x, long(0))), lambda x: x.sort()[0]),
    "sort of columns": (lambda x: torch.sort(x, 0, out=(x, long(0))), lambda x: x.sort(0)[0]),
    "sort of a transpose": (lambda x: torch.sort(x.t(), out=(x, long(0))), lambda x: x.t().sort()[0]),
    "topk": (lambda x: torch.topk(x, SIZE, out=(x, long(0))), lambda x: x.topk(SIZE)[0]),
    "cumsum": (lambda x: torch.cumsum(x, 1, out=x), lambda x: x.cumsum(1)),
    "cumsum in place": (lambda x: x.cumsum_(0), lambda x: x.cumsum(0)),
    "cumprod of a transpose": (lambda x: torch.cumprod(x.t(), 0, out=x), lambda x: x.t().cumprod(0)),
    "index_select": (lambda x: torch.index_select(x, 0, ORDER.to("neuron"), out=x), lambda x: x[ORDER]),
    "product": (lambda x: torch.mm(x, x, out=x), lambda x: x @ x),
    "product added": (lambda x: x.addmm_(x, x), lambda x: x + x @ x),
    "product with a vector": (lambda x: torch.mv(x, x[0], out=x[3]), lambda x: put(x, 3, x @ x[0])),
    "lower triangle of a transpose": (lambda x: torch.tril(x.t(), out=x), lambda x: x.t().tril()),
    "sum into a row": (lambda x: torch.sum(x, 1, out=x[SIZE - 1]), lambda x: put(x, SIZE - 1, x.sum(1))),
    "softmax": (lambda x: torch.softmax(x, 1, out=x), lambda x: x.softmax(1)),
    "softmax of a transpose": (lambda x: torch.softmax(x.t(), 1, out=x), lambda x: x.t().softmax(1)),
    "broadcast column": (lambda x: x.mul_(x[:, 0:1]), lambda x: x * x[:, 0:1]),
    "an element fills": (lambda x: x.masked_fill_(x > 0.5, x[0, 0]), lambda x: x.masked_fill(x > 0.5, x[0, 0].item())),
    "two elements": (
        lambda x: x.t().masked_fill_(torch.tensor(True, device="neuron"), x[0, 0]),
        lambda x: torch.full_like(x, x[0, 0].item()),
    ),
    "an element is put": (lambda x: x.__setitem__(x > 0.5, x[0, 0]), lambda x: x.masked_fill(x > 0.5, x[0, 0].item())),
    "masked_scatter": (lambda x: x.masked_scatter_(x > 0.5, x), lambda x: x.masked_scatter(x > 0.5, x.clone())),
}


def put(x: Tensor, row: int, values: Tensor) -> Tensor:
    result = x.clone()
    result[row] = values
    return result


@pytest.mark.parametrize("name", CASES)
def test_results_over_an_operand(name: str) -> None:
    write, expected = CASES[name]
    x = square()
    given = x.to("neuron")
    write(given)
    torch.testing.assert_close(given.cpu(), expected(x))


def test_random_numbers_are_not_written_to_one_place_several_times() -> None:
    for fill in (Tensor.bernoulli_, Tensor.uniform_, Tensor.normal_, Tensor.random_, Tensor.exponential_):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            fill(torch.zeros(1, device="neuron").expand(4))
