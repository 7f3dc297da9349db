"""float64: exact by default, in float32 as on Trainium when torch.backends.neuron.float64 says so; and one warning."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch


@pytest.fixture
def float64_in_float32() -> Iterator[None]:
    torch.backends.neuron.float64 = "float32"
    yield
    torch.backends.neuron.float64 = "float64"


def values(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


CASES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "add": lambda x: x + 1e-12,
    "mul": lambda x: x * x,
    "exp": torch.exp,
    "sum": lambda x: x.sum(1),
    "mean": lambda x: x.mean(),
    "softmax": lambda x: x.softmax(1),
    "cumsum": lambda x: x.cumsum(0),
    "mm": lambda x: x @ x,
    "linear": lambda x: torch.nn.functional.linear(x, x, x[0]),
    "layer_norm": lambda x: torch.nn.functional.layer_norm(x, (6,)),
    "convolution": lambda x: torch.nn.functional.conv1d(x[None], x[:, :, None]),
    "in place": lambda x: x.clone().mul_(x).add_(x),
}


@pytest.mark.parametrize("name", CASES)
def test_computed_in_float32_and_stored_as_float64(name: str, float64_in_float32: None):
    x = values(6, 6)
    result = CASES[name](x.to("neuron"))
    assert result.dtype == torch.float64
    narrow = CASES[name](x.float().to("neuron"))
    assert torch.equal(result.cpu(), narrow.double().cpu())
    assert not torch.equal(result.cpu(), CASES[name](x))


@pytest.mark.parametrize("name", CASES)
def test_exact_by_default(name: str):
    x = values(6, 6)
    torch.testing.assert_close(CASES[name](x.to("neuron")).cpu(), CASES[name](x), rtol=1e-13, atol=1e-14)


def test_complex128_products_are_computed_in_complex64(float64_in_float32: None):
    x = torch.complex(values(5, 5), values(5, 5).flip(0)).to("neuron")
    result = x @ x
    assert result.dtype == torch.complex128
    narrow = x.to(torch.complex64)
    assert torch.equal(result.cpu(), (narrow @ narrow).cpu().to(torch.complex128))


def test_the_setting_is_read_when_an_operation_is_recorded(float64_in_float32: None):
    x = values(4).to("neuron")
    narrow = x + 1e-12
    torch.backends.neuron.float64 = "float64"
    exact = x + 1e-12
    assert torch.equal(exact.cpu(), x.cpu() + 1e-12)
    assert torch.equal(narrow.cpu(), x.cpu().float().double())


def test_storage_and_copies_are_exact(float64_in_float32: None):
    x = values(3, 4)
    assert torch.equal(x.to("neuron").t().contiguous().cpu(), x.t())
    assert torch.full((2,), 0.1, dtype=torch.float64, device="neuron").tolist() == [0.1, 0.1]
    assert torch.cat([x.to("neuron"), x.to("neuron")]).cpu().equal(torch.cat([x, x]))


def test_printing_and_loss_scaling_do_not_warn(run_python):
    result = run_python(
        """
        import warnings
        import torch

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            x = torch.tensor([1e-3, 1.5, 300.0], device="neuron", requires_grad=True)
            text = str(x)
            scaler = torch.amp.GradScaler("neuron")
            optimizer = torch.optim.SGD([x], lr=0.1)
            scaler.scale(x.sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            print(len(caught), text)
            x.double() * 2
            print([str(w.message)[:8] for w in caught])
        """
    )
    assert result.stdout.splitlines()[0].startswith("0 tensor(["), result
    assert result.stdout.splitlines()[-1] == "['Trainium']", result


def test_warned_once_and_only_of_arithmetic(run_python):
    result = run_python(
        """
        import warnings
        import torch

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            x = torch.ones(3, dtype=torch.float64).to("neuron")
            y = torch.zeros(3, dtype=torch.float64, device="neuron").copy_(x).clone().cpu()
            w = torch.ones(3, device="neuron", requires_grad=True)
            w.sum().backward()
            torch.optim.Adam([w], fused=True).step()
            print(w.cpu()[0].item() < 1, len(caught))
            x + x
            x * x @ x
            print(len(caught), "Trainium computes float64 and complex128 in float32" in str(caught[0].message))
        """
    )
    assert result.stdout.split() == ["True", "0", "1", "True"], result
