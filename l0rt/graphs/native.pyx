# SPDX-License-Identifier: Apache-2.0
"""A graph of the driver's own: its recorder gets the nodes, and a replay is one command of the stream.

The nodes are recorded once they are known, from lists of the graph's own. The streams that l0rt captures do not take
part: whether the driver can record a capture shows only when that is complete.
"""

cimport cython
from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free

from l0rt.core.cmdlist cimport CommandList
from l0rt.core.graph cimport ExecutableGraph, Graph, list_begin_capture
from l0rt._base.factory cimport made_by
from l0rt.graphs.recording cimport Recording
from l0rt.graphs.segment cimport append_node, append_signal, append_wait, fill_list
from l0rt.runtime.streams.capture cimport NODE_CALLBACK, NODE_WAIT, l0rt_capture, l0rt_node
from l0rt.runtime.streams.devices cimport core_context, core_device, event_pool_for
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport device_fails
from l0rt.ze.api cimport ZE_RESULT_SUCCESS, ze_event_handle_t, ze_result_t


cdef bint native_can(Recording recording) noexcept:
    cdef l0rt_capture* capture = recording.capture
    cdef uint32_t i
    for i in range(capture.branch_count):
        if not (capture.branches[i].device.caps.graph_forks or
                capture.branches[i].device.caps.graph and capture.branch_count == 1):
            return False
    return capture.count != 0


@cython.final
@cython.binding(False)
cdef class NativeGraph:
    """Made by ``NativeGraph.build()``."""

    def __init__(self):
        raise TypeError("a NativeGraph is made by an Executable")

    @staticmethod
    cdef NativeGraph build(Recording recording):
        cdef NativeGraph self = NativeGraph.__new__(NativeGraph)
        self.recording = recording
        self.lists = []
        self.streams = <l0rt_stream*>calloc(recording.capture.branch_count, sizeof(l0rt_stream))
        if self.streams == NULL:
            raise MemoryError()
        try:
            open_lists(self)
            record(self)
            self.executable = ExecutableGraph.of(self.graph)
        except BaseException:
            self.close()
            raise
        return self

    cdef bint fits(self, const l0rt_stream* stream) noexcept nogil:
        return stream.ordinal == self.streams[0].ordinal and stream.in_order

    def close(self):
        """Destroy everything; nothing of it may run any more."""
        if self.executable is not None:
            self.executable.close()
        if self.graph is not None:
            self.graph.close()
        while self.lists:
            own = self.lists.pop()
            if own is not None:
                own.close()
        if self.points is not None:
            self.points.close()

    def __dealloc__(self):
        free(self.streams)


made_by(NativeGraph, "a NativeGraph is made by an Executable")


cdef int open_lists(NativeGraph self) except -1:
    """One list for each branch that the end waits for."""
    cdef l0rt_capture* capture = self.recording.capture
    cdef l0rt_stream* stream
    cdef CommandList commands
    cdef uint32_t i
    cdef set used = {0}
    for i in range(1, capture.count + 1):
        if self.recording.is_needed(i):
            used.add(capture.nodes[i - 1].branch)
    for i in range(capture.branch_count):
        stream = &self.streams[i]
        fill_list(stream, capture.branches[i])
        if i not in used:
            self.lists.append(None)
            continue
        commands = CommandList.immediate(core_context(stream.device.index), core_device(stream.device.index),
                                     stream.ordinal, stream.queue, stream.priority, True)
        self.lists.append(commands)
        stream.list = commands._h
    return 0


cdef int record(NativeGraph self) except -1:
    cdef l0rt_capture* capture = self.recording.capture
    cdef ze_event_handle_t* behind = <ze_event_handle_t*>calloc(capture.count + 1, sizeof(ze_event_handle_t))
    cdef CommandList first = self.lists[0]
    cdef ze_result_t r
    cdef bint done = False
    if behind == NULL:
        raise MemoryError()
    try:
        choose_points(self, behind)
        with nogil:
            r = list_begin_capture(first._h)
            if r != ZE_RESULT_SUCCESS:
                device_fails(self.streams[0].device, r)
        try:
            with nogil:
                record_nodes(self, behind)
            done = True
        finally:
            if not done:
                end_quietly(first)
        self.graph = Graph.end_capture(first)
    finally:
        free(behind)
    return 0


cdef int end_quietly(CommandList first) except -1:
    """The driver refused a node: that is what the caller hears of."""
    try:
        Graph.end_capture(first).close()
    except Exception:       # then the end of the list is that of the recording
        pass
    return 0


cdef int choose_points(NativeGraph self, ze_event_handle_t* behind) except -1:
    """An event behind each node that another branch waits for, and one for callbacks, as those of a Plan."""
    cdef l0rt_capture* capture = self.recording.capture
    cdef ze_event_handle_t mark = <ze_event_handle_t><void*>self.streams      # not NULL
    cdef l0rt_node* node
    cdef uint32_t i, count = 0
    for i in range(1, capture.count + 1):
        node = &capture.nodes[i - 1]
        if node.kind == NODE_WAIT and self.recording.is_needed(i):
            count += behind[node.after] == NULL
            behind[node.after] = mark
    if count == 0 and capture.objects == NULL:
        return 0
    self.points = event_pool_for(
        self.streams[0].device.index, count + (capture.objects != NULL), True, False)
    self.callback_event = self.points.events[count] if capture.objects != NULL else NULL
    for i in range(capture.count + 1):
        if behind[i] != NULL:
            count -= 1
            behind[i] = self.points.events[count]
    return 0


cdef int record_nodes(NativeGraph self, const ze_event_handle_t* behind) except -1 nogil:
    cdef l0rt_capture* capture = self.recording.capture
    cdef l0rt_stream* stream
    cdef l0rt_node* node
    cdef uint32_t i
    append_signal(&self.streams[0], behind[0])
    for i in range(1, capture.count + 1):
        node = &capture.nodes[i - 1]
        if not self.recording.is_needed(i):
            continue
        stream = &self.streams[node.branch]
        if node.kind == NODE_WAIT:
            append_wait(stream, behind[node.after])
        else:
            if node.kind == NODE_CALLBACK:
                append_signal(stream, self.callback_event)
            append_node(stream, node, NULL)
        append_signal(stream, behind[i])
    return 0
