# SPDX-License-Identifier: Apache-2.0
"""Segments: the parts of a recording that become closed command lists, and what is in each list.

A segment has what one stream was given between two waits. So a list waits only in its beginning, for lists that are
executed before it: they may all go to one hardware queue, and none blocks another for ever.

The first list waits for the stream that replays; the first of each other branch waits for that. The last list signals
the stream. Who alone waits for an event resets it; the last list resets the others, behind everything that waits for
them.
"""

cimport cython
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from l0rt.core.cmdlist cimport (
    CommandList,
    list_barrier,
    list_change,
    list_next_id,
    list_reset,
    list_reset_event,
    list_wait,
)
from l0rt._base.factory cimport made_by
from l0rt.graphs.recording cimport Recording
from l0rt.launch.launch cimport is_null_pointer, kernel_append, l0rt_recorded_launch
from l0rt.runtime.alloc.atomics cimport mutex_init
from l0rt.runtime.streams.capture cimport (
    NODE_CALLBACK,
    NODE_COPY,
    NODE_FILL,
    NODE_KERNEL,
    NODE_WAIT,
    l0rt_branch,
    l0rt_capture,
    l0rt_node,
)
from l0rt.runtime.streams.copy cimport copy_locked, fill_locked, rows_locked
from l0rt.runtime.streams.devices cimport core_context, core_device, event_pool_for
from l0rt.runtime.streams.order cimport before, signal_behind
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport device_fails
from l0rt.ze.api cimport (
    ZE_RESULT_SUCCESS,
    ZE_STRUCTURE_TYPE_MUTABLE_GROUP_COUNT_EXP_DESC,
    ZE_STRUCTURE_TYPE_MUTABLE_GROUP_SIZE_EXP_DESC,
    ZE_STRUCTURE_TYPE_MUTABLE_KERNEL_ARGUMENT_EXP_DESC,
    ze_event_handle_t,
    ze_group_count_t,
    ze_mutable_group_count_exp_desc_t,
    ze_mutable_group_size_exp_desc_t,
    ze_mutable_kernel_argument_exp_desc_t,
    ze_result_t,
)

cdef enum:
    CHAINED = 16        # arguments that one call of the driver changes


@cython.final
@cython.binding(False)
cdef class Version:
    """Made by ``Plan.record()``."""

    def __init__(self):
        raise TypeError("a Version is made by a Plan")

    def close(self):
        """Destroy the list, which must not run any more."""
        self.commands.close()

    def __dealloc__(self):
        free(self.ids)


made_by(Version, "a Version is made by a Plan")


@cython.final
@cython.binding(False)
cdef class Segment:
    """Made by ``Plan.make()``."""

    def __init__(self):
        raise TypeError("a Segment is made by a Plan")

    cdef int add(self, uint32_t i) except -1:
        cdef uint32_t at
        if self.news == NULL:
            self.news = <uint32_t*>calloc(self.count, sizeof(uint32_t))
            if self.news == NULL:
                raise MemoryError()
        for at in range(self.news_count):
            if self.news[at] == i:
                return 0
        self.news[self.news_count] = i
        self.news_count += 1
        return 0

    def __dealloc__(self):
        free(self.news)


made_by(Segment, "a Segment is made by a Plan")


@cython.final
@cython.binding(False)
cdef class Plan:
    """Made by ``Plan.make()``."""

    def __init__(self):
        raise TypeError("a Plan is made by an Executable")

    @staticmethod
    cdef Plan make(Recording recording):
        cdef Plan self = Plan.__new__(Plan)
        cdef l0rt_capture* capture = recording.capture
        cdef uint32_t i
        self.recording = recording
        self.device = capture.branches[0].device
        self.segments = []
        self.lists = <l0rt_stream*>calloc(capture.branch_count, sizeof(l0rt_stream))
        self.opened = <ze_event_handle_t*>calloc(capture.branch_count, sizeof(ze_event_handle_t))
        self.behind = <ze_event_handle_t*>calloc(capture.count + 1, sizeof(ze_event_handle_t))
        self.where = <uint32_t*>calloc(capture.count + 1, sizeof(uint32_t))
        self.place = <uint32_t*>calloc(capture.count + 1, sizeof(uint32_t))
        if (self.lists == NULL or self.opened == NULL or self.behind == NULL or self.where == NULL
                or self.place == NULL):
            raise MemoryError()
        for i in range(capture.branch_count):
            fill_list(&self.lists[i], capture.branches[i])
        events_of(self)
        divide(self)
        return self

    cdef Version record(self, Segment segment):
        cdef Version version = Version.__new__(Version)
        cdef l0rt_stream* list = &self.lists[segment.branch]
        cdef int index = list.device.index
        version.is_mutable = segment.is_mutable
        if version.is_mutable:
            version.ids = <uint64_t*>calloc(segment.count, sizeof(uint64_t))
            if version.ids == NULL:
                raise MemoryError()
        version.commands = CommandList.regular(
            core_context(index), core_device(index), list.ordinal, list.in_order, version.is_mutable)
        try:
            write(self, segment, version)
        except BaseException:
            version.close()
            raise
        return version

    cdef int record_anew(self, Segment segment, Version version) except -1:
        cdef l0rt_stream* list = &self.lists[segment.branch]
        with nogil:
            check(list, list_reset(version.commands._h))
        return write(self, segment, version)

    cdef bint is_stale(self, Segment segment, Version version) noexcept:
        cdef uint32_t at
        for at in range(segment.news_count):
            if self.recording.changed[segment.news[at]] > version.now:
                return True
        return False

    cdef bint change(self, Segment segment, Version version) except -1:
        cdef l0rt_capture* capture = self.recording.capture
        cdef l0rt_stream* list = &self.lists[segment.branch]
        cdef uint64_t now = self.recording.now
        cdef uint32_t at, i
        cdef l0rt_recorded_launch* launch
        if not version.is_mutable:
            return False
        for at in range(segment.news_count):
            i = segment.news[at]
            if self.recording.changed[i] > version.now and not is_mutable(&capture.nodes[i - 1]):
                return False
        for at in range(segment.news_count):
            i = segment.news[at]
            if self.recording.changed[i] > version.now:
                launch = <l0rt_recorded_launch*>capture.nodes[i - 1].payload
                list.list = version.commands._h
                with nogil:
                    change_launch(list, version, version.ids[self.place[i]], launch)
        version.commands.end()
        version.now = now
        return True

    def close(self):
        """Destroy the events, which nothing may use any more."""
        if self.pool is not None:
            self.pool.close()

    def __dealloc__(self):
        free(self.lists)
        free(self.opened)
        free(self.behind)
        free(self.where)
        free(self.place)


made_by(Plan, "a Plan is made by an Executable")


# --- Planning.


cdef void fill_list(l0rt_stream* list, const l0rt_branch* branch) noexcept:
    list.device, list.kind = branch.device, STREAM_RECORDED
    list.ordinal, list.queue, list.priority = branch.ordinal, branch.queue, branch.priority
    list.fill_limit, list.refuses_rows = branch.fill_limit, branch.refuses_rows
    list.in_order = branch.device.caps.inorder
    mutex_init(&list.lock, NULL)


cdef int events_of(Plan self) except -1:
    """One event behind each node that a branch waits for, one for the beginning of each branch, two for the stream
    that replays, and one for callbacks."""
    cdef l0rt_capture* capture = self.recording.capture
    cdef ze_event_handle_t mark = <ze_event_handle_t><void*>self.lists    # not NULL
    cdef uint32_t i, count = 0
    for i in range(1, capture.count + 1):
        if self.recording.is_needed(i):
            if capture.nodes[i - 1].branch != 0 and self.opened[capture.nodes[i - 1].branch] == NULL:
                self.opened[capture.nodes[i - 1].branch] = mark
                count += 1
            if capture.nodes[i - 1].kind == NODE_WAIT:
                count += self.behind[capture.nodes[i - 1].after] == NULL
                self.behind[capture.nodes[i - 1].after] = mark
    self.pool = event_pool_for(self.device.index, count + 3, False, False)
    for i in range(capture.count + 1):
        if self.behind[i] != NULL:
            count -= 1
            self.behind[i] = self.pool.events[count + 3]
    for i in range(1, capture.branch_count):
        if self.opened[i] != NULL:
            count -= 1
            self.opened[i] = self.pool.events[count + 3]
    self.start_event, self.end_event = self.pool.events[0], self.pool.events[1]
    self.callback_event = self.pool.events[2]
    return 0


cdef Segment open_segment(Plan self, uint32_t branch, bint is_opening):
    """A new one of the branch: it is executed behind all so far."""
    cdef Segment segment = Segment.__new__(Segment)
    segment.at, segment.branch, segment.is_opening = len(self.segments), branch, is_opening
    self.segments.append(segment)
    return segment


cdef int divide(Plan self) except -1:
    cdef l0rt_capture* capture = self.recording.capture
    cdef list newest = [None] * capture.branch_count        # the segments that nodes are added to
    cdef list has_commands = [False] * capture.branch_count        # they have commands, and not only waits
    cdef Segment segment
    cdef l0rt_node* node
    cdef uint32_t i
    newest[0], has_commands[0] = open_segment(self, 0, True), True
    for i in range(1, capture.count + 1):
        node = &capture.nodes[i - 1]
        if not self.recording.is_needed(i):
            continue
        # a list waits in its beginning, and for none that is executed behind it
        if newest[node.branch] is None or (node.kind == NODE_WAIT and (
                has_commands[node.branch] or (<Segment>newest[node.branch]).at + 1 != len(self.segments))):
            newest[node.branch] = open_segment(self, node.branch, newest[node.branch] is None)
            has_commands[node.branch] = False
        segment = newest[node.branch]
        if segment.count == 0:
            segment.first = i
        segment.last = i
        self.where[i], self.place[i] = segment.at, segment.count
        segment.count += 1
        if node.kind != NODE_WAIT or self.behind[i] != NULL:
            has_commands[node.branch] = True
    return 0


# --- Recording.


cdef int check(l0rt_stream* list, ze_result_t result) except -1 nogil:
    return 0 if result == ZE_RESULT_SUCCESS else device_fails(list.device, result)


cdef int append_signal(l0rt_stream* list, ze_event_handle_t event) except -1 nogil:
    return 0 if event == NULL else check(list, signal_behind(list, event))


cdef int append_wait(l0rt_stream* list, ze_event_handle_t event) except -1 nogil:
    return check(list, list_wait(list.list, 1, &event))


cdef int reset(l0rt_stream* list, ze_event_handle_t event) except -1 nogil:
    check(list, before(list))
    return check(list, list_reset_event(list.list, event))


cdef int append_node(l0rt_stream* list, const l0rt_node* node, uint64_t* number) except -1 nogil:
    """`number` of a launch in a mutable list: where the driver's is put."""
    if node.kind == NODE_KERNEL:
        if number != NULL and is_mutable(node):
            check(list, list_next_id(list.list, number))
        return kernel_append(<const l0rt_recorded_launch*>node.payload, list)
    if node.kind == NODE_FILL:
        return check(list, fill_locked(list, <char*>node.target, <const char*>node.payload, node.size, node.nbytes))
    check(list, before(list))
    if node.kind == NODE_CALLBACK:      # behind what makes the host see all that was done before
        return check(list, copy_locked(list, node.target, node.source, sizeof(uint64_t), NULL))
    if node.kind == NODE_COPY:
        return check(list, copy_locked(list, node.target, node.source, node.nbytes, NULL))
    return check(list, rows_locked(
        list, <char*>node.target, <const char*>node.source, <const l0rt_rows*>node.payload, NULL))


cdef int begin_list(Plan self, Segment segment, l0rt_stream* list) except -1 nogil:
    cdef uint32_t i
    list.dirty = False
    check(list, list_barrier(list.list, NULL))      # behind the queue's lists before
    if segment.is_opening and segment.branch != 0:  # the events of the last replay may not have been reset yet
        append_wait(list, self.opened[segment.branch])
        reset(list, self.opened[segment.branch])
    elif segment.is_opening:
        append_wait(list, self.start_event)
        for i in range(1, self.recording.capture.branch_count):
            append_signal(list, self.opened[i])
        append_signal(list, self.behind[0])
    return 0


cdef int end_list(Plan self, l0rt_stream* list) except -1 nogil:
    """The last list of the first branch."""
    cdef uint32_t i
    for i in range(self.recording.capture.count + 1):
        if self.behind[i] != NULL:
            reset(list, self.behind[i])
    reset(list, self.start_event)
    return append_signal(list, self.end_event)


cdef bint is_last_of_first(Plan self, Segment segment) noexcept:
    cdef Segment other
    for other in reversed(self.segments):
        if other.branch == 0:
            return other is segment
    return False


cdef int write(Plan self, Segment segment, Version version) except -1:
    """Append the commands to the version's list, and close it."""
    cdef l0rt_stream* list = &self.lists[segment.branch]
    cdef l0rt_capture* capture = self.recording.capture
    cdef uint64_t now = self.recording.now
    cdef bint ends = segment.branch == 0 and is_last_of_first(self, segment)
    cdef l0rt_node* node
    cdef uint32_t i
    list.list = version.commands._h
    with nogil:
        begin_list(self, segment, list)
        for i in range(max(segment.first, <uint32_t>1), segment.last + 1):
            node = &capture.nodes[i - 1]
            if node.branch != segment.branch or not self.recording.is_needed(i):
                continue
            if node.kind == NODE_WAIT:
                append_wait(list, self.behind[node.after])
            else:
                if node.kind == NODE_CALLBACK:
                    append_signal(list, self.callback_event)
                append_node(list, node, NULL if version.ids == NULL else &version.ids[self.place[i]])
            append_signal(list, self.behind[i])
        if ends:
            end_list(self, list)
    version.commands.end()
    version.now = now
    return 0


# --- Changing.


cdef bint is_mutable(const l0rt_node* node) noexcept nogil:
    return node.kind == NODE_KERNEL and not (<const l0rt_recorded_launch*>node.payload).cooperative


cdef int change_launch(
        l0rt_stream* list, Version version, uint64_t number, const l0rt_recorded_launch* launch) except -1 nogil:
    cdef ze_mutable_kernel_argument_exp_desc_t args[CHAINED]
    cdef ze_mutable_group_count_exp_desc_t groups
    cdef ze_mutable_group_size_exp_desc_t size
    cdef ze_group_count_t count
    cdef const void* chain = NULL
    cdef uint32_t i, used = 0
    if launch.changed[launch.count] > version.now:
        memset(&groups, 0, sizeof(groups))
        groups.stype, groups.pNext, groups.commandId = ZE_STRUCTURE_TYPE_MUTABLE_GROUP_COUNT_EXP_DESC, chain, number
        count.groupCountX, count.groupCountY, count.groupCountZ = launch.groups[0], launch.groups[1], launch.groups[2]
        groups.pGroupCount = &count
        chain = &groups
    if launch.changed[launch.count + 1] > version.now:
        memset(&size, 0, sizeof(size))
        size.stype, size.pNext, size.commandId = ZE_STRUCTURE_TYPE_MUTABLE_GROUP_SIZE_EXP_DESC, chain, number
        size.groupSizeX, size.groupSizeY, size.groupSizeZ = (
            launch.group_size[0], launch.group_size[1], launch.group_size[2])
        chain = &size
    for i in range(launch.count):
        if launch.changed[i] <= version.now:
            continue
        if used == CHAINED:
            check(list, list_change(list.list, chain))
            chain, used = NULL, 0
        memset(&args[used], 0, sizeof(args[used]))
        args[used].stype, args[used].pNext = ZE_STRUCTURE_TYPE_MUTABLE_KERNEL_ARGUMENT_EXP_DESC, chain
        args[used].commandId, args[used].argIndex = number, i
        args[used].argSize = launch.args[i].size
        args[used].pArgValue = launch.args[i].value
        if is_null_pointer(launch.kernel, i, &launch.args[i]):
            args[used].pArgValue = NULL
        chain = &args[used]
        used += 1
    return 0 if chain == NULL else check(list, list_change(list.list, chain))
