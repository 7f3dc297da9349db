"""The demo on the device: no fallback, as exact as PyTorch's CPU, the same bits again and with any number of threads."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
import train_gpt

SIZE = ["--layers", "2", "--heads", "4", "--width", "64", "--context", "64", "--batch", "4", "--sample", "0"]


@pytest.fixture(autouse=True)
def keep_threads():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def train(*arguments):
    return train_gpt.main([*SIZE, *arguments])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_losses_are_as_exact_as_on_the_cpu(seed):
    result = train("--compare", "--steps", "50", "--seed", str(seed), "--threads", "1")
    assert result["fallback_ops"] == {}
    difference = result["max_loss_difference"]
    assert difference["neuron"] <= 2 * difference["cpu"] + 1e-4
    losses = result["losses"]["neuron"]
    assert losses[-1] < losses[0] - 1


def test_losses_under_autocast_are_as_exact_as_the_cpus():
    result = train("--compare", "--autocast", "--steps", "50", "--threads", "1")
    assert result["fallback_ops"] == {}
    difference = result["max_loss_difference"]
    # Both round products to bfloat16; gelu and attention round at other places.
    assert 1e-4 < difference["neuron"] <= 2 * difference["cpu"] + 5e-3
    losses = result["losses"]["neuron"]
    assert losses[-1] < losses[0] - 1


def test_autocast_gives_the_same_bits_with_other_threads():
    runs = [train("--autocast", "--steps", "12", "--threads", threads) for threads in ("1", "2")]
    assert runs[0]["autocast"]
    assert runs[0]["losses"] == runs[1]["losses"]
    assert runs[0]["losses"] != train("--steps", "12", "--threads", "1")["losses"]


def test_same_bits_again_and_with_other_threads():
    first = train("--steps", "12", "--threads", "2")
    again = train("--steps", "12", "--threads", "2")
    single = train("--steps", "12", "--threads", "1")
    assert first["losses"] == again["losses"]
    assert first["losses"] == single["losses"]


def test_report_of_the_device():
    result = train("--steps", "12")
    assert result["fallback_ops"] == {}
    assert result["compiled_kernels"] >= 0
    assert result["compile_seconds"] >= 0
    assert sum(result["flush_reasons"].values()) >= 12  # each loss.item() is one
    assert result["max_memory_allocated"] > 0


def test_checkpoint_resumes_on_another_device(tmp_path):
    checkpoint = tmp_path / "model.pt"
    whole = train("--steps", "10", "--checkpoint", str(checkpoint), "--save-every", "0")
    state = torch.load(checkpoint, map_location="cpu", weights_only=True)
    assert state["step"] == 10
    options = train_gpt.parse([*SIZE, "--device", "cpu", "--steps", "12"])
    config = train_gpt.Config(layers=2, heads=4, width=64, context=64)
    trainer = train_gpt.Trainer(options, config, "cpu")
    trainer.load(checkpoint)
    assert trainer.losses == whole["losses"]
    assert trainer.train_step() < whole["loss_first"]
