"""What is wrong, in plain words, with what to do: rules over the facts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch_neuronx.diagnostics.facts import Facts


@dataclass(frozen=True)
class Problem:
    """``fatal``: the device cannot be used, or a program would not get what it asked for."""

    fatal: bool
    what: str
    remedy: str


def find(facts: Facts) -> list[Problem]:
    """Those that stop the device come first."""
    found = [
        *_torch(facts),
        *_package(facts),
        *_processor(facts),
        *_environment(facts),
        *_autoload(facts),
        *_self_test(facts),
        *_cache(facts),
        *_packs(facts),
        *_threads(facts),
    ]
    return sorted(found, key=lambda problem: not problem.fatal)


def _torch(facts: Facts) -> Iterator[Problem]:
    built_for = facts["package"]["built_for_torch"]
    version, error = facts["torch"]["version"], facts["torch"]["error"]
    if error and version is None:
        yield Problem(True, "torch is not installed", f'pip install "torch=={built_for}.*"')
    elif error:
        yield Problem(True, f"torch {version} is installed and cannot be imported: {error}", "reinstall torch")


def _package(facts: Facts) -> Iterator[Problem]:
    package = facts["package"]
    if facts["torch"]["error"]:
        return
    if "was built for torch" in package["error"]:
        yield Problem(
            True,
            f"torch {facts['torch']['version']} is installed, this package was built for torch "
            f"{package['built_for_torch']}",
            f'pip install "torch=={package["built_for_torch"]}.*", or install a torch_neuronx built for this torch',
        )
    elif not package["binary_layer"]:
        others = package["other_binary_layers"]
        yield Problem(
            True,
            f"the package in {package['path']} has no binary layer for Python {facts['python']['version']}"
            + (f"; it has {', '.join(others)}" if others else ""),
            "install the wheel made for this Python, or build it (`make build`); where the folder is a source tree, it may "
            "be hiding the installed package: run Python elsewhere",
        )
    elif package["error"]:
        yield Problem(
            True,
            f"the binary layer {package['binary_layer']} cannot be loaded: {package['error']}",
            "install the wheel made for this torch, or rebuild it (`make build`)",
        )
    backend = facts["torch"].get("backend", "privateuseone")
    if backend not in ("privateuseone", "neuron"):
        yield Problem(
            True,
            f"another package has registered torch's one PrivateUse1 backend as {backend!r}",
            "set TORCH_DEVICE_BACKEND_AUTOLOAD=0 and import the backend that is wanted",
        )
    generator = facts.get("code_generator", {})
    if generator.get("error"):
        yield Problem(
            True, f"kernels cannot be compiled: {generator['error']}", "reinstall the package: a file of it is missing"
        )


def _processor(facts: Facts) -> Iterator[Problem]:
    device, processor = facts.get("device", {}), facts.get("processor", {})
    if processor.get("unsupported"):
        yield Problem(
            True,
            f"{processor['unsupported']} ({facts['system']['processor']})",
            "use another machine; in a virtual machine, pass the host's processor through",
        )
    elif device.get("unavailable"):
        yield Problem(True, f"no neuron device is available: {device['unavailable']}", "do as it says")


def _environment(facts: Facts) -> Iterator[Problem]:
    for text in facts["environment"]["bad"].values():
        yield Problem(True, text, "correct or unset the variable")
    for text in facts["environment"]["notices"].values():
        yield Problem(False, text, "unset the variable; `python -m torch_neuronx env` lists those that there are")


def _autoload(facts: Facts) -> Iterator[Problem]:
    autoload = facts["autoload"]
    if not autoload["entry_point"]:
        yield Problem(
            True,
            "`import torch` does not load the package: its entry point in the group torch.backends is not installed",
            "install the package with pip, or import torch_neuronx by name",
        )
    elif autoload["switched_off"]:
        yield Problem(
            False,
            "TORCH_DEVICE_BACKEND_AUTOLOAD=0 is set: `import torch` does not load the package",
            "unset it, or import torch_neuronx by name",
        )
    if autoload["other_backends"]:
        yield Problem(
            False,
            f"`import torch` loads other backends too: {', '.join(autoload['other_backends'])}",
            "a process can hold one PrivateUse1 backend; remove the others if the device cannot be found",
        )


def _self_test(facts: Facts) -> Iterator[Problem]:
    test = facts["self_test"]
    if test["state"] == "failed":
        # A reason that is known already explains the failure.
        known = facts["environment"]["bad"] or facts.get("device", {}).get("unavailable")
        if not known:
            yield Problem(
                True,
                f"the self-test failed: {test['error']}",
                "run it alone and report what it prints: python -m torch_neuronx.diagnostics.self_test",
            )
        return
    if test["state"] in ("left out", "not run"):
        return
    if not test["loaded_by_torch"] and not facts["autoload"]["switched_off"] and facts["autoload"]["entry_point"]:
        yield Problem(
            True,
            "`import torch` did not load the package although its entry point is installed",
            "run `python -c 'import torch'` and read what it prints",
        )


def _cache(facts: Facts) -> Iterator[Problem]:
    cache = facts.get("cache", {})
    if not cache or "error" in cache:
        return
    if not cache["path"]:
        if "TORCH_NEURONX_DISABLE_NEFF_CACHE" not in facts["environment"]["set"] and (
            "TORCH_NEURONX_NEFF_DISABLE_CACHE" not in facts["environment"]["set"]
        ):
            yield Problem(
                False,
                "compiled kernels are not kept on disk: there is no home directory",
                "set TORCH_NEURONX_CACHE_DIR to a directory that can be written",
            )
        return
    if not cache["writable"]:
        yield Problem(
            False,
            f"the kernel cache {cache['path']} cannot be written ({cache['obstacle']}): every process compiles anew",
            "make it writable, or set TORCH_NEURONX_CACHE_DIR to a directory that is",
        )
    if cache["damaged"]:
        yield Problem(
            False,
            f"{cache['damaged']} entries of the kernel cache are damaged, for example {cache['damaged_files'][0]}; "
            "they are compiled anew when they are needed",
            "nothing has to be done; if it comes back, check the disk",
        )
    if 0 <= cache["free_bytes"] < 64 << 20:
        yield Problem(
            False,
            f"the file system of the kernel cache {cache['path']} has {cache['free_bytes'] >> 20} MiB left",
            "make room, or set TORCH_NEURONX_CACHE_DIR to another file system",
        )


def _packs(facts: Facts) -> Iterator[Problem]:
    packs = facts.get("packs", [])
    for pack in packs if isinstance(packs, list) else []:
        if pack["state"] != "good":
            yield Problem(
                False,
                f"the prebuilt kernels {pack['path']} are {pack['state']} and not used: first uses compile",
                "reinstall the package, or rebuild it completely with `make build`",
            )


def _threads(facts: Facts) -> Iterator[Problem]:
    threads = facts["threads"]
    if threads["torch"] and threads["torch"] > threads["processors"]:
        yield Problem(
            False,
            f"torch uses {threads['torch']} threads on {threads['processors']} processors: they wait for each other",
            "set OMP_NUM_THREADS, or call torch.set_num_threads()",
        )
