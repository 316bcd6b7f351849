# SPDX-License-Identifier: Apache-2.0
"""Stream callbacks added from where nobody expects it, threads that cannot start, and the interpreter's exit."""

import time

from helpers.process import run_python

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "2"}
QUIET = (0, "", "")


def outcome(code, env=CPU, timeout=120):
    result = run_python(code, env, timeout=timeout)
    return result.returncode, result.stdout, result.stderr


def test_a_callback_may_be_added_at_any_moment_of_adding_or_running_another():
    """A signal handler or a finalizer comes between any two byte codes: here it comes between each two, once."""
    code = """
import sys, threading
import l0rt.accelerator as acc
from l0rt.runtime.current import callbacks
s, ran, met = acc.Stream(), [], {}

def trace(frame, event, argument):      # Python traces nothing that a trace function does
    if frame.f_code.co_filename != callbacks.__file__:
        return None
    frame.f_trace_opcodes = True
    mine = [frame.f_code.co_name, frame.f_lasti]
    if event == "opcode" and met.setdefault(tuple(mine), mine) is mine:
        s.add_callback(ran.append, tuple(mine))
    return trace

def settle():
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join()

threading.settrace(trace)
sys.settrace(trace)
added, before = 0, -1
while len(met) > before:
    before = len(met)
    for _ in range(20):
        s.add_callback(ran.append, None)
        added += 1
    settle()
sys.settrace(None)
threading.settrace(None)
settle()
assert sorted(place for place in ran if place) == sorted(met), (ran, met)
assert len(ran) == added + len(met)
assert {name for name, _ in met} >= {"add", "_run", "_run_waiting", "run"}, met
"""
    assert outcome(code) == QUIET


def test_callbacks_run_again_after_a_thread_that_could_not_start():
    code = """
import threading
import l0rt.accelerator as acc
s, ran, told = acc.Stream(), [], 0
s.synchronize()
threading.stack_size(1 << 46)   # no process has so much: the system refuses the thread
for _ in range(3):
    try:
        s.add_callback(ran.append, "never")
    except RuntimeError as error:
        told += 1
threading.stack_size(0)
done = threading.Event()
s.add_callback(ran.append, "then")
s.add_callback(done.set)
assert done.wait(60)
assert (told, ran) == (3, ["then"]), (told, ran)
threading.stack_size(1 << 46)
try:
    s.add_callback(ran.append, "never")
except RuntimeError:
    print("told")
"""
    assert outcome(code) == (0, "told\n", "")


def test_callbacks_that_wait_for_a_thread_that_cannot_start_run_at_exit():
    """One was accepted while another started the thread in vain."""
    code = """
import threading
import l0rt.accelerator as acc
from l0rt.runtime.current import callbacks
s = acc.Stream()
class Refused(threading.Thread):
    def start(self):
        s.add_callback(print, "accepted meanwhile")
        raise RuntimeError("can't start new thread")
threading.Thread, kept = Refused, threading.Thread
try:
    s.add_callback(print, "refused")
except RuntimeError:
    print("told")
threading.Thread = kept
"""
    assert outcome(code) == (0, "told\naccepted meanwhile\n", "")


def test_exit_waits_five_seconds_for_all_callbacks_together():
    code = """
import threading, time
import l0rt.accelerator as acc
begun = threading.Barrier(5)
def long():
    begun.wait()
    time.sleep(3600)
for _ in range(4):
    acc.Stream().add_callback(long)
begun.wait()
print("leaving", flush=True)
"""
    started = time.monotonic()
    assert outcome(code) == (0, "leaving\n", "")
    # One budget is 5 seconds, four are 20; a loaded machine may take its time to start the process.
    assert 5 <= time.monotonic() - started < 15


def test_an_interrupted_exit_ends_at_once_and_silently():
    code = """
import os, signal, threading, time
import l0rt.accelerator as acc
signal.signal(signal.SIGINT, signal.default_int_handler)
begun = threading.Event()
def long():
    begun.set()
    time.sleep(3600)
acc.Stream().add_callback(long)
begun.wait()
import atexit
@atexit.register    # runs before l0rt's own hook
def _():
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
"""
    assert outcome(code) == QUIET
