"""Watches generation: prints the text as it comes, and takes the time of every token."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterable

import torch
import transformers


class GenerationTimer:
    """A streamer for `generate()`; watches other sources of tokens by `watch`. Without a tokenizer it prints nothing.
    Seconds are wall time; `cpu` ones are of all threads."""

    def __init__(self, tokenizer: transformers.PreTrainedTokenizerBase | None = None):
        self.printer = (
            transformers.TextStreamer(tokenizer, skip_prompt=True, skip_special_tokens=True) if tokenizer else None
        )
        self.start = self.now()
        self.times: list[tuple[float, float]] = []
        self.prompt_tokens: int | None = None

    @staticmethod
    def now() -> tuple[float, float]:
        return time.perf_counter(), time.process_time()

    def put(self, tokens: torch.Tensor) -> None:
        if self.prompt_tokens is None:
            self.prompt_tokens = tokens.shape[-1]
            self.start = self.now()
        else:
            self.times.append(self.now())
        if self.printer:
            self.printer.put(tokens)

    def watch(self, prompt: list[int], answer: Iterable[int]) -> list[int]:
        self.put(torch.tensor([prompt]))
        tokens = []
        for token in answer:
            tokens.append(token)
            self.put(torch.tensor([token]))
        self.end()
        return tokens

    def end(self) -> None:
        if self.printer:
            self.printer.end()
            sys.stdout.flush()

    def steps(self) -> list[tuple[float, float]]:
        """(wall, CPU) seconds of each decoding step: all tokens but the first, which reads the prompt."""
        return [(b[0] - a[0], b[1] - a[1]) for a, b in zip(self.times, self.times[1:], strict=False)]

    def figures(self) -> dict:
        wall, cpu = zip(*self.steps(), strict=True) if len(self.times) > 1 else ((0.0,), (0.0,))
        return {
            "prompt_tokens": self.prompt_tokens or 0,
            "new_tokens": len(self.times),
            "first_token_seconds": self.times[0][0] - self.start[0] if self.times else 0.0,
            "tokens_per_second": 1 / statistics.median(wall) if wall[0] else 0.0,
            "step_seconds": statistics.median(wall),
            "step_cpu_seconds": statistics.median(cpu),
        }
