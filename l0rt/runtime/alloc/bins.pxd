# SPDX-License-Identifier: Apache-2.0
"""Two-level bins of free blocks: a power of two, cut into eight, each an intrusive list under a bit of a bitmap."""

from libc.stdint cimport uint64_t

from l0rt.runtime.alloc.types cimport COLUMNS, GRAIN_SHIFT, l0rt_bins, l0rt_block

cdef extern from *:
    int leading_zeros "__builtin_clzll" (unsigned long long x) noexcept nogil
    int trailing_zeros "__builtin_ctzll" (unsigned long long x) noexcept nogil

cdef enum:
    # How far to look along one list. Taking the next larger class at once costs 7 % of memory on real traces;
    # looking at this many blocks of the own class is as good as an exact best fit.
    LOOKS = 8


cdef inline unsigned bin_of(uint64_t size) noexcept nogil:
    cdef uint64_t grains = size >> GRAIN_SHIFT
    cdef unsigned log
    if grains < COLUMNS:
        return <unsigned>grains
    log = 63 - leading_zeros(grains)
    return ((log - 2) << 3) | <unsigned>((grains >> (log - 3)) & (COLUMNS - 1))


cdef inline void bins_add(l0rt_bins* bins, l0rt_block* block) noexcept nogil:
    """Insert in front, where a request that has just grown the heap finds its block. An order by address costs time
    and saves
    no memory."""
    cdef unsigned bin = bin_of(block.size)
    block.next = bins.heads[bin]
    block.previous = NULL
    if block.next != NULL:
        block.next.previous = block
    bins.heads[bin] = block
    bins.columns[bin >> 3] |= 1 << (bin & 7)
    bins.rows |= <uint64_t>1 << (bin >> 3)


cdef inline void bins_remove(l0rt_bins* bins, l0rt_block* block) noexcept nogil:
    cdef unsigned bin
    if block.next != NULL:
        block.next.previous = block.previous
    if block.previous != NULL:
        block.previous.next = block.next
        return
    bin = bin_of(block.size)
    bins.heads[bin] = block.next
    if block.next == NULL:
        bins.columns[bin >> 3] &= ~(1 << (bin & 7))
        if bins.columns[bin >> 3] == 0:
            bins.rows &= ~(<uint64_t>1 << (bin >> 3))


cdef inline l0rt_block* bins_find(l0rt_bins* bins, uint64_t size) noexcept nogil:
    """A block of at least ``size``: from the own class if one fits, else from the next larger class that has any."""
    cdef unsigned bin = bin_of(size), row = bin >> 3
    cdef l0rt_block* block = bins.heads[bin]
    cdef int looks = LOOKS
    cdef uint64_t bits
    while block != NULL and looks > 0:
        if block.size >= size:
            return block
        block = block.next
        looks -= 1
    bits = bins.columns[row] & ~((<uint64_t>2 << (bin & 7)) - 1)
    if bits == 0:
        bits = bins.rows & ~((<uint64_t>2 << row) - 1)
        if bits == 0:
            return NULL
        row = trailing_zeros(bits)
        bits = bins.columns[row]
    return bins.heads[(row << 3) | <unsigned>trailing_zeros(bits)]
