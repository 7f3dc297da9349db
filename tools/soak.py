"""Keeps the device busy with everything at once and watches that nothing grows: `make soak ARGS="--minutes 10"`.

Training of changing batch sizes, threads, streams and events, fallbacks, exceptions, memory that runs out, kernels that
push each other out of the cache, copies and serialisation: in random order, each checked against the CPU. After a warm-up
the memory of the process and of the device, its threads and its open files are sampled; the exit code is 1 when one of
them grows, or a result is wrong.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import io
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

# Small enough that kernels are evicted all the time; read when torch loads the package.
_cache = tempfile.TemporaryDirectory(prefix="neuron-soak-")
os.environ.setdefault("TORCH_NEURONX_CACHE_DIR", _cache.name)
os.environ.setdefault("TORCH_NEURONX_CACHE_SIZE", "256KiB")
os.environ.setdefault("TORCH_NEURONX_MEMORY_LIMIT", "512MiB")

import torch  # noqa: E402
import torch.nn.functional as functional  # noqa: E402
from torch import nn  # noqa: E402

MIB = 1 << 20


def expect_close(actual: torch.Tensor, expected: torch.Tensor, tolerance: float = 1e-4) -> None:
    torch.testing.assert_close(actual.cpu(), expected, rtol=tolerance, atol=tolerance)


class Training:
    """A small transformer block: forward, backward, clipping and an optimizer step; now and then with autocast."""

    def __init__(self, seed: int):
        torch.manual_seed(seed)
        self.model = nn.Sequential(
            nn.Embedding(64, 32),
            nn.TransformerEncoderLayer(32, 2, 64, dropout=0.1, batch_first=True, norm_first=True),
            nn.Linear(32, 64),
        ).to("neuron")
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.first: float | None = None
        self.last = 0.0

    def __call__(self, choose: random.Random) -> None:
        batch, length = choose.randint(1, 24), choose.choice([8, 16, 31])
        tokens = (torch.arange(batch * length) % 17).reshape(batch, length).to("neuron")
        with torch.autocast("neuron", enabled=choose.random() < 0.3):
            logits = self.model(tokens)
            loss = functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), tokens[:, 1:].flatten())
        self.optimizer.zero_grad(set_to_none=choose.random() < 0.5)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.last = loss.item()
        self.first = self.last if self.first is None else self.first
        assert self.last == self.last, "the loss is not a number"


def chains(choose: random.Random) -> None:
    """One of many fused kernels, exact on both devices."""
    pick = random.Random(choose.randrange(400))
    x = torch.arange(choose.randint(1, 3000), dtype=torch.float32) % 13 - 6
    y = x.to("neuron")
    for _ in range(pick.randint(2, 8)):
        step = pick.randrange(6)
        for_both: Callable[[torch.Tensor], torch.Tensor] = [
            lambda t: t + 1,
            lambda t: t * 0.5,
            lambda t: t.abs() - t,
            lambda t: t.clamp(-8, 8),
            lambda t: torch.where(t > 0, t, -t * 2),
            lambda t: t.to(torch.bfloat16).float(),
        ][step]
        x, y = for_both(x), for_both(y)
    assert torch.equal(y.cpu(), x)


def shapes(choose: random.Random) -> None:
    """Products and reductions of sizes that never come back."""
    a, b, c = (choose.randint(1, 90) for _ in range(3))
    x, y = torch.randn(a, b), torch.randn(b, c)
    expect_close(x.neuron() @ y.neuron(), x @ y)
    expect_close(torch.softmax(x.neuron(), -1).sum(0), torch.softmax(x, -1).sum(0))
    assert torch.equal(y.neuron().T.contiguous().cpu(), y.T.contiguous())


def in_threads(choose: random.Random) -> None:
    wrong: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            chains(random.Random(seed))
            shapes(random.Random(seed))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(choose.randrange(1 << 30),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]


class Streams:
    def __init__(self) -> None:
        self.side = torch.neuron.Stream()

    def __call__(self, choose: random.Random) -> None:
        x = torch.full((choose.randint(1, 5000),), 3.0, device="neuron")
        made, done = torch.neuron.Event(), torch.neuron.Event(enable_timing=True)
        made.record()
        with torch.neuron.stream(self.side):
            made.wait(self.side)
            y = x * 2
            x.record_stream(self.side)
            done.record(self.side)
        del x
        if choose.random() < 0.5:
            done.synchronize()
            assert done.query()
        torch.neuron.current_stream().wait_stream(self.side)
        assert (y + 1).eq(7).all().item()


def fallbacks(choose: random.Random) -> None:
    """Without a kernel of the device: copied to the CPU and back."""
    x = torch.randn(choose.randint(2, 9), 4)
    expect_close(torch.linalg.svdvals(x.neuron()), torch.linalg.svdvals(x), 1e-3)


def exceptions(choose: random.Random) -> None:
    kind = choose.randrange(3)
    try:
        if kind == 0:
            torch.ones(2, 3, device="neuron") + torch.ones(2, 4, device="neuron")
        elif kind == 1:  # found out when it is executed
            functional.embedding(torch.tensor([99], device="neuron"), torch.ones(4, 4, device="neuron")).sum().item()
        else:
            torch.ones(3, device="neuron").backward()
    except (RuntimeError, IndexError):
        pass
    else:
        raise AssertionError(f"no error of kind {kind}")
    assert (torch.ones(3, device="neuron") + 1).tolist() == [2, 2, 2]


def out_of_memory(choose: random.Random) -> None:
    kept = []
    try:
        for _ in range(40):
            kept.append(torch.ones(choose.randint(4, 32) * MIB // 4, device="neuron"))
    except torch.OutOfMemoryError:
        pass
    else:
        raise AssertionError("memory never ran out")
    del kept
    assert torch.ones(1000, device="neuron").sum().item() == 1000


def copies(choose: random.Random) -> None:
    x = torch.randn(choose.randint(1, 20000))
    y = x.pin_memory().to("neuron", non_blocking=True)
    file = io.BytesIO()
    torch.save({"y": y}, file)
    file.seek(0)
    assert torch.equal(torch.load(file)["y"].cpu(), x)
    assert torch.equal(torch.from_dlpack(y).cpu(), x)
    y.resize_(choose.randint(1, 30000))
    assert torch.equal(y[: min(len(x), len(y))].cpu(), x[: min(len(x), len(y))])


def cycles(choose: random.Random) -> None:
    """Tensors that only the garbage collector frees, with a hook on their gradient."""
    seen = []
    x = torch.ones(choose.randint(1, 999), device="neuron", requires_grad=True)
    x.register_hook(lambda gradient: seen.append(gradient))
    y = (x * x).sum()
    y.backward()
    holder: dict[str, object] = {"x": x, "seen": seen}
    holder["self"] = holder
    assert seen[0].eq(2).all().item()


def release(choose: random.Random) -> None:
    torch.neuron.empty_cache()
    torch.neuron.reset_peak_memory_stats()


# --- what may not grow -----------------------------------------------------------------------------------------------
_libc = ctypes.CDLL(None)


def sample() -> dict[str, float]:
    gc.collect()
    torch.neuron.synchronize()
    torch.neuron.empty_cache()
    _libc.malloc_trim(0)  # what is left is held by someone
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "rss": pages * os.sysconf("SC_PAGE_SIZE") / MIB,
        "device": torch.neuron.memory_allocated() / MIB,
        "threads": len(os.listdir("/proc/self/task")),
        "files": len(os.listdir("/proc/self/fd")),
    }


def growth(samples: list[dict[str, float]], name: str) -> float:
    """From the second quarter of the samples to the last; the first quarter fills caches."""
    values = [entry[name] for entry in samples]
    quarter = max(1, len(values) // 4)
    return statistics.median(values[-quarter:]) - statistics.median(values[quarter : 2 * quarter])


ALLOWED = {"rss": 6.0, "device": 0.01, "threads": 0.0, "files": 0.0}  # MiB, MiB, threads, files


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", help="workloads by name")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    choose = random.Random(arguments.seed)
    training = Training(arguments.seed)
    workloads: dict[str, tuple[int, Callable[[random.Random], None]]] = {
        "training": (6, training),
        "chains": (6, chains),
        "shapes": (6, shapes),
        "threads": (2, in_threads),
        "streams": (4, Streams()),
        "fallbacks": (1, fallbacks),
        "exceptions": (2, exceptions),
        "out_of_memory": (1, out_of_memory),
        "copies": (3, copies),
        "cycles": (3, cycles),
        "release": (1, release),
    }
    names = arguments.only or list(workloads)
    weights = [workloads[name][0] for name in names]
    done: Counter[str] = Counter()
    samples: list[dict[str, float]] = []
    start = time.monotonic()
    interval = arguments.minutes * 60 / 40
    while (elapsed := time.monotonic() - start) < arguments.minutes * 60:
        for name in choose.choices(names, weights, k=50):
            workloads[name][1](choose)
            done[name] += 1
        if elapsed > interval * (len(samples) + 1):
            samples.append(sample())
            print(f"{elapsed:6.0f} s  {sum(done.values()):7d} steps  {samples[-1]}", flush=True)
    report = torch.neuron.eager_report()
    grown = {name: growth(samples, name) for name in ALLOWED}
    result = {
        "steps": dict(done),
        "growth": grown,
        "loss": (training.first, training.last),
        "compiled_kernels": report["compiled_kernels"],
        "disk_hits": report["disk_hits"],
        "cache_bytes": sum(path.stat().st_size for path in Path(_cache.name).rglob("*") if path.is_file()),
        "samples": samples,
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1))
    print(f"{sum(done.values())} steps {dict(done)}")
    print(f"compiled {report['compiled_kernels']} kernels, took {report['disk_hits']} from disk; loss {result['loss']}")
    bad = {name: value for name, value in grown.items() if value > ALLOWED[name]}
    for name, value in grown.items():
        print(f"growth of {name}: {value:+.2f} (allowed {ALLOWED[name]}){'  TOO MUCH' if name in bad else ''}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
