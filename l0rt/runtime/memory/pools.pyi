# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Iterable
from typing import Any, Literal

from l0rt.memory import Adaptor, PluggableAllocator
from l0rt.runtime.streams.naming import _Device

WHAT: str

class MemPool:
    id: tuple[int, int]
    allocator: PluggableAllocator | None
    limit: int | None
    on_oom: Callable[[int], object] | None
    def __new__(
        cls,
        allocator: PluggableAllocator | Adaptor | None = None,
        use_on_oom: bool = False,
        no_split: bool = False,
        *,
        limit: int | None = None,
        on_oom: Callable[[int], object] | None = None,
        interprocess: bool = False,
    ) -> MemPool: ...
    def use_count(self) -> int: ...
    def empty_cache(self) -> None: ...
    def sleep(self, backup: Literal["host"] | None = None, tags: str | Iterable[str] | None = None) -> None: ...
    def wake(self) -> None: ...
    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]: ...

class XpuMemPool(MemPool):
    def __new__(
        cls,
        allocator: PluggableAllocator | Adaptor | None = None,
        use_on_oom: bool = False,
        no_split: bool = False,
        *,
        limit: int | None = None,
        on_oom: Callable[[int], object] | None = None,
        interprocess: bool = False,
    ) -> XpuMemPool: ...

def trim_pools(device: _Device = None, stream: Any = None, pool: MemPool | None = None) -> None: ...
def index_or_current(device: _Device) -> int: ...
def pointer_info(ptr: int) -> dict[str, Any] | None: ...
def pool_of(id: tuple[int, int]) -> MemPool | None: ...
def record_use(ptr: int, stream: Any = None) -> None: ...
def segments(pool: MemPool | None = None, device: _Device = None) -> list[dict[str, Any]]: ...
def keep_addresses(pool: MemPool, keeps: bool) -> None: ...
