"""scaled_dot_product_attention on the device against float64 on the CPU."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

import torch_neuronx

CASES = {
    "plain": ((2, 3, 33, 16), (2, 3, 33, 16), {}),
    "causal": ((2, 3, 130, 32), (2, 3, 130, 32), {"is_causal": True}),
    "cross": ((1, 2, 5, 8), (1, 2, 300, 8), {}),
    "grouped": ((1, 4, 40, 16), (1, 2, 40, 16), {"enable_gqa": True, "is_causal": True}),
    "scaled": ((1, 1, 7, 8), (1, 1, 9, 8), {"scale": 0.3}),
    "one query": ((2, 2, 1, 64), (2, 2, 77, 64), {}),
}


NATIVE = {
    "_fused_sdp_choice",
    "_scaled_dot_product_fused_attention_overrideable",
    "_scaled_dot_product_fused_attention_overrideable_backward",
}


def compare(query, key, options, dtype, tolerance):
    torch.manual_seed(0)
    tensors = [torch.randn(query), torch.randn(key), torch.randn(key)]
    # Heads as a model makes them: a view of [batch, time, heads, depth].
    here = [t.to("neuron", dtype).transpose(1, 2).contiguous().transpose(1, 2).requires_grad_() for t in tensors]
    there = [t.to(dtype).double().requires_grad_() for t in tensors]
    device_options = {k: v.to("neuron") if isinstance(v, torch.Tensor) else v for k, v in options.items()}
    host_options = {
        k: v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for k, v in options.items()
    }
    got = functional.scaled_dot_product_attention(*here, **device_options)
    expected = functional.scaled_dot_product_attention(*there, **host_options)
    torch.testing.assert_close(got.cpu().double(), expected, rtol=tolerance, atol=tolerance)
    got.square().sum().backward()
    expected.square().sum().backward()
    for actual, wanted in zip(here, there, strict=True):
        torch.testing.assert_close(actual.grad.cpu().double(), wanted.grad, rtol=tolerance * 10, atol=tolerance * 10)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 3e-2)])
def test_forward_and_backward(name, dtype, tolerance):
    query, key, options = CASES[name]
    compare(query, key, options, dtype, tolerance)
    assert "aten::_scaled_dot_product_fused_attention_overrideable" in torch_neuronx.get_executed_ops()


@pytest.mark.parametrize("shape", [(2, 3, 20, 31), (1, 1, 20, 31), (20, 31), (2, 1, 1, 31)])
def test_masks(shape):
    torch.manual_seed(1)
    compare((2, 3, 20, 8), (2, 3, 31, 8), {"attn_mask": torch.randn(shape)}, torch.float32, 1e-5)
    mask = torch.rand(shape) > 0.3
    mask[..., 0] = True
    compare((2, 3, 20, 8), (2, 3, 31, 8), {"attn_mask": mask}, torch.float32, 1e-5)


def test_the_result_joins_heads_without_a_copy_and_bits_do_not_depend_on_threads():
    torch.manual_seed(0)
    query = torch.randn(2, 70, 4, 16, device="neuron").transpose(1, 2)
    threads = torch.get_num_threads()
    results = []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            results.append(functional.scaled_dot_product_attention(query, query, query, is_causal=True))
    finally:
        torch.set_num_threads(threads)
    assert results[0].transpose(1, 2).is_contiguous()
    assert torch.equal(results[0].cpu(), results[1].cpu())
    assert torch.equal(results[0].cpu(), results[2].cpu())


def test_the_choice_can_be_asked_and_switched_off():
    x = torch.randn(1, 2, 6, 8).to("neuron")
    assert torch._fused_sdp_choice(x, x, x) == 4
    assert torch._fused_sdp_choice(x, x, x, dropout_p=0.1) == 0
    torch_neuronx.clear_op_tracking()
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        functional.scaled_dot_product_attention(x, x, x)
    assert "aten::_scaled_dot_product_fused_attention_overrideable" not in torch_neuronx.get_executed_ops()


def test_dropout_and_a_mask_with_a_gradient_take_the_general_way():
    torch.manual_seed(0)
    x = torch.randn(1, 2, 6, 8, device="neuron")
    bias = torch.zeros(6, 6, device="neuron", requires_grad=True)
    functional.scaled_dot_product_attention(x, x, x, attn_mask=bias).sum().backward()
    torch.testing.assert_close(bias.grad.sum(-1).cpu(), torch.zeros(6), atol=1e-4, rtol=0)
