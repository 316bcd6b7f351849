# SPDX-License-Identifier: Apache-2.0
"""Device memory and streams as the caching core sees them: its table of operations, on Level Zero; and shared memory,
which is straight from the driver.

The ``self`` of every operation is an l0rt_device, an event is a slot of the event pool.
"""

import sys

from cpython.exc cimport PyErr_Clear
from libc.stdint cimport int64_t
from libc.stdlib cimport realloc
from libc.string cimport memmove, memset

from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from l0rt.core.memory cimport (
    memory_release,
    memory_reserve,
    memory_shared,
    physical_create,
    physical_destroy,
    virtual_free,
    virtual_map,
    virtual_reserve,
    virtual_unmap,
)
from l0rt._base.interrupts cimport interrupt_defer
from l0rt.runtime.alloc.block cimport block_is_allocated
from l0rt.runtime.alloc.expandable_segment cimport range_close
from l0rt.runtime.alloc.heap cimport GRANULE, block_free, heap_close, options_map
from l0rt.runtime.alloc.history cimport l0rt_mark, marks_begin
from l0rt.runtime.alloc.stats cimport heap_arenas
from l0rt.runtime.alloc.types cimport *
from l0rt.runtime.streams.capture cimport capture_is_of, captures
from l0rt.runtime.streams.devices cimport core_device
from l0rt.runtime.streams.event_pool cimport slot_release
from l0rt.runtime.streams.queue cimport queue_open, queue_try_end_event, wait_untold
from l0rt.runtime.streams.stream_pool cimport context_rest
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport device_fails, refuse, slot_poll, slot_rest
from l0rt.ze cimport table
from l0rt.ze.api cimport *
from l0rt.ze.status cimport DROP, DROP_LATER, is_device_lost

from l0rt._base import callers

cdef extern from "<unistd.h>" nogil:
    enum: SC_PHYS_PAGES "_SC_PHYS_PAGES"
    enum: SC_PAGESIZE "_SC_PAGESIZE"
    long sysconf(int) noexcept


cdef size_t machine_memory() noexcept nogil:
    return <size_t>sysconf(SC_PHYS_PAGES) * <size_t>sysconf(SC_PAGESIZE)


# Drivers are not asked for more than there is: Intel's ends the process at 2^45 bytes. One that does not say how much a
# device has is asked.
cdef inline bint exceeds(const l0rt_device* device, size_t nbytes) noexcept nogil:
    return nbytes > device.info.total_memory and device.info.total_memory != 0


cdef int op_reserve(void* self, size_t nbytes, void** out) noexcept nogil:
    cdef l0rt_device* device = <l0rt_device*>self
    if not table.alive or device.lost:
        return ZE_RESULT_ERROR_DEVICE_LOST
    if exceeds(device, nbytes):
        return ZE_RESULT_ERROR_UNSUPPORTED_SIZE
    return lost_or(device, memory_reserve(
        device.context, device.handle, device.info.max_alloc, device.caps.relaxed, nbytes, out))


cdef int op_release(void* self, void* ptr, size_t nbytes) noexcept nogil:
    cdef l0rt_device* device = <l0rt_device*>self
    return told(device, memory_release(device.context, False, ptr), b"zeMemFree") if table.alive else 0


cdef int op_range_reserve(void* self, size_t nbytes, void** out) noexcept nogil:
    cdef l0rt_device* device = <l0rt_device*>self
    if not table.alive:
        return ZE_RESULT_ERROR_DEVICE_LOST
    if exceeds(device, nbytes // 2):    # a range has addresses for more than the memory that there is
        return ZE_RESULT_ERROR_UNSUPPORTED_SIZE
    return lost_or(device, virtual_reserve(device.context, nbytes, out))


cdef int op_range_release(void* self, void* ptr, size_t nbytes) noexcept nogil:
    cdef l0rt_device* device = <l0rt_device*>self
    return told(device, virtual_free(device.context, ptr, nbytes), b"zeVirtualMemFree") if table.alive else 0


cdef int op_physical_mem_create(void* self, size_t nbytes, void** out) noexcept nogil:
    cdef l0rt_device* device = <l0rt_device*>self
    if not table.alive or device.lost:
        return ZE_RESULT_ERROR_DEVICE_LOST
    if exceeds(device, nbytes):
        return ZE_RESULT_ERROR_UNSUPPORTED_SIZE
    return lost_or(device, physical_create(device.context, device.handle, nbytes, <ze_physical_mem_handle_t*>out))


cdef int op_physical_mem_destroy(void* self, void* physical, size_t nbytes) noexcept nogil:
    cdef l0rt_device* device = <l0rt_device*>self
    if not table.alive:
        return 0
    return told(device, physical_destroy(device.context, <ze_physical_mem_handle_t>physical), b"zePhysicalMemDestroy")


cdef inline bint map_alone(l0rt_device* device) noexcept nogil:
    """Keep appends out, where they race with mapping; False: there was one under way all the time. An append may block
    for long, and must not wait for who waits for it."""
    return device.map_gate == NULL or l0rt_gate_try_alone(device.map_gate)


cdef inline void map_done(l0rt_device* device) noexcept nogil:
    if device.map_gate != NULL:
        l0rt_gate_open(device.map_gate)


cdef int op_physical_mem_map(void* self, void* ptr, size_t nbytes, void* physical) noexcept nogil:
    cdef l0rt_device* device = <l0rt_device*>self
    if not table.alive:
        return ZE_RESULT_ERROR_DEVICE_LOST
    if not map_alone(device):
        return L0RT_HELD_UP             # the core then takes an ordinary segment
    cdef ze_result_t r = virtual_map(device.context, ptr, nbytes, <ze_physical_mem_handle_t>physical)
    map_done(device)
    return lost_or(device, r)


cdef int op_physical_mem_unmap(void* self, void* ptr, size_t nbytes, void* physical) noexcept nogil:
    cdef l0rt_device* device = <l0rt_device*>self
    if not table.alive:
        return 0
    if not map_alone(device):
        return L0RT_HELD_UP             # it stays mapped
    cdef ze_result_t r = virtual_unmap(device.context, ptr, nbytes)
    map_done(device)
    return told(device, r, b"zeVirtualMemUnmap")


cdef int op_record(void* self, void* stream, void** event) noexcept nogil:
    """NULL is the event of a stream that is known to be idle, or of a device that is lost."""
    cdef l0rt_stream* on = <l0rt_stream*>stream
    event[0] = NULL
    if known_idle(on) and not captures(on):
        return 0
    event[0] = end_event_of(on)
    if event[0] == NULL and table.alive and not on.device.lost:
        event[0] = end_event_of(on)  # asking once more costs a free nothing
    return 0 if event[0] != NULL or not table.alive or on.device.lost else ZE_RESULT_ERROR_UNKNOWN


cdef l0rt_slot* end_event_of(l0rt_stream* stream) noexcept nogil:
    cdef l0rt_slot* slot = queue_try_end_event(stream)
    if slot == NULL:
        forget_error()
    return slot


cdef int op_query(void* self, void* event) noexcept nogil:
    """A lost device touches memory no more."""
    if event == NULL or not table.alive or (<l0rt_slot*>event).device.lost:
        return 0
    cdef int done = slot_poll(<l0rt_slot*>event)
    return 0 if done == 1 else 1 if done == 0 else ZE_RESULT_ERROR_UNKNOWN


cdef int op_wait(void* self, void* event) noexcept nogil:
    if event == NULL or not table.alive or (<l0rt_slot*>event).device.lost:
        return 0
    return slot_rest(<l0rt_slot*>event)


cdef bint may_order(l0rt_stream* stream, l0rt_slot* slot) noexcept nogil:
    """Is it known that the stream has a list, and that this can wait for the slot's event? If it cannot, the host would
    have to wait."""
    if l0rt_load_list(&stream.list) == NULL:
        return False
    if slot.event == NULL:          # captured: no other stream joins for memory's sake
        return captures(stream) and capture_is_of(stream, slot)
    if slot.device == stream.device:
        return True
    return slot.device.context == stream.device.context and (
        slot.cache == NULL or slot.cache.kind != SLOT_COUNTER or stream.device.peers[slot.device.index] > 0)


cdef int op_prepare(void* self, void* stream) noexcept nogil:
    """Make the stream's list: that calls hooks, which are Python."""
    cdef l0rt_stream* on = <l0rt_stream*>stream
    if l0rt_load_list(&on.list) != NULL or not table.alive or on.device.lost:
        return 0
    if (<int (*)(l0rt_stream*) noexcept nogil>queue_open)(on) < 0:
        forget_error()
        return 0
    return 1


cdef int op_order(void* self, void* stream, void* event) noexcept nogil:
    cdef l0rt_stream* on = <l0rt_stream*>stream
    cdef l0rt_slot* slot = <l0rt_slot*>event
    if not table.alive or on.device.lost:
        return ZE_RESULT_ERROR_DEVICE_LOST
    if not may_order(on, slot) or (captures(on) and slot.event != NULL):
        return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
    if (<int (*)(l0rt_stream*, unsigned int, l0rt_slot**) noexcept nogil>wait_untold)(on, 1, &slot) < 0:
        return forget_error()
    return 0


cdef void op_drop(void* self, void* event) noexcept nogil:
    slot_release(<l0rt_slot*>event)


cdef int op_is_oom(int code) noexcept nogil:
    return (code == ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY or code == ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY
            or code == ZE_RESULT_ERROR_UNSUPPORTED_SIZE)


cdef int forget_error() noexcept nogil:
    """Turn an exception of the layers below into a status code, which the allocator's core uses."""
    with gil:
        PyErr_Clear()
    return ZE_RESULT_ERROR_UNKNOWN


cdef int lost_or(l0rt_device* device, ze_result_t result) noexcept nogil:
    if is_device_lost(result):
        l0rt_store_int(&device.lost, 1)
    return result


cdef int told(l0rt_device* device, ze_result_t result, const char* call) noexcept nogil:
    """What the driver does not take back is given up: the core cannot raise, so this is warned of, unless the device
    is lost anyway."""
    if result != ZE_RESULT_SUCCESS and not device.lost:
        DROP_LATER(result, call)
    return lost_or(device, result)


cdef void block_let_go(l0rt_block* block) noexcept nogil:
    """Free a block for an object that is going: a failure, which keeps it allocated, is a ResourceWarning."""
    cdef int status
    if block.shared != 0 and table.alive and keep_shared(block):
        return
    status = block_free(block)
    if status > 0:
        DROP(<ze_result_t>status, b"the mark behind the last use of an allocation")
    elif status == L0RT_INTERRUPTED:
        interrupt_defer()
    elif status == L0RT_NO_HOST_MEMORY:
        warn_of_no_memory()


cdef bint (*shared_keep)(l0rt_block*) noexcept
cdef void (*import_end)(void*) noexcept


cdef void set_shared_keeper(bint (*keep)(l0rt_block*) noexcept) noexcept:
    global shared_keep
    shared_keep = keep


cdef void set_import_end(void (*end)(void*) noexcept) noexcept:
    global import_end
    import_end = end


cdef bint keep_shared(l0rt_block* block) noexcept with gil:
    return shared_keep(block)


cdef void warn_of_no_memory() noexcept with gil:
    """Where warnings are errors it is unraisable, as for any noexcept function."""
    if sys is not None and not sys.is_finalizing():
        callers.warn_late("an allocation is not freed: no host memory to wait for its last use with; it is given up",
                          ResourceWarning)


cdef void stream_ops(l0rt_memory_ops* ops) noexcept:
    """Fill in what depends on streams alone: any memory that streams use has these."""
    ops.release = op_release
    ops.record = op_record
    ops.query = op_query
    ops.wait = op_wait
    ops.drop = op_drop
    ops.order = op_order
    ops.prepare = op_prepare
    ops.is_oom = op_is_oom


cdef bint knows_streams(const l0rt_heap* heap) noexcept nogil:
    return heap.ops.record == op_record


cdef int mark_memory(l0rt_device* device) except -1:
    cdef void* function = core_device(device.index).driver.extension("l0rtCpuMarkMemory")
    if function != NULL:
        marks_begin(<l0rt_mark>function, GRAIN)
    return 0


cdef void device_options(l0rt_device* device, l0rt_heap_options* options) noexcept nogil:
    """What the heap of this device's memory has to know."""
    memset(options, 0, sizeof(l0rt_heap_options))
    options.has_clock = True
    options.judges_maps = not device.is_software
    options.maps_nothing = device.maps_nothing and not device.is_plain_software
    if device.caps.vmm:
        options_map(options, device.is_plain_software)
        options.capacity = device.info.total_memory
        # an eighth more than there is, as unmapped spans move up; should it not be enough, the core takes more
        options.range = device.info.total_memory // 8 * 9 // GRANULE * GRANULE


cdef void forget_heap(l0rt_heap* heap) noexcept nogil:
    """In a forked child: allocations fail with the reason, frees are dropped, and neither waits for a lost lock."""
    if heap != NULL:
        heap_close(heap, L0RT_CLOSED)


cdef int close_heap(l0rt_heap* heap, l0rt_device* device, bint* held) except -1:
    """At exit: give the segments back. The records stay, for objects that are dropped later.

    With ``held``, the host reads the memory: segments with allocations stay, and ``held`` is True if there are any.
    """
    cdef l0rt_arena* arena
    cdef l0rt_segment* segment
    if heap == NULL:
        return 0
    with nogil:
        heap_close(heap, L0RT_CLOSED)
        arena = heap_arenas(heap)
        while arena != NULL:
            segment = arena.segments
            while segment != NULL:
                if held != NULL and has_allocation(segment):
                    held[0] = True
                elif device.lost:
                    pass
                elif segment.granules != NULL:
                    range_close(heap, segment)
                elif segment.upstream != NULL:
                    segment.upstream.release(segment.upstream, heap.self, segment.stream, segment.raw, segment.raw_size)
                else:
                    op_release(device, segment.raw, segment.raw_size)
                segment = segment.next
            arena = arena.next
    return 0


cdef bint has_allocation(l0rt_segment* segment) noexcept nogil:
    cdef l0rt_block* block = segment.first
    while block != NULL and not block_is_allocated(block):
        block = block.after
    return block != NULL


cdef long long op_clock(void* self) noexcept nogil:
    cdef timespec now
    if virtual_ns >= 0:
        return virtual_ns + (<int64_t>charged(NULL) if charged != NULL else 0)
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <int64_t>now.tv_sec * 1000000000 + now.tv_nsec


# A clock that only a program moves on, for measuring on simulated devices whose costs are counted and not waited for.
cdef int64_t virtual_ns = -1
cdef uint64_t (*charged)(const char*) noexcept nogil
charged = NULL


def virtual_begin(size_t function):
    """Start the virtual clock; ``function`` is the address of the CPU driver's `l0rt_cpu_charged`."""
    global virtual_ns, charged
    charged = <uint64_t (*)(const char*) noexcept nogil><void*>function
    virtual_ns = 0


def virtual_step(int64_t nanoseconds):
    """Move the virtual clock on."""
    global virtual_ns
    virtual_ns += nanoseconds


stream_ops(&device_ops)
device_ops.clock = op_clock
device_ops.reserve = op_reserve
device_ops.range_reserve = op_range_reserve
device_ops.range_release = op_range_release
device_ops.physical_mem_create = op_physical_mem_create
device_ops.physical_mem_destroy = op_physical_mem_destroy
device_ops.physical_mem_map = op_physical_mem_map
device_ops.physical_mem_unmap = op_physical_mem_unmap


# Shared memory: straight from the driver, and which address is in which of it. The GIL is the lock. It is not
# cached, so the allocators' map does not know it, and each of it costs a driver call far above a search.

cdef l0rt_extent* extents = NULL        # in the order of addresses
cdef int64_t extent_count = 0
cdef int64_t extent_capacity = 0


cdef int64_t above(size_t address) noexcept:
    """How many begin at the address or below it."""
    cdef int64_t low = 0, high = extent_count, middle
    while low < high:
        middle = (low + high) // 2
        if extents[middle].base <= address:
            low = middle + 1
        else:
            high = middle
    return low


cdef void* shared_malloc(l0rt_device* device, size_t nbytes) except NULL:
    """Memory of the device and the host."""
    cdef void* ptr = NULL
    cdef ze_result_t r
    if not table.alive or device.lost:
        refuse(device)
    with nogil:
        if exceeds(device, nbytes) and nbytes > machine_memory():
            r = ZE_RESULT_ERROR_UNSUPPORTED_SIZE
        else:
            r = memory_shared(device.context, device.handle, nbytes, &ptr)
        if r != ZE_RESULT_SUCCESS:
            device_fails(device, r)
    try:
        extent_add(ptr, nbytes, device.index, False)
    except MemoryError:
        with nogil:
            DROP(memory_release(device.context, False, ptr), b"zeMemFree")
        raise
    return ptr


cdef void shared_free(l0rt_device* device, void* ptr) noexcept:
    """Give it back; the driver waits for who uses it, or l0rt does. Memory of another process is ended elsewhere."""
    cdef bint blocking = device.caps.free_ext
    cdef const l0rt_extent* extent = shared_find(<size_t>ptr)
    if extent == NULL:                         # of another process, and ended at exit
        return
    if extent.is_imported:
        import_end(ptr)
        return
    extent_remove(ptr)                         # first: another thread may be given the address at once
    if table.alive:
        with nogil:
            if not blocking:
                context_rest(device)
            told(device, memory_release(device.context, blocking, ptr), b"zeMemFree")


cdef bint shared_is_held() noexcept:
    """Is there shared memory that was not freed? What is imported is device memory."""
    cdef int64_t i
    for i in range(extent_count):
        if not extents[i].is_imported:
            return True
    return False


cdef int extent_add(void* ptr, size_t nbytes, int device, bint is_imported) except -1:
    global extents, extent_count, extent_capacity
    cdef int64_t place
    cdef l0rt_extent* grown
    if extent_count == extent_capacity:
        grown = <l0rt_extent*>realloc(extents, (2 * extent_capacity + 16) * sizeof(l0rt_extent))
        if grown == NULL:
            raise MemoryError("no host memory for the record of shared memory")
        extents, extent_capacity = grown, 2 * extent_capacity + 16
    place = above(<size_t>ptr)
    memmove(&extents[place + 1], &extents[place], (extent_count - place) * sizeof(l0rt_extent))
    extents[place].base, extents[place].nbytes, extents[place].device = <size_t>ptr, nbytes, device
    extents[place].is_imported = is_imported
    extent_count += 1
    return 0


cdef void extent_remove(void* ptr) noexcept:
    global extent_count
    cdef int64_t place = above(<size_t>ptr) - 1
    if place >= 0 and extents[place].base == <size_t>ptr:
        extent_count -= 1
        memmove(&extents[place], &extents[place + 1], (extent_count - place) * sizeof(l0rt_extent))


cdef const l0rt_extent* shared_find(size_t address) noexcept:
    """What holds the address, wherever in it; NULL if nothing does. To be read before the GIL is given up."""
    cdef int64_t place = above(address) - 1
    if place >= 0 and address - extents[place].base < extents[place].nbytes:
        return &extents[place]
    return NULL
