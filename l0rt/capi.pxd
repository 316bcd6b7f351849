# SPDX-License-Identifier: Apache-2.0
# The C API for Cython: `from l0rt.capi cimport *`. Every function may be called from any thread without the GIL. A
# return of -1 or NULL means failure: a Python exception is set (the GIL is taken only then), and l0rt_last_error tells
# the same without the GIL.

from libc.stdint cimport int64_t, uint32_t, uint64_t

from l0rt.runtime.streams.guard_impl cimport l0rt_guard_impl

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
    # opaque: whoever made a module releases it; a kernel is its module's
    ctypedef struct l0rt_module:
        pass
    ctypedef struct l0rt_kernel:
        pass
    ctypedef struct l0rt_arg:
        const void* value       # NULL: local memory of `size` bytes
        size_t size
    enum: L0RT_MODULE_SPIRV
    enum: L0RT_MODULE_NATIVE
    enum: L0RT_MODULE_OPENCL_C
    enum: L0RT_LAUNCH_COOPERATIVE
    # opaque: whoever has made a generator, or asked for the default one, releases it
    ctypedef struct l0rt_generator:
        pass
    ctypedef struct l0rt_stat_values:
        int64_t current, peak, allocated, freed
    ctypedef struct l0rt_stat_pools:
        l0rt_stat_values all, small_pool, large_pool
    ctypedef struct l0rt_memory_stats:
        l0rt_stat_pools allocation, segment, active, inactive_split
        l0rt_stat_pools allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes, requested_bytes
        l0rt_stat_values oversize_allocations, oversize_segments
        int64_t num_alloc_retries, num_ooms, num_sync_all_streams, num_device_alloc, num_device_free
        int64_t num_oom_rejections, num_oom_fallback, max_split_size
    enum: L0RT_RESET_PEAKS
    enum: L0RT_RESET_TOTALS
    enum: L0RT_GRAPH_KEEP

cdef int l0rt_init() except -1 nogil
cdef int l0rt_device_count() except -1 nogil
cdef int l0rt_current_device() noexcept nogil
cdef int l0rt_exchange_device(int device) except -1 nogil
cdef l0rt_stream* l0rt_current_stream(int device) except NULL nogil
cdef l0rt_stream* l0rt_exchange_stream(l0rt_stream* stream) except NULL nogil
cdef l0rt_stream* l0rt_pool_stream(int device, int priority) except NULL nogil
cdef void* l0rt_stream_handle(l0rt_stream* stream) except NULL nogil
cdef int l0rt_stream_synchronize(l0rt_stream* stream) except -1 nogil
cdef int l0rt_device_synchronize(int device) except -1 nogil
cdef void* l0rt_malloc(size_t nbytes, int device, l0rt_stream* stream) except? NULL nogil
cdef int l0rt_free(void* ptr) except -1 nogil
cdef int l0rt_free_async(void* ptr, l0rt_stream* stream) except -1 nogil
cdef int l0rt_record_stream(void* ptr, l0rt_stream* stream) except -1 nogil
cdef int l0rt_memcpy_async(void* dst, const void* src, size_t nbytes, l0rt_stream* stream) except -1 nogil
cdef int l0rt_memset_async(void* dst, int value, size_t nbytes, l0rt_stream* stream) except -1 nogil
cdef int l0rt_record_use(void* ptr, l0rt_stream* stream) except -1 nogil
# The guard table of a device type; NULL and NotImplementedError if it has none. It lives as long as the process.
cdef const l0rt_guard_impl* l0rt_guard_impl_of(const char* type) except NULL nogil
cdef l0rt_module* l0rt_module_create(
    int device, const void* code, size_t nbytes, int format, const char* options) except NULL nogil
cdef int l0rt_module_release(l0rt_module* module) except -1 nogil
cdef l0rt_kernel* l0rt_kernel_get(l0rt_module* module, const char* name) except NULL nogil
cdef int l0rt_launch(
    l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* group_size, const l0rt_arg* args, uint32_t count,
    unsigned int flags, l0rt_stream* stream) except -1 nogil
cdef int l0rt_launch_with_offset(
    l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* group_size, const uint32_t* global_offset,
    const l0rt_arg* args, uint32_t count, unsigned int flags, l0rt_stream* stream) except -1 nogil
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
cdef int l0rt_last_error(char* text, size_t size) noexcept nogil
cdef int l0rt_is_open() noexcept nogil
cdef int l0rt_count_devices() except -1 nogil
cdef l0rt_stream* l0rt_exchange_device_stream(l0rt_stream* stream) except NULL nogil
cdef int l0rt_fill_async(
    void* dst, const void* pattern, size_t pattern_size, size_t nbytes, l0rt_stream* stream) except -1 nogil
cdef int l0rt_get_memory_stats(int device, int kind, l0rt_memory_stats* stats, size_t size) except -1 nogil
cdef int64_t l0rt_memory_allocated(int device) except -1 nogil
cdef int l0rt_memory_info(int device, size_t* free, size_t* total) except -1 nogil
cdef int l0rt_memory_reset_stats(int device, int kind, int what) except -1 nogil
cdef int l0rt_memory_empty_cache(int kind) except -1 nogil
cdef int l0rt_memory_set_limit(int device, uint64_t nbytes) except -1 nogil
cdef int l0rt_pool_id(l0rt_pool* pool, uint64_t* id) except -1 nogil
cdef l0rt_pool* l0rt_pool_find(const uint64_t* id) except NULL nogil
cdef l0rt_graph* l0rt_graph_create_with(unsigned int flags) except NULL nogil
cdef int l0rt_graph_begin_with(l0rt_graph* graph, l0rt_pool* pool, const char* mode) except -1 nogil
cdef int l0rt_graph_instantiate(l0rt_graph* graph) except -1 nogil
cdef int l0rt_graph_reset(l0rt_graph* graph) except -1 nogil
cdef l0rt_pool* l0rt_graph_pool(l0rt_graph* graph) except NULL nogil
cdef int l0rt_graph_dump(l0rt_graph* graph, const char* path) except -1 nogil
cdef int l0rt_graph_register_generator(l0rt_graph* graph, l0rt_generator* generator) except -1 nogil
cdef l0rt_generator* l0rt_generator_create(int device) except NULL nogil
cdef l0rt_generator* l0rt_generator_default(int device) except NULL nogil
cdef int l0rt_generator_release(l0rt_generator* generator) except -1 nogil
cdef int l0rt_generator_get(l0rt_generator* generator, uint64_t* seed, uint64_t* offset) except -1 nogil
cdef int l0rt_generator_set(l0rt_generator* generator, uint64_t seed, uint64_t offset) except -1 nogil
cdef int l0rt_generator_draw(
    l0rt_generator* generator, uint64_t words, uint64_t* seed, uint64_t* offset) except -1 nogil
cdef int l0rt_generator_place(
    l0rt_generator* generator, uint64_t words, void** seed, void** offset, uint64_t* within) except -1 nogil
