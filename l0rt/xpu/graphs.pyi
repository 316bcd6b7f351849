# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any

from l0rt.buffers.buffer import Buffer
from l0rt.graphs import block as _graphs
from l0rt.graphs.graph import _Handle
from l0rt.graphs.graph import is_current_stream_capturing as is_current_stream_capturing
from l0rt.graphs.lifecycle import register_graph_capture_end_hook as register_graph_capture_end_hook
from l0rt.graphs.lifecycle import register_graph_capture_start_hook as register_graph_capture_start_hook
from l0rt.graphs.lifecycle import register_graph_destroy_hook as register_graph_destroy_hook
from l0rt.graphs.lifecycle import register_graph_instantiate_hook as register_graph_instantiate_hook
from l0rt.graphs.lifecycle import register_graph_replay_end_hook as register_graph_replay_end_hook
from l0rt.graphs.lifecycle import register_graph_replay_start_hook as register_graph_replay_start_hook
from l0rt.graphs.pool import graph_pool_handle as graph_pool_handle
from l0rt.runtime.current.stream import Stream

class XPUGraph(_graphs.Graph):
    def __new__(cls, keep_graph: bool = False) -> XPUGraph: ...
    def capture_begin(self, pool: _Handle | None = None) -> None: ...
    def raw_xpu_graph(self) -> int: ...
    def raw_xpu_graph_exec(self) -> int: ...

class graph(_graphs.graph):
    def __init__(
        self, xpu_graph: _graphs.Graph, pool: _Handle | None = None, stream: Stream | None = None
    ) -> None: ...

def make_graphed_callables(
    callables: Callable[..., Any] | tuple[Any, ...],
    sample_args: tuple[Buffer, ...] | tuple[tuple[Buffer, ...], ...],
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: _Handle | None = None,
) -> Any: ...
