# SPDX-License-Identifier: Apache-2.0
"""torch.xpu.memory's names, and torch.cuda.memory's of pinned memory: `l0rt.memory` with a ``device`` that may be
given by name."""

from __future__ import annotations

from l0rt import memory as _memory
from l0rt.memory import (
    MemPool,
    XPUPluggableAllocator,
    change_current_allocator,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    list_gpu_processes,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_stats_as_nested_dict,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
    use_mem_pool,
)
from l0rt.runtime.streams import devices as _devices

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "MemPool",
    "XPUPluggableAllocator",
    "change_current_allocator",
    "empty_cache",
    "get_per_process_memory_fraction",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "list_gpu_processes",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
    "use_mem_pool",
]

# As torch.xpu.memory has them, and torch.cuda.memory.
_dump_snapshot = _memory.dump_snapshot
_annotate_memory = _annotate_tensor = _memory.annotate_memory
_get_memory_metadata = _memory.get_memory_metadata
_record_memory_history = _memory.record_memory_history
_set_memory_metadata = _memory.set_memory_metadata
_snapshot = _memory.snapshot


def empty_cache() -> None:
    """Give unused cached device memory back to the driver. Without a device this does nothing."""
    if _devices.lazy.initialized:
        _memory.empty_cache()


def memory_snapshot(mempool_id: tuple[int, int] | None = None) -> list[dict[str, Any]]:
    """Return all segments with their blocks, or those of one private pool, in torch's format.

    Parameters
    ----------
    mempool_id : MemPool, tuple of two int, or None, optional
        A pool or its ``id``. None is all memory; ``(0, 0)`` is the memory outside of pools.

    Returns
    -------
    list of dict
        One dict for each segment. Sizes are in bytes.
    """
    return _memory.memory_snapshot(mempool_id)
