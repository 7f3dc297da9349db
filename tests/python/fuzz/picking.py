"""What the statements of a program choose from: tensors that fit, and what must not share memory."""

from __future__ import annotations

import torch
from torch import Tensor


def is_float(tensor: Tensor) -> bool:
    return tensor.dtype.is_floating_point


def scalar(g) -> str:
    return g.random.choice(["0.5", "2", "-1", "3", "1.5", "-0.25"])


def partner(g, name: str) -> str:
    """A tensor that broadcasts with it (often), or a number."""
    mine = g.get(name)
    if g.random.random() < 0.25:
        return scalar(g)

    def fits(tensor: Tensor) -> bool:
        # The CPU rounds an operand of another dtype to the common one first, or not, depending on its position.
        if g.exact and tensor.dtype != mine.dtype:
            return False
        return all(
            a == b or a == 1 or b == 1 for a, b in zip(reversed(mine.shape), reversed(tensor.shape), strict=False)
        )

    return g.pick(fits) or scalar(g)


def dimension(g, name: str) -> int:
    return g.random.randrange(-g.get(name).dim(), g.get(name).dim()) if g.get(name).dim() else 0


def addresses(tensor: Tensor) -> Tensor:
    """The address of every element."""
    result = torch.tensor(tensor.storage_offset())
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        result = result.unsqueeze(-1) + torch.arange(size) * stride
    return result.flatten() * tensor.element_size() + tensor.untyped_storage().data_ptr()


def writable(g) -> str | None:
    """A tensor none of whose elements share memory with each other."""

    def distinct(tensor: Tensor) -> bool:
        return tensor.is_contiguous() or len(addresses(tensor).unique()) == tensor.numel()

    return g.pick(distinct)


def conflict(g, target: str, source: str) -> bool:
    """The source shares some memory with the target, but not element by element: the order of the loop would matter."""
    x, y = g.get(target), g.machine.names.get(source)
    if y is None or x.untyped_storage().data_ptr() != y.untyped_storage().data_ptr() or x.numel() == 0:
        return False
    if x.shape == y.shape and x.stride() == y.stride() and x.storage_offset() == y.storage_offset():
        return False
    return bool(torch.isin(addresses(x), addresses(y)).any())
