# SPDX-License-Identifier: Apache-2.0
"""One injected fault in a process of its own: what l0rt makes of it, whether anything leaks, whether work goes on.

A fork server, so that a case costs no start of Python: reads a line of JSON a case, ``{"rule": L0RT_CPU_FAIL,
"disable": L0RT_DISABLE}``, forks before l0rt has initialised anything, and answers with a line. A case may also have a
``"profile"``, ``"work"``: which functions are called, and ``"rounds"``: how often.
"""

import ctypes
import gc
import json
import os
import sys
import traceback
import warnings
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np
from l0rt.bench import loops
from l0rt.core import cmdlist, device, driver, memory  # noqa: F401

from helpers import ledger

KERNELS = Path(__file__).parents[1] / "kernels/basic.spv"
EVENTS = 70  # more than one of the caches' steps
ROUNDS = 4  # more than a fault needs that comes with the third call of something that each round does once


def properties():
    for index in range(acc.device_count()):
        acc.get_device_capability(index)
        l0rt.xpu.get_device_properties(index)
        l0rt.xpu.can_device_access_peer(index, 0)


def blocks():
    for index in range(acc.device_count()):
        block, small = l0rt.empty(3 << 20, device=index), l0rt.empty(100, device=index)
        block.fill(7)
        block.copy_from(bytes(3 << 20))
        small.fill(1)
        del block, small
        acc.get_memory_info(index)
    for kind in ("host", "shared"):
        l0rt.empty(4096, kind=kind).free()
    shared = l0rt.empty(4096, kind="shared")
    l0rt.prefetch(shared)
    l0rt.advise(shared, "read_mostly")
    del shared
    pinned = l0rt.empty(4096, kind="host")
    l0rt.empty(4096).copy_from(np.frombuffer(pinned, np.uint8))
    del pinned
    acc.synchronize()
    acc.empty_cache()
    acc.empty_host_cache()


def images():
    with l0rt.Image((4, 5)) as image, l0rt.Sampler("border"):
        texels = np.zeros((4, 5, 4), "u1")
        image.copy_from(texels)
        image.copy_to(texels)


def streams():
    s, t = acc.Stream(), acc.Stream(priority=-1)
    x = l0rt.empty(1 << 16)
    x.fill(0, stream=s)
    t.wait_stream(s)
    x.fill(1, stream=t)
    x.record_stream(s)
    x.record_use(t)
    s.query()
    t.synchronize()
    x.free(stream=t)


def events():
    s = acc.Stream()
    first, last = l0rt.Event(enable_timing=True), l0rt.Event(enable_timing=True)
    many = [l0rt.Event() for _ in range(EVENTS)]
    first.record(s)
    for event in many:
        event.record(s)
    last.record(s)
    acc.current_stream().wait_event(last)
    last.query()
    last.synchronize()
    first.elapsed_time(last)
    s.synchronize()


def copies_between_devices():
    a, b = l0rt.empty(1 << 20, device=0), l0rt.empty(1 << 20, device=1)
    a.fill(5)
    b.copy_from(a)
    acc.synchronize(1)


def launches():
    with l0rt.Module(KERNELS) as module, l0rt.Module(module.native_binary()) as native:
        assert module.kernels == native.kernels
        x = l0rt.empty(4096)
        module["store"].launch(x, 1, global_size=64)
        module["store"].launch(x, 1, groups=1, group_size=8, cooperative=True)
        native["store"][1, 64](x, np.int32(1))
        native["store"].launch(x, np.int32(1), global_size=64, global_offset=8)
        assert module["store"].max_cooperative_groups(8) >= 1
        acc.synchronize()


def copies_of_rows():
    x, y, host = l0rt.empty(1 << 16), l0rt.empty(1 << 16), bytearray(1 << 16)
    l0rt.memcpy2d(x[8:], 300, y, 200, 99, 100)
    l0rt.memcpy2d(x, 300, host, 200, 99, 100)
    l0rt.memcpy2d(host, 300, y, 200, 99, 100)
    l0rt.memcpy(x.ptr, y, 100)
    l0rt.memset(x, 1, 100)
    acc.synchronize()


def staged_copies():
    """Through chunks of several sizes, whose copies signal; what returns has the data. Not in WORK."""
    nbytes, rows = 5 << 20, 300
    data, out, one = np.random.default_rng(1).integers(0, 256, nbytes, "u1"), np.zeros(nbytes, "u1"), bytearray(4)
    x, pinned = l0rt.empty(nbytes), l0rt.empty(1 << 20, kind="host")
    x.copy_from(data)
    x.copy_to(out)
    assert np.array_equal(out, data)
    x[3:7].copy_to(one)
    assert bytes(one) == data[3:7].tobytes()
    x[: 1 << 20].copy_to(pinned)
    assert bytes(pinned) == data[: 1 << 20].tobytes()
    out[:] = 0
    l0rt.memcpy2d(out, 8192, x, 4096, 4000, rows)
    taken = np.lib.stride_tricks.as_strided(data, (rows, 4000), (4096, 1))
    assert np.array_equal(out[: rows * 8192].reshape(rows, 8192)[:, :4000], taken)
    l0rt.memcpy2d(x, 4096, data, 8192, 4000, rows)
    x.copy_to(out)
    assert np.array_equal(
        out[: rows * 4096].reshape(rows, 4096)[:, :4000], data[: rows * 8192].reshape(rows, 8192)[:, :4000]
    )


def last_uses():
    """Of memory that is dropped while another stream uses it: a mark is put behind each use. Not in WORK."""
    s = acc.Stream()
    for _ in range(3):
        x = l0rt.empty(4096)
        x.fill(1, stream=s)
        x.record_stream(s)
        del x


def calls():
    """Return how often each function was called that a rule names, and how many faults have happened."""
    loaded = ledger.library()
    loaded.l0rt_cpu_calls.restype = loaded.l0rt_cpu_faults.restype = ctypes.c_uint64
    named = {rule.partition(":")[0] for rule in os.environ["L0RT_CPU_FAIL"].split(",")} - {""}
    return {**{name: loaded.l0rt_cpu_calls(name.encode()) for name in named}, "faults": loaded.l0rt_cpu_faults()}


# Long: a program, whose every call may fail.
def sleeping():
    """Pools of two devices that sleep with a backup, each step until it succeeds; what is true after each attempt,
    failed or not, is asserted at once. Returns what was called until each step began, and at the end. Not in WORK."""
    ledger.settle()
    before, kept = ledger.counted()["physical"] if ledger.library() else 0, []
    function = os.environ["L0RT_CPU_FAIL"].partition(":")[0]
    pool, raised, counted = l0rt.memory.MemPool(), None, []

    def is_awake():
        assert [buffer.ptr for buffer in kept] == addresses
        for value, buffer in enumerate(kept, 1):
            assert bytes(buffer.numpy()) == bytes([value]) * buffer.nbytes

    def is_asleep():
        assert [buffer.ptr for buffer in kept] == addresses
        reserved, left = sum(acc.memory_reserved(i) for i in range(2)), ledger.counted()["physical"] - before
        if function == "zeVirtualMemUnmap":  # what stays mapped is told, and the next sleep takes it
            assert (left, reserved > 0) in ((0, False), (1, True))
            pool.sleep("host")
            reserved, left = sum(acc.memory_reserved(i) for i in range(2)), ledger.counted()["physical"] - before
        assert reserved == 0
        assert 0 <= left <= (function == "zePhysicalMemDestroy")  # that one is given up, with a warning
        refused = None
        try:
            kept[0].fill(9)
        except RuntimeError as error:
            refused = error
            if isinstance(error, l0rt.DeviceLostError):
                raise
        assert "asleep" in str(refused)

    def others_are_right():
        """A lost device touches memory no more, but of a rule alone the driver's goes on with what it has: it is waited
        for past l0rt. Then what the other devices have is as it was, unless the pool sleeps."""
        for index in range(2):
            ledger.library().zeDeviceSynchronize(ctypes.c_void_p(l0rt.xpu.native_device(index)))
        for value, buffer in enumerate(kept, 1):
            try:
                assert bytes(buffer.numpy()) == bytes([value]) * buffer.nbytes
            except RuntimeError as error:
                if not isinstance(error, l0rt.DeviceLostError) and "asleep" not in str(error):
                    raise

    with l0rt.memory.use_mem_pool(pool):
        kept += [l0rt.empty(nbytes, device=i) for nbytes in (3 << 20, 5000) for i in range(2)]
    addresses = [buffer.ptr for buffer in kept]
    for value, buffer in enumerate(kept, 1):
        buffer.fill(value)
    for i in range(2):
        acc.synchronize(i)
    assert ledger.counted()["physical"] > before
    for step, failed, done in ((lambda: pool.sleep("host"), is_awake, is_asleep), (pool.wake, is_asleep, is_awake)):
        counted.append(calls())
        for _ in range(3):
            try:
                step()
            except l0rt.DeviceLostError as error:
                error.counted = [*counted, calls()]
                others_are_right()
                raise
            except l0rt.L0Error as error:
                raised = error
                failed()
            else:
                done()
                break
    counted.append(calls())
    if raised is not None:
        raised.counted = counted
        raise raised
    return counted


def graphs():
    """Two branches, captured and replayed."""
    x, y, side = l0rt.empty(4096).fill(0), l0rt.empty(4096), acc.Stream()
    acc.synchronize()
    graph = acc.Graph()
    with acc.graph(graph):
        stream = acc.current_stream()
        x.fill(1, stream=stream)
        side.wait_stream(stream)
        y.fill(2, stream=side)
        l0rt.empty(4096).copy_from(x, stream=stream)
        stream.wait_stream(side)
        x.copy_from(y, stream=stream)
    graph.replay()
    graph.replay()
    acc.synchronize()
    assert bytes(x.numpy()) == b"\2" * 4096
    graph.reset()


def changed_graphs():
    """A graph whose nodes are changed, in the list that has them and in others."""
    x = l0rt.empty(4096).fill(0)
    acc.synchronize()
    with l0rt.Module(KERNELS) as module:
        graph = acc.Graph()
        try:
            with acc.graph(graph):
                module["store"][1, 64](x, 1)
                x.fill(1, stream=acc.current_stream())
            store, fill = graph.nodes
            for value in range(2, 5):
                store.update(args={1: value})
                graph.replay()
                acc.synchronize()
                fill.update(value=value)
                graph.replay()
                acc.synchronize()
            assert bytes(x.numpy()) == b"\4" * 4096
        finally:
            graph.reset()


def plain_calls():
    found = driver.open_drivers()[0]
    first = device.open_devices(found)[0]
    made = driver.make_context(found)
    held = memory.host_allocation(made, 4096)
    commands, events = loops.open_list(made, first), loops.open_events(made, 4)
    _ = found.version
    loops.raw_event_create_destroy(made, first, 2)
    loops.raw_signal(commands, events, 4)
    loops.raw_wait_on(commands, events, 2)
    for owner in (events, commands, held, made):
        owner.close()


WORK = (
    properties,
    blocks,
    streams,
    events,
    copies_between_devices,
    copies_of_rows,
    images,
    launches,
    graphs,
    changed_graphs,
    plain_calls,
)


def attempt(work, returned):
    """Do all the work; what is raised ends only the part that raised it. What the parts return is appended."""
    raised = []
    for part in work:
        try:
            returned.append(part())
        except Exception as error:
            returned.append(getattr(error, "counted", None))
            tree = [c.__name__ for c in type(error).__mro__]
            raised.append(
                {
                    "part": part.__name__,
                    "tree": tree,
                    "code": getattr(error, "code", None),
                    "text": str(error) or traceback.extract_tb(error.__traceback__)[-1].line,
                }
            )
    gc.collect()
    return raised


def outcome(rule, disable, profile=None, work=None, rounds=ROUNDS):
    """Work with the fault, then more often; say what was raised, returned and warned of, and what is alive."""
    os.environ["L0RT_CPU_FAIL"], os.environ["L0RT_DISABLE"] = rule, disable
    if profile is not None:
        os.environ["L0RT_CPU_PROFILE"] = profile
    returned = []
    parts = WORK if work is None else [globals()[name] for name in work]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        found = [attempt(parts, returned) for _ in range(rounds)]
        loaded = ledger.library()
        loaded.l0rt_cpu_faults.restype = ctypes.c_uint64
        happened = loaded.l0rt_cpu_faults()
        try:
            live = ledger.live()
        except l0rt.DeviceLostError:
            live = None  # nothing can be given back any more
    texts = [str(w.message) for w in warned if issubclass(w.category, ResourceWarning)]
    return {"happened": happened, "rounds": found, "returned": returned, "warned": texts, "live": live}


def serve():
    gc.freeze()  # to look at every module again would take a case longer than its work
    for line in sys.stdin:
        here, there = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(here)
            os.write(there, json.dumps(outcome(**json.loads(line))).encode())
            os._exit(0)
        os.close(there)
        with os.fdopen(here, "rb") as answer:
            said = answer.read()
        _, status = os.waitpid(child, 0)
        print(json.dumps({**(json.loads(said) if said else {}), "status": status}), flush=True)


if __name__ == "__main__":
    serve()
