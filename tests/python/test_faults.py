"""Killed processes, shared caches, full disks, forbidden directories, no memory: results stay right, errors stay errors."""

from __future__ import annotations

import ctypes
import json
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

# Compiles about forty kernels of different structure, waits until its input is closed, and prints a sum over the results'
# bits: who is to be killed cannot be done before, however slow the machine.
COMPILES = """
import hashlib, sys
import torch
from torch_neuronx import testing

print("ready", flush=True)
digest = hashlib.sha256()
x, y = torch.linspace(-3, 3, 777).neuron(), torch.linspace(0.5, 2, 777).neuron()
with testing.synchronous_compiles():
    for width in range(1, 6):
        for kind in range(8):
            for _ in range(2):
                z = x
                for i in range(width):
                    z = [z + y, z * y, z - 0.5 * y, torch.relu(z) + y][(kind + i) % 4]
                z = z.clamp(-4, 4) if kind < 4 else z.abs() + kind
                digest.update(z.cpu().numpy().tobytes())
sys.stdin.read()
report = torch.neuron.eager_report()
print("result", digest.hexdigest(), report["compiled_kernels"], report["disk_hits"])
"""


def environment(cache: Path | None, **variables: str) -> dict[str, str]:
    result = {**os.environ, **variables}
    if cache is not None:
        result["TORCH_NEURONX_CACHE_DIR"] = str(cache)
    return result


def start(code: str, variables: dict[str, str], **options) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.Popen(
        command,
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def finish(process: subprocess.Popen[str], timeout: float = 180) -> tuple[str, str]:
    output, errors = process.communicate(timeout=timeout)
    assert process.returncode == 0, f"exit code {process.returncode}\n{output}\n{errors}"
    return output, errors


def compile_all(cache: Path | None, **variables: str) -> tuple[str, int, int]:
    """(digest, kernels compiled, kernels found on disk)."""
    output, _ = finish(start(COMPILES, environment(cache, **variables)))
    _, digest, compiled, found = output.splitlines()[-1].split()
    return digest, int(compiled), int(found)


@pytest.fixture(scope="module")
def expected() -> str:
    digest, compiled, _ = compile_all(None, TORCH_NEURONX_DISABLE_NEFF_CACHE="1")
    assert compiled >= 30
    return digest


def damaged_entries(cache: Path) -> int:
    code = "from torch_neuronx import _C; import json; print(json.dumps(_C.cache_directory()))"
    output, _ = finish(start(f"import torch\n{code}", environment(cache)))
    report = json.loads(output)
    assert report["entries"] > 0
    return report["damaged"]


@pytest.mark.parametrize("rounds", [5, pytest.param(60, marks=pytest.mark.slow)])
def test_killed_while_compiling_and_caching(tmp_path, expected, rounds):
    generator = random.Random(rounds)
    for _ in range(rounds):
        process = start(COMPILES, environment(tmp_path))
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(generator.uniform(0, 0.5))
        process.send_signal(signal.SIGKILL)
        output, _ = process.communicate()
        assert process.returncode == -signal.SIGKILL and "result" not in output
    assert compile_all(tmp_path)[0] == expected
    assert damaged_entries(tmp_path) == 0
    digest, compiled, found = compile_all(tmp_path)
    assert digest == expected
    assert compiled == 0 and found >= 30


@pytest.mark.parametrize("processes", [2, pytest.param(6, marks=pytest.mark.slow)])
def test_processes_share_a_cache(tmp_path, expected, processes):
    # Small enough that they delete each other's entries.
    variables = environment(tmp_path, TORCH_NEURONX_CACHE_SIZE="60KiB")
    running = [start(COMPILES, variables) for _ in range(processes)]
    for process in running:
        output, errors = finish(process)
        assert output.splitlines()[-1].split()[1] == expected
        assert "damaged" not in errors
    assert damaged_entries(tmp_path) == 0
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) <= 70 << 10


def test_no_file_can_be_written(tmp_path, expected):
    """The limit on file sizes acts as a disk that is full from the beginning."""

    def forbid() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    process = start(COMPILES, environment(tmp_path), preexec_fn=forbid)
    output, errors = finish(process)
    assert output.splitlines()[-1].split()[1] == expected
    assert errors.count("Compiled programs are kept in memory only") == 1
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.slow
def test_the_disk_becomes_full(tmp_path, expected):
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("no file system may be mounted here")
    try:
        output, errors = finish(start(COMPILES, environment(tmp_path / "cache")))
        assert output.splitlines()[-1].split()[1] == expected
        assert errors.count("No space left on device") == 1
        assert damaged_entries(tmp_path / "cache") == 0
        digest, compiled, found = compile_all(tmp_path / "cache")
        assert digest == expected
        assert compiled > 0 and found > 0
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def obey_permissions() -> None:
    """In a new process: they bind the superuser too."""
    drop_from_bounding_set, override, read_search = 24, 1, 2
    for capability in (override, read_search):
        ctypes.CDLL(None).prctl(drop_from_bounding_set, capability, 0, 0, 0)


def test_a_cache_that_may_only_be_read(tmp_path, expected):
    cache = tmp_path / "cache"
    compile_all(cache)
    try:
        some = sorted(path for path in cache.rglob("*") if path.is_file())[::2]
        for path in some:
            path.unlink()
        cache.chmod(0o755)
        for path in cache.rglob("*"):
            path.chmod(0o555 if path.is_dir() else 0o444)
        cache.chmod(0o555)
        output, errors = finish(start(COMPILES, environment(cache), preexec_fn=obey_permissions))
        _, digest, compiled, found = output.splitlines()[-1].split()
        assert digest == expected
        assert int(compiled) > 0 and int(found) > 0
        assert errors.count("Permission denied") == 1
    finally:
        for path in [cache, *cache.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)


def test_damaged_entries_are_named_and_replaced(tmp_path, expected):
    compile_all(tmp_path)
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    for i, path in enumerate(files):
        content = bytearray(path.read_bytes())
        if i % 2 == 0:
            content[len(content) // 2] ^= 1
            path.write_bytes(bytes(content))
        else:
            path.write_bytes(bytes(content[: len(content) // 3]))
    assert damaged_entries(tmp_path) == len(files)
    output, errors = finish(start(COMPILES, environment(tmp_path)))
    assert output.splitlines()[-1].split()[1] == expected
    assert errors.count("is damaged and is not used") + errors.count("is truncated and is not used") == len(files)
    assert damaged_entries(tmp_path) == 0


def test_little_device_memory_is_used_again_and_again(run_python):
    """Cached blocks of other sizes make room before anything fails; what does not fit at all raises, and work goes on."""
    result = run_python(
        """
        import torch
        for size in list(range(1, 40)) * 2:
            x = torch.ones(size << 18, device="neuron")
            assert (x + x).sum().item() == float(2 * (size << 18))
        assert torch.neuron.memory_stats()["num_ooms"] == 0
        assert torch.neuron.memory_stats()["num_alloc_retries"] > 0
        for _ in range(3):
            try:
                keep = [torch.empty(16 << 20, dtype=torch.uint8, device="neuron") for _ in range(9)]
            except torch.OutOfMemoryError as error:
                assert "128.00 MiB" in str(error), error
            else:
                raise SystemExit("no error")
            assert (torch.ones(5 << 20, device="neuron") + 1).sum().item() == float(2 * (5 << 20))
        print("done")
        """,
        TORCH_NEURONX_MEMORY_LIMIT="128MiB",
    )
    assert result.stdout == "done\n", result
