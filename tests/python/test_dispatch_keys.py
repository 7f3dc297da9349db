"""Dispatch keys around the device's own, and the traps that every PrivateUse1 backend of torch 2.13 falls into."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.parametrize(
    "make", [lambda x: x.conj(), lambda x: torch._neg_view(x), lambda x: torch._neg_view(x.conj())]
)
def test_lazy_bits_reach_the_host(make):
    # Without an end to it, the copy of a lazy conjugate calls itself until the stack overflows (S1).
    host = torch.tensor([1 + 2j, 3 - 4j, -5 + 0j])
    assert torch.equal(make(host.to("neuron")).cpu(), make(host).resolve_conj().resolve_neg())
    on_device = torch.zeros(3, dtype=torch.complex64, device="neuron")
    on_device.copy_(make(host))
    assert torch.equal(on_device.cpu(), make(host).resolve_conj().resolve_neg())


def test_module_keeps_its_parameters():
    # An optimizer made before .to() must train the same objects (S2).
    model = torch.nn.Linear(2, 2)
    weight = model.weight
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model.to("neuron")
    assert model.weight is weight and weight.device.type == "neuron"
    before = weight.detach().cpu()
    model(torch.ones(1, 2, device="neuron")).sum().backward()
    optimizer.step()
    assert torch.equal(weight.detach().cpu(), before - 1)
    model.cpu()
    assert model.weight is weight and weight.device.type == "cpu"


def test_data_can_be_assigned_across_devices():
    parameter = torch.nn.Parameter(torch.ones(3))
    parameter.data = torch.full((3,), 2.0, device="neuron")
    assert parameter.device.type == "neuron" and parameter.tolist() == [2, 2, 2]
    parameter.data = torch.zeros(2)
    assert parameter.device.type == "cpu" and parameter.shape == (2,)


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: torch.nn.Conv2d(4, 6, 3, padding=1, groups=2), (2, 4, 8, 8)),
        (lambda: torch.nn.Conv1d(3, 4, 3, bias=False), (2, 3, 9)),
        (lambda: torch.nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2), (2, 4, 5, 5)),
        (lambda: torch.nn.Conv2d(3, 4, 3), (3, 8, 8)),
    ],
)
def test_convolution(make, shape):
    # aten::convolution_overrideable throws instead of falling back (S3).
    torch.manual_seed(0)
    host, device = make(), make()
    x = torch.randn(shape)
    device.load_state_dict(host.state_dict())
    device.to("neuron")
    y = device(x.to("neuron"))
    torch.testing.assert_close(y.cpu(), host(x), rtol=1e-5, atol=1e-5)
    y.sum().backward()
    host(x).sum().backward()
    for ours, theirs in zip(device.parameters(), host.parameters(), strict=True):
        torch.testing.assert_close(ours.grad.cpu(), theirs.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.unfold(0, 3, 2),
        lambda x: torch.view_as_real(torch.complex(x, x)),
        lambda x: x.view(torch.int32),
        lambda x: x.reshape(2, 5).diagonal(),
    ],
)
def test_views_alias(view):
    # A view that falls back would be a copy (S6).
    x = torch.arange(10.0, device="neuron")
    y = view(x)
    if y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr():
        y.zero_()
        assert x.ne(torch.arange(10.0, device="neuron")).any().item()
    else:
        base = torch.complex(x, x)
        torch.view_as_real(base).zero_()
        assert base.abs().sum().item() == 0


def test_custom_operator_with_a_device_kernel_runs():
    # AutogradPrivateUse1 has a backend fallback (S8).
    library = torch.library.Library("neuron_test", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x + x, "PrivateUse1")
    x = torch.ones(3, device="neuron", requires_grad=True)
    assert torch.ops.neuron_test.twice(x).tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: torch.eye(3, device="neuron").to_sparse(), "sparse COO"),
        (lambda: torch.eye(3).to_sparse().to("neuron"), "sparse COO"),
        (lambda: torch.eye(3).to_sparse_csr().to("neuron") @ torch.ones(3, 3, device="neuron"), "sparse compressed"),
        (lambda: torch.quantize_per_tensor(torch.ones(3, device="neuron"), 0.1, 0, torch.qint8), "quantized"),
    ],
)
def test_other_kinds_of_tensors_are_refused_with_a_sentence(make, kind):
    with pytest.raises(NotImplementedError, match=f"{kind} tensors are not supported on the neuron device"):
        make()


def test_deterministic_mode_switches_fusion_off_with_the_same_bits():
    import torch_neuronx

    def run() -> tuple[torch.Tensor, int]:
        torch_neuronx.reset_eager_report()
        for _ in range(4):
            x = torch.linspace(-1, 1, 999, device="neuron")
            for _ in range(6):
                x = torch.tanh(x * 1.25 + 0.5)
            result = x.cpu()
        torch_neuronx.testing.wait_for_compiles()
        return result, torch_neuronx.eager_report()["fused_commands"]

    with torch_neuronx.testing.synchronous_compiles():
        free, fused = run()
        assert fused > 0
        torch.use_deterministic_algorithms(True)
        fixed, fused = run()
        assert fused == 0
    assert torch.equal(free, fixed)


def test_errors_of_the_core_have_torchs_classes():
    # A bad index would be a RuntimeError by default; each class is chosen (S9).
    with pytest.raises(IndexError):
        torch.ones(2, 3, device="neuron").sum(5)
    with pytest.raises(ValueError, match="unknown eager mode"):
        torch.backends.neuron.eager_mode = "x"
    with pytest.raises(RuntimeError, match="invalid device index"):
        torch.neuron.set_device(99)
