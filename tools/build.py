"""Configures when needed, builds with Ninja, and prints the five slowest files of the build."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def configured_for(build: Path) -> str | None:
    """The interpreter a build tree was configured with."""
    cache = build / "CMakeCache.txt"
    if not (build / "build.ninja").exists() or not cache.exists():
        return None
    for line in cache.read_text(errors="replace").splitlines():
        if line.startswith("Python_EXECUTABLE:"):
            return line.partition("=")[2]
    return None


def log_entries(build: Path) -> dict[str, float]:
    """Output -> seconds, from Ninja's log (the last entry of an output counts)."""
    seconds: dict[str, float] = {}
    log = build / ".ninja_log"
    if log.exists():
        for line in log.read_text(errors="replace").splitlines():
            fields = line.split("\t")
            if len(fields) >= 5:
                seconds[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    return seconds


def print_slowest(build: Path, since: float) -> None:
    def built_now(output: str) -> bool:
        path = build / output
        return path.exists() and path.stat().st_mtime >= since

    entries = log_entries(build)
    fresh = {output: seconds for output, seconds in entries.items() if built_now(output)}
    print("slowest files of this build:" if fresh else "up to date; slowest files of this tree:")
    for output, seconds in sorted((fresh or entries).items(), key=lambda item: -item[1])[:5]:
        shown = output.replace("CMakeFiles/", "").replace(".dir/", "/")
        print(f"  {seconds:7.1f} s  {os.path.relpath(shown, ROOT) if os.path.isabs(shown) else shown}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="dev")
    parser.add_argument("--jobs", default=str(os.cpu_count()))
    arguments = parser.parse_args()
    build = ROOT / "build" / arguments.preset
    presets = json.loads((ROOT / "CMakePresets.json").read_text())
    if arguments.preset not in [preset["name"] for preset in presets["buildPresets"]]:
        parser.error(f"unknown preset {arguments.preset!r}")
    start = time.time()
    if configured_for(build) != sys.executable:
        command = ["cmake", "--preset", arguments.preset, f"-DPython_EXECUTABLE={sys.executable}"]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    # By its preset: it may name the targets that are wanted.
    command = ["cmake", "--build", "--preset", arguments.preset, "--parallel", arguments.jobs]
    status = subprocess.run(command, cwd=ROOT).returncode
    print_slowest(build, start)
    print(f"build took {time.time() - start:.1f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
