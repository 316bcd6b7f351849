# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import TypeAlias

from typing_extensions import Self

_Alloc: TypeAlias = int | Callable[[int, int, int], int | None]
_Free: TypeAlias = int | Callable[[int, int, int, int], object]

class PluggableAllocator:
    alloc: _Alloc
    free: _Free
    def __new__(cls, alloc: _Alloc, free: _Free) -> Self: ...
    def allocator(self) -> Self: ...
