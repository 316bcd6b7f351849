# SPDX-License-Identifier: Apache-2.0
from collections.abc import Sized
from typing import Any, ClassVar, Literal, SupportsIndex, TypeVar, overload

import numpy as np
import numpy.typing as npt

from l0rt.runtime.current.generator import Generator
from l0rt.runtime.current.stream import Stream
from l0rt.runtime.memory.importedpool import ImportedPool
from l0rt.runtime.streams.naming import _Device
from l0rt.runtime.streams.naming import device as _device

_T = TypeVar("_T")
_S = TypeVar("_S", bound=np.generic)
_DType = type[_S] | np.dtype[_S]
_Shape = int | tuple[int, ...]

def is_own(self: Buffer) -> bool: ...

class Buffer(Sized):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def ptr(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def kind(self) -> Literal["device", "host", "shared"]: ...
    @property
    def device(self) -> _device: ...
    def copy_from(self, source: Any, *, non_blocking: bool = False, stream: Stream | None = None) -> Buffer: ...
    def copy_to(self, target: _T, *, non_blocking: bool = False, stream: Stream | None = None) -> _T: ...
    def fill(
        self,
        value: int | None = None,
        *,
        pattern: bytes | bytearray | memoryview | None = None,
        non_blocking: bool = False,
        stream: Stream | None = None,
    ) -> Buffer: ...
    def uniform_(
        self,
        low: float = 0.0,
        high: float = 1.0,
        *,
        dtype: Any = "float32",
        generator: Generator | None = None,
        non_blocking: bool = False,
        stream: Stream | None = None,
    ) -> Buffer: ...
    def normal_(
        self,
        mean: float = 0.0,
        std: float = 1.0,
        *,
        dtype: Any = "float32",
        generator: Generator | None = None,
        non_blocking: bool = False,
        stream: Stream | None = None,
    ) -> Buffer: ...
    def exponential_(
        self,
        lambd: float = 1.0,
        *,
        dtype: Any = "float32",
        generator: Generator | None = None,
        non_blocking: bool = False,
        stream: Stream | None = None,
    ) -> Buffer: ...
    def bernoulli_(
        self,
        p: float = 0.5,
        *,
        dtype: Any = "float32",
        generator: Generator | None = None,
        non_blocking: bool = False,
        stream: Stream | None = None,
    ) -> Buffer: ...
    def randint_(
        self,
        low: int,
        high: int,
        *,
        dtype: Any = "int64",
        generator: Generator | None = None,
        non_blocking: bool = False,
        stream: Stream | None = None,
    ) -> Buffer: ...
    @overload
    def numpy(
        self, dtype: _DType[_S], shape: _Shape | None = None, *, stream: Stream | None = None
    ) -> np.ndarray[tuple[int, ...], np.dtype[_S]]: ...
    @overload
    def numpy(
        self, dtype: npt.DTypeLike | None = None, shape: _Shape | None = None, *, stream: Stream | None = None
    ) -> npt.NDArray[Any]: ...
    @staticmethod
    def from_handle(address: int, nbytes: int, *, device: _Device = None, owner: object = None) -> Buffer: ...
    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]: ...
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    __dlpack_c_exchange_api__: ClassVar[object]
    def __reduce_ex__(self, protocol: SupportsIndex = 0, /) -> tuple[Any, ...]: ...
    def __enter__(self) -> Buffer: ...
    def __exit__(self, *error: object) -> None: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __dlpack__(
        self,
        *,
        stream: Stream | int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def record_use(self, stream: Stream | None = None) -> None: ...
    def record_stream(self, stream: Stream) -> None: ...
    def free(self, stream: Stream | None = None) -> None: ...
    def ipc_handle(self) -> bytes: ...
    @staticmethod
    def from_ipc_handle(handle: bytes, *, pool: ImportedPool | None = None) -> Buffer: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: slice, /) -> Buffer: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __release_buffer__(self, view: memoryview, /) -> None: ...
