"""Replaying a graph against recording the same step eagerly, on the device, and against CPU eager:
``python benchmarks/graphs.py``. Times and their meaning are those of harness.py; losses must agree bit for bit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import torch_neuronx.testing
from chat_cases import decoding, replaying
from harness import Times, duration, measure, pin_to_one_core

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from gpt import GPT, Config  # noqa: E402

ROUNDS, COUNT = 7, 20
KEPT: list[Callable] = []


def perceptron() -> nn.Module:
    return nn.Sequential(*(m for _ in range(4) for m in (nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64))))


def forward(device: str) -> Callable[[], Tensor]:
    net = perceptron().to(device)
    x = torch.randn(8, 64, device=device)

    def step() -> Tensor:
        with torch.no_grad():
            return net(x)

    return step


def training(device: str) -> Callable[[], Tensor]:
    net = perceptron().to(device)
    x, target = torch.randn(8, 64, device=device), torch.randint(64, (8,), device=device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)

    def step() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(x), target)
        loss.backward()
        optimizer.step()
        return loss

    return step


def gpt(device: str) -> Callable[[], Tensor]:
    net = GPT(Config(vocabulary=64, context=32, layers=2, heads=2, width=64)).to(device)
    x = torch.randint(64, (2, 32), device=device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)

    def step() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(x).flatten(0, 1), x.flatten())
        loss.backward()
        optimizer.step()
        return loss

    return step


def replay(make: Callable) -> Callable[[], Tensor]:
    step = make("neuron")
    for _ in range(3):
        step()
    graph = torch.neuron.NeuronGraph()
    with torch.neuron.graph(graph):
        result = step()

    def run() -> Tensor:
        graph.replay()
        return result.clone()

    KEPT.append(step)  # what the graph works on lives as long as it is replayed
    return run


def main() -> None:
    pin_to_one_core()
    print("| step | CPU eager | neuron eager | neuron graph | host: eager / graph | total: eager / graph |")
    print("|---|---|---|---|---|---|")
    for name, make, graphed in (
        ("4 layers forward, 8x64", forward, replay),
        ("4 layers training, 8x64", training, replay),
        ("GPT training, 2 layers, width 64", gpt, replay),
        ("decoding step of the chat model", decoding(torch.float32), lambda _: replaying(torch.float32)("neuron")),
    ):
        torch.manual_seed(0)
        steps = {"cpu": make("cpu")}
        torch.manual_seed(0)
        steps["eager"] = make("neuron")
        torch.manual_seed(0)
        steps["graph"] = graphed(make)
        for _ in range(3):
            steps["eager"]()  # as many as the graph has taken
        times = {which: Times() for which in steps}
        for which, step in steps.items():
            for _ in range(4):
                measure("cpu" if which == "cpu" else "neuron", step, COUNT, Times())
            torch_neuronx.testing.wait_for_compiles()
        for _ in range(ROUNDS):
            sums = {
                which: measure("cpu" if which == "cpu" else "neuron", step, COUNT, times[which])
                for which, step in steps.items()
            }
            if sums["eager"] != sums["graph"]:
                raise AssertionError(f"{name}: checksum {sums['graph']} of the graph, {sums['eager']} eagerly")
        eager, graphed = times["eager"], times["graph"]
        shown = " | ".join(f"{duration(t.host)}, {duration(t.total)}" for t in times.values())
        print(f"| {name} | {shown} | {eager.host / graphed.host:.1f} | {eager.total / graphed.total:.2f} |", flush=True)
    print("\neach: host time until the calls have returned, CPU time of all threads until the results are there")


if __name__ == "__main__":
    main()
