"""What programs put around operations: custom operators, function transforms, modes, subclasses, hooks, data loading,
numpy. Values are compared with the CPU."""

from __future__ import annotations

import copy
import gc

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap

import torch_neuronx


@torch.library.custom_op("interop_test::scale", mutates_args=())
def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor


@scale.register_fake
def _(x: torch.Tensor, factor: float) -> torch.Tensor:
    return torch.empty_like(x)


def _keep_factor(ctx, inputs, output) -> None:
    ctx.factor = inputs[1]


scale.register_autograd(lambda ctx, g: (g * ctx.factor, None), setup_context=_keep_factor)
scale.register_vmap(lambda info, in_dims, x, factor: (scale(x, factor), in_dims[0]))


@torch.library.custom_op("interop_test::on_device", mutates_args=(), device_types="neuron")
def on_device(x: torch.Tensor) -> torch.Tensor:
    return x + 1


@torch.library.custom_op("interop_test::on_cpu", mutates_args=(), device_types="cpu")
def on_cpu(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(x.numpy() + 1)


on_cpu.register_autograd(lambda ctx, g: g)


@torch.library.custom_op("interop_test::add_one_", mutates_args={"xs"}, device_types="cpu")
def add_one_(xs: list[torch.Tensor]) -> None:
    for x in xs:
        x += 1


def test_custom_operator_for_all_devices() -> None:
    torch_neuronx.clear_op_tracking()
    x = torch.randn(3, 4, device="neuron", requires_grad=True)
    y = scale(x, 3.0)
    y.sum().backward()
    assert torch.equal(y.cpu(), x.detach().cpu() * 3) and bool((x.grad == 3).all())
    assert torch.equal(vmap(lambda row: scale(row, 2.0))(x.detach()).cpu(), x.detach().cpu() * 2)
    assert torch_neuronx.get_fallback_ops() == []
    checked = torch.library.opcheck(scale, (x.detach(), 2.0))
    assert set(checked.values()) == {"SUCCESS"}


def test_custom_operator_for_this_device() -> None:
    assert on_device(torch.ones(2, device="neuron")).tolist() == [2.0, 2.0]
    with pytest.raises(NotImplementedError, match="'CPU' backend"):
        on_device(torch.ones(2))


def test_custom_operator_for_the_cpu_is_a_counted_fallback() -> None:
    torch_neuronx.clear_op_tracking()
    x = torch.zeros(4, device="neuron", requires_grad=True)
    y = on_cpu(x)
    y.sum().backward()
    assert y.device == x.device and y.tolist() == [1.0] * 4 and x.grad.tolist() == [1.0] * 4
    assert torch_neuronx.fallback_report()["interop_test::on_cpu"]["calls"] == 1
    lists = [torch.zeros(2, device="neuron"), torch.ones(3, device="neuron")]
    add_one_(lists)
    assert [t.tolist() for t in lists] == [[1.0] * 2, [2.0] * 3]
    torch.backends.neuron.strict = True
    with pytest.raises(NotImplementedError, match="strict mode refuses"):
        on_cpu(x.detach())


@pytest.mark.parametrize("key", ["neuron", "PrivateUse1"])
def test_operators_defined_by_schema(key: str) -> None:
    with torch.library._scoped_library("interop_test", "FRAGMENT") as library:
        library.define(f"pair_{key}(Tensor x, Tensor? y=None) -> (Tensor, Tensor)")
        if key == "neuron":
            torch.library.impl(f"interop_test::pair_{key}", key, lambda x, y=None: (x + 1, x * 2), lib=library)
        else:
            library.impl(f"pair_{key}", lambda x, y=None: (x + 1, x * 2), key)
        a, b = getattr(torch.ops.interop_test, f"pair_{key}")(torch.ones(2, device="neuron"))
        assert (a.tolist(), b.tolist()) == ([2.0, 2.0], [2.0, 2.0])


def close(actual, expected) -> None:
    torch.testing.assert_close(actual, expected, check_device=False, rtol=1e-4, atol=1e-5)


TRANSFORMS = {
    "grad": lambda f: grad(lambda x: f(x).sum()),
    "jacrev": jacrev,
    "jacfwd": jacfwd,
    "hessian": lambda f: hessian(lambda x: f(x).sum()),
    "vjp": lambda f: lambda x: vjp(f, x)[1](torch.ones_like(x))[0],
    "jvp": lambda f: lambda x: jvp(f, (x,), (torch.ones_like(x),))[1],
    "vmap of grad": lambda f: vmap(grad(lambda x: f(x).sum())),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_function_transforms(name: str) -> None:
    transformed = TRANSFORMS[name](lambda x: x.sin() * x.exp())
    x = torch.randn(4, 3)
    close(transformed(x.to("neuron")).cpu(), transformed(x))


BATCHED = {
    "softmax": lambda x: x.softmax(-1),
    "layer_norm": lambda x: F.layer_norm(x, (6,)),
    "matmul": lambda x: x @ x.t(),
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, x),
    "conv1d": lambda x: F.conv1d(x[None], torch.ones(2, 4, 3, device=x.device)),
    "sort": lambda x: x.sort(-1)[0],
    "cumsum": lambda x: x.cumsum(0),
    "argmax": lambda x: x.argmax(-1),
    "index": lambda x: x[:, [0, 2]],
    "where": lambda x: torch.where(x > 0, x, -x),
    "gelu": F.gelu,
    "variance": lambda x: x.var(0),
    "topk": lambda x: x.topk(2)[0],
    "pad": lambda x: F.pad(x, (1, 1)),
    "cat": lambda x: torch.cat([x, x]),
    "gather": lambda x: x.gather(1, torch.zeros(4, 1, dtype=torch.long, device=x.device)),
    "group_norm": lambda x: F.group_norm(x[None], 2),
    "max_pool": lambda x: F.max_pool1d(x[None], 2),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.zeros(4, dtype=torch.long, device=x.device)),
    "attention": lambda x: F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None]),
    "embedding": lambda x: F.embedding(torch.tensor([1, 2], device=x.device), x),
}


@pytest.mark.parametrize("name", BATCHED)
def test_vmap(name: str) -> None:
    x = torch.randn(3, 4, 6)
    close(vmap(BATCHED[name])(x.to("neuron")).cpu(), vmap(BATCHED[name])(x))


def test_per_sample_gradients_and_ensembles() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    x, y = torch.randn(6, 4), torch.randn(6, 2)

    def gradients(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> dict:
        def loss(parameters, x, y):
            return F.mse_loss(functional_call(net, parameters, (x,)), y)

        return vmap(grad(loss), in_dims=(None, 0, 0))(dict(net.named_parameters()), x, y)

    expected = gradients(net, x, y)
    device = copy.deepcopy(net).to("neuron")
    for name, value in gradients(device, x.to("neuron"), y.to("neuron")).items():
        close(value.cpu(), expected[name])
    models = [nn.Linear(4, 3) for _ in range(3)]
    base = copy.deepcopy(models[0]).to("meta")
    inputs = torch.randn(3, 5, 4)

    def ensemble(models, inputs):
        return vmap(lambda p, b, x: functional_call(base, (p, b), (x,)))(*stack_module_state(models), inputs)

    expected_outputs = ensemble(models, inputs)
    close(ensemble([m.to("neuron") for m in models], inputs.to("neuron")).cpu(), expected_outputs)


def test_modes_see_the_operations() -> None:
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import FlopCounterMode

    operations: list[str] = []
    functions: list[str] = []

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            operations.append(str(function))
            return function(*args, **(kwargs or {}))

    class Function(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            functions.append(getattr(function, "__name__", ""))
            return function(*args, **(kwargs or {}))

    x = torch.randn(3, 4, device="neuron")
    with Dispatch():
        x.softmax(-1) @ x.t()
    with Function():
        F.gelu(x)
    assert {"aten._softmax.default", "aten.mm.default"} <= set(operations)
    assert functions == ["gelu"]
    with FlopCounterMode(display=False) as counter:
        F.linear(torch.randn(4, 8, device="neuron"), torch.randn(16, 8, device="neuron"))
    assert counter.get_total_flops() == 2 * 4 * 8 * 16
    with torch.device("neuron"):
        assert torch.zeros(3).device.type == "neuron"
    for tracing in ("real", "fake", "symbolic"):
        traced = make_fx(lambda x: F.gelu(x) @ x.t(), tracing_mode=tracing)(x)
        assert torch.equal(traced(x), F.gelu(x) @ x.t())


def test_fake_tensors_stand_for_device_tensors() -> None:
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode() as mode:
        y = torch.empty(4, 8, device="neuron")
        z = F.scaled_dot_product_attention(y[None, None], y[None, None], y[None, None])
        assert z.device.type == "neuron" and z.shape == (1, 1, 4, 8)
        assert F.layer_norm(y, (8,)).device.type == "neuron"
    assert mode.from_tensor(torch.ones(2, device="neuron")).device.type == "neuron"


class Plain(torch.Tensor):
    pass


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, device=inner.device, requires_grad=inner.requires_grad
        )

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        from torch.utils._pytree import tree_map

        def unwrap(t):
            return t.inner if isinstance(t, cls) else t

        result = function(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {}))
        return tree_map(lambda t: cls(t) if isinstance(t, torch.Tensor) else t, result)


def test_subclasses() -> None:
    s = torch.randn(3, device="neuron").as_subclass(Plain)
    assert type(s + 1) is Plain and type(F.relu(s)) is Plain
    inner = torch.randn(3, 4, device="neuron")
    w = Wrapper(inner)
    y = (w.softmax(-1) + 1) @ w.t()
    assert isinstance(y, Wrapper) and torch.equal(y.inner, (inner.softmax(-1) + 1) @ inner.t())
    w = Wrapper(inner).requires_grad_()
    (w * 2).sum().backward()
    assert isinstance(w.grad, Wrapper) and bool((w.grad.inner == 2).all())


def test_hooks() -> None:
    net, log = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1)).to("neuron"), []
    net[0].register_forward_pre_hook(lambda *_: log.append("forward pre"))
    net[0].register_forward_hook(lambda *_: log.append("forward"))
    net[2].register_full_backward_pre_hook(lambda *_: log.append("backward pre"))
    net[0].register_full_backward_hook(lambda *_: log.append("backward"))
    net[0].weight.register_post_accumulate_grad_hook(lambda _: log.append("accumulated"))
    x = torch.randn(2, 4, device="neuron", requires_grad=True)
    x.register_hook(lambda g: g * 2)
    net(x).sum().backward()
    assert log[:3] == ["forward pre", "forward", "backward pre"] and set(log[3:]) == {"backward", "accumulated"}
    hooked = x.grad.clone()
    y = x.detach().requires_grad_()
    net(y).sum().backward()
    assert torch.equal(hooked, y.grad * 2)


@pytest.mark.parametrize("pin", [False, True])
def test_saved_tensors_on_the_cpu(pin: bool) -> None:
    x = torch.randn(5, device="neuron", requires_grad=True)
    with torch.autograd.graph.save_on_cpu(pin_memory=pin):
        (x.exp() * x).sum().backward()
    y = x.detach().cpu().requires_grad_()
    (y.exp() * y).sum().backward()
    close(x.grad.cpu(), y.grad)


def test_double_backward_is_checked_numerically() -> None:
    x = torch.randn(3, dtype=torch.float64, device="neuron", requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: (x**3).tanh(), (x,))
    assert torch.autograd.gradgradcheck(lambda x: (x**3).tanh(), (x,))


def test_parametrizations_and_functional_modules() -> None:
    from torch.nn.utils import parametrizations, parametrize, stateless

    class Symmetric(nn.Module):
        def forward(self, weight):
            return weight.triu() + weight.triu(1).transpose(-1, -2)

    net = nn.Linear(4, 4).to("neuron")
    parametrize.register_parametrization(net, "weight", Symmetric())
    assert torch.equal(net.weight, net.weight.t())
    net(torch.randn(2, 4, device="neuron")).sum().backward()
    for apply in (parametrizations.weight_norm, parametrizations.spectral_norm, parametrizations.orthogonal):
        apply(nn.Linear(4, 4).to("neuron"))(torch.randn(2, 4, device="neuron")).sum().backward()
    net = nn.Linear(4, 4).to("neuron")
    replaced = {"weight": torch.eye(4, device="neuron"), "bias": torch.zeros(4, device="neuron")}
    x = torch.randn(2, 4, device="neuron")
    assert torch.equal(stateless._functional_call(net, replaced, (x,)), x)


def test_data_loader_with_workers_and_pinned_memory() -> None:
    data = torch.utils.data.TensorDataset(torch.arange(40.0).view(20, 2), torch.arange(20))
    for workers in (0, 2):
        loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=workers, pin_memory=True)
        total = 0.0
        for x, y in loader:
            assert x.is_pinned() and y.is_pinned()
            total += x.to("neuron", non_blocking=True).sum().item()
        assert total == 780.0


def test_dlpack_streams_copies_and_other_devices() -> None:
    x = torch.arange(6.0, device="neuron").view(2, 3) + 1
    stream = torch.neuron.current_stream()
    for argument in (None, -1, stream.native_handle):
        assert torch.from_dlpack(x.__dlpack__(stream=argument)).data_ptr() == x.data_ptr()
    with pytest.raises(TypeError, match="stream must be"):
        x.__dlpack__(stream=stream)
    assert torch.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    assert torch.from_dlpack(x, copy=False).data_ptr() == x.data_ptr()
    host = torch.from_dlpack(x, device="cpu")
    assert host.device.type == "cpu" and torch.equal(host, x.cpu())
    assert torch.equal(torch.from_dlpack(torch.ones(3), device="neuron").cpu(), torch.ones(3))
    assert np.from_dlpack(x, device="cpu", copy=True).tolist() == [[1, 2, 3], [4, 5, 6]]
    with pytest.raises((RuntimeError, BufferError), match="[Uu]nsupported device"):
        np.from_dlpack(x)
    readonly = np.ones(3, dtype=np.float32)
    readonly.flags.writeable = False
    assert torch.from_dlpack(readonly, copy=True).to("neuron").tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float16, torch.bool, torch.int64, torch.complex64, torch.uint8]
)
def test_dlpack_dtypes(dtype: torch.dtype) -> None:
    x = torch.ones(3, device="neuron", dtype=dtype)
    y = torch.from_dlpack(x)
    assert y.dtype == dtype and torch.equal(x, y)


def test_dlpack_memory_is_released() -> None:
    torch.neuron.synchronize()
    gc.collect()
    before = torch.neuron.memory_allocated()
    capsule = torch.utils.dlpack.to_dlpack(torch.ones(1000, device="neuron"))
    del capsule
    imported = torch.from_dlpack(torch.ones(1000, device="neuron") + 1)
    doubled = imported * 2
    imported.fill_(5)  # after the product has read it
    del imported
    assert doubled.sum().item() == 4000.0
    del doubled
    gc.collect()
    assert torch.neuron.memory_allocated() == before


def test_numpy_refuses_with_the_way_out() -> None:
    x = torch.ones(3, device="neuron")
    for use in (lambda: x.numpy(), lambda: np.asarray(x), lambda: np.sin(x), lambda: x + np.ones(3)):
        with pytest.raises(TypeError, match=r"Use Tensor.cpu\(\) to copy the tensor to host memory first"):
            use()
    assert not hasattr(x, "__array_interface__")
    assert x.numpy(force=True).tolist() == [1.0] * 3
    assert (x + np.float32(2)).tolist() == [3.0] * 3
    assert x[np.array([0, 2])].shape == (2,)
    assert torch.asarray(np.ones(2), device="neuron").device.type == "neuron"
    assert torch.frombuffer(bytearray(8), dtype=torch.float32).to("neuron").tolist() == [0.0, 0.0]


def test_a_device_tensor_does_not_cross_processes() -> None:
    from torch.multiprocessing import reductions

    storage = torch.ones(2, device="neuron").untyped_storage()
    with pytest.raises(RuntimeError, match="only available on CPU"):
        reductions.reduce_storage(storage)
