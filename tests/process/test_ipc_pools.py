# SPDX-License-Identifier: Apache-2.0
"""Private pools between processes: an imported pool keeps open what was opened of its memory."""

import copy
import gc
import pickle
import random
import threading

import l0rt
import l0rt.accelerator as acc
import l0rt.ipc
import pytest
from l0rt.runtime.streams import handle as handles

from helpers.ipc_worker import pattern, settled_worker, workers
from helpers.process import run_python

pytestmark = [pytest.mark.checks_data, pytest.mark.usefixtures("warm")]
SIZE = 300_000
FAR = 40 << 20  # a segment of its own


@pytest.fixture(scope="module")
def other():
    with settled_worker() as worker:
        yield worker


def handle_of(worker):
    return bytes.fromhex(worker.run("found = self.pool.ipc_handle().hex()"))


def test_what_was_opened_of_a_pool_stays_open_until_it_is_closed(other):
    with l0rt.memory.MemPool.from_ipc_handle(handle_of(other)) as pool:
        assert (pool.nbytes, l0rt.ipc.imported_count()) == (0, 0)
        first = bytes.fromhex(other.export("x", SIZE, 1))
        second = bytes.fromhex(other.export("y", FAR, 2))
        x = l0rt.Buffer.from_ipc_handle(first, pool=pool)
        opened = pool.nbytes
        assert opened >= SIZE
        base = x.ptr
        del x
        assert (pool.nbytes, l0rt.ipc.imported_count()) == (opened, 1)
        x = l0rt.Buffer.from_ipc_handle(first, pool=pool)
        assert x.ptr == base
        y = l0rt.Buffer.from_ipc_handle(second, pool=pool)
        assert (x.numpy() == pattern(1, SIZE)).all()
        assert (y.numpy() == pattern(2, FAR)).all()
        assert pool.nbytes >= opened + FAR
        assert l0rt.ipc.imported_count() == 2
        del y
        assert l0rt.ipc.imported_count() == 2
    assert (pool.closed, pool.nbytes) == (True, 0)
    assert l0rt.ipc.imported_count() == 1               # that of x
    assert (x.numpy() == pattern(1, SIZE)).all()
    del x
    assert l0rt.ipc.imported_count() == 0
    other.drop("x")
    other.drop("y")


def test_an_open_segment_keeps_no_block_from_being_reused(other):
    """What a pool keeps is a mapping. The block belongs to its process again with the last Buffer."""
    pool = l0rt.memory.MemPool.from_ipc_handle(handle_of(other))
    handle = bytes.fromhex(other.export("x", SIZE, 1))
    x = l0rt.Buffer.from_ipc_handle(handle, pool=pool)
    other.drop("x")
    assert other.counts()["exported"] == 1
    del x
    assert other.counts()["exported"] == 0              # and its segment goes back to the driver
    with pytest.raises(ValueError, match="stale"):
        l0rt.Buffer.from_ipc_handle(handle, pool=pool)
    again = bytes.fromhex(other.export("z", SIZE, 3))
    z = l0rt.Buffer.from_ipc_handle(again, pool=pool)
    assert (z.numpy() == pattern(3, SIZE)).all()
    pool.close()
    del z
    other.drop("z")
    assert l0rt.ipc.imported_count() == 0


def test_memory_of_another_pool_is_refused(other):
    pool = l0rt.memory.MemPool.from_ipc_handle(handle_of(other))
    found = other.run(
        "self.other = l0rt.memory.MemPool(interprocess=True)\n"
        "with l0rt.memory.use_mem_pool(self.other):\n"
        "    self.buffers['x'] = l0rt.empty(1000).fill(4)\n"
        "acc.synchronize()\n"
        "found = [self.buffers['x'].ipc_handle().hex(), self.other.ipc_handle().hex(), self.other.id[1]]"
    )
    handle, owner = map(bytes.fromhex, found[:2])
    with pytest.raises(ValueError, match="not of this pool"):
        l0rt.Buffer.from_ipc_handle(handle, pool=pool)
    theirs = l0rt.memory.MemPool.from_ipc_handle(owner)
    assert theirs.id == (0, found[2]) != pool.id
    assert theirs.process == pool.process == other.child.pid
    assert l0rt.Buffer.from_ipc_handle(handle, pool=theirs).numpy().sum() == 4000
    pool.close()
    with pytest.raises(ValueError, match="closed"):
        l0rt.Buffer.from_ipc_handle(handle, pool=pool)
    theirs.close()
    theirs.close()
    assert "closed" in repr(theirs)
    other.run("del self.buffers['x'], self.other")
    assert l0rt.ipc.imported_count() == 0


def test_several_objects_are_one_import(other):
    """Copies and pickles of it too; memory stays open until the last is closed."""
    pool = l0rt.memory.MemPool.from_ipc_handle(handle_of(other))
    twins = [l0rt.memory.MemPool.from_ipc_handle(pool.handle), pickle.loads(pickle.dumps(pool)), copy.copy(pool)]
    handle = bytes.fromhex(other.export("x", SIZE, 1))
    x = l0rt.Buffer.from_ipc_handle(handle, pool=twins[0])
    assert {each.nbytes for each in twins} == {pool.nbytes}
    del x
    pool.close()
    twins[0].close()
    del twins[2]
    assert l0rt.ipc.imported_count() == 1
    twins.clear()
    gc.collect()
    assert l0rt.ipc.imported_count() == 0
    other.drop("x")


def test_the_own_process_gets_its_pool():
    pool = l0rt.memory.MemPool(interprocess=True)
    handle = pool.ipc_handle()
    assert l0rt.memory.MemPool.from_ipc_handle(handle) is pool
    del pool
    gc.collect()
    with pytest.raises(ValueError, match="stale"):
        l0rt.memory.MemPool.from_ipc_handle(handle)


def test_a_pool_outlives_its_process():
    with workers(1) as (worker,):
        handle = handle_of(worker)
        first = bytes.fromhex(worker.export("x", SIZE, 5))
        pool = l0rt.memory.MemPool.from_ipc_handle(handle)
        x = l0rt.Buffer.from_ipc_handle(first, pool=pool)
        worker.kill()
        for call in (lambda: l0rt.memory.MemPool.from_ipc_handle(handle),
                     lambda: l0rt.Buffer.from_ipc_handle(first, pool=pool)):  # fmt: skip
            with pytest.raises(ValueError, match="has ended"):
                call()
        assert (x.numpy() == pattern(5, SIZE)).all()
        del x
        assert l0rt.ipc.imported_count() == 1
        pool.close()
        assert l0rt.ipc.imported_count() == 0


def test_what_is_no_pool_is_refused(other):
    for pool, words in ((l0rt.memory.MemPool(), "interprocess=True"), (l0rt.memory.MemPool(
            l0rt.memory.PluggableAllocator(lambda *a: 0, lambda *a: None), interprocess=True), "allocator")):
        with pytest.raises(l0rt.UnsupportedError, match=words):
            pool.ipc_handle()
    good = handle_of(other)
    x = bytes.fromhex(other.export("x", SIZE, 1))
    for what in (None, "text", 5, bytearray(good)):
        with pytest.raises(TypeError, match="must be bytes"):
            l0rt.memory.MemPool.from_ipc_handle(what)
    with pytest.raises(ValueError, match="a handle of a Buffer, and one of a MemPool"):
        l0rt.memory.MemPool.from_ipc_handle(x)
    with pytest.raises(ValueError, match="a handle of a MemPool, and one of a Buffer"):
        l0rt.Buffer.from_ipc_handle(good)
    for pool in (5, "pool", good, l0rt.memory.MemPool(interprocess=True)):
        with pytest.raises(TypeError, match="pool must be"):
            l0rt.Buffer.from_ipc_handle(x, pool=pool)
    for length in range(len(good)):
        with pytest.raises(ValueError, match="damaged|no handle|format"):
            l0rt.memory.MemPool.from_ipc_handle(good[:length])
    for bit in range(8 * len(good)):
        damaged = bytearray(good)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ValueError, match="damaged|no handle|format"):
            l0rt.memory.MemPool.from_ipc_handle(bytes(damaged))
    pid, *rest = handles.unpack_pool(good)
    for fields in ((0, *rest), (1, *rest), (pid, 5, *rest[1:]), (pid, rest[0], 1 << 31, *rest[2:]),
                   (pid, *rest[:2], 7, rest[3]), (pid, *rest[:3], 0)):  # fmt: skip
        with pytest.raises((ValueError, PermissionError)):
            l0rt.memory.MemPool.from_ipc_handle(handles.pack(handles.POOL, *fields))
    other.drop("x")


def test_threads_open_drop_and_close_one_pool(other, extent):
    """Whatever is closed meanwhile, each Buffer has its bytes, and nothing is left."""
    handle = handle_of(other)
    names = [bytes.fromhex(other.export(str(i), 1000, i)) for i in range(8)]
    wrong = []

    def work(seed):
        rng = random.Random(seed)
        pool = None
        for _ in range(extent(60, 600)):
            if pool is None or rng.random() < 0.2:
                pool = l0rt.memory.MemPool.from_ipc_handle(handle)
            i = rng.randrange(8)
            x = l0rt.Buffer.from_ipc_handle(names[i], pool=pool if rng.random() < 0.5 else None)
            if rng.random() < 0.3:
                pool.close()
                pool = None
            if (x.numpy() != pattern(i, 1000)).any():
                wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    gc.collect()
    acc.synchronize()
    l0rt.ipc.collect()
    assert l0rt.ipc.imported_count() == 0
    for i in range(8):
        other.drop(str(i))


def test_a_forked_child_and_the_exit_let_go_of_it(other):
    """The child has none of it: closing does nothing there. At exit a pool may still be there."""
    x = other.export("x", SIZE, 1)
    code = f"""
import atexit, os
atexit.register(lambda: (repr(pool), pool.names, pool.close()))     # behind l0rt's own, which comes later
import l0rt, l0rt.ipc
pool = l0rt.memory.MemPool.from_ipc_handle(bytes.fromhex("{handle_of(other).hex()}"))
x = l0rt.Buffer.from_ipc_handle(bytes.fromhex("{x}"), pool=pool)
del x
assert pool.nbytes
pid = os.fork()
if pid == 0:
    pool.close()
    pool.close()
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
assert l0rt.ipc.imported_count() == 1
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "2"})
    assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), str(result)
    other.drop("x")
