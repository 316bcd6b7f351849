# SPDX-License-Identifier: Apache-2.0
from types import TracebackType
from typing import Literal

from l0rt.runtime.current.stream import Stream
from l0rt.runtime.streams.naming import _Device

class Lease:
    def __enter__(self) -> Stream: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...

def lease(device: _Device = None, priority: int = 0, *, engine: Literal["compute", "copy"] = "compute") -> Lease: ...
def copy_stream(device: _Device = None) -> Stream: ...

class StreamPool:
    @staticmethod
    def lease(
        device: _Device = None, priority: int = 0, *, engine: Literal["compute", "copy"] = "compute"
    ) -> Lease: ...
    @staticmethod
    def copy_stream(device: _Device = None) -> Stream: ...
    @staticmethod
    def state(device: _Device = None) -> dict[str, int]: ...

stream_pool: StreamPool
