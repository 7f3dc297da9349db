"""What is measured. Sizes are those of the GPT of the demo, or 16 MB, which no cache of one core holds."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_cases import attention_cases
from chat_cases import chat_cases
from gemm_cases import gemm_cases
from harness import Case, Step, in_turn
from optimizer_cases import optimizer_cases
from row_cases import row_cases

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
import train_gpt  # noqa: E402

MEGABYTES_16 = (4096, 1024)  # float32


def numbers(device: str, *shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(device=device, dtype=dtype)


def on(
    function: Callable[..., Tensor], *shapes: tuple[int, ...], dtype: torch.dtype = torch.float32
) -> Callable[[str], Step]:
    """A case that applies a function to fixed tensors."""

    def setup(device: str) -> Step:
        tensors = [numbers(device, *shape, dtype=dtype, seed=index) for index, shape in enumerate(shapes)]
        return lambda: function(*tensors)

    return setup


def chain(x: Tensor, y: Tensor) -> Tensor:
    """Ten elementwise operations."""
    z = x * y
    z = z + 1.0
    z = z * 0.5
    z = z - y
    z = torch.relu(z)
    z = z + x
    z = z * y
    z = z.abs()
    z = z.clamp(0.0, 4.0)
    return z - 0.25


def cheap_and_dear(x: Tensor, y: Tensor) -> Tensor:
    return torch.sigmoid(torch.exp(-x * x) + torch.tanh(y)) * x


def backward_of(function: Callable[[Tensor], Tensor], *shape: int) -> Callable[[str], Step]:
    def setup(device: str) -> Step:
        x = numbers(device, *shape).requires_grad_()
        weight = numbers(device, *shape, seed=1)

        def step() -> Tensor:
            x.grad = None
            function(x).backward(weight)
            return x.grad

        return step

    return setup


def cross_entropy(device: str) -> Step:
    logits = numbers(device, 2048, 256).requires_grad_()
    targets = torch.randint(256, (2048,), generator=torch.Generator().manual_seed(1)).to(device)

    def step() -> Tensor:
        logits.grad = None
        F.cross_entropy(logits, targets).backward()
        return logits.grad

    return step


def attention(device: str) -> Step:
    query, key, value = (numbers(device, 8, 6, 256, 64, seed=seed).requires_grad_() for seed in range(3))

    def step() -> Tensor:
        query.grad = key.grad = value.grad = None
        F.scaled_dot_product_attention(query, key, value, is_causal=True).sum().backward()
        return query.grad

    return step


def training(*arguments: str) -> Callable[[str], Step]:
    def setup(device: str) -> Step:
        options = train_gpt.parse(["--device", device, *arguments])
        base = train_gpt.SMALL if options.small else train_gpt.FULL
        trainer = train_gpt.Trainer(options, base, device)
        return lambda: torch.tensor(trainer.train_step())

    return setup


def all_cases() -> list[Case]:
    small = (64,)
    rows = MEGABYTES_16
    host = {
        "x + y, 64 elements": on(torch.add, small, small),
        "x * 2, 64 elements": on(lambda x: x * 2, small),
        "relu, 64 elements": on(torch.relu, small),
        "add_, 64 elements": on(lambda x: x.add_(0.0), small),
        "x.t(), 8x8": on(lambda x: x.t(), (8, 8)),
        "sum, 8x8": on(lambda x: x.sum(-1), (8, 8)),
        "8x8 @ 8x8": on(torch.mm, (8, 8), (8, 8)),
        "linear 8x16, 16 to 16": on(F.linear, (8, 16), (16, 16), (16,)),
    }
    bandwidth = {
        "chain of 10 elementwise, 16 MB": on(chain, rows, rows),
        "exp, tanh, sigmoid chain, 16 MB": on(cheap_and_dear, rows, rows),
        "x + y, 16 MB": on(torch.add, rows, rows),
        "gelu, 16 MB": on(F.gelu, rows),
        "sigmoid, 16 MB": on(torch.sigmoid, rows),
        "softmax, 16 MB": on(lambda x: x.softmax(-1), rows),
        "layer_norm, 16 MB": on(lambda x: F.layer_norm(x, x.shape[-1:]), rows),
        "sum of rows, 16 MB": on(lambda x: x.sum(-1), rows),
        "sum of columns, 16 MB": on(lambda x: x.sum(0), rows),
        "transposed copy, 16 MB": on(lambda x: x.t().contiguous(), rows),
        "to bfloat16, 16 MB": on(lambda x: x.to(torch.bfloat16), rows),
        "gelu backward, 4 MB": backward_of(F.gelu, 1024, 1024),
        "softmax backward, 4 MB": backward_of(lambda x: x.softmax(-1), 1024, 1024),
        "layer_norm backward, 4 MB": backward_of(lambda x: F.layer_norm(x, x.shape[-1:]), 1024, 1024),
        "cross_entropy step, 2048x256": cross_entropy,
    }
    products = {
        "linear 2048x384, 384 to 1152": on(F.linear, (2048, 384), (1152, 384), (1152,)),
        "linear 2048x384, 384 to 1536": on(F.linear, (2048, 384), (1536, 384), (1536,)),
        "linear 2048x1536, 1536 to 384": on(F.linear, (2048, 1536), (384, 1536), (384,)),
        "mm nn 512": on(torch.mm, (512, 512), (512, 512)),
        "mm tn 2048x384x384 (weight gradient)": on(lambda x, y: x.t() @ y, (2048, 384), (2048, 384)),
        "bmm 48 x 256x64x256": on(torch.bmm, (48, 256, 64), (48, 64, 256)),
        "gemv 1x1024x1024": on(F.linear, (1, 1024), (1024, 1024)),
        "attention step, 8x6x256x64": attention,
    }
    trainings = {
        "GPT step, 4 layers, width 128": training("--small"),
        "GPT step, 6 layers, width 384": training(),
        "GPT step, 4 layers, width 128, bfloat16 autocast": training("--small", "--autocast"),
        "GPT step, 6 layers, width 384, bfloat16 autocast": training("--autocast"),
    }
    return [
        *(Case(name, setup, count=500, group="host") for name, setup in host.items()),
        *(Case(name, in_turn(setup, 3), count=3, group="bandwidth") for name, setup in bandwidth.items()),
        *row_cases(),
        *(Case(name, setup, count=3, group="products") for name, setup in products.items()),
        *optimizer_cases(),
        *gemm_cases(),
        *(Case(name, setup, group="training", tolerance=math.inf, warm_up=8) for name, setup in trainings.items()),
        *attention_cases(),
        *chat_cases(),
    ]
