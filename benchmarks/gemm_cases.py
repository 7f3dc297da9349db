"""Matrix products and convolutions: shapes of GPT, BERT and ResNet, squares, skinny ones, batches, single vectors.

A product is named by its layout as BLAS would say it: nt is a linear layer's forward, nn the gradient of its input, tn
that of its weight. `tools/neuron_gemm_bench.cpp` gives the rates against the core's peak.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from harness import Case, Step

# m, n, k: rows of the input, of the result's columns, of the sum.
SHAPES = {
    "square 64": (64, 64, 64),
    "square 128": (128, 128, 128),
    "square 256": (256, 256, 256),
    "square 512": (512, 512, 512),
    "square 1024": (1024, 1024, 1024),
    "square 2048": (2048, 2048, 2048),
    "GPT qkv": (2048, 1152, 384),
    "GPT up": (2048, 1536, 384),
    "GPT down": (2048, 384, 1536),
    "GPT head": (2048, 256, 384),
    "BERT qkv": (1024, 2304, 768),
    "BERT up": (1024, 3072, 768),
    "BERT down": (512, 768, 3072),
    "BERT small batch": (128, 768, 768),
    "SmolLM2 prompt": (64, 1536, 576),
    "ResNet stem": (12544, 64, 147),
    "ResNet 1x1": (3136, 256, 64),
    "ResNet 3x3": (784, 128, 1152),
    "ResNet last": (49, 512, 4608),
    "skinny 32 rows": (32, 4096, 1024),
    "skinny 8 rows": (8, 2048, 2048),
    "skinny 4 rows": (4, 2048, 2048),
    "skinny 32 columns": (4096, 32, 1024),
    "short sum": (2048, 2048, 16),
    "long sum": (16, 16, 16384),
    "vector 1024": (1, 1024, 1024),
    "vector 4096": (1, 4096, 4096),
    "vector SmolLM2": (1, 1536, 576),
}
BATCHED = {
    "attention scores": (48, 256, 256, 64),
    "attention values": (48, 256, 64, 256),
}
GRADIENTS = (
    "square 256",
    "square 1024",
    "GPT qkv",
    "GPT down",
    "BERT up",
    "SmolLM2 prompt",
    "ResNet 1x1",
    "skinny 8 rows",
)
NARROW = ("square 256", "square 1024", "GPT qkv", "BERT up", "SmolLM2 prompt", "skinny 8 rows", "vector 4096")

# rank, batch, channels, filters, size, kernel, stride, padding, groups
CONVOLUTIONS = {
    "ResNet stem 7x7": (2, 2, 3, 64, 224, 7, 2, 3, 1),
    "ResNet 3x3, 64 at 56": (2, 2, 64, 64, 56, 3, 1, 1, 1),
    "ResNet 3x3, 128 at 28": (2, 2, 128, 128, 28, 3, 1, 1, 1),
    "ResNet 3x3, 512 at 7": (2, 2, 512, 512, 7, 3, 1, 1, 1),
    "ResNet 3x3, stride 2": (2, 2, 128, 128, 56, 3, 2, 1, 1),
    "ResNet 1x1, 64 to 256": (2, 2, 64, 256, 56, 1, 1, 0, 1),
    "ResNet 1x1, stride 2": (2, 2, 256, 512, 56, 1, 2, 0, 1),
    "ConvNeXt depthwise 7x7": (2, 2, 96, 96, 56, 7, 1, 3, 96),
    "MobileNet depthwise 3x3": (2, 2, 144, 144, 56, 3, 1, 1, 144),
    "ViT patches 16x16": (2, 2, 3, 384, 224, 16, 16, 0, 1),
    "Whisper conv1d": (1, 1, 80, 384, 3000, 3, 1, 1, 1),
    "Whisper conv1d, stride 2": (1, 1, 384, 384, 3000, 3, 2, 1, 1),
    "conv3d": (3, 1, 16, 32, 16, 3, 1, 1, 1),
}


def numbers(device: str, *shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(device=device, dtype=dtype)


def product(layout: str, m: int, n: int, k: int, dtype: torch.dtype = torch.float32) -> Callable[[str], Step]:
    def setup(device: str) -> Step:
        x, weight = numbers(device, m, k, dtype=dtype), numbers(device, n, k, dtype=dtype, seed=1)
        gradient = numbers(device, m, n, dtype=dtype, seed=2)
        steps: dict[str, Step] = {
            "nt": lambda: F.linear(x, weight),
            "nn": lambda: gradient @ weight,
            "tn": lambda: gradient.t() @ x,
        }
        return steps[layout]

    return setup


def batched(batch: int, m: int, n: int, k: int, transposed: bool) -> Callable[[str], Step]:
    def setup(device: str) -> Step:
        a, b = numbers(device, batch, m, k), numbers(device, batch, *((n, k) if transposed else (k, n)), seed=1)
        return (lambda: a @ b.transpose(1, 2)) if transposed else (lambda: a @ b)

    return setup


def convolution(what: str, *facts: int, dtype: torch.dtype = torch.float32) -> Callable[[str], Step]:
    rank, batch, channels, filters, size, kernel, stride, padding, groups = facts
    function = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]

    def setup(device: str) -> Step:
        x = numbers(device, batch, channels, *[size] * rank, dtype=dtype)
        weight = numbers(device, filters, channels // groups, *[kernel] * rank, dtype=dtype, seed=1)
        bias = numbers(device, filters, dtype=dtype, seed=2)
        if what == "forward":
            return lambda: function(x, weight, bias, stride, padding, 1, groups)
        out = (size + 2 * padding - kernel) // stride + 1
        gradient = numbers(device, batch, filters, *[out] * rank, dtype=dtype, seed=3)
        mask = [what == "input", what == "weight", False]

        def step() -> Tensor:
            gradients = torch.ops.aten.convolution_backward(
                gradient,
                x,
                weight,
                [filters],
                [stride] * rank,
                [padding] * rank,
                [1] * rank,
                False,
                [0] * rank,
                groups,
                mask,
            )
            return gradients[0 if what == "input" else 1]

        return step

    return setup


def transposed_convolution(device: str) -> Step:
    x, weight = numbers(device, 2, 128, 28, 28), numbers(device, 128, 64, 4, 4, seed=1)
    return lambda: F.conv_transpose2d(x, weight, None, 2, 1)


def repeats(operations: float) -> int:
    """Steps of a measurement: about a tenth of a second of arithmetic, no more than 200."""
    return int(min(max(5e8 / operations, 1), 200))


def product_case(layout: str, name: str, dtype: torch.dtype = torch.float32) -> Case:
    m, n, k = SHAPES[name]
    short = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}[dtype]
    return Case(
        f"{short} {layout} {name} {m}x{n}x{k}",
        product(layout, m, n, k, dtype),
        count=repeats(2.0 * m * n * k * (1 if m > 8 else 8)),
        group="gemm",
        tolerance=1e-3 if dtype == torch.float32 else 2e-2,
    )


def convolution_case(what: str, name: str, dtype: torch.dtype = torch.float32) -> Case:
    facts = CONVOLUTIONS[name]
    rank, batch, channels, filters, size, kernel, stride, padding, groups = facts
    out = (size + 2 * padding - kernel) // stride + 1
    short = "bf16" if dtype == torch.bfloat16 else "f32"
    return Case(
        f"{short} conv {what} {name}",
        convolution(what, *facts, dtype=dtype),
        count=repeats(2.0 * batch * filters * out**rank * channels // groups * kernel**rank),
        group="convolution",
        tolerance=1e-3 if dtype == torch.float32 else 2e-2,
        warm_up=3,
    )


def gemm_cases() -> list[Case]:
    cases = [product_case("nt", name) for name in SHAPES]
    for name, (batch, m, n, k) in BATCHED.items():
        setup = batched(batch, m, n, k, transposed=name == "attention scores")
        cases.append(
            Case(f"f32 {name} {batch}x{m}x{n}x{k}", setup, count=repeats(2.0 * batch * m * n * k), group="gemm")
        )
    cases += [product_case(layout, name) for layout in ("nn", "tn") for name in GRADIENTS]
    for dtype in (torch.bfloat16, torch.float16):
        cases += [product_case("nt", name, dtype) for name in NARROW]
        cases += [product_case(layout, "GPT qkv", dtype) for layout in ("nn", "tn")]
    cases += [convolution_case(what, name) for name in CONVOLUTIONS for what in ("forward", "input", "weight")]
    cases += [convolution_case(what, "ResNet 3x3, 64 at 56", torch.bfloat16) for what in ("forward", "input", "weight")]
    cases.append(Case("f32 conv_transpose2d 4x4, stride 2", transposed_convolution, group="convolution"))
    return cases
