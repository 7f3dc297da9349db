"""Runs the C++ tests with ctest and the Python tests with pytest, and closes with the line `N passed, N failed`.

Skipped tests are named in the output and are not counted. A run that executes no test at all is a failure.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def count(report: Path) -> tuple[int, int, int]:
    """(passed, failed, skipped) of a JUnit report; (0, 0, 0) when there is none."""
    if not report.exists():
        return 0, 0, 0
    passed = failed = skipped = 0
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def run(name: str, command: list[str], report: Path) -> tuple[int, int]:
    report.unlink(missing_ok=True)
    print(f"--- {name}: {' '.join(command)}", flush=True)
    status = subprocess.run(command, cwd=ROOT).returncode
    passed, failed, skipped = count(report)
    if status != 0 and failed == 0:  # a crash of the runner, a collection error, or no test collected (pytest's 5)
        print(f"{name} ended with status {status}", flush=True)
        failed = 1
    if passed + failed == 0:
        print(f"{name} executed no test", flush=True)
        failed = 1
    print(f"--- {name}: {passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return passed, failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, type=Path, action="append", help="build tree; repeat for several")
    parser.add_argument("--core", action="store_true", help="the C++ tests only")
    parser.add_argument("--full", action="store_true", help="also the tests marked slow")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest")
    arguments = parser.parse_args()
    builds = [(ROOT / build).resolve() for build in arguments.build]
    # Random programs compile tens of thousands of kernels that nobody runs again: not in the user's cache.
    os.environ.setdefault("TORCH_NEURONX_CACHE_DIR", str(builds[0] / "kernel_cache"))
    jobs = str(os.cpu_count())
    totals = []
    for build in builds:
        report = build / "ctest.xml"
        command = ["ctest", "--test-dir", str(build), "--output-on-failure", "-j", jobs, "--output-junit", str(report)]
        totals.append(run(f"ctest {build.name}", command, report))
    if not arguments.core:
        report = builds[0] / "pytest.xml"
        command = [sys.executable, "-m", "pytest", f"--junitxml={report}", "--durations=10", *arguments.pytest]
        if arguments.full:
            command += ["-m", "slow or not slow"]
        totals.append(run("pytest", command, report))
    passed, failed = (sum(column) for column in zip(*totals, strict=True))
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
