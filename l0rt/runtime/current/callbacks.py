# SPDX-License-Identifier: Apache-2.0
"""Host callbacks in stream order: one thread for each stream with callbacks, which ends after the last of them.

Nothing here waits for a lock: a signal handler or a finalizer may add callbacks in the midst of `add`.
"""

import threading
from collections import deque

from l0rt.runtime.lazy import DRAIN, exit_time_left, on_exit
from l0rt.runtime.streams.hooks import report_unraisable


class _Callbacks:
    """The callbacks of one stream, oldest first, and the right to run them, which one thread has at a time."""

    def __init__(self):
        self.waiting: deque = deque()
        self.turn = threading.Lock()
        self.thread = None  # which last had the turn


class _Callback:
    """A function with its arguments and the event that it waits for; equal to nothing but itself."""

    def __init__(self, event, function, args):
        self.event, self.function, self.args = event, function, args

    def run(self, timeout=None):
        try:
            if self.event.synchronize(timeout) is not False:
                self.function(*self.args)
        except BaseException as failure:
            report_unraisable(self.function, failure)


_streams: dict = {}  # stream -> _Callbacks; never removed, which would need a lock against a thread that adds


def add(stream, event, function, args):
    """Call ``function(*args)`` once ``event``, just recorded on ``stream``, is complete."""
    callbacks = _streams.get(stream) or _streams.setdefault(stream, _Callbacks())
    added = _Callback(event, function, args)
    callbacks.waiting.append(added)
    # Who has the turn looks for more after giving it up, so that nothing added meanwhile is forgotten.
    if not callbacks.turn.acquire(blocking=False):
        return
    begun = threading.Lock()
    try:
        threading.Thread(target=_run, args=(callbacks, begun), name="l0rt callbacks", daemon=True).start()
    except BaseException:
        if begun.acquire(blocking=False):  # the thread cannot be started, or a signal's exception came before it ran
            callbacks.turn.release()
            callbacks.waiting.remove(added)
        raise


def _run(callbacks, begun):
    """Take over the turn from who started this thread, unless it took the turn back."""
    if not begun.acquire(blocking=False):
        return
    callbacks.thread = threading.current_thread()
    while True:
        try:
            _run_waiting(callbacks)
        finally:
            callbacks.turn.release()
        if not callbacks.waiting or not callbacks.turn.acquire(blocking=False):
            return


def _run_waiting(callbacks):
    while callbacks.waiting:
        callbacks.waiting.popleft().run()  # no reference to it remains while the thread looks for the next


def _finish():
    """Let callbacks end while the interpreter exits; those whose thread could not be started run here."""
    try:
        for callbacks in list(_streams.values()):
            if not callbacks.turn.acquire(timeout=exit_time_left()):
                continue
            while callbacks.waiting and exit_time_left():
                callbacks.waiting.popleft().run(exit_time_left())
            callbacks.turn.release()
            if callbacks.thread is not None:
                callbacks.thread.join(exit_time_left())
    except KeyboardInterrupt:
        return  # an interrupt during exit means: do not wait


on_exit(DRAIN, _finish)
