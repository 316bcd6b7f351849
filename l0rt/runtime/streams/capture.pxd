# SPDX-License-Identifier: Apache-2.0
# What a graph is made of, recorded instead of being issued.

from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t

from l0rt.runtime.alloc.types cimport l0rt_private_pool
from l0rt.runtime.streams.hooks cimport CAPTURES, hooked
from l0rt.runtime.streams.types cimport l0rt_device, l0rt_replayed, l0rt_rows, l0rt_slot, l0rt_stream
from l0rt.ze.api cimport ze_result_t


cdef enum:
    NODE_KERNEL = 0
    NODE_COPY
    NODE_ROWS           # a copy of rows
    NODE_FILL
    NODE_WAIT           # of a branch, for what another was given before
    NODE_CALLBACK       # of the host

cdef enum:
    MODE_THREAD_LOCAL = 0
    MODE_GLOBAL
    MODE_RELAXED

# One thing that a stream was given. Numbers of nodes begin with 1; 0 is the beginning of a branch.
cdef struct l0rt_node:
    int kind
    uint32_t branch
    uint32_t after_branch       # a wait: behind this node of that branch
    uint32_t after
    void* target
    const void* source
    uint64_t nbytes
    uint64_t size               # of a fill's pattern; of a callback: its place among the objects
    void* payload               # its own: a pattern, rows, a kernel's launch


# What one stream gives to a graph. The stream's facts are copied: it may be gone when the graph is built.
cdef struct l0rt_branch:
    l0rt_capture* capture
    l0rt_stream* stream
    l0rt_device* device
    uint32_t index
    uint32_t last               # its newest node
    int priority
    int ordinal
    int queue
    size_t fill_limit
    bint refuses_rows


cdef struct l0rt_capture:
    uint64_t id
    int mode
    bint is_open                # streams record into it
    char[96] ended_by           # what ended it before its time; empty: nothing
    char* thread                # which began it
    l0rt_branch** branches      # the first is of the stream that it began on
    uint32_t branch_count
    uint32_t branch_capacity
    l0rt_node* nodes
    uint32_t count
    uint32_t capacity
    PyObject* objects           # callbacks: a list of (function, arguments)
    l0rt_private_pool* private_pool     # where memory of its streams comes from,
    l0rt_private_pool* pinned_pool      # and pinned memory for them
    PyObject* pools             # borrowed, while it is open: a list of the pools that it keeps
    l0rt_capture* next          # of those that are open


# Is anything being captured, and from this stream? Else nothing below is called.
cdef inline bint captures(const l0rt_stream* stream) noexcept nogil:
    return hooked >> CAPTURES & 1 and stream.branch != NULL


cdef l0rt_capture* capture_new(
    l0rt_stream* stream, int mode, l0rt_private_pool* private_pool, l0rt_private_pool* pinned_pool,
    list pools) except NULL
# Streams record no more: the capture's is what they gave so far.
cdef void capture_close(l0rt_capture* capture) noexcept
# Free what a closed capture has, but for what its payloads refer to.
cdef void capture_free(l0rt_capture* capture) noexcept
# None may be open any more.
cdef bint capture_is_of_thread(const l0rt_capture* capture) noexcept nogil
# The number of the capture that a stream is in; 0: none.
cdef uint64_t capture_number(const l0rt_stream* stream) noexcept nogil

# The pool of an allocation for the stream, held until `private_pool_release`: the capture's own, or `active`, the
# innermost one that the thread is in (or NULL), where that is no capture's. NULL: it is captured no more.
cdef l0rt_private_pool* capture_pool(l0rt_stream* stream, l0rt_private_pool* active, bint is_pinned) noexcept nogil
# The stream's capture keeps a pool, whose record this is, as it keeps its own.
cdef int capture_keep(l0rt_stream* stream, l0rt_private_pool* private_pool, pool) except -1

# Of a stream that is captured: record this and return 1. 0: it is captured no more. `node` comes with its payload,
# which is the capture's from then on, and otherwise stays the caller's.
cdef int capture_add(l0rt_stream* stream, const l0rt_node* node) except -1 nogil
cdef int capture_copy(l0rt_stream* stream, void* target, const void* source, size_t nbytes) except -1 nogil
cdef int capture_rows(l0rt_stream* stream, void* target, const void* source, const l0rt_rows* rows) except -1 nogil
cdef int capture_fill(
    l0rt_stream* stream, void* target, const void* pattern, size_t pattern_size, size_t nbytes) except -1 nogil
cdef int capture_callback(l0rt_stream* stream, function, tuple args) except -1

# A slot that stands for what the stream was given so far, and has no native event. NULL: it is captured no more.
cdef l0rt_slot* capture_point(l0rt_stream* stream) except? NULL nogil
# The stream waits for a slot, where either is of a capture: it joins the slot's. 0: neither is any more.
cdef int capture_wait(l0rt_stream* stream, l0rt_slot* slot) except -1 nogil
# Is what a slot without a native event stands for still being recorded? Once it is not, nothing waits for it.
cdef bint capture_lasts(const l0rt_slot* slot) noexcept nogil
# Is it of the capture that the stream is in?
cdef bint capture_is_of(const l0rt_stream* stream, const l0rt_slot* slot) noexcept nogil

# `call` cannot be captured: raise, and if the calling thread is the one that began the capture, end that.
cdef int capture_refuse(const l0rt_stream* stream, const char* call) except -1 nogil
cdef int capture_refuse_slot(const l0rt_slot* slot, const char* call) except -1 nogil
cdef int capture_refuse_device(const l0rt_device* device, const char* call) except -1 nogil
# The stream's holder gives it back.
cdef void capture_lose(l0rt_stream* stream) noexcept nogil
# The calling thread ends.
cdef void capture_leave() noexcept nogil

# The stream has replayed this graph, whose launches may have failed: who waits for the stream asks the queues, too. The
# stream's lock is held.
cdef void replayed_add(l0rt_stream* stream, l0rt_replayed* graph) noexcept nogil
# Its queues are about to end.
cdef void replayed_remove(l0rt_replayed* graph) noexcept nogil
# What the queues tell of a launch that has failed; NOT_READY while one of them is in a list.
cdef ze_result_t replayed_failure(const l0rt_replayed* graph, uint64_t timeout_ns) noexcept nogil
# Has a launch failed of a graph that the stream has replayed? With `is_over` the replays' events are signalled, the
# queues are waited for, and nobody needs to ask again, unless it is NOT_READY. The stream's lock is held.
cdef ze_result_t replays_failure(l0rt_stream* stream, bint is_over) noexcept nogil
