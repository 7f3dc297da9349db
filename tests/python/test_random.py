"""Random numbers: reproducible by seed, independent of what surrounds them, distributed as they should be."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import torch_neuronx.testing
from reference import DEVICE


def philox(seed: int, counter: int) -> list[int]:
    """A block of Philox4x32-10."""
    mask = 0xFFFFFFFF
    c = [counter & mask, counter >> 32, 0, 0]
    k0, k1 = seed & mask, seed >> 32
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k0, p1 & mask, (p0 >> 32) ^ c[3] ^ k1, p0 & mask]
        k0, k1 = (k0 + 0x9E3779B9) & mask, (k1 + 0xBB67AE85) & mask
    return c


def word(seed: int, offset: int, element: int) -> int:
    """The 32 bits of an element, by docs/numerics.md."""
    return philox(seed, offset + element // 64 * 16 + element % 16)[element // 16 % 4]


def long_word(seed: int, offset: int, element: int) -> int:
    """The 64 bits of an element."""
    words, low = philox(seed, offset + element // 32 * 16 + element % 16), element // 16 % 2 * 2
    return words[low + 1] << 32 | words[low]


def test_uniform_is_the_documented_sequence() -> None:
    generator = torch.Generator(DEVICE).manual_seed(1234)
    with torch_neuronx.testing.no_fallback():
        x = torch.rand(3, 51, device=DEVICE, generator=generator)
        y = torch.rand(4, device=DEVICE, generator=generator)
        z = torch.rand(40, device=DEVICE, dtype=torch.float64, generator=generator)
    assert x.flatten().tolist() == [(word(1234, 0, i) >> 8) * 2.0**-24 for i in range(153)]
    # Offsets advance by multiples of four.
    assert y.tolist() == [(word(1234, 156, i) >> 8) * 2.0**-24 for i in range(4)]
    assert z.tolist() == [(long_word(1234, 160, i) >> 11) * 2.0**-53 for i in range(40)]


def test_normals_are_box_muller() -> None:
    generator = torch.Generator(DEVICE).manual_seed(99)
    x = torch.randn(100, device=DEVICE, generator=generator)
    y = torch.randn(100, device=DEVICE, dtype=torch.float64, generator=generator)
    for i, (single, double) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
        first, part = i & ~16, math.sin if i & 16 else math.cos
        a, b = word(99, 0, first), word(99, 0, first + 16)
        v, sign = (a >> 1 | 1) * 2.0**-31, -1 if b >> (30 if i & 16 else 31) & 1 else 1
        turns = ((b >> 6 & 0xFFFFFF) | 1) * 2.0**-26
        assert single == pytest.approx(sign * math.sqrt(-2 * math.log(v)) * part(2 * math.pi * turns), rel=1e-6)
        v, turns = ((long_word(99, 100, first) >> 11) + 1) * 2.0**-53, (long_word(99, 100, first + 16) >> 11) * 2.0**-53
        assert double == pytest.approx(math.sqrt(-2 * math.log(v)) * part(2 * math.pi * turns), rel=1e-12)


def test_seed_repeats_and_states_restore() -> None:
    torch.manual_seed(7)
    first = torch.randn(100, device=DEVICE)
    state = torch.neuron.get_rng_state()
    second = torch.randn(100, device=DEVICE)
    torch.neuron.set_rng_state(state)
    assert torch.equal(torch.randn(100, device=DEVICE).cpu(), second.cpu())
    torch.manual_seed(7)
    assert torch.equal(torch.randn(100, device=DEVICE).cpu(), first.cpu())
    assert not torch.equal(first.cpu(), second.cpu())


def test_values_do_not_depend_on_layout_or_fusion() -> None:
    torch.manual_seed(3)
    plain = torch.empty(6, 7, device=DEVICE).uniform_()
    torch.manual_seed(3)
    transposed = torch.empty(7, 6, device=DEVICE).t().uniform_()
    assert torch.equal(plain.cpu(), transposed.cpu())
    torch.manual_seed(3)
    fused = torch.empty(6, 7, device=DEVICE).uniform_() * 2 + 1
    assert torch.equal(fused.cpu(), plain.cpu() * 2 + 1)


FILLS: dict[str, Callable[[Tensor], Tensor]] = {
    "uniform": lambda x: x.uniform_(),
    "normal": lambda x: x.normal_(),
    "exponential": lambda x: x.exponential_(),
    "dropout": lambda x: F.dropout(x.fill_(1), 0.3),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(3, 5), (7, 100), (5, 64, 33), (2, 3, 1030)], ids=str)
@pytest.mark.parametrize("name", FILLS)
def test_every_form_of_a_kernel_makes_the_same_numbers(name: str, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    """Plain fills, transposed ones, beside a broadcast operand, before a sum of rows or of columns, for two passes."""
    fill = FILLS[name]

    def draw(form: Callable[[Tensor], Tensor]) -> Tensor:
        torch.manual_seed(21)
        return form(torch.empty(shape, dtype=dtype, device=DEVICE)).cpu()

    plain = draw(fill)
    last = torch.arange(shape[-1], device=DEVICE).to(dtype)
    assert torch.equal(draw(lambda x: fill(x.mT.contiguous().mT)), plain)
    assert torch.equal(draw(lambda x: fill(x) + last), (plain.to(DEVICE) + last).cpu())
    assert torch.equal(draw(lambda x: fill(x).sum(-1)), plain.to(DEVICE).sum(-1).cpu())
    assert torch.equal(draw(lambda x: fill(x).sum(0)), plain.to(DEVICE).sum(0).cpu())
    assert torch.equal(draw(lambda x: fill(x).softmax(-1)), plain.to(DEVICE).softmax(-1).cpu())


@pytest.mark.parametrize("name", ["normal_", "uniform_", "exponential_"])
def test_neighbours_and_calls_are_unrelated(name: str) -> None:
    """Ranks of a sample: uniform by Kolmogorov and Smirnov, without correlation between places or between calls."""
    torch.manual_seed(8)
    n = 1 << 18
    calls = [getattr(torch.empty(n, device=DEVICE), name)().cpu().double() for _ in range(3)]
    cumulative = {
        "normal_": lambda x: torch.special.ndtr(x),
        "uniform_": lambda x: x,
        "exponential_": lambda x: 1 - torch.exp(-x),
    }[name]
    ranks = [cumulative(x) for x in calls]
    steps = torch.arange(n, dtype=torch.float64) / n
    for rank in ranks:
        assert (rank.sort().values - steps).abs().max().item() * n**0.5 < 1.95
    for first, second in itertools.combinations_with_replacement(ranks, 2):
        for lag in (0, 1, 8, 15, 16, 17, 32, 48, 64, 1024):
            if first is second and lag == 0:
                continue
            x, y = first[: n - lag] - 0.5, second[lag:] - 0.5
            assert abs((x * y).mean().item() * 12) < 5 / n**0.5, lag


N = 40000


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_moments(dtype: torch.dtype) -> None:
    torch.manual_seed(1)

    def moments(x: torch.Tensor) -> tuple[float, float]:
        wide = x.cpu().double()
        return wide.mean().item(), wide.std().item()

    with torch_neuronx.testing.no_fallback():
        empty = torch.empty(N, dtype=dtype, device=DEVICE)
        x = empty.uniform_(-1, 3).clone()
        assert moments(x) == pytest.approx((1, 4 / 12**0.5), abs=0.05)
        assert x.min().item() >= -1 and (x.max().item() < 3 or dtype in (torch.bfloat16, torch.float16))
        assert empty.clone().uniform_().max().item() < 1
        assert moments(empty.normal_(2, 3)) == pytest.approx((2, 3), abs=0.06)
        assert moments(empty.exponential_(2)) == pytest.approx((0.5, 0.5), abs=0.03)
        assert empty.exponential_().min().item() > 0
        assert torch.empty(1 << 25, dtype=dtype, device=DEVICE).exponential_().min().item() > 0  # it may divide
        assert moments(empty.bernoulli_(0.3))[0] == pytest.approx(0.3, abs=0.02)
        assert moments(empty.geometric_(0.5))[0] == pytest.approx(2, abs=0.05)
        assert (
            empty.cauchy_(1, 2).cpu().median().item() == pytest.approx(1, abs=0.1) if dtype == torch.float32 else True
        )
        assert moments(empty.log_normal_(0, 0.25))[0] == pytest.approx(1.0317, abs=0.02)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8, torch.float32], ids=str)
def test_integers(dtype: torch.dtype) -> None:
    torch.manual_seed(2)
    with torch_neuronx.testing.no_fallback():
        x = torch.randint(3, 9, (N,), dtype=dtype, device=DEVICE).cpu()
    assert x.dtype == dtype
    counts = torch.bincount(x.long(), minlength=9)
    assert counts[:3].sum() == 0 and (counts[3:9].double() / N - 1 / 6).abs().max() < 0.01
    with torch_neuronx.testing.no_fallback():
        full = torch.empty(N, dtype=dtype, device=DEVICE).random_().cpu()
    assert full.min() >= 0
    if dtype == torch.uint8:
        assert full.max() == 255


def test_wide_ranges() -> None:
    x = torch.empty(1000, dtype=torch.int64, device=DEVICE).random_(-(2**62), 2**62).cpu()
    assert x.min() < -(2**60) and x.max() > 2**60


def test_errors_are_cpus() -> None:
    x = torch.empty(3, device=DEVICE)
    for call in (
        lambda t: t.normal_(0, -1),
        lambda t: t.uniform_(2, 1),
        lambda t: t.exponential_(-1),
        lambda t: t.bernoulli_(1.5),
        lambda t: t.geometric_(0),
        lambda t: t.random_(5, 3),
        lambda t: t.cauchy_(0, -1),
        lambda t: t.to(torch.uint8).random_(0, 300),
    ):
        with pytest.raises(RuntimeError) as expected:
            call(torch.empty(3))
        with pytest.raises(RuntimeError) as actual:
            call(x)
        assert str(actual.value).split("\n")[0] == str(expected.value).split("\n")[0]
    with pytest.raises(RuntimeError, match="Expected a 'neuron' device type for generator but found 'cpu'"):
        x.normal_(generator=torch.Generator())


def test_dropout() -> None:
    torch.manual_seed(4)
    x = torch.full((200, 100), 3.0, device=DEVICE, requires_grad=True)
    with torch_neuronx.testing.no_fallback():
        y = F.dropout(x, 0.25)
        y.sum().backward()
    kept = y.detach().cpu() != 0
    assert kept.double().mean().item() == pytest.approx(0.75, abs=0.02)
    assert torch.allclose(y.detach().cpu()[kept], torch.tensor(4.0))
    assert torch.equal(x.grad.cpu() != 0, kept)
    assert torch.allclose(x.grad.cpu()[kept], torch.tensor(1 / 0.75))
    assert torch.equal(F.dropout(x, 0.5, training=False).cpu(), x.cpu())
    assert F.dropout(x, 1.0).abs().sum().item() == 0


def test_permutation() -> None:
    torch.manual_seed(5)
    with torch_neuronx.testing.no_fallback():
        p = torch.randperm(1000, device=DEVICE)
    assert torch.equal(p.cpu().sort().values, torch.arange(1000))
    assert not torch.equal(p.cpu(), torch.arange(1000))
    assert torch.randperm(0, device=DEVICE).shape == (0,)


def test_multinomial() -> None:
    torch.manual_seed(6)
    weights = torch.tensor([[1.0, 2, 0, 5], [0, 0, 3, 1]])
    with torch_neuronx.testing.no_fallback():
        x = torch.multinomial(weights.to(DEVICE), 20000, replacement=True).cpu()
        y = torch.multinomial(weights.to(DEVICE), 2).cpu()
    for row in range(2):
        frequencies = torch.bincount(x[row], minlength=4).double() / 20000
        torch.testing.assert_close(frequencies, (weights[row] / weights[row].sum()).double(), atol=0.015, rtol=0)
    assert set(y[1].tolist()) == {2, 3} and 2 not in y[0].tolist()
    with pytest.raises(RuntimeError, match="cannot sample n_sample > prob_dist"):
        torch.multinomial(weights.to(DEVICE), 5)
    with pytest.raises(RuntimeError, match="probability tensor contains either"):
        torch.multinomial(-weights.to(DEVICE), 1).cpu()
