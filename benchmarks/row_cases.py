"""Row and window kernels: pointwise functions, rows (softmax, norms, reductions), windows, gathers and scatters.

Three sizes of the input: 4 KB, where the cost of a call counts, 256 KB, which the second-level cache holds, and 16 MB,
which comes from memory. Names end in size and dtype; "step" is forward and backward together.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from harness import Case, Step, in_turn

KB, MB = 1 << 10, 1 << 20
SIZE_NAMES = {4 * KB: "4 KB", 256 * KB: "256 KB", 16 * MB: "16 MB"}
COUNTS = {4 * KB: 300, 256 * KB: 20, 16 * MB: 2}
DTYPE_NAMES = {torch.float32: "f32", torch.bfloat16: "bf16"}
Function = Callable[..., "Tensor | tuple[Tensor, ...]"]
Shape = tuple[int, ...]


def numbers(device: str, shape: Shape, dtype: torch.dtype, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(device=device, dtype=dtype)


def matrix(size: int, dtype: torch.dtype) -> Shape:
    """Rows of 256 elements, in large matrices of 1024."""
    columns = 1024 if size == 16 * MB else 256
    return (size // dtype.itemsize // columns, columns)


def images(size: int, dtype: torch.dtype) -> Shape:
    """Batches of feature maps: N, 64 (16 when small), 32, 32."""
    channels = 64 if size == 16 * MB else 16
    return (size // dtype.itemsize // (channels * 1024), channels, 32, 32)


def case(name: str, size: int, dtype: torch.dtype, setup: Callable[[str], Step], moved: float) -> Case:
    return Case(
        f"{name}, {SIZE_NAMES[size]} {DTYPE_NAMES[dtype]}",
        in_turn(setup, COUNTS[size]),
        count=COUNTS[size],
        group="rows",
        tolerance=2e-3 if dtype == torch.float32 else 2e-2,
        bytes=int(moved * size),
    )


def forward(function: Function, shape: Shape, dtype: torch.dtype, operands: int = 1) -> Callable[[str], Step]:
    def setup(device: str) -> Step:
        tensors = [numbers(device, shape, dtype, seed) for seed in range(operands)]
        return lambda: function(*tensors)

    return setup


def training(function: Function, shape: Shape, dtype: torch.dtype, parameters: int) -> Callable[[str], Step]:
    """Forward and backward; parameters of the size of the last dimension (images: of the channels) learn too."""

    def setup(device: str) -> Step:
        x = numbers(device, shape, dtype).requires_grad_()
        length = shape[1] if len(shape) == 4 else shape[-1]
        learnt = [numbers(device, (length,), dtype, 10 + seed).requires_grad_() for seed in range(parameters)]
        with torch.no_grad():
            gradient = torch.ones_like(function(x, *learnt)) * 0.5 + 0.25 * function(x, *learnt)

        def step() -> tuple[Tensor, ...]:
            for tensor in (x, *learnt):
                tensor.grad = None
            function(x, *learnt).backward(gradient)
            return tuple(tensor.grad for tensor in (x, *learnt))

        return step

    return setup


def with_parameters(function: Function, shape: Shape, dtype: torch.dtype, parameters: int) -> Callable[[str], Step]:
    def setup(device: str) -> Step:
        x = numbers(device, shape, dtype)
        length = shape[1] if len(shape) == 4 else shape[-1]
        learnt = [numbers(device, (length,), dtype, 10 + seed) for seed in range(parameters)]
        return lambda: function(x, *learnt)

    return setup


# name: (function, bytes read and written per byte of input)
POINTWISE: dict[str, Function] = {
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "gelu": F.gelu,
    "silu": F.silu,
    "exp": torch.exp,
}
# name: (function of the input and its parameters, number of parameters)
ROWS: dict[str, tuple[Function, int]] = {
    "softmax": (lambda x: x.softmax(-1), 0),
    "log_softmax": (lambda x: x.log_softmax(-1), 0),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b), 2),
    "rms_norm": (lambda x, w: F.rms_norm(x, x.shape[-1:], w), 1),
}
IMAGES: dict[str, tuple[Function, int]] = {
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), 2),
    "group_norm": (lambda x, w, b: F.group_norm(x, 8, w, b), 2),
}
POOLS: dict[str, tuple[Function, float]] = {
    "max_pool2d 2": (lambda x: F.max_pool2d(x, 2), 1.25),
    "max_pool2d 3 stride 2": (lambda x: F.max_pool2d(x, 3, 2, 1), 1.25),
    "avg_pool2d 2": (lambda x: F.avg_pool2d(x, 2), 1.25),
}
REDUCTIONS: dict[str, Function] = {
    "sum of the last axis": lambda x: x.sum(-1),
    "sum of the first axis": lambda x: x.sum(0),
    "sum of all": lambda x: x.sum(),
    "mean of the last axis": lambda x: x.mean(-1),
    "mean of the first axis": lambda x: x.mean(0),
    "amax of the last axis": lambda x: x.amax(-1),
    "amax of the first axis": lambda x: x.amax(0),
    "amax of all": lambda x: x.amax(),
    "argmax": lambda x: x.argmax(-1),
    "max with indices": lambda x: x.max(-1),
    "var_mean": lambda x: torch.var_mean(x, -1),
}
# name: (function, operands, bytes moved)
OTHERS: dict[str, tuple[Function, int, float]] = {
    "copy": (torch.clone, 1, 2),
    "where with a comparison": (lambda x, y: torch.where(x > y, x, 0.5), 2, 3),
    "cumsum": (lambda x: x.cumsum(-1), 1, 2),
    "cumsum of the first axis": (lambda x: x.cumsum(0), 1, 2),
    "transposed copy": (lambda x: x.t().contiguous(), 1, 2),
    "permuted copy": (lambda x: x.view(-1, 8, x.shape[1] // 8).permute(1, 0, 2).contiguous(), 1, 2),
    "cat": (lambda x, y: torch.cat((x, y), -1), 2, 4),
    "scale of a bias gradient": (lambda x, y: (x * y).sum(0), 2, 2),
    "topk 8": (lambda x: x.topk(8, -1), 1, 1),
    "sort of rows": (lambda x: x.sort(-1), 1, 4),
    "repeat rows": (lambda x: x[:, :1].expand_as(x).contiguous(), 1, 1),
}


def cross_entropy(rows: int, classes: int, dtype: torch.dtype, backward: bool) -> Callable[[str], Step]:
    def setup(device: str) -> Step:
        logits = numbers(device, (rows, classes), dtype).requires_grad_(backward)
        targets = torch.randint(classes, (rows,), generator=torch.Generator().manual_seed(1)).to(device)
        if not backward:
            return lambda: F.cross_entropy(logits, targets)

        def step() -> Tensor:
            logits.grad = None
            F.cross_entropy(logits, targets).backward()
            return logits.grad

        return step

    return setup


def embedding(tokens: int, width: int, dtype: torch.dtype, backward: bool) -> Callable[[str], Step]:
    def setup(device: str) -> Step:
        weight = numbers(device, (32000, width), dtype).requires_grad_(backward)
        places = torch.randint(32000, (tokens,), generator=torch.Generator().manual_seed(1)).to(device)
        if not backward:
            return lambda: F.embedding(places, weight)
        gradient = numbers(device, (tokens, width), dtype, 1)

        def step() -> Tensor:
            weight.grad = None
            F.embedding(places, weight).backward(gradient)
            return weight.grad

        return step

    return setup


def indexed(function: Callable[[Tensor, Tensor, Tensor], Tensor], shape: Shape, dtype: torch.dtype, full: bool):
    """function(x, y, index): an index per row, or per element along the last axis."""

    def setup(device: str) -> Step:
        x, y = numbers(device, shape, dtype), numbers(device, shape, dtype, 1)
        limit = shape[-1] if full else shape[0]
        size = shape if full else shape[:1]
        index = torch.randint(limit, size, generator=torch.Generator().manual_seed(1)).to(device)
        return lambda: function(x, y, index)

    return setup


INDEXED: dict[str, tuple[Callable[[Tensor, Tensor, Tensor], Tensor], bool, float]] = {
    "index_add": (lambda x, y, index: x.index_add(0, index, y), False, 4),
    "index_select": (lambda x, y, index: x.index_select(0, index), False, 2),
    "gather": (lambda x, y, index: x.gather(-1, index), True, 4),
    "scatter_add": (lambda x, y, index: x.scatter_add(-1, index, y), True, 5),
}


def random(function: Callable[[str], Tensor]) -> Callable[[str], Step]:
    """Numbers differ from the CPU's: their mean absolute value is compared."""
    return lambda device: lambda: function(device)


def special_cases() -> list[Case]:
    cases = []
    for dtype, name in DTYPE_NAMES.items():
        tolerance = 2e-3 if dtype == torch.float32 else 2e-2
        for rows, classes, count in ((2048, 256, 5), (2048, 32000, 1)):
            for backward in (False, True):
                cases.append(
                    Case(
                        f"cross_entropy {rows}x{classes}{' step' if backward else ''} {name}",
                        in_turn(cross_entropy(rows, classes, dtype, backward), count),
                        count=count,
                        group="rows",
                        tolerance=tolerance,
                    )
                )
        for backward in (False, True):
            cases.append(
                Case(
                    f"embedding 4096 of 32000x256{' step' if backward else ''} {name}",
                    embedding(4096, 256, dtype, backward),
                    count=4,
                    group="rows",
                    tolerance=tolerance,
                )
            )
        million = (1 << 20,)
        cases.append(
            Case(f"sort 1M {name}", forward(lambda x: x.sort(), million, dtype), group="rows", tolerance=tolerance)
        )
        cases.append(
            Case(
                f"argsort 1M {name}", forward(lambda x: x.argsort(), million, dtype), group="rows", tolerance=tolerance
            )
        )
        cases.append(
            Case(f"topk 100 of 1M {name}", forward(lambda x: x.topk(100), million, dtype), group="rows", tolerance=0.02)
        )
        cases.append(
            Case(
                f"softmax of one row of 4M {name}",
                forward(lambda x: x.softmax(-1), (1 << 22,), dtype),
                group="rows",
                tolerance=tolerance,
                bytes=2 * dtype.itemsize << 22,
            )
        )
    return cases


def row_cases() -> list[Case]:
    cases = []
    for dtype in DTYPE_NAMES:
        for size in SIZE_NAMES:
            shape, pictures = matrix(size, dtype), images(size, dtype) if size > 4 * KB else ()
            for name, function in POINTWISE.items():
                cases.append(case(name, size, dtype, forward(function, shape, dtype), 2))
                if size > 4 * KB:
                    cases.append(case(f"{name} step", size, dtype, training(function, shape, dtype, 0), 3))
            for name, (function, parameters) in ROWS.items():
                cases.append(case(name, size, dtype, with_parameters(function, shape, dtype, parameters), 2))
                if size > 4 * KB:
                    cases.append(case(f"{name} step", size, dtype, training(function, shape, dtype, parameters), 5))
            for name, function in REDUCTIONS.items():
                cases.append(case(name, size, dtype, forward(function, shape, dtype), 1))
            for name, (function, operands, moved) in OTHERS.items():
                cases.append(case(name, size, dtype, forward(function, shape, dtype, operands), moved))
            other = torch.bfloat16 if dtype == torch.float32 else torch.float32
            moved = 1 + other.itemsize / dtype.itemsize
            cases.append(case("cast", size, dtype, forward(lambda x, to=other: x.to(to), shape, dtype), moved))
            cast_chain = forward(lambda x, to=other: (x.to(to) * 2).to(x.dtype) + 1, shape, dtype)
            cases.append(case("cast chain", size, dtype, cast_chain, 2))
            cases.append(
                case("randn", size, dtype, random(lambda d, s=shape, t=dtype: torch.randn(s, device=d, dtype=t)), 1)
            )
            cases.append(
                case("rand", size, dtype, random(lambda d, s=shape, t=dtype: torch.rand(s, device=d, dtype=t)), 1)
            )
            cases.append(case("dropout", size, dtype, forward(lambda x: F.dropout(x, 0.5), shape, dtype), 2))
            for name, (index_function, full, moved) in INDEXED.items():
                cases.append(case(name, size, dtype, indexed(index_function, shape, dtype, full), moved))
            if not pictures:
                continue
            for name, (function, parameters) in IMAGES.items():
                cases.append(case(name, size, dtype, with_parameters(function, pictures, dtype, parameters), 2))
                cases.append(case(f"{name} step", size, dtype, training(function, pictures, dtype, parameters), 5))
            for name, (function, moved) in POOLS.items():
                cases.append(case(name, size, dtype, forward(function, pictures, dtype), moved))
                cases.append(case(f"{name} step", size, dtype, training(function, pictures, dtype, 0), 2 * moved))
    for entry in cases:
        if any(word in entry.name for word in ("rand", "dropout")):
            entry.tolerance = 0.15
        if entry.name.startswith("layer_norm step") and entry.name.endswith("bf16"):
            entry.tolerance = math.inf  # the CPU sums the gradients of weight and bias in bfloat16
    return cases + special_cases()
