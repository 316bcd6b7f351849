# SPDX-License-Identifier: Apache-2.0
"""What a capture has recorded: nodes in the order in which they were captured, in branches."""

from _thread import RLock
from time import monotonic

cimport cython
from libc.stdint cimport UINT32_MAX, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from l0rt._base.factory cimport made_by
from l0rt.launch.launch cimport check_arguments, l0rt_access, l0rt_recorded_launch, launch_drop
from l0rt.runtime.alloc.allocator cimport Pool
from l0rt.runtime.alloc.atomics cimport store_int
from l0rt.runtime.alloc.types cimport l0rt_private_pool
from l0rt.runtime.current.generator cimport STATE_BYTES, CapturedState, Generator
from l0rt.runtime.current.thread cimport current_device
from l0rt.runtime.streams.capture cimport (
    NODE_CALLBACK,
    NODE_COPY,
    NODE_FILL,
    NODE_KERNEL,
    NODE_ROWS,
    NODE_WAIT,
    capture_close,
    capture_free,
    capture_new,
    capture_refuse_device,
    l0rt_capture,
    l0rt_node,
)
from l0rt.runtime.streams.copy cimport fill_locked
from l0rt.runtime.streams.devices cimport device_at
from l0rt.runtime.streams.hooks cimport EVENT_SYNCHRONIZATION, call_hooks, hooked
from l0rt.runtime.streams.order cimport after
from l0rt.runtime.streams.queue cimport lock, queue_name, queue_open, unlock
from l0rt.runtime.streams.sleep cimport check_awake, is_any_asleep
from l0rt.runtime.streams.types cimport *
from l0rt.ze.api cimport ZE_RESULT_SUCCESS, ze_result_t

from l0rt.buffers.empty import empty
from l0rt.runtime.current.generator import default_generator
from l0rt.runtime.current.stream import default_stream, synchronize
from l0rt.runtime.memory.pools import keep_addresses

cdef double SHORTEST = 50e-6, LONGEST = 5e-3    # seconds between two looks at a callback's place

cdef dict KINDS = {
    NODE_KERNEL: "kernel", NODE_COPY: "copy", NODE_ROWS: "copy", NODE_FILL: "fill", NODE_WAIT: "wait",
    NODE_CALLBACK: "callback"}


class NoNodesError(RuntimeError, AttributeError):
    """Nothing is captured, or no more: ``hasattr`` of what nodes are asked for is False."""


@cython.final
@cython.binding(False)
cdef class Recording:
    """Made by ``Recording.begin()``."""

    @staticmethod
    cdef Recording begin(l0rt_stream* stream, int mode, pool, list states):
        cdef Recording self = Recording.__new__(Recording)
        cdef CapturedState state
        with nogil:
            queue_open(stream)
        self.turn, self.pools, self.states = RLock(), [pool], states
        self.pinned_pool = Pool()
        cdef size_t private_pool = keep_addresses(pool, True)
        store_int(&self.pinned_pool.private_pool.holders, 1)
        try:
            self.capture = capture_new(
                stream, mode, <l0rt_private_pool*>private_pool, self.pinned_pool.private_pool, self.pools)
        except BaseException:
            keep_addresses(pool, False)
            raise
        try:
            for state in states:
                state.begin(self.capture.id)
        except BaseException:
            self.close()
            raise
        return self

    cdef int end(self) except -1:
        cdef l0rt_capture* capture = self.capture
        cdef l0rt_node* node
        cdef uint32_t i
        end_states(self.states)
        capture_close(capture)
        if capture.ended_by[0] != 0:
            raise RuntimeError(f"there is no graph: {(<char*>capture.ended_by).decode()} ended the capture")
        self.joined = <uint32_t*>calloc(capture.branch_count, sizeof(uint32_t))
        if self.joined == NULL:
            raise MemoryError()
        self.joined[0] = UINT32_MAX
        for i in range(capture.count, 0, -1):
            node = &capture.nodes[i - 1]
            if node.kind == NODE_WAIT and i <= self.joined[node.branch]:
                self.joined[node.after_branch] = max(self.joined[node.after_branch], node.after)
        for i in range(1, capture.count + 1):
            node = &capture.nodes[i - 1]
            if node.kind != NODE_WAIT and i > self.joined[node.branch]:
                raise RuntimeError(
                    f"there is no graph: {queue_name(capture.branches[node.branch].stream)} was not joined. Before the "
                    "end of the capture, the stream that it began on must wait for all others")
        place_callbacks(self)
        return 0

    cdef int advance(self, l0rt_stream* stream) except -1:
        cdef CapturedState state
        cdef uint64_t[2] begins     # the seed, the offset
        for state in self.states:
            if state.words != 0:
                state.replayed(&begins[0], &begins[1])
                write(stream, <char*><size_t>state.place, begins, STATE_BYTES)
        if self.called is not None:
            self.number += 1
            write(stream, <char*><size_t>self.places.ptr, &self.number, sizeof(uint64_t))
        return 0

    cdef bint is_needed(self, uint32_t i) noexcept nogil:
        return i <= self.joined[self.capture.nodes[i - 1].branch]

    cdef int check_asleep(self) except -1:
        cdef const l0rt_recorded_launch* launch
        cdef l0rt_node* node
        cdef uint32_t i
        for i in range(self.capture.count if is_any_asleep() else 0):
            node = &self.capture.nodes[i]
            check_awake(node.target, node.source)
            if node.kind == NODE_KERNEL:
                launch = <const l0rt_recorded_launch*>node.payload
                check_arguments(launch.args, launch.count)
        return 0

    cdef int take_turn(self) except -1:
        self.turn.acquire()
        if self.is_busy:            # by this thread, in a signal handler or a finalizer
            self.turn.release()
            raise RuntimeError("the graph is in use by a call of this thread, which is not over")
        self.is_busy = True
        return 0

    cdef int end_turn(self) except -1:
        self.is_busy = False
        self.turn.release()
        return 0

    cdef int check_open(self) except -1:
        if self.capture == NULL:
            raise NoNodesError("the graph was reset or dropped: its nodes are gone")
        return 0

    cdef int announce_change(self) except -1:
        cdef size_t count = self.capture.count + 1
        if self.changed == NULL:
            self.news = <uint32_t*>calloc(count, sizeof(uint32_t))
            self.changed = <uint64_t*>calloc(count, sizeof(uint64_t)) if self.news != NULL else NULL
            if self.changed == NULL:
                free(self.news)
                self.news = NULL
                raise MemoryError()
        self.now += 1
        return 0

    cdef void note_change(self, uint32_t i) noexcept:
        if self.changed[i] <= self.looked:
            self.news[self.news_count] = i
            self.news_count += 1
        self.changed[i] = self.now

    cdef void take_news(self) noexcept:
        self.news_count = 0
        self.looked = self.now

    cdef int close(self) except -1:
        """Drop it; nothing of it may run any more. In a turn, if it is of a graph that others may know."""
        cdef l0rt_capture* capture = self.capture
        cdef uint32_t i
        if capture == NULL:
            return 0
        self.capture = NULL
        end_states(self.states)
        self.states = self.called = self.places = None
        if capture.is_open:
            capture_close(capture)
        for i in range(capture.count):
            if capture.nodes[i].kind == NODE_KERNEL:
                launch_drop(<l0rt_recorded_launch*>capture.nodes[i].payload)
        capture_free(capture)
        pools, self.pools = self.pools, None
        store_int(&self.pinned_pool.private_pool.holders, 0)
        self.pinned_pool = None     # what it has is given back by what follows
        for pool in pools:
            keep_addresses(pool, False)
        return 0

    def __dealloc__(self):
        free(self.joined)
        free(self.changed)
        free(self.news)


made_by(Recording, "a Recording is made by a Graph")


@cython.final
@cython.binding(False)
cdef class Place:
    """Made by ``Place.of()``."""

    @staticmethod
    cdef Place of(Recording recording, size_t at, end):
        cdef Place self = Place.__new__(Place)
        self.places, self.end, self.number = recording.places, end, recording.number
        self.reached = &(<uint64_t*><size_t>recording.places.ptr)[at]
        return self

    def synchronize(self, timeout=None):
        """Wait until the work before it is complete. Lists have no event that is new in each replay, so the host looks
        for the number from time to time, in steps of an eighth of the wait, and meanwhile waits for the replay's end,
        which also raises what went wrong."""
        cdef double began = monotonic(), elapsed = 0
        while l0rt_load64(self.reached) < self.number:
            pause = min(max(SHORTEST, elapsed / 8), LONGEST)
            if timeout is not None:
                pause = min(pause, timeout - elapsed)
                if pause <= 0:
                    return False
            if self.end.synchronize(pause, policy="block"):
                break
            elapsed = monotonic() - began
        if hooked:
            call_hooks(EVENT_SYNCHRONIZATION, <uint64_t>self.reached, 0, 0, 0)
        return True


made_by(Place, "a Place is made by a Graph")


cdef int rest_before_capture() except -1:
    capture_refuse_device(device_at(current_device()), b"the beginning of another capture")
    synchronize()
    return 0


cdef list states_of(list generators, int index):
    """What a capture of streams of this device draws from. The memory is no node's, and so of the default stream."""
    cdef Generator default = default_generator(index)
    cdef Generator generator
    states = []
    for registered in [default, *generators]:
        generator = registered
        if generator.index != index:
            raise ValueError(f"the graph is of device {index}, a generator that was registered of {generator.device}")
        if generator.state is not default.state or generator is default:
            memory = empty(STATE_BYTES, device=index, stream=default_stream(index))
            states.append(CapturedState.create(generator, memory))
    return states


cdef int end_states(list states) except -1:
    cdef CapturedState state
    for state in states:
        state.end()
    return 0


cdef int place_callbacks(Recording self) except -1:
    """Each callback is a copy of the replay's number to a place of its own, which the host reads."""
    cdef l0rt_capture* capture = self.capture
    cdef uint64_t* places
    cdef uint32_t i, at = 0
    if capture.objects == NULL:
        return 0
    objects = <list>capture.objects
    self.places = empty(sizeof(uint64_t) * (len(objects) + 1), device=capture.branches[0].device.index, kind="host")
    places = <uint64_t*><size_t>self.places.ptr
    memset(places, 0, sizeof(uint64_t) * (len(objects) + 1))
    self.called = []
    for i in range(capture.count):
        if capture.nodes[i].kind == NODE_CALLBACK:
            at += 1
            capture.nodes[i].source, capture.nodes[i].target = places, &places[at]
            self.called.append((capture.nodes[i].branch, at, *objects[capture.nodes[i].size]))
    return 0


cdef int write(l0rt_stream* stream, char* place, const void* what, size_t nbytes) except -1:
    """Before the nodes of a replay."""
    cdef ze_result_t r
    with nogil:
        lock(stream)
        r = fill_locked(stream, place, <const char*>what, nbytes, nbytes)
        if r == ZE_RESULT_SUCCESS:
            r = after(stream)
        unlock(stream, r)
    return 0


cdef str node_kind(const l0rt_node* node):
    return KINDS[node.kind]


cdef node_name(Recording self, const l0rt_node* node):
    if node.kind == NODE_KERNEL:
        return (<const l0rt_recorded_launch*>node.payload).kernel.name.decode("utf-8", "replace")
    if node.kind == NODE_CALLBACK:
        function = (<list>self.capture.objects)[node.size][0]
        return getattr(function, "__name__", type(function).__name__)
    return None


def described(Recording recording not None):
    """Return the nodes as (kind, name, the stream's name, its index, bytes, (index of the stream, node) that it waits
    for)."""
    cdef l0rt_capture* capture
    cdef l0rt_node* node
    cdef uint32_t i
    rows = []
    with recording.turn:
        capture = recording.capture
        for i in range(capture.count if capture != NULL else 0):
            node = &capture.nodes[i]
            rows.append((
                node_kind(node), node_name(recording, node), queue_name(capture.branches[node.branch].stream),
                node.branch, node.nbytes, (node.after_branch, node.after) if node.kind == NODE_WAIT else None))
    return rows


def accesses_at(size_t address):
    """Return the nodes of the graph that the hook of a replay is being called for, each as (index of the stream, (index
    of the stream, node) that it waits for, [(address, bytes, whether it writes, what it is)], the point that a host
    waits for)."""
    cdef Recording recording = <Recording><void*>address
    cdef l0rt_capture* capture
    cdef l0rt_node* node
    cdef uint32_t i
    nodes = []
    with recording.turn:
        capture = recording.capture
        for i in range(capture.count if capture != NULL else 0):
            node = &capture.nodes[i]
            nodes.append((
                node.branch, (node.after_branch, node.after) if node.kind == NODE_WAIT else None,
                accesses_of(node), <size_t>node.target if node.kind == NODE_CALLBACK else 0))
    return nodes


cdef list accesses_of(const l0rt_node* node):
    cdef const l0rt_recorded_launch* launch
    cdef const l0rt_access* access
    cdef const l0rt_rows* rows
    cdef size_t low = <size_t>node.target, source = <size_t>node.source, at
    cdef list accesses = []
    if node.kind == NODE_FILL:
        return [(low, node.nbytes, True, "fill")]
    if node.kind == NODE_COPY:
        return [(source, node.nbytes, False, "copy from"), (low, node.nbytes, True, "copy to")]
    if node.kind == NODE_ROWS:      # row by row: what lies between two rows is not copied
        rows = <const l0rt_rows*>node.payload
        for at in range(rows.height):
            accesses.append((source + at * rows.source_pitch, rows.width, False, "copy from"))
            accesses.append((low + at * rows.target_pitch, rows.width, True, "copy to"))
    elif node.kind == NODE_KERNEL:
        launch = <const l0rt_recorded_launch*>node.payload
        for at in range(launch.count):
            access = &launch.accesses[at]
            low = (<const size_t*>launch.args[at].value)[0] if access.nbytes != 0 else 0
            if access.nbytes != 0 and access.how & 1:
                accesses.append((low, access.nbytes, False, "kernel, read"))
            if access.nbytes != 0 and access.how & 2:
                accesses.append((low, access.nbytes, True, "kernel, write"))
    return accesses
