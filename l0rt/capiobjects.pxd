# SPDX-License-Identifier: Apache-2.0
# The part of the C API about events, pinned memory, pools, addresses and graphs. `from l0rt.capi cimport *` has it too.

cdef extern from "l0rt/l0rt.h" nogil:
    # opaque, borrowed: owned by l0rt for the life of the process, or by its Stream object
    ctypedef struct l0rt_stream:
        pass
    # opaque: whoever has recorded an event destroys it
    ctypedef struct l0rt_event:
        pass
    # opaque: whoever made a pool or a graph releases it; a scope ends where the pool is left
    ctypedef struct l0rt_pool:
        pass
    ctypedef struct l0rt_pool_scope:
        pass
    ctypedef struct l0rt_graph:
        pass
    ctypedef struct l0rt_pointer_info:
        void* base
        size_t size
        size_t requested
        l0rt_stream* stream
        int device
        int kind
    enum: L0RT_MEMORY_DEVICE
    enum: L0RT_MEMORY_HOST
    enum: L0RT_MEMORY_SHARED

cdef int l0rt_stream_query(l0rt_stream* stream) except -1 nogil
cdef int l0rt_stream_wait_stream(l0rt_stream* stream, l0rt_stream* other) except -1 nogil
cdef int l0rt_event_record(l0rt_event** event, l0rt_stream* stream, unsigned int flags) except -1 nogil
cdef int l0rt_stream_wait_event(l0rt_stream* stream, l0rt_event* event) except -1 nogil
cdef int l0rt_event_query(l0rt_event* event) except -1 nogil
cdef int l0rt_event_synchronize(l0rt_event* event) except -1 nogil
cdef int l0rt_event_elapsed_time(l0rt_event* start, l0rt_event* end, double* milliseconds) except -1 nogil
cdef int l0rt_event_destroy(l0rt_event* event) except -1 nogil
cdef void* l0rt_host_malloc(size_t nbytes, int device) except? NULL nogil
cdef int l0rt_host_free(void* ptr) except -1 nogil
cdef l0rt_pool* l0rt_pool_create() except NULL nogil
cdef int l0rt_pool_release(l0rt_pool* pool) except -1 nogil
cdef l0rt_pool_scope* l0rt_pool_enter(l0rt_pool* pool, int device) except NULL nogil
cdef int l0rt_pool_leave(l0rt_pool_scope* scope) except -1 nogil
cdef int l0rt_pointer_query(const void* ptr, l0rt_pointer_info* info) except -1 nogil
cdef l0rt_graph* l0rt_graph_create() except NULL nogil
cdef int l0rt_graph_begin(l0rt_graph* graph) except -1 nogil
cdef int l0rt_graph_end(l0rt_graph* graph) except -1 nogil
cdef int l0rt_graph_replay(l0rt_graph* graph) except -1 nogil
cdef int l0rt_graph_release(l0rt_graph* graph) except -1 nogil
