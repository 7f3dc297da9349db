"""Poisson, binomial, gamma and Dirichlet variates and rrelu: distributions, reproducibility, corner cases."""

from __future__ import annotations

import mpmath
import pytest
import torch

mpmath.mp.dps = 60
NATIVE = {
    "poisson", "binomial", "_standard_gamma", "_sample_dirichlet", "_standard_gamma_grad", "_dirichlet_grad",
    "rrelu_with_noise", "rrelu_with_noise_",
}  # fmt: skip
COUNT = 40_000


def assert_moments(samples: torch.Tensor, mean: float, variance: float) -> None:
    """Within five standard errors; the variance within a few per cent."""
    x = samples.double().cpu()
    assert abs(float(x.mean()) - mean) < 5 * (variance / x.numel()) ** 0.5 + 1e-6
    assert float(x.var()) == pytest.approx(variance, rel=0.12, abs=1e-6)


def filled(value: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full((COUNT,), value, dtype=dtype, device="neuron")


@pytest.mark.parametrize("rate", [0.0, 0.3, 4.0, 9.9, 10.1, 40.0, 1000.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_poisson(rate, dtype):
    torch.manual_seed(0)
    samples = torch.poisson(filled(rate, dtype))
    assert samples.dtype == dtype
    assert torch.equal(samples, samples.round())
    assert_moments(samples, rate, rate)
    zero = float((samples == 0).double().mean())
    assert zero == pytest.approx(float(torch.exp(torch.tensor(-rate))), abs=0.02)


@pytest.mark.parametrize("trials", [0.0, 1.0, 7.0, 60.0, 1000.0])
@pytest.mark.parametrize("chance", [0.0, 0.02, 0.3, 0.5, 0.8, 1.0])
def test_binomial(trials, chance):
    torch.manual_seed(0)
    samples = torch.binomial(filled(trials), torch.tensor(chance, device="neuron"))
    assert torch.equal(samples, samples.round())
    assert float(samples.min()) >= 0 and float(samples.max()) <= trials
    assert_moments(samples, trials * chance, trials * chance * (1 - chance))


@pytest.mark.parametrize("shape", [0.2, 1.0, 2.5, 30.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gamma(shape, dtype):
    torch.manual_seed(0)
    samples = torch._standard_gamma(filled(shape, dtype))
    assert float(samples.min()) > 0
    assert_moments(samples, shape, shape)


def test_dirichlet():
    torch.manual_seed(0)
    shapes = torch.tensor([0.5, 2.0, 5.0], device="neuron")
    samples = torch._sample_dirichlet(shapes.expand(COUNT, 3))
    torch.testing.assert_close(samples.sum(-1).cpu(), torch.ones(COUNT), rtol=1e-5, atol=1e-5)
    total = 7.5
    for i, shape in enumerate([0.5, 2.0, 5.0]):
        mean = shape / total
        assert_moments(samples[:, i], mean, mean * (1 - mean) / (total + 1))
    assert torch.distributions.Dirichlet(shapes).sample((2, 4)).shape == (2, 4, 3)


def test_slope_of_gamma_variates():
    """By the shape, at a constant chance of what lies below."""
    samples = [(a, a * f) for a in (0.05, 0.3, 1.0, 2.5, 9.0, 40.0, 300.0) for f in (0.1, 0.5, 0.9, 1.0, 1.2, 1.7, 2.5)]
    expected = []
    for a, x in samples:
        below = x <= a  # the side on which the chance is small
        bounds = (0, x) if below else (x, mpmath.inf)
        chance = mpmath.diff(lambda s, b=bounds: mpmath.gammainc(s, *b, regularized=True), mpmath.mpf(a))
        chance = chance if below else -chance
        expected.append(float(-chance / (mpmath.mpf(x) ** (a - 1) * mpmath.exp(-x) / mpmath.gamma(a))))
    shapes, places = torch.tensor(samples, dtype=torch.float64).t()
    got = torch._standard_gamma_grad(shapes.to("neuron"), places.to("neuron"))
    torch.testing.assert_close(got.cpu(), torch.tensor(expected, dtype=torch.float64), rtol=1e-10, atol=0)
    got = torch._standard_gamma_grad(shapes.float().to("neuron"), places.float().to("neuron"))
    torch.testing.assert_close(got.cpu().double(), torch.tensor(expected, dtype=torch.float64), rtol=1e-4, atol=0)


def test_slope_of_dirichlet_variates():
    values, expected = [], []
    for a in (0.1, 0.7, 2.0, 15.0):
        for b in (0.2, 1.0, 6.0, 30.0):
            for x in (0.02, 0.2, 0.5, 0.8, 0.97):
                chance = -mpmath.diff(lambda s, b=b, x=x: mpmath.betainc(s, b, x, 1, regularized=True), mpmath.mpf(a))
                density = mpmath.mpf(x) ** (a - 1) * (1 - mpmath.mpf(x)) ** (b - 1) / mpmath.beta(a, b)
                values.append((x, a, a + b))
                expected.append(float(-chance / density / (1 - mpmath.mpf(x))))
    got = torch._dirichlet_grad(*torch.tensor(values, dtype=torch.float64).t().contiguous().to("neuron")).cpu()
    torch.testing.assert_close(got, torch.tensor(expected, dtype=torch.float64), rtol=1e-9, atol=0)


def test_reparameterized_samples_have_gradients():
    torch.manual_seed(0)
    shapes = torch.tensor([0.5, 3.0, 8.0], device="neuron", requires_grad=True)
    torch._standard_gamma(shapes.expand(4000, 3)).mean(0).sum().backward()
    torch.testing.assert_close(shapes.grad.cpu(), torch.ones(3), rtol=0.1, atol=0.1)
    shapes.grad = None
    weights = torch.tensor([1.0, 2.0, 5.0], device="neuron")
    (torch.distributions.Dirichlet(shapes).rsample((4000,)) * weights).sum(-1).mean().backward()
    leaf = torch.tensor([0.5, 3.0, 8.0], requires_grad=True)
    (leaf / leaf.sum() * weights.cpu()).sum().backward()
    torch.testing.assert_close(shapes.grad.cpu(), leaf.grad, rtol=0.1, atol=0.02)


def draws() -> list:
    rates = torch.rand(50, generator=torch.Generator().manual_seed(1)) * 30
    return [
        lambda g, r=rates: torch.poisson(r.to("neuron"), generator=g),
        lambda g, r=rates: torch.binomial(
            r.round().to("neuron"), torch.tensor(0.4, device="neuron").expand(50), generator=g
        ),
        lambda g, r=rates: torch._standard_gamma(r.to("neuron"), generator=g),
        lambda g, r=rates: torch._sample_dirichlet(r.reshape(5, 10).to("neuron"), generator=g),
    ]


@pytest.mark.parametrize("draw", draws())
def test_reproducible_and_independent_of_threads(draw):
    first = draw(torch.Generator("neuron").manual_seed(5))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert torch.equal(draw(torch.Generator("neuron").manual_seed(5)), first)
    finally:
        torch.set_num_threads(threads)
    generator = torch.Generator("neuron").manual_seed(5)
    assert torch.equal(draw(generator), first)
    assert not torch.equal(draw(generator), first)


def test_corner_cases():
    chances = torch.tensor([0.5, 1.5, -0.2, float("nan")], device="neuron")
    torch.testing.assert_close(
        torch.binomial(torch.tensor([-1.0, 3.0, 4.0, 5.0], device="neuron"), chances).cpu(),
        torch.tensor([0.0, 3.0, 0.0, float("nan")]),
        equal_nan=True,
    )
    for rate in (-1.0, float("nan")):
        with pytest.raises(RuntimeError, match="invalid Poisson rate, expected rate to be non-negative"):
            torch.poisson(torch.tensor([rate], device="neuron")).cpu()
    with pytest.raises(RuntimeError, match="not implemented for 'Half'"):
        torch._standard_gamma(torch.ones(2, device="neuron").half())
    for empty in (torch.empty(0, device="neuron"), torch.empty(2, 0, device="neuron")):
        assert torch.poisson(empty).shape == empty.shape
        assert torch._standard_gamma(empty).shape == empty.shape
        assert torch._sample_dirichlet(empty).shape == empty.shape
    rates = torch.rand(6, 4).to("neuron")
    assert torch.poisson(rates.t()).shape == (4, 6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_rrelu(dtype):
    torch.manual_seed(0)
    x = torch.linspace(-2, 2, 401).to(dtype).to("neuron")
    y = torch.nn.functional.rrelu(x, 0.1, 0.3)
    torch.testing.assert_close(y.cpu(), torch.nn.functional.rrelu(x.cpu(), 0.1, 0.3))
    leaf = x.clone().requires_grad_()
    y = torch.nn.functional.rrelu(leaf, 0.1, 0.3, training=True)
    y.sum().backward()
    below = x.cpu() < 0
    ratio = (y.detach().cpu() / x.cpu())[below].double()
    assert float(ratio.min()) >= 0.099 and float(ratio.max()) <= 0.302
    assert float(ratio.std()) > 0.03
    assert torch.equal(y.detach().cpu()[~below], x.cpu()[~below])
    torch.testing.assert_close(leaf.grad.cpu()[below].double(), ratio, rtol=0.01, atol=0.001)
    z = x.clone()
    torch.nn.functional.rrelu_(z, 0.1, 0.3, training=True)
    assert torch.equal(z.cpu()[~below], x.cpu()[~below])
    with pytest.raises(RuntimeError, match="[Ll]ower bound should be less than or equal"):
        torch.nn.functional.rrelu(x, 0.5, 0.3, training=True)
