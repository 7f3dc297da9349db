"""The statements a program is made of. Each function returns one statement, or None when nothing fits at the moment.

`g` is the Generator: it knows what is alive. A statement need not be valid: the generator tries it on the CPU first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fuzz.list_operations import foreach, foreach_exact, foreach_inplace, foreach_inplace_exact, optimizer
from fuzz.picking import conflict, dimension, is_float, partner, scalar, writable

Statement = Callable[..., "str | None"]

UNARY_EXACT = [
    "neg",
    "abs",
    "relu",
    "sign",
    "floor",
    "ceil",
    "trunc",
    "round",
    "logical_not",
    "isnan",
    "clone",
    "square",
]
UNARY = [
    "exp",
    "log",
    "tanh",
    "sigmoid",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "erf",
    "expm1",
    "log1p",
    "reciprocal",
    "contiguous",
]
FUNCTIONAL = ["gelu", "silu", "softplus", "mish", "leaky_relu", "elu", "hardswish", "logsigmoid"]
BINARY_EXACT = ["add", "sub", "mul", "maximum", "minimum", "eq", "lt", "ge", "ne", "logical_and"]
BINARY = ["div", "atan2", "pow", "fmod", "hypot", "remainder", "true_divide"]
INPLACE = ["add_", "mul_", "sub_", "copy_"]
DTYPES = ["float32", "float32", "float64", "bfloat16", "float16"]


# Elementwise ----------------------------------------------------------------------------------------------------------


def unary_exact(g, x=None):
    return f"{g.fresh()} = torch.{g.random.choice(UNARY_EXACT)}({x or g.pick()})"


def unary(g, x=None):
    x = x or g.pick(is_float)
    if x is None:
        return None
    if g.random.random() < 0.3:
        return f"{g.fresh()} = F.{g.random.choice(FUNCTIONAL)}({x})"
    name = g.random.choice(UNARY)
    return f"{g.fresh()} = {x}.contiguous()" if name == "contiguous" else f"{g.fresh()} = torch.{name}({x})"


def binary_exact(g, x=None):
    x = x or g.pick()
    return f"{g.fresh()} = torch.{g.random.choice(BINARY_EXACT)}({x}, {partner(g, x)})"


def binary(g, x=None):
    x = x or g.pick(is_float)
    return x and f"{g.fresh()} = torch.{g.random.choice(BINARY)}({x}, {partner(g, x)})"


def ternary_exact(g):
    x = g.pick()
    y = partner(g, x)
    return g.random.choice(
        [
            f"{g.fresh()} = torch.where({x} > {scalar(g)}, {x}, {y})",
            f"{g.fresh()} = {x}.clamp(-1, 2)",
            f"{g.fresh()} = {x}.masked_fill({y} == {x}, 3)",
            f"{g.fresh()} = torch.where({y} != {x}, {scalar(g)}, {x})",
        ]
    )


def ternary(g):
    x = g.pick(is_float)
    if x is None:
        return None
    y, z = partner(g, x), partner(g, x)
    return g.random.choice(
        [
            f"{g.fresh()} = torch.addcmul({x}, {y}, {z}, value=0.5)",
            f"{g.fresh()} = torch.addcdiv({x}, {y}, {z})",
            f"{g.fresh()} = torch.lerp({x}, {y}, 0.25)",
            f"{g.fresh()} = torch.add({x}, {y}, alpha=3)",
        ]
    )


def cast_exact(g):
    x = g.pick(lambda tensor: not is_float(tensor)) if g.exact else g.pick()
    dtypes = DTYPES if g.exact else [*DTYPES, "int64", "int32", "bool"]
    return x and f"{g.fresh()} = {x}.to(torch.{g.random.choice(dtypes)})"


def float_cast(g):
    x = g.pick(is_float)
    return x and f"{g.fresh()} = {x}.to(torch.{g.random.choice(DTYPES)})"


# Writes ---------------------------------------------------------------------------------------------------------------


def inplace(g):
    x = writable(g)
    if x is None:
        return None
    y = partner(g, x)
    if g.random.random() < 0.25 or conflict(g, x, y):
        return f"{x}.{g.random.choice(['zero_()', 'fill_(2)', 'clamp_(-1, 1)', 'relu_()', 'neg_()', 'abs_()'])}"
    return f"{x}.{g.random.choice(INPLACE if y[0] == 't' else INPLACE[:3])}({y})"


def inplace_random(g):
    x = writable(g)
    return x and f"{x}.{g.random.choice(['normal_()', 'uniform_()', 'bernoulli_(0.4)', 'random_(0, 7)'])}"


def inplace_masked(g):
    x = writable(g)
    return x and g.random.choice([f"{x}.masked_fill_({x} > 0.5, -1)", f"{x}[{x} < 0] = 1", f"{x}[..., 0] = 5"])


def write_slice(g):
    """Writes a part of a tensor, sometimes from another part of the same one."""
    x = writable(g)
    if x is None or g.get(x).dim() == 0:
        return None
    return g.random.choice(
        [
            f"{x}[1:] = {x}[:-1].clone()",
            f"{x}[::2].mul_(2)",
            f"{x}[-1].copy_({x}[0])",
            f"{x}.narrow(-1, 0, 1).add_(1)",
            f"{x}.select(0, 0).fill_(4)",
        ]
    )


def out_variant(g):
    x = g.pick()
    shape, dtype = g.get(x).shape, g.get(x).dtype
    out, y = writable(g), partner(g, x)
    if (
        out is None
        or g.get(out).shape != shape
        or g.get(out).dtype != dtype
        or conflict(g, out, x)
        or conflict(g, out, y)
    ):
        return None
    return f"torch.{g.random.choice(['add', 'mul', 'maximum'])}({x}, {y}, out={out})"


# Views and copies -----------------------------------------------------------------------------------------------------


def view(g):
    x = g.pick(lambda tensor: tensor.dim() > 0)
    if x is None:
        return None
    d, e = dimension(g, x), dimension(g, x)
    return f"{g.fresh()} = " + g.random.choice(
        [
            f"{x}.transpose({d}, {e})",
            f"{x}.mT",
            f"{x}[1:]",
            f"{x}[..., ::2]",
            f"{x}.select({d}, -1)",
            f"{x}.unsqueeze({d})",
            f"{x}.squeeze()",
            f"{x}.flatten()",
            f"{x}.reshape(-1, {g.random.choice(g.sizes)})",
            f"{x}.view(-1)",
            f"{x}.narrow({d}, 0, 1)",
            f"{x}.movedim({d}, {e})",
            f"{x}.diagonal()",
            f"{x}.chunk(2, {d})[-1]",
            f"{x}.unfold({d}, 2, 2)",
            f"{x}.detach()",
        ]
    )


def overlapping_view(g):
    x = g.pick(lambda tensor: tensor.numel() > 3)
    if x is None:
        return None
    n = g.get(x).numel()
    return f"{g.fresh()} = " + g.random.choice(
        [
            f"{x}.expand({g.random.choice(g.sizes)}, *{x}.shape)",
            f"{x}.as_strided(({n // 2}, 2), (1, 1))",
            f"{x}.as_strided(({n - 1},), (1,), 1)",
            f"{x}.flatten().unfold(0, 3, 1)",
        ]
    )


def rearrange(g):
    x = g.pick()
    d = dimension(g, x)
    y = g.pick(lambda tensor: tensor.dim() == g.get(x).dim())
    return f"{g.fresh()} = " + g.random.choice(
        [
            f"{x}.flip({d})",
            f"torch.cat([{x}, {y}], {d})",
            f"torch.stack([{x}, {x}])",
            f"{x}.roll(1, {d})",
            f"{x}.tril()",
            f"{x}.triu(1)",
            f"F.pad({x}, (1, 2))",
            f"{x}.repeat_interleave(2, {d})",
            f"{x}.index_select({d}, torch.tensor([0, 0], device=D))",
            f"{x}.gather({d}, torch.zeros_like({x}, dtype=torch.int64))",
            f"{x}.repeat(*([2] * max({x}.dim(), 1)))",
            f"{x}.contiguous(memory_format=torch.preserve_format)",
            f"{x}.sort(dim={d}, stable=True)[0]",
        ]
    )


# Reductions and products ----------------------------------------------------------------------------------------------


def reduce_exact(g):
    x = g.pick()
    d = dimension(g, x)
    texts = [
        f"{x}.amax({d})",
        f"{x}.amin({d}, keepdim=True)",
        f"{x}.argmax({d})",
        f"{x}.any({d})",
        f"{x}.all()",
        f"{x}.max()",
    ]
    if not is_float(g.get(x)):
        texts += [f"{x}.sum()", f"{x}.sum({d})", f"{x}.cumsum({d})"] * 2
    return f"{g.fresh()} = {g.random.choice(texts)}"


def reduce(g):
    x = g.pick(is_float)
    if x is None:
        return None
    d = dimension(g, x)
    return f"{g.fresh()} = " + g.random.choice(
        [
            f"{x}.sum({d})",
            f"{x}.sum({d}, keepdim=True)",
            f"{x}.sum()",
            f"{x}.mean({d})",
            f"{x}.mean()",
            f"{x}.var({d})",
            f"{x}.norm()",
            f"{x}.prod({d})",
            f"{x}.cumsum({d})",
            f"{x}.logsumexp({d})",
            f"torch.linalg.vector_norm({x}, dim={d})",
        ]
    )


def normalize(g):
    x = g.pick(lambda tensor: is_float(tensor) and tensor.dim() > 0)
    if x is None:
        return None
    return f"{g.fresh()} = " + g.random.choice(
        [
            f"{x}.softmax(-1)",
            f"{x}.log_softmax(-1)",
            f"{x}.softmax({dimension(g, x)})",
            f"F.layer_norm({x}, {x}.shape[-1:])",
            f"F.rms_norm({x}, {x}.shape[-1:])",
        ]
    )


def matmul(g):
    x = g.pick(lambda tensor: is_float(tensor) and tensor.dim() > 0)
    if x is None:
        return None
    mine = g.get(x)
    y = g.pick(lambda tensor: tensor.dtype == mine.dtype and tensor.dim() > 0 and tensor.shape[0] == mine.shape[-1])
    return f"{g.fresh()} = " + g.random.choice(
        [f"{x} @ {x}.mT", f"{x}.mT @ {x}", f"F.linear({x}, {x})", f"{x} @ {y}", f"{x} @ {y}", f"{x} @ {y}"]
    )


def attention(g):
    x = g.pick(lambda tensor: is_float(tensor) and tensor.dim() > 1)
    if x is None:
        return None
    mine = g.get(x)
    y = g.pick(lambda tensor: tensor.dtype == mine.dtype and tensor.dim() == mine.dim())
    options = g.random.choice(
        ["", "is_causal=True", "dropout_p=0.3", f"attn_mask={x} @ {x}.mT", f"attn_mask={x}[..., :1]", "scale=0.5"]
    )
    key, value = g.random.choice([(x, x), (x, x), (y, y), (x, y)])
    return f"{g.fresh()} = F.scaled_dot_product_attention({x}, {key}, {value}, {options})"


def gradient(g):
    x = g.pick(lambda tensor: is_float(tensor) and tensor.dim() > 0)
    if x is None:
        return None
    y = partner(g, x)
    function = g.random.choice(
        [
            f"(x * {y}).sum()",
            f"F.gelu(x).mul({y}).mean()",
            "x.softmax(-1).square().sum()",
            "F.layer_norm(x, x.shape[-1:]).pow(3).sum()",
            "(x @ x.mT).tanh().mean()",
            "x.exp().clamp(max=2).sum()",
            "torch.where(x > 0, x * 3, x.sin()).sum()",
            "x.amax(-1).sum()",
            "F.scaled_dot_product_attention(x, x, x, is_causal=True).square().sum()",
            "F.scaled_dot_product_attention(x, x, x, attn_mask=x @ x.mT, dropout_p=0.3).square().sum()",
        ]
    )
    return f"{g.fresh()} = gradient(lambda x: {function}, {x})"


def matmul_integer(g):
    x = g.pick(lambda tensor: not is_float(tensor) and tensor.dim() == 2)
    return x and f"{g.fresh()} = {x} @ {x}.mT"


# Life, storage, host --------------------------------------------------------------------------------------------------


def kill(g, name: str | None = None):
    if len(g.tensors()) < 3:
        return None
    name = name or g.pick()
    g.owners.discard(name)
    return f"del {name}" if name in g.machine.names else None


def storage(g):
    x = next((n for n in [g.pick() for _ in range(6)] if n in g.owners), None)
    if x is None:
        return None
    y = g.pick(lambda tensor: tensor.dtype == g.get(x).dtype)
    n = g.get(x).numel()
    held = g.get(y).untyped_storage().nbytes() // g.get(y).element_size()  # more would be memory nobody has written
    return g.random.choice(
        [
            f"{x}.resize_({n // 2})",
            f"{x}.resize_({n + 5}).fill_(1)",
            f"{x}.resize_({max(n // 2, 1)}, 2).fill_(0.5)" if n > 1 else None,
            f"{x}.set_({y})",
            f"{x}.set_({y}.untyped_storage(), 0, ({min(n, held)},), (1,))",
            f"{x}.untyped_storage().resize_(0); {x}.untyped_storage().resize_({n * 8}); {x}.fill_(3)",
            f"{x}.data = {y}.clone()",
        ]
    )


def host_read(g):
    x = g.pick()
    return g.random.choice(
        [
            f"read({x})",
            f"read({x}.sum().item())" if not g.exact else f"read({x}.amax().item())",
            f"read(bool(({x} > 0).any()))",
            f"read({x}.flatten()[:3].tolist())",
            f"{g.fresh()} = {x}[{x} > 0]",
            f"{g.fresh()} = {x}.nonzero()",
        ]
    )


def pointer(g):
    x = g.pick(lambda tensor: tensor.numel() > 0)
    if x is None:
        return None
    return f"peek({x})" if g.random.random() < 0.6 else f"poke({x}, {g.random.randrange(60)})"


def round_trip(g):
    x = g.pick()
    return f"{g.fresh()} = {x}.cpu().clone().to(D)"


def parallel(g):
    """Two threads record chains of their own."""
    bodies = []
    for _ in range(2):
        x = g.pick()
        names = [g.fresh() for _ in range(3)]
        bodies.append(
            [
                f"{names[0]} = torch.{g.random.choice(BINARY_EXACT[:5])}({x}, {scalar(g)})",
                f"{names[1]} = torch.{g.random.choice(UNARY_EXACT[:3])}({names[0]})",
                f"{names[0]}.add_({names[1]})",
                f"{names[2]} = {names[0]}.amax()",
                f"del {names[1]}",
            ]
        )
    return f"parallel({bodies[0]!r}, {bodies[1]!r})"


@dataclass
class Choices:
    functions: list[Statement]
    weights: list[float]


_EXACT: dict[Statement, float] = {
    unary_exact: 5,
    binary_exact: 8,
    ternary_exact: 4,
    cast_exact: 1,
    float_cast: 1,
    inplace: 6,
    inplace_masked: 2,
    write_slice: 2,
    out_variant: 1,
    foreach_exact: 1.5,
    foreach_inplace_exact: 1.5,
    view: 5,
    overlapping_view: 1,
    rearrange: 3,
    reduce_exact: 2,
    matmul_integer: 0.3,
    kill: 3,
    storage: 1,
    host_read: 0.8,
    pointer: 0.4,
    round_trip: 0.2,
    parallel: 0.3,
}
_ALL: dict[Statement, float] = _EXACT | {
    foreach: 2,
    foreach_inplace: 2,
    optimizer: 0.7,
    unary: 6,
    binary: 4,
    ternary: 3,
    inplace_random: 1,
    reduce: 3,
    normalize: 2,
    matmul: 2,
    attention: 1,
    gradient: 1,
}
EXACT = Choices(list(_EXACT), list(_EXACT.values()))
ALL = Choices(list(_ALL), list(_ALL.values()))
