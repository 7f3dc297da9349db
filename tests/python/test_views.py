"""Views are metadata: they alias, and never fall back. Also set_, resize_ and in-place writes through views."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import torch_neuronx

VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "as_strided": lambda t: t.as_strided((2, 3), (1, 2), 3),
    "view": lambda t: t.view(6, 4),
    "reshape": lambda t: t.reshape(2, 12),
    "transpose": lambda t: t.transpose(0, 1),
    "permute": lambda t: t.view(2, 3, 4).permute(2, 0, 1),
    "select": lambda t: t.select(1, 2),
    "slice": lambda t: t[1:3, ::2],
    "narrow": lambda t: t.narrow(1, 1, 3),
    "expand": lambda t: t[:, :1].expand(4, 3)[:, :1],
    "unsqueeze": lambda t: t.unsqueeze(1),
    "squeeze": lambda t: t.unsqueeze(1).squeeze(1),
    "diagonal": lambda t: t.diagonal(),
    "unfold": lambda t: t.unfold(1, 2, 2),
    "split": lambda t: t.split(2)[1],
    "chunk": lambda t: t.chunk(2, 1)[1],
    "unbind": lambda t: t.unbind(1)[3],
    "flatten": lambda t: t.flatten(),
    "unflatten": lambda t: t.unflatten(1, (2, 3)),
    "movedim": lambda t: t.movedim(0, 1),
    "detach": lambda t: t.detach(),
    "alias": lambda t: torch.ops.aten.alias(t),
    "view_dtype": lambda t: t.view(torch.int32),
    "view_as_complex": lambda t: torch.view_as_real(torch.view_as_complex(t.view(4, 3, 2))),
    "hsplit": lambda t: t.hsplit(2)[0],
    "T": lambda t: t.T,
    "swapaxes": lambda t: t.swapaxes(0, 1),
    "view_as": lambda t: t.view_as(torch.empty(3, 8)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_view_aliases_and_reads_as_on_the_cpu(name: str):
    torch_neuronx.clear_op_tracking()
    host = torch.arange(24.0).reshape(4, 6)
    device = host.to("neuron")
    expected, actual = VIEWS[name](host), VIEWS[name](device)
    assert actual.shape == expected.shape
    assert actual.stride() == expected.stride()
    assert actual.storage_offset() == expected.storage_offset()
    assert actual.untyped_storage()._cdata == device.untyped_storage()._cdata
    assert torch.equal(actual.cpu(), expected)
    actual.fill_(7)
    expected.fill_(7)
    assert torch.equal(device.cpu(), host)
    assert torch_neuronx.get_fallback_ops() == []


def test_writes_through_views_in_program_order():
    host, device = torch.zeros(4, 4), torch.zeros(4, 4, device="neuron")
    for t in (host, device):
        t[0] += 1
        t.t()[1].mul_(2).add_(3)
        t[1:, 1:] = t[:3, :3].clone()
        t.diagonal().neg_()
        t[::2].copy_(t[1::2])
    assert torch.equal(device.cpu(), host)


def test_real_and_imaginary_views():
    x = torch.complex(torch.arange(3.0), torch.ones(3)).to("neuron")
    assert x.real.tolist() == [0, 1, 2]
    x.imag.fill_(5)
    assert torch.equal(x.cpu(), torch.complex(torch.arange(3.0), torch.full((3,), 5.0)))


def test_resize_keeps_contents():
    x = torch.arange(6.0, device="neuron")
    x.resize_(2, 2)
    assert x.tolist() == [[0, 1], [2, 3]]
    x.resize_(10)
    assert x[:6].tolist() == [0, 1, 2, 3, 4, 5]
    x.resize_(0)
    assert x.numel() == 0
    y = torch.empty(0, device="neuron").resize_(2, 3, 4, 5, memory_format=torch.channels_last)
    assert y.is_contiguous(memory_format=torch.channels_last)
    y.resize_as_(torch.empty(3, device="neuron"))
    assert y.shape == (3,)


def test_set():
    x = torch.arange(6.0, device="neuron")
    y = torch.empty(0, device="neuron")
    y.set_(x)
    assert y.is_set_to(x)
    y.set_(x.untyped_storage(), 2, (2, 2), (1, 2))
    assert y.tolist() == [[2, 4], [3, 5]]
    y.set_(x.untyped_storage())
    assert y.tolist() == [0, 1, 2, 3, 4, 5]
    y.set_()
    assert y.shape == (0,)
    with pytest.raises(RuntimeError, match="to a storage on different device"):
        y.set_(torch.ones(3).untyped_storage())
    z = torch.empty(0, device="neuron").set_(torch.empty(1, device="neuron").untyped_storage(), 0, (4,), (1,))
    assert z.untyped_storage().nbytes() == 16


def test_data_assignment_and_module_to_keep_parameters():
    layer = torch.nn.Linear(2, 2)
    weight = layer.weight
    layer.to("neuron")
    assert layer.weight is weight
    assert weight.device.type == "neuron"
    weight.data = torch.ones(2, 2, device="neuron")
    assert weight.tolist() == [[1, 1], [1, 1]]


def test_reading_a_view_of_a_recycled_storage():
    for step in range(20):
        x = torch.full((100,), float(step), device="neuron")
        v = x[10:20] + 1
        del x
        y = torch.zeros(100, device="neuron")
        assert v.tolist() == [step + 1.0] * 10
        assert y.sum().item() == 0


def test_record_stream_and_version_counter():
    x = torch.ones(3, device="neuron")
    x.record_stream(torch.neuron.Stream())
    version = x._version
    x[0] = 2
    x.add_(1)
    assert x._version > version
