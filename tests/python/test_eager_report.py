"""What eager_report() says of a program whose fusion is known."""

from __future__ import annotations

import json

import pytest
import torch
import torch.nn.functional as F

import torch_neuronx
from torch_neuronx import _C


@pytest.fixture(autouse=True)
def synchronous_compiles():
    """Regions are fused where they are first met, so that counts do not depend on time."""
    torch.neuron.synchronize()
    _C.set_synchronous_compile(True)
    torch_neuronx.reset_eager_report()
    yield
    _C.set_synchronous_compile(False)
    torch_neuronx.kernel_times.disable()


def test_kernels_their_time_and_their_bytes() -> None:
    x = torch.randn(64, 1024, device="neuron")
    with torch_neuronx.kernel_times():
        y = (x.tanh() * 2 + 1).sigmoid()
        del x
        y.cpu()
    report = torch_neuronx.eager_report(as_dict=True)
    assert type(report) is dict
    fused = [kernel for kernel in report["kernels"] if "tanh" in kernel["name"]]
    assert len(fused) == 1
    kernel = fused[0]
    size = 64 * 1024 * 4
    assert kernel["name"].startswith("tanh+")
    assert kernel["runs"] == 1 and kernel["commands"] >= 4 and not kernel["library"]
    assert kernel["seconds"] > 0
    assert kernel["bytes"] >= 2 * size
    assert kernel["unfused_bytes"] >= 8 * size
    assert report["moved_bytes"] >= kernel["bytes"]
    assert report["unfused_bytes"] > report["moved_bytes"] >= report["needed_bytes"] > 0


def test_library_kernels_are_rows_too() -> None:
    a = torch.randn(32, 32, device="neuron")
    with torch_neuronx.kernel_times():
        (a @ a).cpu()
    rows = {kernel["name"]: kernel for kernel in torch_neuronx.eager_report()["kernels"] if kernel["library"]}
    assert rows["gemm"]["runs"] == 1
    assert rows["gemm"]["bytes"] == 3 * 32 * 32 * 4  # both operands are the same memory, read twice


@pytest.mark.parametrize(
    ("reason", "program"),
    [
        ("library_kernel", lambda x: (x @ x).tanh()),
        ("different_space", lambda x: torch.full((7,), 2.0, device="neuron") * x.tanh().view(-1)[:7]),
        ("reduction_axis", lambda x: x.sum(1).sum(0)),
        ("nothing_before", lambda x: x.tanh()),
    ],
)
def test_reasons(reason: str, program) -> None:
    x = torch.randn(32, 32, device="neuron")
    torch.neuron.synchronize()
    torch_neuronx.reset_eager_report()
    result = program(x)
    torch.neuron.synchronize()
    del result
    counts = torch_neuronx.eager_report()["not_fused"]
    assert counts[reason] >= 1, counts


def test_fusion_off_is_a_reason() -> None:
    x = torch.randn(8, device="neuron")
    torch.backends.neuron.eager_mode = "immediate"
    torch_neuronx.reset_eager_report()
    y = x.tanh() + 1
    torch.neuron.synchronize()
    torch.backends.neuron.eager_mode = "adaptive"
    report = torch_neuronx.eager_report()
    assert report["not_fused"]["fusion_off"] >= 2 and report["fused_commands"] == 0
    assert y.shape == (8,)


def test_plans_and_learning_are_counted() -> None:
    x = torch.randn(16, 16, device="neuron")
    _C.set_synchronous_compile(False)

    def round_trip() -> None:
        (x.erf() * 3 - 1).cosh().exp2().cpu()

    torch_neuronx.reset_eager_report()
    round_trip()
    first = torch_neuronx.eager_report()
    assert first["plan_misses"] == 1 and first["plan_hits"] == 0
    for _ in range(3):
        round_trip()
        _C.wait_for_compiles()
    for _ in range(3):
        round_trip()
    later = torch_neuronx.eager_report()
    assert later["plan_hits"] >= 2
    assert later["pending_compiles"] == 0
    assert later["seen_once"] + later["awaiting_compile"] >= first["seen_once"] + first["awaiting_compile"]


def test_the_report_is_readable_and_can_be_stored() -> None:
    x = torch.randn(32, 32, device="neuron")
    with torch_neuronx.kernel_times():
        F.gelu(x @ x).cpu()
    report = torch_neuronx.eager_report()
    text = str(report)
    for part in ("recorded", "fused", "not fused", "nothing_before", "plans", "compiles", "flushes", "gemm", "GB/s"):
        assert part in text, text
    assert json.loads(json.dumps(report))["kernels"] == report["kernels"]
    torch_neuronx.reset_eager_report()
    empty = torch_neuronx.eager_report()
    assert empty["kernels"] == [] and empty["commands"] == 0 and not any(empty["not_fused"].values())
    assert "not measured" in str(empty)


def test_times_are_off_again_after_the_block() -> None:
    with torch_neuronx.kernel_times():
        pass
    torch.ones(4, device="neuron").tanh().cpu()
    assert torch_neuronx.eager_report()["kernels"] == []


def test_fallbacks_are_part_of_it() -> None:
    torch_neuronx.clear_op_tracking()
    torch.linalg.svdvals(torch.eye(3, device="neuron")).cpu()
    report = torch_neuronx.eager_report()
    assert report["fallbacks"] == torch_neuronx.fallback_report()
    torch_neuronx.clear_op_tracking()
