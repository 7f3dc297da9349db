"""Graphs: a sequence of operations recorded once and replayed many times, at the cost of handing over one task.

``torch.accelerator.Graph`` works on the device; the names here are those that programs know from ``torch.cuda``. A replay
runs on the same memory: new inputs are copied into the tensors that were used during the capture, results appear in the
tensors that the capture returned. Random numbers go on from the generator's state at each replay. What needs a value on
the host (``item()``, ``cpu()``, shapes that depend on values, ``synchronize()``) raises during a capture.

Numbers that Python computes are part of the graph: an optimizer's step count and learning rate must be tensors
(``capturable=True`` or ``fused=True``).
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from torch_neuronx import _C
from torch_neuronx.neuron.streams import StreamContext


def graph_pool_handle() -> tuple[int, int]:
    """An identifier for the memory of several graphs: pass it as ``pool`` of each. Such graphs may use each other's freed
    memory, so they must be replayed in the order of their captures."""
    return _C.new_graph_pool()


def is_current_stream_capturing() -> bool:
    """Whether operations on the current stream go into a graph."""
    return _C.stream_is_capturing(-1)


class NeuronGraph(torch.accelerator.Graph):
    """A graph of the neuron device, with the methods of ``torch.cuda.CUDAGraph``."""

    def capture_begin(self, pool: tuple[int, int] | None = None, capture_error_mode: str | None = None) -> None:
        """Captures what is recorded on the current stream from now on. All capture modes behave alike: only operations
        on captured streams are restricted."""
        if pool is not None:
            self.graph_pool = pool
        if capture_error_mode is not None:
            self.capture_error_mode = capture_error_mode  # type: ignore[assignment]
        super().capture_begin()


class graph:  # noqa: N801  (the name of torch.cuda's)
    """``with torch.neuron.graph(g):`` captures the block's operations into ``g``.

    ``stream``: the stream to capture, by default the current one. Streams that wait inside the block for an event of the
    captured stream are captured, too.
    """

    def __init__(
        self,
        neuron_graph: torch.accelerator.Graph,
        pool: tuple[int, int] | None = None,
        stream: torch.Stream | None = None,
        capture_error_mode: str = "default",
    ):
        self.neuron_graph = neuron_graph
        if pool is not None:
            neuron_graph.graph_pool = pool
        neuron_graph.capture_error_mode = capture_error_mode  # type: ignore[assignment]
        self._stream = StreamContext(stream)

    def __enter__(self) -> None:
        torch.accelerator.synchronize()
        gc.collect()  # storages that die during a capture would be part of it
        self._stream.__enter__()
        self.neuron_graph.capture_begin()

    def __exit__(self, *exception: object) -> None:
        try:
            self.neuron_graph.capture_end()
        finally:
            self._stream.__exit__(*exception)


def make_graphed_callables(
    callables: Any,
    sample_args: tuple[Any, ...],
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: tuple[int, int] | None = None,
) -> Any:
    """Functions or modules whose forward and backward passes are graphs.

    ``sample_args``: the positional arguments of one callable, or one tuple of them per callable; only tensors, possibly
    nested, with the shapes, dtypes and ``requires_grad`` of all later calls. A module keeps its class and parameters, and
    runs as before when its training mode is another than now. Results are overwritten by the next call. Several callables
    must be called in the given order.
    """
    single = not isinstance(callables, tuple)
    functions = (callables,) if single else callables
    arguments = (sample_args,) if single else sample_args
    if len(functions) != len(arguments):
        raise ValueError(f"{len(functions)} callables, but sample arguments for {len(arguments)}")
    pool = graph_pool_handle() if pool is None else pool
    captures = [
        _Capture(function, args, num_warmup_iters, allow_unused_input)
        for function, args in zip(functions, arguments, strict=True)
    ]
    for capture in captures:
        capture.capture_forward(pool)
    # Backward passes run in reverse order, and may use memory that the later ones have freed.
    for capture in reversed(captures):
        capture.capture_backward(pool)
    graphed = tuple(capture.callable() for capture in captures)
    return graphed[0] if single else graphed


class _Capture:
    """One callable: its graphs and the tensors they work on."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], warmups: int, allow_unused: bool):
        if torch.is_autocast_enabled("neuron") and torch.is_autocast_cache_enabled():
            raise RuntimeError(
                "make_graphed_callables cannot be used with autocast's cache, which would keep tensors of the capture: "
                "use torch.autocast(..., cache_enabled=False)"
            )
        self.function = function
        self.allow_unused = allow_unused
        self.inputs, self.input_tree = _flatten_tensors(args)
        self.parameters: tuple[torch.Tensor, ...] = ()
        if isinstance(function, torch.nn.Module):
            hooks = (function._forward_hooks, function._forward_pre_hooks, function._backward_hooks)
            if any(hooks):
                raise RuntimeError("a module must have no hooks when it is graphed: register them on the result")
            if any(buffer.requires_grad for buffer in function.buffers()):
                raise RuntimeError("a module must have no buffers that require a gradient when it is graphed")
            self.parameters = tuple(function.parameters())
        self.static = (*self.inputs, *self.parameters)
        self.training = getattr(function, "training", False)
        self.forward_graph = NeuronGraph()
        self.backward_graph: NeuronGraph | None = None
        self.static_grad_outputs: tuple[torch.Tensor | None, ...] = ()
        self.static_grad_inputs: tuple[torch.Tensor | None, ...] = ()
        for _ in range(warmups):
            outputs = [o for o in _flatten_tensors(self._call())[0] if o.requires_grad]
            wanted = [tensor for tensor in self.static if tensor.requires_grad]
            if outputs and wanted:
                torch.autograd.grad(outputs, wanted, [torch.empty_like(o) for o in outputs], allow_unused=allow_unused)

    def _call(self) -> Any:
        return self.function(*tree_unflatten(list(self.inputs), self.input_tree))

    def capture_forward(self, pool: tuple[int, int]) -> None:
        with graph(self.forward_graph, pool=pool):
            result = self._call()
        self.outputs, self.output_tree = _flatten_tensors(result)

    def capture_backward(self, pool: tuple[int, int]) -> None:
        outputs = [o for o in self.outputs if o.requires_grad]
        wanted = [tensor for tensor in self.static if tensor.requires_grad]
        if outputs and wanted:
            self.static_grad_outputs = tuple(torch.empty_like(o) if o.requires_grad else None for o in self.outputs)
            self.backward_graph = NeuronGraph()
            with graph(self.backward_graph, pool=pool):
                gradients = torch.autograd.grad(
                    outputs,
                    wanted,
                    [g for g in self.static_grad_outputs if g is not None],
                    allow_unused=self.allow_unused,
                )
            found = iter(gradients)
            self.static_grad_inputs = tuple(next(found) if t.requires_grad else None for t in self.static)
        # The autograd graph of the capture holds what the graphs saved; the pool keeps the memory without it.
        self.outputs = tuple(o.detach() for o in self.outputs)

    def callable(self) -> Any:
        function = self._function_class()

        def graphed(*args: Any) -> Any:
            inputs, tree = _flatten_tensors(args)
            if tree != self.input_tree:
                raise ValueError(
                    f"the arguments have the structure {tree}, the graph was captured with {self.input_tree}"
                )
            return tree_unflatten(list(function.apply(*inputs, *self.parameters)), self.output_tree)

        if not isinstance(self.function, torch.nn.Module):
            return graphed
        module, eager_forward = self.function, self.function.forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            return graphed(*args) if module.training == self.training else eager_forward(*args, **kwargs)

        module.forward = forward
        return module

    def _function_class(self) -> Any:
        capture = self

        class Graphed(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
                for static, value in zip(capture.inputs, given, strict=False):
                    if static is not value:
                        if static.shape != value.shape or static.dtype != value.dtype:
                            raise ValueError(
                                f"the graph was captured with an input of shape {tuple(static.shape)} and dtype "
                                f"{static.dtype}, got {tuple(value.shape)} and {value.dtype}"
                            )
                        static.detach().copy_(value)
                capture.forward_graph.replay()
                results = tuple(o.detach() for o in capture.outputs)
                ctx.mark_non_differentiable(*(o for o in results if not o.is_floating_point() and not o.is_complex()))
                return results

            @staticmethod
            @torch.autograd.function.once_differentiable
            def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
                if capture.backward_graph is None:
                    return (None,) * len(capture.static)
                for static, value in zip(capture.static_grad_outputs, grads, strict=True):
                    if static is not None:
                        static.copy_(value)
                capture.backward_graph.replay()
                # Copies: autograd keeps what it is given as the gradient, and the next replay writes the same memory.
                return tuple(None if g is None else g.clone() for g in capture.static_grad_inputs)

        return Graphed


def _flatten_tensors(tree: Any) -> tuple[tuple[torch.Tensor, ...], Any]:
    leaves, spec = tree_flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, torch.Tensor):
            raise TypeError(f"arguments and results of a graphed callable must be tensors, found {type(leaf).__name__}")
    return tuple(leaves), spec
