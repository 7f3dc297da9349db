"""Factories: values, dtypes, layouts and devices."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import torch_neuronx

FACTORIES: dict[str, Callable[[str], torch.Tensor]] = {
    "zeros": lambda d: torch.zeros(2, 3, device=d),
    "ones long": lambda d: torch.ones(2, 3, dtype=torch.long, device=d),
    "full": lambda d: torch.full((2, 2), 3.5, device=d),
    "full bool": lambda d: torch.full((2, 2), True, device=d),
    "full complex": lambda d: torch.full((2, 2), 1 + 2j, device=d),
    "full int64": lambda d: torch.full((2,), 2**62 + 1, device=d),
    "full uint8": lambda d: torch.full((2,), 255, dtype=torch.uint8, device=d),
    "full float8": lambda d: torch.full((4,), 1.5, device=d).to(torch.float8_e4m3fn).float(),
    "full half": lambda d: torch.full((3,), 0.1, dtype=torch.half, device=d),
    "full inf": lambda d: torch.full((3,), float("-inf"), device=d),
    "arange": lambda d: torch.arange(10, device=d),
    "arange step": lambda d: torch.arange(3, 20, 4, device=d),
    "arange negative": lambda d: torch.arange(5, -5, -3, device=d),
    "arange float": lambda d: torch.arange(0, 1, 0.1, device=d),
    "arange double": lambda d: torch.arange(0, 5, 0.3, dtype=torch.float64, device=d),
    "arange int32": lambda d: torch.arange(7, dtype=torch.int32, device=d),
    "arange bfloat16": lambda d: torch.arange(7, dtype=torch.bfloat16, device=d),
    "arange empty": lambda d: torch.arange(0, device=d),
    "linspace": lambda d: torch.linspace(-1, 1, 7, device=d),
    "linspace one": lambda d: torch.linspace(-1, 1, 1, device=d),
    "linspace double": lambda d: torch.linspace(0, 1, 11, dtype=torch.float64, device=d),
    "eye": lambda d: torch.eye(4, device=d),
    "eye rectangular": lambda d: torch.eye(2, 5, dtype=torch.long, device=d),
    "tril": lambda d: torch.ones(4, 5, device=d).tril(),
    "tril diagonal": lambda d: torch.arange(20.0).to(d).view(4, 5).tril(-1),
    "triu": lambda d: torch.arange(20).to(d).view(4, 5).triu(1),
    "triu batch": lambda d: torch.arange(24.0).to(d).view(2, 3, 4).triu(),
    "triu transposed": lambda d: torch.arange(20.0).to(d).view(4, 5).t().triu(),
    "triu bool": lambda d: torch.ones(3, 3, dtype=torch.bool, device=d).triu(1),
    "tril inplace": lambda d: torch.ones(3, 3, device=d).tril_(),
    "zeros_like": lambda d: torch.zeros_like(torch.ones(3, 2, device=d).t()),
    "full_like": lambda d: torch.full_like(torch.ones(3, 2, device=d), 4, dtype=torch.int16),
    "new_zeros": lambda d: torch.ones(1, device=d).new_zeros(2, 3),
    "tensor": lambda d: torch.tensor([[1, 2], [3, 4]], device=d),
    "scalar_tensor": lambda d: torch.scalar_tensor(3, device=d),
    "fill": lambda d: torch.zeros(3, device=d).fill_(torch.tensor(2, device=d)),
    "fill strided": lambda d: torch.zeros(4, 4, device=d).t()[::2].fill_(3).clone(),
    "zero_": lambda d: torch.ones(4, device=d).zero_(),
    "empty channels_last": lambda d: torch.empty(2, 3, 4, 5, device=d, memory_format=torch.channels_last).fill_(1),
    "empty_strided": lambda d: torch.empty_strided((2, 3), (1, 4), device=d).fill_(2),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_as_on_the_cpu(name: str):
    torch_neuronx.clear_op_tracking()
    expected, actual = FACTORIES[name]("cpu"), FACTORIES[name]("neuron")
    assert actual.device == torch.device("neuron:0")
    assert (actual.dtype, actual.shape, actual.stride()) == (expected.dtype, expected.shape, expected.stride())
    torch.testing.assert_close(actual.cpu(), expected, rtol=2e-7 if expected.dtype == torch.float32 else 0, atol=1e-7)
    assert torch_neuronx.get_fallback_ops() == []


def test_device_index_and_current_device():
    assert torch.empty(1, device="neuron:1").device.index == 1
    with torch.neuron.device(2):
        assert torch.empty(1, device="neuron").device.index == 2
    with pytest.raises(RuntimeError, match="99"):
        torch.empty(1, device="neuron:99")


def test_refused_options():
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        torch.empty(1, device="neuron", pin_memory=True)


def test_deterministic_fill():
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(3, device="neuron").isnan().all()
        assert torch.empty(2, dtype=torch.int32, device="neuron").tolist() == [2**31 - 1] * 2
        grown = torch.zeros(2, device="neuron").resize_(4).cpu()
        assert grown[:2].tolist() == [0, 0] and grown[2:].isnan().all()
    finally:
        torch.use_deterministic_algorithms(False)


def test_an_out_tensor_of_as_many_elements_keeps_its_shape():
    for fill in (
        lambda out: torch.arange(0, 4, out=out),
        lambda out: torch.range(0, 3, out=out),
        lambda out: torch.linspace(0, 3, 4, out=out),
    ):
        for view in (lambda x: x.narrow(1, 1, 2), lambda x: x[:, :2].t(), lambda x: x[0:1].expand(1, 4).t()[:, 0:1]):
            x, y = torch.zeros(2, 4), torch.zeros(2, 4, device="neuron")
            fill(view(x))
            fill(view(y))
            assert torch.equal(y.cpu(), x)
    y = torch.zeros(2, 3, device="neuron")
    torch.randperm(4, out=y.narrow(1, 1, 2))
    assert y[:, 0].tolist() == [0, 0] and sorted(y[:, 1:].flatten().tolist()) == [0, 1, 2, 3]


def test_item_of_every_dtype():
    for dtype in (torch.bool, torch.uint8, torch.int16, torch.int64, torch.bfloat16, torch.float64, torch.complex64):
        value = torch.tensor(1, dtype=dtype)
        assert value.to("neuron").item() == value.item()
        assert type(value.to("neuron").item()) is type(value.item())


def test_equal():
    x = torch.tensor([1.0, float("nan")], device="neuron")
    assert not torch.equal(x, x.clone())
    y = torch.arange(5, device="neuron")
    assert torch.equal(y, torch.arange(5, device="neuron"))
    assert not torch.equal(y, torch.arange(4, device="neuron"))
    assert torch.equal(y, y.float()) and not torch.equal(y, y + 0.5)  # dtypes are promoted
    assert torch.equal(torch.empty(0, device="neuron"), torch.empty(0, device="neuron"))
