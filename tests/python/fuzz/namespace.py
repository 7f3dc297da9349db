"""What the statements of a program may call, besides torch: data from a seed, host reads, raw pointers, threads."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

import torch
from torch import Tensor

FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def draw(shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> Tensor:
    """Numbers of a moderate size from a seed, drawn on the CPU; a few zeros, infinities and NaNs among the floats."""
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if not dtype.is_floating_point:
        low = 0 if dtype == torch.uint8 else -40
        return torch.randint(low, 40, shape, generator=generator).to(dtype)
    values = torch.randn(shape, generator=generator, dtype=torch.float64)
    kind = torch.randint(0, 200, shape, generator=generator)
    if seed % 4 == 0:
        values = values.where(kind != 0, float("nan")).where(kind != 1, float("inf")).where(kind != 2, -0.0)
    return values.to(dtype)


def same_bits(a: Tensor, b: Tensor, signed_zeros: bool = True) -> bool:
    """Equal dtype, shape and bits; any NaN equals any NaN. Without `signed_zeros` 0 equals -0."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.is_floating_point:
        bits = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.uint8}[a.element_size()]
        a, b = a.contiguous(), b.contiguous()
        equal = (a.view(bits) == b.view(bits)) | (a.isnan() & b.isnan())
        if not signed_zeros:
            equal |= (a == 0) & (b == 0)
        return bool(equal.all())
    return torch.equal(a, b)


def gradient(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The derivative of a scalar function; autograd's own thread records the backward part."""
    leaf = x.detach().clone().requires_grad_()
    function(leaf).backward()
    return leaf.grad


class Machine:
    """One run of a program: the namespace its statements are executed in."""

    def __init__(self, device: str, pointers: bool = True):
        self.device, self.pointers = device, pointers
        self.reads: list = []
        self.names: dict = {
            "torch": torch,
            "F": torch.nn.functional,
            "D": device,
            "data": lambda shape, dtype, seed: draw(shape, dtype, seed).to(device),
            "read": self.read,
            "peek": self.peek,
            "poke": self.poke,
            "parallel": self.parallel,
            "gradient": gradient,
        }

    def read(self, value: object) -> None:
        """A host read in the middle of the program; what was read belongs to the result."""
        self.reads.append(value.cpu().clone() if isinstance(value, Tensor) else value)

    def synchronize(self) -> None:
        if self.device != "cpu":
            torch.accelerator.synchronize()

    def peek(self, tensor: Tensor) -> None:
        """Reads the first element through its address."""
        address = tensor.data_ptr()
        if self.pointers and tensor.numel():
            self.reads.append(ctypes.string_at(address, tensor.element_size()))

    def poke(self, tensor: Tensor, byte: int) -> None:
        """Foreign code writes the first element through its address."""
        address = tensor.data_ptr()
        self.synchronize()
        if self.pointers and tensor.numel():
            ctypes.memset(address, byte, tensor.element_size())

    def parallel(self, *bodies: list[str]) -> None:
        """Several threads record at once. Each body defines tensors of its own and only reads shared ones."""
        spaces = [dict(self.names) for _ in bodies]
        errors: list[BaseException] = []

        def work(body: list[str], space: dict) -> None:
            try:
                for statement in body:
                    exec(statement, space)
            except BaseException as error:  # handed to the thread that waits
                errors.append(error)

        threads = [threading.Thread(target=work, args=pair) for pair in zip(bodies, spaces, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        for space in spaces:
            self.names.update({name: value for name, value in space.items() if name not in self.names})

    def tensors(self) -> dict[str, Tensor]:
        return {name: value for name, value in self.names.items() if isinstance(value, Tensor)}


def execute(statements: list[str], machine: Machine, watch: Callable[[str], None] | None = None) -> None:
    torch.manual_seed(1234)
    if machine.device != "cpu":
        torch.neuron.manual_seed_all(1234)
    for statement in statements:
        if watch:
            watch(statement)
        exec(statement, machine.names)
