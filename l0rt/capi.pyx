# SPDX-License-Identifier: Apache-2.0
# Long: one function of the table after another, each a few lines; a call of another library would cost each of them.
"""The C API: the functions of the runtime for Cython, C and C++, without the GIL."""

import os
import struct

from cpython.exc cimport PyErr_Fetch, PyErr_Restore
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_New
from cpython.pyport cimport PY_SSIZE_T_MAX
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdint cimport UINT64_MAX, int64_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset

from l0rt.launch.built cimport (
    l0rt_kernel as kernel_t,
    l0rt_module as module_t,
    module_kernel,
    module_open,
    module_release,
)
from l0rt.launch.launch cimport kernel_launch, l0rt_access, l0rt_arg as arg_t

from l0rt.runtime.alloc.arena cimport (
    arena_serve,
    block_return,
    l0rt_return_rest,
    l0rt_serve_rest,
    raw_try,
    raw_try_free,
)
from l0rt.runtime.alloc.atomics cimport load, load_int
from l0rt.runtime.alloc.deferred_free cimport block_mark, block_move, block_order, block_use, pending_poll
from l0rt.runtime.alloc.heap cimport block_find, block_raw, raw_free
from l0rt.runtime.alloc.page_map cimport map_start
from l0rt.runtime.alloc.stats cimport heap_allocated_bytes, heap_stats
from l0rt.runtime.alloc.types cimport (
    L0RT_INVALID_POINTER,
    L0RT_OWNED,
    RAW,
    RAW_PINNED,
    l0rt_arena,
    l0rt_block,
    l0rt_heap,
    l0rt_stats,
)
from l0rt.runtime.current.failure cimport attach, fail_with, failure_last, note_failure
from l0rt.runtime.current.generator cimport Generator
from l0rt.runtime.current.thread cimport (
    current_device,
    current_stream,
    exchange_device,
    exchange_stream,
    restore,
    thread_peek,
)
from l0rt.runtime.lazy cimport LazyInit
from l0rt.runtime.memory.active_pool cimport arena_asked
from l0rt.runtime.memory.device cimport malloc_slow, raise_status
from l0rt.runtime.memory.operations cimport knows_streams, l0rt_extent, shared_find
from l0rt.runtime.memory.pinned cimport host_malloc_for
from l0rt.runtime.streams.copy cimport queue_copy, queue_fill
from l0rt.runtime.streams.devices cimport device_record, device_total, ensure
from l0rt.runtime.streams.guard_impl cimport L0RT_EVENT_TIMING, l0rt_guard_impl
from l0rt.runtime.streams.naming cimport guard_impl_of
from l0rt.runtime.streams.queue cimport queue_share, queue_synchronize, queue_wait_queue
from l0rt.runtime.streams.stream_pool cimport device_synchronize, pool_stream
from l0rt.runtime.streams.types cimport l0rt_device, l0rt_stream as stream_t

from l0rt.graphs.graph import MODES, Graph, begin_with
from l0rt.graphs.pool import pool_named
from l0rt.kernels.compiler import translated
from l0rt.launch.spirv import Spirv
from l0rt.runtime.current.generator import XpuGenerator, default_generator
from l0rt.runtime.memory import device as device_memory
from l0rt.runtime.memory import pinned as host_memory
from l0rt.runtime.memory.pools import XpuMemPool, use_mem_pool
from l0rt.runtime.streams.devices import lazy

cdef extern from "l0rt/l0rt.h" nogil:
    ctypedef struct l0rt_api:
        uint32_t version
        uint32_t size
        void* init
        void* device_count
        void* current_device
        void* exchange_device
        void* current_stream
        void* exchange_stream
        void* pool_stream
        void* stream_handle
        void* stream_synchronize
        void* device_synchronize
        void* malloc
        void* free
        void* free_async
        void* record_stream
        void* memcpy_async
        void* memset_async
        void* last_error
        void* record_use
        void* guard_impl_of
        void* module_create
        void* module_release
        void* kernel_get
        void* launch
        void* stream_query
        void* stream_wait_stream
        void* event_record
        void* stream_wait_event
        void* event_query
        void* event_synchronize
        void* event_elapsed_time
        void* event_destroy
        void* host_malloc
        void* host_free
        void* pool_create
        void* pool_release
        void* pool_enter
        void* pool_leave
        void* pointer_query
        void* graph_create
        void* graph_begin
        void* graph_end
        void* graph_replay
        void* graph_release
        void* launch_with_offset
        void* is_open
        void* count_devices
        void* exchange_device_stream
        void* fill_async
        void* get_memory_stats
        void* memory_allocated
        void* memory_info
        void* memory_reset_stats
        void* memory_empty_cache
        void* memory_set_limit
        void* pool_id
        void* pool_find
        void* graph_create_with
        void* graph_begin_with
        void* graph_instantiate
        void* graph_reset
        void* graph_pool
        void* graph_dump
        void* graph_register_generator
        void* generator_create
        void* generator_default
        void* generator_release
        void* generator_get
        void* generator_set
        void* generator_draw
        void* generator_place
    int L0RT_API_VERSION


cdef const l0rt_guard_impl* impl = guard_impl_of(b"xpu")
cdef LazyInit opening = lazy


cdef int refuse_null(const char* what) except -1 nogil:
    with gil:
        fail_with(ValueError(f"{what.decode()} is needed, got NULL"))


cdef int refuse_flags(unsigned int flags, const char* whose, int known) except -1 nogil:
    with gil:
        fail_with(ValueError(f"the flags of {whose.decode()} must be 0 or {known}, got {flags}"))


# What raises, called through a type that does not: Cython would take the GIL after each call to look for an exception.
# Its -1 or NULL is looked at below; the exception stays set for whoever called from Python.
ctypedef int (*quiet_void)() noexcept nogil
ctypedef int (*quiet_int)(int) noexcept nogil
ctypedef stream_t* (*quiet_stream)(int) noexcept nogil
ctypedef module_t* (*quiet_open)(void*, int, const char*, size_t, const char*) noexcept
ctypedef kernel_t* (*quiet_find)(module_t*, bytes) noexcept
ctypedef int (*quiet_launch)(
    kernel_t*, const uint32_t*, const uint32_t*, const uint32_t*, const arg_t*, uint32_t, bint, stream_t*,
    const l0rt_access*) noexcept nogil


cdef inline int try_ensure() noexcept nogil:
    return (<quiet_void>ensure)()


cdef inline int try_exchange_device(int device) noexcept nogil:
    return (<quiet_int>exchange_device)(device)


cdef inline stream_t* try_current_stream(int device) noexcept nogil:
    return (<quiet_stream>current_stream)(device)


cdef inline l0rt_block* try_malloc_slow(stream_t* stream, size_t nbytes) noexcept nogil:
    return (<l0rt_block* (*)(stream_t*, size_t) noexcept nogil>malloc_slow)(stream, nbytes)


cdef inline int note_failed() noexcept nogil:
    return (<quiet_void>note_failure)()


cdef inline stream_t* stream_on(int device) noexcept nogil:
    """The thread's current stream; NULL: an exception is set. It asks again where the exception could not be kept."""
    cdef stream_t* stream = try_current_stream(device)
    return stream if stream != NULL or not attach() else try_current_stream(device)


cdef int of_device(int device) except -1 nogil:
    """An index that is valid; -1 means the current device."""
    cdef stream_t* stream = stream_on(device)
    return note_failure() if stream == NULL else stream.device.index


cdef int l0rt_init() except -1 nogil:
    attach()
    return note_failure() if try_ensure() < 0 else 0


cdef int l0rt_device_count() except -1 nogil:
    attach()
    return note_failure() if try_ensure() < 0 else device_total()


cdef int l0rt_is_open() noexcept nogil:
    with gil:
        return opening.is_ready()


cdef int l0rt_count_devices() except -1 nogil:
    return impl.device_count()


cdef int l0rt_current_device() noexcept nogil:
    return current_device()


cdef int l0rt_exchange_device(int device) except -1 nogil:
    cdef int previous = try_exchange_device(device)
    if previous < 0 and attach():       # the exception could not be kept: ask again
        previous = try_exchange_device(device)
    return note_failure() if previous < 0 else previous


cdef l0rt_stream* l0rt_current_stream(int device) except NULL nogil:
    cdef stream_t* stream = stream_on(device)
    if stream != NULL:
        return <l0rt_stream*>stream
    note_failure()
    return NULL


cdef l0rt_stream* l0rt_exchange_stream(l0rt_stream* stream) except NULL nogil:
    cdef stream_t* previous
    if stream == NULL:
        refuse_null(b"a stream")
    attach()
    previous = (<stream_t* (*)(stream_t*) noexcept nogil>exchange_stream)(<stream_t*>stream)
    if previous == NULL:
        note_failure()
    return <l0rt_stream*>previous


cdef l0rt_stream* l0rt_exchange_device_stream(l0rt_stream* stream) except NULL nogil:
    cdef int device = current_device()
    cdef l0rt_stream* previous = l0rt_exchange_stream(stream)
    restore(device, NULL)
    return previous


cdef l0rt_stream* l0rt_pool_stream(int device, int priority) except NULL nogil:
    cdef stream_t* stream = stream_on(device)   # checks the index, and means the current by -1
    attach()
    if stream != NULL:
        stream = (<stream_t* (*)(void*, int) noexcept nogil>pool_stream)(stream.device, priority)
    if stream == NULL:
        note_failure()
    return <l0rt_stream*>stream


cdef void* l0rt_stream_handle(l0rt_stream* stream) except NULL nogil:
    if stream == NULL:
        refuse_null(b"a stream")
    attach()
    cdef void* handle = (<void* (*)(stream_t*) noexcept nogil>queue_share)(<stream_t*>stream)
    if handle == NULL:
        note_failure()
    return handle


cdef int l0rt_stream_synchronize(l0rt_stream* stream) except -1 nogil:
    if stream == NULL:
        refuse_null(b"a stream")
    attach()
    if (<int (*)(stream_t*, unsigned long) noexcept nogil>queue_synchronize)(<stream_t*>stream, UINT64_MAX) < 0:
        return note_failure()
    return 0


cdef int l0rt_device_synchronize(int device) except -1 nogil:
    cdef stream_t* stream = stream_on(device)
    attach()
    if stream == NULL or (<int (*)(void*, unsigned long) noexcept nogil>device_synchronize)(
            stream.device, UINT64_MAX) < 0:
        return note_failure()
    return 0


# The slow paths are called through these pointers. The compiler would inline functions that it knows into the fast
# paths, which would then save and restore five registers at every hit.
cdef void* (*elsewhere)(size_t, int, stream_t*) noexcept nogil
cdef void* (*asking)(size_t, stream_t*) noexcept nogil
cdef l0rt_serve_rest rest_of_malloc
cdef l0rt_return_rest rest_of_free
cdef int (*slow_path)(void*) noexcept nogil


cdef void* l0rt_malloc(size_t nbytes, int device, l0rt_stream* stream) except? NULL nogil:
    cdef stream_t* on = <stream_t*>stream
    cdef l0rt_arena* arena
    if on != NULL and (device == -1 or device == on.device.index):
        arena = <l0rt_arena*>load(&on.arena)    # once: a thread that enters a pool takes it away
        if arena != NULL:
            return arena_serve(arena, nbytes, True, rest_of_malloc, arena)
        return asking(nbytes, on)
    return elsewhere(nbytes, device, on)


cdef void* malloc_asking(size_t nbytes, stream_t* on) noexcept nogil:
    """Allocate on a stream that names no arena. The thread itself may have one."""
    cdef l0rt_arena* arena = arena_asked(thread_peek(), on)
    if arena == NULL:
        return malloc_slowly(on, nbytes) if nbytes != 0 else NULL
    return arena_serve(arena, nbytes, True, rest_of_malloc, arena)


cdef void* malloc_anywhere(size_t nbytes, int device, stream_t* on) except? NULL nogil:
    """Allocate on a stream that must be found first."""
    cdef void* arena
    if nbytes == 0:
        return NULL
    if on == NULL:
        on = stream_on(device)
        if on == NULL:
            note_failure()
    elif device != -1 and device != on.device.index:
        refuse_device(device, on.device.index)
    arena = load(&on.arena)
    return malloc_rest(arena, nbytes, False) if arena != NULL else malloc_asking(nbytes, on)


cdef void* malloc_rest(void* who, size_t nbytes, bint locked) noexcept nogil:
    """Allocate a block that is not on top of a class stack. NULL for more than 0 bytes: an exception is set."""
    cdef l0rt_arena* arena = <l0rt_arena*>who
    cdef l0rt_block* block
    if nbytes == 0:
        return NULL
    block = raw_try(arena, nbytes, locked)
    return block.ptr if block != NULL else malloc_slowly(<stream_t*>arena.stream, nbytes)


cdef void* malloc_slowly(stream_t* on, size_t nbytes) noexcept nogil:
    cdef l0rt_block* block
    attach()
    block = try_malloc_slow(on, nbytes)
    if block == NULL:
        note_failed()
        return NULL
    return block_raw(block, RAW)


cdef int refuse_device(int device, int streams) except -1 nogil:
    with gil:
        fail_with(ValueError(f"device {device} is not the stream's device, {streams}"))


cdef int answer(int status, const void* ptr) except -1 nogil:
    if status == 0:
        return 0
    attach()
    (<int (*)(int, const void*) noexcept nogil>raise_status)(status, ptr)
    return note_failure()


cdef int l0rt_free(void* ptr) except -1 nogil:
    cdef l0rt_block* block = map_start(ptr)
    if block != NULL:
        return block_return(block, 0, RAW, rest_of_free)
    return slow_path(ptr)


cdef int free_rest(l0rt_block* block, bint locked) noexcept nogil:
    """Free a block that does not go on top of a class stack. -1: an exception is set."""
    if raw_try_free(block, locked):
        return 0
    return (<int (*)(void*) noexcept nogil>free_slow)(block.ptr)


cdef int free_slow(void* ptr) except -1 nogil:
    return answer(raw_free(ptr, RAW), ptr)


elsewhere = <void* (*)(size_t, int, stream_t*) noexcept nogil>malloc_anywhere
asking = malloc_asking
rest_of_malloc = malloc_rest
rest_of_free = free_rest
slow_path = <int (*)(void*) noexcept nogil>free_slow


cdef int l0rt_free_async(void* ptr, l0rt_stream* stream) except -1 nogil:
    cdef l0rt_block* block
    cdef int status = 0
    if ptr == NULL:
        return 0
    if stream == NULL:
        refuse_null(b"a stream")
    block = block_find(ptr)
    if block != NULL and block.ptr == ptr and block.state & RAW:    # otherwise raw_free returns the error
        status = block_move(block, stream)
    return answer(status if status != 0 else raw_free(ptr, RAW), ptr)


ctypedef int (*use_function)(l0rt_block*, void*) noexcept nogil


cdef int use_with(use_function function, void* ptr, l0rt_stream* stream) except -1 nogil:
    cdef l0rt_block* block
    if ptr == NULL:
        return 0
    if stream == NULL:
        refuse_null(b"a stream")
    block = block_find(ptr)
    if block == NULL:
        return answer(L0RT_INVALID_POINTER, ptr)
    return answer(function(block, stream) if knows_streams(block.arena.heap) else L0RT_OWNED, ptr)


cdef int l0rt_record_stream(void* ptr, l0rt_stream* stream) except -1 nogil:
    return use_with(block_use, ptr, stream)


cdef int l0rt_record_use(void* ptr, l0rt_stream* stream) except -1 nogil:
    return use_with(block_mark, ptr, stream)


cdef int l0rt_memcpy_async(void* dst, const void* src, size_t nbytes, l0rt_stream* stream) except -1 nogil:
    if stream == NULL:
        stream = l0rt_current_stream(-1)
    if nbytes != 0 and (dst == NULL or src == NULL):
        refuse_null(b"an address to copy to and from")
    attach()
    if (<int (*)(stream_t*, void*, const void*, size_t) noexcept nogil>queue_copy)(
            <stream_t*>stream, dst, src, nbytes) < 0:
        return note_failure()
    return 0


cdef int l0rt_memset_async(void* dst, int value, size_t nbytes, l0rt_stream* stream) except -1 nogil:
    cdef unsigned char byte = value & 0xFF
    return l0rt_fill_async(dst, &byte, 1, nbytes, stream)


cdef int l0rt_fill_async(
        void* dst, const void* pattern, size_t pattern_size, size_t nbytes, l0rt_stream* stream) except -1 nogil:
    if stream == NULL:
        stream = l0rt_current_stream(-1)
    if pattern == NULL or (nbytes != 0 and dst == NULL):
        refuse_null(b"an address to fill" if pattern != NULL else b"a pattern")
    if pattern_size not in (1, 2, 4, 8, 16) or nbytes % pattern_size != 0:
        refuse_pattern(pattern_size, nbytes)
    attach()
    if (<int (*)(stream_t*, void*, const void*, size_t, size_t) noexcept nogil>queue_fill)(
            <stream_t*>stream, dst, pattern, pattern_size, nbytes) < 0:
        return note_failure()
    return 0


cdef int refuse_pattern(size_t pattern_size, size_t nbytes) except -1 nogil:
    with gil:
        fail_with(ValueError(f"a pattern must have 1, 2, 4, 8 or 16 bytes, a divisor of what is filled: got "
                             f"{pattern_size} bytes to fill {nbytes}"))


cdef int l0rt_last_error(char* text, size_t size) noexcept nogil:
    """Copy the text of the calling thread's last failure; return its code: a result's number, -1: another, 0: none."""
    return failure_last(text, size)


cdef const l0rt_guard_impl* l0rt_guard_impl_of(const char* type) except NULL nogil:
    cdef const l0rt_guard_impl* impl
    if type == NULL:
        refuse_null(b"a device type's name")
    impl = guard_impl_of(type)
    if impl == NULL:
        refuse_type(type)
    return impl


cdef int refuse_type(const char* type) except -1 nogil:
    with gil:
        fail_with(NotImplementedError(f"no guard table for device type {type.decode('utf-8', 'replace')}"))


cdef l0rt_module* l0rt_module_create(
        int device, const void* code, size_t nbytes, int format, const char* options) except NULL nogil:
    cdef stream_t* stream
    cdef module_t* made = NULL
    if code == NULL:
        refuse_null(b"a module's code")
    attach()
    stream = try_current_stream(device)     # checks the index, and means the current by -1
    if stream != NULL:
        with gil:
            made = (<quiet_open>open_module)(stream.device, format, <const char*>code, nbytes, options)
    if made == NULL:
        note_failure()
    return <l0rt_module*>made


cdef module_t* open_module(
        void* device, int format, const char* code, size_t nbytes, const char* options) except NULL:
    if nbytes > <size_t>PY_SSIZE_T_MAX // 2:     # a copy that has a head would be larger than anything
        raise ValueError(f"a module's code cannot have {nbytes} bytes")
    binary = code[:nbytes]
    if format == L0RT_MODULE_OPENCL_C:
        words = options.decode() if options != NULL else ""
        compiled, rest = translated(binary, words, (<l0rt_device*>device).index)
        return module_open(<l0rt_device*>device, L0RT_MODULE_SPIRV, compiled.spirv, rest.encode(), None)
    if format == L0RT_MODULE_SPIRV:
        Spirv(binary)
    elif format != L0RT_MODULE_NATIVE:
        raise ValueError(f"a module's format must be {L0RT_MODULE_SPIRV}, {L0RT_MODULE_NATIVE} or "
                         f"{L0RT_MODULE_OPENCL_C}, got {format}")
    return module_open(<l0rt_device*>device, format, binary, options if options != NULL else b"", None)


cdef int l0rt_module_release(l0rt_module* module) except -1 nogil:
    cdef PyObject* kind
    cdef PyObject* value
    cdef PyObject* trace
    if module != NULL:
        with gil:
            PyErr_Fetch(&kind, &value, &trace)      # a caller that gives up releases what it has: that failure stays
            module_release(<module_t*>module)
            PyErr_Restore(kind, value, trace)
    return 0


cdef l0rt_kernel* l0rt_kernel_get(l0rt_module* module, const char* name) except NULL nogil:
    cdef kernel_t* kernel
    if module == NULL:
        refuse_null(b"a module")
    if name == NULL:
        refuse_null(b"a kernel's name")
    attach()
    with gil:
        kernel = (<quiet_find>module_kernel)(<module_t*>module, name)
    if kernel == NULL:
        note_failure()
    return <l0rt_kernel*>kernel


cdef int l0rt_launch(
        l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* group_size, const l0rt_arg* args, uint32_t count,
        unsigned int flags, l0rt_stream* stream) except -1 nogil:
    return launch(kernel, groups, group_size, NULL, args, count, flags, stream)


cdef int l0rt_launch_with_offset(
        l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* group_size, const uint32_t* global_offset,
        const l0rt_arg* args, uint32_t count, unsigned int flags, l0rt_stream* stream) except -1 nogil:
    if global_offset == NULL:
        refuse_null(b"a global offset")
    if global_offset[0] == 0 and global_offset[1] == 0 and global_offset[2] == 0:
        global_offset = NULL
    return launch(kernel, groups, group_size, global_offset, args, count, flags, stream)


cdef inline int launch(
        l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* group_size, const uint32_t* offset,
        const l0rt_arg* args, uint32_t count, unsigned int flags, l0rt_stream* stream) except -1 nogil:
    cdef stream_t* on = <stream_t*>stream
    if kernel == NULL or groups == NULL or group_size == NULL or (args == NULL and count != 0):
        refuse_null(b"each of kernel, sizes and arguments")
    if flags & ~<unsigned int>L0RT_LAUNCH_COOPERATIVE:
        refuse_flags(flags, b"a launch", L0RT_LAUNCH_COOPERATIVE)
    attach()
    if on == NULL:
        on = try_current_stream((<kernel_t*>kernel).module.device.index)
        if on == NULL:
            return note_failure()
    if (<quiet_launch>kernel_launch)(
            <kernel_t*>kernel, groups, group_size, offset, <const arg_t*>args, count, flags != 0, on,
            NULL) < 0:
        return note_failure()
    return 0


# The functions of the guard table note a failure themselves, as those of this table do.


cdef int l0rt_stream_query(l0rt_stream* stream) except -1 nogil:
    if stream == NULL:
        refuse_null(b"a stream")
    return impl.query_stream(stream)


cdef int l0rt_stream_wait_stream(l0rt_stream* stream, l0rt_stream* other) except -1 nogil:
    if stream == NULL or other == NULL:
        refuse_null(b"a stream")
    attach()
    if (<int (*)(stream_t*, stream_t*) noexcept nogil>queue_wait_queue)(<stream_t*>stream, <stream_t*>other) < 0:
        return note_failure()
    return 0


cdef int l0rt_event_record(l0rt_event** event, l0rt_stream* stream, unsigned int flags) except -1 nogil:
    if event == NULL or stream == NULL:
        refuse_null(b"a place for the event and a stream")
    if flags & ~<unsigned int>L0RT_EVENT_TIMING:
        refuse_flags(flags, b"an event", L0RT_EVENT_TIMING)
    return impl.record_event(<void**>event, stream, flags)


cdef int l0rt_stream_wait_event(l0rt_stream* stream, l0rt_event* event) except -1 nogil:
    if stream == NULL:
        refuse_null(b"a stream")
    return impl.block(event, stream)


cdef int l0rt_event_query(l0rt_event* event) except -1 nogil:
    return impl.query_event(event)


cdef int l0rt_event_synchronize(l0rt_event* event) except -1 nogil:
    return impl.synchronize_event(event)


cdef int l0rt_event_elapsed_time(l0rt_event* start, l0rt_event* end, double* milliseconds) except -1 nogil:
    if start == NULL or end == NULL or milliseconds == NULL:
        refuse_null(b"each of two events and a place for the time")
    return impl.elapsed_time(start, end, milliseconds)


cdef int l0rt_event_destroy(l0rt_event* event) except -1 nogil:
    impl.destroy_event(event)
    return 0


cdef void* l0rt_host_malloc(size_t nbytes, int device) except? NULL nogil:
    cdef l0rt_block* block
    cdef stream_t* stream
    if nbytes == 0:
        return NULL
    attach()
    stream = try_current_stream(device)     # checks the index
    block = NULL
    if stream != NULL:
        block = (<l0rt_block* (*)(stream_t*, size_t, void*, bint) noexcept nogil>host_malloc_for)(
            stream, nbytes, NULL, False)
    if block == NULL:
        note_failure()
        return NULL
    return block_raw(block, RAW_PINNED)


cdef int l0rt_host_free(void* ptr) except -1 nogil:
    cdef int status = raw_free(ptr, RAW_PINNED)
    if status == 0:
        return 0
    attach()
    (<int (*)(int, const void*) noexcept nogil>raise_status)(status, ptr)
    return note_failure()


cdef void* kept(object made) noexcept:
    """An object that C holds, with a reference."""
    Py_INCREF(made)
    return <void*>made


cdef int dropped(void* what) except -1 nogil:
    if what != NULL:
        with gil:
            Py_DECREF(<object>what)
    return 0


cdef inline l0rt_heap* heap_at(int index, int kind) noexcept nogil:
    """The heap of an existing device; NULL while nothing was allocated."""
    cdef l0rt_device* device = device_record(index)
    return <l0rt_heap*>load(&device.heap if kind == L0RT_MEMORY_DEVICE else &device.host_heap)


cdef int refuse_kind(int kind) except -1 nogil:
    with gil:
        fail_with(ValueError(f"the kind of memory must be {L0RT_MEMORY_DEVICE} or {L0RT_MEMORY_HOST}, got {kind}"))


cdef inline bint has_heap(int kind) noexcept nogil:
    return kind == L0RT_MEMORY_DEVICE or kind == L0RT_MEMORY_HOST


cdef int l0rt_get_memory_stats(int device, int kind, l0rt_memory_stats* stats, size_t size) except -1 nogil:
    cdef l0rt_heap* heap
    cdef l0rt_stats now
    if stats == NULL:
        refuse_null(b"a place for the statistics")
    if not has_heap(kind):
        refuse_kind(kind)
    heap = heap_at(of_device(device), kind)
    if heap == NULL:
        memset(stats, 0, size)
        return 0
    if load_int(&heap.has_gone) != 0:
        pending_poll(heap)
    heap_stats(heap, &now)
    memset(stats, 0, size)
    memcpy(stats, &now, min(size, sizeof(now)))
    return 0


cdef int64_t l0rt_memory_allocated(int device) except -1 nogil:
    cdef l0rt_heap* heap = heap_at(of_device(device), L0RT_MEMORY_DEVICE)
    return heap_allocated_bytes(heap) if heap != NULL else 0


cdef int l0rt_memory_info(int device, size_t* free, size_t* total) except -1 nogil:
    if free == NULL or total == NULL:
        refuse_null(b"a place for both sizes")
    with gil:
        try:
            free[0], total[0] = device_memory.memory_info(None if device == -1 else device)[:2]
        except BaseException as error:
            fail_with(error)
    return 0


cdef int l0rt_memory_reset_stats(int device, int kind, int what) except -1 nogil:
    if not has_heap(kind):
        refuse_kind(kind)
    if what & ~(L0RT_RESET_PEAKS | L0RT_RESET_TOTALS):
        refuse_flags(what, b"a reset", L0RT_RESET_PEAKS | L0RT_RESET_TOTALS)
    device = of_device(device)
    with gil:
        try:
            module = device_memory if kind == L0RT_MEMORY_DEVICE else host_memory
            if what & L0RT_RESET_PEAKS:
                module.reset_peak_stats(device)
            if what & L0RT_RESET_TOTALS:
                module.reset_accumulated_stats(device)
        except BaseException as error:
            fail_with(error)
    return 0


cdef int l0rt_memory_empty_cache(int kind) except -1 nogil:
    if not has_heap(kind):
        refuse_kind(kind)
    with gil:
        try:
            (device_memory if kind == L0RT_MEMORY_DEVICE else host_memory).empty_cache()
        except BaseException as error:
            fail_with(error)
    return 0


cdef int l0rt_memory_set_limit(int device, uint64_t nbytes) except -1 nogil:
    device = of_device(device)
    with gil:
        try:
            device_memory.set_limit(None if nbytes == UINT64_MAX else nbytes, device)
        except BaseException as error:
            fail_with(error)
    return 0


cdef l0rt_pool* l0rt_pool_create() except NULL nogil:
    with gil:
        try:
            return <l0rt_pool*>kept(XpuMemPool())
        except BaseException as error:
            fail_with(error)


cdef int l0rt_pool_release(l0rt_pool* pool) except -1 nogil:
    return dropped(pool)


cdef int l0rt_pool_id(l0rt_pool* pool, uint64_t* id) except -1 nogil:
    if pool == NULL or id == NULL:
        refuse_null(b"a pool and a place for its id")
    with gil:
        id[0], id[1] = (<object><void*>pool).id
    return 0


cdef l0rt_pool* l0rt_pool_find(const uint64_t* id) except NULL nogil:
    if id == NULL:
        refuse_null(b"a pool's id")
    with gil:
        try:
            return <l0rt_pool*>kept(pool_named((id[0], id[1])))
        except BaseException as error:
            fail_with(error)


cdef l0rt_pool_scope* l0rt_pool_enter(l0rt_pool* pool, int device) except NULL nogil:
    if pool == NULL:
        refuse_null(b"a pool")
    with gil:
        try:
            scope = use_mem_pool(<object><void*>pool, None if device < 0 else device)
            scope.__enter__()
            return <l0rt_pool_scope*>kept(scope)
        except BaseException as error:
            fail_with(error)


cdef int l0rt_pool_leave(l0rt_pool_scope* scope) except -1 nogil:
    cdef PyObject* kind
    cdef PyObject* value
    cdef PyObject* trace
    if scope == NULL:
        return 0
    with gil:
        PyErr_Fetch(&kind, &value, &trace)          # as in module_release
        try:
            (<object><void*>scope).__exit__(None, None, None)
        except BaseException as error:
            Py_XDECREF(kind)
            Py_XDECREF(value)
            Py_XDECREF(trace)
            fail_with(error)
        Py_DECREF(<object><void*>scope)
        PyErr_Restore(kind, value, trace)
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
            fail_with(error)


cdef l0rt_graph* l0rt_graph_create_with(unsigned int flags) except NULL nogil:
    if flags & ~<unsigned int>L0RT_GRAPH_KEEP:
        refuse_flags(flags, b"a graph", L0RT_GRAPH_KEEP)
    with gil:
        try:
            return <l0rt_graph*>kept(OfC(keep_graph=flags != 0))
        except BaseException as error:
            fail_with(error)


cdef int l0rt_graph_begin(l0rt_graph* graph) except -1 nogil:
    return graph_do(graph, b"capture_begin")


cdef int l0rt_graph_begin_with(l0rt_graph* graph, l0rt_pool* pool, const char* mode) except -1 nogil:
    if graph == NULL:
        refuse_null(b"a graph")
    with gil:
        try:
            name = "default" if mode == NULL else mode.decode()
            if name not in MODES:
                raise ValueError(f"the mode of a capture must be one of {', '.join(MODES)}, got {name!r}")
            begin_with(<object><void*>graph, None if pool == NULL else <object><void*>pool, name)
        except BaseException as error:
            fail_with(error)
    return 0


cdef int l0rt_graph_end(l0rt_graph* graph) except -1 nogil:
    return graph_do(graph, b"capture_end")


cdef int l0rt_graph_instantiate(l0rt_graph* graph) except -1 nogil:
    return graph_do(graph, b"instantiate")


cdef int l0rt_graph_replay(l0rt_graph* graph) except -1 nogil:
    return graph_do(graph, b"replay")


cdef int l0rt_graph_reset(l0rt_graph* graph) except -1 nogil:
    return graph_do(graph, b"reset")


cdef l0rt_pool* l0rt_graph_pool(l0rt_graph* graph) except NULL nogil:
    if graph == NULL:
        refuse_null(b"a graph")
    with gil:
        try:
            return <l0rt_pool*>kept(pool_named((<object><void*>graph).pool()))
        except BaseException as error:
            fail_with(error)


cdef int l0rt_graph_dump(l0rt_graph* graph, const char* path) except -1 nogil:
    if graph == NULL or path == NULL:
        refuse_null(b"a graph and a path")
    with gil:
        try:
            (<object><void*>graph).debug_dump(os.fsdecode(path))
        except BaseException as error:
            fail_with(error)
    return 0


cdef int l0rt_graph_register_generator(l0rt_graph* graph, l0rt_generator* generator) except -1 nogil:
    if graph == NULL or generator == NULL:
        refuse_null(b"a graph and a generator")
    with gil:
        try:
            (<object><void*>graph).register_generator_state(<object><void*>generator)
        except BaseException as error:
            fail_with(error)
    return 0


cdef int graph_do(l0rt_graph* graph, const char* what) except -1 nogil:
    if graph == NULL:
        refuse_null(b"a graph")
    with gil:
        try:
            getattr(<object><void*>graph, what.decode())()
        except BaseException as error:
            fail_with(error)
    return 0


cdef int l0rt_graph_release(l0rt_graph* graph) except -1 nogil:
    return dropped(graph)


cdef l0rt_generator* l0rt_generator_create(int device) except NULL nogil:
    device = of_device(device)
    with gil:
        try:
            return <l0rt_generator*>kept(XpuGenerator(device))
        except BaseException as error:
            fail_with(error)


cdef l0rt_generator* l0rt_generator_default(int device) except NULL nogil:
    device = of_device(device)
    with gil:
        try:
            return <l0rt_generator*>kept(default_generator(device))
        except BaseException as error:
            fail_with(error)


cdef int l0rt_generator_release(l0rt_generator* generator) except -1 nogil:
    return dropped(generator)


cdef int l0rt_generator_get(l0rt_generator* generator, uint64_t* seed, uint64_t* offset) except -1 nogil:
    if generator == NULL or seed == NULL or offset == NULL:
        refuse_null(b"a generator and places for its seed and its offset")
    with gil:
        state = (<Generator><void*>generator).state
        seed[0], offset[0] = state.seed, state.offset
    return 0


cdef int l0rt_generator_set(l0rt_generator* generator, uint64_t seed, uint64_t offset) except -1 nogil:
    if generator == NULL:
        refuse_null(b"a generator")
    with gil:
        try:
            (<object><void*>generator).set_state(struct.pack("<QQ", seed, offset))
        except BaseException as error:
            fail_with(error)
    return 0


cdef int l0rt_generator_draw(
        l0rt_generator* generator, uint64_t words, uint64_t* seed, uint64_t* offset) except -1 nogil:
    if generator == NULL or seed == NULL or offset == NULL:
        refuse_null(b"a generator and places for its seed and its offset")
    with gil:
        try:
            seed[0], offset[0] = (<object><void*>generator).philox_engine_inputs(words)
        except BaseException as error:
            fail_with(error)
    return 0


cdef int l0rt_generator_place(
        l0rt_generator* generator, uint64_t words, void** seed, void** offset, uint64_t* within) except -1 nogil:
    if generator == NULL or seed == NULL or offset == NULL or within == NULL:
        refuse_null(b"a generator and places for two addresses and a number")
    with gil:
        try:
            first, second, within[0] = (<object><void*>generator).philox_state(words)
            seed[0], offset[0] = <void*><uintptr_t>first, <void*><uintptr_t>second
        except BaseException as error:
            fail_with(error)
    return 0


cdef l0rt_api _api
_api.version = L0RT_API_VERSION
_api.size = sizeof(l0rt_api)
_api.init = <void*>l0rt_init
_api.device_count = <void*>l0rt_device_count
_api.current_device = <void*>l0rt_current_device
_api.exchange_device = <void*>l0rt_exchange_device
_api.current_stream = <void*>l0rt_current_stream
_api.exchange_stream = <void*>l0rt_exchange_stream
_api.pool_stream = <void*>l0rt_pool_stream
_api.stream_handle = <void*>l0rt_stream_handle
_api.stream_synchronize = <void*>l0rt_stream_synchronize
_api.device_synchronize = <void*>l0rt_device_synchronize
_api.malloc = <void*>l0rt_malloc
_api.free = <void*>l0rt_free
_api.free_async = <void*>l0rt_free_async
_api.record_stream = <void*>l0rt_record_stream
_api.memcpy_async = <void*>l0rt_memcpy_async
_api.memset_async = <void*>l0rt_memset_async
_api.last_error = <void*>l0rt_last_error
_api.record_use = <void*>l0rt_record_use
_api.guard_impl_of = <void*>l0rt_guard_impl_of
_api.module_create = <void*>l0rt_module_create
_api.module_release = <void*>l0rt_module_release
_api.kernel_get = <void*>l0rt_kernel_get
_api.launch = <void*>l0rt_launch
_api.stream_query = <void*>l0rt_stream_query
_api.stream_wait_stream = <void*>l0rt_stream_wait_stream
_api.event_record = <void*>l0rt_event_record
_api.stream_wait_event = <void*>l0rt_stream_wait_event
_api.event_query = <void*>l0rt_event_query
_api.event_synchronize = <void*>l0rt_event_synchronize
_api.event_elapsed_time = <void*>l0rt_event_elapsed_time
_api.event_destroy = <void*>l0rt_event_destroy
_api.host_malloc = <void*>l0rt_host_malloc
_api.host_free = <void*>l0rt_host_free
_api.pool_create = <void*>l0rt_pool_create
_api.pool_release = <void*>l0rt_pool_release
_api.pool_enter = <void*>l0rt_pool_enter
_api.pool_leave = <void*>l0rt_pool_leave
_api.pointer_query = <void*>l0rt_pointer_query
_api.graph_create = <void*>l0rt_graph_create
_api.graph_begin = <void*>l0rt_graph_begin
_api.graph_end = <void*>l0rt_graph_end
_api.graph_replay = <void*>l0rt_graph_replay
_api.graph_release = <void*>l0rt_graph_release
_api.launch_with_offset = <void*>l0rt_launch_with_offset
_api.is_open = <void*>l0rt_is_open
_api.count_devices = <void*>l0rt_count_devices
_api.exchange_device_stream = <void*>l0rt_exchange_device_stream
_api.fill_async = <void*>l0rt_fill_async
_api.get_memory_stats = <void*>l0rt_get_memory_stats
_api.memory_allocated = <void*>l0rt_memory_allocated
_api.memory_info = <void*>l0rt_memory_info
_api.memory_reset_stats = <void*>l0rt_memory_reset_stats
_api.memory_empty_cache = <void*>l0rt_memory_empty_cache
_api.memory_set_limit = <void*>l0rt_memory_set_limit
_api.pool_id = <void*>l0rt_pool_id
_api.pool_find = <void*>l0rt_pool_find
_api.graph_create_with = <void*>l0rt_graph_create_with
_api.graph_begin_with = <void*>l0rt_graph_begin_with
_api.graph_instantiate = <void*>l0rt_graph_instantiate
_api.graph_reset = <void*>l0rt_graph_reset
_api.graph_pool = <void*>l0rt_graph_pool
_api.graph_dump = <void*>l0rt_graph_dump
_api.graph_register_generator = <void*>l0rt_graph_register_generator
_api.generator_create = <void*>l0rt_generator_create
_api.generator_default = <void*>l0rt_generator_default
_api.generator_release = <void*>l0rt_generator_release
_api.generator_get = <void*>l0rt_generator_get
_api.generator_set = <void*>l0rt_generator_set
_api.generator_draw = <void*>l0rt_generator_draw
_api.generator_place = <void*>l0rt_generator_place

_C_API = PyCapsule_New(&_api, b"l0rt.capi._C_API", NULL)


def __dir__():
    return ["__pyx_capi__"]
