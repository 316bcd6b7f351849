# SPDX-License-Identifier: Apache-2.0
"""The rows of the history of memory: what an allocation costs while it is recorded, and what a snapshot takes."""

from contextlib import contextmanager

import l0rt
import l0rt.accelerator as acc
from l0rt import memory
from l0rt.bench.allocator_rows import malloc_free, row
from l0rt.bench.rows import KIB, Skip, Work, python

ENTRIES, DEPTH, BLOCKS = 100_000, 20, 100_000


@contextmanager
def recorded(context):
    memory.record_memory_history(context=context, max_entries=ENTRIES)
    try:
        yield
    finally:
        memory.record_memory_history(None)


@row("allocator.history.4KiB.c", "l0rt_malloc + l0rt_free, 4KiB, cached, recorded without stacks", 4 * KIB,
     counts=True, times=(2, "allocator.malloc_free.4KiB.c"))  # fmt: skip
def pair(lab, nbytes):
    with recorded(None):
        yield from malloc_free(lab, nbytes)


def at_depth(depth, function):
    return function() if depth == 1 else at_depth(depth - 1, function)


@row("allocator.history.stacks.python", f"l0rt.empty(n), dropped, 4KiB, recorded with stacks of {DEPTH} frames",
     4 * KIB, ns=2 * 1500 + 45)  # fmt: skip
def stacks(lab, nbytes):
    loop = python("empty(nbytes)", empty=l0rt.empty, nbytes=nbytes)
    with recorded("all"):
        yield Work(lambda n: at_depth(DEPTH - 2, lambda: loop(n)))
    acc.empty_cache()


@row("allocator.history.snapshot.python", f"a snapshot of {BLOCKS} blocks with stacks", ns=5e8, long=True)
def snapshot(lab):
    if lab.memory // 4 < BLOCKS * KIB:
        raise Skip("needs 400 MiB of device memory")
    with recorded("state"):
        buffers = [l0rt.empty(512) for _ in range(BLOCKS)]
        yield Work(python("snapshot()", snapshot=memory.snapshot), n=1, rounds=5)
        buffers.clear()
    acc.empty_cache()
