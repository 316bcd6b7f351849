# SPDX-License-Identifier: Apache-2.0
"""A graph as the driver has it: a graph of the driver's own, or closed command lists, one a segment, which queues
execute.

Replays of one graph run one after another, and are issued without a wait in between.

The driver's own graph cannot be changed: with the first change of a node, lists take its place.

A node that is changed makes the list of its segment stale. The next replay has it renewed: a list that no replay under
way uses gets the changes, or is recorded anew; without one, another is made. With ``VERSIONS`` lists of one segment in
replays under way, it waits for the first of them.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport UINT64_MAX, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from l0rt.core.cmdlist cimport list_reset_event, list_wait
from l0rt.core.graph cimport list_append_graph
from l0rt.core.queue cimport CommandQueue, has_queues, queue_execute, queue_is_idle
from l0rt._base.factory cimport made_by
from l0rt.graphs.native cimport NativeGraph, native_can
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
from l0rt.runtime.streams.hooks cimport EVENT_SYNCHRONIZATION, GRAPH_REPLAY, REPLAY, STREAM_WAIT, call_hooks, hooked
from l0rt.runtime.streams.order cimport allow_maps, before, hold_off_maps, number, signal_behind
from l0rt.runtime.streams.queue cimport issued_end_event, lock, progress, unlock, wait_untold
from l0rt.runtime.streams.sleep cimport replay_begin, replay_end
from l0rt.runtime.streams.timeline cimport begin_command, end_command, l0rt_command
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport device_fails, slot_query, slot_wait, stream_fails
from l0rt.ze cimport table
from l0rt.ze.api cimport (
    ZE_RESULT_SUCCESS,
    ze_command_list_handle_t,
    ze_command_queue_handle_t,
    ze_result_t,
)

from l0rt.errors import KernelFaultError, L0Error, UnsupportedError
from l0rt.runtime.lazy import LISTS, on_exit
from l0rt.runtime.memory.device import let_go_before_trim

cdef enum:
    SLICE = 100_000_000     # ns of a wait between two looks for signals

# What a driver answers that has the functions, and does not record a command with them; and a loader, whose driver
# lacks them.
cdef set NOT_RECORDED = {"ERROR_UNSUPPORTED_FEATURE", "ERROR_GRAPH_CAPTURE_UNSUPPORTED", "ERROR_UNINITIALIZED"}

_there = set()      # every Executable that has something of the driver's


@cython.final
@cython.binding(False)
cdef class Executable:
    """Made by ``Executable.build()``."""

    @staticmethod
    cdef Executable build(Recording recording):
        cdef Executable made = Executable.__new__(Executable)
        made.recording = recording
        made.device = recording.capture.branches[0].device
        made.queues, made.stale = [], []
        _there.add(made)
        try:
            if native_can(recording):
                try_native(made)
            if made.native is None:
                build_lists(made)
            recording.take_news()
        except BaseException:
            made.close()
            raise
        return made

    cdef int replay(self, l0rt_stream* stream) except -1:
        cdef int generation
        if captures(stream):
            capture_refuse(stream, b"Graph.replay()")
        if stream.device != self.device:
            raise ValueError(f"the graph is of device {self.device.index}, the stream of device {stream.device.index}")
        if self.is_broken:
            raise RuntimeError("the driver refused a part of an earlier replay: the graph can only be reset")
        renew(self, stream)
        with nogil:
            follow(self, stream)
        generation = replay_begin()
        try:
            self.recording.check_asleep()
            self.recording.advance(stream)
            with nogil:
                if self.native is None:
                    issue(self, stream)
                else:
                    append_native(self, stream)
        finally:
            replay_end(generation)
        self.replays += 1
        if hooked:
            call_hooks(REPLAY, <uint64_t>stream, <uint64_t><void*>self.recording, 0, 0)
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
            if not self.is_idle() or (self.native is not None and self.last != NULL
                                      and l0rt_load_int(&self.last.launched)):
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
        if hooked:
            call_hooks(EVENT_SYNCHRONIZATION, <uint64_t><void*>self.recording, 0, 0, 0)
        return failure

    cdef int close(self) except -1:
        """Destroy everything; nothing of it may run any more."""
        _there.discard(self)
        with nogil:
            replayed_remove(&self.told)
        drop_lists(self)
        for native in (self.native, self.retired):
            if native is not None:
                native.close()
        forget_replays(self, UINT64_MAX)
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
    if hooked:
        call_hooks(STREAM_WAIT, <uint64_t>stream, <uint64_t>self.last, 0, 0)
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


cdef int append_native(Executable self, l0rt_stream* stream) except -1 nogil:
    """A replay is one command of the stream."""
    cdef l0rt_command* told
    cdef ze_result_t r
    cdef int* gate
    lock(stream)
    told = begin_command(stream, GRAPH_REPLAY, NULL, NULL, self.recording.capture.count)
    number(stream)
    gate = hold_off_maps(stream)
    r = list_append_graph(stream.list, self.native.executable._h)
    allow_maps(gate)
    if told != NULL:
        end_command(told, r)
    if stream.device.is_software:
        l0rt_store_int(&stream.launched, 1)
    self.last, self.last_seq = stream, stream.issued
    self.is_broken = r != ZE_RESULT_SUCCESS
    return unlock(stream, r)


# --- The driver's own graph.


cdef int try_native(Executable self) except -1:
    """None, where the driver has something that it does not record."""
    try:
        self.native = NativeGraph.build(self.recording)
    except L0Error as error:
        if error.code is None or error.code[0] not in NOT_RECORDED:
            raise
    return 0


cdef int move_to_lists(Executable self) except -1:
    """A node was changed, or the stream is of another engine, neither of which the driver's graph can have: from now
    on, replays execute lists."""
    cdef bint done = False
    try:
        build_lists(self)
        done = True
    finally:
        if not done:
            drop_lists(self)
    self.recording.take_news()
    self.retired, self.retired_at, self.native = self.native, self.replays, None
    watch_last(self)
    return 0


cdef int drop_retired(Executable self) except -1:
    """What the driver's graph has goes once its replays are over."""
    find_replayed(self)
    if self.replayed >= self.retired_at:
        retired, self.retired = self.retired, None
        retired.close()
    return 0


# --- Lists and their versions.


cdef int build_lists(Executable self) except -1:
    cdef Segment segment
    cdef uint32_t at
    if not has_queues():
        raise UnsupportedError("this driver cannot execute command lists (zeCommandQueueExecuteCommandLists)")
    self.plan = Plan.make(self.recording)
    for at in range(self.recording.news_count):     # what was changed will be changed again
        choose_kind(self, self.recording.news[at])
    self.queues = [None] * self.recording.capture.branch_count
    self.lists = <ze_command_list_handle_t*>calloc(len(self.plan.segments), sizeof(void*))
    self.queue_of = <ze_command_queue_handle_t*>calloc(len(self.plan.segments), sizeof(void*))
    if self.lists == NULL or self.queue_of == NULL:
        raise MemoryError()
    for segment in self.plan.segments:
        add_list(self, segment)
    self.told.queues, self.told.count = self.queue_of, self.count
    self.may_fail = self.device.is_software and launches(self.recording)
    return 0


cdef int drop_lists(Executable self) except -1:
    """Destroy them; nothing of them may run any more."""
    cdef Segment segment
    cdef Version version
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
    self.plan = None
    self.count = 0
    free(self.lists)
    free(self.queue_of)
    self.lists, self.queue_of = NULL, NULL
    return 0


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


cdef void choose_kind(Executable self, uint32_t i) noexcept:
    """New lists with a launch that was changed are mutable, if they can be."""
    cdef Segment segment = self.plan.segments[self.plan.where[i]]
    if self.recording.capture.nodes[i - 1].kind == NODE_KERNEL:
        segment.is_mutable = self.device.caps.mutable_lists and self.plan.lists[segment.branch].in_order


cdef int renew(Executable self, const l0rt_stream* stream) except -1:
    """Let the lists be what the nodes are now. If a list cannot, it stays stale, and nothing was issued."""
    cdef Recording recording = self.recording
    cdef Segment segment
    cdef uint32_t at = 0, i
    if self.retired is not None:
        drop_retired(self)
    if self.native is not None:
        return 0 if recording.news_count == 0 and self.native.fits(stream) else move_to_lists(self)
    while at < recording.news_count:
        i = recording.news[at]
        segment = self.plan.segments[self.plan.where[i]]
        segment.add(i)
        if segment not in self.stale:
            self.stale.append(segment)
        choose_kind(self, i)
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
    """Have an event behind the last replay, unless that is over."""
    cdef l0rt_slot* slot
    find_replayed(self)
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


cdef int find_replayed(Executable self) except -1:
    """Find out which replays are over."""
    if self.last != NULL and l0rt_load64(&self.last.done) >= self.last_seq:
        forget_replays(self, self.replays)
    while self.watched_count and slot_query(self.watched[0].slot):
        forget_replays(self, self.watched[0].number)
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


# --- Dropped graphs whose last replay may be running.

cdef list _leaving = []         # (Executable, Recording)


def sweep_graphs():
    """Destroy what dropped graphs have left, unless it may be running, or its nodes are in use."""
    cdef Executable executable
    cdef Recording recording
    for pair in list(_leaving):
        executable, recording = pair
        if recording.turn._is_owned() or not recording.turn.acquire(False):
            continue
        try:
            if executable.is_idle() and pair in _leaving:
                _leaving.remove(pair)
                executable.close()
                recording.close()
        finally:
            recording.turn.release()


def leave_running(Executable executable not None, Recording recording not None):
    """Destroy these as soon as no replay runs."""
    _leaving.append((executable, recording))
    sweep_graphs()


let_go_before_trim(sweep_graphs)
