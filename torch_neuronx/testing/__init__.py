"""Switches for tests: they make runs repeatable, or take one part of the machinery out of the way."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from torch_neuronx import _C

__all__ = ["eager_mode", "interpreted", "no_fallback", "synchronous_compiles", "wait_for_compiles"]


def wait_for_compiles() -> None:
    """Returns when no compile is under way in the background."""
    _C.wait_for_compiles()


@contextlib.contextmanager
def eager_mode(name: str) -> Iterator[None]:
    previous = _C.eager_mode()
    _C.set_eager_mode(name)
    try:
        yield
    finally:
        _C.set_eager_mode(previous)


@contextlib.contextmanager
def no_fallback() -> Iterator[None]:
    """An operator without a kernel raises instead of running on the CPU."""
    previous = _C.strict_mode()
    _C.set_strict_mode(True)
    try:
        yield
    finally:
        _C.set_strict_mode(previous)


@contextlib.contextmanager
def synchronous_compiles() -> Iterator[None]:
    """Fused regions are compiled where they are met, so that the second meeting really runs them."""
    _C.set_synchronous_compile(True)
    try:
        yield
    finally:
        _C.set_synchronous_compile(False)


@contextlib.contextmanager
def interpreted() -> Iterator[None]:
    """Regions are evaluated by the IR interpreter instead of generated code."""
    _C.set_interpret(True)
    try:
        yield
    finally:
        _C.set_interpret(False)
