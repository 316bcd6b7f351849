# SPDX-License-Identifier: Apache-2.0
"""Threads that allocate without the GIL while another enters and leaves pools."""

import threading

import l0rt
import numpy as np
import pytest
from l0rt import memory
from l0rt.bench import loops

pytestmark = pytest.mark.usefixtures("emptied")


def test_who_enters_a_pool_stops_nobody_who_allocates():
    """Entering takes the arenas of all streams away from the hit path, also from somebody who is on it."""
    rng = np.random.default_rng(1)
    sizes = np.exp(rng.uniform(np.log(512), np.log(4 << 20), 1 << 12)).astype(np.uint64)
    slots = rng.integers(0, 64, 1 << 12).astype(np.uint64)
    l0rt.empty(1 << 20)

    def allocate():
        blocks = loops.Blocks(64)
        blocks.fill(sizes)
        for _ in range(50):
            blocks.swap(slots, sizes, 1 << 10)
        blocks.free()

    thread = threading.Thread(target=allocate, daemon=True)
    pool = memory.MemPool()
    thread.start()
    for _ in range(2_000_000):
        if not thread.is_alive():
            break
        with memory.use_mem_pool(pool):
            pass
    thread.join(60)
    assert not thread.is_alive()
