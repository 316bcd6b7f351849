# SPDX-License-Identifier: Apache-2.0
"""The block around a capture of one stream; and what of graphs an accelerator's interface has."""

from l0rt.graphs.graph import MODES, Graph, begin_with, end_block, give_back, is_current_stream_capturing
from l0rt.graphs.pool import graph_pool_handle
from l0rt.runtime.current.guard import current_device_index
from l0rt.runtime.current.lease import lease
from l0rt.runtime.current.stream import Stream
from l0rt.runtime.streams.devices import lazy

__all__ = ["Graph", "graph", "graph_pool_handle", "is_current_stream_capturing"]


class graph:
    """As `l0rt.accelerator.graph`, which has the parameters."""

    __module__ = "l0rt.accelerator"

    def __init__(self, graph, pool=None, stream=None, capture_error_mode=None):
        if not isinstance(graph, Graph):
            raise TypeError(f"graph must be a Graph, got {type(graph).__name__}")
        if capture_error_mode is not None and capture_error_mode not in MODES:
            raise ValueError(f"capture_error_mode must be one of {', '.join(MODES)}, got {capture_error_mode!r}")
        if stream is not None and not isinstance(stream, Stream):
            raise TypeError(f"stream must be a Stream, got {type(stream).__name__}")
        self._graph, self._pool, self._stream, self._mode = graph, pool, stream, capture_error_mode
        self._lease = self._guard = None  # inside of the block

    def __enter__(self):
        if self._guard is not None:
            raise RuntimeError("the block was entered before, and has not ended")
        give_back(collects=True)
        self._guard = self._stream
        if self._stream is None:
            self._lease = lease(f"{lazy.device_type}:{current_device_index()}")  # whatever accelerator is current
            self._guard = self._lease.__enter__()
        self._guard.__enter__()
        try:
            begin_with(self._graph, self._pool, self._mode)
        except BaseException:
            self._leave()
            raise

    def __exit__(self, kind, value, trace):
        if self._guard is None:
            raise RuntimeError("the block was not entered")
        try:
            end_block(self._graph, kind)
        finally:
            self._leave()

    def _leave(self):
        guard, leased = self._guard, self._lease
        self._guard = self._lease = None
        guard.__exit__(None, None, None)
        if leased is not None:
            leased.__exit__(None, None, None)
