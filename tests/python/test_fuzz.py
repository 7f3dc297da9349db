"""1,000 random programs, each in every mode, with no bit of difference (tests/python/fuzz)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fuzz import compare, generate, namespace, shrink

HERE = Path(__file__).resolve().parent
PROGRAMS = 1000
WORKERS = 2


def start(*arguments: str, **variables: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "fuzz", *arguments]
    environment = os.environ | variables
    return subprocess.Popen(
        command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )


def test_thousand_programs():
    workers = [
        start("--first", str(worker), "--step", str(WORKERS), "--count", str(PROGRAMS // WORKERS))
        for worker in range(WORKERS)
    ]
    outputs = [worker.communicate()[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * WORKERS, "\n".join(output[-5000:] for output in outputs)
    summaries = [json.loads(output.strip().splitlines()[-1]) for output in outputs]
    assert sum(summary["programs"] for summary in summaries) == PROGRAMS
    fused, fusible = (sum(summary[key] for summary in summaries) for key in ("fused", "fusible"))
    assert fused / fusible >= 0.6  # in the third round


# Programs that once differed, made small. Each stands for a kind of fault.
FOUND = {
    "dead write in recycled memory: a region of one command stored it after a younger tensor was written there": """
t1 = torch.full((), 1, dtype=torch.float32, device=D)
t4 = data((5, 16), torch.bfloat16, 16)
t5 = torch.mul(t4, t1)
t6 = torch.log(t4)
del t1
t7 = F.logsigmoid(t5)
t8 = torch.exp(t6)
""",
    "column sum beside a stored tensor: column kernels store reduced values only": """
t1 = data((6, 16), torch.float32, 5)
read(t1)
t2 = t1 + 1
t3 = t2.sum(0)
t4 = t1.clone()
t5 = t4.amax(0) * 2
""",
}


@pytest.mark.parametrize("text", FOUND.values(), ids=[title.split(":")[0] for title in FOUND])
def test_programs_that_once_differed(text):
    program = generate.Program(0, False, text.strip().splitlines())
    assert compare.check(program, thorough=True).fault is None


def test_guarded_memory_changes_nothing():
    """The device's pages are out of reach of the host except while it works; the results are those of a plain run."""
    runs = [
        start("--digests", "--count", "250", TORCH_NEURONX_GUARDED=guarded, TORCH_NEURONX_EAGER_MODE=mode)
        for guarded, mode in (("1", "blocking"), ("0", "adaptive"))
    ]
    outputs = [run.communicate()[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], "\n".join(output[-3000:] for output in outputs)
    guarded, plain = (json.loads(output.strip().splitlines()[-1]) for output in outputs)
    assert len(guarded) > 150
    assert [seed for seed in plain if plain[seed] != guarded[seed]] == []


def test_a_program_is_a_function_of_its_seed():
    assert generate.generate(11).text() == generate.generate(11).text()
    assert generate.generate(11).text() != generate.generate(12).text()


def test_programs_cover_what_they_should():
    text = "\n".join(generate.generate(seed).text() for seed in range(120))
    for part in (
        *("as_strided", "unfold", ".transpose(", "[1:]", ".copy_(", ".add_(", "out=", ".to(torch.bfloat16)", "softmax"),
        *(
            " @ ",
            "del ",
            ".resize_(",
            ".set_(",
            "untyped_storage()",
            "read(",
            "peek(",
            "poke(",
            "parallel(",
            "torch._foreach_",
            "torch._fused_adamw_",
            "torch.rand",
        ),
    ):
        assert part in text, part


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (torch.tensor([1.0, float("nan")]), torch.tensor([1.0, float("-nan")]), True),
        (torch.tensor([0.0]), torch.tensor([-0.0]), False),
        (torch.tensor([1.0]), torch.tensor([1.0 + 2**-23]), False),
        (torch.tensor([1.0]), torch.tensor([[1.0]]), False),
        (torch.tensor([1]), torch.tensor([1.0]), False),
        (torch.tensor([1, 2]), torch.tensor([1, 2]), True),
        (torch.tensor([1.0, 2.0, 3.0])[::2], torch.tensor([1.0, 3.0]), True),
    ],
)
def test_comparison_of_bits(a, b, same):
    assert namespace.same_bits(a, b) is same


def test_shrinking_keeps_what_fails():
    program = generate.generate(0, length=40)
    victim = next(statement for statement in program.statements if ".add_(" in statement or "torch.add" in statement)
    small = shrink.shrink(program, lambda candidate: victim in candidate.statements)
    assert victim in small.statements
    assert len(small.statements) < len(program.statements) / 2
    assert shrink.valid(small)
