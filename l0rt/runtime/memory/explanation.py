# SPDX-License-Identifier: Apache-2.0
"""The texts of out-of-memory errors: figures, why an allocation failed, and what to try, in sentences that fit them."""

from l0rt._base.integers import size_text

_NEARLY_ALL = 0.98  # of the memory: drivers keep some for themselves
_WORTH_TELLING = 1 << 20  # bytes of another process
_MOST_PROCESSES = 5

adaptor_types: list[type] = []  # of which an allocator may be made: what imports this adds them


def device_text(n, sites=()):
    """Return the text about a device's memory, or about memory that it shares with the host.

    ``n`` has bytes: requested, free, total, allocated, asleep (the part of it in pools that sleep, without memory),
    pending, cached, releasable (the part of it that `empty_cache` gives back), largest (free block), private (reserved
    by private pools), limit, pool_limit and pool_left (None: none); index; source (of the free bytes) and is_trusted;
    users, pairs of a process and its bytes; adaptors, as `adaptors_of` returns them; is_async and is_expandable;
    allocator, what the memory comes from where that is not the driver, or None; address_space, as obstacles tell it.
    ``refused`` is what the driver answered for shared memory, and ``wakes`` that it is a pool that wanted memory.
    """
    size = size_text(n["requested"])
    if n.get("wakes"):
        head = "XPU out of memory: not enough memory to wake the pool; it stays asleep."
    else:
        head = f"XPU out of memory. Tried to allocate {size}{' that the host shares' if 'refused' in n else ''}."
    limit = "none" if n["limit"] is None else size_text(n["limit"])
    if n["pool_limit"] is not None:
        limit += f", of its pool {size_text(n['pool_limit'])}"
    for name, most, _ in n["adaptors"]:
        limit += f", of its {name} {size_text(most)}"
    answer = f" The driver answered {n['refused']}." if "refused" in n else ""
    return (
        f"{head} {cause(n)}{answer} GPU {n['index']} has a total capacity of {size_text(n['total'])}: "
        f"{_figures(n, 'other streams')}, limit {limit}. {explain(n, sites)}"
    )


def host_text(n, sites=()):
    """Return the text about pinned memory; of what `device_text` needs, without what only devices have."""
    n = {**n, "private": 0, "limit": None, "pool_limit": None, "pool_left": None, "users": (), "adaptors": (),
         "allocator": None, "is_async": False, "is_expandable": True, "is_host": True, "is_trusted": True}  # fmt: skip
    figures = f"In figures: {_figures(n, 'streams')}, limit none."
    return f"pinned host memory ran out. {cause(n)} {figures} {explain(n, sites)}"


def _figures(n, whom):
    source = n["source"] if n["is_trusted"] else f"at most: {n['source']}"
    asleep = f" (in pools that sleep {size_text(n['asleep'])})" if n["asleep"] else ""
    parts = []
    if n["cached"]:
        parts.append(f"releasable {size_text(n['releasable'])}")
    if n["private"]:
        parts.append(f"private pools reserve {size_text(n['private'])}")
    return (
        f"requested {size_text(n['requested'])}, free {size_text(n['free'])} ({source}), "
        f"allocated {size_text(n['allocated'])}{asleep}, waiting for {whom} {size_text(n['pending'])}, "
        f"cached {size_text(n['cached'])}{' (' + '; '.join(parts) + ')' if parts else ''}"
    )


def adaptors_of(allocator):
    """Return (name, limit, allocated bytes) of each adaptor with a limit that memory of a PluggableAllocator comes
    through; nothing for None."""
    found = []
    adaptor = getattr(getattr(allocator, "alloc", None), "__self__", None)
    while adaptor is not None and _is_adaptor(adaptor):
        if hasattr(adaptor, "get_allocation_limit"):
            found.append((type(adaptor).__name__, adaptor.get_allocation_limit(), adaptor.get_allocated_bytes()))
        adaptor = adaptor.upstream
    return found


def _is_adaptor(found):
    return isinstance(found, tuple(adaptor_types))


def explain(n, sites=()):
    """Return the sentences behind the figures."""
    told = [*_fragments(n), *_users(n), *_remedies(n)]
    if sites:
        most = "; ".join(f"{size_text(size)} in {count} at {place}" for place, size, count in sites)
        told.append(f"Most is allocated by: {most}.")
    return " ".join(told)


def _fragments(n):
    if n["cached"] > 0:
        split = 100 * (n["cached"] - n["largest"]) / n["cached"]
        where = " outside of private pools" if n["private"] else ""
        yield f"The largest free block{where} has {size_text(n['largest'])}, fragmentation {split:.0f} %."


def _reserved(n):
    return n["allocated"] + n["pending"] + n["cached"] - n["asleep"]


def _is_device_short(n):
    return n["free"] < n["requested"]


def _pool_is_why(n):
    return n["pool_limit"] is not None and n["requested"] > n["pool_left"]


def _limit_is_why(n):
    return n["limit"] is not None and _reserved(n) + n["requested"] > n["limit"]


def _tight_adaptors(n):
    """The adaptors whose limits leave too little."""
    return [each for each in n["adaptors"] if each[2] + n["requested"] > each[1]]


def cause(n):
    """Why there is no memory, in one sentence."""
    whose = "machine" if n.get("is_host") else "device"
    enough = "" if _is_device_short(n) else f"The {whose} has enough free memory, but "
    if n["requested"] > n["total"]:
        return f"The request is larger than the {whose}'s memory."
    if n["limit"] is not None and n["requested"] > n["limit"]:
        return "The request is larger than the limit."
    if n["pool_limit"] is not None and n["requested"] > n["pool_limit"]:
        return "The request is larger than the pool's limit."
    if tight := _tight_adaptors(n):
        name, most, allocated = tight[0]
        if n["requested"] > most:
            return f"The request is larger than the limit of the {name} that the memory comes through."
        told = f"The {name} that the memory comes through has handed out {size_text(allocated)}"
        return f"{told}, and its limit leaves too little."
    if _pool_is_why(n):
        return f"{enough or 'T'}{'t' if enough else ''}he pool's limit leaves too little."
    if _limit_is_why(n) and enough:
        return f"{enough}the limit leaves too little."
    if n["allocator"]:
        return f"{n['allocator']} has no memory to give."
    if n["cached"] >= n["requested"]:
        return "Enough is cached, but in parts between blocks in use, or in private pools, or for other streams."
    if not enough:
        return f"The {whose} has too little free memory."
    if n["address_space"]:
        return f"{enough}{n['address_space']}."
    return f"{enough}the driver did not give it."


def _users(n):
    """Who else has memory."""
    if n["users"]:
        for pid, nbytes in sorted(n["users"], key=lambda user: -user[1])[:_MOST_PROCESSES]:
            if nbytes >= _WORTH_TELLING:
                yield f"Process {pid} has {size_text(nbytes)} memory in use."
        return
    others = int(n["total"] * _NEARLY_ALL) - n["free"] - _reserved(n)
    if others > n["total"] // 20 and not n.get("is_host"):
        yield f"About {size_text(others)} are in use by other programs."


def _remedies(n):
    """What to try."""
    ways = []
    if n["releasable"] > 0:
        name = "empty_host_cache" if n.get("is_host") else "empty_cache"
        whose = " (of a private pool: its own)" if n["private"] > 0 else ""
        yield f"Please use `{name}`{whose} to release all unoccupied cached memory: {size_text(n['releasable'])}."
    if n["is_async"] and n["pending"] + n["cached"] > 0:
        ways.append("call `synchronize`, since with backend:async no allocation waits for what streams still use")
    elif n["pending"] > 0:
        ways.append("synchronize the streams that still use freed memory")
    limits = [n["limit"], n["pool_limit"], *(most for _, most, _ in n["adaptors"])]
    most = min(limit for limit in (n["total"], *limits) if limit is not None)
    if n["allocated"] > 0 and n["requested"] <= most:
        ways.append("free buffers that are no longer needed")
    if n["cached"] >= n["requested"] and not n["is_expandable"]:
        ways.append("set expandable_segments:True against fragmentation")
    if n["private"] > 0 and n["cached"] > 0:
        ways.append("drop private pools that are no longer needed")
    if n["requested"] <= n["total"]:
        if n["limit"] is not None and (_limit_is_why(n) or not (_pool_is_why(n) or _tight_adaptors(n))):
            ways.append("raise the limit")
        if _pool_is_why(n):
            ways.append("raise the pool's limit")
        ways += [f"raise the limit of the {name}" for name, _, _ in _tight_adaptors(n)]
    if not ways:
        ways.append("allocate less at once")
    yield f"To try: {'; '.join(ways)}."
