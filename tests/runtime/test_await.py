# SPDX-License-Identifier: Apache-2.0
"""``await event`` and ``await stream``: the loop goes on, no thread waits, and a cancelled wait leaves nothing."""

import asyncio
import random
import threading

import l0rt
import l0rt.accelerator as acc
import pytest
from l0rt import xpu

pytestmark = pytest.mark.checks_data  # a driver that executes nothing ends no wait


def test_an_event_and_a_stream_are_awaited():
    async def main():
        s, x = acc.Stream(), l0rt.empty(1 << 20)
        x.fill(3, stream=s)
        event = s.record_event()
        assert await event is None
        assert event.query()
        x.fill(4, stream=s)
        assert await s is None
        assert s.query()
        await l0rt.Event()  # never recorded
        return x.numpy()

    assert (asyncio.run(main()) == 4).all()


def test_other_tasks_run_meanwhile_and_no_thread_begins():
    s, x = acc.Stream(), l0rt.empty(32 << 20)
    before = threading.active_count()

    async def work(i):
        x.fill(i, stream=s)
        await s

    async def main():
        ticks = 0
        tasks = [asyncio.ensure_future(work(i)) for i in range(50)]
        while not all(task.done() for task in tasks):
            ticks += 1
            assert threading.active_count() == before
            await asyncio.sleep(0)
        return ticks

    assert asyncio.run(main()) > 1


def test_waits_of_many_tasks_and_loops_with_some_cancelled():
    """Each wait that is not cancelled ends, and behind its own work."""

    def run(seed):
        chance = random.Random(seed)
        streams = [acc.Stream() for _ in range(3)]

        async def work(i):
            x = l0rt.empty(chance.choice([64, 1 << 16, 4 << 20]))
            stream, event = chance.choice(streams), l0rt.Event()
            x.fill(i % 256, stream=stream)
            event.record(stream)
            y = l0rt.empty(8 << 20).fill(0, stream=stream) if chance.random() < 0.3 else None
            if chance.random() < 0.5:
                await asyncio.sleep(chance.choice([0, 0.001]))
            waiting = asyncio.ensure_future(stream if chance.random() < 0.3 else event)
            if chance.random() < 0.3:
                await asyncio.sleep(0)
                event.record(streams[0])  # another record
            if chance.random() < 0.2:
                waiting.cancel()
                await asyncio.wait([waiting])
                return
            await (asyncio.wait_for(waiting, 60) if chance.random() < 0.3 else waiting)
            if not (x.numpy() == i % 256).all():
                wrong.append((seed, i))
            del y

        async def main():
            await asyncio.gather(*[work(i) for i in range(100)])
            await asyncio.gather(*[work(i) for i in range(100)])

        try:
            asyncio.run(main())
        except BaseException as e:
            wrong.append(e)

    wrong = []
    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    run(99)
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_is_current_is_the_threads_across_an_await_and_the_tasks_without_one():
    """As docs/streams.md says: blocks with an await inside end in the wrong order, and others never see each other."""
    default = acc.current_stream()

    async def holds(stream, entered, ends):
        with stream:
            entered.set()
            await ends.wait()

    async def main():
        streams = [acc.Stream() for _ in range(2)]
        entered, ends = [asyncio.Event() for _ in streams], [asyncio.Event() for _ in streams]
        tasks = []
        for i in range(2):
            tasks.append(asyncio.ensure_future(holds(streams[i], entered[i], ends[i])))
            await entered[i].wait()
            assert acc.current_stream() == streams[i]  # of this task, too
        for i in range(2):  # the first one ends first
            ends[i].set()
            await tasks[i]
            assert acc.current_stream() == (default, streams[0])[i]
        acc.set_stream(default)

        async def works(stream):
            for _ in range(50):
                with stream:
                    assert acc.current_stream() == stream
                    x = l0rt.empty(64).fill(1)
                assert acc.current_stream() == default
                await stream
            return x

        await asyncio.gather(*[works(stream) for stream in streams])

    asyncio.run(main())
    assert acc.current_stream() == default


def test_outside_of_a_loop_it_is_an_error():
    for what in (acc.Stream(), acc.current_stream().record_event()):
        waiting = what.__await__()
        with pytest.raises(RuntimeError, match="running event loop"):
            next(waiting)


def test_a_stream_that_is_captured_cannot_be_awaited():
    async def main():
        graph, stream, x = xpu.XPUGraph(), acc.Stream(), l0rt.empty(64)
        with stream:
            graph.capture_begin()
            x.fill(1)
            with pytest.raises(RuntimeError, match="await stream"):
                await stream
            graph.reset()

    asyncio.run(main())
