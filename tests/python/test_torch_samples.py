"""PyTorch's own samples of every operator (its OpInfo table), on the device against the CPU: values, dtypes, shapes, which
errors are raised, gradients; of contiguous and of strided inputs, in place, and into given outputs."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

from reference import DEVICE

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]

SAMPLES = 60  # of an operator and dtype; some have hundreds
DTYPES = (torch.float32, torch.int64, torch.bool)
TOLERANCE = {
    torch.float32: {
        "rtol": 1e-3,
        "atol": 2e-4,
    },  # ill-conditioned samples are among them; precision is tested elsewhere
    torch.complex64: {"rtol": 1e-3, "atol": 2e-4},
    torch.float64: {"rtol": 1e-6, "atol": 1e-6},
}

# Not compared at all, and why.
UNSUPPORTED_LAYOUT = {"sparse.sampled_addmm", "sparse.mm.reduce", "to_sparse"}
CPU_BY_DEFINITION = {"tensor_split", "to"}  # an argument names the CPU
NEEDS_THE_STORAGE = {"as_strided.partial_views"}  # a moved tensor has a storage of its own
OUTPUT_ON_THE_DEFAULT_DEVICE = {
    "arange", "linspace", "linspace.tensor_overload", "logspace", "logspace.tensor_overload", "ones", "zeros", "full",
    "empty", "eye", "randn", "normal.number_mean",
}  # fmt: skip
# ihfft2, ihfftn: torch 2.13's CPU leaves parts of the output unwritten.
NOT_WITH_OUT = {"fft.ihfft2", "fft.ihfftn"}
SINGULAR = {"linalg.det", "linalg.slogdet", "logdet", "linalg.lu_factor_ex"}  # gradients of singular samples are noise
# Compared by shape and dtype only.
RANDOM = {
    "bernoulli", "cauchy", "dropout", "empty", "exponential", "fractional_max_pool", "geometric", "gumbel", "log_normal",
    "lowrank", "multi_head_attention", "multinomial", "new_empty", "normal", "poisson", "rand", "rrelu",
    "scaled_dot_product_attention", "uniform",
}  # fmt: skip
# The order of equal elements is free: only the first result says the same on each device.
TIES = {"argsort", "kthvalue", "median", "mode", "msort", "nanmedian", "sort", "topk"}


def listed(name: str, names: set[str]) -> bool:
    return any(part in name for part in names)


def moved(device: str, strided: bool) -> Callable[[Any], Any]:
    """A copy of each tensor on the device; `strided`: in a layout that is not contiguous."""

    def move(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        source = value.detach()
        if not strided or value.dim() == 0:
            return source.to(device).requires_grad_(value.requires_grad)
        if value.numel() % 2 != 0:
            wide = torch.empty((*value.shape[:-1], 2 * value.shape[-1] + 1), dtype=value.dtype, device=device)
            result = wide[..., 1::2]
        else:
            backwards = tuple(reversed(range(value.dim())))
            result = torch.empty(tuple(reversed(value.shape)), dtype=value.dtype, device=device).permute(backwards)
        return result.copy_(source).requires_grad_(value.requires_grad)

    return move


def attempt(function: Callable[[], Any]) -> tuple[Any, Exception | None]:
    torch.manual_seed(0)
    try:
        result = function()
        for leaf in tree_leaves(result):  # an error of the device may come late
            if isinstance(leaf, torch.Tensor):
                leaf.detach().cpu()
        return result, None
    except Exception as error:
        return None, error


def difference(got: Any, wanted: Any, name: str) -> str | None:
    pairs = list(zip(tree_leaves(got), tree_leaves(wanted), strict=True))
    if listed(name, TIES):
        pairs = [] if name == "argsort" else pairs[:1]
    for x, y in pairs:
        if not isinstance(y, torch.Tensor) or y.layout != torch.strided:
            continue
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            return f"{x.dtype}{list(x.shape)} instead of {y.dtype}{list(y.shape)}"
        if listed(name, RANDOM):
            continue
        try:
            torch.testing.assert_close(x.detach().cpu(), y.detach(), equal_nan=True, **TOLERANCE.get(y.dtype, {}))
        except AssertionError as error:
            return " ".join(str(error).split())[:200]
    return None


def gradients(result: Any, inputs: Any, weights: list[torch.Tensor]) -> Any:
    def trained(values: Any) -> list[torch.Tensor]:
        return [t for t in tree_leaves(values) if isinstance(t, torch.Tensor) and t.requires_grad]

    results, leaves = trained(result), trained(inputs)
    if not weights:
        weights.extend(torch.randn_like(t) for t in results)
    if not results or not leaves:
        return []
    device = leaves[0].device
    found = torch.autograd.grad(results, leaves, [w.to(device) for w in weights], allow_unused=True)
    return [torch.zeros_like(leaf) if g is None else g for g, leaf in zip(found, leaves, strict=True)]


def into_outputs(op: Any, inputs: Any) -> Callable[..., Any] | None:
    """The operator writing into given outputs; None where it has none for these inputs."""
    result, error = attempt(lambda: op(inputs[0], *inputs[1], **inputs[2]))
    leaves = tree_leaves(result)
    if error is not None or not leaves or not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
        return None

    def run(first: Any, *arguments: Any, **keywords: Any) -> Any:
        tensors = [t for t in tree_leaves((first, arguments, keywords)) if isinstance(t, torch.Tensor)]
        device = tensors[0].device if tensors else torch.device("cpu")

        # Contiguous: several of torch 2.13's own CPU kernels (lu_unpack for one) write out of bounds of strided outputs.
        outputs = [torch.empty(leaf.shape, dtype=leaf.dtype, device=device) for leaf in leaves]
        given = outputs[0] if isinstance(result, torch.Tensor) else tuple(outputs)
        with torch.no_grad():
            return op(first, *arguments, **keywords, out=given)

    return run


def faults(op: Any, dtype: torch.dtype, way: str) -> Iterator[str]:
    name = op.full_name
    differentiable = way in ("plain", "strided") and op.supports_autograd and dtype.is_floating_point
    differentiable &= dtype in op.supported_backward_dtypes("cpu") and not listed(name, RANDOM | TIES)
    if way == "strided" and name in SINGULAR:
        differentiable = False
    samples = itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=differentiable), SAMPLES)
    for index, sample in enumerate(samples):
        given = (sample.input, sample.args, sample.kwargs)
        if any(isinstance(t, torch.Tensor) and t.layout != torch.strided for t in tree_leaves(given)):
            continue
        on_cpu, on_device = (tree_map(moved(device, way == "strided"), given) for device in ("cpu", DEVICE))
        if "device" in on_device[2]:
            on_device[2]["device"] = DEVICE
        function: Any = op
        if way == "in place":
            function = None if sample.broadcasts_input else op.inplace_variant
        elif way == "out":
            function = into_outputs(op, on_cpu) if op.supports_out else None
        if function is None:
            continue
        wanted, cpu_error = attempt(lambda f=function, a=on_cpu: f(a[0], *a[1], **a[2]))
        got, error = attempt(lambda f=function, a=on_device: f(a[0], *a[1], **a[2]))
        where = f"{name}, sample {index}"
        if cpu_error is not None and error is None:
            continue  # what the CPU refuses for its layout may work here
        if type(error) is not type(cpu_error):
            yield f"{where}: raised {error!r} instead of {cpu_error!r}"
        elif error is None:
            message = difference(got, wanted, name)
            if message is None and differentiable:
                weights: list[torch.Tensor] = []
                expected, cpu_error = attempt(lambda w=wanted, a=on_cpu, g=weights: gradients(w, a, g))
                found, error = attempt(lambda w=got, a=on_device, g=weights: gradients(w, a, g))
                if error is not None and type(error) is not type(cpu_error):
                    message = f"backward raised {error!r} instead of {cpu_error!r}"
                elif error is None and cpu_error is None:
                    message = difference(found, expected, name)
                    message = message and f"gradient: {message}"
            if message:
                yield f"{where}: {message}"


@pytest.mark.parametrize("way", ["plain", "strided", "in place", "out"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_samples_agree_with_the_cpu(dtype: torch.dtype, way: str) -> None:
    left_out = UNSUPPORTED_LAYOUT | CPU_BY_DEFINITION | NEEDS_THE_STORAGE
    if way == "strided":
        left_out = left_out | {"as_strided", "as_strided_copy", "as_strided_scatter"}  # strides are an argument
    if way == "out":
        left_out = left_out | OUTPUT_ON_THE_DEFAULT_DEVICE | NOT_WITH_OUT
    operators = [op for op in op_db if op.full_name not in left_out and dtype in op.supported_dtypes("cpu")]
    assert len(operators) > 200
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(itertools.chain.from_iterable(faults(op, dtype, way) for op in operators))
    assert not found, "\n".join(found)
