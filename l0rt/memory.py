# SPDX-License-Identifier: Apache-2.0
"""Everything about memory: statistics, limits, caches; names as in torch where torch has one.

A ``device`` is an index, a name such as ``"xpu:1"``, anything with a device, or None for the current one.
"""

import ctypes as _ctypes
from contextlib import contextmanager as _contextmanager

from l0rt import allocconf as _allocconf
from l0rt import config as _config
from l0rt.arguments import address_of as _address
from l0rt.memorytable import nested as _nested
from l0rt.memorytable import table as _table
from l0rt.runtime.memory import device as _device
from l0rt.runtime.memory import pinned as _host
from l0rt.runtime.memory.device import memory_allocated, memory_reserved
from l0rt.runtime.memory.observers import attach_observer as _attach_observer
from l0rt.runtime.memory.pluggable import PluggableAllocator
from l0rt.runtime.memory.pools import MemPool, change_current_allocator, use_mem_pool
from l0rt.runtime.memory.pools import index_or_current as _index_of
from l0rt.runtime.memory.pools import pointer_info as _pointer_info
from l0rt.runtime.memory.pools import pool_of as _pool_of
from l0rt.runtime.memory.pools import record_use as _record_use
from l0rt.runtime.memory.pools import segments as _segments
from l0rt.runtime.memory.pools import trim_pools as _trim
from l0rt.runtime.memory.registration import Registration, is_pinned, register
from l0rt.runtime.streams.devices import device_count as _device_count
from l0rt.runtime.streams.devices import lazy as _lazy
from l0rt.whole import whole_number as _whole

__all__ = [
    "MemPool",
    "PluggableAllocator",
    "Registration",
    "XPUPluggableAllocator",
    "attach_oom_observer",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_disabled",
    "caching_allocator_enable",
    "change_current_allocator",
    "empty_cache",
    "empty_host_cache",
    "get_alloc_conf",
    "get_allocator_backend",
    "get_memory_info",
    "get_memory_limit",
    "get_per_process_memory_fraction",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "is_pinned",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_info",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "pointer_info",
    "recommended_max_memory",
    "record_use",
    "register",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "set_alloc_conf",
    "set_memory_limit",
    "set_per_process_memory_fraction",
    "use_mem_pool",
]


class XPUPluggableAllocator(PluggableAllocator):
    """A `PluggableAllocator` of two functions of a shared library, which stays loaded:

    ``void *alloc(size_t nbytes, int device, void *stream)`` and ``void free(void *, size_t nbytes, int device, void
    *stream)``. OSError if it cannot be loaded, AttributeError if it lacks one of them.
    """

    def __new__(cls, path_to_lib_file: str, alloc_fn_name: str, free_fn_name: str):
        for text in (path_to_lib_file, alloc_fn_name, free_fn_name):
            if not isinstance(text, str):  # CDLL(None) is the process itself
                raise TypeError(f"the path and both names are str, not {type(text).__name__}")
        library = _ctypes.CDLL(path_to_lib_file)
        return super().__new__(cls, getattr(library, alloc_fn_name), getattr(library, free_fn_name))


def _opened():
    """Whether anything can be cached at all; raises if there is no device to cache for."""
    if not _lazy.initialized and not _device_count():
        _lazy.init()
    return _lazy.initialized


def empty_cache(device=None, *, stream=None, pool=None):
    """Give cached device memory that no allocation uses back to the driver: on every device and of private pools, too.

    Or what one ``device``, one ``stream`` or one ``pool``, a `MemPool`, has of it, or a stream in a pool.
    """
    if not _opened():
        return
    if stream is None and pool is None:
        _device.empty_cache(device)
    else:
        _trim(device, stream, pool)


def memory_snapshot(mempool_id=None, include_traces=True, *, device=None):
    """Return all segments with their blocks, or those of one device or pool, in torch's schema.

    ``mempool_id`` is a `MemPool` or the ``id`` of one, ``(0, 0)`` for what is in none. There is no history of
    allocations: ``frames`` are empty with and without ``include_traces``.
    """
    if not isinstance(include_traces, bool):
        raise TypeError(f"include_traces is a bool, not {type(include_traces).__name__}")
    if mempool_id is not None and not isinstance(mempool_id, MemPool):
        mempool_id = _id(mempool_id)
    if not _opened():
        return []
    if mempool_id == (0, 0):
        return [segment for segment in _segments(None, device) if segment["segment_pool_id"] == mempool_id]
    if device is not None:
        device = _index_of(device)
    pool = _pool_of(mempool_id) if isinstance(mempool_id, tuple) else mempool_id
    return [] if mempool_id is not None and pool is None else _segments(pool, device)


def _id(mempool_id):
    if not isinstance(mempool_id, tuple) or len(mempool_id) != 2:
        raise TypeError(f"mempool_id is the id of a MemPool, two numbers, got {mempool_id!r}")
    return tuple(_whole(number, "each number of a MemPool's id") for number in mempool_id)


def attach_oom_observer(observer):
    """Call ``observer(device, nbytes, allowed, free)`` before an allocation fails; return a function that detaches it.

    No lock is held: it may allocate, free and look; what it fails to allocate is not told. If it returns True, the
    allocation is tried again; if it raises, that takes the place of the OutOfMemoryError. For pinned memory ``device``
    is -1, and the last two are the machine's memory: all of it, and what is free.
    """
    return _attach_observer(observer)


def caching_allocator_alloc(size, device=None, stream=None):
    """Allocate ``size`` bytes in the order of ``stream`` or ``device``'s current one; return their address.

    0 for 0 bytes. Nothing owns them: `caching_allocator_delete` frees them. OutOfMemoryError as for `l0rt.empty`.
    """
    return _device.malloc(size, device, stream)


def caching_allocator_delete(mem_ptr):
    """Free what `caching_allocator_alloc` returned; 0 is harmless. InvalidArgumentError for any other address."""
    _device.free(_address(mem_ptr))


def caching_allocator_enable(value=True):
    """Cache memory from now on, or with False take each allocation from the driver and give it back when freed."""
    if not isinstance(value, bool):
        raise TypeError(f"caching_allocator_enable() takes a bool, not {type(value).__name__}")
    _config.set("no_memory_caching", "0" if value else "1")


@_contextmanager
def caching_allocator_disabled():
    """Cache nothing for the length of a with block: see `caching_allocator_enable`."""
    with _config.patch({"no_memory_caching": "1"}):
        yield


def empty_host_cache():
    """Give cached pinned memory that no allocation uses back to the driver."""
    if _opened():
        _host.empty_cache()


def memory_stats(device=None):
    """Return the statistics of ``device``'s allocator: a sorted flat dict under torch's keys, in bytes and counts.

    Empty while nothing was allocated. ``num_ooms`` counts the requests that ended in OutOfMemoryError, and
    ``num_oom_rejections`` those of them that the limit refused, so that the driver was not asked; ``num_oom_fallback``
    counts those that a `MemPool` with ``use_on_oom`` served instead. A `MemPool` has its part under
    ``reserved_bytes_by_private_pools.<id>``, its id as ``0_1``, until it is gone and has given its memory back.
    """
    return _device.flat_stats(device)


def memory_stats_as_nested_dict(device=None):
    """Return `memory_stats` with a dict at every dot of the keys, and private pools by ids such as ``(0, 1)``."""
    return _nested(_device.flat_stats(device))


def host_memory_stats(device=None):
    """Return the statistics of the pinned memory that ``device`` reaches: a sorted flat dict under torch's keys.

    In bytes, counts and, of the driver's calls, microseconds. Empty while nothing was allocated.
    """
    return _host.flat_stats(device)


def host_memory_stats_as_nested_dict(device=None):
    """Return `host_memory_stats` with a dict at every dot of the keys."""
    return _nested(_host.flat_stats(device))


def max_memory_allocated(device=None):
    """Return the most bytes that allocations held at once, since the last `reset_peak_memory_stats`."""
    return _device.flat_stats(device).get("allocated_bytes.all.peak", 0)


def max_memory_reserved(device=None):
    """Return the most bytes that the allocator held at once, since the last `reset_peak_memory_stats`."""
    return _device.flat_stats(device).get("reserved_bytes.all.peak", 0)


def reset_peak_memory_stats(device=None):
    """Make every peak the current value."""
    if _opened():
        _device.reset_peak_stats(device)


def reset_accumulated_memory_stats(device=None):
    """Make every total of what was allocated and freed, and every counter, 0."""
    if _opened():
        _device.reset_accumulated_stats(device)


def reset_peak_host_memory_stats(device=None):
    """Make every peak of pinned memory the current value, and forget the longest and the shortest driver call."""
    if _opened():
        _host.reset_peak_stats(device)


def reset_accumulated_host_memory_stats(device=None):
    """Make every total of what was allocated and freed of pinned memory, and every counter, 0."""
    if _opened():
        _host.reset_accumulated_stats(device)


def memory_summary(device=None, abbreviated=False):
    """Return the statistics of ``device`` as a table, torch's; ``abbreviated`` leaves the pools out."""
    index = _index_of(device)
    return _table(_device.flat_stats(index), index, abbreviated)


def pointer_info(ptr):
    """Return what is known of the allocation that holds the address ``ptr``, wherever in it; None: it is not ours.

    A dict of ``kind`` (``device``, ``host`` or ``shared``), ``device`` (its index), ``base``, ``size`` (as taken),
    ``requested`` and ``stream`` (the ``stream_id`` of whose order it is reused in, None for host and shared memory). No
    driver call.
    """
    return _pointer_info(_address(ptr))


def record_use(buffer, stream=None):
    """Let freed memory not be reused before what ``stream`` (the current one) has been given until now is done.

    ``buffer`` is a Buffer, or an address, wherever in an allocation. To be called right after the work was given.
    """
    if hasattr(buffer, "record_use"):
        buffer.record_use(stream)
    elif hasattr(buffer, "__index__") and not isinstance(buffer, bool):
        _record_use(_address(buffer), stream)
    else:
        raise TypeError(f"record_use() takes a Buffer or an address, an int, not {type(buffer).__name__}")


def recommended_max_memory(device=None):
    """Return how many bytes it is wise to use of ``device``: what is free or ours already, less a twentieth of all,
    which other work and the driver itself need, and no more than the limit."""
    index = _index_of(device)
    free, total, _ = _device.memory_info(index)
    wise = max(0, min(total, free + _device.memory_reserved(index)) - total // 20)
    return min(wise, _device.get_limit(index) or wise)


def memory_info(device=None):
    """Return ``{"free", "total", "source"}``: bytes, and who says what is free."""
    free, total, source = _device.memory_info(device)
    return {"free": free, "total": total, "source": source}


def get_memory_info(device=None):
    """Return ``(free, total)`` bytes of device memory. `memory_info` says where the first number comes from."""
    return _device.memory_info(device)[:2]


mem_get_info = get_memory_info


def set_alloc_conf(text=None, /, **values):
    """Configure the allocators anew: by ``text`` in the grammar of `L0RT_ALLOC_CONF`, or by keys such as
    ``max_split_size_mb=200``. What is not given has its default. ValueError names key, position and what is allowed.
    """
    if text is not None and values:
        raise TypeError("set_alloc_conf() takes a text or keys, one of the two")
    _config.set("alloc_conf", text if text is not None else str(_allocconf.make(**values)))


def get_alloc_conf():
    """Return the configuration that holds: an object with a field for each key; ``str()`` of it is its text."""
    return _config.alloc_conf()


def get_allocator_backend():
    """Return ``native`` or ``async``: whether allocations may wait on the host before memory is out."""
    return _config.get("alloc_conf").backend


def set_memory_limit(limit, device=None):
    """Let the allocator reserve at most ``limit`` bytes of ``device``; None: what the configuration says, which is no
    limit by default. Holds until it is set again, whatever the configuration becomes."""
    _device.set_limit(limit, device)


def get_memory_limit(device=None):
    """Return the limit of ``device`` in bytes, None if there is none."""
    return _device.get_limit(device)


def set_per_process_memory_fraction(fraction, device=None):
    """Let the allocator reserve at most this part, above 0 and up to 1, of ``device``'s memory."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 < fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: (0, 1]")
    total = _device.memory_info(device)[1]
    _device.set_limit(max(1, int(total * fraction)), device)


def get_per_process_memory_fraction(device=None):
    """Return the limit of ``device`` as a part of its memory, 1.0 if there is none."""
    limit = _device.get_limit(device)
    return 1.0 if limit is None else min(1.0, limit / _device.memory_info(device)[1])
