"""The facts and the problems as text."""

from __future__ import annotations

import textwrap
from typing import Any

from torch_neuronx.diagnostics.facts import Facts
from torch_neuronx.diagnostics.problems import Problem

_WIDTH = 110


def size_text(count: int | None) -> str:
    if count is None or count < 0:
        return "unknown"
    for unit, scale in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} bytes"


def rows(facts: Facts) -> list[tuple[str, str]]:
    """(name, value) of everything known, in reading order."""
    package, torch, threads = facts["package"], facts["torch"], facts["threads"]
    result = [
        ("torch_neuronx", f"{package['version'] or 'not installed'} ({package['path']})"),
        ("built for torch", package["built_for_torch"]),
        ("torch", f"{torch['version'] or 'not installed'} ({torch.get('path', torch['error'])})"),
        ("Python", f"{facts['python']['version']} ({facts['python']['executable']})"),
        ("platform", facts["system"]["platform"]),
        ("processor", facts["system"]["processor"]),
    ]
    if package["error"]:
        result.append(("binary layer", f"not loaded: {package['error']}"))
    else:
        result += _core_rows(facts)
    result += [
        (
            "threads",
            f"torch {threads['torch']}, processors {threads['processors']}, "
            f"OMP_NUM_THREADS {threads['OMP_NUM_THREADS'] or 'not set'}",
        ),
        (
            "machine memory",
            f"{size_text(facts['memory']['total_bytes'])}, {size_text(facts['memory']['available_bytes'])} available",
        ),
        ("autoload", _autoload_text(facts["autoload"])),
        ("self-test", _self_test_text(facts["self_test"])),
    ]
    variables = facts["environment"]["set"]
    result.append(("variables set", ", ".join(f"{name}={value}" for name, value in variables.items()) or "none"))
    return result


def _core_rows(facts: Facts) -> list[tuple[str, str]]:
    processor, device, cache = facts["processor"], facts["device"], facts["cache"]
    units = {"AVX2": "avx2", "AVX-512": "avx512", "AVX-512 BF16": "avx512_bf16", "AMX BF16": "amx_bf16"}
    able = [name for name, key in units.items() if processor[key]]
    limit = facts["self_test"].get("memory_limit_bytes")
    result = [
        ("build", facts["package"]["build_id"]),
        ("code generator", facts["code_generator"]["build"] or facts["code_generator"]["error"]),
        ("instruction set", f"{processor['target'] or 'none usable'} (processor: {', '.join(able) or 'neither AVX2'})"),
        ("device", f"driver {device['driver']}, {device['cores']} cores"),
        ("memory of a core", size_text(limit if limit is not None else device["core_memory_bytes"])),
    ]
    if "error" in cache:
        result.append(("kernel cache", cache["error"]))
    elif not cache["path"]:
        result.append(("kernel cache", "none on disk"))
    else:
        result.append(("kernel cache", _cache_text(cache)))
    packs: Any = facts["packs"]
    for pack in packs if isinstance(packs, list) else []:
        result.append(("prebuilt kernels", f"{pack['entries']} in {pack['path']} ({pack['state']})"))
    return result


def _cache_text(cache: Facts) -> str:
    state = "writable" if cache["writable"] else f"not writable ({cache['obstacle']})"
    text = (
        f"{cache['path']}: {cache['entries']} entries, {size_text(cache['bytes'])} of {size_text(cache['limit_bytes'])}, "
        f"{state}"
    )
    if cache["read"] < cache["entries"]:
        text += f"; of {cache['read']} that were read"
    for key, name in (("other_builds", "of other builds"), ("damaged", "damaged"), ("temporary", "unfinished")):
        if cache[key]:
            text += f", {cache[key]} {name}"
    return text if cache["exists"] else f"{cache['path']}: not made yet, {state}"


def _autoload_text(autoload: Facts) -> str:
    if not autoload["entry_point"]:
        return "the entry point is not installed"
    return "switched off by TORCH_DEVICE_BACKEND_AUTOLOAD=0" if autoload["switched_off"] else "on"


def _self_test_text(test: Facts) -> str:
    if test.get("error"):
        return f"{test['state']}: {test['error']}"
    if "seconds" not in test:
        return str(test["state"])
    seconds = ", ".join(f"{name} {value:.2f} s" for name, value in test["seconds"].items())
    return f"{test['state']} ({seconds}; {test['compiled_kernels']} kernels compiled)"


def render(facts: Facts, problems: list[Problem]) -> str:
    names = rows(facts)
    width = max(len(name) for name, _ in names)
    lines = []
    for name, value in names:
        lines += textwrap.wrap(
            str(value),
            _WIDTH,
            initial_indent=f"{name:<{width}}  ",
            subsequent_indent=" " * (width + 2),
            break_long_words=False,
            break_on_hyphens=False,
        )
    lines.append("")
    if not problems:
        lines.append("Nothing is wrong.")
    for problem in problems:
        mark = "PROBLEM" if problem.fatal else "note"
        lines += textwrap.wrap(
            f"{mark}: {problem.what}", _WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        )
        lines += textwrap.wrap(
            f"    what to do: {problem.remedy}",
            _WIDTH,
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)
