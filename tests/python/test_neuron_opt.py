"""neuron-opt prints, transforms, checks and runs StableHLO text."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """module @sample {
  func.func public @main(%arg0: tensor<2xf32>) -> (tensor<2xf32>) {
    %0 = stablehlo.constant dense<1.0> : tensor<2xf32>
    %1 = stablehlo.multiply %arg0, %0 : tensor<2xf32>
    %2 = stablehlo.exponential %arg0 : tensor<2xf32>
    %3 = stablehlo.add %1, %1 : tensor<2xf32>
    return %3 : tensor<2xf32>
  }
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "sample.mlir"
    path.write_text(PROGRAM)
    return path


def neuron_opt(*arguments: object, status: int = 0, text: str | None = None) -> str:
    """Standard output, or standard error where the command is to fail."""
    if "NEURON_OPT" in os.environ:
        binary = Path(os.environ["NEURON_OPT"])
    else:
        found = sorted((ROOT / "build").glob("*/bin/neuron-opt"), key=lambda path: path.stat().st_mtime)
        assert found, "neuron-opt is not built: run `make build`, or set NEURON_OPT to its path"
        binary = found[-1]
    run = subprocess.run([binary, *map(str, arguments)], capture_output=True, text=True, input=text)
    assert run.returncode == status, run.stderr
    return run.stderr if status else run.stdout


def test_prints_what_it_read(program: Path) -> None:
    assert neuron_opt(program) == PROGRAM
    assert neuron_opt("-", text=PROGRAM) == PROGRAM


def test_runs_passes_in_the_order_given(program: Path) -> None:
    simplified = neuron_opt("--pass=simplify", program)
    assert "%2 = stablehlo.add %arg0, %arg0 : tensor<2xf32>" in simplified
    assert "stablehlo.exponential" in simplified
    swept = neuron_opt("--pass=simplify", "--pass=eliminate_dead_code", program)
    assert swept == neuron_opt("--pipeline", program)
    assert swept == (
        "module @sample {\n"
        "  func.func public @main(%arg0: tensor<2xf32>) -> (tensor<2xf32>) {\n"
        "    %0 = stablehlo.add %arg0, %arg0 : tensor<2xf32>\n"
        "    return %0 : tensor<2xf32>\n"
        "  }\n"
        "}\n"
    )


def test_prints_before_and_after_each_pass(program: Path) -> None:
    printed = neuron_opt("--pass=simplify", "--print-each", program)
    assert [line for line in printed.splitlines() if line.startswith("//")] == ["// input", "// simplify"]
    assert printed.startswith("// input\n" + PROGRAM)


def test_lists_the_passes() -> None:
    listed = neuron_opt("--list").splitlines()
    names = [line for line in listed if not line.startswith(" ")]
    assert names == ["inline_composites", "fold_constants", "simplify", "deduplicate", "eliminate_dead_code"]
    assert all(line.startswith("    ") and len(line) > 80 for line in listed[1::2])


def test_interprets(program: Path) -> None:
    argument = "--argument=dense<[1.5, -0.1]> : tensor<2xf32>"
    assert neuron_opt("--interpret", argument, program) == "dense<[3.0, -0.2]> : tensor<2xf32>\n"
    hexadecimal = neuron_opt("--interpret", "--hexadecimal", argument, program)
    assert hexadecimal == 'dense<"0x00004040CDCC4CBE"> : tensor<2xf32>\n'


def test_verifies(program: Path) -> None:
    assert neuron_opt("--verify", program) == ""
    broken = PROGRAM.replace("stablehlo.exponential", "stablehlo.not")
    assert neuron_opt("--verify", "-", status=1, text=broken) == (
        "neuron-opt: operation 2 'not' of 'sample': it is not defined for f32; "
        "it is (tensor<2xf32>) -> (tensor<2xf32>)\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no file is given; --help shows what is allowed"),
        (["--pass=go"], "there is no pass 'go'; --list shows them"),
        (["--fast"], "unexpected argument '--fast'; --help shows what is allowed"),
        (["absent.mlir"], "cannot read absent.mlir"),
        (["--interpret", "-"], "'sample' takes 1 arguments, 0 are given"),
        (["--interpret", "--argument=dense<1> : tensor<2xf3>", "-"], "line 1, column 21: 'f3' is no element type"),
    ],
)
def test_names_the_mistake(arguments: list[str], message: str) -> None:
    assert neuron_opt(*arguments, status=1, text=PROGRAM) == f"neuron-opt: {message}\n"
