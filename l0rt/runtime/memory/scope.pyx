# SPDX-License-Identifier: Apache-2.0
"""Scopes of the statistics: the peaks and the totals of a device's allocator since a moment."""

cimport cython
from libc.stdlib cimport calloc, free

from l0rt.runtime.alloc.arena_index cimport heap_poll
from l0rt.runtime.alloc.atomics cimport spin_lock, spin_unlock
from l0rt.runtime.alloc.stats cimport ACCUMULATED, peaks_begin, recount_lock, recount_unlock, totals
from l0rt.runtime.alloc.types cimport l0rt_heap, l0rt_scope, l0rt_stat, l0rt_stats
from l0rt.runtime.memory.device cimport device_heap
from l0rt.runtime.streams.devices cimport device_at
from l0rt.runtime.streams.types cimport l0rt_device

cdef tuple BYTES = ("allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes")


@cython.final
@cython.no_gc
@cython.binding(False)
cdef class Scope:
    """Scope(index): a scope of device ``index``, which begins now, and ends with `end` or when it is dropped."""

    cdef l0rt_heap* heap
    cdef l0rt_scope* scope      # the heap has it in a list until it ends; NULL: it ended
    cdef l0rt_stats stats       # the last that was read

    def __cinit__(self, int index):
        cdef l0rt_device* device = device_at(index)
        cdef bint begun
        with nogil:
            self.heap = device_heap(device)
        heap_poll(self.heap)
        self.scope = <l0rt_scope*>calloc(1, sizeof(l0rt_scope))
        if self.scope == NULL:
            raise MemoryError()
        with nogil:
            begun = scope_begin(self.heap, self.scope)
        if not begun:
            free(self.scope)
            self.scope = NULL
            raise RuntimeError("the allocator is closed")
        self.stats = self.scope.begun

    def __dealloc__(self):
        scope_look(self, True)

    def end(self):
        """End it now; ending twice is harmless."""
        scope_look(self, True)

    def figures(self):
        """Return, for each kind of bytes, ``begin``, ``current``, ``peak``, ``allocated`` and ``freed``: up to now, or
        to the end."""
        if self.scope != NULL:
            heap_poll(self.heap)
        scope_look(self, False)
        stats = (self.stats.allocated_bytes.all, self.stats.reserved_bytes.all, self.stats.active_bytes.all,
                 self.stats.requested_bytes.all)
        return {name: {"begin": each["current"] - each["allocated"] + each["freed"], **each}
                for name, each in zip(BYTES, stats)}


cdef void scope_look(Scope self, bint ends) noexcept:
    """Read the statistics, while it has not ended. Of a closed heap, as in a forked child, they stay as they were, and
    the list that the scope is in is nobody's any more."""
    cdef l0rt_scope* scope = self.scope
    cdef l0rt_stats stats
    cdef bint read
    if scope == NULL:
        return
    if ends:
        self.scope = NULL
    with nogil:
        read = scope_read(self.heap, scope, ends, &stats)
    if read:
        self.stats = stats
        if ends:
            free(scope)


cdef bint scope_begin(l0rt_heap* heap, l0rt_scope* scope) noexcept nogil:
    """False: the heap is closed."""
    if not recount_lock(heap, NULL):
        return False
    peaks_begin(heap)
    scope.begun = heap.stats
    scope.next = heap.scopes
    heap.scopes = scope
    recount_unlock(heap)
    return True


cdef bint scope_read(l0rt_heap* heap, l0rt_scope* scope, bint ends, l0rt_stats* out) noexcept nogil:
    """The peaks since the scope began, and what was allocated and freed since. False: the heap is closed."""
    cdef l0rt_stat* stat = <l0rt_stat*>out
    cdef l0rt_stat* begun = <l0rt_stat*>&scope.begun
    cdef l0rt_stat* kept = <l0rt_stat*>&scope.peaks
    cdef l0rt_scope** at = &heap.scopes
    cdef int i
    if not recount_lock(heap, NULL):
        return False
    totals(heap)
    spin_lock(&heap.oversize)
    out[0] = heap.stats
    spin_unlock(&heap.oversize)
    for i in range(ACCUMULATED):
        stat[i].peak = max(stat[i].peak, kept[i].peak)
        stat[i].allocated -= begun[i].allocated
        stat[i].freed -= begun[i].freed
    while ends and at[0] != scope:
        at = &at[0].next
    if ends:
        at[0] = scope.next
    recount_unlock(heap)
    return True
