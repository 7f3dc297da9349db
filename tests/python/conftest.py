"""Shared by all Python tests: the device under its default settings, and programs run in a fresh interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator

import pytest
import torch

import torch_neuronx


@pytest.fixture(autouse=True)
def clean_device() -> Iterator[None]:
    """Each test begins and ends with a finished device and default settings, whatever the one before left behind."""
    yield
    torch.use_deterministic_algorithms(False)
    torch.backends.neuron.eager_mode = "adaptive"
    torch.backends.neuron.strict = False
    torch.neuron.set_device(0)
    torch.neuron.synchronize()


class Result:
    def __init__(self, process: subprocess.CompletedProcess[str]):
        self.returncode = process.returncode
        self.stdout = process.stdout
        self.stderr = process.stderr

    def __repr__(self) -> str:
        return f"exit code {self.returncode}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"


@pytest.fixture(autouse=True)
def native_operators_stay_on_the_device(request: pytest.FixtureRequest) -> Iterator[None]:
    """No operator that the test file lists in NATIVE may fall back, whatever the helpers around it do."""
    native: set[str] = getattr(request.module, "NATIVE", set())
    if native:
        torch_neuronx.clear_op_tracking()
    yield
    if native:
        fallen = {name.removeprefix("aten::").split(".")[0] for name in torch_neuronx.get_fallback_ops()}
        assert not fallen & native


@pytest.fixture
def run_python() -> Callable[..., Result]:
    """Runs a program in a new interpreter: ``run_python(code, NAME="value")`` with extra environment variables; None
    removes one."""

    def run(code: str, timeout: float = 120, **environment: str | None) -> Result:
        variables = dict(os.environ)
        for name, value in environment.items():
            if value is None:
                variables.pop(name, None)
            else:
                variables[name] = value
        return Result(
            subprocess.run(
                [sys.executable, "-c", textwrap.dedent(code)],
                env=variables,
                capture_output=True,
                text=True,
                timeout=timeout,
            )
        )

    return run


@pytest.fixture
def second_device() -> int:
    """An index other than 0; every presented instance has several cores."""
    assert torch_neuronx.device_count() >= 2
    return 1
