# SPDX-License-Identifier: Apache-2.0
"""Waits for a whole device: queues that were made beside l0rt and never adopted are waited for, too."""

import pytest

from helpers.foreign import CODE
from helpers.process import run_python

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None, "L0RT_CPU_DEVICES": None}


def outcome(code, **env):
    result = run_python(CODE + code, {**CPU, **env})
    return result.returncode, result.stdout, result.stderr


# Whoever waits may be anywhere before or behind the signal: that the wait did not end before it is what counts.
WAITS = """
import threading
signalled, ended = [], []
def wait():
    {call}
    ended.append(bool(signalled))
foreign.hold()
waiter = threading.Thread(target=wait)
waiter.start()
assert acc.synchronize(timeout=0.05) is False
assert ended == []
signalled.append(True)
foreign.go()
waiter.join()
assert ended == [True]
assert acc.synchronize(timeout=60) is True
"""
CALLS = {
    "acc": "acc.synchronize()",
    "xpu": "l0rt.xpu.synchronize(0)",
    "interface": "l0rt.interface.get_interface_for_device('xpu').synchronize()",
}


@pytest.mark.parametrize("name", CALLS)
def test_foreign_queues_are_waited_for(name):
    assert outcome("import l0rt.interface, l0rt.xpu\n" + WAITS.format(call=CALLS[name])) == (0, "", "")


def test_what_the_driver_cannot_do_is_left_out():
    code = "foreign.hold()\nassert acc.synchronize(timeout=60) is True\nacc.synchronize()\nforeign.go()"
    assert outcome(code, L0RT_DISABLE="device_sync") == (0, "", "")
    assert outcome(code, L0RT_CPU_PROFILE="neo-22.43") == (0, "", "")


def test_waits_that_give_up_leave_one_thread_for_all():
    code = """
foreign.hold()
assert acc.synchronize(timeout=0.002) is False
before = threads()
for _ in range(20):
    assert acc.synchronize(timeout=0.002) is False
assert threads() == before
foreign.go()
assert acc.synchronize(timeout=60) is True
assert threads() == before
"""
    assert outcome(code) == (0, "", "")


def test_ctrl_c_ends_the_wait_and_the_next_one_works():
    code = """
import signal
foreign.hold()
signal.signal(signal.SIGALRM, signal.default_int_handler)
for _ in range(3):
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        acc.synchronize()
    except KeyboardInterrupt:
        print("interrupted")
foreign.go()
acc.synchronize()
"""
    assert outcome(code) == (0, "interrupted\n" * 3, "")


def test_many_threads_wait_at_once():
    code = """
import threading
foreign.hold()
done = []
waits = [threading.Thread(target=lambda: done.append(acc.synchronize(timeout=60))) for _ in range(8)]
for each in waits: each.start()
assert done == []
foreign.go()
for each in waits: each.join()
assert done == [True] * 8
"""
    assert outcome(code) == (0, "", "")


def test_work_given_during_an_earlier_wait_is_waited_for():
    """The helper is in the driver for the first gate when the second one is closed."""
    code = """
other = Foreign()
foreign.hold()
assert acc.synchronize(timeout=0.01) is False
other.hold()
foreign.go()
assert acc.synchronize(timeout=0.05) is False
other.go()
assert acc.synchronize(timeout=60) is True
"""
    assert outcome(code) == (0, "", "")


@pytest.mark.parametrize("held", [True, False])
def test_a_forked_child_and_the_exit_are_not_held_up(held):
    code = f"""
foreign.hold()
assert acc.synchronize(timeout=0.01) is False
if not {held}:
    foreign.go()
    acc.synchronize()
child = os.fork()
if child == 0:
    try:
        acc.synchronize()
    except RuntimeError as refused:
        os._exit(7 if "forked subprocess" in str(refused) else 1)
    os._exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert acc.synchronize(timeout=0.05) is (not {held})
print("leaves")
"""
    assert outcome(code) == (0, "leaves\n", "")


def test_a_driver_call_that_fails_is_told_and_a_lost_device_stays_lost():
    code = """
for wanted in ("ERROR_UNKNOWN", None, "ERROR_DEVICE_LOST", "ERROR_DEVICE_LOST"):
    try:
        acc.synchronize()
        told = None
    except l0rt.L0Error as error:
        told = error.code[0]
    assert told == wanted, (told, wanted)
"""
    fail = "zeDeviceSynchronize:1:ERROR_UNKNOWN,zeDeviceSynchronize:3:ERROR_DEVICE_LOST"
    assert outcome(code, L0RT_CPU_FAIL=fail) == (0, "", "")


def test_streams_that_are_l0rts_own_time_out_without_a_thread():
    code = """
x = l0rt.empty(64)
x.fill(1)                   # never ends
before = threads()
assert acc.synchronize(timeout=0.01) is False
assert threads() == before
os._exit(0)
"""
    assert outcome(code, L0RT_CPU_FAIL="zeCommandListAppendMemoryFill:1:hang") == (0, "", "")


def test_a_wait_without_time_finds_an_idle_device_idle():
    """And a busy one busy. Others may have the processors for a while, so most answers of some hundred are enough."""
    code = """
acc.synchronize()
assert any(sum(acc.synchronize(timeout=0) for _ in range(100)) > 50 for _ in range(20))
foreign.hold()
assert not any(acc.synchronize(timeout=0) for _ in range(100))
foreign.go()
assert acc.synchronize(timeout=60) is True
"""
    assert outcome(code) == (0, "", "")
