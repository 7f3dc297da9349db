"""Statements on lists of tensors: foreach operators and fused optimizer steps."""

from __future__ import annotations

import torch

from fuzz.picking import conflict, is_float, scalar, writable


def list_of(g, condition, most: int = 4) -> list[str]:
    names = [g.pick(condition) for _ in range(g.random.randint(1, most))]
    return [name for name in names if name]


def partners(g, names: list[str]) -> list[str] | None:
    """A tensor of the same shape and dtype, or one that broadcasts, for each."""
    found = []
    for name in names:
        mine = g.get(name)
        shapes = (mine.shape, torch.Size([1]), torch.Size([]))
        found.append(g.pick(lambda t, mine=mine, shapes=shapes: t.dtype == mine.dtype and t.shape in shapes))
    return None if None in found else found


def text(names: list[str]) -> str:
    return f"[{', '.join(names)}]"


def foreach(g, exact: bool = False):
    names = list_of(g, is_float)
    others = partners(g, names) if names else None
    if not others:
        return None
    xs, ys = text(names), text(others)
    calls = [
        f"add({xs}, {scalar(g)})",
        f"add({xs}, {ys})",
        f"sub({xs}, {ys})",
        f"mul({xs}, {ys})",
        f"mul({xs}, {[0.5 * (i + 1) for i in range(len(names))]})",
        f"mul({xs}, {others[0]}.flatten()[0])",
        f"neg({xs})",
        f"abs({xs})",
        f"maximum({xs}, {ys})",
        f"clamp_max({xs}, {scalar(g)})",
    ]
    if not exact:
        calls += [
            f"add({xs}, {ys}, alpha=0.3)",
            f"div({xs}, {[0.7 * (i + 1) for i in range(len(names))]})",
            f"lerp({xs}, {ys}, 0.1)",
            f"addcmul({xs}, {ys}, {ys}, 0.25)",
            f"addcdiv({xs}, {ys}, {ys}, {[0.2 * (i + 1) for i in range(len(names))]})",
            f"sqrt({xs})",
            f"reciprocal({xs})",
            f"norm({xs})",
            f"pow({xs}, 2)",
            f"sign({xs})",
        ]
    made = ", ".join(g.fresh() for _ in names)
    return f"({made},) = torch._foreach_{g.random.choice(calls)}"


def foreach_exact(g):
    return foreach(g, exact=True)


def foreach_inplace(g, exact: bool = False):
    names = [name for name in (writable(g) for _ in range(g.random.randint(1, 4))) if name]
    names = [name for name in names if is_float(g.get(name))]
    others = partners(g, names) if names else None
    if not others or any(conflict(g, x, y) for x, y in zip(names, others, strict=True)):
        return None
    xs, ys = text(names), text(others)
    calls = [
        f"add_({xs}, {scalar(g)})",
        f"add_({xs}, {ys})",
        f"mul_({xs}, {scalar(g)})",
        f"mul_({xs}, {ys})",
        f"copy_({xs}, {ys})",
        f"zero_({xs})",
        f"neg_({xs})",
        f"clamp_min_({xs}, {scalar(g)})",
    ]
    if not exact:
        calls += [
            f"lerp_({xs}, {ys}, 0.1)",
            f"addcmul_({xs}, {ys}, {ys}, 0.25)",
            f"addcdiv_({xs}, {ys}, {ys}, {[-0.2 * (i + 1) for i in range(len(names))]})",
            f"div_({xs}, {ys})",
            f"sqrt_({xs})",
            f"pow_({xs}, 2)",
        ]
    return f"torch._foreach_{g.random.choice(calls)}"


def foreach_inplace_exact(g):
    return foreach_inplace(g, exact=True)


def optimizer(g):
    """A fused step on tensors of one dtype, gradients and state among them."""
    x = writable(g)
    if x is None or not is_float(g.get(x)) or g.get(x).dtype not in (torch.float32, torch.float64):
        return None
    y = g.pick(lambda t: t.dtype == g.get(x).dtype and t.shape == g.get(x).shape)
    if y is None or y == x or conflict(g, x, y):
        return None
    m, v, s = g.fresh(), g.fresh(), g.fresh()
    return (
        f"{m}, {v} = torch.zeros_like({x}), torch.zeros_like({x}); {s} = torch.ones((), device=D); "
        f"torch._fused_adamw_([{x}], [{y}], [{m}], [{v}], [], [{s}], lr=0.1, beta1=0.9, beta2=0.99, "
        f"weight_decay=0.01, eps=1e-8, amsgrad=False, maximize=False)"
    )
