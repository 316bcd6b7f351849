# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Compiled loops over the allocator's core: real threads, real traces, and what a call costs without Python.

The memory behind them is a bump pointer that nobody may touch, so that the figures are the allocator's own. It is
built as a foreign package would build: against the .pxd files and headers only."""

from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libc.math cimport exp, log
from libc.stdlib cimport calloc, free
from libc.string cimport memset
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from l0rt.runtime.alloc.arena cimport arena_hit, block_drop
from l0rt.runtime.alloc.arena_index cimport heap_arena
from l0rt.runtime.alloc.atomics cimport spin_lock, spin_unlock, l0rt_spin
from l0rt.runtime.alloc.heap cimport (
    FINE_GRANULE,
    arena_malloc,
    block_free,
    heap_close,
    heap_create,
    heap_destroy,
    every_pool,
    heap_trim,
    options_map,
    pointer_free,
)
from l0rt.runtime.alloc.page_map cimport l0rt_leaf, l0rt_starts, map_find
from l0rt.runtime.alloc.stats cimport heap_reserved_bytes, heap_stats
from l0rt.runtime.alloc.types cimport (
    PAGE,
    l0rt_arena,
    l0rt_block,
    l0rt_granule,
    l0rt_heap,
    l0rt_heap_options,
    l0rt_memory_ops,
    l0rt_stats,
)


cdef struct bump:
    l0rt_spin lock
    uintptr_t next
    int64_t calls
    int64_t now                     # nanoseconds: what passes is only what mappings cost
    int64_t map_ns
    int64_t spent


cdef uintptr_t origin = <uintptr_t>1 << 40       # each memory has addresses of its own


cdef int bump_reserve(void* self, size_t nbytes, void** out) noexcept nogil:
    cdef bump* memory = <bump*>self
    spin_lock(&memory.lock)
    out[0] = <void*>memory.next
    memory.next += nbytes
    memory.calls += 1
    spin_unlock(&memory.lock)
    return 0


cdef int bump_release(void* self, void* ptr, size_t nbytes) noexcept nogil:
    (<bump*>self).calls += 1
    return 0


cdef int bump_record(void* self, void* stream, void** event) noexcept nogil:
    event[0] = self
    return 0


cdef int bump_query(void* self, void* event) noexcept nogil:
    return 0


cdef int bump_physical(void* self, size_t nbytes, void** out) noexcept nogil:
    (<bump*>self).calls += 1
    out[0] = self
    return 0


cdef int bump_range_release(void* self, void* ptr, size_t nbytes) noexcept nogil:
    return 0


cdef int bump_map(void* self, void* ptr, size_t nbytes, void* physical) noexcept nogil:
    cdef bump* memory = <bump*>self
    memory.calls += 1
    memory.now += memory.map_ns
    memory.spent += memory.map_ns
    return 0


cdef long long bump_clock(void* self) noexcept nogil:
    return (<bump*>self).now


cdef void bump_drop(void* self, void* event) noexcept nogil:
    pass


cdef int bump_is_oom(int code) noexcept nogil:
    return 1


cdef l0rt_memory_ops bump_ops
bump_ops.reserve = bump_reserve
bump_ops.release = bump_release
bump_ops.record = bump_record
bump_ops.query = bump_query
bump_ops.wait = bump_query
bump_ops.drop = bump_drop
bump_ops.is_oom = bump_is_oom
bump_ops.range_reserve = bump_reserve
bump_ops.range_release = bump_range_release
bump_ops.physical_mem_create = bump_physical
bump_ops.physical_mem_destroy = bump_release
bump_ops.physical_mem_map = bump_map
bump_ops.physical_mem_unmap = bump_map
bump_ops.clock = bump_clock


cdef inline double now() noexcept nogil:
    cdef timespec t
    clock_gettime(CLOCK_MONOTONIC, &t)
    return t.tv_sec * 1e9 + t.tv_nsec


cdef inline uint64_t random_next(uint64_t* state) noexcept nogil:
    state[0] ^= state[0] << 13
    state[0] ^= state[0] >> 7
    state[0] ^= state[0] << 17
    return state[0]


cdef inline void* malloc_(l0rt_arena* arena, size_t nbytes) noexcept nogil:
    cdef l0rt_block* block = arena_hit(arena, nbytes)
    if block == NULL and arena_malloc(arena, nbytes, &block) != 0:
        return NULL
    return block.ptr


cdef inline int free_(void* ptr) noexcept nogil:
    cdef l0rt_block* block = map_find(ptr)
    return 0 if block_drop(block) else block_free(block)


def bookkeeping():
    """Bytes: of a block's record; and, for a byte of small segments, of large ones and of ranges, of the map."""
    cdef l0rt_leaf* leaf = NULL
    page = sizeof(leaf.pages[0]) / <double>PAGE
    return (sizeof(l0rt_block), page + sizeof(l0rt_starts) / <double>PAGE, page,
            page + sizeof(l0rt_granule) / <double>FINE_GRANULE)


cdef class Loops:
    """One heap over the bump pointer. Every loop returns nanoseconds for one of what it repeats."""

    cdef l0rt_heap* heap
    cdef bump memory
    cdef dict held
    cdef readonly int64_t most      # bytes that were reserved in the middle of the last replay

    def __cinit__(self, uint64_t limit=0, bint virtual=False, bint fine=True, int64_t map_ns=0, bint judges=False,
                  uint64_t capacity=0):
        global origin
        cdef l0rt_heap_options options
        memset(&options, 0, sizeof(options))
        options.limit = limit
        if virtual:
            options_map(&options, fine)
        options.range = <uint64_t>1 << 36
        self.memory.map_ns = map_ns
        options.has_clock = map_ns != 0
        options.judges_maps = judges
        options.capacity = capacity
        self.memory.next = origin
        self.held = {}
        origin += <uintptr_t>1 << 42
        self.heap = heap_create(&bump_ops, &self.memory, &options)

    def __dealloc__(self):
        heap_destroy(self.heap)

    @property
    def calls(self):
        return self.memory.calls

    @property
    def map_ns(self):
        return self.memory.map_ns

    @property
    def spent(self):
        """Nanoseconds that mappings have cost."""
        return self.memory.spent

    def step(self, int64_t nanoseconds):
        """Let time pass."""
        self.memory.now += nanoseconds

    @property
    def policy(self):
        """Whether it grows by ranges, whether by torch's segments, and the least growth of ranges."""
        return bool(self.heap.has_ranges), bool(self.heap.tuning.torch_segments), self.heap.least_growth

    @property
    def reserved(self):
        return heap_reserved_bytes(self.heap)

    def peak(self):
        """(peak of reserved, peak of requested bytes)"""
        cdef l0rt_stats stats
        heap_stats(self.heap, &stats)
        return stats.reserved_bytes.all.peak, stats.requested_bytes.all.peak

    def stats(self):
        """(allocated, its peak, allocations ever, frees ever, active bytes, inactive split bytes, its peak)"""
        cdef l0rt_stats s
        heap_stats(self.heap, &s)
        return (s.allocated_bytes.all.current, s.allocated_bytes.all.peak, s.allocation.all.allocated,
                s.allocation.all.freed, s.active_bytes.all.current, s.inactive_split_bytes.all.current,
                s.inactive_split_bytes.all.peak)

    def empty(self):
        heap_trim(self.heap, NULL, every_pool())

    def close(self):
        heap_close(self.heap, 0)

    def try_malloc(self, size_t nbytes, uintptr_t stream=1):
        """0 or a status."""
        cdef l0rt_arena* arena = heap_arena(self.heap, <void*>stream, NULL)
        cdef l0rt_block* block = arena_hit(arena, nbytes)
        return 0 if block != NULL else arena_malloc(arena, nbytes, &block)

    def malloc(self, size_t nbytes, uintptr_t stream=1):
        return <uintptr_t>malloc_(heap_arena(self.heap, <void*>stream, NULL), nbytes)

    def free(self, uintptr_t ptr):
        """0 or a status."""
        cdef int status
        with nogil:
            status = pointer_free(self.heap, <void*>ptr)
        return status

    def hold(self, size_t nbytes, int count, uintptr_t stream):
        """Allocate that many and keep them until let_go()."""
        cdef l0rt_arena* arena = heap_arena(self.heap, <void*>stream, NULL)
        cdef void** held = <void**>calloc(count + 1, sizeof(void*))
        cdef int i
        with nogil:
            for i in range(count):
                held[i] = malloc_(arena, nbytes)
        self.held[stream] = <uintptr_t>held

    def let_go(self, uintptr_t stream):
        cdef void** held = <void**><uintptr_t>self.held.pop(stream)
        cdef int i = 0
        with nogil:
            while held[i] != NULL:
                free_(held[i])
                i += 1
            free(held)

    def pairs(self, size_t nbytes, int64_t count, uintptr_t stream=1):
        """malloc and free at once, by pointer."""
        cdef l0rt_arena* arena = heap_arena(self.heap, <void*>stream, NULL)
        cdef double start
        with nogil:
            free_(malloc_(arena, nbytes))
            start = now()
            for _ in range(count):
                free_(malloc_(arena, nbytes))
        return (now() - start) / count

    def shuffled(self, uint64_t low, uint64_t high, int live, int64_t count, uintptr_t stream=1, uint64_t seed=1):
        """Replace one of ``live`` allocations by another size, log-uniform; also the mean of reserved / live."""
        cdef l0rt_arena* arena = heap_arena(self.heap, <void*>stream, NULL)
        cdef void** held = <void**>calloc(live, sizeof(void*))
        cdef uint64_t* sizes = <uint64_t*>calloc(live, sizeof(uint64_t))
        cdef uint64_t* table = <uint64_t*>calloc(4096, sizeof(uint64_t))
        cdef uint64_t state = seed * <uint64_t>0x9E3779B97F4A7C15ULL, total = 0, r
        cdef int64_t i
        cdef double start, ratio = 0, samples = 0
        cdef int k
        for k in range(4096):
            table[k] = <uint64_t>(low * exp(log(high / <double>low) * k / 4095.0))
        with nogil:
            for i in range(live):
                sizes[i] = table[random_next(&state) & 4095]
                held[i] = malloc_(arena, sizes[i])
                total += sizes[i]
            for i in range(count // 2 + count):
                if i == count // 2:                  # the first part is warm-up
                    start = now()
                r = random_next(&state)
                k = (r >> 20) % live
                free_(held[k])
                total -= sizes[k]
                sizes[k] = table[r & 4095]
                total += sizes[k]
                held[k] = malloc_(arena, sizes[k])
                if i & 1023 == 0:
                    ratio += <double>heap_reserved_bytes(self.heap) / total
                    samples += 1
            start = now() - start
            for i in range(live):
                free_(held[i])
        free(held)
        free(sizes)
        free(table)
        return start / count, ratio / samples

    def cached(self, int64_t cached, int64_t count, int sizes=64, uintptr_t stream=1):
        """Pairs of ``sizes`` sizes in turn, with ``cached`` free blocks of them around."""
        cdef l0rt_arena* arena = heap_arena(self.heap, <void*>stream, NULL)
        cdef void** held = <void**>calloc(cached, sizeof(void*))
        cdef int64_t i
        cdef double start
        with nogil:
            for i in range(cached):
                held[i] = malloc_(arena, 512 * (1 + i % sizes))
            for i in range(0, cached, 2):
                free_(held[i])
            for i in range(1, cached, 2):
                free_(held[i])
            for i in range(10 * sizes):
                free_(malloc_(arena, 512 * (1 + i % sizes)))
            start = now()
            for i in range(count):
                free_(malloc_(arena, 512 * (1 + i % sizes)))
            start = now() - start
        free(held)
        return start / count

    def remote(self, size_t nbytes, uintptr_t[::1] ring, int64_t count, bint is_taker, uintptr_t stream=1):
        """One side of a pipe through ``ring``: the giver allocates, the taker frees."""
        cdef l0rt_arena* arena = heap_arena(self.heap, <void*>stream, NULL)
        cdef int64_t i = 0, length = ring.shape[0]
        cdef uintptr_t* slot
        cdef double start = now()
        with nogil:
            while i < count:
                slot = &ring[i % length]
                if is_taker:
                    while slot_load(slot) == 0:
                        relax()
                    free_(<void*>slot_take(slot))
                else:
                    while slot_load(slot) != 0:
                        relax()
                    slot_put(slot, <uintptr_t>malloc_(arena, nbytes))
                i += 1
        return (now() - start) / count

    def replay(self, const signed char[::1] op, const int64_t[::1] ids, const int64_t[::1] sizes, int64_t scale=1,
               uintptr_t stream=1, double nanoseconds=0):
        """A trace; nanoseconds for one operation, or None if memory ran out. Whatever is left is freed afterwards.
        ``nanoseconds`` pass meanwhile by the memory's clock, beside what mappings cost."""
        cdef l0rt_arena* arena = heap_arena(self.heap, <void*>stream, NULL)
        cdef int64_t i, count = op.shape[0], highest = 0
        cdef void** held
        cdef double start
        cdef bint failed = False
        cdef int64_t begun = self.memory.now - self.memory.spent
        for i in range(count):
            highest = max(highest, ids[i])
        held = <void**>calloc(highest + 1, sizeof(void*))
        with nogil:
            self.most = 0
            start = now()
            for i in range(count):
                self.memory.now = begun + self.memory.spent + <int64_t>(nanoseconds * i / count)
                if op[i] == 0:
                    held[ids[i]] = malloc_(arena, sizes[i] * scale)
                    if held[ids[i]] == NULL:
                        failed = True
                        break
                    self.most = max(self.most, heap_reserved_bytes(self.heap))
                else:
                    free_(held[ids[i]])
                    held[ids[i]] = NULL
            start = now() - start
            for i in range(highest + 1):
                if held[i] != NULL:
                    free_(held[i])
        free(held)
        return None if failed else start / count


cdef extern from *:
    """
    #define slot_load(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
    #define slot_take(p) __atomic_exchange_n(p, 0, __ATOMIC_ACQ_REL)
    #define slot_put(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
    #include <sched.h>
    #define relax() sched_yield()
    """
    uintptr_t slot_load(uintptr_t* slot) noexcept nogil
    uintptr_t slot_take(uintptr_t* slot) noexcept nogil
    void slot_put(uintptr_t* slot, uintptr_t value) noexcept nogil
    void relax() noexcept nogil
