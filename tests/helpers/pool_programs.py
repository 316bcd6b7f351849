# SPDX-License-Identifier: Apache-2.0
"""Random programs of several threads that enter, leave, put to sleep and drop private pools on two devices.

Blocks are allocated in whatever pool the thread is in, and freed at once or put on a shelf, from which any thread takes
them, perhaps when their pool is gone. A model knows what is allocated from which pool. Between the rounds, when no
thread runs, the allocator has to agree: with how much is allocated on each device, with where each block is, and with
what each pool has reserved; and the bytes are right. In the end nothing is left.
"""

import gc
import threading
from collections import Counter

import l0rt
import l0rt.accelerator as acc
from l0rt import memory

from helpers.door import Door, Failed
from helpers.orders import KIB, MIB, Worker, run_together

DEVICES, STREAMS, POOLS, NESTED = 2, 3, 4, 3
OUTSIDE = (0, 0)
SIZES = (64, 4 * KIB, 300 * KIB, MIB + 5, 3 * MIB, 5 * MIB)
LIMIT = 48 * MIB  # of a device
MODES = ({}, {}, {}, {"use_on_oom": True}, {"no_split": True}, {"limit": 12 * MIB})


class Held:
    """A block that somebody will free."""

    def __init__(self, buffer, value, stream, pool):
        self.buffer, self.value, self.stream, self.pool = buffer, value, stream, pool
        self.is_readable = True  # what was in a pool that slept is lost


class Shelf:
    """The blocks that are held, everybody's."""

    def __init__(self):
        self.lock, self.held = threading.Lock(), []

    def put(self, held):
        with self.lock:
            self.held.append(held)

    def lose(self, pool):
        """The pool is about to sleep: nobody may read what is in it."""
        with self.lock:
            for held in self.held:
                if held.pool == pool:
                    held.is_readable = False
        for device in range(DEVICES):
            acc.synchronize(device)


class PoolWorker(Worker):
    """One thread of a program, with pools of its own."""

    def __init__(self, seed, steps, rounds, streams, shelf):
        super().__init__(Door(), streams, seed, steps * rounds, careless=False)
        self.shelf, self.by_device = shelf, streams
        self.pools, self.asleep, self.entered = [], set(), []
        self.serving = set()  # pools that others may have memory from
        self.failed, self.done, self.round = None, 0, steps

    def run(self):
        """Make the steps of one round; leave the pools that were entered."""
        acts = [self.pass_on] * 6 + [self.hold] * 5 + [self.take] * 4 + [self.enter, self.enter, self.leave] * 2 + [
            self.make, self.make, self.drop, self.sleep, self.wake, self.trim, self.look]  # fmt: skip
        try:
            for step in range(self.done, self.done + self.round):
                device = self.choice.randrange(DEVICES)
                self.streams = self.by_device[device]
                self.choice.choice(acts)(step, device)
            while self.entered:
                self.leave()
        except BaseException as failure:
            self.failed = failure
        self.done += self.round

    def inside(self, device):
        """Return the pool that an allocation on the device is from, None outside of pools."""
        fits = [pool for pool, on, _ in self.entered if on in (None, device)]
        return fits[-1] if fits else None

    def is_refused(self, error, device):
        """Whether the model knows why an allocation fails."""
        pool = self.inside(device)
        self.refused += 1
        return "out of memory" in str(error) or "asleep" in str(error) and pool is not None and pool.id in self.asleep

    # --- Blocks.

    def pass_on(self, step, device):
        """Allocate, write, read on another stream and free."""
        home, user = self.choice.sample(self.streams, 2)
        try:
            self.one(step, self.choice.choice(SIZES), home, user)
        except Failed as error:
            if not self.is_refused(error, device):
                raise

    def hold(self, step, device):
        nbytes, stream, value = self.choice.choice(SIZES), self.choice.choice(self.streams), self.choice.randrange(256)
        pool = self.inside(device)
        try:
            buffer = l0rt.empty(nbytes, stream=stream)
        except (l0rt.OutOfMemoryError, RuntimeError) as error:
            if not self.is_refused(error, device):
                raise
            return
        buffer.fill(value, stream=stream)
        self.shelf.put(Held(buffer, value, stream, pool.id if pool else OUTSIDE))

    def take(self, step, device):
        """Read somebody's block on a stream of its device, and free it."""
        shelf = self.shelf
        with shelf.lock:
            if not shelf.held:
                return
            held = shelf.held.pop(self.choice.randrange(len(shelf.held)))
            buffer, home = held.buffer, held.stream
            user = self.choice.choice(self.by_device[buffer.device.index])
            user.wait_stream(home)
            if held.is_readable:
                buffer.record_stream(user)
                size = min(64, buffer.nbytes)
                self.door.memcpy_async(self.results.ptr + 64 * step, buffer.ptr, size, self.door.pointer(user))
                self.expected[step] = bytes([held.value]) * size
        how = self.choice.randrange(4)
        if how == 0:
            buffer.record_use(user)
        if how == 1:
            buffer.free(stream=user)
        elif how == 2:
            buffer.free()

    # --- Pools.

    def make(self, step, device):
        if len(self.pools) < POOLS:
            mode = self.choice.choice(MODES)
            self.pools.append(memory.MemPool(**mode))
            if "use_on_oom" in mode:
                self.serving.add(self.pools[-1].id)

    def enter(self, step, device):
        if self.pools and len(self.entered) < NESTED:
            pool, on = self.choice.choice(self.pools), self.choice.choice((None, None, device))
            route = memory.use_mem_pool(pool, on)
            route.__enter__()
            self.entered.append((pool, on, route))

    def leave(self, *_):
        if self.entered:
            self.entered.pop()[2].__exit__(None, None, None)

    def drop(self, *_):
        if self.pools:
            self.pools.pop(self.choice.randrange(len(self.pools)))

    def sleep(self, *_):
        pools = [pool for pool in self.pools if pool.id not in self.asleep | self.serving]
        if pools:
            pool = self.choice.choice(pools)
            self.shelf.lose(pool.id)
            try:
                pool.sleep()
            except l0rt.UnsupportedError:
                return
            self.asleep.add(pool.id)

    def wake(self, *_):
        pools = [pool for pool in self.pools if pool.id in self.asleep]
        if pools:
            pool = self.choice.choice(pools)
            try:
                pool.wake()
            except l0rt.OutOfMemoryError:
                return
            self.asleep.discard(pool.id)

    def trim(self, step, device):
        if self.pools:
            self.choice.choice((self.choice.choice(self.pools).empty_cache, acc.empty_cache))()

    def look(self, step, device):
        self.choice.choice((acc.memory_stats, memory.memory_snapshot, acc.reset_peak_memory_stats))()


# --- The model, between rounds.


def disagreements(workers, shelf, base):
    """Return in what the allocator differs from the model, now that no thread runs and no work is under way."""
    gc.collect()
    for device in range(DEVICES):
        acc.synchronize(device)
    alive = {pool.id for worker in workers for pool in worker.pools}
    serving = {pool for worker in workers for pool in worker.serving}
    asleep = {pool for worker in workers for pool in worker.asleep}
    wrong = []
    for device in range(DEVICES):
        stats = memory.memory_stats_as_nested_dict(device)
        segments = memory.memory_snapshot(device=device)
        mine = [held for held in shelf.held if held.buffer.device.index == device]
        count = stats["allocation"]["all"]["current"] - base[device]
        if count != len(mine):
            wrong.append(f"device {device} has {count} allocations, and {len(mine)} are held")
        reserved = Counter()
        for segment in segments:
            pool = segment["segment_pool_id"]
            reserved[pool] += segment["total_size"] if pool not in asleep else 0
        if sum(reserved.values()) != acc.memory_reserved(device):
            wrong.append(f"device {device} has reserved {acc.memory_reserved(device)}, its segments {reserved}")
        listed = {id: told["all"]["current"] for id, told in stats["reserved_bytes_by_private_pools"].items()}
        for id, told in listed.items():
            if told != reserved[id]:
                wrong.append(f"pool {id} has {told} bytes on device {device}, its segments {reserved[id]}")
        used = {held.pool for held in mine} | serving
        if gone := set(listed) - alive - used:
            wrong.append(f"pools that are gone, and of which nothing is held, are listed: {gone}")
        places = [(s["address"], s["address"] + s["total_size"], s["segment_pool_id"]) for s in segments]
        for held in mine:
            found = {pool for start, end, pool in places if start <= held.buffer.ptr < end}
            allowed = {held.pool} | (serving if held.pool == OUTSIDE else set())
            if not found <= allowed or not found and held.pool not in asleep:
                wrong.append(f"{held.buffer!r} of pool {held.pool} lies in {found}")
    return wrong


def wrong_pools(seed, threads=3, rounds=3, steps=60):
    """Run one program; return what is wrong: disagreements with the model, wrong bytes, failures, what is left."""
    gc.collect()
    for device in range(DEVICES):
        acc.synchronize(device)
    acc.empty_cache()
    base = [memory.memory_stats(device).get("allocation.all.current", 0) for device in range(DEVICES)]
    reserved = [acc.memory_reserved(device) for device in range(DEVICES)]
    streams = [[acc.Stream(device) for _ in range(STREAMS)] for device in range(DEVICES)]
    shelf, wrong = Shelf(), []
    workers = [PoolWorker(f"{seed} {i}", steps, rounds, streams, shelf) for i in range(threads)]
    for device in range(DEVICES):
        memory.set_memory_limit(reserved[device] + LIMIT, device)
    for number in range(rounds):
        run_together(workers)
        wrong += [f"a thread failed: {worker.failed!r}" for worker in workers if worker.failed]
        wrong += [f"after round {number}: {text}" for text in disagreements(workers, shelf, base)]
    for worker in workers:
        worker.pools.clear()
    shelf.held.clear()
    wrong += [f"in the end: {text}" for text in disagreements([], shelf, base)]
    for device in range(DEVICES):
        memory.set_memory_limit(None, device)
    for worker in workers:
        worker.check()
        wrong += [f"step {step} has wrong bytes" for step in worker.wrong]
    acc.empty_cache()
    left = [acc.memory_reserved(device) for device in range(DEVICES)]
    if left != reserved:
        wrong.append(f"{left} bytes are reserved in the end, {reserved} were at first")
    return wrong
