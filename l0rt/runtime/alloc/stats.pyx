"""A heap's statistics as a dictionary, under torch's keys."""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc

from l0rt.runtime.alloc.recount cimport heap_stats_of_pools
from l0rt.runtime.alloc.types cimport l0rt_share, l0rt_stat, l0rt_stats

cdef enum:
    SHARES_AT_FIRST = 16

KINDS = ("current", "peak", "allocated", "freed")
POOL_NAMES = ("all", "small_pool", "large_pool")     # in the order of l0rt_family
PARTS = sorted((pool, part) for part, pool in enumerate(POOL_NAMES))

cdef list _keys = []
cdef int64_t[256] _offsets
cdef dict _blank = {}                           # to be copied: filling a dictionary of a known size is faster


def _fill_keys():
    """List the keys, sorted, with the place of each value in l0rt_stats."""
    families = ("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes",
                "active_bytes", "inactive_split_bytes", "requested_bytes")
    names = [f"{f}.{p}.{k}" for f in families for p in POOL_NAMES for k in KINDS]
    names += [f"{f}.{k}" for f in ("oversize_allocations", "oversize_segments") for k in KINDS]
    names += ["num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free",
              "num_oom_rejections", "num_oom_fallback", "max_split_size"]
    if len(names) * sizeof(int64_t) != sizeof(l0rt_stats):
        raise AssertionError("l0rt_stats has other fields than its keys")
    for place, name in sorted(enumerate(names), key=lambda entry: entry[1]):
        _offsets[len(_keys)] = place
        _keys.append(name)
        _blank[name] = 0


cdef dict stats_of_heap(l0rt_heap* heap):
    """All of them, of one moment, sorted by key."""
    cdef l0rt_stats stats
    cdef int64_t* values = <int64_t*>&stats
    cdef l0rt_share* shares = NULL
    cdef int64_t room = SHARES_AT_FIRST, count
    cdef int i
    cdef dict flat = _blank.copy()
    try:
        while True:
            shares = grown(shares, room)
            with nogil:
                count = heap_stats_of_pools(heap, &stats, shares, room)
            if count <= room:
                break
            room = count + SHARES_AT_FIRST
        for i in range(len(_keys)):
            flat[_keys[i]] = values[_offsets[i]]
        return flat if count == 0 else with_pools(flat, shares, count)
    finally:
        free(shares)


cdef l0rt_share* grown(l0rt_share* shares, int64_t room) except NULL:
    cdef l0rt_share* more = <l0rt_share*>realloc(shares, room * sizeof(l0rt_share))
    if more == NULL:
        raise MemoryError("no host memory for the pools' statistics")
    return more


cdef dict with_pools(dict flat, l0rt_share* shares, int64_t count):
    """The same with what the pools have, in its place. Only their names are sorted: there may be many pools."""
    cdef l0rt_stat* stats
    cdef int i
    cdef dict whole = {}
    names = sorted([f"reserved_bytes_by_private_pools.{shares[i].id[0]}_{shares[i].id[1]}.", i] for i in range(count))
    for key, value in flat.items():
        if names and key > names[0][0]:
            for name, i in names:
                stats = <l0rt_stat*>&shares[i].reserved
                for pool, part in PARTS:
                    whole[f"{name}{pool}.allocated"] = stats[part].allocated
                    whole[f"{name}{pool}.current"] = stats[part].current
                    whole[f"{name}{pool}.freed"] = stats[part].freed
                    whole[f"{name}{pool}.peak"] = stats[part].peak
            names = ()
        whole[key] = value
    return whole


_fill_keys()
