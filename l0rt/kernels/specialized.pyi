# SPDX-License-Identifier: Apache-2.0
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from l0rt.kernels.kernel import Dispatcher, Kernel
from l0rt.runtime.current.stream import Stream
from l0rt.runtime.streams.naming import device as _device

__all__ = ["SpecializedKernel", "SpecializedModule", "specialize"]

_Source = str | bytes | bytearray | memoryview | os.PathLike[str]
_Facts = Mapping[str, Any] | Mapping[int, Any] | Mapping[str | int, Any]
_Entry = tuple[Callable[..., bool], _Facts]
_Extent = int | tuple[int, ...] | list[int]

class VariantInfo(NamedTuple):
    hits: int
    misses: int
    builds: int

class CacheInfo(NamedTuple):
    hits: int
    misses: int
    builds: int
    variants: tuple[VariantInfo, ...]

def specialize(
    source: _Source,
    specialize_on: Iterable[_Entry],
    options: str = "",
    device: Any = None,
    *,
    include_dirs: Iterable[str | os.PathLike[str]] | None = (),
    headers: Mapping[str, str | bytes] | None = None,
    constants: Mapping[int, int | float | bool] | None = None,
) -> SpecializedModule: ...

class SpecializedModule:
    def __init__(
        self,
        source: _Source,
        specialize_on: Iterable[_Entry],
        options: str = "",
        device: Any = None,
        *,
        include_dirs: Iterable[str | os.PathLike[str]] | None = (),
        headers: Mapping[str, str | bytes] | None = None,
        constants: Mapping[int, int | float | bool] | None = None,
    ) -> None: ...
    @property
    def device(self) -> _device | None: ...
    @property
    def kernels(self) -> tuple[str, ...]: ...
    @property
    def closed(self) -> bool: ...
    def prebuild(self, device: Any = None) -> SpecializedModule: ...
    def cache_info(self) -> CacheInfo: ...
    def close(self) -> None: ...
    def __getitem__(self, name: str) -> SpecializedKernel: ...
    def __contains__(self, name: object) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __enter__(self) -> SpecializedModule: ...
    def __exit__(self, kind: Any, value: Any, trace: Any) -> None: ...

class SpecializedKernel(Dispatcher):
    name: str
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def select(self, *args: Any, device: Any = None) -> Kernel: ...
    def launch(
        self,
        *args: Any,
        groups: _Extent | None = None,
        group_size: _Extent | None = None,
        global_size: _Extent | None = None,
        stream: Stream | None = None,
        cooperative: bool = False,
    ) -> None: ...
    def __call__(self, *args: Any) -> None: ...
