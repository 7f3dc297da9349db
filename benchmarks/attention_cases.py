"""Attention: forward, and a step with its gradients, over lengths, head sizes and dtypes; the step of a model that generates."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from harness import Case, Step

SHORT = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}


def numbers(device: str, *shape: int, dtype: torch.dtype, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(device=device, dtype=dtype)


def attention(
    query: tuple[int, ...], key: tuple[int, ...], dtype: torch.dtype, backward: bool, **options: bool
) -> Callable[[str], Step]:
    def setup(device: str) -> Step:
        tensors = [numbers(device, *shape, dtype=dtype, seed=seed) for seed, shape in enumerate((query, key, key))]
        if not backward:
            return lambda: F.scaled_dot_product_attention(*tensors, **options)
        for tensor in tensors:
            tensor.requires_grad_()
        weights = numbers(device, *query, dtype=dtype, seed=3)

        def step() -> list[Tensor]:
            for tensor in tensors:
                tensor.grad = None
            F.scaled_dot_product_attention(*tensors, **options).backward(weights)
            return [tensor.grad for tensor in tensors]

        return step

    return setup


def copy(shape: tuple[int, ...], dtype: torch.dtype) -> Callable[[str], Step]:
    def setup(device: str) -> Step:
        source = numbers(device, *shape, dtype=dtype, seed=0)
        return lambda: source.clone()

    return setup


def product(size: int, dtype: torch.dtype) -> Callable[[str], Step]:
    def setup(device: str) -> Step:
        a, b = (numbers(device, size, size, dtype=dtype, seed=seed) for seed in (0, 1))
        return lambda: a @ b

    return setup


def exponential(size: int) -> Callable[[str], Step]:
    def setup(device: str) -> Step:
        values = numbers(device, size, dtype=torch.float32, seed=0)
        return lambda: values.exp()

    return setup


def rate_cases() -> list[Case]:
    """What attention's arithmetic is made of, by itself: products and exponentials of what the second cache holds."""
    size, count = 512, 1 << 16
    return [
        Case(
            f"arithmetic, {short}",
            product(size, dtype),
            count=20,
            group="decode",
            tolerance=2e-2,
            work={short: size**3},
        )
        for dtype, short in ((torch.float32, "f32"), (torch.bfloat16, "bf16"))
    ] + [
        Case("arithmetic, exp", exponential(count), count=50, group="decode", work={"exp": count}),
    ]


def decode_cases() -> list[Case]:
    """One query against keys and values of 16 MB or more, which the caches of one core do not hold. A copy of as many bytes is
    one measure of speed, the arithmetic at its own rate (float16 is widened) the other: the larger share says what binds."""
    cases = rate_cases()
    for dtype, short in SHORT.items():
        for depth in (64, 128):
            keys = (1, 8, 8192, depth)
            size = 2 * math.prod(keys) * dtype.itemsize
            name = f"8x8192x{depth} {short}"
            cases.append(Case(f"copy, {name}", copy(keys, dtype), group="decode", bytes=size))
            for heads in (8, 32, 64):
                setup = attention((1, heads, 1, depth), keys, dtype, False, enable_gqa=heads != 8)
                title = f"decode, {heads} query heads, {name}"
                scores = heads * keys[-2]
                work = {"bf16" if short == "bf16" else "f32": 2 * scores * depth, "exp": scores}
                tolerance = 1e-3 if short == "f32" else 2e-2
                cases.append(Case(title, setup, group="decode", tolerance=tolerance, bytes=size, work=work))
    return cases


def attention_cases() -> list[Case]:
    cases = {}
    for dtype, short in SHORT.items():
        for depth in (64, 128):
            for length in (128, 512, 2048):
                shape = (1, 8, length, depth)
                for causal in (False, True):
                    for backward in (False, True):
                        name = f"attention{' step' if backward else ''} {short}, 8x{length}x{depth}"
                        name += ", causal" if causal else ""
                        cases[name] = attention(shape, shape, dtype, backward, is_causal=causal)
        grouped = ((1, 8, 512, 64), (1, 2, 512, 64))
        for backward in (False, True):
            name = f"attention{' step' if backward else ''} {short}, 8 heads for 2x512x64, causal"
            cases[name] = attention(*grouped, dtype, backward, is_causal=True, enable_gqa=True)
    return [
        Case(name, setup, count=1, group="attention", tolerance=1e-3 if " f32," in name else 2e-2)
        for name, setup in cases.items()
    ] + decode_cases()
