"""The interpreter ends with code 0, whatever is alive or pending, and finishes promptly."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    "body",
    [
        "x = torch.ones(1 << 20, device='neuron')",
        "x = torch.ones(1 << 20, device='neuron')\nfor _ in range(100): x = x + 1",
        "import builtins; builtins.keep = torch.randn(100, 100, device='neuron') @ torch.ones(100, 100, device='neuron')",
        "s = torch.neuron.Stream(); e = torch.neuron.Event(enable_timing=True)\n"
        "with torch.neuron.stream(s): x = torch.ones(9, device='neuron') * 2; e.record()",
        "x = torch.ones(9, device='neuron', requires_grad=True); y = (x * x).sum(); y.backward()",
        "x = torch.ones(9).pin_memory(); y = x.to('neuron', non_blocking=True)",
        "import threading\n"
        "def idle():\n"
        "    x = torch.ones(64, device='neuron') + 1\n"
        "    begun.set(); threading.Event().wait()\n"
        "begun = threading.Event(); threading.Thread(target=idle, daemon=True).start(); begun.wait()",
        "import threading\n"
        "def work():\n"
        "    x = torch.ones(64, device='neuron')\n"
        "    for _ in range(2000): x = x + 1\n"
        "threading.Thread(target=work).start()",
        "import atexit; x = torch.ones(9, device='neuron'); atexit.register(lambda: print(x.sum().item()))",
        "g = torch.neuron.default_generators[0]; torch.neuron.memory._record_memory_history(); x = torch.ones(3).neuron()",
    ],
)
def test_exit_code(run_python, body):
    result = run_python(f"import torch\n{body}\n", timeout=60)
    assert result.returncode == 0, result
    assert "Traceback" not in result.stderr and "terminate" not in result.stderr, result


def test_exit_from_an_exception_keeps_its_code(run_python):
    result = run_python("import torch\nx = torch.ones(9, device='neuron') + 1\nraise SystemExit(7)")
    assert result.returncode == 7, result


def test_module_globals_are_deleted_after_shutdown(run_python):
    result = run_python("""
        import torch
        class Late:
            def __init__(self): self.tensor = torch.ones(100, device="neuron")
            def __del__(self): del self.tensor
        late = Late()
        late.cycle = late
    """)
    assert result.returncode == 0 and result.stderr == "", result


def test_gradients_just_before_the_end(run_python):
    """Threads of autograd that are not done with a pass when the interpreter ends would abort the process."""
    for _ in range(8):
        result = run_python("""
            import sys, torch
            sys.setswitchinterval(10)  # nobody else gets the interpreter before it ends
            x = torch.ones(4096, device="neuron", requires_grad=True)
            for _ in range(3): (x * x).sum().backward()
        """)
        assert result.returncode == 0 and result.stderr == "", result
