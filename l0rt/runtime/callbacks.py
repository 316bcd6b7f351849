"""Host callbacks in stream order: a thread for each stream that has any, gone when they are done."""

import threading
from collections import deque

from l0rt.runtime.lazy import DRAIN, on_exit
from l0rt.runtime.watch import tell_unraisable

_EXIT_WAIT = 5.0  # seconds in which callbacks may end while the interpreter exits
_lock = threading.Lock()
_waiting = {}  # stream -> its callbacks, oldest first; the key is there as long as its thread is
_threads = {}  # stream -> thread


def add(stream, event, function, args):
    """Call ``function(*args)`` once ``event``, just recorded on ``stream``, is complete."""
    with _lock:
        if stream in _waiting:
            _waiting[stream].append((event, function, args))
            return
        _waiting[stream] = deque([(event, function, args)])
        _threads[stream] = threading.Thread(target=_run, args=(stream,), name="l0rt callbacks", daemon=True)
        _threads[stream].start()


def _run(stream):
    while True:
        with _lock:
            if not _waiting[stream]:
                del _waiting[stream], _threads[stream]
                return
            event, function, args = _waiting[stream].popleft()
        try:
            event.synchronize()
            function(*args)
        except BaseException as failure:
            tell_unraisable(function, failure)
        del event, function, args  # kept by nobody while the thread waits for the next


def _finish():
    for thread in list(_threads.values()):
        thread.join(_EXIT_WAIT)


on_exit(DRAIN, _finish)
