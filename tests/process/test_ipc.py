# SPDX-License-Identifier: Apache-2.0
"""Memory between processes: handles, what keeps memory from being reused, processes that end at any time."""

import contextlib
import os
import random
import threading

import l0rt
import l0rt.accelerator as acc
import l0rt.ipc
import pytest
from l0rt.runtime.streams import handle as handles

from helpers.ipc_worker import NOBODY, Failed, Worker, pattern, settled_worker, workers

pytestmark = [pytest.mark.checks_data, pytest.mark.usefixtures("warm")]
SIZE = 300_000


@pytest.fixture(scope="module")
def other():
    with settled_worker() as worker:
        yield worker


@pytest.fixture
def pool():
    """The module's pool of memory that can be shared."""
    found = l0rt.memory.MemPool(interprocess=True)
    yield found
    l0rt.ipc.collect()


def shareable(pool, nbytes=SIZE, seed=1, device=0):
    with l0rt.memory.use_mem_pool(pool):
        made = l0rt.empty(nbytes, device=device)
    return made.copy_from(pattern(seed, nbytes))


def refuses(kind, words, call, *arguments):
    with pytest.raises(Failed, match=words) as caught:
        call(*arguments)
    assert caught.value.kind == kind


# What a handle is good for.


def test_another_process_reads_and_writes_a_buffer(other, pool):
    x = shareable(pool)
    acc.synchronize()
    assert "Buffer of another process device" in other.open("x", x.ipc_handle().hex())
    assert other.wrong("x", 1, SIZE) == 0
    other.fill("x", 7)
    assert (x.numpy() == 7).all()
    other.drop("x")


def test_a_part_is_shared_as_a_part(other, pool):
    x = shareable(pool)
    acc.synchronize()
    other.open("x", x[1000:4000][10:].ipc_handle().hex())
    assert other.wrong("x", 1, 2990, 1010) == 0
    other.fill("x", 0)
    assert (x.numpy()[1010:4000] == 0).all()
    assert (x.numpy()[4000:] == pattern(1, SIZE)[4000:]).all()
    other.drop("x")


def test_this_process_imports_what_another_exports(other):
    x = l0rt.Buffer.from_ipc_handle(bytes.fromhex(other.export("x", SIZE, 5, 0, 100, 200)))
    assert (x.kind, len(x), str(x.device), x[10:20].nbytes) == ("device", 100, "xpu:0", 10)
    assert (x.numpy() == pattern(5, 200)[100:]).all()
    assert l0rt.memory.pointer_info(x.ptr)["kind"] == "device"
    y = l0rt.empty(100).copy_from(x)
    assert (y.numpy() == pattern(5, 200)[100:]).all()
    l0rt.memcpy(y, x.ptr + 50, 50)
    assert (y.numpy()[:50] == pattern(5, 200)[150:]).all()
    x.record_stream(acc.Stream())
    x.record_use()
    acc.synchronize()
    x.free()
    with pytest.raises(ValueError, match="freed"):
        x.fill(0)
    other.drop("x")


def test_an_allocation_is_opened_once_and_closed_with_the_last_buffer(other):
    first, second = (bytes.fromhex(other.export(name, 1000, 1)) for name in "ab")
    opened = [l0rt.Buffer.from_ipc_handle(handle) for handle in (first, second, first)]
    assert opened[0].ptr == opened[2].ptr != opened[1].ptr
    assert l0rt.ipc.imported_count() == 1
    part = opened[0][10:]
    del opened
    assert l0rt.ipc.imported_count() == 1
    assert (part.numpy() == pattern(1, 1000)[10:]).all()
    del part
    assert l0rt.ipc.imported_count() == 0
    other.drop("a"), other.drop("b")


def test_statistics_do_not_count_imported_memory(other):
    before = acc.memory.memory_stats()
    x = l0rt.Buffer.from_ipc_handle(bytes.fromhex(other.export("x", SIZE, 1)))
    assert acc.memory.memory_stats() == before
    del x
    other.drop("x")


def test_dlpack_lends_imported_memory(other):
    x = l0rt.Buffer.from_ipc_handle(bytes.fromhex(other.export("x", 1000, 3)))
    capsule = x.__dlpack__()
    with pytest.raises(BufferError):
        x.free()
    del x
    assert l0rt.ipc.imported_count() == 1
    del capsule
    assert l0rt.ipc.imported_count() == 0
    other.drop("x")


def test_an_empty_buffer_has_a_handle(other):
    for buffer in (l0rt.empty(0), l0rt.empty(100)[50:50]):
        other.open("x", buffer.ipc_handle().hex())
        assert other.wrong("x", 1, 0) == 0
        other.drop("x")


def test_the_own_process_gets_a_slice(pool):
    x = shareable(pool)
    y = l0rt.Buffer.from_ipc_handle(x[10:30].ipc_handle())
    assert (y.ptr, len(y)) == (x.ptr + 10, 20)
    handle = x.ipc_handle()
    del x
    assert (y.numpy() == pattern(1, 30)[10:]).all()
    assert len(l0rt.Buffer.from_ipc_handle(handle)) == SIZE
    del y
    with pytest.raises(ValueError, match="stale"):
        l0rt.Buffer.from_ipc_handle(handle)


@pytest.mark.needs_two_devices
def test_memory_comes_on_the_device_that_it_is_on(other, pool):
    x = shareable(pool, device=1)
    acc.synchronize(1)
    assert "xpu:1" in other.open("x", x.ipc_handle().hex())
    assert other.wrong("x", 1, SIZE) == 0
    other.drop("x")


# When memory is reused.


def test_memory_is_not_reused_while_another_process_uses_it(other):
    x = l0rt.Buffer.from_ipc_handle(bytes.fromhex(other.export("x", SIZE, 9)))
    other.free("x")
    other.scribble(SIZE)
    assert other.counts()["exported"] == 1
    assert (x.numpy() == pattern(9, SIZE)).all()
    del x
    assert other.counts()["exported"] == 0


def test_work_that_is_under_way_keeps_memory_from_being_reused(other, pool):
    x = shareable(pool, 8 << 20)
    acc.synchronize()
    other.open("x", x.ipc_handle().hex())
    assert other.busy("x", 20) == int(pattern(1, 8 << 20).astype("u8").sum())
    assert other.counts()["imported"] == 0


def test_a_stale_handle_is_refused(other):
    handle = bytes.fromhex(other.export("x", SIZE, 1))
    other.drop("x")
    with pytest.raises(ValueError, match="stale"):
        l0rt.Buffer.from_ipc_handle(handle)
    new = bytes.fromhex(other.export("y", SIZE, 2))     # the same memory, entry and allocation
    with pytest.raises(ValueError, match="stale"):
        l0rt.Buffer.from_ipc_handle(handle)
    assert (l0rt.Buffer.from_ipc_handle(new).numpy() == pattern(2, SIZE)).all()
    other.drop("y")
    assert l0rt.ipc.imported_count() == 0


def test_what_was_imported_outlives_its_process():
    with workers(1) as (worker,):
        handles_ = [bytes.fromhex(worker.export(str(i), SIZE, i)) for i in range(2)]
        x = l0rt.Buffer.from_ipc_handle(handles_[0])
        worker.kill()
        assert (x.numpy() == pattern(0, SIZE)).all()
        x.fill(3)
        assert (x.numpy() == 3).all()
        for handle in handles_:
            with pytest.raises(ValueError, match="has ended"):
                l0rt.Buffer.from_ipc_handle(handle)
        assert (x.numpy() == 3).all()
        del x
        assert l0rt.ipc.imported_count() == 0


def test_a_killed_importer_lets_go(pool):
    x = shareable(pool)
    acc.synchronize()
    with workers(1) as (worker,):
        worker.open("x", x.ipc_handle().hex())
        assert l0rt.ipc.exported_count() == 1
        x.free()
        assert l0rt.ipc.exported_count() == 1
        worker.kill()
        assert l0rt.ipc.exported_count() == 0


# What is refused.


def test_memory_that_cannot_be_shared_says_what_to_do(other):
    for kind in ("host", "shared"):
        with pytest.raises(l0rt.UnsupportedError, match=f"not {kind} memory"):
            l0rt.empty(10, kind=kind).ipc_handle()
    with pytest.raises(ValueError, match="needs memory of the device type"):
        l0rt.empty(10, device="cpu").ipc_handle()
    x = l0rt.Buffer.from_ipc_handle(bytes.fromhex(other.export("x", 10, 1)))
    for buffer in (x, x[2:]):
        with pytest.raises(l0rt.UnsupportedError, match="another process"):
            buffer.ipc_handle()
    x.free()
    with pytest.raises(ValueError, match="freed"):
        x.ipc_handle()
    other.drop("x")
    with pytest.raises(TypeError):
        l0rt.Buffer.ipc_handle(None)


def test_without_expandable_segments_any_memory_is_shared():
    with workers(2, {"L0RT_ALLOC_CONF": "expandable_segments:False"}) as (first, second):
        found = first.run("self.buffers['x'] = l0rt.empty(1000).fill(6); acc.synchronize()\n"
                          "found = self.buffers['x'].ipc_handle().hex()")
        second.open("x", found)
        assert second.run("found = int(self.buffers['x'].numpy().sum())") == 6000


def test_the_capability_can_be_switched_off():
    with workers(1, {"L0RT_DISABLE": "memory_ipc"}) as (worker,):
        refuses("UnsupportedError", "cannot share memory", worker.export, "x", 10, 1)


@pytest.mark.parametrize("what", [None, "text", 5, bytearray(188), memoryview(b"x")])
def test_a_handle_is_bytes(what):
    with pytest.raises(TypeError, match="must be bytes"):
        l0rt.Buffer.from_ipc_handle(what)


def test_a_damaged_handle_is_refused(other, extent):
    good = bytes.fromhex(other.export("x", SIZE, 1))
    bits = range(8 * len(good)) if extent(0, 1) else random.Random(1).sample(range(8 * len(good)), 100)
    for length in range(len(good)):
        with pytest.raises(ValueError, match="damaged|no handle|format"):
            l0rt.Buffer.from_ipc_handle(good[:length])
    for damaged in (b"", good + b"\0", b"\0" * len(good), b"l0rt-ipc\4" + good[9:]):
        with pytest.raises(ValueError, match="damaged|no handle|format"):
            l0rt.Buffer.from_ipc_handle(damaged)
    for bit in bits:
        damaged = bytearray(good)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ValueError, match="damaged|no handle|format"):
            l0rt.Buffer.from_ipc_handle(bytes(damaged))
    assert (l0rt.Buffer.from_ipc_handle(good).numpy() == pattern(1, SIZE)).all()
    other.drop("x")


def forged(good, **changes):
    """A handle with other values, whose checksum is right."""
    names = ("pid began file inode entry generation uuid id size block_offset block_size offset nbytes flags "
             "pool native").split()
    kind, *fields = handles.unpack(good)
    fields = dict(zip(names, fields, strict=True))
    return handles.pack(changes.pop("kind", kind), *{**fields, **changes}.values())


HUGE = (1 << 64) - 1
FORGERIES = [
    {"pid": 1}, {"pid": 0}, {"pid": HUGE}, {"began": 1}, {"file": 0}, {"file": 1 << 31}, {"file": 9999}, {"inode": 5},
    {"entry": 1 << 16}, {"entry": 77}, {"generation": 0}, {"generation": HUGE}, {"uuid": bytes(16)}, {"size": 1},
    {"size": 1 << 61}, {"size": HUGE}, {"block_offset": HUGE}, {"block_offset": 1 << 60, "size": 1 << 61},
    {"block_size": 1 << 20}, {"block_size": 999}, {"offset": 1}, {"offset": HUGE}, {"nbytes": 0}, {"nbytes": 1001},
    {"nbytes": HUGE}, {"flags": 2}, {"kind": 4}, {"kind": 0}, {"block_offset": 1 << 19},
    {"id": 12345, "native": bytes(64)}, {"id": 12345, "native": bytes(range(64))},
]  # fmt: skip


@pytest.mark.parametrize("changes", FORGERIES, ids=str)
def test_a_forged_handle_is_refused(changes, other):
    """Its checksum is right. While the same process's memory is open here, what was checked then is not looked at."""
    good = bytes.fromhex(other.export("x", 1000, 1))
    with pytest.raises((ValueError, l0rt.L0Error, PermissionError)):
        l0rt.Buffer.from_ipc_handle(forged(good, **changes))
    assert l0rt.ipc.imported_count() == 0
    kept = l0rt.Buffer.from_ipc_handle(good)
    with contextlib.suppress(ValueError, l0rt.L0Error, PermissionError):
        assert l0rt.Buffer.from_ipc_handle(forged(good, **changes)).ptr == kept.ptr
    assert (kept.numpy() == pattern(1, 1000)).all()
    del kept
    assert l0rt.ipc.imported_count() == 0
    other.drop("x")


def test_a_device_that_this_process_does_not_have_is_named():
    with workers(1) as (first,), workers(1, {"L0RT_CPU_DEVICES": "1"}) as (second,):
        handle = first.export("x", 10, 1, 1)
        refuses("InvalidArgumentError", "device that this process does not have", second.open, "x", handle)
        second.open("x", first.export("y", 10, 1, 0))


def test_a_kernel_that_keeps_processes_apart_is_named():
    """As nobody, and a process that must not be looked at: as across containers."""
    with workers(2) as (first, second):
        first.run(NOBODY + "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)")
        second.run(NOBODY + "ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)")
        handle = first.export("x", 10, 1)
        refuses("PermissionError", "--pid=host.*ptrace_scope", second.open, "x", handle)
        assert second.counts()["imported"] == 0


# Threads, forks, ends, faults.


def test_threads_import_one_handle_at_once(other, hasty):
    handle = bytes.fromhex(other.export("x", SIZE, 4))
    wrong = []

    def work():
        for _ in range(20):
            if not (l0rt.Buffer.from_ipc_handle(handle).numpy() == pattern(4, SIZE)).all():
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert l0rt.ipc.imported_count() == 0
    other.drop("x")


def test_threads_export_one_buffer_at_once(pool, hasty):
    x = shareable(pool)
    found = set()
    threads = [threading.Thread(target=lambda: found.update(x.ipc_handle() for _ in range(50))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 1
    assert l0rt.ipc.exported_count() == 1


def test_a_forked_child_leaves_the_parents_exports_and_imports_alone():
    with workers(2) as (first, second):
        second.open("x", first.export("x", SIZE, 1))
        for worker, shared in ((first, "exported"), (second, "imported")):
            status = worker.run(
                "import os\n"
                "pid = os.fork()\n"
                "if pid == 0:\n"
                "    self.buffers.clear()\n"
                "    os._exit(0)\n"
                "found = os.waitpid(pid, 0)[1]"
            )
            assert (status, worker.counts()[shared]) == (0, 1)
        assert second.wrong("x", 1, SIZE) == 0
        refuses("InvalidArgumentError", "stale", first.run, """
handle = self.buffers['x'].ipc_handle()
self.buffers.clear()
l0rt.Buffer.from_ipc_handle(handle)""")


def test_an_interpreter_ends_with_imports_and_exports_alive():
    with workers(2) as (first, second):
        second.open("x", first.export("x", SIZE, 1))
        second.run("import builtins; builtins.kept = self.buffers['x']; self.buffers['x'].fill(1)")
        second.end()
        first.run("import builtins; builtins.kept = self.buffers['x']")


@pytest.mark.parametrize("call", ["zeMemGetAddressRange", "zeMemGetAllocProperties", "zeMemGetIpcHandle"])
def test_an_export_that_fails_leaves_nothing(call):
    with workers(1, {"L0RT_CPU_FAIL": f"{call}:1:ERROR_OUT_OF_HOST_MEMORY"}) as (worker,):
        refuses("OutOfMemoryError", "HOST_MEMORY|DEVICE_MEMORY", worker.export, "x", 10, 1)
        worker.export("y", 10, 1)
        worker.run("self.buffers.clear()")
        assert worker.counts()["exported"] == 0


@pytest.mark.parametrize("call", ["zeMemOpenIpcHandle", "zeMemGetAddressRange", "zeMemGetAllocProperties"])
def test_an_import_that_fails_leaves_nothing(call, other):
    with workers(1, {"L0RT_CPU_FAIL": f"{call}:1:ERROR_OUT_OF_DEVICE_MEMORY"}) as (worker,):
        worker.run("l0rt.empty(10)")
        before = worker.counts()
        handle = other.export("x", 10, 1)
        refuses("OutOfMemoryError", "^(?!.*ptrace_scope).*(HOST_MEMORY|DEVICE_MEMORY)", worker.open, "x", handle)
        assert worker.counts() == before
        worker.open("x", handle)
        assert worker.wrong("x", 1, 10) == 0
        worker.drop("x")
        assert worker.counts() == before
        other.drop("x")


def test_a_driver_that_refuses_an_import_is_told_with_the_remedy(other):
    with workers(1, {"L0RT_CPU_FAIL": "zeMemOpenIpcHandle:1:ERROR_INVALID_ARGUMENT"}) as (worker,):
        refuses("InvalidArgumentError", "does not open.*--pid=host.*ptrace_scope", worker.open, "x",
                other.export("x", 10, 1))
        assert worker.counts()["imported"] == 0
        other.drop("x")


def test_an_import_that_the_driver_does_not_close_is_warned_of(other):
    with workers(1, {"L0RT_CPU_FAIL": "zeMemCloseIpcHandle:1:ERROR_UNKNOWN", "PYTHONWARNINGS": "error"}) as (worker,):
        handle = other.export("x", 10, 1)
        worker.open("x", handle)
        worker.drop("x")
        assert "zeMemCloseIpcHandle" in worker.complaints()
        worker.errors.truncate(0)
        worker.open("x", handle)
        assert worker.wrong("x", 1, 10) == 0
        other.drop("x")


# Chaos.


def test_processes_exchange_buffers_and_are_killed_at_random(extent):
    """Four processes; whatever one imports is right whatever becomes of the others, and nothing is left."""
    exchanges, turn = extent(100, 1000, 10000), random.Random(int(os.environ.get("L0RT_TEST_SEED", "1")))
    shm = set(os.listdir("/dev/shm"))
    running, made, held, started = [start() for _ in range(4)], {}, {}, 4
    done = names = 0
    deadly = 0.015 if exchanges < 1000 else 0.003     # a start takes as long as hundreds of exchanges
    while done < exchanges:
        giver, taker = turn.sample(range(4), 2)
        chance = 0.8 if len(held) > 40 else 0.9 if len(made) > 40 else turn.random()
        if chance < 0.35 or not made:
            names += 1
            nbytes = turn.choice((1, 1000, 5000, 70_000, 3 << 20)) + turn.randrange(512)
            first = turn.randrange(nbytes)
            handle = running[giver].export(f"e{names}", nbytes, names, turn.randrange(2), first)
            made[names] = (running[giver], nbytes, first, handle)
        elif chance < 0.75:
            name = turn.choice(list(made))
            owner, nbytes, first, handle = made[name]
            if owner is running[taker]:
                continue
            ended = owner.is_killed
            try:
                running[taker].open(f"i{name}", handle)
            except Failed as refused:
                if not ended or refused.kind != "InvalidArgumentError":
                    raise
                del made[name]
            else:
                assert not ended
                held[running[taker], name] = (nbytes - first, first)
                done += 1
        elif chance < 0.88 and held:
            (worker, name), (nbytes, first) = turn.choice(list(held.items()))
            assert worker.wrong(f"i{name}", name, nbytes, first) == 0
            if turn.random() < 0.7 or chance == 0.8:
                worker.drop(f"i{name}")
                del held[worker, name]
        elif chance < 1 - deadly:
            name = turn.choice(list(made))
            owner, *_ = made.pop(name)
            if not owner.is_killed:
                turn.choice((owner.drop, owner.free))(f"e{name}")
                owner.scribble(5000, 2)
        else:
            victim = running[giver]
            victim.kill()
            held = {key: value for key, value in held.items() if key[0] is not victim}
            running[giver] = start()
            started += 1
    for (worker, name), (nbytes, first) in held.items():
        assert worker.wrong(f"i{name}", name, nbytes, first) == 0
    for worker in running:
        worker.run("self.buffers.clear()")
    for worker in running:      # once more, as all have let go
        counts = worker.counts()
        assert (counts["exported"], counts["imported"], counts["usm"]) == (0, 0, worker.begun["usm"]), counts
        assert counts["files"] == worker.begun["files"]
        worker.end()
    assert started > 4
    assert set(os.listdir("/dev/shm")) <= shm


def start():
    worker = Worker()
    for device in range(2):
        worker.export("warm", 3 << 20, 1, device)
    worker.run("self.buffers.clear()")
    worker.begun = worker.counts()
    return worker
