"""A decoding step of the chat model's shape (SmolLM2-135M), with random weights: `make bench ARGS="--only chat"`."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from harness import Case, Step

CONTEXT = 64  # tokens whose keys and values are kept


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


def decoding(dtype: torch.dtype) -> Callable[[str], Step]:
    def setup(device: str) -> Step:
        import transformers

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = transformers.LlamaForCausalLM(configuration()).to(device=device, dtype=dtype).eval()
        cache = transformers.DynamicCache(config=model.config)
        prompt = torch.arange(CONTEXT, device=device)[None]
        token = torch.tensor([[7]], device=device)

        @torch.inference_mode()
        def step() -> torch.Tensor:
            logits = model(token, past_key_values=cache).logits
            cache.crop(-1)
            return logits

        with torch.inference_mode():
            model(prompt, past_key_values=cache)
        return step

    return setup


def chat_cases() -> list[Case]:
    cases = {"chat decode step, float32": torch.float32, "chat decode step, bfloat16": torch.bfloat16}
    return [
        Case(name, decoding(dtype), group="chat", tolerance=1e-3 if dtype == torch.float32 else math.inf)
        for name, dtype in cases.items()
    ]
