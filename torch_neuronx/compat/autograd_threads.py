"""The end of the interpreter right after ``backward()``."""

from __future__ import annotations

import atexit

from torch_neuronx import _C

FAULT = (
    "torch 2.13 backward() (torch/autograd/graph.py, _engine_run_backward) hands a Python object to the threads of "
    "autograd. The thread of a device may still hold it when backward() has returned, and must take the interpreter lock "
    "to let go of it. Once the interpreter is ending CPython (3.11 to 3.13) ends a thread that asks for the lock, in the "
    "middle of a destructor: the process aborts with 'terminate called without an active exception'"
)
REMOVE_WHEN = "torch releases what a backward pass holds before backward() returns"


def apply() -> None:
    atexit.register(_C.wait_for_autograd_threads)
