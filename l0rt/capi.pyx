# SPDX-License-Identifier: Apache-2.0
"""The C API: the functions of the runtime for Cython, C and C++, without the GIL."""

from cpython.pycapsule cimport PyCapsule_New
from cpython.pyport cimport PY_SSIZE_T_MAX
from libc.stdint cimport UINT64_MAX, uint32_t

from l0rt.capifailure cimport failed, failure_last, note, refuse_flags, refuse_null
from l0rt.capiobjects cimport *
from l0rt.kernels.built cimport (
    l0rt_kernel as kernel_t,
    l0rt_module as module_t,
    module_kernel,
    module_open,
    module_release,
)
from l0rt.kernels.launch cimport kernel_launch, l0rt_arg as arg_t

from l0rt.runtime.alloc.arena cimport (
    arena_serve,
    block_return,
    l0rt_return_rest,
    l0rt_serve_rest,
    raw_try,
    raw_try_free,
)
from l0rt.runtime.alloc.atomics cimport load
from l0rt.runtime.alloc.deferred_free cimport block_mark, block_move, block_use
from l0rt.runtime.alloc.heap cimport block_find, block_raw, raw_free
from l0rt.runtime.alloc.page_map cimport map_start
from l0rt.runtime.alloc.types cimport L0RT_INVALID_POINTER, L0RT_OWNED, RAW, l0rt_arena, l0rt_block
from l0rt.runtime.current.thread cimport current_device, current_stream, exchange_device, exchange_stream, thread_peek
from l0rt.runtime.memory.active_pool cimport arena_asked
from l0rt.runtime.memory.device cimport malloc_slow, raise_status
from l0rt.runtime.memory.operations cimport knows_streams
from l0rt.runtime.streams.copy cimport queue_copy, queue_fill
from l0rt.runtime.streams.stream_pool cimport device_synchronize, pool_stream
from l0rt.runtime.streams.devices cimport device_total, ensure
from l0rt.runtime.streams.guard_impl cimport l0rt_guard_impl
from l0rt.runtime.streams.naming cimport guard_impl_of
from l0rt.runtime.streams.queue cimport queue_share, queue_synchronize
from l0rt.runtime.streams.types cimport l0rt_device, l0rt_stream as stream_t

from l0rt.kernels.spirv import Spirv

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
    int L0RT_API_VERSION


# What raises, called through a type that does not: Cython would take the GIL after each call to look for an exception.
# Its -1 or NULL is looked at below; the exception stays set for whoever called from Python.
ctypedef int (*quiet_void)() noexcept nogil
ctypedef int (*quiet_int)(int) noexcept nogil
ctypedef stream_t* (*quiet_stream)(int) noexcept nogil
ctypedef module_t* (*quiet_open)(void*, int, const char*, size_t, const char*) noexcept
ctypedef kernel_t* (*quiet_find)(module_t*, bytes) noexcept
ctypedef int (*quiet_launch)(
    kernel_t*, const uint32_t*, const uint32_t*, const uint32_t*, const arg_t*, uint32_t, bint,
    stream_t*) noexcept nogil


cdef inline int try_ensure() noexcept nogil:
    return (<quiet_void>ensure)()


cdef inline int try_exchange_device(int device) noexcept nogil:
    return (<quiet_int>exchange_device)(device)


cdef inline stream_t* try_current_stream(int device) noexcept nogil:
    return (<quiet_stream>current_stream)(device)


cdef inline l0rt_block* try_malloc_slow(stream_t* stream, size_t nbytes) noexcept nogil:
    return (<l0rt_block* (*)(stream_t*, size_t) noexcept nogil>malloc_slow)(stream, nbytes)


cdef inline int note_failed() noexcept nogil:
    return (<quiet_void>failed)()


cdef int l0rt_init() except -1 nogil:
    return failed() if try_ensure() < 0 else 0


cdef int l0rt_device_count() except -1 nogil:
    return failed() if try_ensure() < 0 else device_total()


cdef int l0rt_current_device() noexcept nogil:
    return current_device()


cdef int l0rt_exchange_device(int device) except -1 nogil:
    cdef int previous = try_exchange_device(device)
    return failed() if previous < 0 else previous


cdef l0rt_stream* l0rt_current_stream(int device) except NULL nogil:
    cdef stream_t* stream = try_current_stream(device)
    if stream != NULL:
        return <l0rt_stream*>stream
    failed()
    return NULL


cdef l0rt_stream* l0rt_exchange_stream(l0rt_stream* stream) except NULL nogil:
    cdef stream_t* previous
    if stream == NULL:
        refuse_null(b"a stream")
    previous = (<stream_t* (*)(stream_t*) noexcept nogil>exchange_stream)(<stream_t*>stream)
    if previous == NULL:
        failed()
    return <l0rt_stream*>previous


cdef l0rt_stream* l0rt_pool_stream(int device, int priority) except NULL nogil:
    cdef stream_t* stream = try_current_stream(device)  # checks the index, and means the current by -1
    if stream != NULL:
        stream = (<stream_t* (*)(void*, int) noexcept nogil>pool_stream)(stream.device, priority)
    if stream == NULL:
        failed()
    return <l0rt_stream*>stream


cdef void* l0rt_stream_handle(l0rt_stream* stream) except NULL nogil:
    if stream == NULL:
        refuse_null(b"a stream")
    cdef void* handle = (<void* (*)(stream_t*) noexcept nogil>queue_share)(<stream_t*>stream)
    if handle == NULL:
        failed()
    return handle


cdef int l0rt_stream_synchronize(l0rt_stream* stream) except -1 nogil:
    if stream == NULL:
        refuse_null(b"a stream")
    if (<int (*)(stream_t*, unsigned long) noexcept nogil>queue_synchronize)(<stream_t*>stream, UINT64_MAX) < 0:
        return failed()
    return 0


cdef int l0rt_device_synchronize(int device) except -1 nogil:
    cdef stream_t* stream = try_current_stream(device)
    if stream == NULL or (<int (*)(void*, unsigned long) noexcept nogil>device_synchronize)(
            stream.device, UINT64_MAX) < 0:
        return failed()
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
        on = try_current_stream(device)
        if on == NULL:
            failed()
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
    cdef l0rt_block* block = try_malloc_slow(on, nbytes)
    if block == NULL:
        note_failed()
        return NULL
    return block_raw(block, RAW)


cdef int refuse_device(int device, int streams) except -1 nogil:
    with gil:
        error = ValueError(f"device {device} is not the stream's device, {streams}")
        note(error)
        raise error


cdef int answer(int status, const void* ptr) except -1 nogil:
    if status == 0:
        return 0
    (<int (*)(int, const void*) noexcept nogil>raise_status)(status, ptr)
    return failed()


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
    if (<int (*)(stream_t*, void*, const void*, size_t) noexcept nogil>queue_copy)(
            <stream_t*>stream, dst, src, nbytes) < 0:
        return failed()
    return 0


cdef int l0rt_memset_async(void* dst, int value, size_t nbytes, l0rt_stream* stream) except -1 nogil:
    cdef unsigned char byte = value & 0xFF
    if stream == NULL:
        stream = l0rt_current_stream(-1)
    if nbytes != 0 and dst == NULL:
        refuse_null(b"an address to fill")
    if (<int (*)(stream_t*, void*, const void*, size_t, size_t) noexcept nogil>queue_fill)(
            <stream_t*>stream, dst, &byte, 1, nbytes) < 0:
        return failed()
    return 0


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
        error = NotImplementedError(f"no guard table for device type {type.decode('utf-8', 'replace')}")
        note(error)
        raise error


cdef l0rt_module* l0rt_module_create(
        int device, const void* code, size_t nbytes, int format, const char* options) except NULL nogil:
    cdef stream_t* stream
    cdef module_t* made = NULL
    if code == NULL:
        refuse_null(b"a module's code")
    stream = try_current_stream(device)     # checks the index, and means the current by -1
    if stream != NULL:
        with gil:
            made = (<quiet_open>open_module)(stream.device, format, <const char*>code, nbytes, options)
    if made == NULL:
        failed()
    return <l0rt_module*>made


cdef module_t* open_module(
        void* device, int format, const char* code, size_t nbytes, const char* options) except NULL:
    if nbytes > <size_t>PY_SSIZE_T_MAX // 2:     # a copy that has a head would be larger than anything
        raise ValueError(f"a module's code cannot have {nbytes} bytes")
    binary = code[:nbytes]
    if format == L0RT_MODULE_SPIRV:
        Spirv(binary)
    elif format != L0RT_MODULE_NATIVE:
        raise ValueError(f"a module's format must be {L0RT_MODULE_SPIRV} or {L0RT_MODULE_NATIVE}, got {format}")
    return module_open(<l0rt_device*>device, format, binary, options if options != NULL else b"", None)


cdef int l0rt_module_release(l0rt_module* module) except -1 nogil:
    if module != NULL:
        with gil:
            module_release(<module_t*>module)
    return 0


cdef l0rt_kernel* l0rt_kernel_get(l0rt_module* module, const char* name) except NULL nogil:
    cdef kernel_t* kernel
    if module == NULL:
        refuse_null(b"a module")
    if name == NULL:
        refuse_null(b"a kernel's name")
    with gil:
        kernel = (<quiet_find>module_kernel)(<module_t*>module, name)
    if kernel == NULL:
        failed()
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
    if on == NULL:
        on = try_current_stream((<kernel_t*>kernel).module.device.index)
        if on == NULL:
            return failed()
    if (<quiet_launch>kernel_launch)(
            <kernel_t*>kernel, groups, group_size, offset, <const arg_t*>args, count, flags != 0, on) < 0:
        return failed()
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

_C_API = PyCapsule_New(&_api, b"l0rt.capi._C_API", NULL)
