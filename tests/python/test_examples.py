"""The training example on the CPU: what it promises about seeds, checkpoints and reports does not depend on the device."""

import json
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
import loss_curve  # noqa: E402
import text_data  # noqa: E402
import train_gpt  # noqa: E402

TINY = ["--layers", "1", "--heads", "2", "--width", "32", "--context", "32", "--batch", "4", "--sample", "12"]
KEYS = {
    "loss_first",
    "loss_last",
    "losses",
    "tokens_per_second",
    "fallback_ops",
    "flush_reasons",
    "fused_share",
    "compiled_kernels",
    "compile_seconds",
}


def train(*arguments: str) -> dict:
    return train_gpt.main(["--device", "cpu", *TINY, *arguments])


def test_report_checkpoint_and_curve(tmp_path):
    files = {name: tmp_path / name for name in ("result.json", "curve.png", "model.pt")}
    result = train(
        *("--steps", "12", "--json", str(files["result.json"])),
        *("--plot", str(files["curve.png"]), "--checkpoint", str(files["model.pt"])),
    )
    written = json.loads(files["result.json"].read_text())
    assert written.keys() >= KEYS
    assert written["losses"] == result["losses"]
    assert len(result["losses"]) == 12
    assert result["loss_first"] == pytest.approx(5.545, abs=0.05)  # ln 256: nothing is known at the start
    assert result["loss_last"] < result["loss_first"] - 0.1
    assert len(result["sample"]) == len("\nKING. ") + 12
    assert files["curve.png"].read_bytes().startswith(b"\x89PNG")
    state = torch.load(files["model.pt"], weights_only=True)
    assert state["step"] == 12


def test_same_seed_same_losses():
    first, second, other = train("--steps", "4"), train("--steps", "4"), train("--steps", "4", "--seed", "1")
    assert first["losses"] == second["losses"]
    assert first["losses"] != other["losses"]


def test_autocast_trains_in_bfloat16():
    plain, mixed = train("--steps", "6"), train("--steps", "6", "--autocast")
    assert mixed["autocast"]
    assert not plain["autocast"]
    assert mixed["losses"] != plain["losses"]
    assert mixed["losses"] == pytest.approx(plain["losses"], abs=0.05)


def test_resuming_changes_nothing(tmp_path):
    checkpoint = tmp_path / "model.pt"
    straight = train("--steps", "10", "--checkpoint", str(checkpoint), "--save-every", "6", "--sample", "0")
    options = train_gpt.parse(["--device", "cpu", *TINY, "--steps", "10"])
    config = train_gpt.Config(layers=1, heads=2, width=32, context=32)
    trainer = train_gpt.Trainer(options, config, "cpu")
    for _ in range(6):
        trainer.train_step()
    trainer.save(checkpoint)
    resumed = train("--steps", "10", "--resume", str(checkpoint), "--sample", "0")
    assert resumed["losses"] == straight["losses"]


def test_checkpoint_of_another_model_is_refused(tmp_path):
    train("--steps", "1", "--checkpoint", str(tmp_path / "model.pt"), "--sample", "0")
    with pytest.raises(SystemExit, match="holds a model of .*'width': 32.*this run has .*'width': 64"):
        train_gpt.main(["--device", "cpu", *TINY, "--width", "64", "--resume", str(tmp_path / "model.pt")])


def test_compare_with_float64(tmp_path, capsys):
    result = train("--steps", "6", "--compare", "--plot", str(tmp_path / "curves.png"))
    assert set(result["losses"]) == {"float64", "cpu"}
    assert 0 < result["max_loss_difference"]["cpu"] < 1e-4
    assert "largest |loss - loss in float64|" in capsys.readouterr().out


def test_texts():
    data, name = text_data.load_bytes()
    assert data.dtype == torch.uint8
    assert name in ("Shakespeare", "Python documentation")
    assert int(data.max()) < 128
    documentation = text_data.documentation_texts()
    assert sum(map(len, documentation)) > 300_000


def test_curve_with_a_single_point_and_with_nan(tmp_path):
    loss_curve.draw(tmp_path / "a.png", "one", {"loss": [1.0]})
    loss_curve.draw(tmp_path / "b.png", "two", {"loss": [1.0, float("nan"), 0.5], "other": [2.0, 1.0]})
    assert (tmp_path / "b.png").stat().st_size > 1000


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (2.3, 5.6), (1.0, 400.0), (0.001, 0.0011)])
def test_ticks_are_round_and_inside(low, high):
    marks = loss_curve.ticks(low, high, 8)
    assert 2 <= len(marks) <= 9
    assert all(low - 1e-12 <= mark <= high + 1e-12 for mark in marks)
