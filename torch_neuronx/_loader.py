"""Registers the backend with torch, once, in the order torch needs: library, name, device module, generated methods."""

from __future__ import annotations

import atexit
import sys
from pathlib import Path
from types import ModuleType

DEVICE_TYPE = "neuron"
BUILT_FOR = "2.13"

_loaded = False


def load() -> None:
    """Idempotent. Importing torch runs our entry point, which comes back here: the inner call does the work."""
    global _loaded
    if _loaded:
        return
    import torch

    if _loaded:
        return
    _loaded = True
    try:
        _register(torch)
    except BaseException as error:
        _loaded = False
        # torch wraps a failing autoload in one general sentence; say the cause where logs show it.
        print(f"torch_neuronx could not be loaded: {error}", file=sys.stderr)
        raise


def check_version(torch_version: str) -> None:
    """The torch layer is one binary per torch minor version; beside another one it could not even be loaded."""
    if ".".join(torch_version.split("+")[0].split(".")[:2]) != BUILT_FOR:
        raise ImportError(
            f"torch_neuronx was built for torch {BUILT_FOR} and cannot run with torch {torch_version}: "
            f'install "torch=={BUILT_FOR}.*" or a torch_neuronx built for torch {torch_version}'
        )


def check_slot(registered_name: str) -> None:
    """There is one PrivateUse1 slot in a process."""
    if registered_name not in ("privateuseone", DEVICE_TYPE):
        raise ImportError(
            f"another package has already registered torch's PrivateUse1 backend as {registered_name!r}; a process can "
            "hold one such backend: set TORCH_DEVICE_BACKEND_AUTOLOAD=0 and import the one that is wanted"
        )


def _register(torch: ModuleType) -> None:
    check_version(torch.__version__)
    check_slot(torch._C._get_privateuse1_backend_name())
    from torch_neuronx import _C

    torch.utils.rename_privateuse1_backend(DEVICE_TYPE)
    _C.register_graph()  # looked up by the new name
    from torch_neuronx import neuron

    torch._register_device_module(DEVICE_TYPE, neuron)
    torch.utils.generate_methods_for_privateuse1_backend(
        for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
    )
    torch.set_autocast_dtype(DEVICE_TYPE, torch.bfloat16)
    # What activation checkpointing assumes when no argument says so.
    from torch.utils.checkpoint import DefaultDeviceType

    DefaultDeviceType.set_device_type(DEVICE_TYPE)

    from torch_neuronx import _knobs, compat

    _knobs.register()
    atexit.register(_C.shutdown)  # after what a block of compat does at the end
    compat.apply()
    _C.trace_source_lines([str(Path(path).parent) for path in (torch.__file__, __file__) if path is not None])
