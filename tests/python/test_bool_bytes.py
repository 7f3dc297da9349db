"""Bytes seen as bool (`view(torch.bool)`): whatever is not zero is true, not only 1."""

from __future__ import annotations

import pytest
import torch

BYTES = torch.tensor([[0, 1, 255, 0, 2, 128], [7, 0, 0, 64, 1, 3], [0, 0, 0, 0, 0, 16]], dtype=torch.uint8)
FLAGS = BYTES != 0
NUMBERS = torch.arange(18.0).reshape(3, 6)

OPERATORS = {
    "masked_select": lambda flags: NUMBERS.to(flags.device).masked_select(flags),
    "index by mask": lambda flags: NUMBERS.to(flags.device)[flags],
    "masked_scatter": lambda flags: NUMBERS.to(flags.device).masked_scatter(flags, -NUMBERS.to(flags.device)),
    "masked_fill": lambda flags: NUMBERS.to(flags.device).masked_fill(flags, -1),
    "where": lambda flags: torch.where(flags, 1.0, NUMBERS.to(flags.device)),
    "nonzero": torch.nonzero,
    "count_nonzero": torch.count_nonzero,
    "sum": lambda flags: flags.sum(1),
    "to float": lambda flags: flags.float(),
    "to int": lambda flags: flags.int(),
    "cumsum": lambda flags: flags.cumsum(1),
    "cummax": lambda flags: flags.cummax(1).values,
    "sort": lambda flags: flags.sort(dim=1, stable=True).indices,
    "argsort, descending": lambda flags: flags.argsort(dim=1, descending=True, stable=True),
    "unique": lambda flags: torch.unique(flags),
    "any": lambda flags: flags.any(1),
    "all": lambda flags: flags.all(0),
    "equal": lambda flags: flags == flags.logical_not().logical_not(),
    "and": lambda flags: flags & flags[:1],
    "xor": lambda flags: flags ^ flags[:1],
    "not": lambda flags: ~flags,
    "max": lambda flags: flags.max(1).values,
    "argmax": lambda flags: flags.int().argmax(1),
    "index_add": lambda flags: flags.index_add(0, torch.tensor([0, 0], device=flags.device), flags[1:]),
    "cat": lambda flags: torch.cat([flags, flags]).sum(),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_every_byte_but_zero_is_true(name):
    got = OPERATORS[name](BYTES.to("neuron").view(torch.bool)).cpu()
    expected = OPERATORS[name](FLAGS)
    assert got.dtype == expected.dtype
    if got.dtype == torch.bool:
        got = got.view(torch.uint8) != 0
    assert torch.equal(got, expected)
