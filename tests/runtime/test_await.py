# SPDX-License-Identifier: Apache-2.0
"""``await event`` and ``await stream``: the loop goes on, no thread waits, and a cancelled wait leaves nothing."""

import asyncio
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


def test_a_wait_can_be_cancelled_and_timed_out():
    class Never(l0rt.Event):
        def query(self):
            return False

    async def main():
        event = Never()
        task = asyncio.ensure_future(asyncio.wait_for(event, 0.05))
        with pytest.raises(asyncio.TimeoutError):
            await task
        task = asyncio.ensure_future(asyncio.wait_for(event, 60))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_an_error_of_the_wait_is_the_awaiters():
    class Broken(l0rt.Event):
        def query(self):
            raise l0rt.DeviceLostError("gone", None)

    async def main():
        with pytest.raises(l0rt.DeviceLostError, match="gone"):
            await Broken()

    asyncio.run(main())


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
