"""The whole copy matrix: direction, dtype pair, layout, non_blocking, lazy bits; overlap errors; copies between cores."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
import torch

import torch_neuronx

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
]
LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda t: t,
    "transposed": lambda t: t.t(),
    "strided": lambda t: t[:, ::2],
    "offset": lambda t: t[1:, 1:],
}


def base(dtype: torch.dtype) -> torch.Tensor:
    numbers = torch.arange(24, dtype=torch.float64).reshape(4, 6) * 1.25 - 3
    if dtype.is_complex:
        return torch.complex(numbers, -numbers * 0.5).to(dtype)
    if dtype in (torch.uint8, torch.bool):
        numbers = numbers.abs()
    return numbers.to(dtype)


def same(actual: torch.Tensor, expected: torch.Tensor) -> bool:
    host = actual.cpu()
    assert host.dtype == expected.dtype
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    if not expected.dtype.is_complex and expected.dtype != torch.bool:
        size = expected.element_size()
        return torch.equal(host.contiguous().view(bits[size]), expected.contiguous().view(bits[size]))
    return torch.equal(host, expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_round_trip_keeps_bits_and_strides(dtype: torch.dtype, layout: str):
    host = LAYOUTS[layout](base(dtype))
    device = host.to("neuron")
    assert device.stride() == host.clone().stride()
    assert same(device, host)
    assert same(LAYOUTS[layout](base(dtype).to("neuron")), host)


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_every_conversion_in_every_direction(source: torch.dtype):
    torch_neuronx.clear_op_tracking()
    host = base(source)
    device = host.to("neuron")
    for target in DTYPES:
        expected = torch.zeros(4, 6, dtype=target).copy_(host)
        assert same(torch.zeros(4, 6, dtype=target, device="neuron").copy_(device), expected), f"device: {target}"
        assert same(torch.zeros(4, 6, dtype=target, device="neuron").copy_(host), expected), f"to device: {target}"
        assert torch.zeros(4, 6, dtype=target).copy_(device).dtype == target
        assert same(torch.zeros(4, 6, dtype=target).copy_(device), expected), f"to host: {target}"
        assert same(device.to(target), expected), f"to: {target}"
    assert torch_neuronx.get_fallback_ops() == []


@pytest.mark.parametrize("target", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
def test_beyond_float8(target: torch.dtype):
    largest = torch.finfo(target).max
    numbers = [largest * factor for factor in (1, 1.03, 1.05, 1.07, 1.2, 1.5, 100)] + [math.inf, 0.0, 1e-9]
    for source in (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64):
        host = torch.tensor([n for n in numbers if source.is_floating_point or math.isfinite(n)]).to(source)
        host = torch.cat([host, -host])
        expected = host.to(target)
        assert same(host.to("neuron").to(target), expected), source
        assert same((host.to("neuron") * 1).to(target), expected), source
    assert torch.tensor([math.nan, -math.nan]).to("neuron").to(target).float().isnan().all()


def test_layout_pairs():
    for (_, left), (_, right) in itertools.product(LAYOUTS.items(), repeat=2):
        source = right(torch.arange(36.0).reshape(6, 6))
        shape = source.shape
        expected = left(torch.zeros(12, 12))[: shape[0], : shape[1]]
        actual = left(torch.zeros(12, 12, device="neuron"))[: shape[0], : shape[1]]
        expected.copy_(source)
        actual.copy_(source.to("neuron"))
        assert torch.equal(actual.cpu(), expected)
        actual.zero_()
        actual.copy_(source)
        assert torch.equal(actual.cpu(), expected)


def test_broadcast():
    for shape in ((), (1,), (6,), (4, 1), (1, 6)):
        source = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
        expected = torch.zeros(4, 6).copy_(source)
        assert torch.equal(torch.zeros(4, 6, device="neuron").copy_(source).cpu(), expected)
        assert torch.equal(torch.zeros(4, 6, device="neuron").copy_(source.to("neuron")).cpu(), expected)
        assert torch.equal(torch.zeros(4, 6).copy_(source.to("neuron")), expected)


def test_zero_sizes():
    for shape in ((0,), (2, 0, 3)):
        assert torch.zeros(shape).to("neuron").cpu().shape == shape
        torch.zeros(shape, device="neuron").copy_(torch.zeros(shape, dtype=torch.long))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_conjugate_and_negative_bits(dtype: torch.dtype):
    host = base(dtype)
    device = host.to("neuron")
    assert torch.equal(device.conj().cpu(), host.conj())
    assert torch.equal(device.conj().clone().cpu(), host.conj().clone())
    assert torch.equal(device.conj().imag.cpu(), host.conj().imag)
    assert torch.equal(torch._neg_view(device).cpu(), -host)
    assert torch.equal(torch.zeros_like(device).copy_(host.conj()).cpu(), host.conj())
    target = torch.zeros_like(device)
    target.conj().copy_(device)
    assert torch.equal(target.cpu(), host.conj())
    assert torch.equal(torch.zeros_like(host).copy_(device.conj()), host.conj())


@pytest.mark.parametrize("size", [10, 1000, 100_000])
def test_source_may_change_after_a_copy(size: int):
    source = torch.ones(size)
    device = torch.empty(size, device="neuron").copy_(source, non_blocking=True)
    strided = torch.empty(size // 2, device="neuron").copy_(source[::2])
    source.fill_(7)
    assert device.cpu().unique().tolist() == [1]
    assert strided.cpu().unique().tolist() == [1]


def test_pinned_non_blocking():
    source = torch.arange(1000.0).pin_memory()
    device = source.to("neuron", non_blocking=True)
    back = torch.empty(1000).pin_memory()
    back.copy_(device + 1, non_blocking=True)
    torch.neuron.synchronize()
    assert torch.equal(back, source + 1)


def test_between_cores():
    x = torch.arange(6.0, device="neuron:0").reshape(2, 3)
    y = (x + 1).to("neuron:1")
    assert y.device == torch.device("neuron:1")
    x.fill_(-1)
    assert (y * 2).tolist() == [[2, 4, 6], [8, 10, 12]]
    assert x.tolist() == [[-1] * 3] * 2
    z = torch.zeros(3, 2, dtype=torch.long, device="neuron:2")
    z.t().copy_(y)
    assert z.tolist() == [[1, 4], [2, 5], [3, 6]]


def test_clone_layouts():
    x = torch.arange(24.0).reshape(2, 3, 4).to("neuron")
    host = torch.arange(24.0).reshape(2, 3, 4)
    for take in (lambda t: t.transpose(0, 2), lambda t: t[:, ::2], lambda t: t[:1].expand(3, 3, 4)):
        view = take(x)
        assert view.clone().stride() == take(host).clone().stride()
        assert torch.equal(view.clone().cpu(), view.cpu())
        assert view.clone(memory_format=torch.contiguous_format).is_contiguous()
        assert torch.equal(view.contiguous().cpu(), view.cpu())
    image = torch.randn(2, 3, 4, 5).to("neuron")
    assert image.clone(memory_format=torch.channels_last).is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(image.contiguous(memory_format=torch.channels_last).cpu(), image.cpu())


def test_copy_onto_itself_does_nothing():
    x = torch.arange(5.0, device="neuron")
    x.copy_(x)
    x[1:3].copy_(x[1:3])
    assert x.tolist() == [0, 1, 2, 3, 4]


def test_inf_nan_and_signed_zero():
    x = torch.tensor([float("inf"), float("-inf"), float("nan"), -0.0, 0.0])
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        moved = x.to("neuron").to(dtype).cpu()
        expected = x.to(dtype)
        assert torch.equal(moved.isnan(), expected.isnan())
        assert torch.equal(moved.nan_to_num(5), expected.nan_to_num(5))
        assert torch.equal(moved.signbit()[3:], expected.signbit()[3:])


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("length", [1, 8, 15, 31, 32, 33, 63, 64, 65, 127, 128, 129, 250, 513, 1024, 1030])
def test_lines_that_lie_apart(length: int, dtype: torch.dtype):
    """Of the source, of the target, in runs of few and many lines; what lies between stays."""
    for planes, lines in ((1, 300), (40, 3), (7, 13)):
        x = torch.arange(planes * lines * (length + 3)).reshape(planes, lines, length + 3).remainder(251).to(dtype)
        device = x.to("neuron")
        for view in (lambda t: t[..., 1 : 1 + length], lambda t: t[..., 3:].transpose(0, 1)):
            assert torch.equal(view(device).contiguous().cpu(), view(x).contiguous())
            target = torch.full_like(x, 7)
            on_device = target.to("neuron")
            view(on_device).copy_(view(device))
            view(target).copy_(view(x))
            assert torch.equal(on_device.cpu(), target)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bfloat16, torch.float32, torch.float64, torch.complex128])
def test_transpositions_of_any_size(dtype: torch.dtype):
    for rows, columns in itertools.product((2, 3, 4, 7, 8, 9, 16, 25, 40, 100), (2, 5, 8, 12, 16, 31, 257)):
        x = torch.arange(rows * columns).reshape(rows, columns).remainder(251).to(dtype)
        assert torch.equal(x.to("neuron").t().contiguous().cpu(), x.t().contiguous())
