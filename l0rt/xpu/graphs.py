# SPDX-License-Identifier: Apache-2.0
"""torch.xpu.graphs' names: graphs, and callables that replay them."""

from __future__ import annotations

from l0rt._base.integers import whole_number
from l0rt.buffers.buffer import Buffer
from l0rt.buffers.empty import empty
from l0rt.errors import UnsupportedError
from l0rt.graphs import block as _graphs
from l0rt.graphs.graph import begin_with as _begin_with
from l0rt.graphs.graph import is_current_stream_capturing
from l0rt.graphs.lifecycle import (  # noqa: F401 - torch.cuda.graphs has them beside its names
    register_graph_capture_end_hook,
    register_graph_capture_start_hook,
    register_graph_destroy_hook,
    register_graph_instantiate_hook,
    register_graph_replay_end_hook,
    register_graph_replay_start_hook,
)
from l0rt.graphs.pool import graph_pool_handle
from l0rt.runtime.current.stream import XpuStream, synchronize

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from l0rt.graphs.graph import _Handle
    from l0rt.runtime.current.stream import Stream

__all__ = ["XPUGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]


class XPUGraph(_graphs.Graph):
    """A graph with torch.xpu.XPUGraph's arguments. See `l0rt.accelerator.Graph`.

    Parameters
    ----------
    keep_graph : bool, optional
        Build what is replayed at `instantiate` or the first replay instead of at the end of the capture.
    """

    def __new__(cls, keep_graph: bool = False) -> XPUGraph:
        return super().__new__(cls, keep_graph)

    def capture_begin(self, pool: _Handle | None = None) -> None:
        """Begin to record what the thread's current stream is given.

        Parameters
        ----------
        pool : tuple of two int or None, optional
            What `graph_pool_handle` or another graph's `pool` returned. None makes a pool.

        Raises
        ------
        RuntimeError
            The stream or the graph is in a capture already, or the graph has one: `reset` drops it.
        """
        _begin_with(self, pool)

    def raw_xpu_graph(self) -> int:
        """Raise UnsupportedError: torch returns the address of a graph of SYCL, and here there is none."""
        raise UnsupportedError("l0rt has no graph of SYCL: its graphs are command lists of Level Zero")

    def raw_xpu_graph_exec(self) -> int:
        """Raise UnsupportedError: torch returns the address of a graph of SYCL, and here there is none."""
        return self.raw_xpu_graph()


class graph(_graphs.graph):
    """Capture what a with block gives to a stream, as a graph. See `l0rt.accelerator.graph`.

    Parameters
    ----------
    xpu_graph : Graph
        The graph that gets what is captured.
    pool : tuple of two int or None, optional
        What `graph_pool_handle` or another graph's `pool` returned. None makes a pool.
    stream : Stream or None, optional
        The stream that is captured. None is a stream of the current device that has no other user meanwhile.
    """

    def __init__(self, xpu_graph: _graphs.Graph, pool: _Handle | None = None, stream: Stream | None = None) -> None:
        super().__init__(xpu_graph, pool, stream)


def make_graphed_callables(
    callables: Callable[..., Any] | tuple[Any, ...],
    sample_args: tuple[Buffer, ...] | tuple[tuple[Buffer, ...], ...],
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: _Handle | None = None,
) -> Any:
    """Return callables that do the same work on the device by replaying graphs.

    A callable takes Buffers, and returns a Buffer, a tuple of Buffers or None. Each is called a few times, and then
    captured with its ``sample_args``. What is returned copies its arguments into these Buffers where they are others,
    replays, and returns the Buffers that the captured call returned: their contents last until the next call.

    Instead of one callable, a pair is a forward and a backward pass. ``backward`` takes a Buffer for each result of
    ``forward``, the gradient, and returns one for each of its arguments. What it needs of the forward pass it finds
    where ``forward`` has left it. The result is a pair, too.

    Parameters
    ----------
    callables : callable, pair of callables, or tuple of these
        In the order in which they will be called. All captures share one memory pool: backward passes are captured in
        the reverse order, and must be called so.
    sample_args : tuple of Buffer, or tuple of tuples of Buffer
        The arguments of one callable, or of each. If ``callables`` is a tuple of two functions, a tuple of two tuples
        here says that they are two callables, and a tuple of Buffers that they are a pair.
    num_warmup_iters : int, optional
        How often each is called before its capture.
    allow_unused_input : bool, optional
        A backward pass may return None for an argument.
    pool : tuple of two int or None, optional
        What `graph_pool_handle` or another graph's `pool` returned. None makes a pool.

    Returns
    -------
    callable, pair of callables, or tuple of these
        As ``callables``.

    Raises
    ------
    TypeError
        Something is no callable or Buffer.
    ValueError
        There are not as many tuples of arguments as callables, or not as many gradients as arguments.
    RuntimeError
        A backward pass returned None, or a call cannot be captured.

    Notes
    -----
    The signature is that of ``torch.xpu.make_graphed_callables``. l0rt differentiates nothing, so a backward pass is a
    function of the caller's.
    """
    several = _are_several(callables, sample_args)
    pairs = [_pair(one) for one in (callables if several else (callables,))]  # type: ignore[union-attr]
    surfaces = [_buffers(args, "sample_args") for args in (sample_args if several else (sample_args,))]
    warm_ups = whole_number(num_warmup_iters, "num_warmup_iters")
    if warm_ups < 0:
        raise ValueError(f"num_warmup_iters must not be negative, got {num_warmup_iters}")
    if pool is None:
        pool = graph_pool_handle()
    synchronize()
    with XpuStream():
        for (forward, backward), inputs in zip(pairs, surfaces, strict=True):
            for _ in range(warm_ups):
                outputs = _results(forward(*inputs))
                if backward is not None:
                    _gradients(backward(*_zeros_like(outputs)), inputs, allow_unused_input)
                del outputs
    synchronize()
    forwards = [_Graphed(forward, inputs, pool) for (forward, _), inputs in zip(pairs, surfaces, strict=True)]
    graphs = []
    for (_, backward), graphed in reversed(list(zip(pairs, forwards, strict=True))):
        graphs.append(graphed)
        if backward is not None:
            behind = _Graphed(backward, _zeros_like(_results(graphed.outputs)), pool, "gradients")
            _gradients(behind.outputs, graphed.inputs, allow_unused_input)
            graphs[-1] = graphed, behind
    graphs.reverse()
    return tuple(graphs) if several else graphs[0]


class _Graphed:
    """A callable that was captured."""

    def __init__(self, function, inputs, pool, what="arguments"):
        self.inputs, self.what, self.graph = inputs, what, XPUGraph()
        with graph(self.graph, pool):
            self.outputs = function(*inputs)

    def __call__(self, *args):
        if len(args) != len(self.inputs):
            raise TypeError(f"expected {len(self.inputs)} {self.what}, got {len(args)}")
        for own, argument in zip(self.inputs, args, strict=True):
            if not isinstance(argument, Buffer):
                raise TypeError(f"expected Buffers, got {type(argument).__name__}")
            if argument.nbytes != own.nbytes:
                raise ValueError(f"expected {own.nbytes} bytes, as of the sample, got {argument.nbytes}")
        for own, argument in zip(self.inputs, args, strict=True):
            if argument.ptr != own.ptr:
                own.copy_from(argument)
        self.graph.replay()
        return self.outputs


def _are_several(callables, sample_args):
    if not isinstance(callables, tuple):
        return False
    if not isinstance(sample_args, tuple):
        raise TypeError(f"sample_args must be a tuple, got {type(sample_args).__name__}")
    if len(callables) == 2 and all(map(callable, callables)) and not any(isinstance(a, tuple) for a in sample_args):
        return False
    if len(callables) != len(sample_args):
        raise ValueError(f"sample_args must be a tuple for each of {len(callables)} callables, got {len(sample_args)}")
    return True


def _pair(one):
    """Return a forward and a backward pass, or None for the latter."""
    if callable(one):
        return one, None
    if isinstance(one, tuple) and len(one) == 2 and all(map(callable, one)):
        return one
    raise TypeError(f"expected a callable, or a pair of a forward and a backward pass, got {type(one).__name__}")


def _buffers(values, what):
    if not isinstance(values, tuple):
        raise TypeError(f"{what} must be a tuple of Buffers, got {type(values).__name__}")
    for value in values:
        if not isinstance(value, Buffer):
            raise TypeError(f"{what} must be Buffers, got {type(value).__name__}")
    return values


def _results(returned):
    """Return what a callable has returned as a tuple."""
    if returned is None:
        return ()
    return _buffers(returned if isinstance(returned, tuple) else (returned,), "what a callable returns")


def _gradients(returned, inputs, allow_unused):
    """Check what a backward pass has returned."""
    gradients = returned if isinstance(returned, tuple) else (returned,)
    if len(gradients) != len(inputs):
        raise ValueError(
            f"a backward pass must return a gradient for each of {len(inputs)} inputs, got {len(gradients)}"
        )
    if not allow_unused and any(one is None for one in gradients):
        raise RuntimeError("a backward pass returned None for an input, which needs allow_unused_input=True")
    _buffers(tuple(one for one in gradients if one is not None), "gradients")


def _zeros_like(buffers):
    return tuple(empty(one.nbytes, device=one.device, kind=one.kind).fill(0) for one in buffers)
