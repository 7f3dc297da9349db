"""Matrix products and convolutions on the device against float64 on the CPU, and independence of threads and strides."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

import torch_neuronx

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-13, torch.bfloat16: 2e-2, torch.float16: 3e-3}


NATIVE = {
    "mm",
    "addmm",
    "bmm",
    "baddbmm",
    "mv",
    "addmv",
    "dot",
    "convolution_overrideable",
    "convolution_backward_overrideable",
}


def check(actual: torch.Tensor, expected: torch.Tensor) -> None:
    assert actual.device.type == "neuron"
    tolerance = TOLERANCE[actual.dtype]
    torch.testing.assert_close(actual.cpu().double(), expected.double(), rtol=tolerance, atol=tolerance * 20)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (3, 5, 7), (65, 300, 33), (1, 64, 200), (200, 64, 1)])
def test_mm_in_every_transposition(dtype, m, k, n):
    torch.manual_seed(0)
    a, b = torch.randn(m, k, dtype=dtype), torch.randn(k, n, dtype=dtype)
    expected = a.double() @ b.double()
    left, right = a.to("neuron"), b.to("neuron")
    for x in (left, left.t().contiguous().t(), torch.stack([left, left], -1)[..., 0]):
        for y in (right, right.t().contiguous().t(), torch.stack([right, right], -1)[..., 1]):
            check(x @ y, expected)


def test_addmm_adds_bias_alpha_and_beta():
    torch.manual_seed(0)
    bias, a, b = torch.randn(9), torch.randn(4, 6), torch.randn(6, 9)
    d = "neuron"
    check(torch.addmm(bias.to(d), a.to(d), b.to(d)), torch.addmm(bias.double(), a.double(), b.double()))
    full = torch.randn(4, 9)
    expected = torch.addmm(full.double(), a.double(), b.double(), beta=-0.5, alpha=2)
    check(torch.addmm(full.to(d), a.to(d), b.to(d), beta=-0.5, alpha=2), expected)
    in_place = full.to(d)
    address = in_place.data_ptr()
    in_place.addmm_(a.to(d), b.to(d), beta=-0.5, alpha=2)
    assert in_place.data_ptr() == address
    check(in_place, expected)
    nan = torch.full((4, 9), float("nan"), device=d)
    check(torch.addmm(nan, a.to(d), b.to(d), beta=0), a.double() @ b.double())


def test_batches_vectors_and_dot():
    torch.manual_seed(0)
    d = "neuron"
    a, b, c = torch.randn(5, 7, 3), torch.randn(5, 3, 4), torch.randn(5, 1, 4)
    check(torch.bmm(a.to(d), b.to(d)), torch.bmm(a.double(), b.double()))
    check(torch.baddbmm(c.to(d), a.to(d), b.to(d), alpha=2), torch.baddbmm(c.double(), a.double(), b.double(), alpha=2))
    x, y = torch.randn(3), torch.randn(7)
    check(a[0].to(d) @ x.to(d), a[0].double() @ x.double())
    check(torch.addmv(y.to(d), a[0].to(d), x.to(d), beta=3), torch.addmv(y.double(), a[0].double(), x.double(), beta=3))
    check(torch.dot(x.to(d), x.to(d)), x.double() @ x.double())
    heads = torch.randn(2, 6, 3, 8).to(d).transpose(1, 2)
    check(heads @ heads.transpose(-2, -1), (heads.cpu().double() @ heads.cpu().double().transpose(-2, -1)))


def test_integers_are_exact():
    a = torch.tensor([[2**62 + 1, 3], [-5, 7]])
    assert torch.equal((a.to("neuron") @ a.to("neuron")).cpu(), a @ a)
    b = torch.tensor([[100, 100]], dtype=torch.int8)
    assert torch.equal((b.to("neuron") @ b.t().to("neuron")).cpu(), b @ b.t())


def test_empty_shapes():
    d = "neuron"
    assert torch.equal((torch.ones(3, 0, device=d) @ torch.ones(0, 2, device=d)).cpu(), torch.zeros(3, 2))
    bias = torch.tensor([1.0, 2.0])
    assert torch.equal(
        torch.addmm(bias.to(d), torch.ones(2, 0, device=d), torch.ones(0, 2, device=d)).cpu(), bias.expand(2, 2)
    )
    assert (torch.ones(0, 4, device=d) @ torch.ones(4, 2, device=d)).shape == (0, 2)


ones = torch.ones
REFUSED = {
    "shapes": lambda d: torch.mm(ones(2, 3, device=d), ones(4, 5, device=d)),
    "vector": lambda d: torch.mm(ones(3, device=d), ones(3, 2, device=d)),
    "dtypes": lambda d: torch.mm(ones(2, 3, device=d), ones(3, 2, device=d).double()),
    "addend": lambda d: torch.addmm(ones(3, device=d), ones(2, 3, device=d), ones(3, 5, device=d)),
    "addend dtype": lambda d: torch.addmm(ones(5, device=d).double(), ones(2, 3, device=d), ones(3, 5, device=d)),
    "in place": lambda d: ones(3, device=d).addmm_(ones(2, 3, device=d), ones(3, 3, device=d)),
    "batches": lambda d: torch.bmm(ones(2, 3, 4, device=d), ones(3, 4, 4, device=d)),
    "batch dtypes": lambda d: torch.bmm(ones(2, 3, 4, device=d), ones(2, 4, 4, device=d).double()),
    "mv": lambda d: torch.mv(ones(2, 3, device=d), ones(4, device=d)),
    "dot": lambda d: torch.dot(ones(2, device=d), ones(3, device=d)),
    "out dtype": lambda d: torch.mm(ones(2, 3, device=d), ones(3, 2, device=d), out=ones(2, 2, device=d).double()),
    "cat": lambda d: torch.cat([ones(2, 3, device=d), ones(2, 2, device=d)]),
    "topk": lambda d: torch.topk(ones(3, device=d), 5),
    "gather": lambda d: torch.gather(ones(3, 3, device=d), 0, ones(2, 5, device=d).long()),
    "dimension": lambda d: torch.index_select(ones(3, 3, device=d), 3, ones(2, device=d).long()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_errors_are_the_cpus(name):
    with pytest.raises((RuntimeError, IndexError)) as on_cpu:
        REFUSED[name]("cpu")
    with pytest.raises((RuntimeError, IndexError)) as on_neuron:
        REFUSED[name]("neuron")
    assert type(on_neuron.value) is type(on_cpu.value)
    assert str(on_neuron.value) == str(on_cpu.value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_bits_do_not_depend_on_threads_or_padding(dtype):
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    for m, k, n in ((300, 200, 257), (1, 100, 50), (60, 100, 1), (16, 16, 16)):
        a, b = torch.randn(m, k, dtype=dtype, device="neuron"), torch.randn(k, n, dtype=dtype, device="neuron")
        padded_a = torch.zeros(m, k + 5, dtype=dtype, device="neuron")[:, 3 : k + 3]
        padded_b = torch.zeros(k, n + 3, dtype=dtype, device="neuron")[:, 1 : n + 1]
        padded_a.copy_(a), padded_b.copy_(b)
        results = []
        try:
            for count in (1, 2, 3):
                torch.set_num_threads(count)
                results += [(a @ b).cpu(), (padded_a @ padded_b).cpu()]
        finally:
            torch.set_num_threads(threads)
        assert all(torch.equal(result, results[0]) for result in results)


def test_linear_trains():
    torch.manual_seed(0)
    model = torch.nn.Linear(13, 5)
    x = torch.randn(4, 6, 13)
    reference = torch.nn.Linear(13, 5).double()
    reference.load_state_dict(model.state_dict())
    reference(x.double()).square().sum().backward()
    model.to("neuron")
    model(x.to("neuron")).square().sum().backward()
    for parameter, expected in zip(model.parameters(), reference.parameters(), strict=True):
        check(parameter.grad, expected.grad)
    assert "aten::addmm" in torch_neuronx.get_executed_ops()


@pytest.mark.parametrize(
    ("operation", "input", "weight", "options"),
    [
        (functional.conv1d, (2, 4, 11), (6, 4, 3), {"padding": 1}),
        (functional.conv2d, (2, 4, 9, 8), (6, 2, 3, 2), {"stride": 2, "padding": (1, 0), "groups": 2}),
        (functional.conv2d, (1, 3, 12, 12), (5, 3, 3, 3), {"dilation": 2}),
        (functional.conv3d, (1, 2, 5, 6, 7), (3, 2, 2, 3, 1), {"padding": 1}),
        (functional.conv_transpose1d, (2, 4, 5), (4, 3, 3), {"stride": 2, "output_padding": 1}),
        (functional.conv_transpose2d, (2, 4, 5, 6), (4, 3, 3, 2), {"stride": 2, "padding": 1, "groups": 2}),
    ],
)
def test_convolution_forward_and_backward(operation, input, weight, options):
    torch.manual_seed(0)
    channels = weight[1] * options.get("groups", 1) if "transpose" in operation.__name__ else weight[0]
    tensors = [torch.randn(input), torch.randn(weight), torch.randn(channels)]
    here = [t.to("neuron").requires_grad_() for t in tensors]
    there = [t.double().requires_grad_() for t in tensors]
    actual, expected = operation(*here, **options), operation(*there, **options)
    check(actual.detach(), expected.detach())
    pull = torch.randn(expected.shape)
    actual.backward(pull.to("neuron"))
    expected.backward(pull.double())
    for got, wanted in zip(here, there, strict=True):
        check(got.grad, wanted.grad)
