"""The example of a custom C++ operator on neuron memory: it compiles, joins the stream, and has a gradient."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
import torch

import torch_neuronx

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "foreign_kernel"))


@pytest.fixture(scope="module")
def average():
    if shutil.which("ninja") is None or shutil.which("c++") is None:
        pytest.skip("torch.utils.cpp_extension needs ninja and a C++ compiler")
    import moving_average

    moving_average.build()
    return torch.ops.foreign_example.moving_average


def reference(x: torch.Tensor, decay: float) -> torch.Tensor:
    state, steps = torch.zeros_like(x[..., 0]), []
    for t in range(x.shape[-1]):
        state = decay * state + (1 - decay) * x[..., t]
        steps.append(state)
    return torch.stack(steps, -1)


def test_the_headers_and_the_library_are_where_the_package_says() -> None:
    assert (Path(torch_neuronx.get_include()) / "neuron" / "foreign.h").is_file()
    assert (Path(torch_neuronx.get_library_dir()) / "libneuron.so").is_file()


def test_it_is_recorded_between_other_operations(average) -> None:
    x = torch.randn(8, 100, device="neuron")
    torch.neuron.synchronize()
    torch_neuronx.reset_eager_report()
    torch_neuronx.clear_op_tracking()
    y = average(x * 2, 0.5) + 1
    x.fill_(0)  # after the command has read it
    assert torch_neuronx.eager_report()["flush_reasons"] == {}
    z = y.cpu()
    assert torch_neuronx.get_fallback_ops() == []
    x = torch.randn(8, 100, device="neuron")
    torch.testing.assert_close(average(x, 0.5).cpu().double(), reference(x.cpu().double(), 0.5), rtol=1e-5, atol=1e-6)
    assert z.shape == (8, 100)


def test_the_order_of_writes_and_reads_is_kept(average) -> None:
    for _ in range(20):
        x = torch.ones(3, 64, device="neuron")
        y = average(x, 0.0)  # a copy
        x.mul_(5)
        w = average(x, 0.0)
        y.add_(w)
        assert y.cpu().unique().tolist() == [6.0]


def test_the_memory_of_a_result_can_be_exported(average) -> None:
    y = average(torch.full((4, 8), 3.0, device="neuron"), 0.0)
    pointer = y.data_ptr()  # waits
    import ctypes

    assert list((ctypes.c_float * 32).from_address(pointer)) == [3.0] * 32


def test_modes_streams_and_threads(average) -> None:
    x = torch.randn(64, 500)
    expected = average(x, 0.9)
    for mode in ("adaptive", "immediate", "blocking"):
        torch.backends.neuron.eager_mode = mode
        assert torch.equal(average(x.to("neuron"), 0.9).cpu(), expected)
    torch.backends.neuron.eager_mode = "adaptive"
    side = torch.neuron.Stream()
    with torch.neuron.stream(side):
        y = average(x.to("neuron"), 0.9)
    side.synchronize()
    assert torch.equal(y.cpu(), expected)
    with torch.neuron.device(1):
        assert torch.equal(average(x.to("neuron"), 0.9).cpu(), expected)


def test_gradients(average) -> None:
    x = torch.randn(3, 20, device="neuron", requires_grad=True)
    weights = torch.randn(3, 20, device="neuron")
    (average(x, 0.7) * weights).sum().backward()
    y = x.detach().cpu().double().requires_grad_()
    (reference(y, 0.7) * weights.cpu().double()).sum().backward()
    torch.testing.assert_close(x.grad.cpu().double(), y.grad, rtol=1e-5, atol=1e-6)


def test_it_passes_opcheck(average) -> None:
    x = torch.randn(4, 6, device="neuron", requires_grad=True)
    # The remaining one, of the autograd registration, refuses every device but CPU, CUDA and XPU.
    tests = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    result = torch.library.opcheck(torch.ops.foreign_example.moving_average.default, (x, 0.5), test_utils=tests)
    assert set(result.values()) == {"SUCCESS"}


def test_it_is_captured_into_a_graph(average) -> None:
    x = torch.zeros(2, 16, device="neuron")
    g = torch.neuron.NeuronGraph()
    with torch.neuron.graph(g):
        y = average(x + 1, 0.5) * 2
    for value in (1.0, 4.0):
        x.fill_(value)
        g.replay()
        assert torch.equal(y.cpu(), average(torch.full((2, 16), value + 1), 0.5) * 2)


def test_an_input_that_was_never_written_stops_it(average) -> None:
    table, index = torch.randn(4, 8, device="neuron"), torch.tensor([9], device="neuron")
    bad = torch.nn.functional.embedding(index, table)
    y = average(bad, 0.5)
    with pytest.raises(IndexError):
        torch.neuron.synchronize()
    with pytest.raises(IndexError):
        y.cpu()


def test_wrong_arguments(average) -> None:
    with pytest.raises(TypeError, match="expected float32"):
        average(torch.ones(3, dtype=torch.int64, device="neuron"), 0.5)
    with pytest.raises(ValueError, match="decay"):
        average(torch.ones(3, device="neuron"), 1.5)
    assert average(torch.ones(0, 3, device="neuron"), 0.5).shape == (0, 3)
