"""Builds what is generated in docs/ and checks every page: links and the paths that pages name must exist.

GENERATED names the pages that come from a table of the code, with the command that writes each.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# page -> command; {page} is replaced by its path, without it the command's output is the page.
GENERATED = {
    "docs/coverage.md": [sys.executable, "ops/generate.py", "--coverage", "{page}"],
    "docs/environment.md": ["build/dev/bin/neuron-options", "--markdown"],
}
LINK = re.compile(r"\[[^\]]*\]\(([^)#]+)(?:#[^)]*)?\)")
# A path in backticks that starts with one of the tree's folders: `neuron/ir/graph.h`, `docs/numerics.md`, `neuron/base/`.
NAMED_PATH = re.compile(r"`((?:neuron|torch_neuronx|tests|tools|docs|examples|benchmarks|ops|cmake)/[\w./-]*)`")


def pages() -> list[Path]:
    return sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])


def faults(page: Path) -> Iterator[str]:
    for number, line in enumerate(page.read_text().splitlines(), 1):
        for target in LINK.findall(line):
            if "://" not in target and not (page.parent / target).exists():
                yield f"{page.relative_to(ROOT)}:{number}: link to {target}, which does not exist"
        for target in NAMED_PATH.findall(line):
            if not (ROOT / target).exists():
                yield f"{page.relative_to(ROOT)}:{number}: names {target}, which does not exist"


def generate() -> None:
    for page, command in GENERATED.items():
        words = [word.replace("{page}", page) for word in command]
        output = subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
        if words == command:
            (ROOT / page).write_text(output)
        print(f"generated {page}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="check the pages without generating any")
    arguments = parser.parse_args()
    if not arguments.check:
        generate()
    found = [fault for page in pages() for fault in faults(page)]
    print("\n".join(found) or f"{len(pages())} pages, every link and path exists")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
