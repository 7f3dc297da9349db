"""What is the case on this machine, as plain data. Nothing here raises: what cannot be found out is told as such."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from torch_neuronx import _loader

Facts = dict[str, Any]

PACKAGE = Path(__file__).resolve().parent.parent
_AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
_FAMILIES = ("TORCH_NEURON", "NEURON_")


def gather(run_self_test: bool = True) -> Facts:
    """Everything the report shows. Imports torch and the binary layer into this process, without registering either."""
    asked = os.environ.get(_AUTOLOAD)
    os.environ[_AUTOLOAD] = "0"
    try:
        facts = _gather()
    finally:
        if asked is None:
            del os.environ[_AUTOLOAD]
        else:
            os.environ[_AUTOLOAD] = asked
    facts["autoload"] = _autoload(asked)
    facts["self_test"] = _self_test(facts) if run_self_test else {"state": "left out"}
    return facts


def _gather() -> Facts:
    facts: Facts = {
        "package": _package(),
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "system": {"platform": platform.platform(), "processor": _processor_name()},
        "torch": _torch(),
    }
    core, facts["package"]["error"] = _core(facts["torch"])
    facts["memory"] = _memory()
    facts["threads"] = _threads(facts["torch"])
    facts["environment"] = _environment(core)
    if core is not None:
        facts["package"]["build_id"] = core.build_id()
        facts["processor"] = core.processor()
        facts["code_generator"] = core.code_generator()
        facts["device"] = _device(core)
        facts["cache"] = _guarded(core.cache_directory)
        facts["packs"] = _guarded(core.packs)
    return facts


def _guarded(question: Any) -> Any:
    # A bad environment variable is reported among the variables.
    try:
        return question()
    except Exception as error:
        return {"error": str(error)}


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _package() -> Facts:
    # An editable installation has its Python files in one place and the binary layer in another.
    layer = importlib.util.find_spec("torch_neuronx._C")
    return {
        "version": _version("torch-neuronx"),
        "path": str(PACKAGE),
        "built_for_torch": _loader.BUILT_FOR,
        "binary_layer": layer.origin if layer is not None else None,
        "other_binary_layers": sorted(path.name for path in PACKAGE.glob("_C*.so")) if layer is None else [],
    }


def _torch() -> Facts:
    try:
        import torch
    except Exception as error:
        return {"version": _version("torch"), "error": f"{type(error).__name__}: {error}"}
    return {
        "version": str(torch.__version__),
        "path": str(Path(torch.__file__ or "").parent),
        "threads": torch.get_num_threads(),
        "backend": torch._C._get_privateuse1_backend_name(),
        "error": "",
    }


def _core(torch: Facts) -> tuple[Any, str]:
    """The binary layer, or why it cannot be loaded."""
    if torch["error"]:
        return None, "torch cannot be imported"
    try:
        _loader.check_version(torch["version"])
        return importlib.import_module("torch_neuronx._C"), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def _device(core: Any) -> Facts:
    return {
        "driver": _guarded(core.driver_name),
        "cores": core.device_count(),
        "unavailable": core.unavailable_reason(),
        "core_memory_bytes": _guarded(core.core_memory),
    }


def _environment(core: Any) -> Facts:
    if core is None:
        names = sorted(name for name in os.environ if name.startswith(_FAMILIES))
        return {"set": {name: os.environ[name] for name in names}, "bad": {}, "notices": {}}
    return {
        "set": {row["name"]: row["value"] for row in core.option_listing() if row["set"]},
        "bad": dict(core.option_problems()),
        "notices": dict(core.option_notices()),
    }


def _processor_name() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def _memory() -> Facts:
    sizes = {}
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                name, _, rest = line.partition(":")
                sizes[name] = int(rest.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return {"total_bytes": sizes.get("MemTotal"), "available_bytes": sizes.get("MemAvailable")}


def _threads(torch: Facts) -> Facts:
    try:
        usable = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        usable = os.cpu_count() or 1
    return {
        "processors": usable,
        "torch": torch.get("threads"),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS"),
    }


def _autoload(asked: str | None) -> Facts:
    """``asked``: the variable's value in the user's environment."""
    points = importlib.metadata.entry_points(group="torch.backends")
    return {
        "switched_off": asked == "0",
        "entry_point": any(point.value == "torch_neuronx:_autoload" for point in points),
        "other_backends": sorted(point.name for point in points if point.value != "torch_neuronx:_autoload"),
    }


def _self_test(facts: Facts) -> Facts:
    if facts["package"]["error"]:
        return {"state": "not run", "error": "the package cannot be loaded"}
    # Without the cache on disk: the code generator itself is tried.
    variables = {**os.environ, "TORCH_NEURONX_DISABLE_NEFF_CACHE": "1"}
    command = [sys.executable, "-m", "torch_neuronx.diagnostics.self_test"]
    try:
        process = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return {"state": "failed", "error": "it did not end within 120 s"}
    if process.returncode < 0:
        name = signal.Signals(-process.returncode).name
        return {"state": "failed", "error": f"it was ended by the signal {name}"}
    lines = process.stdout.strip().splitlines()
    if process.returncode != 0 or not lines:
        said = (process.stderr.strip().splitlines() or ["nothing was said"])[-1]
        return {"state": "failed", "error": said}
    result: Facts = json.loads(lines[-1])
    return result
