"""``python -m torch_neuronx.diagnostics.self_test``: a fused kernel is compiled and run, a matrix product and a gradient
are computed, all compared with the CPU. Prints one line of JSON."""

from __future__ import annotations

import json
import time
from typing import Any


def _seconds(body: Any) -> float:
    start = time.perf_counter()
    body()
    return round(time.perf_counter() - start, 4)


def main() -> None:
    import torch

    loaded_by_torch = hasattr(torch, "neuron")
    if not loaded_by_torch:
        from torch_neuronx import _loader

        _loader.load()
    import torch_neuronx
    from torch_neuronx import _C, testing

    computes = _C.driver_name() != "null"  # the null driver computes nothing

    def expect_close(what: str, actual: torch.Tensor, expected: torch.Tensor) -> None:
        if computes and not torch.allclose(actual.cpu(), expected, rtol=1e-4, atol=1e-5):
            worst = (actual.cpu() - expected).abs().max().item()
            raise SystemExit(f"{what} differs from the CPU by {worst:.3g}")

    x, y = torch.linspace(-2, 2, 4096), torch.linspace(1, 3, 4096)

    def kernel() -> None:
        with testing.synchronous_compiles():
            for _ in range(3):  # a region is compiled when it is met again
                result = torch.tanh(x.to("neuron") * y.to("neuron") + 0.25) / y.to("neuron")
                expect_close("a fused kernel", result, torch.tanh(x * y + 0.25) / y)

    def product() -> None:
        a, b = x.reshape(64, 64), y.reshape(64, 64)
        expect_close("a matrix product", a.to("neuron") @ b.to("neuron"), a @ b)

    def gradient() -> None:
        w = x.to("neuron").requires_grad_()
        v = x.clone().requires_grad_()
        (torch.nn.functional.silu(w) * y.to("neuron")).sum().backward()
        (torch.nn.functional.silu(v) * y).sum().backward()
        assert w.grad is not None and v.grad is not None
        expect_close("a gradient", w.grad, v.grad)

    seconds = {"kernel": _seconds(kernel), "product": _seconds(product), "gradient": _seconds(gradient)}
    free, total = torch_neuronx.mem_get_info()
    report = torch_neuronx.eager_report()
    print(
        json.dumps(
            {
                "state": "passed" if computes else "nothing to compare: the null driver computes nothing",
                "loaded_by_torch": loaded_by_torch,
                "compiled_kernels": report["compiled_kernels"],
                "compile_seconds": round(report["compile_seconds"], 4),
                "seconds": seconds,
                "memory_limit_bytes": total,
                "memory_free_bytes": free,
                "error": "",
            }
        )
    )


if __name__ == "__main__":
    main()
