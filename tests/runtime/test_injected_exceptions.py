# SPDX-License-Identifier: Apache-2.0
"""The exception of a signal handler arrives as it is, wherever it comes, and nothing hangs or is lost behind it."""

import asyncio
import os
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import l0rt.memory
import l0rt.profiler
import numpy as np
import pytest

from helpers.graph_programs import KERNELS
from helpers.injections import Injector, Interrupt, Loop, Stop, wrong_programs

CODE = KERNELS.read_bytes()


def module(code):
    def program():
        with l0rt.Module(code) as made:
            return sorted(made)

    return program


def launched():
    with l0rt.Module(CODE) as made:
        x, y = l0rt.pinned(64, "f4"), l0rt.empty(256)
        made["vector_add"][1, 64](y, x, x[::1], np.int32(64))
        acc.synchronize()


def profiled():
    with l0rt.profiler.profile(max_records=64) as profile:
        l0rt.empty(64).fill(1)
    return len(profile.events) > 0


def captured():
    graph, x = acc.Graph(), l0rt.empty(64)
    with acc.graph(graph):
        x.fill(1, non_blocking=True)
        l0rt.empty(64, kind="host").copy_from(x, non_blocking=True)
    graph.replay()
    acc.synchronize()
    graph.reset()
    return acc.is_current_stream_capturing()


def pooled():
    with l0rt.memory.use_mem_pool(l0rt.memory.MemPool()):
        return l0rt.empty(64).nbytes


def drawn():
    return l0rt.empty(64).uniform_(generator=l0rt.Generator().manual_seed(1), dtype="f4").numpy("f4").tolist()


def waited():
    streams = [acc.Stream() for _ in range(3)]
    events = [stream.record_event() for stream in streams]
    acc.wait_all(*events)
    return acc.wait_any(*streams) is not None


def shared():
    event = l0rt.Event(interprocess=True)
    for _ in range(2):
        event.record(acc.current_stream())
    event.synchronize()
    return event.query()


PROGRAMS = {
    "Module(path)": module(Path(KERNELS)), "Module(str)": module(os.fspath(KERNELS)), "Module(bytes)": module(CODE),
    "Module(array)": module(np.frombuffer(CODE, "u1")), "launch": launched, "profile": profiled, "graph": captured,
    "pool": pooled, "random": drawn, "waits": waited, "interprocess event": shared,
    "from_numpy": lambda: l0rt.from_numpy(np.arange(9)).numpy("i8").tolist(),
}  # fmt: skip


@pytest.mark.checks_data
@pytest.mark.filterwarnings("ignore:a profile was dropped:ResourceWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_exception_arrives_wherever_it_comes(name, extent):
    assert wrong_programs({name: PROGRAMS[name]}, extent(150, 5000)) == {}
    acc.synchronize()
    PROGRAMS[name]()  # lets go of what a profile has left that did not end


def awaited(injector):
    """Await work that is long and short, alone and at once, in a loop where an exception comes; then once more."""
    loop = Loop(injector)
    stream, x, arrived = acc.Stream(), l0rt.empty(4 << 20), []

    async def wait(count):
        for i in range(count):
            x.fill(i, non_blocking=True, stream=stream)
        event = stream.record_event()
        try:
            await (stream if count == 1 else event)
            assert event.query()
        except (Stop, Interrupt) as error:
            arrived.append(error)

    async def main():
        await wait(1)
        await asyncio.gather(wait(8), wait(1))

    def run(coroutine):
        task = loop.create_task(coroutine)
        loop.call_later(30, task.cancel)
        while not task.done():
            try:
                loop.run_until_complete(task)
            except (Stop, Interrupt) as error:
                arrived.append(error)
        assert not task.cancelled()
        task.result()

    try:
        run(main())
        run(wait(1))
        assert all(error is injector.raised for error in arrived)
    finally:
        loop.close()


@pytest.mark.checks_data
@pytest.mark.parametrize("kind", [Stop, Interrupt])
def test_an_await_ends_wherever_an_exception_comes(kind, extent):
    raised = 0
    for at in range(0, 800, extent(9, 1)):  # the device may be done before so many points
        injector = Injector(at, kind)
        awaited(injector)
        raised += injector.raised is not None
    assert raised > (5 if "XE_DEVICE" in os.environ else 20)  # a simulated GPU is done at once
