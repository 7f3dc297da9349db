"""What somebody tries in the first hour: short programs, with the same values as on the CPU."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import torch_neuronx

PROGRAMS: dict[str, Callable[[str], list[Any]]] = {}


def program(run: Callable[[str], list[Any]]) -> Callable[[str], list[Any]]:
    PROGRAMS[run.__name__] = run
    return run


def train(device: str, optimizer: Callable[..., torch.optim.Optimizer]) -> list[Any]:
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3)).to(device)
    x, y = torch.randn(64, 10).to(device), torch.randint(0, 3, (64,)).to(device)
    steps, losses = optimizer(model.parameters()), []
    for _ in range(8):
        steps.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        steps.step()
        losses.append(loss.item())
    return [torch.tensor(losses), *model.parameters()]


@program
def mlp_sgd(d: str) -> list[Any]:
    return train(d, lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9))


@program
def mlp_adam(d: str) -> list[Any]:
    return train(d, lambda parameters: torch.optim.Adam(parameters, lr=1e-2))


@program
def convolutions(d: str) -> list[Any]:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.0),
        nn.Conv2d(8, 8, 3),
    ).to(d)
    x = torch.randn(4, 3, 12, 12).to(d).requires_grad_()
    F.nll_loss(model(x).mean((2, 3)).log_softmax(1), torch.arange(4).to(d)).backward()
    trained = [x.grad, model[1].running_mean, model[0].weight.grad]
    return [*trained, model.eval()(x)]


@program
def lstm(d: str) -> list[Any]:
    model = nn.LSTM(6, 5, num_layers=2, batch_first=True, bidirectional=True).to(d)
    x = torch.randn(3, 7, 6).to(d).requires_grad_()
    y, (h, c) = model(x)
    (y.pow(2).sum() + c.sum()).backward()
    return [y, h, c, x.grad, *(parameter.grad for parameter in model.parameters())]


@program
def lstm_without_bias(d: str) -> list[Any]:
    model = nn.LSTM(4, 3, bias=False, proj_size=2).to(d)
    x = torch.randn(5, 2, 4).to(d).requires_grad_()
    _, (_, c) = model(x)
    c.sum().backward()
    return [c, x.grad, model.weight_hh_l0.grad]


@program
def gru(d: str) -> list[Any]:
    model = nn.GRU(6, 5).to(d)
    x = torch.randn(7, 3, 6).to(d).requires_grad_()
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([7, 5, 2]))
    y, lengths = nn.utils.rnn.pad_packed_sequence(model(packed)[0])
    y.pow(2).sum().backward()
    return [y, lengths, x.grad, *(parameter.grad for parameter in model.parameters())]


@program
def recurrent_cells(d: str) -> list[Any]:
    lstm_cell, gru_cell, rnn = nn.LSTMCell(4, 5).to(d), nn.GRUCell(4, 5, bias=False).to(d), nn.RNN(4, 5).to(d)
    x = torch.randn(3, 4).to(d).requires_grad_()
    h, c = lstm_cell(x)
    h, c = lstm_cell(x, (h, c))
    g = gru_cell(x[0])
    (h.sum() + g.sum()).backward()
    return [h, c, g, rnn(x[None])[0], x.grad, gru_cell.weight_hh.grad, lstm_cell.bias_hh.grad]


@program
def transformer_encoder(d: str) -> list[Any]:
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).to(d)
    x = torch.randn(2, 5, 16).to(d).requires_grad_()
    causal = nn.Transformer.generate_square_subsequent_mask(5, device=d)
    padding = torch.tensor([[0, 0, 0, 0, 1], [0, 0, 0, 1, 1]], dtype=torch.bool).to(d)
    y, z = model(x, mask=causal, is_causal=True), model(x, src_key_padding_mask=padding)[:, :3]
    (y.sum() + z.pow(2).sum()).backward()
    model.eval()
    with torch.no_grad():
        evaluated = [model(x), model(x, src_key_padding_mask=padding)[:, :3], model(x, mask=causal)]
    return [y, z, x.grad, *evaluated]


@program
def save_and_load(d: str) -> list[Any]:
    model = nn.Linear(3, 4).to(d)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 3, device=d)).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    view = torch.arange(5, device=d)[1:]
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "view": view}, file)
    file.seek(0)
    loaded = torch.load(file)
    file.seek(0)
    on_host = torch.load(file, map_location="cpu")
    assert loaded["view"].device.type == d and on_host["view"].device.type == "cpu"
    again = nn.Linear(3, 4).to(d)
    again.load_state_dict(loaded["model"])
    optimizer.load_state_dict(loaded["optimizer"])
    return [again.weight, loaded["view"], on_host["model"]["bias"], loaded["optimizer"]["state"][0]["exp_avg"]]


@program
def data_loader(d: str) -> list[Any]:
    data = torch.utils.data.TensorDataset(torch.arange(20.0).view(10, 2), torch.arange(10))
    loader = torch.utils.data.DataLoader(data, 4, pin_memory=d != "cpu")
    return [(x.to(d, non_blocking=True) * y.to(d, non_blocking=True)[:, None]).sum(0) for x, y in loader]


@program
def compiled(d: str) -> list[Any]:
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(d)
    x = torch.randn(5, 4).to(d)
    loss = torch.compile(model, backend="aot_eager")(x).sum()
    loss.backward()
    return [loss, model[0].weight.grad]


@program
def indexing(d: str) -> list[Any]:
    x = torch.arange(24.0, device=d).view(4, 6)
    places = torch.tensor([2, 0], device=d)
    y = x.clone()
    y[y > 10] = 0
    y[0] = -1
    y[[1, 2], [3, 4]] = torch.tensor([7.0, 8.0], device=d)
    y[:, 0] += 100
    y[y < 0] = y[y < 0] * 2
    y[::2, 1] = torch.tensor(3.0)
    y[torch.tensor([0, 3])] *= 2
    y[1:, 2:4] = torch.ones(3, 2, device=d)
    results = [y, x[x > 5], x[[0, 2]], x[[0, 1], [2, 3]], x[1:3, ::2], x[x[:, 0] > 5], x[:, None, places]]
    with pytest.raises(ValueError, match="step must be greater than zero"):
        x[::-1]
    with pytest.raises(IndexError, match="index 10 is out of bounds for dimension 0 with size 4"):
        x[10]
    return results


@program
def printing(d: str) -> list[Any]:
    names = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64", "bool"]
    names += ["complex64", "complex128", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2"]
    tensors = [torch.tensor([[0, 1, 2], [3, 1, 5]]).to(getattr(torch, name)).to(d) for name in names]
    tensors += [torch.tensor(1.5, device=d), torch.empty(0, 3, device=d), torch.ones(2000, 3, device=d)]
    return [repr(tensor).replace(f", device='{d}:0'", "") for tensor in tensors]


@program
def complex_numbers(d: str) -> list[Any]:
    x = torch.tensor([1 + 2j, 3 - 1j, -2 + 0.5j]).to(d)
    return [x * x.conj(), x / 2, x.abs(), x.angle(), x.real, torch.exp(x), x.sum(), torch.fft.fft(x), x @ x]


@program
def conjugated_products(d: str) -> list[Any]:
    x, y = torch.randn(3, 3, dtype=torch.complex64).to(d), torch.randn(3, 3, dtype=torch.complex64).to(d)
    sums = [torch.addmm(y.conj(), x.mH, y), torch.baddbmm(y[None].conj(), x[None], y[None].mH)]
    out = torch.zeros(3, 3, dtype=torch.complex64).to(d)
    torch.mm(x, y, out=out.conj())
    dots = [x[0] @ y[0].conj(), torch.vdot(x[0], y[0]), torch.vdot(x[0].real, y[0].imag), x.imag.mT @ y.conj().imag]
    return [x @ y.conj(), x.mH @ y, x[None].conj() @ y[None], x.conj() @ y[0].conj(), out, *sums, *dots]


@program
def einsum(d: str) -> list[Any]:
    a, b, v = torch.randn(2, 3, 4).to(d), torch.randn(2, 4, 5).to(d), torch.randn(4).to(d)
    products = [("bij,bjk->bik", a, b), ("bij->ji", a), ("i,j->ij", v, v), ("bij,j->bi", a, v), ("ii", a[0, :, :3])]
    return [torch.einsum(*terms) for terms in products]


@program
def function_transforms(d: str) -> list[Any]:
    from torch.func import grad, hessian, jacrev, vmap

    x, batch, weight = torch.randn(5).to(d), torch.randn(3, 5).to(d), torch.randn(5, 5).to(d)

    def f(x: torch.Tensor) -> torch.Tensor:
        return (x.sin() * x).sum()

    return [grad(f)(x), vmap(grad(f))(batch), jacrev(lambda x: weight @ x.tanh())(x), hessian(f)(x)]


@program
def loss_functions(d: str) -> list[Any]:
    x, y = torch.randn(6, 4).to(d).requires_grad_(), torch.rand(6, 4).to(d)
    target = torch.randint(0, 4, (6,)).to(d)
    losses = [
        F.cross_entropy(x, target, label_smoothing=0.1),
        F.cross_entropy(x, target, weight=y[0], ignore_index=1),
        F.mse_loss(x, y),
        F.smooth_l1_loss(x, y),
        F.binary_cross_entropy_with_logits(x, y, pos_weight=y[0]),
        F.kl_div(x.log_softmax(1), y, reduction="batchmean"),
    ]
    return [*losses, *(torch.autograd.grad(loss, x, retain_graph=True)[0] for loss in losses)]


def flat(results: list[Any]) -> list[Any]:
    return [r.detach().cpu() if isinstance(r, torch.Tensor) else r for r in results]


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_values_as_on_the_cpu(name: str):
    torch.manual_seed(0)
    expected = flat(PROGRAMS[name]("cpu"))
    torch.manual_seed(0)
    actual = flat(PROGRAMS[name]("neuron"))
    assert len(actual) == len(expected)
    for ours, theirs in zip(actual, expected, strict=True):
        if isinstance(theirs, torch.Tensor):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
        else:
            assert ours == theirs


@pytest.mark.parametrize("name", ["mlp_adam", "convolutions", "lstm", "gru", "recurrent_cells", "compiled"])
def test_nothing_runs_on_the_cpu(name: str):
    torch_neuronx.clear_op_tracking()
    PROGRAMS[name]("neuron")
    assert torch_neuronx.get_fallback_ops() == []


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_recurrent_layers_of_other_dtypes(kind: type[nn.RNNBase], dtype: torch.dtype):
    torch.manual_seed(0)
    model, x = kind(4, 6), torch.randn(5, 3, 4)
    exact = model.double()(x.double())[0]
    ours = model.to("neuron", dtype)(x.to("neuron", dtype))[0]
    assert ours.dtype == dtype
    tolerance = {torch.bfloat16: 2e-2, torch.float16: 3e-3, torch.float64: 1e-12}[dtype]
    torch.testing.assert_close(ours.double().cpu(), exact, rtol=tolerance, atol=tolerance)


def test_mixed_precision_step_with_a_scaler():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 2)).to("neuron")
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("neuron")
    x, losses = torch.randn(32, 8).to("neuron"), []
    for _ in range(4):
        optimizer.zero_grad()
        with torch.autocast("neuron", dtype=torch.bfloat16):
            out = model(x)
            loss = out.float().pow(2).mean()
        assert out.dtype == torch.bfloat16
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        assert nn.utils.clip_grad_norm_(model.parameters(), 1.0).isfinite()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)
    assert scaler.get_scale() == 65536.0


def test_profiler_names_the_operations():
    from torch.profiler import ProfilerActivity, profile, record_function

    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recorded, record_function("one step"):
        torch.ones(8, 8, device="neuron") @ torch.ones(8, 8, device="neuron")
    assert {"aten::mm", "one step"} <= {event.key for event in recorded.key_averages()}
