# SPDX-License-Identifier: Apache-2.0
from array import array
from typing import Any, final

from l0rt.kernels.spirv import Argument
from l0rt.runtime.current.stream import Stream
from l0rt.runtime.streams.naming import device as _device

_Extent = int | tuple[int, ...] | list[int]

@final
class Kernel:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def device(self) -> _device: ...
    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> tuple[Argument, ...] | None: ...
    @property
    def attributes(self) -> dict[str, Any]: ...
    def suggest_group_size(self, global_size: _Extent) -> tuple[int, int, int]: ...
    def max_cooperative_groups(self, group_size: _Extent, *args: Any) -> int: ...
    def launch(
        self,
        *args: Any,
        groups: _Extent | None = None,
        group_size: _Extent | None = None,
        global_size: _Extent | None = None,
        stream: Stream | None = None,
        cooperative: bool = False,
        global_offset: _Extent | None = None,
    ) -> None: ...
    def __call__(self, *args: Any) -> None: ...
    def __getitem__(self, sizes: tuple[Any, ...], /) -> Launcher: ...

@final
class Launcher:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __call__(self, *args: Any) -> None: ...

class Dispatcher:
    def __new__(
        cls,
        predicates: tuple[Any, ...] | None = None,
        ready: dict[int, list[Kernel | None]] | None = None,
        hits: array[int] | None = None,
        fixed: int = -1,
    ) -> Dispatcher: ...
    def __getitem__(self, sizes: tuple[Any, ...], /) -> Launcher: ...
