"""GPT-2, Llama and BERT of `transformers`, unmodified: only `.to("neuron")`, parity with float64, no fallback."""

import copy

import pytest
import torch
import transformers

import torch_neuronx

VOCABULARY = 96


def gpt2():
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=VOCABULARY, n_positions=48, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0
        )
    )


def llama():
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=48,
        )
    )


def bert():
    return transformers.BertForMaskedLM(
        transformers.BertConfig(
            vocab_size=VOCABULARY,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=48,
        )
    )


MODELS = {"gpt2": gpt2, "llama": llama, "bert": bert}


@pytest.fixture(params=MODELS)
def model(request):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return MODELS[request.param]().eval()


def batch(masked: bool = False) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(VOCABULARY, (3, 20), generator=generator)
    inputs = {"input_ids": tokens, "labels": tokens.clone()}
    if masked:  # right padding of different lengths, as a tokenizer makes it
        inputs["attention_mask"] = (torch.arange(20) < torch.tensor([[20], [13], [7]])).long()
        inputs["labels"][inputs["attention_mask"] == 0] = -100
    return inputs


def forward_backward(model, inputs, device, dtype=torch.float32):
    """Loss, logits and the gradient of every parameter, as float64 on the CPU."""
    model = copy.deepcopy(model).to(device=device, dtype=dtype)
    output = model(**{name: value.to(device) for name, value in inputs.items()})
    output.loss.backward()
    results = {"loss": output.loss.detach(), "logits": output.logits.detach()}
    results |= {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return {name: value.cpu().double() for name, value in results.items()}


@pytest.mark.parametrize("masked", [False, True], ids=["full", "padded"])
def test_parity_with_float64_and_no_fallback(model, masked):
    inputs = batch(masked)
    exact = forward_backward(model, inputs, "cpu", torch.float64)
    cpu = forward_backward(model, inputs, "cpu")
    torch_neuronx.clear_op_tracking()
    ours = forward_backward(model, inputs, "neuron")
    torch.neuron.synchronize()
    assert sorted(set(torch_neuronx.get_fallback_ops())) == []
    assert ours.keys() == exact.keys()
    for name, value in exact.items():
        scale = max(value.abs().max().item(), 1e-3)
        allowed = 2 * (cpu[name] - value).abs().max().item() + 1e-6 * scale
        assert (ours[name] - value).abs().max().item() <= allowed, name


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_training_step_without_fallback(model, optimizer):
    """With dropout on: the losses fall, and nothing runs on the CPU."""
    inputs = {name: value.to("neuron") for name, value in batch().items()}
    model = model.to("neuron").train()
    if optimizer == "adamw":
        step = torch.optim.AdamW(model.parameters(), lr=3e-3)
    else:
        step = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    torch.manual_seed(0)
    torch_neuronx.clear_op_tracking()
    losses = []
    for _ in range(6):
        step.zero_grad()
        loss = model(**inputs).loss
        loss.backward()
        step.step()
        losses.append(loss.item())
    assert sorted(set(torch_neuronx.get_fallback_ops())) == []
    assert losses[-1] < losses[0] - 0.1


def test_generation_agrees_with_the_cpu():
    torch.manual_seed(0)
    model = gpt2().eval()
    prompt = torch.randint(1, VOCABULARY, (1, 5))
    options = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 0, "attention_mask": torch.ones_like(prompt)}
    expected = model.generate(prompt, **options)
    options["attention_mask"] = options["attention_mask"].to("neuron")
    assert model.to("neuron").generate(prompt.to("neuron"), **options).cpu().tolist() == expected.tolist()
