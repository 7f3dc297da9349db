"""examples/graph_decoder.py: models of transformers whose decoding step is a graph generate what generate() does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
import transformers

import torch_neuronx

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
import graph_decoder  # noqa: E402
from graph_decoder import GraphDecoder  # noqa: E402

SHAPE = {"vocab_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64}
GROUPED = SHAPE | {"num_key_value_heads": 2, "intermediate_size": 128, "max_position_embeddings": 4096}
ROPE_BY_LENGTH = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
MODELS = {
    "llama": lambda: transformers.LlamaConfig(**GROUPED),
    "llama, attention of products": lambda: transformers.LlamaConfig(**GROUPED, attn_implementation="eager"),
    "gpt2": lambda: transformers.GPT2Config(**SHAPE),
    "qwen2": lambda: transformers.Qwen2Config(**GROUPED),
    "qwen3": lambda: transformers.Qwen3Config(**GROUPED, head_dim=16),
    "mistral, windows": lambda: transformers.MistralConfig(**GROUPED, sliding_window=8),
    "gemma3, some windows": lambda: transformers.Gemma3TextConfig(**GROUPED, head_dim=16, sliding_window=8),
    "mixtral": lambda: transformers.MixtralConfig(**GROUPED, num_local_experts=4),
    "opt": lambda: transformers.OPTConfig(**SHAPE, ffn_dim=128, word_embed_proj_dim=64),
    "falcon, alibi": lambda: transformers.FalconConfig(**SHAPE, alibi=True),
}
PROMPT = [7 * i % 250 for i in range(20)]


@pytest.fixture(autouse=True)
def nothing_on_the_cpu():
    torch_neuronx.clear_op_tracking()
    yield
    assert sorted(set(torch_neuronx.get_fallback_ops())) == []


def make(name: str, dtype: torch.dtype = torch.float32, device: str = "neuron") -> transformers.PreTrainedModel:
    configuration = MODELS[name]()
    configuration.eos_token_id = configuration.bos_token_id = None
    configuration.pad_token_id = 1
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(configuration)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(3)  # no two tokens are nearly as likely
    return model.to(device=device, dtype=dtype).eval()


def generated(model: transformers.PreTrainedModel, tokens: list[int], count: int, **options) -> list[int]:
    prompt = torch.tensor([tokens], device=model.device)
    options = {"do_sample": False} | options
    output = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=count, **options)
    return output[0, len(tokens) :].tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_greedy_tokens_are_those_of_generate(name: str, dtype: torch.dtype) -> None:
    model = make(name, dtype)
    answer, expected = GraphDecoder(model).generate(PROMPT, 40), generated(model, PROMPT, 40)
    assert len(set(answer)) > 1
    equal = next((i for i, (a, b) in enumerate(zip(answer, expected, strict=True)) if a != b), 40)
    if dtype == torch.bfloat16 and equal < 40:  # the order of a sum may decide between two, and nothing else
        with torch.no_grad():
            logits = model(torch.tensor([PROMPT + expected[:equal]], device="neuron")).logits[0, -1].float()
        assert (logits[answer[equal]] - logits[expected[equal]]).abs() < 0.02 * logits.abs().max()
    else:
        assert equal == 40


@pytest.mark.parametrize("name", ["llama", "gpt2", "qwen3"])
def test_logits_of_replays_are_those_of_the_cpu(name: str) -> None:
    model, exact = make(name), make(name, torch.float64, "cpu")
    answer = GraphDecoder(model).generate(PROMPT, 30)
    assert answer == generated(make(name, device="cpu"), PROMPT, 30)
    with torch.no_grad():
        expected = exact(torch.tensor([PROMPT + answer])).logits[0, len(PROMPT) - 1 : -1]
    logits = GraphDecoder(model).score(PROMPT, answer).cpu().double()
    assert (logits - expected).abs().max() < 1e-5 * expected.abs().max()


def test_a_conversation_goes_on_in_its_cache() -> None:
    model = make("llama")
    decoder = GraphDecoder(model)
    tokens = list(PROMPT)
    for turn in range(3):
        expected = generated(model, tokens, 12)
        computed = []
        forward = decoder.forward
        decoder.forward = lambda t, *rest: (computed.append(t.shape[1]), forward(t, *rest))[1]  # noqa: B023
        answer = decoder.generate(tokens, 12)
        decoder.forward = forward
        assert answer == expected
        # The last token of the answer before has no keys yet, and the question is new; one more is the first capture.
        assert computed == ([20, 1] if turn == 0 else [4])
        tokens += [*answer, 9, 8, 7 + turn]
    # Another beginning: what is common is kept, the rest is forgotten.
    tokens = PROMPT[:10] + [3, 1, 4]
    assert decoder.generate(tokens, 12) == generated(model, tokens, 12)
    assert decoder.generate(PROMPT, 12) == generated(model, PROMPT, 12)


@pytest.mark.parametrize("name", ["llama", "mistral, windows"])
def test_memory_and_window_grow(name: str, monkeypatch) -> None:
    monkeypatch.setattr(graph_decoder, "SMALLEST", 32)
    monkeypatch.setattr(graph_decoder, "WINDOW", 16)
    model = make(name)
    decoder = GraphDecoder(model)
    answer = decoder.generate(PROMPT, 100)
    assert answer == generated(model, PROMPT, 100)
    assert (decoder.cache.capacity, decoder.window, decoder.cache.length) == (128, 128, 119)
    assert decoder.tokens == PROMPT + answer[:-1]
    tokens = PROMPT + answer + PROMPT * 10  # at once to more than twice as much
    assert decoder.generate(tokens, 5) == generated(model, tokens, 5)
    assert decoder.cache.capacity == 512
    # A shorter text again: a narrower window, the same memory.
    assert decoder.generate(PROMPT, 5) == generated(model, PROMPT, 5)
    assert (decoder.cache.capacity, decoder.window) == (512, 32)


def test_more_than_one_split_of_keys() -> None:
    model = make("llama")
    tokens = [(31 * i + i // 7) % 256 for i in range(1000)]
    decoder = GraphDecoder(model)
    assert decoder.generate(tokens, 40) == generated(model, tokens, 40)
    assert decoder.cache.capacity == 2048


def test_ends() -> None:
    model = make("qwen2")
    decoder = GraphDecoder(model)
    free = decoder.generate(PROMPT, 30)
    end = free[10]
    until = free[: free.index(end) + 1]
    assert decoder.generate(PROMPT, 30, stop=[end, 300]) == until
    model.generation_config.eos_token_id = end
    assert decoder.generate(PROMPT, 30) == until == generated(model, PROMPT, 30)
    model.generation_config.eos_token_id = [300, end]
    assert decoder.generate(PROMPT, 30) == until
    assert decoder.generate(PROMPT, 30, stop=[]) == free
    assert decoder.generate(PROMPT, 1, stop=[]) == free[:1]
    assert decoder.generate(PROMPT, 0) == []
    # Whoever stops listening can go on anywhere.
    for token in decoder.stream(PROMPT, 30, stop=[]):
        assert token == free[0]
        break
    assert decoder.generate(PROMPT + free[:5], 25, stop=[]) == free[5:]


@pytest.mark.parametrize("options", [{}, {"top_k": 5}, {"top_k": 0}], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_sampling_repeats_with_its_seed(dtype: torch.dtype, options: dict) -> None:
    model = make("llama", dtype)
    decoder = GraphDecoder(model)

    # From the beginning each time: a prompt of which all but the last token is kept rounds in another order.
    def sample(seed: int, temperature: float) -> list[int]:
        decoder.go_back(0)
        torch.manual_seed(seed)
        return decoder.generate(PROMPT, 20, temperature=temperature, **options)

    answers = {(s, t): sample(s, t) for s in (1, 2) for t in (0.7, 3.0)}
    assert answers[1, 0.7] != answers[2, 0.7]
    assert sample(1, 0.7) == answers[1, 0.7]
    decoder.go_back(0)
    decoder.generate(PROMPT, 20)  # greedy in between
    assert sample(2, 3.0) == answers[2, 3.0]
    if dtype != torch.float32:
        return
    for (seed, temperature), answer in answers.items():
        torch.manual_seed(seed)
        assert answer == generated(model, PROMPT, 20, do_sample=True, temperature=temperature, **options)


def test_what_cannot_be_captured_says_so() -> None:
    with pytest.raises(ValueError, match=r"on the CPU, where torch has no graphs: use model.generate"):
        GraphDecoder(make("llama", device="cpu"))
    mamba = transformers.MambaConfig(vocab_size=256, hidden_size=32, num_hidden_layers=1)
    with pytest.raises(ValueError, match=r"MambaForCausalLM has layers of kind linear_attention; only attention"):
        GraphDecoder(transformers.MambaForCausalLM(mamba).to("neuron"))
    decoder = GraphDecoder(make("llama"))
    with pytest.raises(ValueError, match="no tokens to go on from"):
        decoder.generate([], 3)
    with pytest.raises(ValueError, match="neither can be negative"):
        decoder.generate(PROMPT, 3, temperature=-1)


def test_a_model_that_reads_values_fails_at_its_capture_and_leaves_everything_usable() -> None:
    torch.manual_seed(0)
    configuration = transformers.LlamaConfig(**GROUPED, rope_parameters=ROPE_BY_LENGTH)
    model = transformers.LlamaForCausalLM(configuration).to("neuron").eval()
    decoder = GraphDecoder(model)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="not permitted while a graph is being captured: the value of a tensor"):
            decoder.generate(PROMPT, 5, stop=[])
    assert decoder.generate(PROMPT, 1, stop=[]) == generated(model, PROMPT, 1)
