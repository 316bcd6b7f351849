"""Two-level bins of free blocks: a power of two, cut into eight, each an intrusive list under a bit of a bitmap."""

from libc.stdint cimport uint64_t

from l0rt.runtime.atomics cimport unlikely
from l0rt.runtime.structs cimport COLUMNS, GRAIN_SHIFT, l0rt_bins, l0rt_block

cdef extern from *:
    """
    #define bins_looks 8
    #define bins_sorted 2
    /* Whoever grows looks for what came of it in the bins. Were it put deeper than that look goes, growing would not
     * end. */
    _Static_assert(bins_sorted < bins_looks, "a block that was just freed must be found");
    """
    int leading_zeros "__builtin_clzll" (unsigned long long x) noexcept nogil
    int trailing_zeros "__builtin_ctzll" (unsigned long long x) noexcept nogil
    enum:
        # How far to look along one list. Taking the next larger class at once costs 7 % of memory on real traces;
        # looking at this many blocks of the own class is as good as an exact best fit.
        LOOKS "bins_looks"
        # Among so many a freed block is put in the order of addresses. More costs time and saves no memory.
        SORTED "bins_sorted"


cdef inline unsigned bin_of(uint64_t size) noexcept nogil:
    cdef uint64_t grains = size >> GRAIN_SHIFT
    cdef unsigned log
    if grains < COLUMNS:
        return <unsigned>grains
    log = 63 - leading_zeros(grains)
    return ((log - 2) << 3) | <unsigned>((grains >> (log - 3)) & (COLUMNS - 1))


cdef inline void bins_add(l0rt_bins* bins, l0rt_block* block) noexcept nogil:
    """Keep the front of each list in address order: the lowest address is taken first, so that the ends grow free."""
    cdef unsigned bin = bin_of(block.size)
    cdef l0rt_block* next = bins.heads[bin]
    cdef l0rt_block* previous = NULL
    cdef int looks = SORTED
    while next != NULL and next.ptr < block.ptr and looks > 0:
        previous = next
        next = next.next
        looks -= 1
    block.next = next
    block.previous = previous
    if next != NULL:
        next.previous = block
    if previous != NULL:
        previous.next = block
        return
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
