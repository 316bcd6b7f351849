# SPDX-License-Identifier: Apache-2.0
"""Graphs of the current accelerator."""

from __future__ import annotations

from l0rt.graphs import block as _built_in
from l0rt.graphs.graph import Graph
from l0rt.runtime.streams.naming import accelerator_type as _current_type
from l0rt.runtime.streams.naming import other_interface as _other

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from l0rt.graphs.graph import _Handle, _Mode
    from l0rt.runtime.current.stream import Stream

__all__ = ["Graph", "generate_graph_pool_handle", "graph", "graph_pool_handle", "is_current_stream_capturing"]


def _of_current(name):
    """Return what the current accelerator's interface has under a name."""
    interface = _other()
    function = getattr(_built_in if interface is None else interface, name, None)
    if function is None:
        raise NotImplementedError(f"device type {_current_type()} has no graphs")
    return function


def graph(
    graph: Graph, pool: _Handle | None = None, stream: Stream | None = None, capture_error_mode: _Mode | None = None
) -> AbstractContextManager[None]:
    """Return a with block whose work of one stream becomes a graph.

    At its beginning the block waits for the device, collects garbage and gives cached memory back. ``stream`` is the
    current stream inside the block. If the block raises, the capture ends, and the graph has nothing.

    Parameters
    ----------
    graph : Graph
        The graph that gets what is captured.
    pool : tuple of two int or None, optional
        What `graph_pool_handle` or another graph's `pool` returned. None is the pool that the graph was made with.
    stream : Stream or None, optional
        The stream that is captured. None is a stream of the current device that has no other user meanwhile.
    capture_error_mode : str or None, optional
        The mode of this capture. None is the one that the graph was made with.

    Returns
    -------
    context manager

    Raises
    ------
    ValueError
        There is no such mode or pool.
    NotImplementedError
        The current accelerator has no graphs.
    """
    return _of_current("graph")(graph, pool, stream, capture_error_mode)


def graph_pool_handle() -> _Handle:
    """Return the id of a new memory pool, for graphs that share it.

    Graphs that share a pool must never run at the same time, nor use what another of them has left in its memory. The
    pool lives as long as one of these graphs or the returned object.

    Returns
    -------
    tuple of two int

    Raises
    ------
    NotImplementedError
        The current accelerator has no graphs.
    """
    return _of_current("graph_pool_handle")()


def generate_graph_pool_handle() -> _Handle:
    """Return the id of a new memory pool: what `graph_pool_handle` returns, under torch.accelerator's name.

    Returns
    -------
    tuple of two int

    Raises
    ------
    NotImplementedError
        The current accelerator has no graphs.
    """
    return graph_pool_handle()


def is_current_stream_capturing() -> bool:
    """Return whether a graph is being captured from the calling thread's current stream.

    Returns
    -------
    bool
    """
    interface = _other()
    if interface is None:
        return _built_in.is_current_stream_capturing()
    is_capturing = getattr(interface.current_stream(None), "is_capturing", None)
    return bool(is_capturing()) if is_capturing is not None else False
