# SPDX-License-Identifier: Apache-2.0
"""A graph as the driver has it: closed command lists, one a segment, which queues of its own execute.

Replays of one graph run one after another, and are issued without a wait in between.

A node that is changed makes the list of its segment stale. The next replay has it renewed: a list that no replay under
way uses gets the changes, or is recorded anew; without one, another is made. With ``VERSIONS`` lists of one segment in
replays under way, it waits for the first of them.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport UINT64_MAX, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from l0rt.core.cmdlist cimport list_reset_event, list_wait
from l0rt.core.queue cimport CommandQueue, has_queues, queue_execute, queue_is_idle
from l0rt.factory cimport made_by
from l0rt.graphs.recording cimport Recording
from l0rt.graphs.segment cimport Plan, Segment, Version
from l0rt.runtime.streams.capture cimport (
    NODE_KERNEL,
    capture_refuse,
    captures,
    replayed_add,
    replayed_failure,
    replayed_remove,
)
from l0rt.runtime.streams.devices cimport core_context, core_device
from l0rt.runtime.streams.event_pool cimport slot_release
from l0rt.runtime.streams.hooks cimport GRAPH_REPLAY
from l0rt.runtime.streams.order cimport allow_maps, before, hold_off_maps, number, signal_behind
from l0rt.runtime.streams.queue cimport issued_end_event, lock, progress, unlock, wait_untold
from l0rt.runtime.streams.timeline cimport begin_command, end_command, l0rt_command
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport device_fails, slot_query, slot_wait, stream_fails
from l0rt.ze cimport table
from l0rt.ze.api cimport ZE_RESULT_SUCCESS, ze_command_list_handle_t, ze_command_queue_handle_t, ze_result_t

from l0rt.errors import KernelFaultError, UnsupportedError
from l0rt.runtime.lazy import LISTS, on_exit

cdef enum:
    SLICE = 100_000_000     # ns of a wait between two looks for signals

_there = set()      # every Executable that has something of the driver's


@cython.final
@cython.binding(False)
cdef class Executable:
    """Made by ``Executable.build()``."""

    @staticmethod
    cdef Executable build(Recording recording):
        cdef Executable made = Executable.__new__(Executable)
        cdef Segment segment
        if not has_queues():
            raise UnsupportedError("this driver cannot execute command lists (zeCommandQueueExecuteCommandLists)")
        made.recording = recording
        made.device = recording.capture.branches[0].device
        made.queues, made.stale = [None] * recording.capture.branch_count, []
        _there.add(made)
        try:
            made.plan = Plan.make(recording)
            made.lists = <ze_command_list_handle_t*>calloc(len(made.plan.segments), sizeof(void*))
            made.queue_of = <ze_command_queue_handle_t*>calloc(len(made.plan.segments), sizeof(void*))
            if made.lists == NULL or made.queue_of == NULL:
                raise MemoryError()
            for segment in made.plan.segments:
                add_list(made, segment)
            made.told.queues, made.told.count = made.queue_of, made.count
            made.may_fail = made.device.is_software and launches(recording)
            recording.take_news()
        except BaseException:
            made.close()
            raise
        return made

    cdef int replay(self, l0rt_stream* stream) except -1:
        if captures(stream):
            capture_refuse(stream, b"Graph.replay()")
        if stream.device != self.device:
            raise ValueError(f"the graph is of device {self.device.index}, the stream of device {stream.device.index}")
        with self.recording.turn:
            if self.is_broken:
                raise RuntimeError("the driver refused a part of an earlier replay: the graph can only be reset")
            renew(self)
            with nogil:
                follow(self, stream)
            self.recording.advance(stream)
            with nogil:
                issue(self, stream)
            self.replays += 1
        return 0

    cdef bint is_idle(self) except -1:
        if self.last == NULL or not table.alive or l0rt_load_int(&self.device.lost):
            return True
        if l0rt_load64(&self.last.done) < self.last_seq:
            with nogil:
                progress(self.last)
                progress(self.last)     # the first may only have put its mark
        return l0rt_load64(&self.last.done) >= self.last_seq and self.are_queues_idle(0)

    cdef bint are_queues_idle(self, uint64_t timeout_ns) noexcept:
        """Whether the queues have done a replay of which the driver refused a part: no stream waits for its end."""
        cdef uint32_t i
        if self.is_broken:
            with nogil:
                for i in range(self.count):
                    if not queue_is_idle(self.queue_of[i], timeout_ns):
                        return False
        return True

    cdef object rest(self):
        cdef l0rt_slot* slot
        cdef ze_result_t r
        failure = None
        try:
            if not self.is_idle():
                with nogil:
                    slot = issued_end_event(self.last)
                    try:
                        slot_wait(slot, UINT64_MAX)
                    finally:
                        slot_release(slot)
            if self.told.stream != NULL and table.alive:
                with nogil:
                    r = replayed_failure(&self.told)
                    if r != ZE_RESULT_SUCCESS:
                        stream_fails(self.last, r)
        except KernelFaultError as error:
            failure = error
        while not self.are_queues_idle(SLICE):
            PyErr_CheckSignals()
        return failure

    cdef int close(self) except -1:
        """Destroy everything; nothing of it may run any more."""
        cdef Segment segment
        cdef Version version
        _there.discard(self)
        with nogil:
            replayed_remove(&self.told)
        self.stale = []
        for segment in self.plan.segments if self.plan is not None else ():
            while segment.versions:
                version = segment.versions.pop()
                version.close()
        while self.queues:
            queue = self.queues.pop()
            if queue is not None:
                queue.close()
        if self.plan is not None:
            self.plan.close()
        forget_replays(self, UINT64_MAX)
        self.count = 0
        return 0

    def __dealloc__(self):
        forget_replays(self, UINT64_MAX)
        free(self.lists)
        free(self.queue_of)


made_by(Executable, "an Executable is made by a Graph")


cdef bint launches(Recording recording) noexcept:
    """Has it launches of kernels?"""
    cdef uint32_t i
    for i in range(recording.capture.count):
        if recording.capture.nodes[i].kind == NODE_KERNEL:
            return True
    return False


cdef int follow(Executable self, l0rt_stream* stream) except -1 nogil:
    """Let the stream wait for the last replay, if that was another's."""
    cdef l0rt_slot* slot
    if self.last == NULL or self.last == stream:
        return 0
    slot = issued_end_event(self.last)
    try:
        wait_untold(stream, 1, &slot)
    finally:
        slot_release(slot)
    return 0


cdef int issue(Executable self, l0rt_stream* stream) except -1 nogil:
    cdef uint32_t at = 0, run
    cdef l0rt_command* told
    cdef ze_result_t r
    cdef int* gate
    lock(stream)
    told = begin_command(stream, GRAPH_REPLAY, NULL, NULL, self.recording.capture.count)
    number(stream)
    r = signal_behind(stream, self.plan.begun)
    self.last, self.last_seq = stream, stream.issued
    if told != NULL and r != ZE_RESULT_SUCCESS:
        end_command(told, r)
    unlock(stream, r)
    gate = hold_off_maps(stream)
    while at < self.count and r == ZE_RESULT_SUCCESS:
        run = 1
        while at + run < self.count and self.queue_of[at + run] == self.queue_of[at]:
            run += 1
        r = queue_execute(self.queue_of[at], run, &self.lists[at])
        at += run
    allow_maps(gate)
    if r != ZE_RESULT_SUCCESS:
        if told != NULL:
            end_command(told, r)
        self.is_broken = True
        return device_fails(stream.device, r)
    lock(stream)
    number(stream)
    r = list_wait(stream.list, 1, &self.plan.ended)
    if r == ZE_RESULT_SUCCESS:
        r = before(stream)
    if r == ZE_RESULT_SUCCESS:
        r = list_reset_event(stream.list, self.plan.ended)   # or the next replay's wait would find it signalled
    if told != NULL:
        end_command(told, r)
    self.last, self.last_seq = stream, stream.issued
    self.is_broken = r != ZE_RESULT_SUCCESS
    if self.may_fail:
        replayed_add(stream, &self.told)
    return unlock(stream, r)


# --- Lists and their versions.


cdef int add_list(Executable self, Segment segment) except -1:
    """The first list of a segment."""
    cdef l0rt_stream* list = &self.plan.lists[segment.branch]
    cdef int index = list.device.index
    cdef Version version
    if self.queues[segment.branch] is None:
        self.queues[segment.branch] = CommandQueue.create(
            core_context(index), core_device(index), list.ordinal, list.queue, list.priority)
    version = self.plan.record(segment)
    segment.versions.append(version)
    take(self, segment, version)
    self.queue_of[segment.at] = (<CommandQueue>self.queues[segment.branch])._h
    self.count += 1
    return 0


cdef int take(Executable self, Segment segment, Version version) except -1:
    """The version is what the next replays execute."""
    segment.current = version
    version.since = self.replays
    self.lists[segment.at] = version.commands._h
    return 0


cdef int renew(Executable self) except -1:
    """Let the lists be what the nodes are now. If a list cannot, it stays stale, and nothing was issued."""
    cdef Recording recording = self.recording
    cdef Segment segment
    cdef uint32_t at = 0, i
    while at < recording.news_count:
        i = recording.news[at]
        segment = self.plan.segments[self.plan.where[i]]
        segment.add(i)
        if segment not in self.stale:
            self.stale.append(segment)
        if recording.capture.nodes[i - 1].kind == NODE_KERNEL:
            segment.is_mutable = self.device.caps.mutable_lists and self.plan.lists[segment.branch].in_order
        at += 1
    recording.take_news()
    if self.stale:
        watch_last(self)
    while self.stale:
        renew_list(self, self.stale[len(self.stale) - 1])
        self.stale.pop()
    return 0


cdef int renew_list(Executable self, Segment segment) except -1:
    cdef bint done = False
    cdef Version version
    if segment.current.since < self.replays:
        segment.current.replay = self.replays
    version = idle_version(self, segment)
    if version is None:
        version = self.plan.record(segment)
        segment.versions.append(version)
    else:
        try:
            if not self.plan.change(segment, version):
                self.plan.record_anew(segment, version)
            done = True
        finally:
            if not done:                # it has some of the changes: the next replay has another one made
                segment.versions.remove(version)
                version.close()
    return take(self, segment, version)


cdef Version idle_version(Executable self, Segment segment):
    """A list of the segment that no replay uses, and that can be changed if others can; None: one is to be made."""
    cdef Version version
    cdef Version first = None
    cdef Version found = None
    for version in segment.versions[:]:
        if version.replay > self.replayed:
            if first is None or version.replay < first.replay:
                first = version
        elif version.is_mutable != segment.is_mutable:
            segment.versions.remove(version)
            version.close()
        elif found is None or version.now > found.now:
            found = version
    if found is None and len(segment.versions) >= VERSIONS:
        wait_replay(self, first.replay)
        return idle_version(self, segment)
    return found


# --- What was replayed. An event behind a replay is recorded before the first change of a list that follows it: the end
# of the stream is then the end of the replay, or lies behind it.


cdef int watch_last(Executable self) except -1:
    """Find out which replays are over; if the last one is not, have an event behind it."""
    cdef l0rt_slot* slot
    if self.last != NULL and l0rt_load64(&self.last.done) >= self.last_seq:
        forget_replays(self, self.replays)
    while self.watched_count and slot_query(self.watched[0].slot):
        forget_replays(self, self.watched[0].number)
    if self.replayed == self.replays or (
            self.watched_count and self.watched[self.watched_count - 1].number == self.replays):
        return 0
    with nogil:
        slot = issued_end_event(self.last)
    if self.watched_count == VERSIONS:      # who waits for the first one waits for the second instead
        drop_first(self)
    self.watched[self.watched_count] = l0rt_replay(self.replays, slot)
    self.watched_count += 1
    return 0


cdef int wait_replay(Executable self, uint64_t last) except -1:
    cdef int at = 0
    while self.watched[at].number < last:
        at += 1
    with nogil:
        slot_wait(self.watched[at].slot, UINT64_MAX)
    forget_replays(self, self.watched[at].number)
    return 0


cdef void forget_replays(Executable self, uint64_t last) noexcept:
    """Those up to this one are over."""
    self.replayed = max(self.replayed, min(last, self.replays))
    while self.watched_count and self.watched[0].number <= last:
        drop_first(self)


cdef void drop_first(Executable self) noexcept:
    cdef int i
    slot_release(self.watched[0].slot)
    self.watched_count -= 1
    for i in range(self.watched_count):
        self.watched[i] = self.watched[i + 1]


def close_all():
    """Destroy what all graphs have, at exit: nothing runs any more."""
    while _there:
        (<Executable>_there.pop()).close()


on_exit(LISTS, close_all)
