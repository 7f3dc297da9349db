"""Graphs: capture once, replay many times. Results of replays are compared with the same operations run eagerly."""

from __future__ import annotations

import copy
import gc

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import torch_neuronx
from torch_neuronx.neuron import NeuronGraph, graph, graph_pool_handle, make_graphed_callables


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8)).to("neuron")


def test_torch_accelerator_graph() -> None:
    x = torch.zeros(8, device="neuron")
    stream = torch.Stream(device="neuron")
    g = torch.accelerator.Graph()
    with stream, g:
        assert stream.is_capturing() if hasattr(stream, "is_capturing") else True
        assert torch.neuron.is_current_stream_capturing()
        x += 1
    assert not torch.neuron.is_current_stream_capturing()
    assert x.cpu().tolist() == [0.0] * 8
    for _ in range(3):
        g.replay()
    assert x.cpu().tolist() == [3.0] * 8


def test_new_inputs_are_copied_into_the_static_ones() -> None:
    net = model()
    static = torch.randn(4, 16, device="neuron")
    g = NeuronGraph()
    with graph(g), torch.no_grad():
        out = net(static)
    for seed in range(3):
        value = torch.randn(4, 16, generator=torch.Generator().manual_seed(seed))
        static.copy_(value)
        g.replay()
        with torch.no_grad():
            assert torch.equal(out, net(value.to("neuron")))


@pytest.mark.parametrize("mode", ["adaptive", "immediate", "blocking"])
def test_replays_have_the_bits_of_eager_execution_in_every_mode(mode: str) -> None:
    torch.backends.neuron.eager_mode = mode
    net = model()
    static, target = torch.randn(4, 16, device="neuron"), torch.randint(8, (4,), device="neuron")
    g = NeuronGraph()
    with graph(g):
        loss = F.cross_entropy(net(static), target)
        gradients = torch.autograd.grad(loss, list(net.parameters()))
    g.replay()
    torch.backends.neuron.eager_mode = "adaptive"
    eager_loss = F.cross_entropy(net(static), target)
    eager = torch.autograd.grad(eager_loss, list(net.parameters()))
    assert torch.equal(loss, eager_loss)
    assert all(torch.equal(a, b) for a, b in zip(gradients, eager, strict=True))


@pytest.mark.parametrize("options", [{"capturable": True}, {"fused": True}, {"capturable": True, "foreach": True}])
def test_a_whole_training_step(options: dict) -> None:
    nets = [model(), model()]
    data = torch.randn(10, 4, 16, device="neuron")
    target = torch.randint(8, (4,), device="neuron")

    optimizers = [torch.optim.AdamW(net.parameters(), lr=1e-2, **options) for net in nets]

    def step(which: int, x: torch.Tensor) -> torch.Tensor:
        optimizers[which].zero_grad(set_to_none=True)
        loss = F.cross_entropy(nets[which](x), target)
        loss.backward()
        optimizers[which].step()
        return loss

    static = data[0].clone()
    for which in range(2):  # the state of the optimizer exists before the capture
        for _ in range(2):
            step(which, data[0])
    g = NeuronGraph()
    with graph(g):
        loss = step(0, static)
    captured = []
    for x in data:
        static.copy_(x)
        g.replay()
        captured.append(loss.clone())
    eager = [step(1, x) for x in data]
    torch.testing.assert_close(torch.stack(captured), torch.stack(eager), rtol=0, atol=0)
    for a, b in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        assert torch.equal(a, b)


def test_random_numbers_go_on_as_without_a_graph() -> None:
    def numbers() -> tuple[torch.Tensor, ...]:
        x = torch.randn(5, 7, device="neuron")
        return (
            x,
            F.dropout(torch.ones(33, device="neuron"), 0.5),
            torch.rand(3, device="neuron"),
            torch.randperm(10, device="neuron"),
            torch.randint(100, (4,), device="neuron"),
            torch.multinomial(torch.ones(6, device="neuron"), 3),
        )

    torch.manual_seed(5)
    eager = [[n.cpu() for n in numbers()] for _ in range(3)]
    after = torch.randn(3, device="neuron").cpu()
    torch.manual_seed(5)
    g = NeuronGraph()
    with graph(g):
        out = numbers()
    for expected in eager:
        g.replay()
        for a, b in zip(out, expected, strict=True):
            assert torch.equal(a.cpu(), b)
    assert torch.equal(torch.randn(3, device="neuron").cpu(), after)
    torch.manual_seed(5)
    g.replay()
    assert torch.equal(out[0].cpu(), eager[0][0])


def test_a_generator_of_its_own() -> None:
    generator = torch.Generator(device="neuron").manual_seed(3)
    eager = [torch.rand(4, device="neuron", generator=generator).cpu() for _ in range(2)]
    generator.manual_seed(3)
    g = NeuronGraph()
    with graph(g):
        out = torch.rand(4, device="neuron", generator=generator)
    for expected in eager:
        g.replay()
        assert torch.equal(out.cpu(), expected)


@pytest.mark.parametrize(
    "illegal",
    [
        lambda x: x.sum().item(),
        lambda x: x.cpu(),
        lambda x: torch.neuron.synchronize(),
        lambda x: torch.nonzero(x),
        lambda x: print(x),
        lambda x: torch.neuron.current_stream().query(),
    ],
)
def test_what_needs_the_host_is_refused(illegal) -> None:
    x = torch.ones(4, device="neuron")
    g = NeuronGraph()
    with pytest.raises(RuntimeError, match="not permitted while a graph is being captured"), graph(g):
        illegal(x + 1)
    assert not torch.neuron.is_current_stream_capturing()
    with pytest.raises(RuntimeError, match="capture of this graph failed"):
        g.replay()
    assert (x + 1).sum().item() == 8
    g.reset()
    with graph(g):
        x += 1
    g.replay()
    assert x.cpu().tolist() == [2.0] * 4


def test_an_operator_of_the_cpu_is_refused_by_name() -> None:
    x = torch.ones(4, device="neuron")
    g = NeuronGraph()
    with (
        pytest.raises(RuntimeError, match=r"being captured: the operator 'aten::igamma.out' .* runs on the CPU"),
        graph(g),
    ):
        torch.igamma(x, x)
    with pytest.raises(RuntimeError, match="capture of this graph failed"):
        g.replay()
    torch.igamma(x, x)


def test_states_that_do_not_fit() -> None:
    g = NeuronGraph()
    with pytest.raises(RuntimeError, match="holds nothing"):
        g.replay()
    with pytest.raises(RuntimeError, match="no capture is under way"):
        g.capture_end()
    with pytest.raises(RuntimeError, match="before its capture begins"):
        g.pool()
    x = torch.ones(2, device="neuron")
    with graph(g):
        y = x * 2
    with pytest.raises(RuntimeError, match="captured already"):
        g.capture_begin()
    inner = NeuronGraph()
    with pytest.raises(NotImplementedError, match="cannot be replayed inside"), graph(inner):
        g.replay()
    g.replay()
    assert y.cpu().tolist() == [2.0, 2.0]


def test_memory_freed_after_the_capture_is_noticed() -> None:
    x, y = torch.ones(1000, device="neuron"), torch.zeros(1000, device="neuron")
    g = NeuronGraph()
    with graph(g):
        y += x
    g.replay()
    del x
    keep = [torch.full((1000,), 9.0, device="neuron") for _ in range(4)]
    with pytest.raises(RuntimeError, match="freed after the capture"):
        g.replay()
    assert y.cpu()[0] == 1.0 and len(keep) == 4


def test_temporaries_of_a_graph_are_nobody_elses() -> None:
    x = torch.ones(1000, device="neuron")
    g = NeuronGraph()
    with graph(g):
        out = (x * 2).sort()[0].cumsum(0) * 1.0
    torch.neuron.empty_cache()
    others = [torch.full((1000,), float(i), device="neuron") for i in range(50)]
    for _ in range(3):
        g.replay()
    assert out.cpu()[-1] == 2000.0
    assert all(bool((t == i).all()) for i, t in enumerate(others))


def test_memory_comes_back_when_the_graph_is_gone() -> None:
    x = torch.ones(1 << 20, device="neuron")
    torch.neuron.synchronize()
    torch.neuron.empty_cache()
    before = torch.neuron.memory_reserved()
    for _ in range(3):
        g = NeuronGraph()
        with graph(g):
            out = (x + 1).sort()[0]
        g.replay()
        torch.neuron.synchronize()
        assert torch.neuron.memory_reserved() > before
        del g, out
        gc.collect()
        torch.neuron.empty_cache()
        assert torch.neuron.memory_reserved() == before


def test_graphs_share_a_pool() -> None:
    pool = graph_pool_handle()
    x = torch.arange(4.0, device="neuron")
    first, second = NeuronGraph(), NeuronGraph()
    with graph(first, pool=pool):
        y = x + 1
    with graph(second, pool=pool):
        z = y * 10
    assert first.pool() == second.pool() == pool
    for _ in range(2):
        x += 1
        first.replay()
        second.replay()
    assert z.cpu().tolist() == [30.0, 40.0, 50.0, 60.0]


def test_a_number_filled_in_one_graph_is_read_in_another() -> None:
    pool = graph_pool_handle()
    x = torch.arange(4.0, device="neuron")
    first, second = NeuronGraph(), NeuronGraph()
    with graph(first, pool=pool):
        number = torch.full((), 5.0, device="neuron")
    with graph(second, pool=pool):
        z = torch.where(x > 1, x, number)
    first.replay()
    second.replay()
    assert z.cpu().tolist() == [5.0, 5.0, 2.0, 3.0]
    number.fill_(9.0)
    second.replay()
    assert z.cpu().tolist() == [9.0, 9.0, 2.0, 3.0]


def test_side_streams_join_the_capture() -> None:
    x = torch.ones(4, device="neuron")
    side = torch.neuron.Stream()
    g = NeuronGraph()
    with graph(g):
        main = torch.neuron.current_stream()
        side.wait_stream(main)
        with torch.neuron.stream(side):
            y = x * 3
        main.wait_stream(side)
        z = y + 1
    x.fill_(2.0)
    g.replay()
    assert z.cpu().tolist() == [7.0] * 4


def test_copies_from_and_to_the_host() -> None:
    small, pinned = torch.arange(4.0), torch.zeros(4).pin_memory()
    large = torch.ones(100_000)
    g = NeuronGraph()
    with graph(g):
        x = small.to("neuron")
        total = large.to("neuron").sum() + x.sum()
        pinned.copy_(x * 2, non_blocking=True)
    g.replay()
    torch.neuron.synchronize()
    assert pinned.tolist() == [0.0, 2.0, 4.0, 6.0]
    assert total.item() == 100_006.0


def test_errors_of_a_replay_are_late_and_poison() -> None:
    table, index = torch.randn(4, 2, device="neuron"), torch.tensor([0, 1], device="neuron")
    g = NeuronGraph()
    with graph(g):
        out = F.embedding(index, table) * 2
    g.replay()
    good = out.cpu()
    index.fill_(77)
    g.replay()
    with pytest.raises(IndexError):
        torch.neuron.synchronize()
    index.copy_(torch.tensor([0, 1]))
    g.replay()
    assert torch.equal(out.cpu(), good)


def test_keep_graph_and_debug_dump(tmp_path) -> None:
    x = torch.ones(4, device="neuron")
    g = torch.accelerator.Graph(keep_graph=True)
    g.enable_debug_mode()
    with g:
        y = x.exp() + 1
    g.instantiate()
    g.replay()
    assert torch.equal(y, x.exp() + 1)
    g.debug_dump(str(tmp_path / "graph.dot"))
    text = (tmp_path / "graph.dot").read_text()
    assert text.startswith("digraph") and "exp" in text
    with pytest.raises(RuntimeError, match="enable_debug_mode"):
        torch.accelerator.Graph().debug_dump(str(tmp_path / "other.dot"))


def test_a_graph_belongs_to_its_device() -> None:
    with torch.neuron.device(1):
        x = torch.ones(3, device="neuron")
        g = NeuronGraph()
        with graph(g):
            x += 1
    g.replay()
    assert x.device.index == 1 and x.cpu().tolist() == [2.0] * 3


def test_nothing_but_one_task_is_recorded_by_a_replay() -> None:
    net = model()
    x = torch.randn(4, 16, device="neuron")
    g = NeuronGraph()
    with graph(g), torch.no_grad():
        net(x)
    torch.neuron.synchronize()
    torch_neuronx.reset_eager_report()
    g.replay()
    torch.neuron.synchronize()
    report = torch_neuronx.eager_report()
    assert report["plan_hits"] == 1 and report["plan_misses"] == 0
    assert report["awaiting_compile"] == report["seen_once"] == 0


def test_replays_are_counted_like_the_operations_they_stand_for() -> None:
    net = model()
    x = torch.randn(4, 16, device="neuron")

    def counts(run) -> dict[str, int]:
        torch_neuronx.reset_eager_report()
        run()
        torch.neuron.synchronize()
        report = torch_neuronx.eager_report()
        return {key: report[key] for key in ("commands", "region_commands", "kernel_commands")}

    def step() -> None:
        with torch.no_grad():
            torch._foreach_add_([net(x), x.clone()], 1.0)

    eager = counts(step)
    g = NeuronGraph()
    with graph(g):
        step()
    assert counts(g.replay) == eager
    assert counts(lambda: [g.replay() for _ in range(3)]) == {key: 3 * value for key, value in eager.items()}


def test_graphed_callables() -> None:
    net = model()
    reference = copy.deepcopy(net)
    graphed = make_graphed_callables(net, (torch.randn(4, 16, device="neuron", requires_grad=True),))
    assert graphed is net
    for seed in range(3):
        torch.manual_seed(seed)
        x = torch.randn(4, 16, device="neuron", requires_grad=True)
        y = x.detach().clone().requires_grad_()
        a, b = graphed(x), reference(y)
        assert torch.equal(a, b)
        a.square().sum().backward()
        b.square().sum().backward()
        assert torch.equal(x.grad, y.grad)
    for p, q in zip(net.parameters(), reference.parameters(), strict=True):
        assert torch.equal(p.grad, q.grad)
    net.eval()  # another mode than at the capture: runs as before
    assert torch.equal(net(torch.ones(9, 16, device="neuron")), reference(torch.ones(9, 16, device="neuron")))


def test_several_graphed_functions() -> None:
    def first(x: torch.Tensor) -> torch.Tensor:
        return x.sin() * 2

    def second(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * y, (x > y)

    def sample(n: int) -> tuple[torch.Tensor, ...]:
        return tuple(torch.randn(6, device="neuron", requires_grad=True) for _ in range(n))

    f, h = make_graphed_callables((first, second), (sample(1), sample(2)))
    x = torch.randn(6, device="neuron", requires_grad=True)
    y = torch.randn(6, device="neuron", requires_grad=True)
    product, larger = h(f(x), y)
    product.sum().backward()
    assert torch.equal(product, x.sin() * 2 * y) and larger.dtype == torch.bool and not larger.requires_grad
    torch.testing.assert_close(x.grad, x.detach().cos() * 2 * y.detach())
    torch.testing.assert_close(y.grad, x.detach().sin() * 2)
    with pytest.raises(ValueError, match="captured with an input of shape"):
        f(torch.randn(7, device="neuron"))
    with pytest.raises(TypeError, match="must be tensors"):
        f(3.0)


def test_attention_with_dropout_takes_forward_and_backward_in_one_capture() -> None:
    q = torch.randn(1, 2, 16, 8, device="neuron", requires_grad=True)

    def step() -> tuple[torch.Tensor, torch.Tensor]:
        out = F.scaled_dot_product_attention(q, q, q, dropout_p=0.5)
        return out.detach(), torch.autograd.grad(out.sum(), q)[0]

    torch.manual_seed(1)
    eager = [step() for _ in range(2)]
    g = NeuronGraph()
    with graph(g):
        captured = step()
    torch.manual_seed(1)
    for expected in eager:
        g.replay()
        assert torch.equal(captured[0], expected[0]) and torch.equal(captured[1], expected[1])
    forward, backward = NeuronGraph(), NeuronGraph()
    with graph(forward):
        out = F.scaled_dot_product_attention(q, q, q, dropout_p=0.5)
    with graph(backward):
        torch.autograd.grad(out, q, torch.ones_like(out))
    forward.replay()
    with pytest.raises(RuntimeError, match="random numbers of an operation in another capture"):
        backward.replay()
