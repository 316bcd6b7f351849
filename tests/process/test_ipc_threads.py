# SPDX-License-Identifier: Apache-2.0
"""Threads of one process that export, import, copy, drop, collect and fork at once, from several exporters."""

import os

import pytest

from helpers.ipc_worker import workers

pytestmark = [pytest.mark.checks_data, pytest.mark.shares_events]
SIZES = (1, 4000, 70_000, 1 << 20)
EXPORT = """
for i, nbytes in enumerate({sizes}):
    self.export(f"{{i}}", nbytes, i)
self.event = l0rt.Event(interprocess=True)
self.event.record(); self.event.synchronize()
found = [[b.ipc_handle().hex() for b in self.buffers.values()], self.event.ipc_handle().hex()]
"""
WORK = """
import gc, os, random, sys, threading
from helpers.ipc_worker import pattern
sys.setswitchinterval(1e-6)
handles, events, sizes, found = {handles}, {events}, {sizes}, []
right = [pattern(i, nbytes) for i, nbytes in enumerate(sizes)]
def work(seed):
    turn, s, held, own = random.Random(seed), acc.Stream(), [], []
    try:
        for _ in range({steps}):
            what = turn.randrange(9)
            if what < 3:
                i = turn.randrange(len(sizes))
                x = l0rt.Buffer.from_ipc_handle(bytes.fromhex(turn.choice(handles)[i]))
                held.append((i, x if turn.random() < 0.5 else x[:]))
            elif what == 3 and held:
                i, x = turn.choice(held)
                copy = l0rt.empty(len(x), stream=s).copy_from(x, stream=s)
                if turn.random() < 0.5:     # dropped while the copy may be at work
                    held.clear()
                    del x
                s.synchronize()
                if not (copy.numpy() == right[i]).all():
                    found.append(f"wrong bytes of {{i}}")
            elif what == 4:
                with l0rt.memory.use_mem_pool(self.pool):
                    own.append(l0rt.empty(turn.choice(sizes), stream=s))
                handle = turn.choice(own).ipc_handle()
                own.append(l0rt.Buffer.from_ipc_handle(handle))
            elif what == 5:
                event = l0rt.Event.from_ipc_handle(0, bytes.fromhex(turn.choice(events)))
                s.wait_event(event)
                event.query()
            elif what == 6:
                l0rt.ipc.collect()
            elif what == 7 and turn.random() < 0.1:
                pid = os.fork()
                if pid == 0:
                    os._exit(0)
                if os.waitpid(pid, 0)[1] != 0:
                    found.append("a forked child ended badly")
            while len(held) > 6 or (held and turn.random() < 0.3):
                held.pop(turn.randrange(len(held)))
            while len(own) > 6 or (own and turn.random() < 0.3):
                own.pop(turn.randrange(len(own)))
    except BaseException as error:
        found.append(repr(error))
threads = [threading.Thread(target=work, args=({seed} + i,)) for i in range(5)]
for thread in threads: thread.start()
for thread in threads: thread.join()
sys.setswitchinterval(0.005)
acc.synchronize()
"""


def test_threads_export_import_drop_and_fork_at_once(extent):
    rounds, seed = extent(1, 3, 300), int(os.environ.get("L0RT_TEST_SEED", "1"))
    with workers(3) as (first, second, third):
        told = [worker.run(EXPORT.format(sizes=SIZES)) for worker in (first, second)]
        third.export("warm", 3 << 20, 1)
        third.drop("warm")
        before = third.counts()
        for turn in range(rounds):
            code = WORK.format(
                handles=[one[0] for one in told], events=[one[1] for one in told], sizes=SIZES, steps=120,
                seed=seed + 10 * turn,
            )  # fmt: skip
            assert third.run(code) == []
            third.run("l0rt.Event(interprocess=True).record(); acc.synchronize()")  # closes those that were in use
            third.run("l0rt.Event(interprocess=True).record()")
            assert third.counts() == before
        for worker in (first, second):
            for i, nbytes in enumerate(SIZES):
                assert worker.wrong(f"{i}", i, nbytes) == 0
            worker.run("self.buffers.clear()")
            assert worker.counts()["exported"] == 0
