# SPDX-License-Identifier: Apache-2.0
"""Waits of coroutines: ``await event`` and ``await stream`` are futures of the event loop. The loop looks, and no
thread waits."""

import sys
import threading
import weakref

cimport cython
from libc.stdint cimport uint64_t

from l0rt.runtime.streams.capture cimport capture_refuse_slot
from l0rt.runtime.streams.event_pool cimport slot_release, slot_retain
from l0rt.runtime.streams.hooks cimport EVENT_SYNCHRONIZATION, call_hooks, hooked
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport check_device, slot_query

# A short wait is looked at whenever the loop comes round, which other tasks use meanwhile. Long ones share one timer:
# the loop's clock has steps of a millisecond.
EAGER = 64
LONGEST = 0.004  # seconds
SLICE = 0.05  # seconds after which the device of a long wait is asked whether it still works
OVERDUE = 0.02  # seconds after which a look that did not come is called again

_of_thread = threading.local()


@cython.binding(False)
cdef class Record:
    """What a coroutine waits for: one record of an event, whatever is recorded later."""
    cdef l0rt_slot* slot

    def is_complete(self):
        cdef bint complete
        if self.slot == NULL:
            return True
        if self.slot.event == NULL and not l0rt_load_int(&self.slot.complete):
            capture_refuse_slot(self.slot, b"await event")
        complete = slot_query(self.slot) == 1
        if hooked and complete:
            call_hooks(EVENT_SYNCHRONIZATION, <uint64_t>self.slot, 0, 0, 0)
        return complete

    def check(self):
        """Raise if the device was lost, which an event that never completes does not tell."""
        with nogil:
            check_device(self.slot.device)

    def __dealloc__(self):
        slot_release(self.slot)


class Waits:
    """The waits of one event loop: pairs of what is waited for and of its future.

    Two looks take turns of their own, and each begins the other one again where that is overdue: an exception of a
    signal handler may come between the loop's taking a call and the call, which is lost then.
    """

    def __init__(self, loop):
        self.loop = loop
        self.new = []
        self.long = []
        self.turns = 0
        self.pause = 0.0
        self.checked = 0.0
        self.due = {look: 0.0 for look in (self.look_at_new, self.look_at_long)}  # when it comes; 0: it does not
        self.calls = dict.fromkeys(self.due)

    def add(self, record, future):
        self.new.append((record, future))
        self.turns = 0
        if self.due[self.look_at_new] > self.loop.time() or self.is_overdue(self.look_at_new):
            self.call(self.look_at_new, 0)
        if self.is_overdue(self.look_at_long):
            self.checked, self.pause = self.loop.time(), 0.0
            self.call(self.look_at_long, LONGEST)

    def is_overdue(self, look):
        return self.loop.time() - self.due[look] > OVERDUE

    def call(self, look, pause):
        """Let the loop call it, once."""
        if self.calls[look] is not None:
            self.calls[look].cancel()
        self.due[look] = 0.0
        self.calls[look] = self.loop.call_later(pause, look) if pause else self.loop.call_soon(look)
        self.due[look] = self.loop.time() + pause

    def next_calls(self, look, pause, other):
        """Call it again, if there is something to wait for, and see to the other one."""
        self.due[look] = 0.0
        if self.new or self.long:
            self.call(look, pause)
            if self.is_overdue(other):
                self.call(other, LONGEST)

    def look_at_new(self):
        self.turns += 1
        if self.turns >= EAGER and self.new:
            self.long += self.new
            self.new = []
        self.next_calls(self.look_at_new, 0 if self.new else OVERDUE, self.look_at_long)
        end_complete(self.new, False)

    def look_at_long(self):
        self.pause = min(self.pause + 0.0005, LONGEST) if self.long else LONGEST
        self.next_calls(self.look_at_long, self.pause, self.look_at_new)
        now = self.loop.time()
        is_time = now - self.checked >= SLICE
        if is_time:
            self.checked = now
        end_complete(self.long, is_time)


def end_complete(waits, check):
    """End the futures of what is complete; leave the others in the list. With ``check``, ask the devices too."""
    i = 0
    while i < len(waits):
        record, future = waits[i]
        if not future.done():  # cancelled
            try:
                if check:
                    record.check()
                if not record.is_complete():
                    i += 1
                    continue
            except Exception as e:
                future.set_exception(e)
            else:
                future.set_result(None)
        waits[i] = waits[-1]
        waits.pop()


async def _complete(record):
    asyncio = sys.modules.get("asyncio")  # expensive to import, and its users have done so
    if asyncio is None:
        raise RuntimeError("no running event loop: await works under asyncio")
    loop = asyncio.get_running_loop()
    if record.is_complete():
        return
    waits = _of_thread.waits() if hasattr(_of_thread, "waits") else None
    if waits is None or waits.loop is not loop:
        waits = Waits(loop)
        _of_thread.waits = weakref.ref(waits)  # the loop has it while it waits; what a closed loop waited for is free
    future = loop.create_future()
    waits.add(record, future)
    await future


cdef object await_slot(l0rt_slot* slot):
    """The iterator of a wait for an event's record."""
    cdef Record record = Record.__new__(Record)
    if slot != NULL:
        slot_retain(slot)
        record.slot = slot
    return _complete(record).__await__()
