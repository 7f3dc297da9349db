"""What has no kernel of ours runs on the CPU: correct, counted, warned about once, refused in strict mode."""

from __future__ import annotations

import warnings

import pytest
import torch

import torch_neuronx
from torch_neuronx import _C


# An operator that has no device kernel: spherical Bessel functions are not part of any model.
def unusual(x: torch.Tensor) -> torch.Tensor:
    return torch.special.spherical_bessel_j0(x)


def test_value_count_and_bytes():
    torch_neuronx.clear_op_tracking()
    x = torch.rand(100)
    assert torch.equal(unusual(x.to("neuron")).cpu(), unusual(x))
    unusual(x.to("neuron"))
    (name,) = torch_neuronx.get_fallback_ops()
    assert name.startswith("aten::special_spherical_bessel_j0")
    report = torch_neuronx.fallback_report()
    assert report[name]["calls"] == 2
    assert report[name]["bytes"] >= 2 * 2 * 400
    torch_neuronx.clear_op_tracking()
    assert torch_neuronx.get_fallback_ops() == []


OUTPUTS = {
    "add": lambda x, out: torch.add(x, x, out=out),
    "eq": lambda x, out: torch.eq(x, x, out=out),
    "exp": lambda x, out: torch.exp(x, out=out),
    "log_softmax": lambda x, out: torch.sub(x, torch.logsumexp(x, 1, keepdim=True), out=out),
    "max": lambda x, out: torch.max(x, out=out),
    "maximum": lambda x, out: torch.maximum(x, x.flip(1), out=out),
    "std": lambda x, out: torch.std(x, (0, 1), out=out),
    "var": lambda x, out: torch.var(x, (0, 1), out=out),
    "sum": lambda x, out: torch.sum(x, 1, out=out),
    "pow": lambda x, out: torch.pow(x, 3, out=out),
}


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
@pytest.mark.parametrize("name", OUTPUTS)
def test_complex_outputs_of_real_operations(name: str, dtype: torch.dtype):
    x = torch.arange(12.0).reshape(3, 4) * 0.37
    expected = OUTPUTS[name](x, torch.empty(0, dtype=dtype))
    actual = OUTPUTS[name](x.to("neuron"), torch.empty(0, dtype=dtype, device="neuron"))
    assert actual.dtype == dtype
    torch.testing.assert_close(actual.cpu(), expected)


def test_report_of_the_eager_layer():
    with torch_neuronx.testing.synchronous_compiles():
        torch_neuronx.reset_eager_report()
        for _ in range(4):
            x = torch.linspace(-1, 1, 77, device="neuron")
            (torch.tanh(x * 1.5) + 0.25).cpu()
        report = torch_neuronx.eager_report()
    assert report["flush_reasons"] == {"host_read": 4}
    assert report["flushes"]["synchronize"] == 0
    assert report["commands"] == report["region_commands"] >= 4 * 4
    assert report["kernel_commands"] == 0
    assert 0 < report["fused_share"] == report["fused_commands"] / report["region_commands"] <= 1
    assert report["compiled_kernels"] + report["disk_hits"] > 0
    assert report["compile_seconds"] >= 0
    torch_neuronx.reset_eager_report()
    assert torch_neuronx.eager_report()["flush_reasons"] == {}


def test_warned_once_with_the_users_line():
    x = torch.rand(3, device="cpu").to("neuron")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.special.airy_ai(x)
        torch.special.airy_ai(x)
    told = [w for w in caught if "airy" in str(w.message)]
    assert len(told) == 1
    assert told[0].filename == __file__
    assert "has no neuron kernel and runs on the CPU" in str(told[0].message)


def test_strict_mode_refuses():
    x = torch.rand(3).to("neuron")
    before = _C.strict_mode() if hasattr(_C, "strict_mode") else False
    _C.set_strict_mode(True)
    try:
        with pytest.raises(NotImplementedError, match="special_spherical_bessel_j0.*strict mode refuses"):
            unusual(x)
        assert (x + 1).shape == (3,)
    finally:
        _C.set_strict_mode(before)
    unusual(x)


def test_out_and_inplace_are_written_back():
    x = torch.rand(5)
    out = torch.empty(5, device="neuron")
    torch.special.spherical_bessel_j0(x.to("neuron"), out=out)
    assert torch.equal(out.cpu(), unusual(x))
    y = x.to("neuron")
    y.igamma_(torch.ones(5, device="neuron"))
    assert torch.equal(y.cpu(), x.clone().igamma_(torch.ones(5)))


def test_a_factor_of_integers_counts_with_its_whole_part():
    x, index, source = torch.arange(5), torch.tensor([4, 0]), torch.tensor([3, 4])
    actual = x.to("neuron").index_add(0, index.to("neuron"), source.to("neuron"), alpha=2.5)
    assert torch.equal(actual.cpu(), x.index_add(0, index, source, alpha=2.5))


def test_nansum_over_an_empty_list_of_dimensions():
    x = torch.tensor([[1.0, float("nan")], [2.0, 3.0]])
    assert torch.equal(torch.nansum(x.to("neuron"), []).cpu(), torch.nansum(x, []))


def test_mutated_lists_are_written_back():
    tensors = [torch.rand(3), torch.rand(2)]
    device = [t.to("neuron") for t in tensors]
    torch._foreach_lgamma_(tensors)
    torch._foreach_lgamma_(device)
    for a, b in zip(device, tensors, strict=True):
        torch.testing.assert_close(a.cpu(), b)


def test_generators_are_replaced_and_reproducible():
    chances = torch.full((64,), 0.5).to("neuron")

    def draw(**options: torch.Generator) -> list[float]:
        return torch.bernoulli(chances, **options, out=torch.empty_like(chances)).tolist()

    first = draw(generator=torch.Generator("neuron").manual_seed(3))
    assert draw(generator=torch.Generator("neuron").manual_seed(3)) == first
    torch.manual_seed(11)
    first = draw()
    torch.manual_seed(11)
    assert draw() == first


def test_backward_through_a_fallback():
    x = torch.rand(4).to("neuron").requires_grad_()
    torch.igammac(torch.full((4,), 1.5).to("neuron"), x).sum().backward()
    y = x.detach().cpu().requires_grad_()
    torch.igammac(torch.full((4,), 1.5), y).sum().backward()
    torch.testing.assert_close(x.grad.cpu(), y.grad)


def test_unusual_dtypes_fall_back():
    x = torch.tensor([1, 2, 3], dtype=torch.uint16).to("neuron")
    assert x.cpu().tolist() == [1, 2, 3]
    z = torch.tensor([1 + 2j, 3 - 1j]).to("neuron")
    assert torch.equal((z * z).cpu(), torch.tensor([1 + 2j, 3 - 1j]) ** 2)


@pytest.mark.parametrize("function", [torch.nn.functional.conv1d, torch.nn.functional.conv_transpose1d])
def test_convolutions_of_integers_run_on_the_cpu(function):
    x, weight = torch.arange(24).reshape(2, 3, 4), torch.arange(18).reshape(3, 3, 2)
    torch_neuronx.clear_op_tracking()
    assert torch.equal(function(x.to("neuron"), weight.to("neuron")).cpu(), function(x, weight))
    assert torch_neuronx.get_fallback_ops() == ["aten::convolution_overrideable"]
    torch_neuronx.clear_op_tracking()
