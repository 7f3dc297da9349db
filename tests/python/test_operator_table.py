"""ops/aten_ops.yaml names exactly what is registered, and docs/coverage.md is made from it."""

from __future__ import annotations

import subprocess
import sys

import torch

from aten_samples import ROOT, table


def qualified(name: str) -> str:
    return name if "::" in name else f"aten::{name}"


def test_every_row_is_registered():
    missing = [
        row["op"]
        for row in table()
        if not torch._C._dispatch_has_kernel_for_dispatch_key(qualified(row["op"]), "PrivateUse1")
    ]
    assert missing == []


def test_every_registered_overload_has_a_row():
    rows = {qualified(row["op"]) for row in table()}
    registered = {
        name
        for name in torch._C._dispatch_get_registrations_for_dispatch_key("PrivateUse1")
        if name.startswith("aten::")
    }
    assert sorted(registered - rows - {"aten::_has_compatible_shallow_copy_type"}) == []


def test_coverage_page_is_current(tmp_path):
    page = tmp_path / "coverage.md"
    subprocess.run([sys.executable, str(ROOT / "ops" / "generate.py"), "--coverage", str(page)], check=True)
    assert page.read_text() == (ROOT / "docs" / "coverage.md").read_text()
