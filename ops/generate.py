"""Makes code and documentation from aten_ops.yaml.

generate.py --table FILE     the rows of the pointwise driver, as C++ initialisers
generate.py --lists FILE     the rows of the list driver, as C++ initialisers
generate.py --coverage FILE  docs/coverage.md
Reads the one-line rows itself, so that building needs no YAML package.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

TABLE = Path(__file__).with_name("aten_ops.yaml")
KINDS = ("elementwise", "list", "row", "kernel", "view", "factory", "copy", "composite", "custom")
KEYS = {"op", "kind", "lowering", "promote", "common", "accepts", "each"}
CLASSES = {"bool": 1, "int": 2, "float": 4, "complex": 8}
ROW = re.compile(r"^- \{(.*)\}$")


def read_rows(path: Path = TABLE) -> list[dict[str, str]]:
    """All rows in order; raises ValueError naming the line of a malformed one."""
    rows: list[dict[str, str]] = []
    seen: set[str] = set()
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = ROW.match(line)
        if match is None:
            raise ValueError(f"{path.name}:{number}: a row is one line of the form '- {{op: …, kind: …}}'")
        row = dict(item.split(": ", 1) for item in match.group(1).split(", "))
        if unknown := set(row) - KEYS:
            raise ValueError(f"{path.name}:{number}: unknown keys {sorted(unknown)}; known are {sorted(KEYS)}")
        if row.get("kind") not in KINDS:
            raise ValueError(f"{path.name}:{number}: kind '{row.get('kind')}' is not one of {', '.join(KINDS)}")
        if row["op"] in seen:
            raise ValueError(f"{path.name}:{number}: a second row for {row['op']}")
        if row["kind"] == "list" and row.get("each") not in {r["op"] for r in rows if r["kind"] == "elementwise"}:
            raise ValueError(f"{path.name}:{number}: 'each' names no elementwise row above: {row.get('each')}")
        seen.add(row["op"])
        rows.append(row)
    return rows


def pointwise_table(rows: list[dict[str, str]]) -> str:
    lines = ["// Generated from ops/aten_ops.yaml by ops/generate.py."]
    for row in rows:
        if row["kind"] != "elementwise":
            continue
        accepts = sum(CLASSES[name] for name in row.get("accepts", "bool int float").split())
        common = sum(1 << int(position) for position in row.get("common", "").split())
        promote = "true" if row.get("promote") == "float" else "false"
        lines.append(f'{{"{row["op"]}", "{row["lowering"]}", {promote}, {accepts}, {common}}},')
    return "\n".join(lines) + "\n"


def list_table(rows: list[dict[str, str]]) -> str:
    lines = ["// Generated from ops/aten_ops.yaml by ops/generate.py."]
    lines += [f'{{"{row["op"]}", "{row["each"]}"}},' for row in rows if row["kind"] == "list"]
    return "\n".join(lines) + "\n"


def coverage(rows: list[dict[str, str]]) -> str:
    lines = [
        "# Operator coverage",
        "",
        "Generated from `ops/aten_ops.yaml`. Every overload listed runs on the device; all others are composed by PyTorch from",
        "these or fall back to the CPU, counted (`torch_neuronx.get_fallback_ops()`), warned about once, refused in strict mode.",
        "",
    ]
    for kind in KINDS:
        names = sorted(row["op"] for row in rows if row["kind"] == kind)
        if not names:
            continue
        lines += [f"## {kind} ({len(names)})", "", ", ".join(f"`{name}`" for name in names), ""]
    return "\n".join(lines)


def write_if_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--lists", type=Path)
    parser.add_argument("--coverage", type=Path)
    arguments = parser.parse_args()
    rows = read_rows()
    if arguments.table:
        write_if_changed(arguments.table, pointwise_table(rows))
    if arguments.lists:
        write_if_changed(arguments.lists, list_table(rows))
    if arguments.coverage:
        write_if_changed(arguments.coverage, coverage(rows))


if __name__ == "__main__":
    main()
