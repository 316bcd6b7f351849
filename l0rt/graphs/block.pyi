# SPDX-License-Identifier: Apache-2.0
from types import TracebackType

from l0rt.graphs.graph import Graph as Graph
from l0rt.graphs.graph import _Handle, _Mode
from l0rt.graphs.graph import is_current_stream_capturing as is_current_stream_capturing
from l0rt.graphs.pool import graph_pool_handle as graph_pool_handle
from l0rt.runtime.current.stream import Stream

class graph:
    def __init__(
        self,
        graph: Graph,
        pool: _Handle | None = None,
        stream: Stream | None = None,
        capture_error_mode: _Mode | None = None,
    ) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...
