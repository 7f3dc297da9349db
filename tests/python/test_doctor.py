"""``python -m torch_neuronx doctor``: all is well here, and each failure it knows is told in plain words."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys

import pytest

from torch_neuronx.diagnostics import facts, problems, report


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torch_neuronx", *arguments]
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=120)


def doctor(*arguments: str, **variables: str) -> tuple[int, dict]:
    process = run("doctor", "--json", *arguments, **variables)
    assert process.stdout, process.stderr
    return process.returncode, json.loads(process.stdout)


def texts(result: dict) -> str:
    return "\n".join(problem["what"] for problem in result["problems"])


@pytest.fixture(scope="module")
def healthy(tmp_path_factory) -> dict:
    status, result = doctor(TORCH_NEURONX_CACHE_DIR=str(tmp_path_factory.mktemp("cache")))
    assert status == 0, texts(result)
    return result


def test_facts_of_a_healthy_installation(healthy):
    assert [problem for problem in healthy["problems"] if problem["fatal"]] == []
    assert healthy["torch"]["version"].startswith(healthy["package"]["built_for_torch"])
    assert healthy["package"]["version"] and healthy["package"]["build_id"]
    assert healthy["code_generator"]["build"].startswith("llvm-19")
    assert healthy["processor"]["target"] in ("avx2", "avx512")
    assert healthy["device"]["driver"] == "host" and healthy["device"]["cores"] >= 1
    assert healthy["cache"]["writable"] and healthy["cache"]["entries"] == 0
    assert [pack["state"] for pack in healthy["packs"]] == ["good"]
    assert healthy["packs"][0]["entries"] > 50
    test = healthy["self_test"]
    assert test["state"] == "passed" and test["loaded_by_torch"] and test["compiled_kernels"] >= 1
    assert test["memory_limit_bytes"] > 0


def test_text_report(tmp_path):
    process = run("doctor", TORCH_NEURONX_CACHE_DIR=str(tmp_path))
    assert process.returncode == 0, process.stdout
    for name in ("torch_neuronx", "code generator", "instruction set", "memory of a core", "kernel cache", "autoload"):
        assert name in process.stdout
    assert "self-test         passed" in process.stdout
    assert str(tmp_path) in process.stdout


def test_collect_env_has_both_reports():
    process = run("collect_env")
    assert process.returncode == 0, process.stderr
    assert "PyTorch version" in process.stdout
    assert "torch_neuronx:" in process.stdout
    assert "instruction set" in process.stdout


@pytest.mark.parametrize(
    ("name", "value", "status", "text"),
    [
        ("TORCH_NEURONX_WINDOW_SIZE", "0", 1, "allowed are integers from 1 to 65536"),
        ("TORCH_NEURONX_DEVICE", "gpu", 1, "TORCH_NEURONX_DEVICE=gpu is not a valid setting: allowed are host, null"),
        ("TORCH_NEURONX_CACHE_SIZE", "much", 1, "allowed is a number of bytes"),
        ("TORCH_NEURONX_DEVCIE", "host", 0, "did you mean TORCH_NEURONX_DEVICE?"),
        ("NEURON_RT_VISIBLE_CORE", "0", 0, "did you mean NEURON_RT_VISIBLE_CORES?"),
        ("NEURON_CC_FLAGS", "-O1", 0, "NEURON_CC_FLAGS has no effect here"),
        ("TORCH_DEVICE_BACKEND_AUTOLOAD", "0", 0, "`import torch` does not load the package"),
        ("TORCH_NEURONX_CACHE_DIR", __file__ + "/cache", 0, "cannot be written"),
    ],
)
def test_environment(name, value, status, text):
    code, result = doctor(**{name: value})
    assert code == status, texts(result)
    assert text in texts(result)
    assert all(problem["remedy"] for problem in result["problems"])


def test_the_null_driver_has_nothing_to_compare():
    code, result = doctor(TORCH_NEURONX_DEVICE="null")
    assert code == 0 and result["self_test"]["state"].startswith("nothing to compare")


def changed(healthy: dict, *path: str, value: object) -> list[problems.Problem]:
    gathered = copy.deepcopy(healthy)
    place = gathered
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return problems.find(gathered)


# What cannot be brought about here without breaking the installation: the rules alone, on facts that say so.
@pytest.mark.parametrize(
    ("path", "value", "fatal", "text"),
    [
        (("processor", "unsupported"), "the host device needs AVX2; this one lacks AVX2", True, "this one lacks AVX2"),
        (("device", "unavailable"), "another accelerator is present", True, "another accelerator is present"),
        (("code_generator", "error"), "no such file", True, "kernels cannot be compiled: no such file"),
        (("torch", "backend"), "npu", True, "as 'npu'"),
        (("package", "binary_layer"), None, True, "no binary layer for Python"),
        (("package", "error"), "ImportError: undefined symbol", True, "undefined symbol"),
        (("autoload", "entry_point"), False, True, "its entry point"),
        (("autoload", "other_backends"), ["torch_npu"], False, "torch_npu"),
        (("self_test",), {"state": "failed", "error": "it was ended by the signal SIGILL"}, True, "SIGILL"),
        (("cache", "damaged"), 2, False, "2 entries of the kernel cache are damaged"),
        (("cache", "free_bytes"), 1 << 20, False, "has 1 MiB left"),
        (("cache", "path"), "", False, "no home directory"),
        (("packs",), [{"path": "kernels.pack", "state": "of another build", "entries": 0}], False, "of another build"),
        (("packs",), [{"path": "kernels.pack", "state": "missing", "entries": 0}], False, "missing"),
        (("threads", "torch"), 4096, False, "4096 threads"),
    ],
)
def test_rules(healthy, path, value, fatal, text):
    gathered = copy.deepcopy(healthy)
    gathered["cache"]["damaged_files"] = ["a/b"]
    found = [problem for problem in changed(gathered, *path, value=value) if text in problem.what]
    assert len(found) == 1, changed(gathered, *path, value=value)
    assert found[0].fatal == fatal and found[0].remedy
    assert text in report.render(gathered, found).replace("\n    ", " ")


def test_another_torch(healthy):
    gathered = copy.deepcopy(healthy)
    gathered["torch"]["version"] = "2.14.0+cpu"
    core, gathered["package"]["error"] = facts._core(gathered["torch"])
    assert core is None
    found = [problem.what for problem in problems.find(gathered) if problem.fatal]
    assert found == ["torch 2.14.0+cpu is installed, this package was built for torch 2.13"]


def test_no_torch(healthy):
    gathered = copy.deepcopy(healthy)
    gathered["torch"] = {"version": None, "error": "ModuleNotFoundError: No module named 'torch'"}
    gathered["package"]["error"] = facts._core(gathered["torch"])[1]
    for name in ("processor", "device", "cache", "packs", "code_generator"):
        del gathered[name]
    gathered["threads"]["torch"] = None
    found = [problem for problem in problems.find(gathered) if problem.fatal]
    assert [problem.what for problem in found] == ["torch is not installed"]
    assert "not loaded: torch cannot be imported" in report.render(gathered, found)


def test_a_crash_of_the_self_test_is_an_answer(monkeypatch, healthy):
    def killed(command, **options):
        return subprocess.CompletedProcess(command, -4, "", "")

    monkeypatch.setattr(subprocess, "run", killed)
    assert facts._self_test(healthy) == {"state": "failed", "error": "it was ended by the signal SIGILL"}


def test_sizes():
    assert [report.size_text(size) for size in (None, -1, 0, 1023, 1536, 5 << 30)] == [
        "unknown",
        "unknown",
        "0 bytes",
        "1023 bytes",
        "1.5 KiB",
        "5.0 GiB",
    ]
