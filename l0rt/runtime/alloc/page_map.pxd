# SPDX-License-Identifier: Apache-2.0
"""The pointer map: from any address to the block that holds it, without a lock or a driver call.

A leaf covers 2 GiB and has a word for each page of 64 KiB; a table of 65,536 roots finds the leaf, so all 64 bits
of an address may be in use (some GPUs hand out addresses in the upper half). The word says
    0               not ours
    INSIDE          in a large segment, but no block starts here: look at the pages before
    a block         in a large segment: the one that starts in this page (blocks are no smaller than a page)
    starts | TABLE  in a small segment: a block or NULL for each 512 bytes of this page
Only the holder of the segment's arena lock writes. Readers may race with it: leaves, tables and block records are
never unmapped, so a stale word still leads to memory, and an allocated block's words do not change."""

from libc.stdint cimport uint64_t, uintptr_t

from l0rt.runtime.alloc.atomics cimport load, store, unlikely
from l0rt.runtime.alloc.types cimport GRAIN_SHIFT, PAGE, PAGE_SHIFT, l0rt_block

cdef extern from *:
    """
    #define l0rt_prefetch_to_write(ptr) __builtin_prefetch(ptr, 1)
    """
    void prefetch_to_write "l0rt_prefetch_to_write"(void* ptr) noexcept nogil

cdef enum:
    ROOTS = 1 << 16
    LEAF_SHIFT = 31
    LEAF_PAGES = 1 << 15
    PAGE_GRAINS = 128
    TABLE = 1
    INSIDE = 2

cdef struct l0rt_leaf:
    uint64_t region                 # address >> LEAF_SHIFT
    l0rt_leaf* next                 # another region with the same root
    void* pages[LEAF_PAGES]

cdef struct l0rt_starts:            # of one page of a small segment
    l0rt_starts* next
    l0rt_block* blocks[PAGE_GRAINS]

cdef struct l0rt_map:
    l0rt_leaf* roots[ROOTS]

cdef l0rt_map pagemap

cdef l0rt_block* map_search(const void* ptr) noexcept nogil
cdef int map_memory(int pool, void* ptr, uint64_t size) noexcept nogil
cdef void map_forget(void* ptr, uint64_t size) noexcept nogil
# Is any of these addresses in a segment?
cdef bint map_overlaps(const void* ptr, uint64_t size) noexcept nogil


cdef inline l0rt_leaf* map_leaf(uint64_t region) noexcept nogil:
    cdef l0rt_leaf* leaf = <l0rt_leaf*>load(<void**>&pagemap.roots[(region ^ (region >> 16)) & (ROOTS - 1)])
    while leaf != NULL and leaf.region != region:
        leaf = leaf.next
    return leaf


cdef inline l0rt_block* map_start(const void* ptr) noexcept nogil:
    """The block that starts at ``ptr``, free or not; NULL if none does."""
    cdef uintptr_t address = <uintptr_t>ptr
    cdef l0rt_leaf* leaf = map_leaf(address >> LEAF_SHIFT)
    cdef uintptr_t word
    cdef l0rt_block* block
    if unlikely(leaf == NULL):
        return NULL
    word = <uintptr_t>load(&leaf.pages[(address >> PAGE_SHIFT) & (LEAF_PAGES - 1)])
    if word & TABLE:
        word = <uintptr_t>load(<void**>(word - TABLE) + ((address >> GRAIN_SHIFT) & (PAGE_GRAINS - 1)))
    if unlikely(word <= INSIDE):
        return NULL
    block = <l0rt_block*>word
    return block if block.ptr == ptr else NULL


cdef inline l0rt_block* map_find(const void* ptr) noexcept nogil:
    """The block that holds ``ptr``, free or not; NULL for a foreign address. Fastest for a block's start."""
    cdef l0rt_block* block = map_start(ptr)
    return block if block != NULL else map_search(ptr)


cdef inline void** map_page(uintptr_t address) noexcept nogil:
    """Where the word of an address that is or was ours stands."""
    return &map_leaf(address >> LEAF_SHIFT).pages[(address >> PAGE_SHIFT) & (LEAF_PAGES - 1)]


cdef inline void map_expect(const void* ptr) noexcept nogil:
    """This address, which is or was ours, will be written soon."""
    prefetch_to_write(map_page(<uintptr_t>ptr))


cdef inline void map_set(void* ptr, l0rt_block* block) noexcept nogil:
    """A block starts at ``ptr``, which is ours; with NULL, none does any more."""
    cdef uintptr_t address = <uintptr_t>ptr
    cdef void** page = map_page(address)
    cdef uintptr_t word = <uintptr_t>load(page)
    if word & TABLE:
        store(<void**>(word - TABLE) + ((address >> GRAIN_SHIFT) & (PAGE_GRAINS - 1)), block)
    elif block != NULL:
        store(page, block)
    else:
        store(page, <void*>INSIDE)
