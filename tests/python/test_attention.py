"""scaled_dot_product_attention on the device against float64 on the CPU."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

import torch_neuronx

# Query, key, value, options. More than 48 queries or 128 (bfloat16: 256) keys: more than one panel, more than one block.
CASES = {
    "plain": ((2, 3, 33, 16), (2, 3, 33, 16), (2, 3, 33, 16), {}),
    "causal": ((2, 3, 130, 32), (2, 3, 130, 32), (2, 3, 130, 32), {"is_causal": True}),
    "cross": ((1, 2, 5, 8), (1, 2, 300, 8), (1, 2, 300, 8), {}),
    "more queries than keys, causal": ((1, 2, 400, 8), (1, 2, 60, 8), (1, 2, 60, 8), {"is_causal": True}),
    "more keys than queries, causal": ((1, 2, 60, 8), (1, 2, 400, 8), (1, 2, 400, 8), {"is_causal": True}),
    "grouped": ((1, 4, 40, 16), (1, 2, 40, 16), (1, 2, 40, 16), {"enable_gqa": True, "is_causal": True}),
    "grouped, odd": ((2, 6, 301, 65), (2, 2, 270, 65), (2, 2, 270, 33), {"enable_gqa": True, "is_causal": True}),
    "scaled": ((1, 1, 17, 8), (1, 1, 9, 8), (1, 1, 9, 8), {"scale": 0.3}),
    "one query": ((2, 2, 1, 64), (2, 2, 777, 64), (2, 2, 777, 64), {}),
    "one query, grouped": ((2, 8, 1, 80), (2, 2, 600, 80), (2, 2, 600, 40), {"enable_gqa": True}),
    "wide heads": ((1, 2, 70, 256), (1, 2, 90, 256), (1, 2, 90, 256), {}),
    "narrow heads": ((1, 2, 70, 1), (1, 2, 90, 1), (1, 2, 90, 3), {}),
    "two dimensions": ((50, 20), (60, 20), (60, 12), {}),
    "three dimensions": ((5, 50, 20), (5, 60, 20), (5, 60, 20), {}),
    "five dimensions": ((2, 1, 2, 50, 20), (2, 3, 2, 60, 20), (2, 3, 2, 60, 20), {}),
    "keys broadcast": ((2, 4, 50, 20), (1, 1, 60, 20), (2, 1, 60, 20), {}),
    "queries broadcast": ((1, 1, 50, 20), (2, 4, 60, 20), (2, 4, 60, 20), {}),
}
TOLERANCES = {torch.float32: 2e-6, torch.float16: 3e-3, torch.bfloat16: 2e-2}
FUSED = "aten::_scaled_dot_product_fused_attention_overrideable"

NATIVE = {
    "_fused_sdp_choice",
    "_scaled_dot_product_fused_attention_overrideable",
    "_scaled_dot_product_fused_attention_overrideable_backward",
}


def swapped(tensor: torch.Tensor) -> torch.Tensor:
    """Heads as a model makes them: a view of [batch, time, heads, depth]."""
    return tensor.transpose(-3, -2).contiguous().transpose(-3, -2) if tensor.dim() > 2 else tensor


def close(actual, expected, tolerance):
    """Within `tolerance` of the largest expected element."""
    bound = tolerance * max(1.0, expected.abs().max().item() if expected.numel() else 0.0)
    torch.testing.assert_close(actual.detach().cpu().double(), expected.detach(), rtol=0, atol=bound)


def compare(shapes, options, dtype, mask=None):
    """Result and gradients, also the mask's, for numbers that the dtype holds exactly on both sides."""
    torch.manual_seed(0)
    tensors = [torch.randn(shape).to(dtype) for shape in shapes]
    here = [swapped(t.to("neuron")).requires_grad_() for t in tensors]
    there = [t.double().requires_grad_() for t in tensors]
    here_mask = there_mask = None
    if mask is not None:
        here_mask, there_mask = mask.to("neuron"), mask
        if mask.is_floating_point():
            mask = mask.to(dtype)
            here_mask, there_mask = mask.to("neuron").requires_grad_(), mask.double().requires_grad_()
    got = functional.scaled_dot_product_attention(*here, attn_mask=here_mask, **options)
    with sdpa_kernel(SDPBackend.MATH):
        expected = functional.scaled_dot_product_attention(*there, attn_mask=there_mask, **options)
    tolerance = TOLERANCES[dtype]
    close(got, expected, tolerance)
    weights = torch.randn(expected.shape).to(dtype)
    got.backward(weights.to("neuron"))
    expected.backward(weights.double())
    for actual, wanted in zip(here, there, strict=True):
        close(actual.grad, wanted.grad, 2 * tolerance)
    if mask is not None and mask.is_floating_point():
        assert here_mask.grad.dtype == dtype
        close(here_mask.grad, there_mask.grad, 2 * tolerance)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_forward_and_backward(name, dtype):
    *shapes, options = CASES[name]
    torch_neuronx.clear_op_tracking()
    compare(shapes, options, dtype)
    assert FUSED in torch_neuronx.get_executed_ops()


@pytest.mark.parametrize("shape", [(2, 3, 20, 301), (1, 1, 20, 301), (20, 301), (2, 1, 1, 301), (3, 1, 1), (1, 20, 1)])
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_masks(shape, dtype):
    torch.manual_seed(1)
    shapes = [(2, 3, 20, 8), (2, 3, 301, 8), (2, 3, 301, 8)]
    torch_neuronx.clear_op_tracking()
    compare(shapes, {}, dtype, torch.randn(shape))
    mask = torch.rand(shape) > 0.3
    mask[..., 0] = True
    compare(shapes, {}, dtype, mask)
    assert FUSED in torch_neuronx.get_executed_ops()


def test_masks_of_five_dimensions_and_of_few_queries():
    torch.manual_seed(1)
    compare([(2, 3, 2, 20, 8)] + [(2, 3, 2, 31, 8)] * 2, {}, torch.float32, torch.randn(3, 1, 20, 31))
    compare([(2, 4, 1, 8)] + [(2, 2, 600, 8)] * 2, {"enable_gqa": True}, torch.float32, torch.randn(2, 1, 1, 600))


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_rows_without_keys_are_zero_and_rows_of_the_lowest_number_are_even(dtype):
    mask = torch.zeros(60, 300, dtype=torch.float64)
    mask[3] = -math.inf
    mask[50:55] = -math.inf
    compare([(1, 2, 60, 8)] + [(1, 2, 300, 8)] * 2, {}, dtype, mask > -1)
    mask[7] = torch.finfo(dtype).min  # all keys: what was masked out by a finite number is shared evenly
    mask[9, :200] = torch.finfo(dtype).min
    mask[11, :150] = -10000.0
    query, key = (torch.randn(1, 2, n, 8).to(dtype) for n in (60, 300))
    here = [t.to("neuron").requires_grad_() for t in (query, key, key)]
    there = [t.double().requires_grad_() for t in (query, key, key)]
    got = functional.scaled_dot_product_attention(*here, attn_mask=mask.to(dtype).to("neuron"))
    with sdpa_kernel(SDPBackend.MATH):  # the fused kernel of the CPU loses the sums of such rows in its backward pass
        expected = functional.scaled_dot_product_attention(*there, attn_mask=mask.to(dtype).double())
    close(got, expected, TOLERANCES[dtype])
    assert not got[:, :, 3].any().item()
    got.backward(got.detach())
    expected.backward(got.detach().cpu().double())
    for actual, wanted in zip(here, there, strict=True):
        close(actual.grad, wanted.grad, 2 * TOLERANCES[dtype])


def test_a_mask_excludes_what_causal_order_leaves():
    torch.manual_seed(0)
    query = torch.randn(1, 2, 130, 8)
    mask = torch.rand(130, 130) > 0.2
    mask[:, 0] = True
    got = functional.scaled_dot_product_attention(
        *[query.to("neuron")] * 3, attn_mask=mask.to("neuron"), is_causal=True
    )
    expected = functional.scaled_dot_product_attention(*[query.double()] * 3, attn_mask=mask.tril())
    close(got, expected, 2e-6)


def test_empty_sizes():
    def attend(batch, queries, keys, depth):
        x = torch.randn(batch, 2, queries, 8, device="neuron", requires_grad=True)
        y = torch.randn(batch, 2, keys, 8, device="neuron", requires_grad=True)
        z = torch.randn(batch, 2, keys, depth, device="neuron", requires_grad=True)
        out = functional.scaled_dot_product_attention(x, y, z)
        out.sum().backward()
        assert out.shape == (batch, 2, queries, depth)
        assert x.grad.shape == x.shape
        assert y.grad.shape == y.shape
        assert z.grad.shape == z.shape
        return out, x.grad, y.grad, z.grad

    for result in attend(1, 3, 0, 5):
        assert not result.any().item()
    for result in attend(1, 0, 3, 5)[2:]:
        assert not result.any().item()
    attend(0, 3, 4, 5)
    attend(1, 3, 4, 0)


@pytest.mark.parametrize(
    ("query", "key"),
    [((2, 4, 70, 24), (2, 4, 70, 24)), ((1, 2, 64, 64), (1, 2, 160, 64)), ((2, 8, 1, 64), (2, 2, 608, 64))],
)
def test_layouts_do_not_change_bits(query, key):
    """Head sizes and lengths that are whole tiles, and that are not; also few queries."""
    torch.manual_seed(0)
    tensors = [torch.randn(shape) for shape in (query, key, key)]
    gradient = torch.randn(query)
    columns = query[-1]
    causal = query[-2] > 1

    def attend(layout, dtype):
        inputs = [layout(t.to("neuron", dtype)).detach().requires_grad_() for t in tensors]
        out = functional.scaled_dot_product_attention(*inputs, is_causal=causal, enable_gqa=True)
        out.backward(layout(gradient.to("neuron", dtype)))
        return [out.detach().cpu(), *(t.grad.cpu() for t in inputs)]

    layouts = [
        lambda t: t,
        swapped,
        lambda t: t.transpose(-1, -2).contiguous().transpose(-1, -2),
        lambda t: torch.cat([t, t], -1)[..., :columns],
        lambda t: torch.stack([t, t], -1)[..., 0],
        lambda t: torch.cat([t, t], -1)[..., 1 : columns + 1].mul(0).add(t),
    ]
    for dtype in TOLERANCES:
        first, *others = [attend(layout, dtype) for layout in layouts]
        for other in others:
            for x, y in zip(first, other, strict=True):
                assert torch.equal(x, y)


@pytest.mark.parametrize("mode", ["adaptive", "immediate", "blocking"])
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_bits_do_not_depend_on_threads_or_mode(mode, dtype):
    """One head, more threads than heads, many heads; also with dropout and a mask that takes a gradient."""

    def attend(heads, queries, keys, dropout):
        torch.manual_seed(3)
        torch.neuron.manual_seed(3)
        query = torch.randn(1, heads, queries, 16).to("neuron", dtype).requires_grad_()
        key = torch.randn(1, 1, keys, 16).to("neuron", dtype).requires_grad_()
        mask = torch.randn(1, 1, queries, keys).to("neuron", dtype).requires_grad_()
        out = functional.scaled_dot_product_attention(query, key, key, attn_mask=mask, dropout_p=dropout)
        out.square().sum().backward()
        return [t.detach().cpu() for t in (out, query.grad, key.grad, mask.grad)]

    threads, before = torch.get_num_threads(), torch_neuronx._C.eager_mode()
    results = {}
    try:
        for count in (1, 2, 3, 8):
            torch.set_num_threads(count)
            torch_neuronx._C.set_eager_mode(mode if count > 1 else "blocking")
            for case in (
                (1, 110, 520, 0.0),
                (5, 30, 70, 0.3),
                (2, 1, 1300, 0.0),
                (4, 1, 1300, 0.2),
                (3, 300, 300, 0.0),
            ):
                results.setdefault(case, []).append(attend(*case))
    finally:
        torch.set_num_threads(threads)
        torch_neuronx._C.set_eager_mode(before)
    for runs in results.values():
        for one, two in pairwise(runs):
            for x, y in zip(one, two, strict=True):
                assert torch.equal(x, y)


def test_the_result_joins_heads_without_a_copy():
    query = torch.randn(2, 70, 4, 16, device="neuron").transpose(1, 2)
    assert functional.scaled_dot_product_attention(query, query, query).transpose(1, 2).is_contiguous()


@pytest.mark.parametrize(("queries", "keys", "p"), [(60, 300, 0.25), (2, 701, 0.5), (50, 7, 1.0)])
def test_dropout_keeps_the_same_probabilities_in_both_passes(queries, keys, p):
    """A value of unit vectors shows the probabilities that were kept; float64 follows with those."""
    torch.manual_seed(0)
    query, key = torch.randn(1, 2, queries, 8), torch.randn(1, 2, keys, 8)
    value = torch.randn(1, 2, keys, 8)

    def attend(*tensors):
        torch.neuron.manual_seed(11)
        return functional.scaled_dot_product_attention(*tensors, dropout_p=p)

    unit = torch.eye(keys).expand(1, 2, keys, keys).to("neuron")
    kept = attend(query.to("neuron"), key.to("neuron"), unit).cpu() != 0
    count = kept.numel()
    assert abs(kept.float().mean().item() - (1 - p)) < 4 * math.sqrt(p * (1 - p) / count) + 1e-12
    if p < 1:
        assert not torch.equal(kept[0, 0], kept[0, 1])

    here = [t.to("neuron").requires_grad_() for t in (query, key, value)]
    there = [t.double().requires_grad_() for t in (query, key, value)]
    got = attend(*here)
    probabilities = (there[0] @ there[1].transpose(-1, -2) / math.sqrt(8)).softmax(-1)
    factor = 1 / (1 - p) if p < 1 else 0.0
    expected = (probabilities * kept * factor) @ there[2]
    close(got, expected, 2e-6)
    weights = torch.randn(expected.shape)
    got.backward(weights.to("neuron"))
    expected.backward(weights.double())
    for actual, wanted in zip(here, there, strict=True):
        close(actual.grad, wanted.grad, 4e-6)


def test_dropout_follows_the_generator():
    x = torch.randn(1, 2, 20, 8, device="neuron")
    state = torch.neuron.get_rng_state()
    first = functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5).cpu()
    second = functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5).cpu()
    torch.neuron.set_rng_state(state)
    assert torch.equal(functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5).cpu(), first)
    assert not torch.equal(first, second)
    torch_neuronx.clear_op_tracking()
    functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5)
    assert FUSED in torch_neuronx.get_executed_ops()


@pytest.mark.parametrize("options", [{"is_causal": True}, {"dropout_p": 0.1}, {"enable_gqa": True}])
def test_memory_is_linear_in_the_length(options):
    """16,384 keys: a matrix of scores would be 1 GB a head."""

    def peak(length):
        key_heads = 1 if "enable_gqa" in options else 2
        query = torch.randn(1, 2, length, 16, device="neuron", requires_grad=True)
        key = torch.randn(1, key_heads, length, 16, device="neuron", requires_grad=True)
        torch.neuron.synchronize()
        torch.neuron.reset_peak_memory_stats()
        start = torch.neuron.memory_allocated()
        functional.scaled_dot_product_attention(query, key, key, **options).sum().backward()
        torch.neuron.synchronize()
        assert torch.isfinite(query.grad).all().item()
        return torch.neuron.max_memory_allocated() - start

    short, long = peak(2048), peak(16384)
    assert long <= 8.5 * short
    assert long < 16384 * 16 * 4 * 2 * 16


def test_long_sequences_are_right():
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, 1, 16384, 32) for _ in range(3))
    got = functional.scaled_dot_product_attention(*(t.to("neuron") for t in (query, key, value)), is_causal=True).cpu()
    for row in (0, 47, 48, 5000, 16383):
        expected = functional.scaled_dot_product_attention(
            query[:, :, row : row + 1].double(), key[:, :, : row + 1].double(), value[:, :, : row + 1].double()
        )
        close(got[:, :, row : row + 1], expected, 2e-6)


def test_the_choice_can_be_asked_and_switched_off():
    x = torch.randn(1, 2, 6, 8).to("neuron")
    fused, math_ = SDPBackend.OVERRIDEABLE.value, SDPBackend.MATH.value
    assert torch._fused_sdp_choice(x, x, x) == fused
    assert torch._fused_sdp_choice(x, x, x, dropout_p=0.1) == fused
    assert torch._fused_sdp_choice(x, x, x, torch.zeros(6, 6, device="neuron", requires_grad=True)) == fused
    assert torch._fused_sdp_choice(x.double(), x.double(), x.double()) == math_
    for backend in SDPBackend.OVERRIDEABLE, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION:
        with sdpa_kernel(backend):
            assert torch._fused_sdp_choice(x, x, x) == fused
    torch_neuronx.clear_op_tracking()
    with sdpa_kernel(SDPBackend.MATH):
        composed = functional.scaled_dot_product_attention(x, x, x)
    assert FUSED not in torch_neuronx.get_executed_ops()
    close(composed, functional.scaled_dot_product_attention(*[x.cpu().double()] * 3), 2e-6)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION), pytest.raises(RuntimeError, match="No viable backend"):
        functional.scaled_dot_product_attention(x.double(), x.double(), x.double())


def test_the_operator_can_be_called_by_itself():
    x = torch.randn(2, 2, 6, 8)
    out, logsumexp, _, _, queries, keys, seed, offset, _ = (
        torch.ops.aten._scaled_dot_product_fused_attention_overrideable(*[x.to("neuron")] * 3)
    )
    scores = x.double() @ x.double().transpose(-1, -2) / math.sqrt(8)
    close(out, scores.softmax(-1) @ x.double(), 2e-6)
    close(logsumexp, scores.logsumexp(-1), 2e-6)
    assert (queries, keys, seed, offset) == (6, 6, None, None)
    with pytest.raises(RuntimeError, match=r"takes query, key and value of one rank.*dropout_p 1\.5"):
        torch.ops.aten._scaled_dot_product_fused_attention_overrideable(*[x.to("neuron")] * 3, dropout_p=1.5)


def test_errors_are_those_of_the_cpu():
    def message(device, *shapes, **options):
        tensors = [torch.zeros(shape, device=device) for shape in shapes]
        if "attn_mask" in options:
            options["attn_mask"] = options["attn_mask"].to(device)
        with pytest.raises(RuntimeError) as error:
            functional.scaled_dot_product_attention(*tensors, **options)
        return str(error.value)

    few = [(1, 4, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8)]
    same = [(1, 2, 4, 8)] * 3
    for shapes, options in (
        (few, {}),
        ([(1, 5, 4, 8), *few[1:]], {"enable_gqa": True}),
        (same, {"dropout_p": 1.5}),
        (same, {"attn_mask": torch.zeros(3, 4)}),
        (same, {"attn_mask": torch.zeros(4, 4, dtype=torch.int32)}),
    ):
        assert message("neuron", *shapes, **options) == message("cpu", *shapes, **options)
