# SPDX-License-Identifier: Apache-2.0
"""The allocators' statistics in the text format of OpenMetrics, for Prometheus and its relatives."""

from l0rt.memory.stats import host_memory_stats, is_opened, memory_stats
from l0rt.runtime.streams.devices import device_count

_BYTES = (
    ("allocated_bytes", "allocated", "Bytes of blocks that are allocated"),
    ("requested_bytes", "requested", "Bytes that were asked for and are allocated"),
    ("active_bytes", "active", "Bytes of blocks that are allocated, or freed and still in use by a stream"),
    ("reserved_bytes", "reserved", "Bytes that the allocator has from the driver"),
    ("inactive_split_bytes", "inactive_split", "Bytes of free blocks in segments that are in use"),
)
_COUNTERS = (
    ("num_ooms", "out_of_memory", "Requests that failed"),
    ("num_oom_rejections", "limit_rejections", "Requests that the limit refused"),
    ("num_alloc_retries", "retries", "Requests for which cached memory was given back"),
    ("num_device_alloc", "driver_allocations", "Calls of the driver that take memory"),
    ("num_device_free", "driver_frees", "Calls of the driver that give memory back"),
    ("num_sync_all_streams", "waits", "Waits of the host before memory was given back"),
)
_PRIVATE, _TAGGED, _NOW = "reserved_bytes_by_private_pools.", "component_bytes.", ".current"
_HOST = (("active_bytes", "allocated", "Bytes of pinned blocks that are in use"),
         ("allocated_bytes", "reserved", "Bytes of pinned memory that the allocator has"))  # fmt: skip


def openmetrics() -> str:
    """Return the statistics of all devices and of pinned memory as text of OpenMetrics 1.0.

    Figures of a device have the label ``device``, those of a tag ``tag``, and those of a private pool ``pool``. Names
    begin with ``l0rt_memory_`` and, for pinned memory, ``l0rt_host_memory_``.

    Returns
    -------
    str
        Lines for ``application/openmetrics-text``; before the first allocation there are no figures.

    Notes
    -----
    The peaks are those since `reset_peak_memory_stats`. A counter that `reset_accumulated_memory_stats` sets to zero
    begins anew, as after a new start of the process.
    """
    stats = {index: memory_stats(index) for index in range(device_count())} if is_opened() else {}
    lines: list[str] = []
    for key, name, what in _BYTES:
        for kind, end, words in (("current", "", what), ("peak", "_peak", f"{what}: the most at once")):
            rows = [(_device(i), flat[f"{key}.all.{kind}"]) for i, flat in stats.items() if flat]
            _family(lines, f"l0rt_memory_{name}{end}_bytes", "gauge", words, rows)
    rows = [(_device(i), flat["allocation.all.current"]) for i, flat in stats.items() if flat]
    _family(lines, "l0rt_memory_blocks", "gauge", "Blocks that are allocated", rows)
    for key, name, what in _COUNTERS:
        rows = [(_device(i), flat[key]) for i, flat in stats.items() if flat]
        _family(lines, f"l0rt_memory_{name}", "counter", what, rows)
    tags = [(f'{_device(i)},tag="{_label(tag)}"', n) for i, flat in stats.items() for tag, n in _of(flat, _TAGGED)]
    _family(lines, "l0rt_memory_tag_bytes", "gauge", "Bytes of blocks that were allocated with a tag", tags)
    pools = [(i, key.removesuffix(".all").replace("_", "."), n)
             for i, flat in stats.items() for key, n in _of(flat, _PRIVATE) if key.endswith(".all")]  # fmt: skip
    _family(lines, "l0rt_memory_pool_reserved_bytes", "gauge", "Bytes that a private pool has from the driver",
            [(f'{_device(i)},pool="{_label(pool)}"', n) for i, pool, n in pools])  # fmt: skip
    _host(lines, host_memory_stats() if stats else {})
    return "\n".join([*lines, "# EOF", ""])


def _host(lines, flat):
    for key, name, what in _HOST if flat else ():
        _family(lines, f"l0rt_host_memory_{name}_bytes", "gauge", what, [("", flat[f"{key}.current"])])
        _family(lines, f"l0rt_host_memory_{name}_peak_bytes", "gauge", f"{what}: the most at once",
                [("", flat[f"{key}.peak"])])  # fmt: skip
    if flat:
        _family(lines, "l0rt_host_memory_out_of_memory", "counter", "Requests of pinned memory that failed",
                [("", flat["num_ooms"])])  # fmt: skip
    tags = [(f'tag="{_label(tag)}"', nbytes) for tag, nbytes in _of(flat, _TAGGED)]
    _family(lines, "l0rt_host_memory_tag_bytes", "gauge", "Bytes of pinned blocks that were allocated with a tag", tags)


def _of(flat, prefix):
    """The current values below a prefix, by the names behind it."""
    return [(key[len(prefix) : -len(_NOW)], n) for key, n in flat.items()
            if key.startswith(prefix) and key.endswith(_NOW)]  # fmt: skip


def _family(lines, name, kind, what, rows):
    if not rows:
        return
    lines.append(f"# TYPE {name} {kind}")
    if name.endswith("_bytes"):
        lines.append(f"# UNIT {name} bytes")
    lines.append(f"# HELP {name} {what}.")
    end = "_total" if kind == "counter" else ""
    lines += [f"{name}{end}{{{labels}}} {value}" if labels else f"{name}{end} {value}" for labels, value in rows]


def _device(index):
    return f'device="xpu:{index}"'


def _label(text):
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
