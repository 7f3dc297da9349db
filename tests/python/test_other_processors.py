"""Processors this machine is not, emulated."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

QEMU = shutil.which("qemu-x86_64")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(QEMU is None, reason="needs the package qemu-user, which tools/bootstrap.sh full installs"),
]


def run_on(processor: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(QEMU), "-cpu", processor, sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def test_without_avx2_torch_is_untouched_and_the_device_says_why():
    code = """
import torch
print(torch.ones(2).add(1).tolist(), torch.neuron.is_available(), torch.neuron.device_count())
try:
    torch.ones(2, device="neuron")
except RuntimeError as error:
    print(error)
"""
    result = run_on("Nehalem", "-c", code)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "[2.0, 2.0] False 0",
        "no neuron device is available: the host device needs a processor with AVX2, FMA, F16C and BMI2 (x86-64-v3); "
        "this one lacks AVX2, FMA, F16C, BMI2",
    ]


def test_doctor_without_avx2():
    # The self-test's process would not be emulated.
    result = run_on("Nehalem", "-m", "torch_neuronx", "doctor", "--no-self-test")
    assert result.returncode == 1, result.stderr
    text = " ".join(result.stdout.split())
    assert "PROBLEM: the host device needs a processor with AVX2" in text
    assert "what to do: use another machine" in text
