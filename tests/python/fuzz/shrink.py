"""Makes a failing program small: leaves out statements as long as it still fails in the same way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fuzz.generate import Program, run_on_cpu


def valid(program: Program) -> bool:
    try:
        run_on_cpu(program)
    except Exception:
        return False
    return True


def shrink(program: Program, fails: Callable[[Program], bool], budget: int = 400) -> Program:
    """`fails` must be true for the program. Larger pieces are tried first."""
    size = max(len(program.statements) // 2, 1)
    while size and budget > 0:
        start = len(program.statements) - size
        while start >= 0 and budget > 0:
            statements = program.statements[:start] + program.statements[start + size :]
            candidate = replace(program, statements=statements)
            budget -= 1
            if valid(candidate) and fails(candidate):
                program = candidate
            start -= size
        size //= 2
    return program
