"""The rules of tools/lint.py find what they are meant to find."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import lint  # noqa: E402
import make_docs  # noqa: E402


def findings(path: str, *lines: str) -> list[str]:
    return [*lint.check_text(lint.ROOT / path, list(lines)), *lint.check_includes(lint.ROOT / path, list(lines))]


@pytest.mark.parametrize(
    ("layer", "included", "allowed"),
    [
        ("base", "ir", False),
        ("ir", "base", True),
        ("ir", "passes", False),
        ("interpret", "ir", True),
        ("passes", "interpret", True),
        ("interpret", "passes", False),
        ("lowering", "codegen", False),
        ("runtime", "ir", False),
        ("kernels", "runtime", True),
        ("kernels", "ir", False),
        ("codegen", "kernels", True),
        ("codegen", "ir", True),
        ("codegen", "eager", False),
        ("eager", "cache", True),
        ("eager", "interpret", True),
        ("eager", "base", True),
    ],
)
def test_layers(layer, included, allowed):
    found = findings(f"neuron/{layer}/x.cpp", f'#include "neuron/{included}/y.h"')
    assert (found == []) is allowed
    if not allowed:
        assert found[0].startswith(f"neuron/{layer}/x.cpp:1: neuron/{layer} may not include neuron/{included}")


@pytest.mark.parametrize("header", ["torch/library.h", "ATen/core/Tensor.h", "c10/core/Device.h"])
def test_no_torch_header_in_the_core(header):
    assert findings("neuron/base/x.h", f"#include <{header}>") == [
        f"neuron/base/x.h:1: {header}: the core has no torch header"
    ]
    assert findings("torch_neuronx/csrc/aten/x.h", f"#include <{header}>") == []


@pytest.mark.parametrize("header", lint.UMBRELLA_HEADERS)
def test_umbrella_headers(header):
    assert "umbrella header" in findings("torch_neuronx/csrc/aten/x.cpp", f"#include <{header}>")[0]


def test_unknown_layer():
    assert "unknown layer neuron/attic" in findings("neuron/attic/x.h", "#pragma once")[0]


def test_using_namespace_in_header():
    assert "using namespace" in findings("neuron/ir/x.h", "using namespace std;")[0]
    assert findings("neuron/ir/x.cpp", "using namespace std;") == []


def test_file_length():
    assert findings("neuron/ir/x.cpp", *[""] * lint.LONGEST_FILE) == []
    assert "601 lines, allowed 600" in findings("neuron/ir/x.cpp", *[""] * (lint.LONGEST_FILE + 1))[0]


@pytest.mark.parametrize(
    "text",
    [
        "see /wo" + "rk/main",
        "path = '/ro" + "ot/x'",
        "// TO" + "DO later",
        "-march" + "=native",
        "from py" + "pi.org",
    ],
)
def test_forbidden_strings(text):
    assert len(findings("docs/x.md", text)) == 1


@pytest.mark.parametrize("text", ["a frame/work/x", "build/root.txt", "todo list", "network/worker"])
def test_harmless_strings(text):
    assert findings("docs/x.md", text) == []


def test_the_table_names_the_layers_that_exist():
    folders = {path.name for path in (lint.ROOT / "neuron").iterdir() if path.is_dir()}
    assert folders <= set(lint.LAYERS)


def test_this_tree_is_clean():
    assert lint.check_files(lint.tracked_files()) == []


def test_pages_name_only_what_exists():
    assert [fault for page in make_docs.pages() for fault in make_docs.faults(page)] == []


def test_a_broken_link_and_a_wrong_path_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(make_docs, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("[a](page.md) [b](gone.md)\nsee `neuron/gone.h`, `docs` and [c](https://example.org)\n")
    assert list(make_docs.faults(page)) == [
        "page.md:1: link to gone.md, which does not exist",
        "page.md:2: names neuron/gone.h, which does not exist",
    ]
