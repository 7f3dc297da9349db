"""torch.autocast("neuron"): CUDA's lists, bfloat16 by default, and gradient scaling for float16."""

from __future__ import annotations

import pytest
import torch

import torch_neuronx


def ones(*shape: int, dtype: torch.dtype = torch.float32, **options: object) -> torch.Tensor:
    return torch.ones(*shape, dtype=dtype, device="neuron", **options)


def test_default_dtype_is_bfloat16():
    assert torch.get_autocast_dtype("neuron") == torch.bfloat16
    with torch.autocast("neuron"):
        assert torch.is_autocast_enabled("neuron")
        assert (ones(2, 3) @ ones(3, 2)).dtype == torch.bfloat16
    assert (ones(2, 3) @ ones(3, 2)).dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_lower_precision_list(dtype):
    with torch.autocast("neuron", dtype=dtype):
        assert torch.nn.functional.linear(ones(2, 3), ones(4, 3), ones(4)).dtype == dtype
        assert torch.addmm(ones(2), ones(2, 3), ones(3, 2)).dtype == dtype
        assert torch.bmm(ones(1, 2, 3), ones(1, 3, 2)).dtype == dtype
        assert torch.einsum("ij,jk->ik", ones(2, 3), ones(3, 4)).dtype == dtype
        attention = torch.nn.functional.scaled_dot_product_attention(
            ones(1, 1, 4, 8), ones(1, 1, 4, 8), ones(1, 1, 4, 8)
        )
        assert attention.dtype == dtype


def test_float32_list():
    half = ones(4, 4, dtype=torch.bfloat16)
    with torch.autocast("neuron"):
        for function in (torch.exp, torch.log, torch.rsqrt, lambda x: x.pow(2), lambda x: torch.logsumexp(x, 0)):
            assert function(half).dtype == torch.float32
        assert torch.nn.functional.layer_norm(half, (4,)).dtype == torch.float32
        assert torch.nn.functional.mse_loss(half, half).dtype == torch.float32


def test_float32_dtype_list():
    half = ones(4, 4, dtype=torch.bfloat16)
    with torch.autocast("neuron"):
        assert torch.softmax(half, -1).dtype == torch.float32
        assert half.sum().dtype == torch.float32
        assert half.sum(0).dtype == torch.float32
        assert torch.cumsum(half, 0).dtype == torch.float32
        # A dtype the caller chose stays.
        assert torch.softmax(half, -1, dtype=torch.bfloat16).dtype == torch.bfloat16
        # Integers are none of autocast's business.
        assert torch.arange(3, device="neuron").sum().dtype == torch.int64


def test_norm_goes_on_as_the_overload_with_a_dtype():
    half = ones(4, 4, dtype=torch.bfloat16)
    with torch.autocast("neuron"):
        assert torch.ops.aten.norm.Scalar(half, 2).dtype == torch.float32
        assert torch.ops.aten.norm.ScalarOpt_dim(half, 2, [0], False).dtype == torch.float32
    assert torch.ops.aten.norm.Scalar(half, 2).item() == 4.0


def test_promote_list():
    with torch.autocast("neuron"):
        half, full = ones(3, dtype=torch.bfloat16), ones(3)
        assert torch.addcmul(half, half, half).dtype == torch.bfloat16
        assert torch.addcmul(full, half, half).dtype == torch.float32
        assert torch.dot(half, full).dtype == torch.float32
        assert torch.atan2(half, full).dtype == torch.float32


def test_untouched_operators_and_float64():
    with torch.autocast("neuron"):
        assert (ones(3) + ones(3)).dtype == torch.float32
        assert torch.relu(ones(3, dtype=torch.bfloat16)).dtype == torch.bfloat16
        assert (ones(2, 2, dtype=torch.float64) @ ones(2, 2, dtype=torch.float64)).dtype == torch.float64


def test_binary_cross_entropy_is_refused():
    with torch.autocast("neuron"), pytest.raises(RuntimeError, match="unsafe to autocast"):
        torch.nn.functional.binary_cross_entropy(ones(3), ones(3))


def test_weights_are_cast_once_and_gradients_return_in_float32():
    weight = ones(4, 4, requires_grad=True)
    with torch.autocast("neuron"):
        y = ones(2, 4) @ weight @ weight
    assert y.dtype == torch.bfloat16
    y.sum().backward()
    assert weight.grad.dtype == torch.float32
    assert weight.grad.tolist() == [[16.0] * 4] * 4


def test_nesting_and_decorators():
    with torch.autocast("neuron"), torch.autocast("neuron", enabled=False):
        assert (ones(2, 2) @ ones(2, 2)).dtype == torch.float32

    @torch_neuronx.amp.autocast(dtype=torch.float16)
    def product(x):
        return x @ x

    assert product(ones(2, 2)).dtype == torch.float16


def test_custom_functions():
    class Product(torch.autograd.Function):
        @staticmethod
        @torch_neuronx.amp.custom_fwd(cast_inputs=torch.float32)
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x @ x

        @staticmethod
        @torch_neuronx.amp.custom_bwd
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad @ x.t() + x.t() @ grad

    x = ones(2, 2, dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("neuron"):
        y = Product.apply(x)
    assert y.dtype == torch.float32
    y.sum().backward()
    assert x.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]


def test_grad_scaler_skips_steps_with_infinities():
    weight = torch.nn.Parameter(ones(4))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch_neuronx.amp.GradScaler(init_scale=8.0, growth_interval=1)
    assert isinstance(scaler, torch.amp.GradScaler)

    scaler.scale((weight * 2).sum()).backward()
    assert weight.grad.tolist() == [16.0] * 4
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [-1.0] * 4
    assert scaler.get_scale() == 16.0

    optimizer.zero_grad()
    scaler.scale((weight * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [-1.0] * 4
    assert scaler.get_scale() == 8.0
