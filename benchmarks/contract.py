"""Figures the project promises beside speed: learning, first step, memory. Each is measured in processes of its own.

python benchmarks/contract.py                 all of them; exits 1 when a limit is exceeded
python benchmarks/contract.py --only memory
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TRAIN = HERE.parent / "examples" / "train_gpt.py"


def child(code: str, mode: str, cache: str) -> dict:
    """Runs code that prints one line of JSON, pinned to one core, with a cache folder of its own."""
    prelude = (
        "import os, sys, json, time, resource; os.sched_setaffinity(0, {max(os.sched_getaffinity(0))}); import torch; "
        f"torch.set_num_threads(1); sys.path.insert(0, {str(TRAIN.parent)!r})\n"
    )
    environment = os.environ | {"TORCH_NEURONX_EAGER_MODE": mode, "TORCH_NEURONX_CACHE_DIR": cache}
    result = subprocess.run([sys.executable, "-c", prelude + code], capture_output=True, text=True, env=environment)
    if result.returncode:
        raise RuntimeError(f"mode {mode}:\n{result.stderr[-2000:]}")
    return json.loads(result.stdout.strip().splitlines()[-1])


STEPS = """
import train_gpt
options = train_gpt.parse({arguments!r})
trainer = train_gpt.Trainer(options, train_gpt.SMALL if options.small else train_gpt.FULL, "neuron")
cpu = []
for _ in range({steps}):
    before = time.process_time()
    trainer.train_step()
    cpu.append(time.process_time() - before)
print(json.dumps(dict(wall=trainer.step_seconds, cpu=cpu, peak=torch.neuron.max_memory_allocated())))
"""

SMALL_STEPS = """
def rss():
    for line in open("/proc/self/status"):
        if line.startswith("VmRSS"): return int(line.split()[1]) / 1024
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4)).to("neuron")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
def step(batch):
    optimizer.zero_grad()
    loss = model(torch.ones(batch, 16, device="neuron")).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()
for index in range(1000): step(8)
start = rss()
for index in range(10000): step(8)
fixed = rss()
# Largest first: what larger buffers need is not growth.
for index in range(1000): step(2000 - index)
varied_start = rss()
for index in range(1000): step(1000 - index)
print(json.dumps(dict(fixed=(fixed - start) / 10, varied=rss() - varied_start, first_sizes=varied_start - fixed)))
"""


def learning() -> list[tuple[str, float, float, str]]:
    """(name, figure, limit, unit)."""
    code = STEPS.format(arguments=["--small", "--device", "neuron"], steps=40)
    with tempfile.TemporaryDirectory() as immediate, tempfile.TemporaryDirectory() as adaptive:
        base, ours = child(code, "immediate", immediate), child(code, "adaptive", adaptive)
    late = [sorted(run["cpu"][-15:])[7] for run in (ours, base)]
    return [
        ("adaptive against immediate, first 10 steps", sum(ours["cpu"][:10]) / sum(base["cpu"][:10]), 1.15, "x"),
        ("adaptive against immediate, later steps", late[0] / late[1], 1.02, "x"),
        ("peak memory, adaptive against immediate", ours["peak"] / base["peak"], 1.1, "x"),
    ]


def first_step() -> list[tuple[str, float, float, str]]:
    rows = []
    for arguments in (["--small", "--device", "neuron"], ["--device", "neuron"]):
        with tempfile.TemporaryDirectory() as cache:
            run = child(STEPS.format(arguments=arguments, steps=1), "adaptive", cache)
        rows.append((f"first step, cold cache ({' '.join(arguments[:-2]) or 'full size'})", run["wall"][0], 3.0, "s"))
    return rows


def memory() -> list[tuple[str, float, float, str]]:
    with tempfile.TemporaryDirectory() as cache:
        run = child(SMALL_STEPS, "adaptive", cache)
    return [
        ("RSS growth per 1,000 steps, same size", run["fixed"], 0.5, "MB"),
        ("RSS growth per 1,000 steps, new batch size each", run["varied"], 0.5, "MB"),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"learning": learning, "first_step": first_step, "memory": memory}
    parser.add_argument("--only", choices=parts)
    arguments = parser.parse_args()
    exceeded = 0
    print("| promise | measured | limit | |\n|---|---|---|---|")
    for name, part in parts.items():
        if arguments.only in (None, name):
            for title, figure, limit, unit in part():
                kept = figure <= limit
                exceeded += not kept
                print(
                    f"| {title} | {figure:.3g} {unit} | {limit} {unit} | {'kept' if kept else 'EXCEEDED'} |", flush=True
                )
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
