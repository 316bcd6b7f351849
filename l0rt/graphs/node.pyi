# SPDX-License-Identifier: Apache-2.0
from collections.abc import Mapping
from typing import Any, Literal, final

from l0rt.kernels.kernel import _Extent
from l0rt.runtime.current.stream import Stream

@final
class Node:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def kind(self) -> Literal["kernel", "copy", "fill", "wait", "callback"]: ...
    @property
    def stream(self) -> Stream: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def name(self) -> str | None: ...
    @property
    def arguments(self) -> tuple[Any, ...]: ...
    @property
    def groups(self) -> tuple[int, int, int] | None: ...
    @property
    def group_size(self) -> tuple[int, int, int] | None: ...
    @property
    def global_offset(self) -> tuple[int, int, int] | None: ...
    def update(
        self,
        *,
        args: Mapping[int, Any] | None = None,
        src: Any = None,
        dst: Any = None,
        value: int | bytes | bytearray | memoryview | None = None,
        groups: _Extent | None = None,
        group_size: _Extent | None = None,
    ) -> None: ...
