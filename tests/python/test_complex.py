"""Complex arithmetic: values against the CPU's in complex128, results and errors as the CPU's."""

import pytest
import torch

NATIVE = {
    *("abs", "angle", "sgn", "neg", "reciprocal", "sqrt", "rsqrt", "exp", "log", "sin", "cos", "tan", "sinh", "cosh"),
    *("tanh", "sigmoid", "add.Tensor", "sub.Tensor", "rsub.Scalar", "mul.Tensor", "div.Tensor", "pow.Tensor_Tensor"),
    *("eq.Tensor", "ne.Tensor", "conj_physical.out", "complex", "polar"),
}
UNARY = ("abs", "angle", "sgn", "neg", "reciprocal", "sqrt", "rsqrt", "exp", "log", "sin", "cos", "tan", "sinh", "cosh",
         "tanh", "sigmoid", "conj_physical")  # fmt: skip
BINARY = {
    "add": torch.add,
    "add, scaled": lambda x, y: torch.add(x, y, alpha=3),
    "sub": torch.sub,
    "sub, scaled": lambda x, y: torch.sub(x, y, alpha=0.5),
    "rsub": torch.rsub,
    "mul": torch.mul,
    "div": torch.div,
    "pow": torch.pow,
}


def numbers(*shape: int, seed: int = 0, dtype: torch.dtype = torch.complex64) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def compare(function, *arguments, epsilons: float = 8) -> None:
    here = function(*(a.to("neuron") if isinstance(a, torch.Tensor) and a.dim() > 0 else a for a in arguments))
    there = function(*arguments)
    wide = function(*(a.to(torch.complex128 if a.is_complex() else torch.float64) for a in arguments))
    assert here.dtype == there.dtype and here.shape == there.shape
    eps = torch.finfo(there.dtype).eps if there.dtype != torch.bool else 0
    torch.testing.assert_close(here.cpu().to(wide.dtype), wide, rtol=epsilons * eps, atol=epsilons * eps)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_unary(name, dtype):
    compare(getattr(torch, name), numbers(5, 37, dtype=dtype), epsilons=16)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    x, y = numbers(6, 35), numbers(6, 35, seed=1)
    compare(BINARY[name], x, y, epsilons=64 if name == "pow" else 8)
    compare(BINARY[name], x, y[:1], epsilons=64 if name == "pow" else 8)
    compare(BINARY[name], x[:, :1], y, epsilons=64 if name == "pow" else 8)
    compare(BINARY[name], x.t(), y.t(), epsilons=64 if name == "pow" else 8)
    compare(BINARY[name], x, y.real, epsilons=64 if name == "pow" else 8)


def test_numbers_and_places():
    x = numbers(4, 33)
    for function in (
        lambda x: x * 2,
        lambda x: x * (1 - 2j),
        lambda x: (3 + 1j) / x,
        lambda x: x + 1j,
        lambda x: 1 - x,
        lambda x: x.clone().mul_(x),
        lambda x: x.clone().add_(x, alpha=2),
        lambda x: x.clone().div_(x.flip(0)),
        lambda x: x * torch.tensor(2 + 1j),
        lambda x: x.conj() * x,
        lambda x: x.conj().t() + x.t(),
        lambda x: x.mT.imag.neg() * x.mT,
        lambda x: torch.mul(x[:, ::2], x[:, 1::2][:, :1]),
    ):
        compare(function, x)
    a = x.to("neuron")
    out = torch.empty(33, 4, dtype=torch.complex64, device="neuron").t()
    assert torch.equal(torch.mul(a, a, out=out).cpu(), (a * a).cpu())
    wide = torch.empty(4, 33, dtype=torch.complex128, device="neuron")
    torch.add(a, a, out=wide)
    assert torch.equal(wide.cpu(), (x + x).to(torch.complex128))
    assert torch.equal((a == a).cpu(), x == x) and not (a != a).any()
    assert (a * torch.zeros(4, 0, dtype=torch.complex64, device="neuron")[:, :0].sum()).shape == (4, 33)


def test_quotients_do_not_overflow():
    x = torch.tensor([1e30 + 1e30j, 1e-30 + 1e-30j, 3 + 4j, 1 - 1j])
    torch.testing.assert_close((x.to("neuron") / x.to("neuron")).cpu(), torch.ones(4, dtype=torch.complex64))
    zero = torch.zeros(4, dtype=torch.complex64)
    assert not torch.isfinite(torch.view_as_real((x.to("neuron") / zero.to("neuron")).cpu())).any()


def test_making():
    x, y = numbers(2, 9).abs(), numbers(2, 9, seed=1).real
    assert torch.equal(torch.complex(x.to("neuron"), y.to("neuron")).cpu(), torch.complex(x, y))
    torch.testing.assert_close(torch.polar(x.to("neuron"), y.to("neuron")).cpu(), torch.polar(x, y))
    assert torch.equal(torch.complex(x[:1].to("neuron"), y.to("neuron")).cpu(), torch.complex(x[:1].expand(2, 9), y))


def test_rotary_embedding_with_gradients():
    """As models write it: pairs of components as complex numbers, times positions' phases."""

    def rotate(x, angles):
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)

    x, angles = numbers(2, 3, 8, 16).real.contiguous(), torch.outer(torch.arange(8.0), torch.logspace(0, -2, 8))
    leaves = [x.clone().requires_grad_(), x.to("neuron").requires_grad_()]
    results = [rotate(leaves[0], angles), rotate(leaves[1], angles.to("neuron"))]
    torch.testing.assert_close(results[1].cpu(), results[0])
    for result in results:
        (result * result * torch.arange(16, device=result.device)).sum().backward()
    torch.testing.assert_close(leaves[1].grad.cpu(), leaves[0].grad)


@pytest.mark.parametrize("function", [lambda z: z.abs_(), lambda z: z < z, lambda z: z.real.clone().mul_(z)])
def test_errors_are_the_cpu_s(function):
    messages = []
    for device in ("cpu", "neuron"):
        with pytest.raises(RuntimeError) as caught:
            function(torch.ones(3, dtype=torch.complex64, device=device))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
