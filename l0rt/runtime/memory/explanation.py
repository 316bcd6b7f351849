# SPDX-License-Identifier: Apache-2.0
"""Why an allocation failed, and what to try: sentences that fit the numbers."""

from l0rt.whole import size_text

_NEARLY_ALL = 0.98  # of the memory: drivers keep some for themselves


def explain(numbers, sites=()):
    """Return the sentences behind the figures of an out-of-memory error.

    ``numbers`` has bytes: requested, free, total, allocated, pending, cached, largest (free block), private (reserved
    by private pools), limit (None: none); and is_async, is_expandable.
    """
    told = [*_fragments(numbers), *_reasons(numbers), *_remedies(numbers)]
    if sites:
        most = "; ".join(f"{size_text(size)} in {count} at {place}" for place, size, count in sites)
        told.append(f"Most is allocated by: {most}.")
    return " ".join(told)


def _fragments(n):
    if n["cached"] > 0:
        split = 100 * (n["cached"] - n["largest"]) / n["cached"]
        yield f"The largest free block has {size_text(n['largest'])}, fragmentation {split:.0f} %."


def _reasons(n):
    """What stands in the way."""
    reserved = n["allocated"] + n["pending"] + n["cached"]
    if n["requested"] > n["total"]:
        yield "The request is larger than the device's memory."
    elif n["limit"] is not None and n["requested"] > n["limit"]:
        yield "The request is larger than the limit."
    elif n["limit"] is not None and reserved + n["requested"] > n["limit"] and n["free"] >= n["requested"]:
        yield "The device has enough free memory, but the limit leaves too little."
    elif n["cached"] >= n["requested"]:
        yield "Enough is cached, but in parts between blocks in use, or in private pools, or for other streams."
    others = int(n["total"] * _NEARLY_ALL) - n["free"] - reserved
    if others > n["total"] // 20:
        yield f"About {size_text(others)} are in use by other programs."


def _remedies(n):
    """What to try."""
    ways = []
    if n["cached"] >= n["requested"]:
        yield "Please use `empty_cache` to release all unoccupied cached memory."
    if n["is_async"] and n["pending"] + n["cached"] > 0:
        ways.append("call `synchronize`, since with backend:async no allocation waits for what streams still use")
    elif n["pending"] > 0:
        ways.append("synchronize the streams that still use freed memory")
    most = min(n["total"], n["limit"] or n["total"])
    if n["allocated"] > 0 and n["requested"] <= most:
        ways.append("free buffers that are no longer needed")
    if n["cached"] >= n["requested"] and not n["is_expandable"]:
        ways.append("set expandable_segments:True against fragmentation")
    if n["private"] > 0 and n["cached"] > 0:
        ways.append("drop private pools that are no longer needed")
    if n["limit"] is not None and n["requested"] <= n["total"]:
        ways.append("raise the limit")
    if not ways:
        ways.append("allocate less at once")
    yield f"To try: {'; '.join(ways)}."
