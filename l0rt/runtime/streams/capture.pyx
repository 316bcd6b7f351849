# SPDX-License-Identifier: Apache-2.0
"""Captures: while a graph is captured, its streams record what they are given instead of issuing it.

A capture has a branch for each stream. Streams join it by waiting for an event of one that is in it. One lock is
around all of this: a stream's branch is read without it only to find out whether there may be one. The same lock is
around what streams have replayed, and around the bit of the hooks that says whether there is a capture.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset, strncpy

from l0rt.core.queue cimport queue_rest
from l0rt.runtime.alloc.atomics cimport mutex_init, mutex_lock, mutex_unlock, pthread_mutex_t, store, store_int
from l0rt.runtime.alloc.share cimport private_pool_hold
from l0rt.runtime.alloc.types cimport l0rt_private_pool
from l0rt.runtime.lazy cimport on_fork_child
from l0rt.runtime.streams.hooks cimport note_captures
from l0rt.runtime.streams.types cimport *
from l0rt.ze.api cimport ZE_RESULT_NOT_READY, ZE_RESULT_SUCCESS, ze_result_t

from l0rt.runtime.lazy import DRAIN, on_exit

cdef extern from *:
    """
    static __thread char l0rt_capturing_thread; /* its address tells threads apart */
    static pthread_mutex_t l0rt_captures_lock = PTHREAD_MUTEX_INITIALIZER;
    """
    char capturing_thread "l0rt_capturing_thread"
    pthread_mutex_t captures_lock "l0rt_captures_lock"

cdef enum:
    LEAVING = 100_000_000       # ns that a queue may need to leave a list whose last event is signalled, if it does

cdef l0rt_capture* _open = NULL
cdef uint64_t _next_id = 1
cdef object _call_at_end = None


# --- The beginning and the end. With the GIL.


cdef l0rt_capture* capture_new(
        l0rt_stream* stream, int mode, l0rt_private_pool* private_pool, l0rt_private_pool* pinned_pool,
        list pools) except NULL:
    global _open, _next_id
    cdef l0rt_capture* capture = <l0rt_capture*>calloc(1, sizeof(l0rt_capture))
    cdef l0rt_branch* branch
    cdef bint taken
    if capture == NULL:
        raise MemoryError()
    capture.mode = mode
    capture.thread = &capturing_thread
    capture.private_pool, capture.pinned_pool, capture.pools = private_pool, pinned_pool, <PyObject*>pools
    with nogil:
        mutex_lock(&captures_lock)
        taken = stream.branch != NULL
        branch = NULL if taken else branch_new(capture, stream)
        if branch != NULL:
            capture.id = _next_id
            _next_id += 1
            capture.is_open = True
            capture.next = _open
            _open = capture
            note_captures(True)
        mutex_unlock(&captures_lock)
    if branch != NULL:
        return capture
    capture_free(capture)
    if taken:
        raise RuntimeError("the stream is in a capture already: end that first")
    raise MemoryError()


cdef l0rt_branch* branch_new(l0rt_capture* capture, l0rt_stream* stream) noexcept nogil:
    """Let a stream record into the capture; NULL without host memory. The lock is held."""
    cdef l0rt_branch* branch
    cdef l0rt_branch** grown
    cdef uint32_t capacity = max(2 * capture.branch_capacity, <uint32_t>4)
    if capture.branch_count == capture.branch_capacity:
        grown = <l0rt_branch**>realloc(capture.branches, capacity * sizeof(l0rt_branch*))
        if grown == NULL:
            return NULL
        capture.branches, capture.branch_capacity = grown, capacity
    branch = <l0rt_branch*>calloc(1, sizeof(l0rt_branch))
    if branch == NULL:
        return NULL
    branch.capture = capture
    branch.stream = stream
    branch.device = stream.device
    branch.index = capture.branch_count
    branch.priority, branch.ordinal, branch.queue = stream.priority, stream.ordinal, stream.queue
    branch.fill_limit, branch.refuses_rows = stream.fill_limit, stream.refuses_rows
    capture.branches[capture.branch_count] = branch
    capture.branch_count += 1
    store(&stream.branch, branch)
    return branch


cdef void close_locked(l0rt_capture* capture, const char* why) noexcept nogil:
    """Its streams are as they were before it began. The lock is held."""
    global _open
    cdef l0rt_capture** at = &_open
    cdef uint32_t i
    if not capture.is_open:
        return
    strncpy(capture.ended_by, why, sizeof(capture.ended_by) - 1)
    capture.is_open = False
    for i in range(capture.branch_count):
        store(&capture.branches[i].stream.branch, NULL)
    while at[0] != capture:
        at = &at[0].next
    at[0] = capture.next
    if _open == NULL:
        note_captures(False)


cdef void capture_close(l0rt_capture* capture) noexcept:
    with nogil:
        mutex_lock(&captures_lock)
        close_locked(capture, b"")
        mutex_unlock(&captures_lock)


def call_where_a_capture_ends(function):
    """Call it on a thread whose capture has ended before its time, by something that the thread itself did."""
    global _call_at_end
    _call_at_end = function


cdef void capture_free(l0rt_capture* capture) noexcept:
    cdef uint32_t i
    for i in range(capture.branch_count):
        free(capture.branches[i])
    for i in range(capture.count):
        free(capture.nodes[i].payload)
    Py_XDECREF(capture.objects)
    free(capture.branches)
    free(capture.nodes)
    free(capture)


cdef bint capture_is_of_thread(const l0rt_capture* capture) noexcept nogil:
    return capture.thread == &capturing_thread


cdef uint64_t capture_number(const l0rt_stream* stream) noexcept nogil:
    cdef uint64_t found
    mutex_lock(&captures_lock)
    found = (<l0rt_branch*>stream.branch).capture.id if stream.branch != NULL else 0
    mutex_unlock(&captures_lock)
    return found


# --- Memory.


cdef bint is_pool_of_capture(const l0rt_private_pool* private_pool) noexcept nogil:
    """Does a capture of this thread allocate from the pool? The lock is held."""
    cdef l0rt_capture* capture = _open
    while capture != NULL and (capture.thread != &capturing_thread or capture.private_pool != private_pool):
        capture = capture.next
    return capture != NULL


cdef l0rt_private_pool* capture_pool(l0rt_stream* stream, l0rt_private_pool* active, bint is_pinned) noexcept nogil:
    cdef l0rt_capture* capture
    cdef l0rt_private_pool* found = NULL
    mutex_lock(&captures_lock)
    if stream.branch != NULL:
        capture = (<l0rt_branch*>stream.branch).capture
        found = capture.pinned_pool if is_pinned else capture.private_pool
        if active != NULL and not is_pool_of_capture(active):
            found = active
        private_pool_hold(found)
    mutex_unlock(&captures_lock)
    return found


cdef int capture_keep(l0rt_stream* stream, l0rt_private_pool* private_pool, pool) except -1:
    cdef list kept = None
    mutex_lock(&captures_lock)
    if stream.branch != NULL:
        kept = <list>(<l0rt_branch*>stream.branch).capture.pools
    mutex_unlock(&captures_lock)
    if kept is None:
        return 0
    for known in kept:
        if known is pool:
            return 0
    kept.append(pool)
    store_int(&private_pool.holders, private_pool.holders + 1)
    return 0


# --- Nodes.


cdef bint add_locked(l0rt_branch* branch, const l0rt_node* node) noexcept nogil:
    cdef l0rt_capture* capture = branch.capture
    cdef uint32_t capacity = max(2 * capture.capacity, <uint32_t>16)
    cdef l0rt_node* grown
    if capture.count == capture.capacity:
        grown = <l0rt_node*>realloc(capture.nodes, capacity * sizeof(l0rt_node))
        if grown == NULL:
            return False
        capture.nodes, capture.capacity = grown, capacity
    capture.nodes[capture.count] = node[0]
    capture.nodes[capture.count].branch = branch.index
    capture.count += 1
    branch.last = capture.count
    return True


cdef int capture_add(l0rt_stream* stream, const l0rt_node* node) except -1 nogil:
    cdef l0rt_branch* branch
    cdef bint added = True
    mutex_lock(&captures_lock)
    branch = <l0rt_branch*>stream.branch
    if branch != NULL:
        added = add_locked(branch, node)
    mutex_unlock(&captures_lock)
    if not added:
        with gil:
            raise MemoryError()
    return branch != NULL


cdef int add_with(l0rt_stream* stream, l0rt_node* node, const void* payload, size_t nbytes) except -1 nogil:
    """With a copy of some bytes."""
    cdef int added = 0
    node.payload = malloc(nbytes)
    if node.payload == NULL:
        with gil:
            raise MemoryError()
    memcpy(node.payload, payload, nbytes)
    try:
        added = capture_add(stream, node)
    finally:
        if added != 1:
            free(node.payload)
    return added


cdef int capture_copy(l0rt_stream* stream, void* target, const void* source, size_t nbytes) except -1 nogil:
    cdef l0rt_node node
    memset(&node, 0, sizeof(node))
    node.kind = NODE_COPY
    node.target, node.source, node.nbytes = target, source, nbytes
    return capture_add(stream, &node)


cdef int capture_rows(l0rt_stream* stream, void* target, const void* source, const l0rt_rows* rows) except -1 nogil:
    cdef l0rt_node node
    memset(&node, 0, sizeof(node))
    node.kind = NODE_ROWS
    node.target, node.source, node.nbytes = target, source, rows.width * rows.height
    return add_with(stream, &node, rows, sizeof(l0rt_rows))


cdef int capture_fill(
        l0rt_stream* stream, void* target, const void* pattern, size_t pattern_size, size_t nbytes) except -1 nogil:
    cdef l0rt_node node
    memset(&node, 0, sizeof(node))
    node.kind = NODE_FILL
    node.target, node.nbytes, node.size = target, nbytes, pattern_size
    return add_with(stream, &node, pattern, pattern_size)


cdef int capture_callback(l0rt_stream* stream, function, tuple args) except -1:
    cdef l0rt_branch* branch
    cdef l0rt_node node
    cdef bint added = False
    kept = []
    memset(&node, 0, sizeof(node))
    node.kind = NODE_CALLBACK
    mutex_lock(&captures_lock)
    branch = <l0rt_branch*>stream.branch
    if branch != NULL:
        if branch.capture.objects == NULL:
            Py_INCREF(kept)
            branch.capture.objects = <PyObject*>kept
        kept = <list>branch.capture.objects
        node.size = len(kept)
        added = add_locked(branch, &node)
    mutex_unlock(&captures_lock)
    if branch != NULL and not added:
        raise MemoryError()
    if added:
        kept.append((function, args))   # with the GIL all along: the place is still the next one
    return added


# --- Events.


cdef l0rt_slot* capture_point(l0rt_stream* stream) except? NULL nogil:
    cdef l0rt_slot* slot = <l0rt_slot*>calloc(1, sizeof(l0rt_slot))
    cdef l0rt_branch* branch
    if slot == NULL:
        with gil:
            raise MemoryError()
    slot.device = stream.device
    slot.refs = 1
    mutex_lock(&captures_lock)
    branch = <l0rt_branch*>stream.branch
    if branch != NULL:
        slot.capture = branch.capture.id
        slot.branch = branch.index
        slot.seq = branch.last
    mutex_unlock(&captures_lock)
    if branch == NULL:
        free(slot)
        return NULL
    return slot


cdef l0rt_capture* find_open(uint64_t id) noexcept nogil:
    cdef l0rt_capture* capture = _open
    while capture != NULL and capture.id != id:
        capture = capture.next
    return capture


cdef bint capture_lasts(const l0rt_slot* slot) noexcept nogil:
    cdef bint lasts
    mutex_lock(&captures_lock)
    lasts = find_open(slot.capture) != NULL
    mutex_unlock(&captures_lock)
    return lasts


cdef bint capture_is_of(const l0rt_stream* stream, const l0rt_slot* slot) noexcept nogil:
    cdef bint same
    mutex_lock(&captures_lock)
    same = stream.branch != NULL and (<l0rt_branch*>stream.branch).capture.id == slot.capture
    mutex_unlock(&captures_lock)
    return same


cdef enum:
    JOINED = 1
    NO_MEMORY = 2
    IS_OVER = 3         # the slot's capture
    IS_OUTSIDE = 4      # the slot, of the stream's capture
    IS_ANOTHER = 5      # the slot's capture than the stream's
    IS_APART = 6        # the stream, on a device that cannot see the capture's events


cdef int join_locked(l0rt_stream* stream, l0rt_slot* slot) noexcept nogil:
    """One of the codes above, or 0. The lock is held."""
    cdef l0rt_branch* branch = <l0rt_branch*>stream.branch
    cdef l0rt_capture* capture = find_open(slot.capture) if slot.event == NULL else NULL
    cdef l0rt_node node
    if slot.event != NULL:
        return 0 if branch == NULL else IS_OUTSIDE
    if capture == NULL:
        return IS_OVER
    if branch != NULL and branch.capture != capture:
        return IS_ANOTHER
    if stream.device.context != capture.branches[0].device.context:
        return IS_APART
    if branch == NULL:
        branch = branch_new(capture, stream)
    if branch == NULL:
        return NO_MEMORY
    if branch.index == slot.branch:
        return JOINED               # in its own order anyway
    memset(&node, 0, sizeof(node))
    node.kind = NODE_WAIT
    node.after_branch, node.after = slot.branch, <uint32_t>slot.seq
    return JOINED if add_locked(branch, &node) else NO_MEMORY


cdef int capture_wait(l0rt_stream* stream, l0rt_slot* slot) except -1 nogil:
    cdef int status
    mutex_lock(&captures_lock)
    status = join_locked(stream, slot)
    mutex_unlock(&captures_lock)
    if status <= JOINED:
        return status
    if status == IS_OUTSIDE:
        return capture_refuse(
            stream, b"wait_event() or wait_stream() for an event that was recorded outside of the capture")
    if status == IS_ANOTHER:
        return capture_refuse(stream, b"wait_event() or wait_stream() for an event of another capture")
    with gil:
        if status == NO_MEMORY:
            raise MemoryError()
        if status == IS_APART:
            raise RuntimeError("a stream of another driver's device cannot join the capture")
        raise RuntimeError("the event was recorded in a capture, which is over: record it again")


# --- What cannot be captured.


cdef int refuse_locked(l0rt_capture* capture, const char* call) noexcept nogil:
    """Unlock, and say whether the capture is over now."""
    cdef bint ends = capture.thread == &capturing_thread
    if ends:
        close_locked(capture, call)
    mutex_unlock(&captures_lock)
    return ends


cdef int raise_refusal(const char* call, bint ends) except -1:
    if ends and _call_at_end is not None:
        _call_at_end()
    raise RuntimeError(f"{call.decode()} cannot be captured" + (": the capture has ended, without a graph" if ends else
                       ": another thread captures a graph, and a host that waits would wait for work that was not "
                       "issued"))


cdef int capture_refuse(const l0rt_stream* stream, const char* call) except -1 nogil:
    cdef bint ends
    mutex_lock(&captures_lock)
    if stream.branch == NULL:
        mutex_unlock(&captures_lock)
        return 0
    ends = refuse_locked((<l0rt_branch*>stream.branch).capture, call)
    with gil:
        return raise_refusal(call, ends)


cdef int capture_refuse_slot(const l0rt_slot* slot, const char* call) except -1 nogil:
    cdef l0rt_capture* capture
    cdef bint ends
    mutex_lock(&captures_lock)
    capture = find_open(slot.capture)
    if capture != NULL:
        ends = refuse_locked(capture, call)
        with gil:
            return raise_refusal(call, ends)
    mutex_unlock(&captures_lock)
    with gil:
        raise RuntimeError(f"{call.decode()}: the event was recorded in a capture, which is over: record it again")


cdef int capture_refuse_device(const l0rt_device* device, const char* call) except -1 nogil:
    cdef l0rt_capture* capture
    cdef uint32_t i
    cdef bint ends
    mutex_lock(&captures_lock)
    capture = _open
    while capture != NULL:
        if capture.mode == MODE_GLOBAL or (
                capture.mode == MODE_THREAD_LOCAL and capture.thread == &capturing_thread):
            for i in range(capture.branch_count):
                if capture.branches[i].device == device:
                    ends = refuse_locked(capture, call)
                    with gil:
                        return raise_refusal(call, ends)
        capture = capture.next
    mutex_unlock(&captures_lock)
    return 0


cdef void capture_lose(l0rt_stream* stream) noexcept nogil:
    cdef bint ends = False
    mutex_lock(&captures_lock)
    if stream.branch != NULL:
        ends = (<l0rt_branch*>stream.branch).capture.thread == &capturing_thread
        close_locked((<l0rt_branch*>stream.branch).capture, b"the end of a stream")
    mutex_unlock(&captures_lock)
    if ends:
        with gil:
            if _call_at_end is not None:
                _call_at_end()


cdef void capture_leave() noexcept nogil:
    cdef l0rt_capture* capture
    mutex_lock(&captures_lock)
    capture = _open
    while capture != NULL:
        if capture.thread == &capturing_thread:
            close_locked(capture, b"the end of the thread")
            capture = _open
        else:
            capture = capture.next
    mutex_unlock(&captures_lock)


cdef void forget_captures() noexcept nogil:
    """In a forked child nothing is captured."""
    mutex_init(&captures_lock, NULL)
    while _open != NULL:
        close_locked(_open, b"a fork")


# --- Replays whose launches may have failed, which only the queues that executed them tell.


cdef void unlink_locked(l0rt_replayed* graph) noexcept nogil:
    cdef l0rt_replayed** at
    if graph.stream != NULL:
        at = &graph.stream.replayed
        while at[0] != graph:
            at = &at[0].next
        at[0] = graph.next
        graph.stream = NULL


cdef void replayed_add(l0rt_stream* stream, l0rt_replayed* graph) noexcept nogil:
    l0rt_store_int(&stream.launched, 1)
    if graph.stream == stream:      # which only who holds its lock changes
        return
    mutex_lock(&captures_lock)
    unlink_locked(graph)
    graph.stream, graph.next = stream, stream.replayed
    stream.replayed = graph
    mutex_unlock(&captures_lock)


cdef void replayed_remove(l0rt_replayed* graph) noexcept nogil:
    mutex_lock(&captures_lock)
    unlink_locked(graph)
    mutex_unlock(&captures_lock)


cdef ze_result_t replayed_failure(const l0rt_replayed* graph, uint64_t timeout_ns) noexcept nogil:
    cdef ze_result_t r, all = ZE_RESULT_SUCCESS
    cdef uint32_t i
    for i in range(graph.count):
        if i == 0 or graph.queues[i] != graph.queues[i - 1]:
            r = queue_rest(graph.queues[i], timeout_ns)
            if r != ZE_RESULT_SUCCESS and r != ZE_RESULT_NOT_READY:
                return r
            if r == ZE_RESULT_NOT_READY:
                all = r
    return all


cdef ze_result_t replays_failure(l0rt_stream* stream, bint is_over) noexcept nogil:
    cdef l0rt_replayed* graph
    cdef l0rt_replayed* next
    cdef ze_result_t r, all = ZE_RESULT_SUCCESS
    if stream.replayed == NULL:
        return all
    mutex_lock(&captures_lock)
    graph = stream.replayed
    while graph != NULL and (all == ZE_RESULT_SUCCESS or all == ZE_RESULT_NOT_READY):
        next = graph.next
        r = replayed_failure(graph, LEAVING if is_over else 0)
        if r != ZE_RESULT_SUCCESS:
            all = r
        elif is_over:
            unlink_locked(graph)
        graph = next
    mutex_unlock(&captures_lock)
    return all


def _close():
    """At exit, before streams are waited for."""
    with nogil:
        mutex_lock(&captures_lock)
        while _open != NULL:
            close_locked(_open, b"the end of the process")
        mutex_unlock(&captures_lock)


on_fork_child(forget_captures)
on_exit(DRAIN, _close)
