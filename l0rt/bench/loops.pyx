# SPDX-License-Identifier: Apache-2.0
"""The bench's compiled loops: what an embedder's C or Cython code does, through the embedding door, without the GIL.

Every loop runs its work ``n`` times and returns the nanoseconds that it took, those of the loop itself included. The
``raw_`` ones call the driver with nothing of l0rt around the calls, for the bench to compare with: beside `l0rt.core`
and `l0rt.ze` only they do. What these need before or leave behind (resetting events, draining the list) is not counted.
"""

cimport cython
from libc.stdint cimport UINT64_MAX, uint64_t
from libc.stdlib cimport calloc, free as c_free
from libc.string cimport memset

from l0rt.capi cimport *
from l0rt.core.cmdlist cimport CommandList
from l0rt.core.device cimport Device
from l0rt.core.driver cimport Context
from l0rt.core.event cimport EventPool
from l0rt.runtime.alloc.arena cimport arena_hit, block_drop
from l0rt.runtime.alloc.heap cimport block_free
from l0rt.runtime.alloc.page_map cimport map_find
from l0rt.runtime.alloc.types cimport l0rt_arena, l0rt_block
from l0rt.runtime.current.guard cimport (
    l0rt_device_guard,
    l0rt_device_guard_enter,
    l0rt_device_guard_reset_device,
    l0rt_guard_impl,
    l0rt_stream_guard,
    l0rt_stream_guard_enter,
    l0rt_stream_guard_reset,
    xpu_guard_impl,
)
from l0rt.runtime.memory.pinned cimport host_arena, host_malloc
from l0rt.runtime.streams.devices cimport core_context, core_device, device_at
from l0rt.runtime.streams.types cimport l0rt_device
from l0rt.ze.api cimport *
from l0rt.ze.status cimport CHECK, CHECK_READY
from l0rt.ze.table cimport ze

from l0rt.errors import UnsupportedError
from l0rt.runtime.streams import devices

cdef extern from *:
    """
    /* What <valgrind/callgrind.h> has, for one processor: five shifts and an exchange that do nothing, unless valgrind
     * sees them. */
    static void l0rt_ask_valgrind(unsigned long request, const void *what) {
    #if defined(__x86_64__) && defined(__linux__)
      volatile unsigned long ask[6] = {(unsigned long)'C' << 24 | (unsigned long)'T' << 16 | request,
                                       (unsigned long)what, 0, 0, 0, 0};
      unsigned long answer = 0;
      __asm__ volatile(
          "rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
          : "=d"(answer) : "a"(ask), "0"(answer) : "cc", "memory");
    #else
      (void)request, (void)what;
    #endif
    }
    """
    void ask_valgrind "l0rt_ask_valgrind"(unsigned long request, const void* what) noexcept nogil


def count(bint on):
    """Let valgrind's callgrind count instructions from now on, or no more: what comes then is many times faster."""
    ask_valgrind(4 if on else 5, NULL)


def count_zero():
    """Forget what was counted."""
    ask_valgrind(1, NULL)


def count_dump(str name):
    """Write down what was counted since count_zero, under a name."""
    cdef bytes text = name.encode()
    ask_valgrind(3, <const char*>text)


def malloc_free(const uint64_t[::1] sizes, uint64_t n):
    """l0rt_malloc and l0rt_free, going round the ``sizes``, whose number is a power of two."""
    cdef uint64_t i, start, spent, mask = sizes.shape[0] - 1
    cdef const uint64_t* nbytes = &sizes[0]
    cdef l0rt_stream* stream
    cdef void* ptr
    with nogil:
        stream = l0rt_current_stream(-1)
        start = now_ns()
        for i in range(n):
            ptr = l0rt_malloc(nbytes[i & mask], -1, stream)
            l0rt_free(ptr)
        spent = now_ns() - start
    return spent


def pinned_malloc_free(int index, const uint64_t[::1] sizes, uint64_t n):
    """The same with pinned memory, as a Buffer takes it and gives it back."""
    cdef uint64_t i, start, spent, mask = sizes.shape[0] - 1
    cdef const uint64_t* nbytes = &sizes[0]
    cdef l0rt_device* device = device_at(index)
    cdef l0rt_arena* arena = host_arena(device)
    cdef l0rt_block* block
    with nogil:
        start = now_ns()
        for i in range(n):
            block = arena_hit(arena, nbytes[i & mask])
            if block == NULL:
                block = host_malloc(device, nbytes[i & mask])
            block = map_find(block.ptr)
            if not block_drop(block):
                block_free(block)
        spent = now_ns() - start
    return spent


@cython.final
@cython.binding(False)
cdef class Gate:
    """An event that holds up a list: the list takes commands meanwhile and executes none. Appending them then takes the
    host's time alone, because no thread and no engine has to be woken up. The host signals the event: a list on the
    same engine would be held up too."""
    def __init__(self, Context context):
        self.pool = EventPool.create(context, 1, False, False, 0, NULL)
        self.signal = <signal_fn><size_t>devices.library.address("zeEventHostSignal")

    cpdef int shut(self, size_t list) except -1 nogil:
        """Hold up the list with this handle. What the gate held up before must be complete."""
        CHECK(ze.zeEventHostReset(self.pool.events[0]))
        CHECK(ze.zeCommandListAppendWaitOnEvents(<ze_command_list_handle_t>list, 1, &self.pool.events[0]))
        return 0

    cpdef int open(self) except -1 nogil:
        """Let the list go on."""
        CHECK(self.signal(self.pool.events[0]))
        return 0


@cython.binding(False)
cdef class Blocks:
    """Slots, each of which is empty or holds an allocation."""
    cdef void** ptr
    cdef size_t* nbytes
    cdef readonly size_t count
    cdef uint64_t position      # where the next swap goes on

    def __cinit__(self, size_t count):
        self.ptr = <void**>calloc(count + 1, sizeof(void*))
        self.nbytes = <size_t*>calloc(count + 1, sizeof(size_t))
        if self.ptr == NULL or self.nbytes == NULL:
            raise MemoryError()
        self.count = count

    @property
    def live(self):
        """The bytes that were asked for and are not freed."""
        cdef size_t i, total = 0
        for i in range(self.count):
            if self.ptr[i] != NULL:
                total += self.nbytes[i]
        return total

    def fill(self, const uint64_t[::1] sizes):
        """Allocate into every slot, going round the ``sizes``, whose number is a power of two."""
        cdef uint64_t i, start, spent, mask = sizes.shape[0] - 1
        cdef const uint64_t* size = &sizes[0]
        cdef l0rt_stream* stream
        with nogil:
            stream = l0rt_current_stream(-1)
            start = now_ns()
            for i in range(self.count):
                self.ptr[i] = l0rt_malloc(size[i & mask], -1, stream)
                self.nbytes[i] = size[i & mask]
            spent = now_ns() - start
        return spent

    def free(self, size_t step=1):
        """Free every slot, or every ``step``-th."""
        cdef uint64_t start, spent, i = 0
        with nogil:
            start = now_ns()
            while i < self.count:
                l0rt_free(self.ptr[i])
                self.ptr[i] = NULL
                i += step
            spent = now_ns() - start
        return spent

    def swap(self, const uint64_t[::1] slots, const uint64_t[::1] sizes, uint64_t n):
        """Free a slot and allocate into it again, going round ``slots`` and ``sizes``, both with one power of two as
        their length.

        The next call goes on where this one ended.
        """
        cdef uint64_t i, k, start, spent, mask = sizes.shape[0] - 1
        cdef const uint64_t* slot = &slots[0]
        cdef const uint64_t* size = &sizes[0]
        cdef l0rt_stream* stream
        with nogil:
            stream = l0rt_current_stream(-1)
            start = now_ns()
            for i in range(self.position, self.position + n):
                k = slot[i & mask]
                l0rt_free(self.ptr[k])
                self.ptr[k] = NULL
                self.ptr[k] = l0rt_malloc(size[i & mask], -1, stream)
                self.nbytes[k] = size[i & mask]
            spent = now_ns() - start
        self.position += n
        return spent

    def replay(self, const unsigned char[::1] ops, const uint64_t[::1] slots, const uint64_t[::1] sizes, uint64_t n):
        """The first ``n`` operations of a trace: 0 allocates into a slot, 1 frees it."""
        cdef uint64_t i, k, start, spent
        cdef const unsigned char* op = &ops[0]
        cdef const uint64_t* slot = &slots[0]
        cdef const uint64_t* size = &sizes[0]
        cdef l0rt_stream* stream
        with nogil:
            stream = l0rt_current_stream(-1)
            start = now_ns()
            for i in range(n):
                k = slot[i]
                if op[i] == 0:
                    self.ptr[k] = l0rt_malloc(size[i], -1, stream)
                    self.nbytes[k] = size[i]
                else:
                    l0rt_free(self.ptr[k])
                    self.ptr[k] = NULL
            spent = now_ns() - start
        return spent

    def __dealloc__(self):
        c_free(self.ptr)
        c_free(self.nbytes)


def current_stream(uint64_t n):
    """l0rt_current_stream of the current device."""
    cdef uint64_t _i, start, spent
    with nogil:
        start = now_ns()
        for _i in range(n):
            l0rt_current_stream(-1)
        spent = now_ns() - start
    return spent


def current_device(uint64_t n):
    """l0rt_current_device."""
    cdef uint64_t _i, start, spent
    with nogil:
        start = now_ns()
        for _i in range(n):
            l0rt_current_device()
        spent = now_ns() - start
    return spent


def device_guard(int device, uint64_t n):
    """A device guard, entered and left."""
    cdef const l0rt_guard_impl* impl = xpu_guard_impl()
    cdef l0rt_device_guard guard
    cdef uint64_t _i, start, spent
    with nogil:
        start = now_ns()
        for _i in range(n):
            l0rt_device_guard_enter(&guard, impl, device)
            l0rt_device_guard_reset_device(&guard)
        spent = now_ns() - start
    return spent


def stream_guard(uint64_t n):
    """A stream guard, entered and left, on a stream of the pool."""
    cdef const l0rt_guard_impl* impl = xpu_guard_impl()
    cdef l0rt_stream_guard guard
    cdef l0rt_stream* stream
    cdef uint64_t _i, start, spent
    with nogil:
        stream = l0rt_pool_stream(-1, 0)
        start = now_ns()
        for _i in range(n):
            l0rt_stream_guard_enter(&guard, impl, stream)
            l0rt_stream_guard_reset(&guard)
        spent = now_ns() - start
    return spent


def copy(Gate gate, size_t dst, size_t src, size_t nbytes, uint64_t n):
    """l0rt_memcpy_async: the append alone; the stream is drained before the loop returns."""
    cdef uint64_t _i, start, spent
    cdef l0rt_stream* stream
    with nogil:
        stream = l0rt_current_stream(-1)
        gate.shut(<size_t>l0rt_stream_handle(stream))
        start = now_ns()
        for _i in range(n):
            l0rt_memcpy_async(<void*>dst, <void*>src, nbytes, stream)
        spent = now_ns() - start
        gate.open()
        l0rt_stream_synchronize(stream)
    return spent


def core_objects(int index):
    """Return the context and the device behind device ``index``, for the raw driver's loops."""
    return core_context(index), core_device(index)


def open_list(Context context, Device device):
    """Return an immediate list like that of a stream."""
    return CommandList.immediate(context, device, device.info.compute_ordinal, 0, 0, device.caps.inorder)


def open_events(Context context, unsigned int count):
    """Return a pool with ``count`` events."""
    return EventPool.create(context, count, False, False, 0, NULL)


# The raw driver: memory.

cdef int _raw_allocate(Context context, Device device, size_t nbytes, void** out) except -1 nogil:
    cdef ze_device_mem_alloc_desc_t desc
    memset(&desc, 0, sizeof(desc))
    desc.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC
    return CHECK(ze.zeMemAllocDevice(context._h, &desc, nbytes, 0, device._h, out))


def raw_allocate_free(Context context, Device device, const uint64_t[::1] sizes, uint64_t n):
    """zeMemAllocDevice and zeMemFree, going round the ``sizes``, whose number is a power of two."""
    cdef uint64_t i, start, spent, mask = sizes.shape[0] - 1
    cdef const uint64_t* size = &sizes[0]
    cdef void* ptr
    with nogil:
        start = now_ns()
        for i in range(n):
            _raw_allocate(context, device, size[i & mask], &ptr)
            CHECK(ze.zeMemFree(context._h, ptr))
        spent = now_ns() - start
    return spent


def raw_replay(Context context, Device device, const unsigned char[::1] ops, const uint64_t[::1] slots,
           const uint64_t[::1] sizes, uint64_t n):
    """The first ``n`` operations of a trace, each one driver call: 0 allocates into a slot, 1 frees it."""
    cdef uint64_t i, start, spent, count = 0
    cdef const unsigned char* op = &ops[0]
    cdef const uint64_t* slot = &slots[0]
    cdef const uint64_t* size = &sizes[0]
    for i in range(n):
        count = max(count, slot[i] + 1)
    cdef void** live = <void**>calloc(count + 1, sizeof(void*))
    if live == NULL:
        raise MemoryError()
    try:
        with nogil:
            start = now_ns()
            for i in range(n):
                if op[i] == 0:
                    _raw_allocate(context, device, size[i], &live[slot[i]])
                else:
                    CHECK(ze.zeMemFree(context._h, live[slot[i]]))
                    live[slot[i]] = NULL
            spent = now_ns() - start
        return spent
    finally:
        with nogil:
            for i in range(count):
                if live[i] != NULL:
                    CHECK(ze.zeMemFree(context._h, live[i]))
        c_free(live)


# The raw driver: events.

def raw_event_create_destroy(Context context, Device device, uint64_t n):
    """zeEventCreate and zeEventDestroy in a pool that is there already."""
    cdef ze_event_pool_desc_t pool_desc
    cdef ze_event_desc_t desc
    cdef ze_event_pool_handle_t pool = NULL
    cdef ze_event_handle_t event
    cdef uint64_t _i, start, spent
    memset(&pool_desc, 0, sizeof(pool_desc))
    pool_desc.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC
    pool_desc.flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE
    pool_desc.count = 1
    memset(&desc, 0, sizeof(desc))
    desc.stype = ZE_STRUCTURE_TYPE_EVENT_DESC
    desc.signal = desc.wait = ZE_EVENT_SCOPE_FLAG_HOST
    with nogil:
        CHECK(ze.zeEventPoolCreate(context._h, &pool_desc, 1, &device._h, &pool))
        start = now_ns()
        for _i in range(n):
            CHECK(ze.zeEventCreate(pool, &desc, &event))
            CHECK(ze.zeEventDestroy(event))
        spent = now_ns() - start
        CHECK(ze.zeEventPoolDestroy(pool))
    return spent


def raw_signal(CommandList list, EventPool pool, uint64_t n):
    """zeCommandListAppendSignalEvent; ``n`` is at most the pool's count."""
    cdef uint64_t i, start, spent
    with nogil:
        start = now_ns()
        for i in range(n):
            CHECK(ze.zeCommandListAppendSignalEvent(list._h, pool.events[i]))
        spent = now_ns() - start
        _raw_drain(list, pool)
        _raw_reset(pool, n)
    return spent


def raw_wait_on(CommandList list, EventPool pool, uint64_t n):
    """zeCommandListAppendWaitOnEvents for an event that is complete when the device comes to it."""
    cdef uint64_t _i, start, spent
    with nogil:
        CHECK(ze.zeCommandListAppendSignalEvent(list._h, pool.events[0]))
        _raw_drain(list, pool)
        start = now_ns()
        for _i in range(n):
            CHECK(ze.zeCommandListAppendWaitOnEvents(list._h, 1, &pool.events[0]))
        spent = now_ns() - start
        _raw_drain(list, pool)
        _raw_reset(pool, 1)
    return spent


def raw_query(CommandList list, EventPool pool, uint64_t n):
    """zeEventQueryStatus of a complete event."""
    cdef uint64_t _i, start, spent
    with nogil:
        CHECK(ze.zeCommandListAppendSignalEvent(list._h, pool.events[0]))
        CHECK(ze.zeEventHostSynchronize(pool.events[0], UINT64_MAX))
        start = now_ns()
        for _i in range(n):
            CHECK_READY(ze.zeEventQueryStatus(pool.events[0]))
        spent = now_ns() - start
        _raw_reset(pool, 1)
    return spent


def raw_query_pending(CommandList list, EventPool pool, size_t dst, size_t nbytes, int fills, uint64_t n):
    """zeEventQueryStatus while ``fills`` long fills stand before the event; scaled to ``n`` if they end before."""
    cdef uint64_t start, spent, count = 0
    cdef unsigned char zero = 0
    cdef int _i
    with nogil:
        for _i in range(fills):
            CHECK(ze.zeCommandListAppendMemoryFill(list._h, <void*>dst, &zero, 1, nbytes, NULL, 0, NULL))
        CHECK(ze.zeCommandListAppendSignalEvent(list._h, pool.events[0]))
        start = now_ns()
        while count < n and not CHECK_READY(ze.zeEventQueryStatus(pool.events[0])):
            count += 1
        spent = now_ns() - start
        CHECK(ze.zeEventHostSynchronize(pool.events[0], UINT64_MAX))
        _raw_drain(list, pool)
        _raw_reset(pool, 1)
    return spent * n / <double>(count + 1)


def raw_event_synchronize(CommandList list, EventPool pool, uint64_t n):
    """zeEventHostSynchronize of a complete event."""
    cdef uint64_t _i, start, spent
    with nogil:
        CHECK(ze.zeCommandListAppendSignalEvent(list._h, pool.events[0]))
        CHECK(ze.zeEventHostSynchronize(pool.events[0], UINT64_MAX))
        start = now_ns()
        for _i in range(n):
            CHECK(ze.zeEventHostSynchronize(pool.events[0], UINT64_MAX))
        spent = now_ns() - start
        _raw_reset(pool, 1)
    return spent


def raw_signal_query_synchronize(CommandList list, EventPool pool, uint64_t n):
    """AppendSignalEvent, EventQueryStatus, EventHostSynchronize; ``n`` is at most the pool's count."""
    cdef uint64_t i, start, spent
    with nogil:
        start = now_ns()
        for i in range(n):
            CHECK(ze.zeCommandListAppendSignalEvent(list._h, pool.events[i]))
            CHECK_READY(ze.zeEventQueryStatus(pool.events[i]))
            CHECK(ze.zeEventHostSynchronize(pool.events[i], UINT64_MAX))
        spent = now_ns() - start
        _raw_reset(pool, n)
    return spent


# The raw driver: copies, fills, waits.

def raw_copy(CommandList list, EventPool pool, Gate gate, size_t dst, size_t src, size_t nbytes, uint64_t n):
    """zeCommandListAppendMemoryCopy: the append alone."""
    cdef uint64_t _i, start, spent
    with nogil:
        gate.shut(<size_t>list._h)
        start = now_ns()
        for _i in range(n):
            CHECK(ze.zeCommandListAppendMemoryCopy(list._h, <void*>dst, <void*>src, nbytes, NULL, 0, NULL))
        spent = now_ns() - start
        gate.open()
        _raw_drain(list, pool)
    return spent


def raw_copy_synchronize(CommandList list, EventPool pool, size_t dst, size_t src, size_t nbytes, uint64_t n):
    """A copy and the wait for its end."""
    cdef uint64_t _i, start, spent
    with nogil:
        start = now_ns()
        for _i in range(n):
            CHECK(ze.zeCommandListAppendMemoryCopy(list._h, <void*>dst, <void*>src, nbytes, NULL, 0, NULL))
            _raw_drain(list, pool)
        spent = now_ns() - start
    return spent


def raw_fill(CommandList list, EventPool pool, Gate gate, size_t dst, size_t nbytes, uint64_t n):
    """zeCommandListAppendMemoryFill with a pattern of one byte: the append alone."""
    cdef uint64_t _i, start, spent
    cdef unsigned char zero = 0
    with nogil:
        gate.shut(<size_t>list._h)
        start = now_ns()
        for _i in range(n):
            CHECK(ze.zeCommandListAppendMemoryFill(list._h, <void*>dst, &zero, 1, nbytes, NULL, 0, NULL))
        spent = now_ns() - start
        gate.open()
        _raw_drain(list, pool)
    return spent


def raw_idle_synchronize(CommandList list, uint64_t n):
    """zeCommandListHostSynchronize of an idle list."""
    cdef uint64_t _i, start, spent
    if not list.device.caps.list_sync:
        raise UnsupportedError("this driver has no zeCommandListHostSynchronize")
    with nogil:
        CHECK(ze.zeCommandListHostSynchronize(list._h, UINT64_MAX))
        start = now_ns()
        for _i in range(n):
            CHECK(ze.zeCommandListHostSynchronize(list._h, UINT64_MAX))
        spent = now_ns() - start
    return spent


cdef int _raw_drain(CommandList list, EventPool pool) except -1 nogil:
    """Wait for everything appended, in the way that this driver has. The pool's last event is kept for this."""
    cdef ze_event_handle_t last = pool.events[pool.count - 1]
    if list.device.caps.list_sync:
        return CHECK(ze.zeCommandListHostSynchronize(list._h, UINT64_MAX))
    CHECK(ze.zeCommandListAppendBarrier(list._h, last, 0, NULL))
    CHECK(ze.zeEventHostSynchronize(last, UINT64_MAX))
    return CHECK(ze.zeEventHostReset(last))


cdef int _raw_reset(EventPool pool, uint64_t n) except -1 nogil:
    cdef uint64_t i
    for i in range(n):
        CHECK(ze.zeEventHostReset(pool.events[i]))
    return 0
