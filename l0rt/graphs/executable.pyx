# SPDX-License-Identifier: Apache-2.0
"""A graph as the driver has it: closed command lists, which queues of its own execute, ordered by events.

Each list has what one stream was given between two waits. So a list waits only in its beginning, for lists that are
executed before it: they may all go to one hardware queue, and none blocks another for ever.

Replays of one graph run one after another, and are issued without a wait in between. The first list waits for the
stream that replays; the first of each other branch waits for that. The last list signals the stream. Who alone waits
for an event resets it; the last list resets the others, behind everything that waits for them.
"""

from _thread import RLock

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport UINT64_MAX, uint32_t
from libc.stdlib cimport calloc, free, realloc

from l0rt.core.cmdlist cimport CommandList, list_barrier, list_reset_event, list_wait
from l0rt.core.event cimport EventPool
from l0rt.core.queue cimport CommandQueue, has_queues, queue_execute, queue_is_idle
from l0rt.factory cimport made_by
from l0rt.graphs.recording cimport Recording
from l0rt.kernels.launch cimport kernel_append, l0rt_recorded_launch
from l0rt.runtime.alloc.atomics cimport mutex_init
from l0rt.runtime.streams.capture cimport (
    NODE_CALLBACK,
    NODE_COPY,
    NODE_FILL,
    NODE_KERNEL,
    NODE_WAIT,
    capture_refuse,
    captures,
    l0rt_branch,
    l0rt_capture,
    l0rt_node,
)
from l0rt.runtime.streams.copy cimport copy_locked, fill_locked, rows_locked
from l0rt.runtime.streams.devices cimport core_context, core_device
from l0rt.runtime.streams.event_pool cimport slot_release
from l0rt.runtime.streams.order cimport allow_maps, before, hold_off_maps, number, signal_behind
from l0rt.runtime.streams.queue cimport issued_end_event, lock, progress, unlock, wait_untold
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport device_fails, slot_wait
from l0rt.ze cimport table
from l0rt.ze.api cimport (
    ZE_RESULT_SUCCESS,
    ze_command_list_handle_t,
    ze_command_queue_handle_t,
    ze_event_handle_t,
    ze_result_t,
)

from l0rt.errors import UnsupportedError
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
        cdef Builder builder
        if not has_queues():
            raise UnsupportedError("this driver cannot execute command lists (zeCommandQueueExecuteCommandLists)")
        made.owners = []
        made.recording = recording
        made.turn = RLock()
        made.device = recording.capture.branches[0].device
        _there.add(made)
        try:
            builder = Builder.__new__(Builder, made)
            builder.events_of()
            builder.lists_of()
        except BaseException:
            made.close()
            raise
        return made

    cdef int replay(self, l0rt_stream* stream) except -1:
        if captures(stream):
            capture_refuse(stream, b"Graph.replay()")
        if stream.device != self.device:
            raise ValueError(f"the graph is of device {self.device.index}, the stream of device {stream.device.index}")
        with self.turn:
            if self.is_broken:
                raise RuntimeError("the driver refused a part of an earlier replay: the graph can only be reset")
            with nogil:
                follow(self, stream)
            self.recording.advance(stream)
            with nogil:
                issue(self, stream)
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
                    if not queue_is_idle(self.queues[i], timeout_ns):
                        return False
        return True

    cdef int rest(self) except -1:
        cdef l0rt_slot* slot
        if self.is_idle():
            return 0
        with nogil:
            slot = issued_end_event(self.last)
            try:
                slot_wait(slot, UINT64_MAX)
            finally:
                slot_release(slot)
        while not self.are_queues_idle(SLICE):
            PyErr_CheckSignals()
        return 0

    cdef int close(self) except -1:
        """Destroy everything; nothing of it may run any more."""
        _there.discard(self)
        while self.owners:
            self.owners.pop().close()       # the events last
        self.count = 0
        return 0

    def __dealloc__(self):
        free(self.lists)
        free(self.queues)


made_by(Executable, "an Executable is made by a Graph")


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
    cdef ze_result_t r
    cdef int* gate
    lock(stream)
    number(stream)
    r = signal_behind(stream, self.begun)
    self.last, self.last_seq = stream, stream.issued
    unlock(stream, r)
    gate = hold_off_maps(stream)
    while at < self.count and r == ZE_RESULT_SUCCESS:
        run = 1
        while at + run < self.count and self.queues[at + run] == self.queues[at]:
            run += 1
        r = queue_execute(self.queues[at], run, &self.lists[at])
        at += run
    allow_maps(gate)
    if r != ZE_RESULT_SUCCESS:
        self.is_broken = True
        return device_fails(stream.device, r)
    lock(stream)
    number(stream)
    r = list_wait(stream.list, 1, &self.ended)
    if r == ZE_RESULT_SUCCESS:
        r = before(stream)
    if r == ZE_RESULT_SUCCESS:
        r = list_reset_event(stream.list, self.ended)   # or the next replay's wait would find it signalled
    self.last, self.last_seq = stream, stream.issued
    self.is_broken = r != ZE_RESULT_SUCCESS
    return unlock(stream, r)


# --- Building. A branch's list is a l0rt_stream of its own kind, so that commands are appended as to any other.


cdef struct Segment:
    l0rt_stream list
    bint is_open            # the branch has a list that takes commands,
    bint is_begun           # and that has some
    uint32_t at             # among the lists,
    size_t owner            # and its place among the owners
    ze_command_queue_handle_t queue
    bint is_used            # it has a node that is needed
    ze_event_handle_t begun     # not of the first branch: in each replay, its first list waits for the first of all


@cython.final
@cython.binding(False)
cdef class Builder:
    cdef Executable made
    cdef Recording recording
    cdef Segment* segments          # one a branch
    cdef ze_event_handle_t* events  # behind each node, 0 being the beginning; NULL: nothing waits for it
    cdef EventPool pool

    def __cinit__(self, Executable made):
        cdef l0rt_capture* capture = made.recording.capture
        cdef l0rt_branch* branch
        cdef l0rt_stream* list
        cdef uint32_t i
        self.made = made
        self.recording = made.recording
        self.events = <ze_event_handle_t*>calloc(capture.count + 1, sizeof(ze_event_handle_t))
        self.segments = <Segment*>calloc(capture.branch_count, sizeof(Segment))
        if self.events == NULL or self.segments == NULL:
            raise MemoryError()
        for i in range(capture.branch_count):
            branch = capture.branches[i]
            list = &self.segments[i].list
            list.device, list.kind = branch.device, STREAM_RECORDED
            list.ordinal, list.queue, list.priority = branch.ordinal, branch.queue, branch.priority
            list.fill_limit, list.refuses_rows = branch.fill_limit, branch.refuses_rows
            list.in_order = branch.device.caps.inorder
            mutex_init(&list.lock, NULL)

    def __dealloc__(self):
        free(self.events)
        free(self.segments)

    cdef bint is_needed(self, uint32_t i) noexcept:
        """Does the capture's end wait for node ``i``?"""
        cdef l0rt_capture* capture = self.recording.capture
        return i <= self.recording.joined[capture.nodes[i - 1].branch]

    cdef int events_of(self) except -1:
        """One event behind each node that a branch waits for, one for the beginning of each branch, and two for the
        stream that replays."""
        cdef l0rt_capture* capture = self.recording.capture
        cdef ze_event_handle_t wanted = <ze_event_handle_t><void*>self.segments     # not NULL
        cdef uint32_t i, count = 0
        for i in range(1, capture.count + 1):
            if self.is_needed(i):
                self.segments[capture.nodes[i - 1].branch].is_used = True
                if capture.nodes[i - 1].kind == NODE_WAIT:
                    count += self.events[capture.nodes[i - 1].after] == NULL
                    self.events[capture.nodes[i - 1].after] = wanted
        for i in range(1, capture.branch_count):
            count += self.segments[i].is_used
        self.pool = EventPool.create(core_context(self.made.device.index), count + 2, False, False)
        self.made.owners.append(self.pool)
        for i in range(capture.count + 1):
            if self.events[i] != NULL:
                count -= 1
                self.events[i] = self.pool.events[count + 2]
        for i in range(1, capture.branch_count):
            if self.segments[i].is_used:
                count -= 1
                self.segments[i].begun = self.pool.events[count + 2]
        self.made.begun, self.made.ended = self.pool.events[0], self.pool.events[1]
        return 0

    cdef bint is_beginning(self, ze_event_handle_t event) noexcept nogil:
        """Is it a branch's, which resets it itself?"""
        cdef uint32_t i
        for i in range(1, self.recording.capture.branch_count):
            if self.segments[i].begun == event:
                return True
        return False

    cdef int lists_of(self) except -1:
        cdef l0rt_capture* capture = self.recording.capture
        cdef Segment* first = &self.segments[0]
        cdef Segment* segment
        cdef l0rt_node* node
        cdef uint32_t i
        self.open_list(0)
        with nogil:
            check(first, list_wait(first.list.list, 1, &self.made.begun))
            for i in range(1, capture.branch_count):
                if self.segments[i].begun != NULL:
                    signal_event(first, self.segments[i].begun)
        first.is_begun = True
        self.signal(0, 0)
        for i in range(1, capture.count + 1):
            node = &capture.nodes[i - 1]
            segment = &self.segments[node.branch]
            if not self.is_needed(i):
                continue
            # a list waits in its beginning, and for none that is executed behind it
            if not segment.is_open or (
                    node.kind == NODE_WAIT and (segment.is_begun or segment.at + 1 != self.made.count)):
                self.open_list(node.branch)
            with nogil:
                if node.kind == NODE_WAIT:
                    check(segment, list_wait(segment.list.list, 1, &self.events[node.after]))
                else:
                    append(segment, node)
            segment.is_begun = segment.is_begun or node.kind != NODE_WAIT
            self.signal(node.branch, i)
        with nogil:
            for i in range(self.pool.count):
                if self.pool.events[i] != self.made.ended and not self.is_beginning(self.pool.events[i]):
                    reset(first, self.pool.events[i])
            signal_event(first, self.made.ended)
        for i in range(capture.branch_count):
            self.close_list(i)
        return 0

    cdef int open_list(self, uint32_t branch) except -1:
        """A new list for the branch: it is executed behind all lists so far."""
        cdef Segment* segment = &self.segments[branch]
        cdef Executable made = self.made
        cdef int index = segment.list.device.index
        cdef uint32_t at = made.count
        cdef CommandQueue queue
        cdef CommandList opened
        cdef bint is_first = segment.queue == NULL
        self.close_list(branch)
        made.lists = <ze_command_list_handle_t*>grown(made.lists, at)
        made.queues = <ze_command_queue_handle_t*>grown(made.queues, at)
        opened = CommandList.regular(
            core_context(index), core_device(index), segment.list.ordinal, segment.list.in_order)
        segment.at, segment.owner = at, len(made.owners)
        made.owners.append(opened)
        if is_first:
            queue = CommandQueue.create(core_context(index), core_device(index), segment.list.ordinal,
                                        segment.list.queue, segment.list.priority)
            made.owners.append(queue)
            segment.queue = queue._h
        made.lists[at], made.queues[at] = opened._h, segment.queue
        made.count += 1
        segment.list.list = opened._h
        segment.list.dirty = False
        segment.is_open, segment.is_begun = True, False
        with nogil:
            check(segment, list_barrier(opened._h, NULL))   # behind the queue's lists before
            if is_first and segment.begun != NULL:  # the events of the last replay may not have been reset yet
                check(segment, list_wait(opened._h, 1, &segment.begun))
                reset(segment, segment.begun)
        return 0

    cdef int close_list(self, uint32_t branch) except -1:
        cdef Segment* segment = &self.segments[branch]
        if segment.is_open:
            segment.is_open = False
            (<CommandList>self.made.owners[segment.owner]).end()
        return 0

    cdef int signal(self, uint32_t branch, uint32_t i) except -1:
        """Behind node ``i``, which was just appended to the branch's list: let those go on that wait for it."""
        cdef Segment* segment = &self.segments[branch]
        if self.events[i] != NULL:
            with nogil:
                signal_event(segment, self.events[i])
            segment.is_begun = True
        return 0


cdef void* grown(void* handles, uint32_t count) except NULL:
    """Handles with space for one more."""
    cdef void* found = realloc(handles, (count + 1) * sizeof(void*))
    if found == NULL:
        raise MemoryError()
    return found


cdef int check(Segment* segment, ze_result_t result) except -1 nogil:
    return 0 if result == ZE_RESULT_SUCCESS else device_fails(segment.list.device, result)


cdef int signal_event(Segment* segment, ze_event_handle_t event) except -1 nogil:
    return check(segment, signal_behind(&segment.list, event))


cdef int reset(Segment* segment, ze_event_handle_t event) except -1 nogil:
    check(segment, before(&segment.list))
    return check(segment, list_reset_event(segment.list.list, event))


cdef int append(Segment* segment, const l0rt_node* node) except -1 nogil:
    cdef l0rt_stream* list = &segment.list
    if node.kind == NODE_KERNEL:
        return kernel_append(<const l0rt_recorded_launch*>node.payload, list)
    if node.kind == NODE_CALLBACK:
        return 0
    if node.kind == NODE_FILL:
        return check(segment, fill_locked(
            list, <char*>node.target, <const char*>node.payload, node.size, node.nbytes))
    check(segment, before(list))
    if node.kind == NODE_COPY:
        return check(segment, copy_locked(list, node.target, node.source, node.nbytes, NULL))
    return check(segment, rows_locked(
        list, <char*>node.target, <const char*>node.source, <const l0rt_rows*>node.payload, NULL))


def close_all():
    """Destroy what all graphs have, at exit: nothing runs any more."""
    while _there:
        (<Executable>_there.pop()).close()


on_exit(LISTS, close_all)
