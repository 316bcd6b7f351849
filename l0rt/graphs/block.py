# SPDX-License-Identifier: Apache-2.0
"""The block around a capture of one stream; and what of graphs an accelerator's interface has."""

from __future__ import annotations

from l0rt.graphs.graph import MODES, Block, Graph, is_current_stream_capturing
from l0rt.graphs.pool import graph_pool_handle
from l0rt.runtime.current.stream import Stream

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from l0rt.graphs.graph import _Handle, _Mode

__all__ = ["Graph", "graph", "graph_pool_handle", "is_current_stream_capturing"]


class graph(Block):
    """As `l0rt.accelerator.graph`, which has the parameters."""

    __module__ = "l0rt.accelerator"

    def __init__(
        self,
        graph: Graph,
        pool: _Handle | None = None,
        stream: Stream | None = None,
        capture_error_mode: _Mode | None = None,
    ) -> None:
        if not isinstance(graph, Graph):
            raise TypeError(f"graph must be a Graph, got {type(graph).__name__}")
        if capture_error_mode is not None and capture_error_mode not in MODES:
            raise ValueError(f"capture_error_mode must be one of {', '.join(MODES)}, got {capture_error_mode!r}")
        if stream is not None and not isinstance(stream, Stream):
            raise TypeError(f"stream must be a Stream, got {type(stream).__name__}")
        super().__init__(graph, pool, stream, capture_error_mode)
