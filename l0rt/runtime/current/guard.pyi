# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, ParamSpec, TypeVar, final

from l0rt.runtime.streams.naming import _Device

_P = ParamSpec("_P")
_R = TypeVar("_R")

class device_index:
    def __new__(cls, device: _Device, /) -> device_index: ...
    @property
    def idx(self) -> _Device: ...
    def __enter__(self) -> None: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> Literal[False] | None: ...
    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]: ...

class xpu_device_index(device_index): ...

@final
class DeviceBlock:
    interface: Any
    type: str | None
    original: int | None
    current: int | None
    def set_index(self, type: str, interface: Any, index: int) -> None: ...
    def go_back(self) -> None: ...
    def reset(self) -> None: ...

@final
class StreamBlock:
    interface: Any
    original_device: int | None
    original_stream: Any
    current_stream: Any
    def reset_stream(self, interface: Any, stream: Any) -> None: ...
    def reset(self) -> None: ...

@final
class MultiStreamBlock:
    interface: Any
    original_streams: list[Any]
    def __new__(cls, interface: Any, streams: list[Any]) -> MultiStreamBlock: ...
    def reset(self) -> None: ...

@final
class Blocks:
    entered: list[MultiStreamBlock]
    def add(self, interface: Any, streams: list[Any]) -> None: ...
    def reset(self) -> None: ...

def current_device_index() -> int: ...
def exchange_device_index(device: int) -> int: ...

DTYPES: tuple[str, ...]
