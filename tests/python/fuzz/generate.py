"""Writes a random program: each statement is tried on the CPU first and kept only when PyTorch accepts it there."""

from __future__ import annotations

import random
import warnings
from dataclasses import dataclass, field

import torch
from torch import Tensor

from fuzz import operations
from fuzz.namespace import Machine, execute

DTYPES = (
    ["float32"] * 10 + ["bfloat16"] * 3 + ["float16"] * 2 + ["float64"] * 2 + ["int64"] * 2 + ["int32", "bool", "uint8"]
)
LARGEST = 20_000  # elements of a tensor


@dataclass
class Program:
    seed: int
    exact: bool  # the CPU must have the same bits
    statements: list[str] = field(default_factory=list)

    @property
    def pointers(self) -> bool:
        """Foreign code reads or writes device memory (impossible while it is guarded)."""
        return any(statement.startswith(("peek", "poke")) for statement in self.statements)

    @property
    def parallel(self) -> bool:
        return any(statement.startswith("parallel") for statement in self.statements)

    def text(self) -> str:
        return "\n".join(self.statements)


class Generator:
    def __init__(self, seed: int, length: int | None = None):
        self.random = random.Random(seed)
        self.seed = seed
        self.exact = seed % 3 == 0
        self.length = length or self.random.randint(15, 45)
        self.machine = Machine("cpu")
        self.statements: list[str] = []
        self.count = 0
        self.owners: set[str] = set()  # tensors that were created with a storage of their own
        pool = [1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 33, 64, 65]
        self.sizes = self.random.sample(pool, 3)
        if self.random.random() < 0.05:
            self.sizes[0] = self.random.choice([257, 1025, 4097, 5000])

    # What is alive, for the operations to choose from -----------------------------------------------------------------

    def tensors(self) -> dict[str, Tensor]:
        return self.machine.tensors()

    def pick(self, condition=lambda tensor: True) -> str | None:
        """A tensor that fulfils the condition; the newest ones are the likeliest."""
        names = [name for name, tensor in self.tensors().items() if condition(tensor)]
        if not names:
            return None
        return names[-1 - min(int(self.random.expovariate(0.35)), len(names) - 1)]

    def get(self, name: str) -> Tensor:
        return self.machine.names[name]

    def fresh(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def shape(self) -> tuple[int, ...]:
        rank = self.random.choice([0, 1, 1, 2, 2, 2, 2, 3, 3, 4])
        shape: list[int] = []
        for _ in range(rank):
            size = self.random.choice(self.sizes)
            if self.random.random() < 0.02:
                size = 0
            if size * max(torch.Size(shape).numel(), 1) > LARGEST:
                size = 1
            shape.append(size)
        return tuple(shape)

    def dtype(self) -> str:
        return "torch." + self.random.choice(DTYPES)

    # -----------------------------------------------------------------------------------------------------------------

    def attempt(self, statement: str | None) -> bool:
        """Keeps the statement when the CPU runs it and what it makes stays small."""
        if statement is None:
            return False
        names, reads = self.machine.names, len(self.machine.reads)
        known = set(names)
        try:
            exec(statement, names)
        except Exception:  # the program is written without it
            accepted = False
        else:
            new = {name: names[name] for name in names.keys() - known}
            accepted = all(
                isinstance(value, Tensor) and value.numel() <= LARGEST and value.dim() <= 5 and not value.is_complex()
                for name, value in new.items()
                if name.startswith("t")
            )
        if not accepted:
            for name in names.keys() - known:
                del names[name]
            del self.machine.reads[reads:]
            return False
        self.statements.append(statement)
        return True

    def create(self) -> None:
        name, shape, dtype = self.fresh(), self.shape(), self.dtype()
        text = f"{name} = data({shape}, {dtype}, {self.random.randrange(1000)})"
        kind = self.random.random()
        if kind < 0.1:
            text = f"{name} = torch.full({shape}, {self.random.choice([0, 1, 3])}, dtype={dtype}, device=D)"
        elif kind < 0.15:
            text = f"{name} = torch.empty({shape}, dtype={dtype}, device=D).fill_(2)"
        elif kind < 0.2:
            text = f"{name} = torch.arange({self.random.choice(self.sizes)}, device=D).to({dtype})"
        elif kind < 0.3 and not self.exact:
            function = self.random.choice(["rand", "randn"])
            text = f"{name} = torch.{function}({shape}, device=D)"
        if self.attempt(text):
            self.owners.add(name)

    def program(self) -> Program:
        with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
            warnings.simplefilter("ignore")
            torch.manual_seed(1234)
            for _ in range(self.random.randint(2, 4)):
                self.create()
            while len(self.statements) < self.length:
                if self.random.random() < 0.08 or not self.tensors():
                    self.create()
                    continue
                choices = operations.EXACT if self.exact else operations.ALL
                operation = self.random.choices(choices.functions, choices.weights)[0]
                self.attempt(operation(self))
                if self.random.random() < 0.5:
                    self.chain()
        return Program(self.seed, self.exact, self.statements)

    def chain(self) -> None:
        """A few elementwise operations, each on the result of the one before: what fusion is for."""
        functions = [operations.unary_exact, operations.binary_exact, operations.binary_exact]
        if not self.exact:
            functions += [operations.unary, operations.binary]
        name = self.pick()
        for _ in range(self.random.randint(2, 6)):
            if not self.attempt(self.random.choice(functions)(self, name)):
                continue
            if self.random.random() < 0.4:
                self.attempt(operations.kill(self, name))
            name = f"t{self.count}"


def generate(seed: int, length: int | None = None) -> Program:
    return Generator(seed, length).program()


def run_on_cpu(program: Program) -> Machine:
    machine = Machine("cpu")
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        execute(program.statements, machine)
    return machine
