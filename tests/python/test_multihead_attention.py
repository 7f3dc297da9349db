"""Modules built on attention against the CPU: nn.MultiheadAttention, nn.TransformerEncoder, functional forms of them."""

from __future__ import annotations

import copy
import itertools

import pytest
import torch
from torch import Tensor, nn

import torch_neuronx

LENGTH, OTHER, BATCH, WIDTH, HEADS = 7, 9, 3, 32, 4


def on_device(value):
    return value.to("neuron") if isinstance(value, Tensor) else value


def close(actual: Tensor | None, expected: Tensor | None) -> None:
    if expected is None:
        assert actual is None
        return
    torch.testing.assert_close(actual.detach().cpu(), expected.detach(), rtol=2e-5, atol=2e-5)


def padding(keys: int) -> Tensor:
    mask = torch.zeros(BATCH, keys, dtype=torch.bool)
    mask[1, 4:] = True
    mask[2, keys - 1 :] = True
    return mask


def masks(keys: int) -> dict[str, dict]:
    excluded = torch.rand(LENGTH, keys) > 0.7
    excluded[:, 0] = False
    causal = nn.Transformer.generate_square_subsequent_mask(LENGTH)
    return {
        "none": {},
        "padding": {"key_padding_mask": padding(keys)},
        "float padding": {"key_padding_mask": torch.zeros(BATCH, keys).masked_fill(padding(keys), -torch.inf)},
        "bool": {"attn_mask": excluded},
        "bool and padding": {"attn_mask": excluded, "key_padding_mask": padding(keys)},
        "of each head": {"attn_mask": torch.randn(BATCH * HEADS, LENGTH, keys)},
        **({"causal": {"attn_mask": causal, "is_causal": True}} if keys == LENGTH else {}),
    }


@pytest.mark.parametrize(("batch_first", "bias"), list(itertools.product((True, False), repeat=2)))
@pytest.mark.parametrize("keys", [LENGTH, OTHER])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.filterwarnings("ignore:Support for mismatched")
def test_multihead_attention(batch_first, bias, keys, training):
    torch.manual_seed(0)
    module = nn.MultiheadAttention(WIDTH, HEADS, batch_first=batch_first, bias=bias).train(training)
    ours = copy.deepcopy(module).to("neuron")
    query, other = torch.randn(BATCH, LENGTH, WIDTH), torch.randn(BATCH, keys, WIDTH)
    if not batch_first:
        query, other = query.transpose(0, 1), other.transpose(0, 1)
    if keys == LENGTH:
        other = query  # the fast path asks for one tensor
    here = query.to("neuron")
    there = here if other is query else other.to("neuron")
    for options in masks(keys).values():
        given = {name: on_device(value) for name, value in options.items()}
        for weights, average, grad in itertools.product((True, False), repeat=3):
            with torch.set_grad_enabled(grad):
                expected = module(query, other, other, need_weights=weights, average_attn_weights=average, **options)
                got = ours(here, there, there, need_weights=weights, average_attn_weights=average, **given)
            close(got[0], expected[0])
            close(got[1], expected[1])
    module.zero_grad()
    ours.zero_grad()
    module(query, other, other)[0].square().sum().backward()
    ours(here, there, there)[0].square().sum().backward()
    for mine, theirs in zip(ours.parameters(), module.parameters(), strict=True):
        close(mine.grad, theirs.grad)


def test_multihead_attention_with_added_keys_and_other_widths():
    torch.manual_seed(0)
    module = nn.MultiheadAttention(WIDTH, HEADS, add_bias_kv=True, add_zero_attn=True, kdim=20, vdim=12)
    ours = copy.deepcopy(module).to("neuron")
    tensors = [torch.randn(LENGTH, BATCH, WIDTH), torch.randn(OTHER, BATCH, 20), torch.randn(OTHER, BATCH, 12)]
    expected = module(*tensors, key_padding_mask=padding(OTHER))
    got = ours(*map(on_device, tensors), key_padding_mask=padding(OTHER).to("neuron"))
    close(got[0], expected[0])
    close(got[1], expected[1])
    one = [tensor[:, 0] for tensor in tensors]
    close(ours(*map(on_device, one))[0], module(*one)[0])


def test_dropout_of_attention_weights_is_drawn_and_off_when_evaluating():
    torch.manual_seed(0)
    module = nn.MultiheadAttention(WIDTH, HEADS, dropout=0.5, batch_first=True).to("neuron")
    x = torch.randn(BATCH, LENGTH, WIDTH, device="neuron")
    first, second = (module(x, x, x, need_weights=False)[0] for _ in range(2))
    assert not torch.equal(first.cpu(), second.cpu())
    first.sum().backward()
    assert torch.isfinite(module.in_proj_weight.grad).all().item()
    module.eval()
    first, second = (module(x, x, x, need_weights=False)[0] for _ in range(2))
    assert torch.equal(first.cpu(), second.cpu())


@pytest.mark.parametrize(("norm_first", "batch_first"), list(itertools.product((True, False), repeat=2)))
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.filterwarnings(
    "ignore:enable_nested_tensor is True", "ignore:The PyTorch API of nested tensors", "ignore:Support for mismatched"
)
def test_transformer_encoder(norm_first, batch_first, training, activation):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        WIDTH, HEADS, 64, dropout=0.0, batch_first=batch_first, activation=activation, norm_first=norm_first
    )
    left = padding(LENGTH)
    right = left.flip(1)
    causal = nn.Transformer.generate_square_subsequent_mask(LENGTH)
    choices = [
        {},
        {"src_key_padding_mask": left},
        {"src_key_padding_mask": right},
        {"mask": causal, "is_causal": True},
        {"mask": causal, "src_key_padding_mask": left},
    ]
    x = torch.randn(BATCH, LENGTH, WIDTH)
    for nested, options, grad in itertools.product((True, False), choices, (True, False)):
        module = nn.TransformerEncoder(layer, 2, enable_nested_tensor=nested).train(training)
        ours = copy.deepcopy(module).to("neuron")
        source = x if batch_first else x.transpose(0, 1)
        with torch.set_grad_enabled(grad):
            expected = module(source, **options)
            got = ours(source.to("neuron"), **{name: on_device(value) for name, value in options.items()})
        close(got, expected)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_padded_batches_are_packed_and_padded_again():
    torch.manual_seed(0)
    batch, kept = torch.randn(BATCH, LENGTH, WIDTH), ~padding(LENGTH)
    kept[0] = False  # a sequence of no elements
    packed = torch._nested_tensor_from_mask(batch.to("neuron"), kept.to("neuron"))
    assert packed.is_nested
    assert packed.device.type == "neuron"
    expected = batch.masked_fill(~kept[..., None], 2.5)
    assert torch.equal(packed.to_padded_tensor(2.5, batch.shape).cpu(), expected)
    assert torch.equal(packed.to_padded_tensor(2.5).cpu(), expected[:, : int(kept.sum(1).max())])
    assert not torch._nested_tensor_from_mask_left_aligned(batch.to("neuron"), kept.flip(1).to("neuron"))
    with pytest.raises(RuntimeError, match="Mask must be left-aligned without gaps"):
        torch._nested_tensor_from_mask(batch.to("neuron"), kept.flip(1).to("neuron"))
    with pytest.raises(RuntimeError, match=r"at most 6 by 32, does not fit output_size \[3, 2, 32\]"):
        packed.to_padded_tensor(0.0, (BATCH, 2, WIDTH))
    with pytest.raises(NotImplementedError, match="nested tensors are not supported on the neuron device"):
        packed.sin()


def test_transformer_trains():
    torch.manual_seed(0)
    module = nn.Transformer(WIDTH, HEADS, 1, 1, 64, dropout=0.0, batch_first=True)
    ours = copy.deepcopy(module).to("neuron")
    source, target = torch.randn(BATCH, OTHER, WIDTH), torch.randn(BATCH, LENGTH, WIDTH)
    options = {
        "tgt_mask": nn.Transformer.generate_square_subsequent_mask(LENGTH),
        "tgt_is_causal": True,
        "src_key_padding_mask": padding(OTHER),
        "memory_key_padding_mask": padding(OTHER),
    }
    torch_neuronx.clear_op_tracking()
    expected = module(source, target, **options)
    got = ours(source.to("neuron"), target.to("neuron"), **{name: on_device(v) for name, v in options.items()})
    close(got, expected)
    expected.square().sum().backward()
    got.square().sum().backward()
    for mine, theirs in zip(ours.parameters(), module.parameters(), strict=True):
        torch.testing.assert_close(mine.grad.cpu(), theirs.grad, rtol=1e-4, atol=1e-4)
    assert not torch_neuronx.get_fallback_ops()
