"""Optimizer steps of each family, and what goes with them: `make bench ARGS="--only optimizer"`.

The lists are 100 tensors of 64 elements, where nothing but the cost per tensor counts, and the parameters of the GPT of the
demo (6 layers, width 384), where memory does. `default` is the optimizer as a program makes it: on the CPU a loop over the
parameters, on the device lists.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from harness import Case, Step

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
import gpt  # noqa: E402

FAMILIES: dict[str, tuple[type[torch.optim.Optimizer], dict[str, Any]]] = {
    "SGD": (torch.optim.SGD, {"lr": 1e-3}),
    "SGD with momentum": (torch.optim.SGD, {"lr": 1e-3, "momentum": 0.9, "weight_decay": 1e-2}),
    "Adam": (torch.optim.Adam, {"lr": 1e-3}),
    "AdamW": (torch.optim.AdamW, {"lr": 1e-3}),
    "Adagrad": (torch.optim.Adagrad, {"lr": 1e-3}),
    "RMSprop": (torch.optim.RMSprop, {"lr": 1e-3}),
    "NAdam": (torch.optim.NAdam, {"lr": 1e-3}),
    "RAdam": (torch.optim.RAdam, {"lr": 1e-3}),
    "Adamax": (torch.optim.Adamax, {"lr": 1e-3}),
    "Adadelta": (torch.optim.Adadelta, {"lr": 1e-3}),
    "ASGD": (torch.optim.ASGD, {"lr": 1e-3}),
    "Rprop": (torch.optim.Rprop, {"lr": 1e-3}),
}
FUSED = ("SGD with momentum", "Adam", "AdamW", "Adagrad")
FORMS: dict[str, dict[str, bool]] = {
    "default": {},
    "loop": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
}


def small_shapes() -> list[tuple[int, ...]]:
    return [(64,)] * 100


def gpt_shapes() -> list[tuple[int, ...]]:
    with torch.device("meta"):
        return [tuple(parameter.shape) for parameter in gpt.GPT(gpt.Config()).parameters()]


LISTS: dict[str, Callable[[], list[tuple[int, ...]]]] = {
    "100 small tensors": small_shapes,
    "the GPT's parameters": gpt_shapes,
}


def parameters_of(device: str, shapes: list[tuple[int, ...]]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    parameters = [torch.randn(shape, generator=generator).to(device).requires_grad_() for shape in shapes]
    for parameter in parameters:
        parameter.grad = torch.randn(parameter.shape, generator=generator).to(device)
    return parameters


def optimizer_step(family: str, options: dict[str, bool], shapes: Callable[[], list[tuple[int, ...]]]):
    kind, settings = FAMILIES[family]

    def setup(device: str) -> Step:
        parameters = parameters_of(device, shapes())
        optimizer = kind(parameters, **settings, **options)

        def step() -> Tensor:
            optimizer.step()
            return parameters[0].detach().clone()

        return step

    return setup


def clipping(shapes: Callable[[], list[tuple[int, ...]]]) -> Callable[[str], Step]:
    def setup(device: str) -> Step:
        parameters = parameters_of(device, shapes())
        return lambda: torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)

    return setup


def unscaling(shapes: Callable[[], list[tuple[int, ...]]]) -> Callable[[str], Step]:
    def setup(device: str) -> Step:
        gradients = [parameter.grad for parameter in parameters_of(device, shapes())]
        found, inverse = torch.zeros(1, device=device), torch.ones(1, device=device)

        def step() -> Tensor:
            torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, inverse)
            return found

        return step

    return setup


def optimizer_cases() -> list[Case]:
    cases = []
    for list_name, shapes in LISTS.items():
        small = list_name == "100 small tensors"
        count = 10 if small else 2
        for family in FAMILIES:
            for form, options in FORMS.items():
                if form == "fused" and family not in FUSED:
                    continue
                if family != "AdamW" and (form == "loop" or not small and form == "default"):
                    continue
                setup = optimizer_step(family, options, shapes)
                # The device takes a few more steps, while it learns.
                cases.append(Case(f"{family} of {list_name}, {form}", setup, count, "optimizer", math.inf))
        cases.append(Case(f"clip_grad_norm_ of {list_name}", clipping(shapes), count, "optimizer"))
        cases.append(Case(f"unscaling {list_name}", unscaling(shapes), count, "optimizer"))
    return cases
