"""The only place where torch is changed or got round: faults of torch itself that every renamed PrivateUse1 backend meets
and that offer no hook. Each block is a module of this folder with ``FAULT``, ``REMOVE_WHEN`` and ``apply()``; a test lists
them all."""

from __future__ import annotations

from torch_neuronx.compat import autograd_threads, dlpack_device

BLOCKS = (autograd_threads, dlpack_device)


def apply() -> None:
    for block in BLOCKS:
        block.apply()
