# SPDX-License-Identifier: Apache-2.0
"""The allocators' statistics under torch's keys, and the texts that torch makes: `memory_summary`'s table, and the
processes that use a device."""

from __future__ import annotations

from itertools import repeat

import l0rt.runtime.memory.device as _device
import l0rt.runtime.memory.pinned as _host
from l0rt._base.described import takes_device as _takes_device
from l0rt.errors import L0Error as _L0Error
from l0rt.errors import UnsupportedError as _UnsupportedError
from l0rt.runtime.memory.pools import index_or_current as _index_of
from l0rt.runtime.memory.trace import segments as _segments
from l0rt.runtime.memory.trace import tag_sums as _tag_sums
from l0rt.runtime.streams.devices import device_count, lazy, processes, properties
from l0rt.ze import fdinfo as _fdinfo

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from typing import Any

    from l0rt.runtime.streams.naming import _Device

_ROWS = (
    ("allocated_bytes", "Allocated memory", True),
    ("active_bytes", "Active memory", True),
    ("requested_bytes", "Requested memory", True),
    ("reserved_bytes", "GPU reserved memory", True),
    ("inactive_split_bytes", "Non-releasable memory", True),
    ("allocation", "Allocations", False),
    ("active", "Active allocs", False),
    ("segment", "GPU reserved segments", False),
    ("inactive_split", "Non-releasable allocs", False),
)
_OVERSIZE = (("oversize_allocations", "Oversize allocations"), ("oversize_segments", "Oversize GPU segments"))
_POOLS = (("all", ""), ("large_pool", "      from large pool"), ("small_pool", "      from small pool"))
_KINDS = ("current", "peak", "allocated", "freed")
_WIDTH = 75
_PRIVATE = "reserved_bytes_by_private_pools"
_TAGGED = "component_bytes"
_NAME = 21  # columns of a row's name
_THICK, _THIN = (f"|{sign * _WIDTH}|" for sign in "=-")


_SIZES = (1024, 768 * 1024, ("B  ", "KiB", "MiB", "GiB", "TiB", "PiB"))
_COUNTS = (1000, 750 * 1000, ("  ", "K ", "M "))


def _cell(value, peak, scale):
    """Ten columns, in the unit that ``peak`` is best read in: a column's parts are compared with each other."""
    step, most, units = scale
    power = 0
    while peak >= most and power < len(units) - 1:
        peak //= step
        power += 1
    unit = units[power]
    return f"{value // step**power:{9 - len(unit)}d} {unit}"


def _row(name, values):
    return f"| {name:<{_NAME}} | " + " | ".join(values) + " |"


def _tag_rows(stats):
    """A row for each tag, the most bytes first."""
    ending = f".{_KINDS[0]}"
    keys = [key.removesuffix(ending) for key in stats if key.startswith(f"{_TAGGED}.") and key.endswith(ending)]
    rows = [(key.partition(".")[2], [stats[f"{key}.{kind}"] for kind in _KINDS]) for key in keys]
    for tag, values in sorted(rows, key=lambda pair: [-value for value in pair[1]]):
        name = "Tag: " + "".join(letter if letter.isprintable() else "?" for letter in tag)
        if len(name) > _NAME:  # names of one program often begin alike, and end alike
            name = f"{name[: _NAME - 8]}…{name[-7:]}"
        yield _row(name, map(_cell, values, values, repeat(_SIZES)))


def table(stats, device, abbreviated=False):
    """Return the table of ``stats``, torch's flat statistics of device number ``device``."""
    head = f" l0rt memory summary, device ID {device} "
    ooms = f"OOMs: {stats.get('num_ooms', 0)}".center(36)
    retries = f"alloc retries: {stats.get('num_alloc_retries', 0)}".center(_WIDTH - 1 - len(ooms))
    lines = [
        _THICK,
        f"|{head.center(_WIDTH)}|",
        _THIN,
        f"|{ooms}|{retries}|",
        _THICK,
        "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |",
    ]
    for key, name, is_size in _ROWS:
        lines.append(_THIN)
        scale = _SIZES if is_size else _COUNTS
        wholes = [stats.get(f"{key}.all.{kind}", 0) for kind in _KINDS]
        for pool, pool_name in _POOLS[: 1 if abbreviated else None]:
            parts = [stats.get(f"{key}.{pool}.{kind}", 0) for kind in _KINDS]
            lines.append(_row(pool_name or name, map(_cell, parts, wholes, repeat(scale))))
    for key, name in _OVERSIZE:
        values = [stats.get(f"{key}.{kind}", 0) for kind in _KINDS]
        lines += [_THIN, _row(name, map(_cell, values, values, repeat(_COUNTS)))]
    tags = list(_tag_rows(stats))
    return "\n".join([*lines, *([_THIN] if tags else []), *tags, _THICK, ""])


def nested(flat):
    """Return the statistics with a dict at every dot of the keys, and private pools by their ids, as torch does."""
    tree: dict = {_PRIVATE: {}} if "reserved_bytes.all.current" in flat else {}
    for key, value in flat.items():
        *path, last = key.split(".")
        if path and path[0] == _PRIVATE:
            path[1] = tuple(int(part) for part in path[1].split("_"))
        place = tree
        for name in path:
            place = place.setdefault(name, {})
        place[last] = value
    return tree


def is_opened():
    """Return whether the driver is open; raise if there is no device."""
    if not lazy.initialized and not device_count():
        lazy.init()
    return lazy.initialized


@_takes_device
def memory_stats(device: _Device = None) -> dict[str, int]:
    """Return the statistics of the allocator of ``device`` as a flat dict with torch's keys, sorted.

    ``num_ooms`` counts the requests that ended in OutOfMemoryError. ``num_oom_rejections`` counts those of them that
    the limit refused without a call of the driver. ``num_oom_fallback`` counts the requests that a `MemPool` with
    ``use_on_oom`` served instead. A `MemPool` has its part under ``reserved_bytes_by_private_pools.<id>``, with an id
    such as ``0_1``, until it is dropped and has given its memory back. A tag of `l0rt.memory.tag` has its bytes under
    ``component_bytes.<tag>``.

    Returns
    -------
    dict of str to int
        Bytes and counts. Empty before the first allocation.

    Notes
    -----
    The keys and their meaning are those of ``torch.cuda.memory_stats``. Peaks are exact, over all threads.
    """
    return _with_tags(_device.flat_stats(device), device, False)


def _with_tags(flat, device, of_host):
    tags = _tag_sums(_index_of(device), of_host) if flat else {}
    for tag, values in tags.items():
        flat.update(zip((f"{_TAGGED}.{tag}.{kind}" for kind in _KINDS), values, strict=True))
    return dict(sorted(flat.items())) if tags else flat


@_takes_device
def memory_stats_as_nested_dict(device: _Device = None) -> dict[str, Any]:
    """Return `memory_stats` as nested dicts, with private pools under ids such as ``(0, 1)``.

    Returns
    -------
    dict
        Bytes and counts.
    """
    return nested(memory_stats(device))


@_takes_device
def host_memory_stats(device: _Device = None) -> dict[str, float]:
    """Return the statistics of the pinned memory of ``device``'s context as a flat dict with torch's keys, sorted.

    Values are bytes, counts, and microseconds for the times of driver calls. Empty before the first allocation. A tag
    of `l0rt.memory.tag` has its bytes of pinned memory under ``component_bytes.<tag>``.

    Returns
    -------
    dict of str to int

    Notes
    -----
    The keys and their meaning are those of ``torch.cuda.host_memory_stats``. Peaks are exact; torch adds the peaks of
    all sizes.
    """
    return _with_tags(_host.flat_stats(device), device, True)


@_takes_device
def host_memory_stats_as_nested_dict(device: _Device = None) -> dict[str, Any]:
    """Return `host_memory_stats` as nested dicts, one level for each part of a key between dots.

    Returns
    -------
    dict
    """
    return nested(host_memory_stats(device))


@_takes_device
def fragmentation(device: _Device = None) -> dict[str, Any]:
    """Return how the free memory that the allocator of ``device`` holds is divided.

    Returns
    -------
    dict
        ``free_bytes``; ``free_blocks``, their number; ``largest_free_block``, in bytes; ``fragmentation``, the part of
        the free bytes that is not in the largest block, from 0 to 1; ``rounding_bytes``, what allocated blocks are
        larger than their requests; and ``utilization``, the part of the reserved bytes that is allocated.
    """
    segments = _segments(device=_index_of(device))
    blocks = [block for segment in segments for block in segment["blocks"]]
    free = [block["size"] for block in blocks if block["state"] == "inactive"]
    live = [block for block in blocks if block["state"] == "active_allocated"]
    reserved, total = sum(segment["total_size"] for segment in segments), sum(free)
    allocated = sum(block["size"] for block in live)
    return {
        "free_bytes": total,
        "free_blocks": len(free),
        "largest_free_block": max(free, default=0),
        "fragmentation": 1 - max(free) / total if total else 0.0,
        "rounding_bytes": allocated - sum(block["requested_size"] for block in live),
        "utilization": allocated / reserved if reserved else 1.0,
    }


@_takes_device
def max_memory_allocated(device: _Device = None) -> int:
    """Return the peak of `memory_allocated` since the last `reset_peak_memory_stats`.

    Returns
    -------
    int
        Bytes.
    """
    return _device.flat_stats(device).get("allocated_bytes.all.peak", 0)


@_takes_device
def max_memory_reserved(device: _Device = None) -> int:
    """Return the peak of `memory_reserved` since the last `reset_peak_memory_stats`.

    Returns
    -------
    int
        Bytes.
    """
    return _device.flat_stats(device).get("reserved_bytes.all.peak", 0)


@_takes_device
def reset_peak_memory_stats(device: _Device = None) -> None:
    """Set every peak to the current value."""
    if is_opened():
        _device.reset_peak_stats(device)


@_takes_device
def reset_accumulated_memory_stats(device: _Device = None) -> None:
    """Set the totals of allocated and freed memory and all counters to 0."""
    if is_opened():
        _device.reset_accumulated_stats(device)


@_takes_device
def reset_peak_host_memory_stats(device: _Device = None) -> None:
    """Set every peak of pinned memory to the current value; reset the longest and the shortest driver call."""
    if is_opened():
        _host.reset_peak_stats(device)


@_takes_device
def reset_accumulated_host_memory_stats(device: _Device = None) -> None:
    """Set the totals of allocated and freed pinned memory and all counters to 0."""
    if is_opened():
        _host.reset_accumulated_stats(device)


@_takes_device
def memory_summary(device: _Device = None, abbreviated: bool = False) -> str:
    """Return the statistics of ``device`` as torch's table, and below a row for each tag of `l0rt.memory.tag`.

    Parameters
    ----------
    abbreviated : bool, optional
        Omit the rows of the small pool and of the large pool.

    Returns
    -------
    str

    Notes
    -----
    The table is that of ``torch.cuda.memory_summary``.
    """
    index = _index_of(device)
    return table(memory_stats(index), index, abbreviated)


_PRIVILEGES = 0x70010000  # ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS
_ADVICE = "; the root user has it, or a process with CAP_PERFMON and CAP_SYS_ADMIN"


def reason_of(error):
    """Return an error's text; where the driver refuses for want of privileges, with how to get them."""
    return f"{error}{_ADVICE if error.code and error.code[1] == _PRIVILEGES else ''}"


@_takes_device
def list_gpu_processes(device: _Device = None) -> str:
    """Return a text that lists the processes that use ``device``, with the device memory that each has allocated.

    Returns
    -------
    str
        A line for each process, in units of 1024² bytes; or why they are not known: the driver has no system
        management, does not list processes, or requires privileges.

    Notes
    -----
    The lines are those of ``torch.cuda.memory.list_gpu_processes``. The source is ``zesDeviceProcessesGetState`` of
    Level Zero. It lists the processes of a whole card, and so the same for each of its tiles. A device of the CPU
    driver belongs to one process, and the text says so.
    """
    index = _index_of(device)
    is_software = properties(index)["is_software"]
    try:
        users = processes(index)
    except _L0Error as error:
        return f"the processes that use GPU:{index} are not known: {reason_of(error)}"
    lines = [f"GPU:{index}" + (" is the CPU driver's, which only this process uses" if is_software else "")]
    lines += [f"process {pid:>10d} uses {nbytes / (1 << 20):>12.3f} MB GPU memory" for pid, nbytes in users]
    return "\n".join(lines if users else [*lines, "no processes are running"])


@_takes_device
def recommended_max_memory(device: _Device = None) -> int:
    """Return how many bytes of ``device`` a program should use at most.

    Returns
    -------
    int
        Bytes.

    Notes
    -----
    The result is ``min(total, free + reserved) - total / 20``, at most the limit and at least 0. The twentieth is
    l0rt's reserve for other programs and the driver. The name is that of ``torch.mps.recommended_max_memory``.
    """
    index = _index_of(device)
    free, total, _, _ = _device.memory_info(index)
    wise = max(0, min(total, free + _device.memory_reserved(index)) - total // 20)
    return min(wise, _device.get_limit(index) or wise)


@_takes_device
def memory_info(device: _Device = None) -> dict[str, Any]:
    """Return the free and the total bytes of ``device``, the source of the first number, and whether to trust it.

    Returns
    -------
    dict
        ``free`` and ``total``, in bytes; ``source``, a text; ``trust``, False if the source does not know of all
        processes, so that there may be less.

    Notes
    -----
    The source is ``ZE_extension_device_usablemem_size_properties`` or ``zesMemoryGetState`` of Level Zero. If neither
    knows, the free memory is the total minus what the processes have whose fdinfo may be read, and if there is none,
    minus what this process has reserved.
    """
    free, total, source, is_trusted = _device.memory_info(device)
    return {"free": free, "total": total, "source": source, "trust": is_trusted}


@_takes_device
def host_shadow_bytes(device: _Device = None) -> int:
    """Return how many bytes of the host's memory Linux's driver holds for this process on ``device``.

    Some runtimes mirror device memory in the host's. l0rt does not: beside the few MiB of the driver, this is pinned
    and shared memory. Of a device without memory of its own it is all memory.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    UnsupportedError
        Linux's driver does not report it. The CPU driver has none.

    Notes
    -----
    The source is ``drm-total-gtt`` and ``drm-total-system`` in the fdinfo of the process's files of the device, which
    xe and i915 of Linux write. Each client of the driver counts once. Tiles of a card share them.
    """
    index = _index_of(device)
    address = properties(index)["pci"]
    nbytes = _fdinfo.host_bytes(address)
    if nbytes is None:
        raise _UnsupportedError(
            f"no fdinfo of this process reports the memory of xpu:{index} ({address or 'no PCI address'})")
    return nbytes
