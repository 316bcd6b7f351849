# SPDX-License-Identifier: Apache-2.0
from typing import Literal

from l0rt.buffers.buffer import Buffer
from l0rt.runtime.current.stream import Stream
from l0rt.runtime.streams.naming import _Device

def empty(
    nbytes: int,
    *,
    device: _Device = None,
    stream: Stream | None = None,
    kind: Literal["device", "host", "shared"] = "device",
    numa: int | Literal["any"] | None = None,
) -> Buffer: ...
def restore(
    record: int, index: int, stale: list[Buffer | int], places: list[tuple[int, int, int]]
) -> list[Buffer]: ...
