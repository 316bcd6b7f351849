# SPDX-License-Identifier: Apache-2.0
from typing import Any, Literal

from l0rt.buffers.buffer import Buffer
from l0rt.runtime.current.stream import Stream
from l0rt.runtime.streams.naming import _Device

def memcpy(dst: Any, src: Any, nbytes: int, stream: Stream | None = None, *, non_blocking: bool = False) -> None: ...
def memcpy2d(
    dst: Any,
    dst_pitch: int,
    src: Any,
    src_pitch: int,
    width: int,
    height: int,
    stream: Stream | None = None,
    *,
    non_blocking: bool = False,
) -> None: ...
def memset(dst: Any, value: int, nbytes: int, stream: Stream | None = None, *, non_blocking: bool = False) -> None: ...
def prefetch(buffer: Buffer, stream: Stream | None = None) -> None: ...
def advise(
    buffer: Buffer, advice: str, value: bool = True, *, device: _Device = None, stream: Stream | None = None
) -> None: ...
def from_numpy(
    array: Any,
    *,
    kind: Literal["device", "host", "shared"] = "device",
    device: _Device = None,
    stream: Stream | None = None,
) -> Buffer: ...
def from_dlpack(array: Any, /, *, device: _Device = None, copy: bool | None = None) -> Buffer: ...
def pinned(
    shape: int | tuple[int, ...],
    dtype: Any = "float64",
    *,
    device: _Device = None,
    numa: int | Literal["any"] | None = None,
) -> Any: ...
