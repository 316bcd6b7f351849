# SPDX-License-Identifier: Apache-2.0
"""Threads allocate, use and free on streams that they share; wrong bytes tell that memory was reused too early.

Every block is filled with its own byte in its stream's order, copied away on another stream, and freed at once while
all of that is still queued. The copies are looked at in the end.
"""

import random
import sys
import threading

import l0rt
import l0rt.accelerator as acc
from l0rt import memory

from helpers.door import Door, Failed

KIB, MIB = 1 << 10, 1 << 20
STREAMS = 5


class Worker:
    def __init__(self, door, streams, seed, steps, careless):
        self.door, self.streams, self.steps, self.careless = door, streams, steps, careless
        self.choice = random.Random(seed)
        self.wrong, self.refused = [], 0
        self.results = l0rt.empty(steps * 64, kind="host")
        self.expected = {}

    def run(self):
        for step in range(self.steps):
            nbytes = self.choice.choice((64, 4 * KIB, 300 * KIB, MIB + 5, 3 * MIB, 5 * MIB))
            home, user = self.choice.sample(self.streams, 2)
            self.one(step, nbytes, home, user)

    def one(self, step, nbytes, home, user):
        door, value = self.door, self.choice.randrange(256)
        try:
            block = door.malloc(nbytes, -1, door.pointer(home))
        except Failed as error:
            if "out of memory" not in str(error):
                raise
            self.refused += 1
            return
        door.memset_async(block, value, nbytes, door.pointer(home))
        user.wait_stream(home)
        at = self.choice.randrange(max(1, nbytes - 64))
        size = min(64, nbytes)
        how = self.choice.randrange(4)
        if how == 0:
            door.record_stream(block, door.pointer(user))
        door.memcpy_async(self.results.ptr + 64 * step, block + at, size, door.pointer(user))
        if how == 1:
            door.record_use(block, door.pointer(user))
        elif how == 2 and not self.careless:
            home.wait_stream(user)
        if how == 3 and not self.careless:
            door.free_async(block, door.pointer(user))
        else:
            door.free(block)
        self.expected[step] = bytes([value]) * size

    def check(self):
        got = bytes(memoryview(self.results))
        self.wrong = [s for s, data in self.expected.items() if got[64 * s:64 * s + len(data)] != data]
        self.results.free()


def run_together(workers):
    """Run every worker in a thread of its own."""
    running = [threading.Thread(target=worker.run) for worker in workers]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def wrong_steps(seed, threads=3, steps=150, limit=20 * MIB, careless=False):
    """Return how many copies have wrong bytes and how many requests were refused; the books are checked too."""
    acc.synchronize()
    acc.empty_cache()
    before = acc.memory_allocated()
    memory.set_memory_limit(acc.memory_reserved() + limit)
    streams = [acc.Stream() for _ in range(STREAMS)]
    workers = [Worker(Door(), streams, f"{seed} {i}", steps, careless) for i in range(threads)]
    run_together(workers)
    acc.synchronize()
    for worker in workers:
        worker.check()
    memory.set_memory_limit(None)
    assert acc.memory_allocated() == before
    acc.empty_cache()
    stats = acc.memory_stats()
    assert stats["active.all.current"] == stats["allocation.all.current"]
    return sum(len(w.wrong) for w in workers), sum(w.refused for w in workers)


if __name__ == "__main__":
    print(*[wrong_steps(int(seed), careless="careless" in sys.argv) for seed in sys.argv[1:] if seed.isdigit()])
