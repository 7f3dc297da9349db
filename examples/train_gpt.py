"""Trains a byte-level GPT on real text, on the neuron device by default.

    python examples/train_gpt.py                    6 layers, width 384, context 256
    python examples/train_gpt.py --small            the two-minute version of `make demo`
    python examples/train_gpt.py --compare          neuron and CPU in float32 against float64 on the CPU
    python examples/train_gpt.py --autocast         products in bfloat16, parameters and optimizer in float32
    python examples/train_gpt.py --device cpu

Initial weights, batches and samples are drawn on the CPU from --seed: every device sees the same numbers.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import math
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import torch

from gpt import GPT, Config
from loss_curve import draw
from text_data import load_bytes

FULL = Config()
SMALL = Config(layers=4, heads=4, width=128, context=128)


class Progress:
    """A progress bar on a terminal, otherwise a line every tenth of the way."""

    def __init__(self, title: str, total: int):
        self.title, self.total, self.start = title, total, time.perf_counter()
        self.interactive = sys.stderr.isatty()

    def show(self, done: int, loss: float, tokens_per_second: float) -> None:
        last = done == self.total
        if not self.interactive and not last and done % max(self.total // 10, 1) != 0 and done != 1:
            return
        filled = 30 * done // self.total
        left = (time.perf_counter() - self.start) / done * (self.total - done)
        text = (
            f"{self.title} [{'#' * filled}{'.' * (30 - filled)}] {done}/{self.total}  loss {loss:.4f}  "
            f"{tokens_per_second:,.0f} tokens/s  {left:.0f} s left"
        )
        print(
            f"\r{text}\x1b[K" if self.interactive else text,
            end="\n" if last or not self.interactive else "",
            file=sys.stderr,
        )
        sys.stderr.flush()


def device_facts(device: str) -> dict:
    """What the device reports about its own work; zeros on other devices."""
    facts: dict = {
        "fallback_ops": {},
        "flush_reasons": {},
        "fused_share": 0.0,
        "compiled_kernels": 0,
        "compile_seconds": 0.0,
        "max_memory_allocated": 0,
    }
    if device != "neuron":
        return facts
    import torch_neuronx

    torch.neuron.synchronize()
    facts["fallback_ops"] = dict(Counter(torch_neuronx.get_fallback_ops()))
    facts["max_memory_allocated"] = torch.neuron.max_memory_allocated()
    report = torch_neuronx.eager_report()
    facts.update((key, report[key]) for key in ("flush_reasons", "fused_share", "compiled_kernels", "compile_seconds"))
    return facts


class Trainer:
    def __init__(self, arguments: argparse.Namespace, config: Config, device: str, dtype: torch.dtype = torch.float32):
        self.arguments, self.config, self.device = arguments, config, device
        self.mixed = arguments.autocast and dtype == torch.float32
        self.data, self.source = load_bytes()
        self.generator = torch.Generator().manual_seed(arguments.seed)
        model = GPT(config)
        model.initialize(self.generator)
        self.model = model.to(device=device, dtype=dtype)
        decayed = [p for p in self.model.parameters() if p.dim() >= 2]
        others = [p for p in self.model.parameters() if p.dim() < 2]
        self.optimizer = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
            lr=arguments.learning_rate,
            betas=(0.9, 0.95),
        )
        self.step = 0
        self.losses: list[float] = []
        self.step_seconds: list[float] = []

    def batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        length = self.config.context
        starts = torch.randint(len(self.data) - length - 1, (self.arguments.batch,), generator=self.generator)
        rows = torch.stack([self.data[start : start + length + 1] for start in starts.tolist()]).long()
        return rows[:, :-1].to(self.device), rows[:, 1:].to(self.device)

    def precision(self) -> contextlib.AbstractContextManager:
        """What the model is evaluated under."""
        if not self.mixed:
            return contextlib.nullcontext()
        return torch.autocast(torch.device(self.device).type, dtype=torch.bfloat16)

    def learning_rate(self) -> float:
        """Linear warm-up, then a cosine down to a tenth."""
        warm_up = min(20, max(self.arguments.steps // 4, 1))
        if self.step < warm_up:
            return self.arguments.learning_rate * (self.step + 1) / warm_up
        part = min((self.step - warm_up) / max(self.arguments.steps - warm_up, 1), 1.0)
        return self.arguments.learning_rate * (0.55 + 0.45 * math.cos(math.pi * part))

    def train_step(self) -> float:
        start = time.perf_counter()
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate()
        tokens, targets = self.batch()
        self.optimizer.zero_grad(set_to_none=True)
        with self.precision():
            loss = self.model.loss(tokens, targets)
        loss.backward()
        self.optimizer.step()
        value = loss.item()
        self.step += 1
        self.losses.append(value)
        self.step_seconds.append(time.perf_counter() - start)
        return value

    def tokens_per_second(self) -> float:
        """Over all but the first steps, in which kernels are compiled."""
        counted = self.step_seconds[3:] or self.step_seconds
        return len(counted) * self.arguments.batch * self.config.context / sum(counted) if counted else 0.0

    def train(self, title: str) -> None:
        first, total = self.step, self.arguments.steps
        progress = Progress(title, max(total - first, 1))
        while self.step < total:
            loss = self.train_step()
            progress.show(self.step - first, loss, self.tokens_per_second())
            if self.arguments.checkpoint and self.arguments.save_every and self.step % self.arguments.save_every == 0:
                self.save(self.arguments.checkpoint)

    def save(self, path: Path) -> None:
        state = {
            "config": asdict(self.config),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "step": self.step,
            "losses": self.losses,
        }
        partial = path.with_name(path.name + ".partial")
        torch.save(state, partial)
        partial.replace(path)

    def load(self, path: Path) -> None:
        state = torch.load(path, map_location="cpu", weights_only=True)
        if state["config"] != asdict(self.config):
            raise SystemExit(f"{path} holds a model of {state['config']}, this run has {asdict(self.config)}")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.generator.set_state(state["generator"])
        self.step, self.losses = state["step"], state["losses"]

    @torch.no_grad()
    def sample(self, prompt: str, count: int) -> str:
        """Continues the prompt; each byte is drawn on the CPU."""
        generator = torch.Generator().manual_seed(self.arguments.seed)
        text = list(prompt.encode())
        self.model.eval()
        for _ in range(count):
            tokens = torch.tensor([text[-self.config.context :]]).to(self.device)
            with self.precision():
                logits = self.model(tokens)[0, -1].cpu().float()
            text.append(int(torch.multinomial(torch.softmax(logits / 0.8, -1), 1, generator=generator)))
        self.model.train()
        return bytes(text).decode("ascii", errors="replace")


def compare(arguments: argparse.Namespace, config: Config) -> dict:
    """The same run three times; float64 on the CPU is the reference."""
    runs = {"float64": ("cpu", torch.float64), "cpu": ("cpu", torch.float32)}
    if arguments.device != "cpu":
        runs[arguments.device] = (arguments.device, torch.float32)
    losses: dict[str, list[float]] = {}
    for name, (device, dtype) in runs.items():
        trainer = Trainer(arguments, config, device, dtype)
        trainer.train(f"{name:8s}")
        losses[name] = trainer.losses
    differences = {
        name: max(abs(ours - exact) for ours, exact in zip(values, losses["float64"], strict=True))
        for name, values in losses.items()
        if name != "float64"
    }
    for name, difference in differences.items():
        print(f"largest |loss - loss in float64|  {name:8s} {difference:.3e}")
    if arguments.plot:
        draw(arguments.plot, "loss per step", losses)
    return {"losses": losses, "max_loss_difference": differences, **device_facts(arguments.device)}


def run(arguments: argparse.Namespace, config: Config) -> dict:
    trainer = Trainer(arguments, config, arguments.device)
    parameters = sum(p.numel() for p in trainer.model.parameters())
    print(
        f"{parameters / 1e6:.2f} M parameters, {len(trainer.data) / 1e6:.1f} MB of {trainer.source}, "
        f"batch {arguments.batch} x {config.context} on {arguments.device}, {torch.get_num_threads()} threads"
        + (", bfloat16 autocast" if trainer.mixed else "")
    )
    if arguments.resume:
        trainer.load(arguments.resume)
        print(f"resumed at step {trainer.step}")
    trainer.train("training")
    facts = device_facts(arguments.device)
    if arguments.checkpoint:
        trainer.save(arguments.checkpoint)
        print(f"checkpoint: {arguments.checkpoint}")
    if arguments.plot:
        draw(arguments.plot, f"GPT on {trainer.source}, {arguments.device}", {"loss": trainer.losses})
        print(f"loss curve: {arguments.plot}")
    sample = trainer.sample(arguments.prompt, arguments.sample) if arguments.sample else ""
    if sample:
        print(f"--- sample\n{sample}\n---")
    steps = sorted(trainer.step_seconds) or [0.0]
    result = {
        "device": arguments.device,
        "seed": arguments.seed,
        "autocast": trainer.mixed,
        "threads": torch.get_num_threads(),
        "config": asdict(config) | {"batch": arguments.batch},
        "source": trainer.source,
        "loss_first": trainer.losses[0] if trainer.losses else None,
        "loss_last": trainer.losses[-1] if trainer.losses else None,
        "losses": trainer.losses,
        "tokens_per_second": trainer.tokens_per_second(),
        "first_step_seconds": (trainer.step_seconds or [0.0])[0],
        "median_step_seconds": steps[len(steps) // 2],
        "sample": sample,
        **facts,
    }
    if trainer.losses:
        print(
            f"loss {result['loss_first']:.4f} -> {result['loss_last']:.4f} in {trainer.step} steps, "
            f"{result['tokens_per_second']:,.0f} tokens/s, first step {result['first_step_seconds']:.2f} s"
        )
    if arguments.device == "neuron":
        print(
            f"fallbacks {sum(facts['fallback_ops'].values())}, fused share {facts['fused_share']:.0%}, "
            f"{facts['compiled_kernels']} kernels compiled in {facts['compile_seconds']:.2f} s, "
            f"flushes {facts['flush_reasons']}"
        )
    return result


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="neuron", help="neuron (default) or cpu")
    parser.add_argument("--small", action="store_true", help=f"{SMALL.layers} layers, width {SMALL.width}")
    parser.add_argument("--steps", type=int, help="training steps in all (default 300; 400 with --small)")
    parser.add_argument("--batch", type=int, help="sequences per step (default 8; 16 with --small)")
    parser.add_argument("--layers", type=int)
    parser.add_argument("--heads", type=int)
    parser.add_argument("--width", type=int)
    parser.add_argument("--context", type=int)
    parser.add_argument("--learning-rate", type=float, help="peak (default 6e-4; 1.5e-3 with --small)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="threads of the device and of the CPU")
    parser.add_argument("--autocast", action="store_true", help="evaluate the model under bfloat16 autocast")
    parser.add_argument("--compare", action="store_true", help="this device, cpu and float64 on the cpu, same seed")
    parser.add_argument("--checkpoint", type=Path, help="where to save model, optimizer and generator")
    parser.add_argument("--save-every", type=int, default=100, help="steps between checkpoints")
    parser.add_argument("--resume", type=Path, help="checkpoint to go on from")
    parser.add_argument("--plot", type=Path, help="PNG of the loss curve (needs pillow)")
    parser.add_argument("--json", type=Path, help="results and the device's own figures")
    parser.add_argument("--sample", type=int, default=200, help="bytes of text to write at the end")
    parser.add_argument("--prompt", default="\nKING. ")
    options = parser.parse_args(arguments)
    if options.plot and importlib.util.find_spec("PIL") is None:
        parser.error("--plot draws with the package pillow, which is not installed: pip install pillow")
    defaults = (
        {"steps": 400, "batch": 16, "learning_rate": 1.5e-3}
        if options.small
        else {"steps": 300, "batch": 8, "learning_rate": 6e-4}
    )
    for name, value in defaults.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    return options


def main(arguments: list[str] | None = None) -> dict:
    options = parse(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    base = asdict(SMALL if options.small else FULL)
    config = Config(**{name: getattr(options, name, None) or value for name, value in base.items()})
    result = compare(options, config) if options.compare else run(options, config)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    return result


if __name__ == "__main__":
    main()
