# SPDX-License-Identifier: Apache-2.0
"""The table of an allocator's statistics, laid out as torch's `memory_summary`."""

from itertools import repeat

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
_THICK, _THIN = (f"|{sign * _WIDTH}|" for sign in "=-")


_SIZES = (1024, 768 * 1024, ("B  ", "KiB", "MiB", "GiB", "TiB", "PiB"))
_COUNTS = (1000, 750 * 1000, ("  ", "K ", "M "))


def _cell(value, whole, scale):
    """Ten columns, in the unit that ``whole`` is best read in: a column's parts are compared with each other."""
    step, most, units = scale
    power = 0
    while whole >= most and power < len(units) - 1:
        whole //= step
        power += 1
    unit = units[power]
    return f"{value // step**power:{9 - len(unit)}d} {unit}"


def _row(name, values):
    return f"| {name:<21} | " + " | ".join(values) + " |"


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
    return "\n".join([*lines, _THICK, ""])


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
