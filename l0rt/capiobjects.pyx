# SPDX-License-Identifier: Apache-2.0
"""The part of the C API about events, pinned memory, pools, addresses and graphs, without the GIL."""

from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uintptr_t

from l0rt.capifailure cimport failed, note, refuse_flags, refuse_null
from l0rt.runtime.alloc.heap cimport block_find, block_raw, raw_free
from l0rt.runtime.alloc.deferred_free cimport block_order
from l0rt.runtime.alloc.types cimport RAW_PINNED, l0rt_block
from l0rt.runtime.current.thread cimport current_stream
from l0rt.runtime.memory.device cimport raise_status
from l0rt.runtime.memory.operations cimport l0rt_extent, shared_find
from l0rt.runtime.memory.pinned cimport host_malloc_for
from l0rt.runtime.streams.devices cimport device_record, device_total
from l0rt.runtime.streams.guard_impl cimport L0RT_EVENT_TIMING, l0rt_guard_impl
from l0rt.runtime.streams.naming cimport guard_impl_of
from l0rt.runtime.streams.queue cimport queue_wait_queue
from l0rt.runtime.streams.types cimport l0rt_stream as stream_t

from l0rt.graphs.graph import Graph
from l0rt.runtime.memory.pools import XpuMemPool, use_mem_pool


# The functions of the guard table set an exception as they return a failure. Others are called through a type that
# does not raise: see l0rt.capi.
cdef const l0rt_guard_impl* impl = guard_impl_of(b"xpu")


cdef inline int told(int status) except -1 nogil:
    return status if status >= 0 else failed()


cdef int l0rt_stream_query(l0rt_stream* stream) except -1 nogil:
    if stream == NULL:
        refuse_null(b"a stream")
    return told(impl.query_stream(stream))


cdef int l0rt_stream_wait_stream(l0rt_stream* stream, l0rt_stream* other) except -1 nogil:
    if stream == NULL or other == NULL:
        refuse_null(b"a stream")
    return told((<int (*)(stream_t*, stream_t*) noexcept nogil>queue_wait_queue)(<stream_t*>stream, <stream_t*>other))


cdef int l0rt_event_record(l0rt_event** event, l0rt_stream* stream, unsigned int flags) except -1 nogil:
    if event == NULL or stream == NULL:
        refuse_null(b"a place for the event and a stream")
    if flags & ~<unsigned int>L0RT_EVENT_TIMING:
        refuse_flags(flags, b"an event", L0RT_EVENT_TIMING)
    return told(impl.record_event(<void**>event, stream, flags))


cdef int l0rt_stream_wait_event(l0rt_stream* stream, l0rt_event* event) except -1 nogil:
    if stream == NULL:
        refuse_null(b"a stream")
    return told(impl.block(event, stream))


cdef int l0rt_event_query(l0rt_event* event) except -1 nogil:
    return told(impl.query_event(event))


cdef int l0rt_event_synchronize(l0rt_event* event) except -1 nogil:
    return told(impl.synchronize_event(event))


cdef int l0rt_event_elapsed_time(l0rt_event* start, l0rt_event* end, double* milliseconds) except -1 nogil:
    if start == NULL or end == NULL or milliseconds == NULL:
        refuse_null(b"each of two events and a place for the time")
    return told(impl.elapsed_time(start, end, milliseconds))


cdef int l0rt_event_destroy(l0rt_event* event) except -1 nogil:
    impl.destroy_event(event)
    return 0


cdef void* l0rt_host_malloc(size_t nbytes, int device) except? NULL nogil:
    cdef l0rt_block* block
    cdef stream_t* stream
    if nbytes == 0:
        return NULL
    stream = (<stream_t* (*)(int) noexcept nogil>current_stream)(device)    # checks the index
    block = NULL
    if stream != NULL:
        block = (<l0rt_block* (*)(stream_t*, size_t, void*, bint) noexcept nogil>host_malloc_for)(
            stream, nbytes, NULL, False)
    if block == NULL:
        failed()
        return NULL
    return block_raw(block, RAW_PINNED)


cdef int l0rt_host_free(void* ptr) except -1 nogil:
    cdef int status = raw_free(ptr, RAW_PINNED)
    if status == 0:
        return 0
    (<int (*)(int, const void*) noexcept nogil>raise_status)(status, ptr)
    return failed()


cdef void* kept(object made) noexcept:
    """An object that C holds, with a reference."""
    Py_INCREF(made)
    return <void*>made


cdef int failed_with(error) except -1:
    note(error)
    raise error


cdef int dropped(void* what) except -1 nogil:
    if what != NULL:
        with gil:
            Py_DECREF(<object>what)
    return 0


cdef l0rt_pool* l0rt_pool_create() except NULL nogil:
    with gil:
        try:
            return <l0rt_pool*>kept(XpuMemPool())
        except BaseException as error:
            failed_with(error)


cdef int l0rt_pool_release(l0rt_pool* pool) except -1 nogil:
    return dropped(pool)


cdef l0rt_pool_scope* l0rt_pool_enter(l0rt_pool* pool, int device) except NULL nogil:
    if pool == NULL:
        refuse_null(b"a pool")
    with gil:
        try:
            scope = use_mem_pool(<object><void*>pool, None if device < 0 else device)
            scope.__enter__()
            return <l0rt_pool_scope*>kept(scope)
        except BaseException as error:
            failed_with(error)


cdef int l0rt_pool_leave(l0rt_pool_scope* scope) except -1 nogil:
    if scope == NULL:
        return 0
    with gil:
        try:
            (<object><void*>scope).__exit__(None, None, None)
        except BaseException as error:
            failed_with(error)
        Py_DECREF(<object><void*>scope)
    return 0


cdef int l0rt_pointer_query(const void* ptr, l0rt_pointer_info* info) except -1 nogil:
    cdef l0rt_block* block
    cdef const l0rt_extent* extent
    cdef int i
    if info == NULL:
        refuse_null(b"a place for what is known")
    block = block_find(<void*>ptr)
    if block != NULL:
        for i in range(device_total()):
            if block.arena.heap == device_record(i).heap or block.arena.heap == device_record(i).host_heap:
                info.base, info.size, info.requested = block.ptr, block.size, block.requested
                info.stream, info.device = <l0rt_stream*>block_order(block), i
                info.kind = (L0RT_MEMORY_DEVICE if block.arena.heap == device_record(i).heap else L0RT_MEMORY_HOST)
                return 1
        return 0
    with gil:                   # the record of shared memory is guarded by it
        extent = shared_find(<uintptr_t>ptr)
        if extent != NULL:
            info.base, info.size, info.requested = <void*><uintptr_t>extent.base, extent.nbytes, extent.nbytes
            info.stream, info.device, info.kind = NULL, extent.device, L0RT_MEMORY_SHARED
            return 1
    return 0


class OfC(Graph):
    """A graph that C holds: of the built-in device type, whatever accelerator is current."""


cdef l0rt_graph* l0rt_graph_create() except NULL nogil:
    with gil:
        try:
            return <l0rt_graph*>kept(OfC())
        except BaseException as error:
            failed_with(error)


cdef int l0rt_graph_begin(l0rt_graph* graph) except -1 nogil:
    return graph_do(graph, b"capture_begin")


cdef int l0rt_graph_end(l0rt_graph* graph) except -1 nogil:
    return graph_do(graph, b"capture_end")


cdef int l0rt_graph_replay(l0rt_graph* graph) except -1 nogil:
    return graph_do(graph, b"replay")


cdef int graph_do(l0rt_graph* graph, const char* what) except -1 nogil:
    if graph == NULL:
        refuse_null(b"a graph")
    with gil:
        try:
            getattr(<object><void*>graph, what.decode())()
        except BaseException as error:
            failed_with(error)
    return 0


cdef int l0rt_graph_release(l0rt_graph* graph) except -1 nogil:
    return dropped(graph)
