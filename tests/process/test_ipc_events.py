# SPDX-License-Identifier: Apache-2.0
"""Events between processes: what a handle is good for, and processes that end before an event is signalled."""

import os
import random
import struct
import threading

import l0rt
import l0rt.accelerator as acc
import pytest
from l0rt.runtime.streams import handle as handles

from helpers.ipc_worker import NOBODY, Failed, workers

pytestmark = [pytest.mark.checks_data, pytest.mark.shares_events, pytest.mark.usefixtures("warm")]
HANGS = {"L0RT_CPU_FAIL": "zeCommandListAppendMemoryFill:1:hang"}
RECORD = """
s, e, x = acc.Stream(), l0rt.Event(interprocess=True), l0rt.empty(64)
self.kept = s, e, x
e.record(s); e.synchronize()
found = e.ipc_handle().hex()
"""
HANG = RECORD + "x.fill(1, stream=s); e.record(s); found = e.ipc_handle().hex()\n"
ENDED = "process [0-9]+ ended before its event was signalled"


@pytest.fixture(autouse=True)
def told():
    """Streams that waited for an event of a killed process tell their next user: here, and in no other test."""
    yield
    for device in range(acc.device_count()):
        for _ in range(200):
            try:
                acc.synchronize(device)
            except l0rt.L0Error:
                continue
            break
    acc.synchronize()


@pytest.fixture
def other():
    with workers(1) as (worker,):
        yield worker


def imported(worker, code=RECORD, device=0):
    """Return the event that a worker has exported."""
    return l0rt.Event.from_ipc_handle(device, bytes.fromhex(worker.run(code)))


# Who waits for an event whose process was killed.


@pytest.fixture
def orphaned():
    """An event that was imported from a process that is killed while its device is still at work, and the killing."""
    with workers(1, HANGS) as (worker,):
        yield imported(worker, HANG), worker.kill


@pytest.mark.parametrize("policy", [None, "spin", "yield", "block"])
def test_a_wait_of_the_host_ends_when_the_process_of_the_event_is_killed(orphaned, policy):
    event, kill = orphaned
    assert not event.query()
    assert event.synchronize(0.05, policy=policy) is False
    killer = threading.Timer(0.1, kill)
    killer.start()
    with pytest.raises(l0rt.L0Error, match=ENDED):
        event.synchronize(policy=policy)
    killer.join()
    for ask in (event.query, event.synchronize, lambda: event.synchronize(1), lambda: acc.wait_all(event)):
        with pytest.raises(l0rt.L0Error, match=ENDED):
            ask()
    with pytest.raises(l0rt.L0Error, match=ENDED):
        acc.wait_any(event)


def test_a_loop_that_queries_ends(orphaned):
    event, kill = orphaned
    kill()
    with pytest.raises(l0rt.L0Error, match=ENDED):
        list(iter(event.query, True))


@pytest.mark.parametrize("wait", ["stream", "device", "event", "query", "copy"])
def test_a_stream_that_waits_goes_on_and_says_so_once(orphaned, wait):
    event, kill = orphaned
    first, second, third = acc.Stream(), acc.Stream(), acc.Stream()
    x, before, behind = l0rt.empty(100), l0rt.Event(), l0rt.Event()
    first.synchronize()
    before.record(first)
    first.wait_event(event)
    x.fill(7, stream=first)
    behind.record(first)
    second.wait_event(behind)           # through the first
    third.wait_event(before)            # in front of the wait
    before.synchronize()
    third.synchronize()
    kill()
    report = acc.stuck_report()
    assert "waits for an event of process" in report, report
    assert "has ended" in report, report
    attempts = {
        "stream": first.synchronize, "device": acc.synchronize, "event": behind.synchronize,
        "query": lambda: list(iter(first.query, True)), "copy": lambda: x.numpy(),
    }  # fmt: skip
    if wait == "copy":
        acc.current_stream().wait_stream(first)
    with pytest.raises(l0rt.L0Error, match=ENDED):
        attempts[wait]()
    with pytest.raises(l0rt.L0Error, match=ENDED):  # the device's wait tells of either stream first
        (acc if wait == "device" else second).synchronize()
    before.synchronize()
    third.synchronize()
    for stream in (first, second, third):           # each says so once
        for _ in range(2):
            try:
                stream.synchronize()
            except l0rt.L0Error:
                assert wait in ("device", "copy")
    acc.current_stream().synchronize()
    assert (x.numpy() == 7).all()
    assert acc.stuck_report() == ""


def test_a_signal_before_the_end_counts():
    with workers(1) as (worker,):
        event, s = imported(worker), acc.Stream()
        s.wait_event(event)
        worker.kill()
        assert event.query()
        event.synchronize()
        s.wait_event(event)
        s.synchronize()


def test_other_importers_are_told_too():
    """One of them has signalled the event in the place of its process."""
    with workers(1, HANGS) as (first,), workers(1) as (worker,):
        handle = first.run(HANG)
        event = l0rt.Event.from_ipc_handle(0, bytes.fromhex(handle))
        worker.run(f"self.event = l0rt.Event.from_ipc_handle(0, bytes.fromhex({handle!r}))\n"
                   "self.stream = acc.Stream(); self.stream.wait_event(self.event)")
        first.kill()
        with pytest.raises(l0rt.L0Error, match=ENDED):
            event.synchronize()
        for ask in ("event.synchronize", "event.query", "stream.synchronize"):
            with pytest.raises(Failed, match=ENDED):
                worker.run(f"self.{ask}()")
        worker.run("self.stream.synchronize()")


def test_a_process_that_becomes_another_program_has_ended():
    with workers(1, HANGS) as (worker,):
        event = imported(worker, HANG)
        worker.child.stdin.write('["run", ["import os; os.execv(\\"/bin/sleep\\", [\\"sleep\\", \\"60\\"])"]]\n')
        worker.child.stdin.flush()
        with pytest.raises(l0rt.L0Error, match=ENDED):
            event.synchronize()
        worker.kill()


def test_an_interpreter_ends_silently_whose_stream_waits_for_a_process_that_was_killed():
    with workers(1, HANGS) as (first,), workers(1) as (second,):
        handle = first.run(HANG)
        second.run(f"self.event = l0rt.Event.from_ipc_handle(0, bytes.fromhex({handle!r}))\n"
                   "self.stream = acc.Stream(); self.stream.wait_event(self.event)")
        first.kill()
        second.end()


def test_a_driver_that_cannot_signal_the_event_leaves_no_wait_without_an_end():
    refuses = {"L0RT_CPU_FAIL": "zeEventHostSignal:1:ERROR_UNSUPPORTED_FEATURE"}
    with workers(1, HANGS) as (first,), workers(1, refuses) as (second,):
        handle = first.run(HANG)
        second.run(f"self.event = l0rt.Event.from_ipc_handle(0, bytes.fromhex({handle!r}))\n"
                   "self.stream = acc.Stream(); self.stream.wait_event(self.event)")
        first.kill()
        for _ in range(3):
            with pytest.raises(Failed, match=ENDED):
                second.run("self.stream.synchronize()")
        second.kill()


def test_streams_wait_for_more_events_than_there_are_bits(other):
    """The host waits for those that are too many."""
    handle = other.run("""
self.s, self.x = acc.Stream(), l0rt.empty(64)
self.events = [l0rt.Event(interprocess=True) for _ in range(80)]
for e in self.events: e.record(self.s)
self.s.synchronize()
found = [e.ipc_handle().hex() for e in self.events]
""")
    events, s = [l0rt.Event.from_ipc_handle(None, bytes.fromhex(one)) for one in handle], acc.Stream()
    for event in events:
        s.wait_event(event)
    s.synchronize()
    del events


# What a handle is good for.


def test_a_handle_is_refused_when_its_event_or_its_process_is_gone(other):
    handle = bytes.fromhex(other.run(RECORD))
    assert l0rt.Event.from_ipc_handle(None, handle).query()
    other.run("del self.kept")
    with pytest.raises(ValueError, match="stale"):
        l0rt.Event.from_ipc_handle(0, handle)
    again = bytes.fromhex(other.run(RECORD))        # the same entry
    with pytest.raises(ValueError, match="stale"):
        l0rt.Event.from_ipc_handle(0, handle)
    assert l0rt.Event.from_ipc_handle(0, again).query()
    other.kill()
    with pytest.raises(ValueError, match="has ended"):
        l0rt.Event.from_ipc_handle(0, again)


def test_one_event_has_one_handle(other):
    more = "handles = {e.ipc_handle() for _ in range(9)}; e.record(s); found = len(handles | {e.ipc_handle()})"
    assert other.run(RECORD + more) == 1


@pytest.mark.needs_two_devices
def test_an_event_comes_on_the_device_that_it_was_recorded_on(other):
    code = RECORD.replace("acc.Stream()", "acc.Stream(1)").replace("l0rt.empty(64)", "l0rt.empty(64, device=1)")
    assert str(imported(other, code, None).device) == "xpu:1"
    assert str(imported(other, code, 0).device) == "xpu:0"
    with pytest.raises(IndexError):
        imported(other, code, 99)
    with workers(1, {"L0RT_CPU_DEVICES": "1"}) as (single,), pytest.raises(Failed, match="does not have, with UUID"):
        single.run(f"l0rt.Event.from_ipc_handle(0, bytes.fromhex({other.run(code)!r}))")


def test_a_kernel_that_keeps_processes_apart_is_named():
    with workers(2) as (first, second):
        handle = first.run(RECORD)
        first.run(NOBODY + "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)")
        second.run("l0rt.empty(1)")
        second.run(NOBODY + "ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)")
        with pytest.raises(Failed, match="--pid=host.*ptrace_scope") as refused:
            second.run(f"l0rt.Event.from_ipc_handle(0, bytes.fromhex({handle!r}))")
        assert refused.value.kind == "PermissionError"


KILL = """
import os, signal
def state():
    with open("/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]
calls = [lambda: l0rt.Event.from_ipc_handle(0, bytes.fromhex({event!r})),
         lambda: l0rt.Buffer.from_ipc_handle(bytes.fromhex({memory!r}))]
found = []
for call in calls if {known} else ():
    self.buffers[call] = call()
os.kill({pid}, signal.SIGKILL)
while state() != "Z":
    for call in calls:
        try:
            call()
        except (ValueError, PermissionError) as error:
            found.append(str(error))
"""


@pytest.mark.parametrize("known", [False, True], ids=["of_a_stranger", "of_whom_it_knows"])
def test_who_imports_while_a_process_is_being_killed_is_told_that_it_ended(known):
    """Its memory goes first, which takes a while; from then on the kernel shows its files to root alone."""
    user = NOBODY + "ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)\n"
    far = "self.files = [os.dup(0) for _ in range(9)]\n"       # no number of a file is good in the other one too
    slow = "import os; self.large = b'x' * (128 << 20); os.nice(10)"
    for _ in range(20):
        with workers(2) as (dying, other):
            dying.run(user + far)
            other.run(user)
            event, memory = dying.run(RECORD), dying.export("x", 10, 1)
            dying.run(slow)
            told = other.run(KILL.format(pid=dying.child.pid, event=event, memory=memory, known=known))
            other.run("self.buffers.clear()")
            dying.kill()
        if told:    # else it was all over before the other had its turn
            break
    assert told
    assert [text for text in told if "has ended" not in text] == []


def test_a_driver_that_refuses_is_told_with_the_remedy(other):
    for result, words in (("ERROR_INVALID_ARGUMENT", "does not open an event.*ptrace_scope"),
                          ("ERROR_OUT_OF_HOST_MEMORY", "^(?!.*ptrace_scope)")):
        with workers(1, {"L0RT_CPU_FAIL": f"zeEventPoolOpenIpcHandle:1:{result}"}) as (worker,):
            opens = f"e = l0rt.Event.from_ipc_handle(0, bytes.fromhex({other.run(RECORD)!r})); e.synchronize()"
            with pytest.raises(Failed, match=words):
                worker.run(opens)
            files = worker.counts()["files"]
            worker.run(opens)
            worker.run("import gc; gc.collect()")
            assert worker.counts()["files"] == files


def test_a_kernel_without_yama_is_told_as_the_reason(other):
    """Intel's driver then sends descriptors by a socket, which serves no event pools."""
    with workers(1, {"L0RT_CPU_FAIL": "zeEventPoolOpenIpcHandle:1:ERROR_INVALID_ARGUMENT"}) as (worker,):
        worker.run("from l0rt.runtime.streams import handle; handle.YAMA = '/none'")
        with pytest.raises(Failed, match="does not open an event.*Yama.*there is no /none.*--pid=host"):
            worker.run(f"l0rt.Event.from_ipc_handle(0, bytes.fromhex({other.run(RECORD)!r}))")


def test_a_damaged_or_forged_handle_is_refused(other):
    good = bytes.fromhex(other.run(RECORD))
    for length in range(len(good)):
        with pytest.raises(ValueError, match="damaged|no handle"):
            l0rt.Event.from_ipc_handle(0, good[:length])
    for bit in random.Random(1).sample(range(8 * len(good)), 200):
        damaged = bytearray(good)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ValueError, match="damaged|no handle|format"):
            l0rt.Event.from_ipc_handle(0, bytes(damaged))
    names = "pid began file inode entry generation uuid native".split()
    fields = dict(zip(names, handles.unpack_event(good), strict=True))
    huge = (1 << 64) - 1
    for changes in ({"pid": 1}, {"pid": 0}, {"pid": huge}, {"began": 5}, {"file": 0}, {"file": 1 << 31}, {"inode": 5},
                    {"entry": 1 << 16}, {"entry": 77}, {"generation": 0}, {"generation": huge}, {"uuid": bytes(16)},
                    {"native": bytes(64)}, {"native": bytes(range(64))}):  # fmt: skip
        with pytest.raises((ValueError, PermissionError)):
            l0rt.Event.from_ipc_handle(0, handles.pack(handles.EVENT, *{**fields, **changes}.values()))
    with pytest.raises(ValueError, match="handle of a Buffer, and one of an Event"):
        l0rt.Event.from_ipc_handle(0, l0rt.empty(0).ipc_handle())
    with pytest.raises(ValueError, match="handle of an Event, and one of a Buffer"):
        l0rt.Buffer.from_ipc_handle(good)
    with pytest.raises(ValueError, match="no handle"):
        l0rt.Event.from_ipc_handle(0, struct.pack("<q", 1) * 8)     # a driver's own
    assert l0rt.Event.from_ipc_handle(0, good).query()


def test_threads_import_and_drop_events_at_once(other, hasty):
    handle = bytes.fromhex(other.run(RECORD))
    before = len(os.listdir("/proc/self/fd"))
    wrong = []

    def work():
        s = acc.Stream()
        for i in range(30):
            event = l0rt.Event.from_ipc_handle(0, handle)
            if i % 3 == 0:
                s.wait_event(event)
            if not event.query():
                wrong.append(i)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    acc.synchronize()
    for _ in range(2):      # closes those that were in use
        l0rt.Event.from_ipc_handle(0, handle)
    assert not wrong
    assert len(os.listdir("/proc/self/fd")) <= before
