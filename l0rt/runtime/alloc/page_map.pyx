# SPDX-License-Identifier: Apache-2.0
"""The pointer map: segments come and go, and interior addresses are searched for."""

from libc.stdint cimport uint64_t, uintptr_t
from libc.stdlib cimport calloc
from libc.string cimport memset

from l0rt.runtime.alloc.atomics cimport load, mutex_lock, mutex_unlock, pthread_mutex_t, store
from l0rt.runtime.alloc.types cimport (
    GRAIN_SHIFT,
    L0RT_NO_HOST_MEMORY,
    L0RT_OK,
    PAGE,
    PAGE_SHIFT,
    SMALL,
    l0rt_block,
)

cdef extern from *:
    """
    static pthread_mutex_t l0rt_map_growth = PTHREAD_MUTEX_INITIALIZER;
    """
    pthread_mutex_t growth "l0rt_map_growth"     # new leaves, and the tables below

cdef l0rt_starts* spare_starts                   # kept for ever: a reader may still be looking

cdef enum:
    SLAB = 32                       # tables taken from the C library at once: for 2 MiB


cdef l0rt_leaf* leaf_made(uint64_t region) noexcept nogil:
    """The region's leaf; NULL without host memory. The mutex is held."""
    cdef l0rt_leaf* leaf = map_leaf(region)
    cdef l0rt_leaf** root = &pagemap.roots[(region ^ (region >> 16)) & (ROOTS - 1)]
    if leaf == NULL:
        leaf = <l0rt_leaf*>calloc(1, sizeof(l0rt_leaf))
        if leaf != NULL:
            leaf.region = region
            leaf.next = root[0]
            store(<void**>root, leaf)
    return leaf


cdef l0rt_block** starts_new() noexcept nogil:
    cdef l0rt_starts* starts
    cdef int i
    global spare_starts
    if spare_starts == NULL:
        starts = <l0rt_starts*>calloc(SLAB, sizeof(l0rt_starts))
        if starts == NULL:
            return NULL
        for i in range(SLAB - 1):
            starts[i].next = &starts[i + 1]
        spare_starts = starts
    starts = spare_starts
    spare_starts = starts.next
    return starts.blocks


cdef void starts_drop(l0rt_block** blocks) noexcept nogil:
    cdef l0rt_starts* starts = <l0rt_starts*>(<char*>blocks - sizeof(void*))
    global spare_starts
    memset(blocks, 0, sizeof(starts.blocks))
    starts.next = spare_starts
    spare_starts = starts


cdef int map_memory(int pool, void* ptr, uint64_t size) noexcept nogil:
    """Make these addresses ours, from a multiple of 64 KiB on; no block starts there yet."""
    cdef uintptr_t base = <uintptr_t>ptr
    cdef uint64_t region, offset = 0
    cdef int status = L0RT_OK
    mutex_lock(&growth)
    for region in range(base >> LEAF_SHIFT, ((base + size - 1) >> LEAF_SHIFT) + 1):
        if leaf_made(region) == NULL:
            status = L0RT_NO_HOST_MEMORY
    while status == L0RT_OK and offset < size:
        status = page_open(pool, base + offset)
        if status == L0RT_OK:
            offset += PAGE
    if status != L0RT_OK:
        pages_clear(base, offset)
    mutex_unlock(&growth)
    return status


cdef inline int page_open(int pool, uintptr_t address) noexcept nogil:
    cdef void* word = <void*>INSIDE
    if pool == SMALL:
        word = starts_new()
        if word == NULL:
            return L0RT_NO_HOST_MEMORY
        word = <void*>(<uintptr_t>word | TABLE)
    page_set(address, word)
    return L0RT_OK


cdef void map_forget(void* ptr, uint64_t size) noexcept nogil:
    """These addresses, whole pages, are no longer ours."""
    mutex_lock(&growth)
    pages_clear(<uintptr_t>ptr, size)
    mutex_unlock(&growth)


cdef void pages_clear(uintptr_t base, uint64_t size) noexcept nogil:
    cdef uint64_t offset = 0
    cdef uintptr_t word
    while offset < size:
        word = <uintptr_t>load(map_page(base + offset))
        if word & TABLE:
            starts_drop(<l0rt_block**>(word - TABLE))
        page_set(base + offset, NULL)
        offset += PAGE


cdef inline void page_set(uintptr_t address, void* word) noexcept nogil:
    store(map_page(address), word)


cdef bint map_overlaps(const void* ptr, uint64_t size) noexcept nogil:
    cdef uintptr_t page = <uintptr_t>ptr >> PAGE_SHIFT, last = (<uintptr_t>ptr + size - 1) >> PAGE_SHIFT
    cdef l0rt_leaf* leaf
    while page <= last:
        leaf = map_leaf(page >> (LEAF_SHIFT - PAGE_SHIFT))
        if leaf == NULL:
            page = (page | (LEAF_PAGES - 1)) + 1
        elif load(&leaf.pages[page & (LEAF_PAGES - 1)]) != NULL:
            return True
        else:
            page += 1
    return False


cdef l0rt_block* map_search(const void* ptr) noexcept nogil:
    """The block that holds ``ptr``, wherever in it: the last one that starts at or before it."""
    cdef uintptr_t address = <uintptr_t>ptr, page = address >> PAGE_SHIFT, word
    cdef unsigned grain = (address >> GRAIN_SHIFT) & (PAGE_GRAINS - 1), index
    cdef l0rt_leaf* leaf = NULL
    cdef l0rt_block* block
    while True:
        index = page & (LEAF_PAGES - 1)
        if leaf == NULL or index == LEAF_PAGES - 1:
            leaf = map_leaf(page >> (LEAF_SHIFT - PAGE_SHIFT))
            if leaf == NULL:
                return NULL
        word = <uintptr_t>load(&leaf.pages[index])
        if word == 0:
            return NULL
        if word & TABLE:
            block = last_start(<l0rt_block**>(word - TABLE), grain)
        else:
            block = <l0rt_block*>word if word != INSIDE else NULL
        if block != NULL and <uintptr_t>block.ptr <= address:
            return block if address - <uintptr_t>block.ptr < block.size else NULL
        if page == 0:
            return NULL
        page -= 1
        grain = PAGE_GRAINS - 1


cdef inline l0rt_block* last_start(l0rt_block** starts, unsigned grain) noexcept nogil:
    cdef l0rt_block* block = NULL
    cdef int i
    for i in range(<int>grain, -1, -1):
        block = <l0rt_block*>load(<void**>&starts[i])
        if block != NULL:
            break
    return block
