# SPDX-License-Identifier: Apache-2.0
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from l0rt.buffers.buffer import _S, Buffer, _DType, _Shape
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
@overload
def pinned(
    shape: _Shape, dtype: _DType[_S], *, device: _Device = None, numa: int | Literal["any"] | None = None
) -> np.ndarray[tuple[int, ...], np.dtype[_S]]: ...
@overload
def pinned(
    shape: _Shape,
    dtype: npt.DTypeLike = "float64",
    *,
    device: _Device = None,
    numa: int | Literal["any"] | None = None,
) -> npt.NDArray[Any]: ...
