"""Builds the wheel, and proves that it runs where nothing was built.

tools/wheel.py build [--output dist]     with pip and scikit-build-core, then named for the oldest system it runs on
tools/wheel.py check WHEEL               installs it beside torch into a new environment without compilers and uses it
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# What every Linux system that runs torch's own wheels has.
SYSTEM_LIBRARIES = {
    "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2",
    "libstdc++.so.6", "libgcc_s.so.1",
}  # fmt: skip
TORCH_LIBRARIES = {"libc10.so", "libtorch.so", "libtorch_cpu.so", "libtorch_python.so"}
# libstdc++ of the distributions whose C library has that version: the tag promises both.
NEWEST_GLIBCXX = {
    (2, 28): (3, 4, 25),
    (2, 31): (3, 4, 28),
    (2, 34): (3, 4, 29),
    (2, 35): (3, 4, 30),
    (2, 38): (3, 4, 32),
}

Version = tuple[int, ...]


def version_text(version: Version) -> str:
    return ".".join(map(str, version))


# --- what the shared libraries ask for -------------------------------------------------------------------------------
class Library:
    def __init__(self, path: Path):
        self.name = path.name
        dynamic = self._readelf("-d", path)
        self.needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic))
        self.run_path = [
            entry for text in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", dynamic) for entry in text.split(":")
        ]
        self.text_relocations = "TEXTREL" in dynamic
        sections = self._readelf("-S", path)
        self.stripped = ".symtab" not in sections and ".debug_" not in sections
        self.build_id = "NT_GNU_BUILD_ID" in self._readelf("-n", path)
        versions = self._readelf("-V", path)
        self.symbol_versions = {
            family: max(
                (tuple(map(int, text.split("."))) for text in re.findall(rf"\b{family}_([0-9.]+)", versions)),
                default=(),
            )
            for family in ("GLIBC", "GLIBCXX", "CXXABI", "GCC")
        }

    @staticmethod
    def _readelf(option: str, path: Path) -> str:
        return subprocess.run(["readelf", "-W", option, str(path)], capture_output=True, text=True, check=True).stdout


def libraries_of(folder: Path) -> list[Library]:
    return [Library(path) for path in sorted(folder.rglob("*.so*"))]


def platform_tag(libraries: list[Library]) -> str:
    glibc = max(library.symbol_versions["GLIBC"] for library in libraries)[:2]
    glibcxx = max(library.symbol_versions["GLIBCXX"] for library in libraries)
    fitting = [system for system, newest in NEWEST_GLIBCXX.items() if newest >= glibcxx]
    if not fitting:
        raise SystemExit(f"no known system has GLIBCXX_{version_text(glibcxx)}")
    major, minor = max(glibc, min(fitting))
    return f"manylinux_{major}_{minor}_x86_64"


# --- building --------------------------------------------------------------------------------------------------------
def build(output: Path) -> Path:
    environment = {**os.environ, "CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q", "--no-build-isolation"]
        subprocess.run([*command, "--no-deps", "-w", folder, str(ROOT)], check=True, env=environment)
        (made,) = Path(folder).glob("*.whl")
        content = Path(folder) / "content"
        with zipfile.ZipFile(made) as archive:
            archive.extractall(content)
            modes = {info.filename: info.external_attr for info in archive.infolist()}
        tag = platform_tag(libraries_of(content))
        output.mkdir(parents=True, exist_ok=True)
        target = output / made.name.replace("linux_x86_64", tag)
        retag(content, made.name.split("-")[-1].removesuffix(".whl"), tag)
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            for path in sorted(content.rglob("*")):
                if path.is_file():
                    name = path.relative_to(content).as_posix()
                    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
                    info.external_attr = modes.get(name, 0o644 << 16)
                    info.compress_type = zipfile.ZIP_DEFLATED
                    archive.writestr(info, path.read_bytes())
    print(f"{target} ({target.stat().st_size / 1e6:.1f} MB)")
    return target


def retag(content: Path, old: str, new: str) -> None:
    (information,) = content.glob("*.dist-info")
    wheel = information / "WHEEL"
    wheel.write_text(wheel.read_text().replace(f"-{old}\n", f"-{new}\n"))
    rows = []
    for path in sorted(content.rglob("*")):
        if not path.is_file() or path.name == "RECORD":
            continue
        digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
        rows.append(f"{path.relative_to(content).as_posix()},sha256={digest},{path.stat().st_size}")
    record = information / "RECORD"
    rows.append(f"{record.relative_to(content).as_posix()},,")
    record.write_text("\n".join(rows) + "\n")


# --- checking --------------------------------------------------------------------------------------------------------
failures: list[str] = []


def expect(condition: bool, what: str) -> None:
    print(f"  {'ok  ' if condition else 'FAIL'}  {what}", flush=True)
    if not condition:
        failures.append(what)


def check_content(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
        names = archive.namelist()
    expect("torch_neuronx/lib/kernels.pack" in names, "the prebuilt kernels are inside")
    sources = [name for name in names if name.endswith((".cpp", ".o", ".a")) or "CMakeLists" in name]
    expect(not sources, f"no sources are inside {sources[:3]}")
    expect(sum(name.endswith(".so") for name in names) == 3, "three libraries are inside")
    libraries = libraries_of(folder)
    own = {library.name for library in libraries}
    for library in libraries:
        foreign = library.needed - SYSTEM_LIBRARIES - TORCH_LIBRARIES - own
        expect(not foreign, f"{library.name} needs only the C and C++ runtimes and torch {sorted(foreign)}")
        outside = [entry for entry in library.run_path if not entry.startswith("$ORIGIN")]
        expect(not outside, f"{library.name} looks for libraries beside itself only {outside}")
        expect(library.stripped and not library.text_relocations, f"{library.name} is stripped")
        expect(library.build_id, f"{library.name} has a build id")
        versions = ", ".join(f"{name}_{version_text(v)}" for name, v in library.symbol_versions.items() if v)
        print(f"        {library.name}: {versions}")
    tag = platform_tag(libraries)
    expect(tag in wheel.name, f"the name says the oldest system it runs on: {tag}")
    # The same words as in tools/lint.py, on what was compiled.
    for path in folder.rglob("*.so"):
        expect(
            str(ROOT).encode() not in path.read_bytes(), f"{path.name} names no folder of the machine it was built on"
        )


def closure(name: str) -> list[importlib.metadata.Distribution]:
    """The distribution and everything it requires, as installed here."""
    found: dict[str, importlib.metadata.Distribution] = {}
    pending = [name]
    while pending:
        key = re.sub(r"[-_.]+", "-", pending.pop()).lower()
        if key in found:
            continue
        try:
            distribution = importlib.metadata.distribution(key)
        except importlib.metadata.PackageNotFoundError:
            continue  # of another platform or Python
        found[key] = distribution
        for requirement in distribution.requires or []:
            if "extra ==" not in requirement:
                pending.append(re.split(r"[\s;<>=!~\[(]", requirement, maxsplit=1)[0])
    return list(found.values())


def lend(distribution: importlib.metadata.Distribution, target: Path) -> None:
    """Puts the installed files into another environment: links where the file system can, copies elsewhere."""
    for file in distribution.files or []:
        source = Path(str(distribution.locate_file(file)))
        if ".." in file.parts or file.suffix == ".pyc" or not source.is_file():
            continue
        place = target / str(file)
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.exists():
            continue
        try:
            os.link(source, place)
        except OSError:
            shutil.copy2(source, place)


def new_environment(folder: Path) -> tuple[Path, Path]:
    """(interpreter, its site-packages) of an environment that has torch, numpy and pip."""
    base = sys._base_executable if hasattr(sys, "_base_executable") else sys.executable
    subprocess.run([base, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    site = Path(
        subprocess.run(
            [str(python), "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    )
    # Python 3.11 and older bring a setuptools that is older than the one torch asks for.
    bundled = [str(python), "-m", "pip", "--disable-pip-version-check", "uninstall", "-q", "-y", "setuptools"]
    subprocess.run(bundled, check=True, capture_output=True)
    for name in ("torch", "numpy"):
        for distribution in closure(name):
            lend(distribution, site)
    return python, site


class Machine:
    """A user's machine: an interpreter, a home, and nothing else on the path."""

    def __init__(self, python: Path, folder: Path):
        self.python = python
        self.home = folder / "home"
        self.bin = folder / "bin"
        for path in (self.home, self.bin):
            path.mkdir()

    def run(self, *arguments: str, timeout: float = 600, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.bin), "HOME": str(self.home), **variables}
        return subprocess.run(
            [str(self.python), *arguments],
            env=environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=timeout,
        )


MAPPED = """
import torch
before = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
x = torch.ones(2, device="neuron") + 1
print(x.tolist())
with __import__("torch_neuronx").testing.synchronous_compiles():
    for _ in range(3): y = (torch.ones(999, device="neuron") * 3).tanh().sum().item()
for line in open("/proc/self/maps"):
    if ".so" in line and "/torch_neuronx/" in line and line.split()[-1] not in before: print("late", line.split()[-1])
    if ".so" in line and "/torch_neuronx/" not in line and line.split()[-1] not in before: print("foreign", line.split()[-1])
"""


def check_use(machine: Machine) -> None:
    def show(result: subprocess.CompletedProcess[str]) -> str:
        return "" if result.returncode == 0 else f"\n{result.stdout}\n{result.stderr}"

    result = machine.run("-c", MAPPED)
    expect(
        result.returncode == 0 and result.stdout.startswith("[2.0, 2.0]\n"),
        f"torch.ones(2) + 1 on neuron{show(result)}",
    )
    foreign = re.findall(r"^foreign (.*)$", result.stdout, re.M)
    expect(not foreign, f"using the device loads no library of the system {foreign}")
    expect("libneuron_codegen" in result.stdout, "the code generator was loaded and used")
    for target in ("avx2", "native"):
        result = machine.run("-m", "torch_neuronx", "doctor", TORCH_NEURONX_HOST_TARGET=target)
        expect(result.returncode == 0, f"doctor finds nothing wrong with {target}{show(result)}")
    expect("(good)" in result.stdout, "the prebuilt kernels are used")
    print("\n".join("        " + line for line in result.stdout.splitlines()))
    demo = str(ROOT / "examples" / "train_gpt.py")
    result = machine.run(
        demo, "--small", "--steps", "20", "--json", "demo.json", "--checkpoint", "demo.pt", timeout=1200
    )
    expect(result.returncode == 0, f"the demo trains 20 steps{show(result)}")
    result = machine.run("-m", "torch_neuronx", "collect_env")
    expect(result.returncode == 0 and "PyTorch version" in result.stdout, f"collect_env{show(result)}")


def check_other_torch(machine: Machine, site: Path) -> None:
    """The same environment, with torch calling itself another version."""
    version = site / "torch" / "version.py"
    text = version.read_text()
    version.unlink()  # it may be a link to the installed file
    version.write_text(re.sub(r"__version__ = '[^']+'", "__version__ = '2.14.0+cpu'", text))
    result = machine.run("-c", "import torch")
    sentences = [line for line in result.stderr.splitlines() if line.startswith("torch_neuronx could not be loaded")]
    expect(
        result.returncode != 0 and len(sentences) == 1, f"beside another torch it refuses in one sentence {sentences}"
    )
    expect(
        bool(sentences) and "torch 2.13" in sentences[0] and "torch 2.14.0+cpu" in sentences[0],
        "which names both versions",
    )
    result = machine.run("-m", "torch_neuronx", "doctor")
    expect(result.returncode == 1 and "torch 2.14.0+cpu is installed" in result.stdout, "doctor says so too")


def check(wheel: Path) -> int:
    with tempfile.TemporaryDirectory(prefix="wheel-check-") as folder:
        base = Path(folder)
        moved = base / wheel.name
        shutil.copy2(wheel, moved)
        check_content(moved, base / "content")
        shutil.rmtree(base / "content")
        python, site = new_environment(base / "venv")
        command = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-index"]
        installed = subprocess.run([*command, str(moved)], capture_output=True, text=True)
        expect(installed.returncode == 0, f"pip installs it beside torch {installed.stderr}")
        if installed.returncode == 0:
            machine = Machine(python, base)
            check_use(machine)
            check_other_torch(machine, site)
    print(f"{len(failures)} failures" if failures else "the wheel is good")
    return 1 if failures else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build")
    building.add_argument("--output", type=Path, default=ROOT / "dist")
    checking = commands.add_parser("check")
    checking.add_argument("wheel", type=Path, nargs="?", help="the newest of dist/ when left out")
    arguments = parser.parse_args()
    if arguments.command == "build":
        build(arguments.output)
        return 0
    wheels = sorted((ROOT / "dist").glob("torch_neuronx-*.whl"), key=lambda path: path.stat().st_mtime)
    if arguments.wheel is None and not wheels:
        parser.error("there is no wheel in dist/: run `make wheel`")
    return check(arguments.wheel or wheels[-1])


if __name__ == "__main__":
    sys.exit(main())
