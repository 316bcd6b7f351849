# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, allow_none_for_extension_args=False
"""Plain host memory as a device, for tests of the allocator: built as a foreign package would build it (plain.py).

Its streams are any numbers. By default all their work is complete at once; with ``hold`` it takes until ``finish`` or
until somebody waits, so that everything that depends on time can be tried in any order.
"""

cimport cython
from libc.stdint cimport UINT64_MAX, int64_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, realloc

from l0rt.runtime.alloc.allocator cimport Memory
from l0rt.runtime.alloc.atomics cimport mutex_destroy, mutex_init, mutex_lock, mutex_unlock, pthread_mutex_t
from l0rt.runtime.alloc.heap cimport options_map
from l0rt.runtime.alloc.types cimport L0RT_NO_HOST_MEMORY, PAGE, l0rt_heap_options, l0rt_memory_ops

cdef extern from "stdlib.h" nogil:
    void* aligned_alloc(size_t alignment, size_t size) noexcept

cdef extern from "sys/mman.h" nogil:
    void* mmap(void* address, size_t size, int protection, int flags, int file, long offset) noexcept
    int munmap(void* address, size_t size) noexcept
    int mprotect(void* address, size_t size, int protection) noexcept
    int madvise(void* address, size_t size, int advice) noexcept
    void* MAP_FAILED
    enum:
        PROT_NONE
        PROT_READ
        PROT_WRITE
        MAP_PRIVATE
        MAP_ANONYMOUS
        MAP_NORESERVE
        MADV_DONTNEED

cdef enum:
    FULL = 1                        # this backend's only code of its own for out of memory
    STUCK = 2                       # what is mapped stays mapped
    GRANULE = 1 << 21
    RECORDED = 0
    ORDERED = 1
    DONE = 2
    TAKEN_AWAY = 3


cdef struct l0rt_plain_event:
    void* stream
    uint64_t number                 # events, orders and work are counted together
    bint is_done
    l0rt_plain_event* older


cdef struct l0rt_plain_order:       # what the stream was given after `number` waits for the other one's event `behind`
    void* stream
    uint64_t number
    void* other
    uint64_t behind
    l0rt_plain_order* older


cdef struct l0rt_plain_note:        # what happened: a record, an order, an event that is complete, memory taken away
    int kind
    uint64_t subject                # the stream, or the address
    uint64_t number                 # of the event, or bytes


cdef struct l0rt_plain:
    pthread_mutex_t mutex
    uint64_t capacity
    uint64_t used
    uint64_t skew
    int64_t reserves
    int64_t releases
    int64_t records
    int64_t waits
    int64_t drops
    int64_t ranges
    uint64_t addresses              # in these ranges
    int64_t physicals
    int64_t maps
    int64_t unmaps
    int map_refusals                # after so many more maps, one is refused
    int unmap_refusals              # the same of unmaps
    bint is_held
    int refusal
    int refusals
    int record_code
    int wait_code
    int order_code
    int64_t orders
    l0rt_plain_event* newest       # of those that are not complete
    l0rt_plain_order* newest_order
    uint64_t number
    bint keeps_notes
    l0rt_plain_note* notes
    int64_t note_count
    int64_t note_capacity


cdef void note(l0rt_plain* plain, int kind, uint64_t subject, uint64_t number) noexcept nogil:
    """Keep what happened, for a model that has to agree. The mutex is held."""
    cdef l0rt_plain_note* grown     # and then the new one
    if not plain.keeps_notes:
        return
    if plain.note_count == plain.note_capacity:
        grown = <l0rt_plain_note*>realloc(plain.notes, (2 * plain.note_capacity + 64) * sizeof(l0rt_plain_note))
        if grown == NULL:
            return
        plain.notes = grown
        plain.note_capacity = 2 * plain.note_capacity + 64
    grown = &plain.notes[plain.note_count]
    grown.kind, grown.subject, grown.number = kind, subject, number
    plain.note_count += 1


cdef int plain_reserve(void* self, size_t nbytes, void** out) noexcept nogil:
    cdef l0rt_plain* plain = <l0rt_plain*>self
    cdef int code = 0
    cdef char* memory
    mutex_lock(&plain.mutex)
    if plain.refusals != 0:
        plain.refusals -= 1
        code = plain.refusal
    elif nbytes > plain.capacity - plain.used:
        code = FULL
    else:
        memory = <char*>aligned_alloc(PAGE, nbytes + PAGE)
        if memory == NULL:
            code = FULL
        else:
            out[0] = memory + plain.skew
            plain.used += nbytes
            plain.reserves += 1
    mutex_unlock(&plain.mutex)
    return code


cdef int plain_release(void* self, void* ptr, size_t nbytes) noexcept nogil:
    cdef l0rt_plain* plain = <l0rt_plain*>self
    mutex_lock(&plain.mutex)
    plain.used -= nbytes
    plain.releases += 1
    note(plain, TAKEN_AWAY, <uintptr_t>ptr, nbytes)
    free(<char*>ptr - plain.skew)
    mutex_unlock(&plain.mutex)
    return 0


cdef int plain_record(void* self, void* stream, void** event) noexcept nogil:
    cdef l0rt_plain* plain = <l0rt_plain*>self
    cdef l0rt_plain_event* made
    cdef int code
    mutex_lock(&plain.mutex)
    code = plain.record_code
    if code == 0:
        made = <l0rt_plain_event*>calloc(1, sizeof(l0rt_plain_event))
        if made == NULL:
            mutex_unlock(&plain.mutex)
            return L0RT_NO_HOST_MEMORY
        made.stream = stream
        plain.number += 1
        made.number = plain.number
        made.older = plain.newest
        plain.newest = made
        plain.records += 1
        event[0] = made
        note(plain, RECORDED, <uintptr_t>stream, made.number)
        if not plain.is_held:
            complete(plain, stream, made.number)
    mutex_unlock(&plain.mutex)
    return code


cdef void complete(l0rt_plain* plain, void* stream, uint64_t number) noexcept nogil:
    """A stream has come so far: so have its older events, and what it was made to wait for. The mutex is held."""
    cdef l0rt_plain_event** link = &plain.newest
    cdef l0rt_plain_order** place = &plain.newest_order
    cdef l0rt_plain_order* order
    cdef uint64_t behind
    cdef void* other
    note(plain, DONE, <uintptr_t>stream, number)
    while link[0] != NULL:
        if link[0].stream == stream and link[0].number <= number:
            link[0].is_done = True
            link[0] = link[0].older
        else:
            link = &link[0].older
    while place[0] != NULL:
        order = place[0]
        if order.stream == stream and order.number <= number:
            place[0] = order.older
            other, behind = order.other, order.behind
            free(order)
            complete(plain, other, behind)
            place = &plain.newest_order
        else:
            place = &order.older


cdef int plain_order(void* self, void* stream, void* event) noexcept nogil:
    cdef l0rt_plain* plain = <l0rt_plain*>self
    cdef l0rt_plain_event* behind = <l0rt_plain_event*>event
    cdef l0rt_plain_order* order = <l0rt_plain_order*>calloc(1, sizeof(l0rt_plain_order))
    cdef int code
    if order == NULL:
        return L0RT_NO_HOST_MEMORY
    mutex_lock(&plain.mutex)
    code = plain.order_code
    if code == 0:
        plain.orders += 1
        plain.number += 1
        note(plain, ORDERED, <uintptr_t>stream, behind.number)
        if not behind.is_done:
            order.stream, order.number = stream, plain.number
            order.other, order.behind = behind.stream, behind.number
            order.older = plain.newest_order
            plain.newest_order = order
            order = NULL
    mutex_unlock(&plain.mutex)
    free(order)
    return code


cdef int plain_query(void* self, void* event) noexcept nogil:
    cdef l0rt_plain* plain = <l0rt_plain*>self
    cdef int code
    mutex_lock(&plain.mutex)
    code = 0 if (<l0rt_plain_event*>event).is_done else 1
    mutex_unlock(&plain.mutex)
    return code


cdef int plain_wait(void* self, void* event) noexcept nogil:
    cdef l0rt_plain* plain = <l0rt_plain*>self
    cdef int code
    mutex_lock(&plain.mutex)
    plain.waits += 1
    code = plain.wait_code
    if code == 0:
        complete(plain, (<l0rt_plain_event*>event).stream, (<l0rt_plain_event*>event).number)
    mutex_unlock(&plain.mutex)
    return code


cdef void plain_drop(void* self, void* event) noexcept nogil:
    cdef l0rt_plain* plain = <l0rt_plain*>self
    cdef l0rt_plain_event** link = &plain.newest
    mutex_lock(&plain.mutex)
    while link[0] != NULL and link[0] != <l0rt_plain_event*>event:
        link = &link[0].older
    if link[0] != NULL:
        link[0] = link[0].older
    plain.drops += 1
    mutex_unlock(&plain.mutex)
    free(event)


cdef int plain_range_reserve(void* self, size_t nbytes, void** out) noexcept nogil:
    """Addresses only: the pages are there once physical memory is mapped."""
    cdef l0rt_plain* plain = <l0rt_plain*>self
    cdef char* memory = <char*>mmap(NULL, nbytes + GRANULE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                                    -1, 0)
    cdef size_t before = -<uintptr_t>memory % GRANULE
    if <void*>memory == MAP_FAILED:
        return FULL
    if before != 0:
        munmap(memory, before)
    munmap(memory + before + nbytes, GRANULE - before)
    out[0] = memory + before
    mutex_lock(&plain.mutex)
    plain.ranges += 1
    plain.addresses += nbytes
    mutex_unlock(&plain.mutex)
    return 0


cdef int plain_range_release(void* self, void* ptr, size_t nbytes) noexcept nogil:
    cdef l0rt_plain* plain = <l0rt_plain*>self
    munmap(ptr, nbytes)
    mutex_lock(&plain.mutex)
    plain.ranges -= 1
    plain.addresses -= nbytes
    mutex_unlock(&plain.mutex)
    return 0


cdef int plain_physical_mem_create(void* self, size_t nbytes, void** out) noexcept nogil:
    cdef l0rt_plain* plain = <l0rt_plain*>self
    cdef int code = 0
    mutex_lock(&plain.mutex)
    if plain.refusals != 0:
        plain.refusals -= 1
        code = plain.refusal
    elif nbytes > plain.capacity - plain.used:
        code = FULL
    else:
        plain.used += nbytes
        plain.physicals += 1
        out[0] = self
    mutex_unlock(&plain.mutex)
    return code


cdef int plain_physical_mem_destroy(void* self, void* physical, size_t nbytes) noexcept nogil:
    cdef l0rt_plain* plain = <l0rt_plain*>self
    mutex_lock(&plain.mutex)
    plain.used -= nbytes
    plain.physicals -= 1
    mutex_unlock(&plain.mutex)
    return 0


cdef int plain_physical_mem_map(void* self, void* ptr, size_t nbytes, void* physical) noexcept nogil:
    cdef l0rt_plain* plain = <l0rt_plain*>self
    cdef int code = 0
    mutex_lock(&plain.mutex)
    if nbytes % PAGE != 0 or <uintptr_t>ptr % PAGE != 0 or (
            nbytes >= GRANULE and (nbytes % GRANULE != 0 or <uintptr_t>ptr % GRANULE != 0)):
        code = STUCK                # as drivers do with large pages
    elif plain.map_refusals > 0:
        plain.map_refusals -= 1
        if plain.map_refusals == 0:
            code = FULL
    if code == 0:
        plain.maps += 1
    mutex_unlock(&plain.mutex)
    return code if code != 0 or mprotect(ptr, nbytes, PROT_READ | PROT_WRITE) == 0 else FULL


cdef int plain_physical_mem_unmap(void* self, void* ptr, size_t nbytes, void* physical) noexcept nogil:
    """What was written is gone, and touching it is a crash."""
    cdef l0rt_plain* plain = <l0rt_plain*>self
    cdef bint refused = False
    mutex_lock(&plain.mutex)
    if plain.unmap_refusals > 0:
        plain.unmap_refusals -= 1
        refused = plain.unmap_refusals == 0
    mutex_unlock(&plain.mutex)
    if refused:
        return STUCK
    madvise(ptr, nbytes, MADV_DONTNEED)
    mprotect(ptr, nbytes, PROT_NONE)
    mutex_lock(&plain.mutex)
    plain.unmaps += 1
    note(plain, TAKEN_AWAY, <uintptr_t>ptr, nbytes)
    mutex_unlock(&plain.mutex)
    return 0


cdef int plain_is_oom(int code) noexcept nogil:
    return code == FULL


cdef l0rt_memory_ops plain_ops
plain_ops.reserve = plain_reserve
plain_ops.release = plain_release
plain_ops.record = plain_record
plain_ops.query = plain_query
plain_ops.wait = plain_wait
plain_ops.drop = plain_drop
plain_ops.is_oom = plain_is_oom
plain_ops.range_reserve = plain_range_reserve
plain_ops.range_release = plain_range_release
plain_ops.physical_mem_create = plain_physical_mem_create
plain_ops.physical_mem_destroy = plain_physical_mem_destroy
plain_ops.physical_mem_map = plain_physical_mem_map
plain_ops.physical_mem_unmap = plain_physical_mem_unmap
plain_ops.order = plain_order


@cython.final
@cython.no_gc
@cython.binding(False)
cdef class PlainMemory(Memory):
    """Host memory, at most ``capacity`` bytes at once, at addresses ``skew`` behind a multiple of 64 KiB.

    With ``virtual``, addresses and memory come separately: so many bytes of addresses at once; with ``fine`` memory
    comes in small granules.
    """

    cdef l0rt_plain plain

    def __cinit__(self, capacity=None, skew=0, virtual=0, fine=False, granule=None):
        cdef l0rt_heap_options options
        if not 0 <= skew < PAGE:
            raise ValueError(f"skew is less than {PAGE}, not {skew}")
        mutex_init(&self.plain.mutex, NULL)
        self.plain.capacity = UINT64_MAX if capacity is None else capacity
        self.plain.skew = skew
        self.ops = &plain_ops
        options_map(&options, fine)
        self.granule = (options.granule if granule is None else granule) if virtual else 0
        self.large_page, self.parts, self.moves = options.large_page, options.parts, options.moves
        self.range = virtual
        self.self = &self.plain

    host_accessible = True

    def __dealloc__(self):
        cdef l0rt_plain_order* order
        while self.plain.newest_order != NULL:
            order = self.plain.newest_order
            self.plain.newest_order = order.older
            free(order)
        free(self.plain.notes)
        mutex_destroy(&self.plain.mutex)

    def refuse(self, times, code=FULL):
        """Let the next ``times`` reservations answer ``code``; ``code`` 1 means out of memory."""
        self.plain.refusal, self.plain.refusals = code, times

    def fail(self, record=0, wait=0, order=0):
        """Let record, wait and order answer these codes from now on."""
        self.plain.record_code, self.plain.wait_code, self.plain.order_code = record, wait, order

    def work(self):
        """A stream is given work: return its number, which that of every later event is above."""
        self.plain.number += 1
        return self.plain.number

    def take_notes(self):
        """Return what happened since the last call, as ``(kind, subject, number)``: a stream has recorded an event (0),
        is ordered behind one (1), has come so far (2); so many bytes at an address were taken away (3)."""
        cdef int64_t i
        mutex_lock(&self.plain.mutex)       # whoever holds it never wants the GIL
        self.plain.keeps_notes = True
        notes = [(self.plain.notes[i].kind, self.plain.notes[i].subject, self.plain.notes[i].number)
                 for i in range(self.plain.note_count)]
        self.plain.note_count = 0
        mutex_unlock(&self.plain.mutex)
        return notes

    def refuse_map(self, nth):
        """Let the ``nth`` map from now on find no memory."""
        self.plain.map_refusals = nth

    def refuse_unmap(self, nth):
        """Let the ``nth`` unmap from now on leave everything mapped."""
        self.plain.unmap_refusals = nth

    def hold(self, on=True):
        """From now on work takes until finish() or until somebody waits for it."""
        self.plain.is_held = on

    def finish(self, stream=None, count=None):
        """Complete the ``count`` oldest events of ``stream`` (None: all); return how many there were."""
        cdef l0rt_plain_event* event
        cdef l0rt_plain_event* oldest
        cdef uintptr_t wanted = 0 if stream is None else stream
        cdef int64_t left = -1 if count is None else count
        cdef bint any_stream = stream is None
        cdef int64_t finished = 0
        with nogil:
            mutex_lock(&self.plain.mutex)
            while left != 0:
                oldest = NULL
                event = self.plain.newest
                while event != NULL:
                    if any_stream or <uintptr_t>event.stream == wanted:
                        oldest = event
                    event = event.older
                if oldest == NULL:
                    break
                complete(&self.plain, oldest.stream, oldest.number)
                finished += 1
                left -= 1
            mutex_unlock(&self.plain.mutex)
        return finished

    @property
    def counters(self):
        """What was called how often, and the bytes in use and of addresses."""
        return {
            "used": self.plain.used,
            "reserves": self.plain.reserves,
            "releases": self.plain.releases,
            "records": self.plain.records,
            "waits": self.plain.waits,
            "orders": self.plain.orders,
            "drops": self.plain.drops,
            "ranges": self.plain.ranges,
            "addresses": self.plain.addresses,
            "physicals": self.plain.physicals,
            "maps": self.plain.maps,
            "unmaps": self.plain.unmaps,
        }
