# SPDX-License-Identifier: Apache-2.0
"""A graph as the driver has it: a graph of the driver's own, or closed command lists, one a segment, which queues
execute.

Replays of one graph run one after another, and are issued without a wait in between.

The driver's own graph cannot be changed: with the first change of a node, lists take its place.

A list must not be executed while its last execution may still run: Intel's driver writes the way back to the queue into
the end of the list. So replays that are under way have sets of lists of their own. With ``MOST_SETS`` under way, one
more waits for the first of them, and if that does not end soon, has one more set. The fences report it, not the events
that the lists signal: behind these, a queue is still in the list.

A node that is changed makes lists stale. A replay takes a set that is idle, and has its stale lists changed, or
recorded anew.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport UINT64_MAX, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from l0rt.core.cmdlist cimport list_reset_event, list_wait
from l0rt.core.graph cimport list_append_graph
from l0rt.core.queue cimport (
    CommandQueue,
    Fence,
    fence_reset,
    fence_wait,
    has_queues,
    queue_execute,
    queue_is_idle,
)
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
from l0rt.runtime.streams.wait cimport check_device, device_fails, slot_wait, stream_fails
from l0rt.ze cimport table
from l0rt.ze.api cimport (
    ZE_RESULT_NOT_READY,
    ZE_RESULT_SUCCESS,
    ze_command_list_handle_t,
    ze_command_queue_handle_t,
    ze_fence_handle_t,
    ze_result_t,
)

from contextlib import suppress
from time import monotonic

from l0rt.errors import KernelFaultError, L0Error, UnsupportedError
from l0rt.runtime.lazy import LISTS, on_exit
from l0rt.runtime.memory.device import let_go_before_trim

cdef enum:
    SLICE = 100_000_000     # ns of a wait between two looks for signals

cdef double PATIENCE = 0.25     # s of a wait for the first set beyond MOST_SETS, and as much more for each further one

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
        cdef Executable self = Executable.__new__(Executable)
        self.recording = recording
        self.device = recording.capture.branches[0].device
        self.queues, self.sets = [], []
        _there.add(self)
        try:
            if native_can(recording):
                try_native(self)
            if self.native is None:
                build_lists(self)
            recording.take_news()
        except BaseException:
            self.close()
            raise
        return self

    cdef int replay(self, l0rt_stream* stream) except -1:
        cdef int generation
        cdef ListSet set = None
        if captures(stream):
            capture_refuse(stream, b"Graph.replay()")
        if stream.device != self.device:
            raise ValueError(f"the graph is of device {self.device.index}, the stream of device {stream.device.index}")
        if self.is_broken:
            raise RuntimeError("the driver refused a part of an earlier replay: the graph can only be reset")
        take_changes(self, stream)
        if self.native is None:
            set = idle_set(self)
            renew(self, set)
        with nogil:
            follow(self, stream)
        generation = replay_begin()
        try:
            self.recording.check_asleep()
            self.recording.advance(stream)
            with nogil:
                if set is not None:
                    issue(self, set, stream)
                else:
                    append_native(self, stream)
        finally:
            replay_end(generation)
        if hooked:
            call_hooks(REPLAY, <uint64_t>stream, <uint64_t><void*>self.recording, 0, 0)
        return 0

    cdef bint is_idle(self, uint64_t timeout_ns) except -1:
        """Whether no replay runs. The queues of replays that are done may take this long to leave the lists."""
        if self.last == NULL or not table.alive or l0rt_load_int(&self.device.lost):
            return True
        if l0rt_load64(&self.last.done) < self.last_seq:
            with nogil:
                progress(self.last)
                progress(self.last)     # the first may only have put its mark
        return l0rt_load64(&self.last.done) >= self.last_seq and self.are_lists_idle(timeout_ns)

    cdef bint are_lists_idle(self, uint64_t timeout_ns) except -1:
        """Whether no queue is in a list. No stream waits for a replay of which the driver refused a part, and not every
        fence of it is signalled."""
        cdef ListSet set
        cdef ze_result_t r
        cdef uint32_t i
        if not table.alive or l0rt_load_int(&self.device.lost):
            return True
        if self.is_broken:
            with nogil:
                for i in range(self.count):
                    if not queue_is_idle(self.queue_of[i], timeout_ns):
                        return False
            return True
        for set in self.sets:
            with nogil:
                r = set_wait(set, timeout_ns)
                if r != ZE_RESULT_SUCCESS and r != ZE_RESULT_NOT_READY:
                    stream_fails(self.last, r)
            if r == ZE_RESULT_NOT_READY:
                return False
        return True

    cdef object rest(self):
        cdef l0rt_slot* slot
        cdef ze_result_t r
        failure = None
        try:
            if not self.is_idle(0) or (self.native is not None and self.last != NULL
                                      and l0rt_load_int(&self.last.launched)):
                with nogil:
                    slot = issued_end_event(self.last)
                    try:
                        slot_wait(slot, UINT64_MAX)
                    finally:
                        slot_release(slot)
            while self.replayed.stream != NULL and table.alive:
                with nogil:
                    r = replayed_failure(&self.replayed, SLICE)
                    if r != ZE_RESULT_SUCCESS and r != ZE_RESULT_NOT_READY:
                        stream_fails(self.last, r)
                if r == ZE_RESULT_SUCCESS:
                    break
                PyErr_CheckSignals()
        except KernelFaultError as error:
            failure = error
        try:
            while not self.are_lists_idle(SLICE):
                PyErr_CheckSignals()
        except KernelFaultError as error:
            failure = failure or error
        if hooked:
            call_hooks(EVENT_SYNCHRONIZATION, <uint64_t><void*>self.recording, 0, 0, 0)
        return failure

    cdef int close(self) except -1:
        """Destroy everything; nothing of it may run any more."""
        _there.discard(self)
        with nogil:
            replayed_remove(&self.replayed)
        drop_lists(self)
        for native in (self.native, self.retired):
            if native is not None:
                native.close()
        return 0

    def __dealloc__(self):
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


cdef int issue(Executable self, ListSet set, l0rt_stream* stream) except -1 nogil:
    cdef uint32_t at = 0, run
    cdef l0rt_command* command
    cdef ze_result_t r
    cdef int* gate
    lock(stream)
    command = begin_command(stream, GRAPH_REPLAY, NULL, NULL, self.recording.capture.count)
    number(stream)
    r = signal_behind(stream, self.plan.start_event)
    self.last, self.last_seq = stream, stream.issued
    if command != NULL and r != ZE_RESULT_SUCCESS:
        end_command(command, r)
    unlock(stream, r)
    set.is_issued = True
    gate = hold_off_maps(stream)
    while at < self.count and r == ZE_RESULT_SUCCESS:
        run = 1
        while at + run < self.count and self.queue_of[at + run] == self.queue_of[at]:
            run += 1
        r = queue_execute(self.queue_of[at], run, &set.lists[at], set.behind[at + run - 1])
        at += run
    allow_maps(gate)
    if r != ZE_RESULT_SUCCESS:
        if command != NULL:
            end_command(command, r)
        self.is_broken = True
        return device_fails(stream.device, r)
    lock(stream)
    number(stream)
    r = list_wait(stream.list, 1, &self.plan.end_event)
    if r == ZE_RESULT_SUCCESS:
        r = before(stream)
    if r == ZE_RESULT_SUCCESS:
        r = list_reset_event(stream.list, self.plan.end_event)   # or the next replay's wait would find it signalled
    if command != NULL:
        end_command(command, r)
    self.last, self.last_seq = stream, stream.issued
    self.is_broken = r != ZE_RESULT_SUCCESS
    if self.may_fail:
        replayed_add(stream, &self.replayed)
    return unlock(stream, r)


cdef int append_native(Executable self, l0rt_stream* stream) except -1 nogil:
    """A replay is one command of the stream."""
    cdef l0rt_command* command
    cdef ze_result_t r
    cdef int* gate
    lock(stream)
    command = begin_command(stream, GRAPH_REPLAY, NULL, NULL, self.recording.capture.count)
    number(stream)
    gate = hold_off_maps(stream)
    r = list_append_graph(stream.list, self.native.executable._h)
    allow_maps(gate)
    if command != NULL:
        end_command(command, r)
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
    self.retired, self.native = self.native, None
    self.retired_on, self.retired_seq = self.last, self.last_seq
    return 0


cdef int drop_retired(Executable self) except -1:
    """What the driver's graph has goes once its replays are over."""
    if self.retired_on != NULL and l0rt_load64(&self.retired_on.done) < self.retired_seq:
        with nogil:
            progress(self.retired_on)
        return 0
    retired, self.retired = self.retired, None
    retired.close()
    return 0


# --- Lists, in sets.


cdef int build_lists(Executable self) except -1:
    cdef Segment segment
    cdef l0rt_stream* list
    cdef uint32_t at
    if not has_queues():
        raise UnsupportedError("this driver cannot execute command lists (zeCommandQueueExecuteCommandLists, zeFence*)")
    self.plan = Plan.make(self.recording)
    for at in range(self.recording.news_count):     # what was changed will be changed again
        choose_kind(self, self.recording.news[at])
    self.queues = [None] * self.recording.capture.branch_count
    self.queue_of = <ze_command_queue_handle_t*>calloc(len(self.plan.segments), sizeof(void*))
    if self.queue_of == NULL:
        raise MemoryError()
    for segment in self.plan.segments:
        if self.queues[segment.branch] is None:
            list = &self.plan.lists[segment.branch]
            self.queues[segment.branch] = CommandQueue.create(
                core_context(list.device.index), core_device(list.device.index), list.ordinal, list.queue,
                list.priority)
        self.queue_of[segment.at] = (<CommandQueue>self.queues[segment.branch])._h
        self.count += 1
    self.sets.append(ListSet.make(self))
    self.replayed.queues, self.replayed.count = self.queue_of, self.count
    self.may_fail = self.device.is_software and launches(self.recording)
    return 0


cdef int drop_lists(Executable self) except -1:
    """Destroy them; nothing of them may run any more."""
    while self.sets:
        (<ListSet>self.sets.pop()).close()
    while self.queues:
        queue = self.queues.pop()
        if queue is not None:
            queue.close()
    if self.plan is not None:
        self.plan.close()
    self.plan = None
    self.count = 0
    free(self.queue_of)
    self.queue_of = NULL
    return 0


@cython.final
@cython.binding(False)
cdef class ListSet:
    """Made by ``ListSet.make()``."""

    @staticmethod
    cdef ListSet make(Executable executable):
        cdef ListSet self = ListSet.__new__(ListSet)
        cdef Plan plan = executable.plan
        cdef Segment segment
        cdef Fence fence
        cdef dict last = {}         # the last segment of each branch, and so of each queue
        self.count = executable.count
        self.versions, self.fences = [None] * self.count, []
        self.lists = <ze_command_list_handle_t*>calloc(self.count, sizeof(ze_command_list_handle_t))
        self.behind = <ze_fence_handle_t*>calloc(self.count, sizeof(ze_fence_handle_t))
        if self.lists == NULL or self.behind == NULL:
            raise MemoryError()
        try:
            for segment in plan.segments:
                self.put(segment, plan.record(segment))
                last[segment.branch] = segment.at
            for branch, at in last.items():
                fence = Fence.create(executable.queues[branch])
                self.fences.append(fence)
                self.behind[<uint32_t>at] = fence._h
        except BaseException:
            self.close()
            raise
        self.now = plan.recording.now
        return self

    cdef int put(self, Segment segment, Version version) except -1:
        """The version is what the next replays execute."""
        self.versions[segment.at] = version
        self.lists[segment.at] = version.commands._h
        return 0

    cdef int close(self) except -1:
        """Destroy the lists, which must not run any more."""
        while self.versions:
            version = self.versions.pop()
            if version is not None:
                version.close()
        while self.fences:
            self.fences.pop().close()
        return 0

    def __dealloc__(self):
        free(self.lists)
        free(self.behind)


made_by(ListSet, "a ListSet is made by an Executable")


cdef ze_result_t set_wait(ListSet set, uint64_t timeout_ns) noexcept nogil:
    """Ask or wait until no replay executes the set: SUCCESS, NOT_READY, or what went wrong."""
    cdef ze_result_t r
    cdef uint32_t i
    if set.is_issued:
        for i in range(set.count):
            if set.behind[i] != NULL:
                r = fence_wait(set.behind[i], timeout_ns)
                if r != ZE_RESULT_SUCCESS:
                    return r
    return ZE_RESULT_SUCCESS


cdef ze_result_t set_recycle(ListSet set) noexcept nogil:
    """Let another replay have a set that none executes any more."""
    cdef ze_result_t r
    cdef uint32_t i
    if set.is_issued:
        for i in range(set.count):
            if set.behind[i] != NULL:
                r = fence_reset(set.behind[i])
                if r != ZE_RESULT_SUCCESS:
                    return r
        set.is_issued = False
    return ZE_RESULT_SUCCESS


cdef ListSet idle_set(Executable self):
    """The last replay's set if that is known to be over, else the one that was not used for the longest time. If a
    replay executes it, another one is made; behind ``MOST_SETS`` that replay is waited for, but not for ever: it may
    wait for what this thread does next."""
    cdef bint are_over = self.last == NULL or l0rt_load64(&self.last.done) >= self.last_seq
    cdef Py_ssize_t at = len(self.sets) - 1 if are_over else 0
    cdef ListSet set = self.sets[at]
    cdef double ends = 0
    cdef ze_result_t r
    with nogil:
        r = set_wait(set, 0)
    while r == ZE_RESULT_NOT_READY:
        ends = ends or monotonic() + PATIENCE * max(0, len(self.sets) + 1 - MOST_SETS)
        if not are_over and monotonic() >= ends:
            set = ListSet.make(self)
            self.sets.append(set)
            return set
        with nogil:
            r = set_wait(set, SLICE)
            if r == ZE_RESULT_NOT_READY:
                check_device(self.device)
    with nogil:
        if r == ZE_RESULT_SUCCESS:
            r = set_recycle(set)
        if r != ZE_RESULT_SUCCESS:
            stream_fails(self.last, r)
    self.sets.append(self.sets.pop(at))
    return set


cdef void choose_kind(Executable self, uint32_t i) noexcept:
    """New lists with a launch that was changed are mutable, if they can be."""
    cdef Segment segment = self.plan.segments[self.plan.where[i]]
    if self.recording.capture.nodes[i - 1].kind == NODE_KERNEL:
        segment.is_mutable = self.device.caps.mutable_lists and self.plan.lists[segment.branch].in_order


cdef int take_changes(Executable self, const l0rt_stream* stream) except -1:
    """Find out which nodes were changed, and whether the driver's graph will do."""
    cdef Recording recording = self.recording
    cdef uint32_t at = 0, i
    if self.retired is not None:
        drop_retired(self)
    if self.native is not None:
        return 0 if recording.news_count == 0 and self.native.fits(stream) else move_to_lists(self)
    while at < recording.news_count:
        i = recording.news[at]
        (<Segment>self.plan.segments[self.plan.where[i]]).add(i)
        choose_kind(self, i)
        at += 1
    recording.take_news()
    return 0


cdef int renew(Executable self, ListSet set) except -1:
    """Let the lists of a set that no replay executes be what the nodes are now. If one cannot, it stays stale, and
    nothing was issued."""
    cdef Segment segment
    cdef Version version
    if set.now == self.recording.now:
        return 0
    for segment in self.plan.segments:
        version = set.versions[segment.at]
        if version is None or self.plan.is_stale(segment, version):
            renew_list(self, set, segment)
    set.now = self.recording.now
    return 0


cdef int renew_list(Executable self, ListSet set, Segment segment) except -1:
    cdef Version version = set.versions[segment.at]
    cdef bint done = False
    set.versions[segment.at] = None         # with some of the changes it is of no use
    if version is not None and version.is_mutable != segment.is_mutable:
        version.close()
        version = None
    if version is None:
        return set.put(segment, self.plan.record(segment))
    try:
        if not self.plan.change(segment, version):
            self.plan.record_anew(segment, version)
        done = True
    finally:
        if not done:
            version.close()
    return set.put(segment, version)


def close_all():
    """Destroy what all graphs have, at exit: nothing runs any more, but a queue may just be leaving a list."""
    cdef Executable executable
    while _there:
        executable = _there.pop()
        with suppress(L0Error):         # the end of a process has no caller that could handle it
            executable.are_lists_idle(SLICE)
        executable.close()


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
            try:
                is_over = executable.is_idle(0 if executable.is_broken else 10 * SLICE)
            except KernelFaultError:        # nothing runs on, and a graph that failed is dropped in silence
                is_over = True
            if is_over and pair in _leaving:
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
