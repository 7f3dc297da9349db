"""The chat model on a device beside PyTorch's CPU: speed in turns, greedy tokens, teacher-forced logits."""

from __future__ import annotations

import argparse
import time
from collections import Counter

import torch

import smollm
from generation_timer import GenerationTimer
from graph_decoder import GraphDecoder

PROMPT = "Why is the sky blue? Explain it to a child."


def prompt_tokens(tokenizer, text: str) -> torch.Tensor:
    encoded = tokenizer.apply_chat_template(
        [{"role": "user", "content": text}], add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    return encoded["input_ids"]


class Generator:
    """Greedy generation of a given number of tokens, and the logits behind each: replayed graphs on the device, unless
    `eager`, and transformers' generate() on the CPU."""

    def __init__(self, device: str, dtype: torch.dtype, eager: bool):
        self.model = smollm.load(device, dtype)
        self.model.generation_config.eos_token_id = None  # goes on behind the end of the text
        self.decoder = None if eager or self.model.device.type == "cpu" else GraphDecoder(self.model)

    def generate(self, tokens: torch.Tensor, count: int) -> tuple[list[int], GenerationTimer]:
        timer = GenerationTimer()
        if self.decoder is not None:
            self.decoder.go_back(0)
            prompt = tokens[0].tolist()
            return timer.watch(prompt, self.decoder.stream(prompt, count)), timer
        tokens = tokens.to(self.model.device)
        options = {"max_new_tokens": count, "do_sample": False, "streamer": timer}
        output = self.model.generate(tokens, attention_mask=torch.ones_like(tokens), **options)
        return output[0, tokens.shape[1] :].tolist(), timer

    def logits(self, tokens: torch.Tensor, answer: list[int]) -> torch.Tensor:
        """As `forced_logits`."""
        if self.decoder is None:
            return forced_logits(self.model, tokens, answer)
        self.decoder.go_back(0)
        return self.decoder.score(tokens[0].tolist(), answer).cpu().double()


@torch.no_grad()
def forced_logits(model, tokens: torch.Tensor, answer: list[int]) -> torch.Tensor:
    """Logits (float64, on the CPU) of every token of `answer`, given the prompt and the answer before it."""
    sequence = torch.cat([tokens, torch.tensor([answer])], dim=1).to(model.device)
    logits = model(sequence, use_cache=False).logits[0, tokens.shape[1] - 1 : -1]
    return logits.cpu().double()


def first_close_call(logits: torch.Tensor, gap: float = 1e-3) -> int:
    """The first position at which the two best tokens are closer than `gap`; the length when there is none."""
    best = logits.topk(2, dim=-1).values
    close = (best[:, 0] - best[:, 1] < gap).nonzero()
    return int(close[0]) if len(close) else len(logits)


@torch.no_grad()
def streaming_seconds(model) -> float:
    """CPU seconds in which the model's device reads each weight once, the least of some ways: what a decoding step costs
    at the very least. Narrow weights are read as float32, which is not slowed down by conversions."""
    weights = [weight.view(-1).view(torch.float32) for weight in dict.fromkeys(model.parameters())]
    vector = torch.ones(512, device=model.device)
    ways = (torch.sum, torch.amax, lambda weight: (weight[: len(weight) // 512 * 512].view(-1, 512) @ vector).sum())
    best = float("inf")
    for read in ways * 2:
        start = time.process_time()
        torch.stack([read(weight) for weight in weights]).sum().item()
        best = min(best, time.process_time() - start)
    return best


def compare(options: argparse.Namespace) -> dict:
    tokenizer = smollm.load_tokenizer()
    tokens = prompt_tokens(tokenizer, options.prompt[0] if options.prompt else PROMPT)
    devices = list(dict.fromkeys(("cpu", options.device)))
    generators = {device: Generator(device, options.dtype, options.eager) for device in devices}
    answers: dict[str, list[int]] = {}
    figures: dict[str, dict] = {}
    streaming = float("inf")
    if options.device == "neuron":
        import torch_neuronx

        torch_neuronx.clear_op_tracking()
    for round_number in range(options.rounds + 1):
        for device in devices:
            count = options.max_new_tokens if round_number else min(8, options.max_new_tokens)  # the first warms up
            answers[device], timer = generators[device].generate(tokens, count)
            taken = timer.figures()
            if round_number and taken["step_cpu_seconds"] < figures.get(device, taken)["step_cpu_seconds"] + 1e-12:
                figures[device] = taken
        if round_number:  # beside the steps: what else runs on the machine takes part of its memory's rate
            streaming = min(streaming, streaming_seconds(generators[options.device].model))
    ours, theirs = answers[options.device], answers["cpu"]
    logits = {device: generator.logits(tokens, theirs) for device, generator in generators.items()}
    decided = first_close_call(logits["cpu"])
    equal = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b), len(theirs))
    difference = (logits[options.device] - logits["cpu"]).abs().max() / logits["cpu"].abs().max()
    exact = forced_logits(smollm.load("cpu", torch.float64), tokens, theirs)
    errors = {device: float((value - exact).abs().max() / exact.abs().max()) for device, value in logits.items()}
    weight_bytes = sum(p.numel() * p.element_size() for p in dict.fromkeys(generators["cpu"].model.parameters()))
    result = {
        "figures": figures,
        "speed_ratio": figures["cpu"]["step_cpu_seconds"] / figures[options.device]["step_cpu_seconds"],
        "weight_bytes": weight_bytes,
        "streaming_seconds": streaming,
        "streaming_share": streaming / figures[options.device]["step_cpu_seconds"],
        "streaming_share_by_the_clock": streaming / figures[options.device]["step_seconds"],
        "equal_tokens": equal,
        "tokens_until_close_call": decided,
        "tokens_agree": equal >= decided,
        "logits_difference": float(difference),
        "logits_error": errors,
        "fallback_ops": {},
    }
    if options.device == "neuron":
        result["fallback_ops"] = dict(Counter(torch_neuronx.get_fallback_ops()))
    report(result, options)
    return result


def report(result: dict, options: argparse.Namespace) -> None:
    print(f"SmolLM2-135M-Instruct, {options.dtype}, {torch.get_num_threads()} threads, greedy")
    for device, taken in result["figures"].items():
        print(
            f"{device:7s} {1 / taken['step_cpu_seconds']:6.1f} tokens per CPU second, "
            f"{taken['tokens_per_second']:6.1f} tokens/s by the clock, prompt of {taken['prompt_tokens']} tokens in "
            f"{taken['first_token_seconds']:.2f} s"
        )
    print(
        f"{result['speed_ratio']:.2f} x the CPU; reading the weights once ({result['weight_bytes'] / 1e6:.0f} MB) takes "
        f"{result['streaming_share']:.0%} of a step's CPU time, {result['streaming_share_by_the_clock']:.0%} of its time by the clock"
    )
    print(
        f"tokens equal for {result['equal_tokens']} of {options.max_new_tokens}, the first close call of the CPU's own is "
        f"after {result['tokens_until_close_call']}: {'agree' if result['tokens_agree'] else 'DIFFER'}"
    )
    print(
        f"logits differ from the CPU's by {result['logits_difference']:.1e} relative; from float64: "
        + ", ".join(f"{device} {error:.1e}" for device, error in result["logits_error"].items())
    )
    print(f"operators that ran on the CPU: {result['fallback_ops'] or 'none'}")
