"""A decoding step of the chat model's shape (SmolLM2-135M), with random weights: `make bench ARGS="--only chat"`. The CPU
runs it eagerly; the device eagerly, and as a graph."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from harness import Case, Step

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

CONTEXT, TOKEN = 64, 7  # tokens whose keys and values are kept, and the one behind them


def configuration():
    import transformers

    return transformers.LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        tie_word_embeddings=True,
    )


def make_model(device: str, dtype: torch.dtype):
    import transformers

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return transformers.LlamaForCausalLM(configuration()).to(device=device, dtype=dtype).eval()


def decoding(dtype: torch.dtype) -> Callable[[str], Step]:
    def setup(device: str) -> Step:
        import transformers

        model = make_model(device, dtype)
        cache = transformers.DynamicCache(config=model.config)
        prompt = torch.arange(CONTEXT, device=device)[None]
        token = torch.tensor([[TOKEN]], device=device)

        @torch.inference_mode()
        def step() -> torch.Tensor:
            logits = model(token, past_key_values=cache).logits
            cache.crop(-1)
            return logits

        with torch.inference_mode():
            model(prompt, past_key_values=cache)
        return step

    return setup


def replaying(dtype: torch.dtype) -> Callable[[str], Step]:
    def setup(device: str) -> Step:
        if device == "cpu":
            return decoding(dtype)(device)
        from graph_decoder import GraphDecoder

        decoder = GraphDecoder(make_model(device, dtype))
        decoder.read(list(range(CONTEXT)))

        def step() -> torch.Tensor:
            decoder.go_back(CONTEXT)
            return decoder.force(TOKEN).clone()

        return step

    return setup


def chat_cases() -> list[Case]:
    return [
        Case(
            f"chat decode step{how}, {str(dtype).removeprefix('torch.')}",
            setup(dtype),
            group="chat",
            tolerance=1e-3 if dtype == torch.float32 else math.inf,
        )
        for how, setup in (("", decoding), (" as a graph", replaying))
        for dtype in (torch.float32, torch.bfloat16)
    ]
