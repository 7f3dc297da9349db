"""A custom C++ operator on neuron memory: builds moving_average.cpp, adds shapes and the gradient, and uses it.

The kernel is an ordinary function on addresses. It is recorded on the current stream through the C interface
``neuron/foreign.h`` with the memory it reads and writes, so that it takes part in everything PyTorch does there.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch.utils.cpp_extension import load

import torch_neuronx


def build(verbose: bool = False) -> None:
    """Compiles the operator (once; torch keeps the library) and registers its fake kernel and its gradient."""
    load(
        name="moving_average",
        sources=[str(Path(__file__).with_name("moving_average.cpp"))],
        extra_include_paths=[torch_neuronx.get_include()],
        extra_cflags=["-O2", "-std=c++20"],
        extra_ldflags=[f"-L{torch_neuronx.get_library_dir()}", "-lneuron"],
        is_python_module=False,
        verbose=verbose,
    )

    @torch.library.register_fake("foreign_example::moving_average")
    def fake(input: torch.Tensor, decay: float, reverse: bool = False) -> torch.Tensor:
        return torch.empty_like(input, memory_format=torch.contiguous_format)

    def setup_context(ctx: torch.autograd.function.FunctionCtx, inputs: tuple, output: torch.Tensor) -> None:
        _, ctx.decay, ctx.reverse = inputs

    def backward(ctx: torch.autograd.function.FunctionCtx, grad: torch.Tensor) -> tuple:
        # The transpose of the recurrence is the same one, run the other way.
        return torch.ops.foreign_example.moving_average(grad, ctx.decay, not ctx.reverse), None, None

    torch.library.register_autograd("foreign_example::moving_average", backward, setup_context=setup_context)


def main() -> None:
    build()
    signal = torch.sin(torch.linspace(0, 20, 1000, device="neuron")) + 0.3 * torch.randn(4, 1000, device="neuron")
    signal.requires_grad_()
    smooth = torch.ops.foreign_example.moving_average(signal * 2, 0.9)
    (smooth.square().mean()).backward()
    reference = torch.ops.foreign_example.moving_average(signal.detach().cpu() * 2, 0.9)
    print("largest difference from the CPU:", (smooth.detach().cpu() - reference).abs().max().item())
    print("gradient norm:", signal.grad.norm().item())


if __name__ == "__main__":
    main()
