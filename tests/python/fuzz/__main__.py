"""Command line of the fuzzer: `python -m fuzz --help`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace

from fuzz.compare import Verdict, check, digest, run
from fuzz.generate import Program, generate
from fuzz.shrink import shrink


def report(program: Program, verdict: Verdict, thorough: bool) -> None:
    """Prints the smallest program with the same kind of fault."""

    def fails(candidate: Program) -> bool:
        found = check(candidate, thorough)
        return found.fault is not None and found.fault.startswith("raised") == verdict.fault.startswith("raised")

    small = shrink(program, fails) if fails(program) else program
    final = check(small, thorough)
    shown = final if final.fault else replace(verdict, fault=f"(does not repeat) {verdict.fault}")
    print(f"FAILED seed {program.seed}{' (exact)' if program.exact else ''}: {shown.variant}: {shown.fault}")
    for statement in small.statements:
        print(f"    {statement}")
    sys.stdout.flush()


def print_digests(seeds: range) -> int:
    """One run of each program that needs no raw pointer, in the mode of the environment (TORCH_NEURONX_GUARDED)."""
    found = {}
    for seed in seeds:
        program = generate(seed)
        if not program.pointers:
            found[seed] = digest(run(program, None))
    print(json.dumps(found))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, help="one program: print it and check it in all variants")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument(
        "--step", type=int, default=1, help="seeds are first, first + step, …: shares work among processes"
    )
    parser.add_argument("--length", type=int, help="statements per program (default 15 to 45)")
    parser.add_argument("--thorough", action="store_true", help="all variants for every program instead of one in turn")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the tenth failing program")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop early after so long")
    parser.add_argument("--progress", action="store_true", help="print each seed before it runs (crashes)")
    parser.add_argument("--digests", action="store_true", help="run each program once and print digests of the results")
    arguments = parser.parse_args()
    if arguments.digests:
        return print_digests(range(arguments.first, arguments.first + arguments.count * arguments.step, arguments.step))
    if arguments.seed is not None:
        arguments.first, arguments.count, arguments.thorough = arguments.seed, 1, True
        print(generate(arguments.seed, arguments.length).text())
    start, failed, programs, statements, fused, fusible = time.monotonic(), [], 0, 0, 0, 0
    for seed in range(arguments.first, arguments.first + arguments.count * arguments.step, arguments.step):
        if time.monotonic() - start > arguments.seconds:
            break
        if arguments.progress:
            print(f"seed {seed}", flush=True)
        program = generate(seed, arguments.length)
        verdict = check(program, arguments.thorough)
        programs += 1
        statements += len(program.statements)
        fused += verdict.fused
        fusible += verdict.fusible
        if verdict.fault:
            failed.append(seed)
            report(program, verdict, arguments.thorough)
            if len(failed) == 10 and not arguments.keep_going:
                break
    summary = {
        "programs": programs,
        "statements": statements,
        "failed": failed,
        "fused": fused,
        "fusible": fusible,
        "fused_share": fused / max(fusible, 1),
        "seconds": round(time.monotonic() - start, 1),
    }
    print(json.dumps(summary))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
