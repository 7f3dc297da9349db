"""Style and layer rules of the tree: `make lint`.

Checks include rules between the layers, banned headers, file length, forbidden strings, clang-format, ruff and mypy.
Prints `file:line: message` for every finding and exits 1 when there is one.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# layer under neuron/ -> layers it may include directly; what those may include follows.
LAYERS: dict[str, set[str]] = {
    "base": set(),
    "ir": {"base"},
    "interpret": {"ir"},
    "lowering": {"ir"},
    "passes": {"interpret"},
    "runtime": {"base"},
    "kernels": {"base", "runtime"},
    "codegen": {"passes", "kernels"},
    "cache": {"base"},
    "eager": {"interpret", "lowering", "codegen", "cache"},
    "collectives": {"runtime"},
    "nki": {"runtime"},
    "timing": {"ir", "nki"},
}
UMBRELLA_HEADERS = ("torch/extension.h", "torch/torch.h", "torch/all.h", "ATen/ATen.h", "ATen/Functions.h")
TORCH_HEADER = re.compile(r"^(torch|ATen|c10|caffe2|torch_neuronx)/")
REGISTRATION_HEADER = "torch/library.h"  # 13 s of compile time each
REGISTRATION_FILES = 3
LONGEST_FILE = 600
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
CXX_SUFFIXES = {".cpp", ".h", ".def", ".inc"}
TEXT_SUFFIXES = CXX_SUFFIXES | {
    ".py",
    ".md",
    ".toml",
    ".txt",
    ".json",
    ".yaml",
    ".yml",
    ".sh",
    ".cmake",
    ".c",
    ".ll",
    ".mlir",
}

# Paths of one machine and markers of unfinished work. Spelled so that this file does not match itself.
FORBIDDEN = [
    (re.compile(r"(?<![\w/.])/" + r"(work|root)/\w"), "path of one machine"),
    (re.compile(r"/tmp/" + r"(venv|bash_jobs)"), "path of one machine"),
    (re.compile(r"\b(" + "TO" + "DO|FIX" + "ME|XX" + "X)\\b"), "marker of unfinished work"),
    (re.compile(r"-march" + r"=native"), "the build must not depend on the machine"),
    (re.compile(r"\b(" + "pypi|debian|pytorch)" + r"\.org\b"), "registry host"),
]
USING_NAMESPACE = re.compile(r"^\s*using namespace\b")


def reachable(layer: str) -> set[str]:
    seen: set[str] = set()
    open_layers = [layer]
    while open_layers:
        for below in LAYERS[open_layers.pop()] - seen:
            seen.add(below)
            open_layers.append(below)
    return seen


def tracked_files() -> list[Path]:
    """Files git knows or would add; generated files live in the build tree."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [ROOT / line for line in listing.splitlines() if (ROOT / line).is_file()]


def check_includes(path: Path, lines: list[str]) -> Iterator[str]:
    relative = path.relative_to(ROOT)
    layer = relative.parts[1] if relative.parts[0] == "neuron" and len(relative.parts) > 2 else None
    if layer is not None and layer not in LAYERS:
        yield f"{relative}:1: unknown layer neuron/{layer}; add it to LAYERS here and to docs/architecture.md"
        layer = None
    allowed = reachable(layer) | {layer} if layer else set()
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            if path.suffix == ".h" and USING_NAMESPACE.match(line):
                yield f"{relative}:{number}: using namespace in a header"
            continue
        header = match[1]
        if header in UMBRELLA_HEADERS:
            yield f"{relative}:{number}: umbrella header {header}; include the operators' own headers"
        if relative.parts[0] == "neuron" and TORCH_HEADER.match(header):
            yield f"{relative}:{number}: {header}: the core has no torch header"
        target = re.match(r"neuron/(\w+)/", header)
        if layer and target and target[1] not in allowed:
            names = ", ".join(sorted(allowed))
            yield f"{relative}:{number}: neuron/{layer} may not include neuron/{target[1]} (allowed: {names})"


def check_text(path: Path, lines: list[str]) -> Iterator[str]:
    relative = path.relative_to(ROOT)
    if path.suffix in CXX_SUFFIXES | {".py"} and len(lines) > LONGEST_FILE:
        yield f"{relative}:1: {len(lines)} lines, allowed {LONGEST_FILE}; split it by concept"
    for number, line in enumerate(lines, 1):
        for pattern, why in FORBIDDEN:
            if pattern.search(line):
                yield f"{relative}:{number}: {why}: {line.strip()[:100]}"


def check_files(files: Iterable[Path]) -> list[str]:
    findings: list[str] = []
    registration: list[str] = []
    for path in files:
        if path.suffix not in TEXT_SUFFIXES and path.name not in ("Makefile", "run"):
            continue
        lines = path.read_text(errors="replace").splitlines()
        findings += check_text(path, lines)
        if path.suffix in CXX_SUFFIXES:
            findings += check_includes(path, lines)
            if any((match := INCLUDE.match(line)) and match[1] == REGISTRATION_HEADER for line in lines):
                registration.append(str(path.relative_to(ROOT)))
    if len(registration) > REGISTRATION_FILES:
        findings.append(
            f"{registration[-1]}:1: {REGISTRATION_HEADER} in {len(registration)} files, "
            f"allowed {REGISTRATION_FILES}: {', '.join(registration)}"
        )
    return findings


def run_tool(name: str, command: list[str], shown: str | None = None) -> list[str]:
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if result.returncode == 0:
        return []
    output = [line for line in (result.stdout + result.stderr).splitlines() if shown is None or re.search(shown, line)]
    return [*output[:40], f"{name}: status {result.returncode}, {len(output)} lines of output"]


def clang_format() -> str | None:
    for candidate in ("clang-format-19", "clang-format"):
        found = shutil.which(candidate)
        if found and " 19." in subprocess.run([found, "--version"], capture_output=True, text=True).stdout:
            return found
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fix", action="store_true", help="format the tree instead of checking it")
    arguments = parser.parse_args()
    files = tracked_files()
    cxx = [str(path) for path in files if path.suffix in {".cpp", ".h"}]
    formatter = clang_format()
    if formatter is None:
        print("clang-format 19 is missing: tools/bootstrap.sh installs it")
        return 1
    ruff = [sys.executable, "-m", "ruff"]
    if arguments.fix:
        subprocess.run([formatter, "-i", *cxx], cwd=ROOT, check=True)
        subprocess.run([*ruff, "format", "."], cwd=ROOT, check=True)
        subprocess.run([*ruff, "check", "--fix", "."], cwd=ROOT, check=True)
        return 0
    checks = {
        "layers, headers, length, strings": check_files(files),
        "clang-format": run_tool("clang-format", [formatter, "--dry-run", "-Werror", *cxx], shown=r": error:"),
        "ruff check": run_tool("ruff", [*ruff, "check", "--output-format", "concise", "."]),
        "ruff format": run_tool("ruff", [*ruff, "format", "--check", "."]),
        "mypy": run_tool("mypy", [sys.executable, "-m", "mypy"]),
    }
    for name, findings in checks.items():
        print(f"{'ok    ' if not findings else 'FAILED'} {name}")
        for finding in findings:
            print(f"  {finding}")
    return 1 if any(checks.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
