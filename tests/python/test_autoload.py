"""`import torch` alone brings the backend: cheaply, without a thread, and with a readable error when it cannot."""

from __future__ import annotations

import statistics
import subprocess
import sys

import pytest


def test_no_import_needed(run_python):
    result = run_python("import torch; print((torch.ones(2, device='neuron') + 1).tolist())")
    assert result.stdout == "[2.0, 2.0]\n", result


@pytest.mark.parametrize(
    "first", ["import torch_neuronx", "import torch_neuronx.neuron", "from torch_neuronx import Stream, synchronize"]
)
@pytest.mark.parametrize("autoload", ["0", "1"])
def test_import_by_name_before_torch(run_python, first, autoload):
    result = run_python(
        f"{first}\nimport torch_neuronx\ntorch_neuronx.synchronize()\nimport torch\n"
        "print(torch.ones(2, device='neuron').tolist(), torch_neuronx.neuron is torch.neuron)",
        TORCH_DEVICE_BACKEND_AUTOLOAD=autoload,
    )
    assert result.stdout == "[1.0, 1.0] True\n", result


def test_autoload_can_be_switched_off(run_python):
    result = run_python(
        "import torch, sys; print(hasattr(torch, 'neuron'), 'torch_neuronx' in sys.modules)",
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert result.stdout == "False False\n", result


def test_import_starts_no_thread(run_python):
    code = "import torch, os; print(len(os.listdir('/proc/self/task')))"
    # Compared with a run without us: other libraries start threads when torch is imported.
    without = run_python(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert run_python(code).stdout == without.stdout


def test_import_touches_no_heavy_module(run_python):
    code = "import torch, sys; print(*sorted(sys.modules), sep='\\n')"
    names = set(run_python(code).stdout.split()) - set(
        run_python(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0").stdout.split()
    )
    for heavy in ("torch._dynamo", "torch._inductor", "torch.distributed.fsdp", "torch.utils.checkpoint"):
        assert heavy not in names
    ours = [name for name in names if not name.startswith(("torch_neuronx", "torch.neuron", "torch.backends.neuron"))]
    assert len(ours) <= 10, ours


def test_autoload_costs_at_most_50_ms(run_python):
    code = """
        import resource, importlib.metadata, time, torch
        def cpu():
            usage = resource.getrusage(resource.RUSAGE_SELF)
            return usage.ru_utime + usage.ru_stime
        [entry] = [e for e in importlib.metadata.entry_points(group="torch.backends") if e.name == "torch_neuronx"]
        before = cpu()
        entry.load()()
        print(cpu() - before)
        assert torch.neuron.is_available()
    """
    # CPU time of the hook itself, the least of a few runs: the machine may be busy.
    times = [float(run_python(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0").stdout) for _ in range(4)]
    assert min(times) <= 0.050, statistics.median(times)


def test_other_torch_versions_are_refused_by_name():
    from torch_neuronx import _C, _loader

    assert _C.torch_version.startswith(_loader.BUILT_FOR + ".")
    _loader.check_version("2.13.7+cu130")
    with pytest.raises(ImportError, match=r"built for torch 2\.13 and cannot run with torch 2\.14\.0"):
        _loader.check_version("2.14.0+cpu")


def test_an_occupied_backend_slot_is_named(run_python):
    result = run_python(
        """
        import torch
        torch.utils.rename_privateuse1_backend("npu")
        import torch_neuronx
        torch_neuronx.synchronize()
        """,
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert result.returncode != 0
    assert "another package has already registered torch's PrivateUse1 backend as 'npu'" in result.stderr


def test_module_can_be_run():
    output = subprocess.run([sys.executable, "-m", "torch_neuronx", "env", "--set"], capture_output=True, text=True)
    assert output.returncode == 0, output.stderr
