"""Models of `transformers`, unmodified, with random weights: losses, logits and gradients against float64, generated
tokens against the CPU's, without a fallback."""

import copy

import pytest
import torch

import torch_neuronx
from model_zoo import EXPERT_MODELS, GENERATES, MODELS, QUICK

ALL = [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in MODELS]
PROMPTED = [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in GENERATES]


def make(name):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model, inputs = MODELS[name]()
    return model.eval(), inputs


def moved(inputs, device, dtype=None):
    def move(value):
        if not isinstance(value, torch.Tensor):
            return value
        return value.to(device, dtype) if dtype is not None and value.is_floating_point() else value.to(device)

    return {name: move(value) for name, value in inputs.items()}


def forward_backward(model, inputs, device, dtype=torch.float32):
    """Loss, logits and the gradient of every parameter, as float64 on the CPU."""
    model = copy.deepcopy(model).to(device=device, dtype=dtype)
    output = model(**moved(inputs, device, dtype))
    output.loss.backward()
    results = {"loss": output.loss.detach()}
    if getattr(output, "logits", None) is not None:
        results["logits"] = output.logits.detach()
    results |= {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return {name: value.cpu().double() for name, value in results.items()}


def scale_of(key, exact):
    """The size of what a gradient is the sum of. That of a bias of attention's keys is zero, as softmax does not see it,
    and what is computed is the rounding of its terms: they are as large as those of the weight's gradient."""
    scale = exact[key].abs().max().item()
    if scale < 1e-12 and key.endswith("bias") and (weight := key.removesuffix("bias") + "weight") in exact:
        scale = exact[weight].abs().max().item()
    return max(scale, 1e-3)


@pytest.mark.parametrize("name", ALL)
def test_parity_with_float64_and_no_fallback(name):
    model, inputs = make(name)
    if name in EXPERT_MODELS:  # the CPU has no grouped products of float64
        reference = copy.deepcopy(model)
        reference.set_experts_implementation("eager")
    else:
        reference = model
    exact = forward_backward(reference, inputs, "cpu", torch.float64)
    cpu = forward_backward(reference, inputs, "cpu")
    torch_neuronx.clear_op_tracking()
    ours = forward_backward(model, inputs, "neuron")
    assert sorted(set(torch_neuronx.get_fallback_ops())) == []
    assert ours.keys() == exact.keys()
    for key, value in exact.items():
        scale = scale_of(key, exact)
        # The CPU's error of a single number (a temperature's gradient) may be next to nothing by chance.
        allowed = 2 * (cpu[key] - value).abs().max().item() + (1e-6 if value.numel() > 1 else 4e-6) * scale
        assert (ours[key] - value).abs().max().item() <= allowed, key


def generated(model, inputs, device, **options):
    name = "input_features" if "input_features" in inputs else "input_ids"
    prompt = {name: inputs[name]}
    if name == "input_ids":
        prompt["attention_mask"] = torch.ones_like(inputs[name])
    model = copy.deepcopy(model).to(device)
    output = model.generate(**moved(prompt, device), max_new_tokens=8, do_sample=False, pad_token_id=0, **options)
    return output.cpu().tolist()


@pytest.mark.parametrize("name", PROMPTED)
def test_generated_tokens_are_the_cpus(name):
    model, inputs = make(name)
    torch_neuronx.clear_op_tracking()
    assert generated(model, inputs, "neuron") == generated(model, inputs, "cpu")
    assert sorted(set(torch_neuronx.get_fallback_ops())) == []


@pytest.mark.parametrize(
    "options", [{"num_beams": 3}, {"cache_implementation": "static", "disable_compile": True}], ids=str
)
@pytest.mark.parametrize("name", ["qwen3", "t5"])
def test_ways_to_generate(name, options):
    model, inputs = make(name)
    torch_neuronx.clear_op_tracking()
    assert generated(model, inputs, "neuron", **options) == generated(model, inputs, "cpu", **options)
    assert sorted(set(torch_neuronx.get_fallback_ops())) == []


def test_the_same_bits_again_and_in_every_mode():
    """Temporaries of many sizes share addresses: a model in which this once went wrong."""
    from torch_neuronx.testing import eager_mode

    model, inputs = make("olmo2")
    with eager_mode("immediate"):
        expected = forward_backward(model, inputs, "neuron")
    for _ in range(4):  # met first, learnt, compiled, replayed
        actual = forward_backward(model, inputs, "neuron")
        for key, value in expected.items():
            assert torch.equal(actual[key], value), key
