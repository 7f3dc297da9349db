"""Optimizer steps and gradient scaling: equal to the CPU's after several steps, without a fallback."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

import torch_neuronx.testing
from fuzz.compare import ADAPTIVE, REFERENCE, settings
from fuzz.compare import OTHERS as OTHER_VARIANTS
from reference import DEVICE

CASES: dict[str, tuple[type[torch.optim.Optimizer], dict[str, Any]]] = {
    "sgd": (torch.optim.SGD, {"lr": 0.1}),
    "sgd_momentum": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True}),
    "sgd_dampened": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "maximize": True}),
    "adam": (torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.1}),
    "adam_amsgrad": (torch.optim.Adam, {"lr": 0.01, "amsgrad": True}),
    "adamw": (torch.optim.AdamW, {"lr": 0.01}),
    "adamw_maximize": (torch.optim.AdamW, {"lr": 0.01, "maximize": True, "betas": (0.4, 0.9)}),
    "adagrad": (torch.optim.Adagrad, {"lr": 0.1, "lr_decay": 0.01, "weight_decay": 0.1}),
}
# Without a fused form.
OTHERS: dict[str, tuple[type[torch.optim.Optimizer], dict[str, Any]]] = {
    "rmsprop": (torch.optim.RMSprop, {"lr": 0.01, "momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    "nadam": (torch.optim.NAdam, {"lr": 0.01, "decoupled_weight_decay": True, "weight_decay": 0.1}),
    "radam": (torch.optim.RAdam, {"lr": 0.01}),
    "adamax": (torch.optim.Adamax, {"lr": 0.01}),
    "adadelta": (torch.optim.Adadelta, {"lr": 0.5, "weight_decay": 0.1}),
    "asgd": (torch.optim.ASGD, {"lr": 0.1, "t0": 2, "weight_decay": 0.1}),
    "rprop": (torch.optim.Rprop, {"lr": 0.01}),
}
CAPTURABLE = ("adam", "adam_amsgrad", "adamw", "rmsprop", "nadam", "radam", "adamax", "adadelta", "asgd", "rprop")


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))


def train(module: torch.nn.Module, optimizer: torch.optim.Optimizer, device: str) -> None:
    for step in range(4):
        generator = torch.Generator().manual_seed(step)
        for parameter in module.parameters():
            parameter.grad = torch.randn(parameter.shape, generator=generator).to(device, parameter.dtype)
        optimizer.step()


@pytest.mark.parametrize("mode", ["fused", "foreach", "loop"])
@pytest.mark.parametrize("name", CASES)
def test_steps_equal_cpu(name: str, mode: str) -> None:
    kind, options = CASES[name]
    flags = {"fused": {"fused": True}, "foreach": {"foreach": True}, "loop": {"foreach": False, "fused": False}}[mode]
    host = model().double()
    device = copy.deepcopy(host).float().to(DEVICE)
    train(host, kind(host.parameters(), **options), "cpu")
    with torch_neuronx.testing.no_fallback():
        train(device, kind(device.parameters(), **options, **flags), DEVICE)
    for a, b in zip(device.parameters(), host.parameters(), strict=True):
        torch.testing.assert_close(a.detach().cpu().double(), b.detach(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("mode", ["default", "foreach", "loop", "maximize"])
@pytest.mark.parametrize("name", OTHERS)
def test_other_steps_equal_cpu(name: str, mode: str) -> None:
    kind, options = OTHERS[name]
    flags = {"default": {}, "foreach": {"foreach": True}, "loop": {"foreach": False}, "maximize": {"maximize": True}}[
        mode
    ]
    host = model().double()
    device = copy.deepcopy(host).float().to(DEVICE)
    train(host, kind(host.parameters(), **options, maximize=mode == "maximize"), "cpu")
    with torch_neuronx.testing.no_fallback():
        train(device, kind(device.parameters(), **options, **flags), DEVICE)
    for a, b in zip(device.parameters(), host.parameters(), strict=True):
        torch.testing.assert_close(a.detach().cpu().double(), b.detach(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", CAPTURABLE)
def test_capturable_steps_equal_cpu(name: str) -> None:
    kind, options = (CASES | OTHERS)[name]
    host = model().double()
    device = copy.deepcopy(host).float().to(DEVICE)
    train(host, kind(host.parameters(), **options), "cpu")
    with torch_neuronx.testing.no_fallback():
        train(device, kind(device.parameters(), **options, capturable=True, foreach=True), DEVICE)
    for a, b in zip(device.parameters(), host.parameters(), strict=True):
        torch.testing.assert_close(a.detach().cpu().double(), b.detach(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("mode", ["foreach", "fused"])
@pytest.mark.parametrize("name", [*CASES, *OTHERS])
def test_steps_have_the_same_bits_in_every_mode(name: str, mode: str) -> None:
    if mode == "fused" and name in OTHERS:
        return
    kind, options = (CASES | OTHERS)[name]

    def steps() -> list[torch.Tensor]:
        module = model().to(DEVICE)
        optimizer = kind(module.parameters(), **options, **{mode: True})
        train(module, optimizer, DEVICE)
        return [parameter.detach().cpu() for parameter in module.parameters()]

    def loop() -> list[torch.Tensor]:
        module = model().to(DEVICE)
        train(module, kind(module.parameters(), **options, foreach=False), DEVICE)
        return [parameter.detach().cpu() for parameter in module.parameters()]

    results = []
    for variant in (REFERENCE, *ADAPTIVE, *OTHER_VARIANTS):
        with settings(variant):
            results.append(steps())
    for result in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(result, results[0], strict=True))
    with settings(REFERENCE):
        for a, b in zip(loop(), results[0], strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("order", [2.0, 1.0, float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_clipping_by_norm(dtype: torch.dtype, order: float) -> None:
    generator = torch.Generator().manual_seed(4)
    gradients = [torch.randn(shape, generator=generator).to(dtype) for shape in ((30, 20), (7,), (), (2, 3, 4))]
    totals = []
    clipped: list[list[torch.Tensor]] = []
    for device, kind in (("cpu", torch.float64), (DEVICE, dtype)):
        parameters = [torch.nn.Parameter(torch.zeros_like(g, dtype=kind, device=device)) for g in gradients]
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient.to(device, kind)
        with torch_neuronx.testing.no_fallback():
            totals.append(torch.nn.utils.clip_grad_norm_(parameters, 1.5, order, foreach=True))
        clipped.append([parameter.grad.cpu() for parameter in parameters])
    tolerance = {"rtol": 2e-5, "atol": 1e-6} if dtype == torch.float32 else {"rtol": 2e-2, "atol": 2e-3}
    torch.testing.assert_close(totals[1].cpu().double(), totals[0], **tolerance)
    for expected, actual in zip(*clipped, strict=True):
        assert actual.dtype == dtype
        torch.testing.assert_close(actual.double(), expected, **tolerance)


def test_clipping_by_value_and_a_total_that_is_not_finite() -> None:
    weight = torch.nn.Parameter(torch.zeros(4, device=DEVICE))
    weight.grad = torch.tensor([3.0, -2.0, 0.25, float("inf")], device=DEVICE)
    with pytest.raises(RuntimeError, match="total norm of order 2.0 .* is non-finite"):
        torch.nn.utils.clip_grad_norm_([weight], 1.0, error_if_nonfinite=True, foreach=True)
    torch.nn.utils.clip_grad_value_([weight], 1.0, foreach=True)
    assert weight.grad.tolist() == [1.0, -1.0, 0.25, 1.0]


def test_fused_lists_of_other_lengths_are_the_cpus_error() -> None:
    errors = []
    for device in ("cpu", DEVICE):
        one = [torch.ones(2, device=device)]
        with pytest.raises(RuntimeError) as raised:
            torch._fused_sgd_(
                one, [*one, *one], [], weight_decay=0.0, momentum=0.0, lr=0.1, dampening=0.0, nesterov=False,
                maximize=False, is_first_step=True,
            )  # fmt: skip
        errors.append(str(raised.value).splitlines()[0])
    assert errors[0] == errors[1]


def test_fused_tensors_of_other_sizes_and_devices_are_refused() -> None:
    def step(gradient: torch.Tensor) -> None:
        torch._fused_sgd_(
            [torch.ones(2, 3, device=DEVICE)], [gradient], [], weight_decay=0.0, momentum=0.0, lr=0.1, dampening=0.0,
            nesterov=False, maximize=False, is_first_step=True,
        )  # fmt: skip

    with pytest.raises(RuntimeError, match=r"same size, but found \[2, 3\] and \[3, 2\]"):
        step(torch.ones(3, 2, device=DEVICE))
    with pytest.raises(RuntimeError, match="found at least two devices, neuron:0 and cpu"):
        step(torch.ones(2, 3))


def test_fused_steps_of_tensors_that_lie_differently_in_memory() -> None:
    results = []
    for device, fused in (("cpu", False), (DEVICE, True)):  # the CPU's fused step takes all memory in its own order
        generator = torch.Generator().manual_seed(1)
        parameters = [torch.nn.Parameter(torch.randn(4, 6, generator=generator).to(device)) for _ in range(2)]
        optimizer = torch.optim.AdamW(parameters, lr=0.1, fused=fused)
        for _ in range(3):
            for parameter in parameters:
                parameter.grad = torch.randn(6, 4, generator=generator).to(device).t()
            optimizer.step()
        results.append([parameter.detach().cpu() for parameter in parameters])
    for expected, actual in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", ["sgd_momentum", "adamw", "adagrad"])
def test_fused_in_bfloat16_keeps_close_to_float64(name: str) -> None:
    kind, options = CASES[name]
    host = model().bfloat16().double()
    device = copy.deepcopy(host).bfloat16().to(DEVICE)
    train(host, kind(host.parameters(), **options), "cpu")
    train(device, kind(device.parameters(), **options, fused=True), DEVICE)
    for a, b in zip(device.parameters(), host.parameters(), strict=True):
        torch.testing.assert_close(a.detach().cpu().float(), b.detach().float(), rtol=2e-2, atol=3e-2)


def test_learning_rate_as_a_tensor() -> None:
    host, rate = model(), torch.tensor(0.01)
    device = copy.deepcopy(host).to(DEVICE)
    train(host, torch.optim.AdamW(host.parameters(), lr=0.01, fused=True), "cpu")
    train(device, torch.optim.AdamW(device.parameters(), lr=rate.to(DEVICE), fused=True), DEVICE)
    for a, b in zip(device.parameters(), host.parameters(), strict=True):
        torch.testing.assert_close(a.detach().cpu(), b.detach(), rtol=2e-5, atol=2e-6)


def test_gradient_scaler_skips_and_grows() -> None:
    scaler = torch.amp.GradScaler(DEVICE, init_scale=8.0, growth_interval=2)
    weight = torch.nn.Parameter(torch.ones(4, device=DEVICE))
    optimizer = torch.optim.SGD([weight], lr=0.5)
    scales = []
    for gradient in (1.0, float("inf"), 1.0, 1.0):
        optimizer.zero_grad()
        loss = (weight * gradient).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [8.0, 4.0, 4.0, 8.0]
    assert weight.tolist() == [-0.5] * 4


@pytest.mark.parametrize("clip", [False, True], ids=["", "clipped"])
@pytest.mark.parametrize("options", [{"fused": True}, {"foreach": True}, {"foreach": False}], ids=str)
@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD])
def test_scaled_training_follows_float64(kind: type[torch.optim.Optimizer], options: dict, clip: bool) -> None:
    host = model().double()
    device = copy.deepcopy(host).float().to(DEVICE)
    settings_of_kind = {"lr": 0.01} | ({"momentum": 0.9} if kind is torch.optim.SGD else {})
    exact = kind(host.parameters(), **settings_of_kind)
    optimizer = kind(device.parameters(), **settings_of_kind, **options)
    scaler = torch.amp.GradScaler(DEVICE, init_scale=2.0**10, growth_interval=2)
    generator = torch.Generator().manual_seed(3)
    scales = []
    for step in range(6):
        x, y = torch.randn(16, 5, generator=generator), torch.randn(16, 3, generator=generator)
        exact.zero_grad()
        torch.nn.functional.mse_loss(host(x.double()), y.double()).backward()
        optimizer.zero_grad()
        with torch.autocast(DEVICE, dtype=torch.float16):
            loss = torch.nn.functional.mse_loss(device(x.to(DEVICE)), y.to(DEVICE))
        scaler.scale(loss).backward()
        overflow = step == 2
        if overflow:
            next(device.parameters()).grad[0, 0] = float("inf")
        if clip:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(device.parameters(), 0.1, foreach=True)
            torch.nn.utils.clip_grad_norm_(host.parameters(), 0.1)
        if not overflow:
            exact.step()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [2.0**10, 2.0**11, 2.0**10, 2.0**10, 2.0**11, 2.0**11]
    for a, b in zip(device.parameters(), host.parameters(), strict=True):
        torch.testing.assert_close(a.detach().cpu().double(), b.detach(), rtol=5e-3, atol=5e-3)


def test_state_of_a_scaler_goes_on() -> None:
    scaler = torch.amp.GradScaler(DEVICE, init_scale=4.0, growth_interval=2)
    weight = torch.nn.Parameter(torch.ones(2, device=DEVICE))
    optimizer = torch.optim.SGD([weight], lr=0.5, fused=True)
    for _ in range(3):
        scaler.scale(weight.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    other = torch.amp.GradScaler(DEVICE)
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict()
    assert other.get_scale() == 8.0


def test_unscale_of_several_dtypes_and_layouts() -> None:
    gradients = [
        torch.ones(3, 4, device=DEVICE).t(),
        torch.ones(5, dtype=torch.float16, device=DEVICE),
        torch.ones(0, device=DEVICE),
        torch.ones(2, 6, dtype=torch.float16, device=DEVICE)[:, ::2],
    ]
    found, inverse = torch.zeros(1, device=DEVICE), torch.full((1,), 0.25, device=DEVICE)
    torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, inverse)
    assert found.item() == 0
    assert all(bool((gradient == 0.25).all()) for gradient in gradients)
    gradients[3][1, 2] = float("nan")
    torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, inverse)
    assert found.item() == 1
    with pytest.raises(RuntimeError, match="found_inf must be a 1-element tensor"):
        torch._amp_foreach_non_finite_check_and_unscale_(gradients, torch.zeros(2, device=DEVICE), inverse)


def test_unscale_finds_each_non_finite_value() -> None:
    for value in (float("inf"), float("-inf"), float("nan")):
        gradients = [torch.ones(3, 4, device=DEVICE), torch.ones(5, device=DEVICE)]
        gradients[1][2] = value
        found, inverse = torch.zeros(1, device=DEVICE), torch.full((1,), 0.5, device=DEVICE)
        torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, inverse)
        assert found.item() == 1
        assert gradients[0].tolist() == [[0.5] * 4] * 3
    gradients = [torch.ones(2, device=DEVICE)]
    found = torch.zeros(1, device=DEVICE)
    torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, inverse)
    assert found.item() == 0


FOREACH = {
    "add": lambda x, y: torch._foreach_add(x, y),
    "add_alpha": lambda x, y: torch._foreach_add(x, y, alpha=2),
    "add_scalar": lambda x, y: torch._foreach_add(x, 1.5),
    "add_scalars": lambda x, y: torch._foreach_add(x, [1.5, 2.5, 3.5]),
    "sub": lambda x, y: torch._foreach_sub(x, y),
    "mul": lambda x, y: torch._foreach_mul(x, y),
    "mul_scalar": lambda x, y: torch._foreach_mul(x, 3),
    "div": lambda x, y: torch._foreach_div(x, y),
    "addcmul": lambda x, y: torch._foreach_addcmul(x, y, y, 0.5),
    "addcdiv": lambda x, y: torch._foreach_addcdiv(x, y, y, 0.5),
    "lerp": lambda x, y: torch._foreach_lerp(x, y, 0.25),
    "sqrt": lambda x, y: torch._foreach_sqrt(torch._foreach_abs(x)),
    "neg": lambda x, y: torch._foreach_neg(x),
    "reciprocal": lambda x, y: torch._foreach_reciprocal(x),
    "sign": lambda x, y: torch._foreach_sign(x),
    "maximum": lambda x, y: torch._foreach_maximum(x, y),
    "clamp_max": lambda x, y: torch._foreach_clamp_max(x, 0.5),
    "pow": lambda x, y: torch._foreach_pow(torch._foreach_abs(x), 1.5),
    "norm": lambda x, y: torch._foreach_norm(x),
}


@pytest.mark.parametrize("name", FOREACH)
def test_foreach(name: str) -> None:
    generator = torch.Generator().manual_seed(9)
    xs = [torch.randn(shape, generator=generator) for shape in ((3, 4), (7,), ())]
    ys = [torch.randn(shape, generator=generator) for shape in ((3, 4), (7,), ())]
    with torch_neuronx.testing.no_fallback():
        actual = FOREACH[name]([x.to(DEVICE) for x in xs], [y.to(DEVICE) for y in ys])
    for a, e in zip(actual, FOREACH[name](xs, ys), strict=True):
        torch.testing.assert_close(a.cpu(), e)


def test_foreach_in_place() -> None:
    xs = [torch.ones(3, device=DEVICE), torch.full((2, 2), 2.0, device=DEVICE)]
    with torch_neuronx.testing.no_fallback():
        torch._foreach_mul_(xs, 2)
        torch._foreach_add_(xs, xs)
        torch._foreach_copy_(xs, [x / 2 for x in xs])
        torch._foreach_zero_([xs[0]])
    assert xs[0].tolist() == [0, 0, 0]
    assert xs[1].tolist() == [[4, 4], [4, 4]]
