# SPDX-License-Identifier: Apache-2.0
"""An interprocess event is recorded again while streams still wait for its last record: no wait is disturbed."""

import json
import threading

import l0rt
import l0rt.accelerator as acc
import pytest

from helpers.event_programs import wrong_between
from helpers.ipc_worker import workers
from helpers.process import run_python
from helpers.rings import TESTS

pytestmark = pytest.mark.usefixtures("warm")
CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "2"}

SAME_STREAM = """
import l0rt, l0rt.accelerator as acc
s, other, x = acc.Stream(), acc.Stream(), l0rt.empty(16 << 20)
e = l0rt.Event(interprocess=True)
e.record(other)
e.synchronize()
for i in range(50):
    x.fill(i, non_blocking=True, stream=s)
    s.wait_event(e)
    e.record(s)
s.synchronize()
print(set(x.numpy().tolist()[:100]))
"""


def test_a_stream_that_waits_for_an_event_records_it_again():
    result = run_python(SAME_STREAM, CPU, timeout=60)
    assert (result.returncode, result.stdout) == (0, "{49}\n"), result


ALONE = f"""
import sys, json
sys.path.insert(0, {str(TESTS)!r})
from helpers.event_programs import wrong_alone
print(json.dumps(wrong_alone(range({{seeds}}), 60)))
"""


@pytest.mark.parametrize("chaos", ["", "5"])
def test_random_programs_of_streams_and_devices(chaos, extent):
    result = run_python(ALONE.format(seeds=extent(5, 200, 2000)), {**CPU, "L0RT_CPU_CHAOS": chaos}, timeout=600)
    assert (result.returncode, json.loads(result.stdout or "null")) == (0, []), result


@pytest.mark.shares_events
@pytest.mark.needs_two_devices
def test_random_programs_of_two_processes(extent):
    with workers(1) as (worker,):
        assert wrong_between(worker, range(extent(4, 100, 1000)), 40) == []


WAITING = """
x, e = l0rt.empty(64 << 20), l0rt.Event.from_ipc_handle(0, bytes.fromhex({handle!r}))
s = acc.Stream()
x.fill(1, non_blocking=True, stream=s)
s.wait_event(e)
self.kept = x, s
found = e.query()
"""


@pytest.mark.shares_events
def test_a_record_waits_for_streams_of_another_process_and_no_longer_than_that_lives():
    stream, event = acc.Stream(), l0rt.Event(interprocess=True)
    event.record(stream)
    event.synchronize()
    with workers(1, {"L0RT_CPU_FAIL": "zeCommandListAppendMemoryFill:1:hang"}) as (worker,):
        assert worker.run(WAITING.format(handle=event.ipc_handle().hex()))  # never comes past the event
        thread = threading.Thread(target=event.record, args=(stream,))
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        worker.kill()
        thread.join(60)
        assert not thread.is_alive()
    event.synchronize()
