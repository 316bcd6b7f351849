# SPDX-License-Identifier: Apache-2.0
from contextlib import AbstractContextManager

from l0rt.graphs.graph import Graph as Graph
from l0rt.graphs.graph import _Handle, _Mode
from l0rt.runtime.current.stream import Stream

def graph(
    graph: Graph, pool: _Handle | None = None, stream: Stream | None = None, capture_error_mode: _Mode | None = None
) -> AbstractContextManager[None]: ...
def graph_pool_handle() -> _Handle: ...
def is_current_stream_capturing() -> bool: ...
