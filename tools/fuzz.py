"""Runs the fuzz targets of `make fuzz`, one after the other: `make fuzz ARGS="--minutes 10 ir_text"`.

Each run goes on from the corpus of earlier ones (build/fuzz/corpus/<target>); it begins with the programs of tests/ and
the inputs that once were findings. A finding is kept in build/fuzz/findings and the exit code is 1: after it is mended it
belongs into tests/fuzz/regressions/<target>, where every test run repeats it.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "fuzz"
# Target -> what of the environment makes another one of it.
TARGETS: dict[str, tuple[str, dict[str, str]]] = {
    "ir_text": ("ir_text", {}),
    "cache": ("cache", {}),
    "commands": ("commands", {}),
    "commands_null": ("commands", {"TORCH_NEURONX_DEVICE": "null"}),
}
OPTIONS = {
    "ir_text": ["-max_len=6000", "-timeout=20"],
    "cache": ["-max_len=2000", "-timeout=20"],
    "commands": ["-max_len=4000", "-timeout=60"],
}
# A process is replaced now and then: caches of kernels grow with every new program, as they do in a long-lived process.
SLICE_SECONDS = 300


def seeds(binary: str) -> list[Path]:
    folders = [ROOT / "tests" / "fuzz" / "regressions" / binary]
    if binary == "ir_text":
        folders.append(ROOT / "tests" / "programs")
    return [folder for folder in folders if folder.is_dir()]


def write_dictionary(path: Path) -> None:
    """The words of the programs."""
    words: set[str] = set()
    for program in (ROOT / "tests" / "programs").glob("*.mlir"):
        words.update(re.findall(r"[a-z_]+(?:\.[a-z_]+)?|->|dense<|tensor<", program.read_text()))
    path.write_text("".join(f'"{word}"\n' for word in sorted(words) if 2 < len(word) < 40))


def write_random_inputs(folder: Path) -> None:
    """Programs of the other targets are choices: any bytes are one, and long ones reach further."""
    generator = random.Random(1)
    for i in range(60):
        (folder / f"random-{i}").write_bytes(generator.randbytes(generator.choice([60, 300, 1000, 2500])))


def run(name: str, seconds: float) -> tuple[int, int]:
    """(inputs tried, status)."""
    binary, variables = TARGETS[name]
    corpus, findings = BUILD / "corpus" / name, BUILD / "findings" / name
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    options = [*OPTIONS[binary], "-rss_limit_mb=6000", "-print_final_stats=1", f"-artifact_prefix={findings}/"]
    if binary == "ir_text":
        write_dictionary(BUILD / "ir_text.dict")
        options.append(f"-dict={BUILD / 'ir_text.dict'}")
    elif not any(corpus.iterdir()):
        write_random_inputs(corpus)
    environment = {
        **os.environ,
        **variables,
        "TORCH_NEURONX_DISABLE_NEFF_CACHE": "1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    }
    tried, end = 0, time.monotonic() + seconds
    log = BUILD / f"{name}.log"
    while (left := end - time.monotonic()) > 1:
        command = [str(BUILD / "fuzz" / f"{binary}_fuzz"), *options, f"-max_total_time={int(min(left, SLICE_SECONDS))}"]
        with log.open("w") as file:
            status = subprocess.run(
                [*command, str(corpus), *map(str, seeds(binary))], env=environment, stdout=file, stderr=file
            ).returncode
        text = log.read_text(errors="replace")
        executed = re.search(r"stat::number_of_executed_units: +(\d+)", text)
        tried += int(executed[1]) if executed else 0
        if status != 0:
            print("\n".join(text.splitlines()[-60:]), file=sys.stderr)
            return tried, status
    return tried, 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5, help="for each target")
    parser.add_argument("targets", nargs="*", default=list(TARGETS), choices=[*TARGETS, []], metavar="target")
    arguments = parser.parse_args()
    failed = []
    for name in arguments.targets or list(TARGETS):
        start = time.monotonic()
        tried, status = run(name, arguments.minutes * 60)
        corpus = sum(1 for _ in (BUILD / "corpus" / name).iterdir())
        result = "no finding" if status == 0 else f"A FINDING (status {status}, see {BUILD / 'findings' / name})"
        print(f"{name}: {tried} inputs in {time.monotonic() - start:.0f} s, corpus {corpus}, {result}", flush=True)
        if status != 0:
            failed.append(name)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
