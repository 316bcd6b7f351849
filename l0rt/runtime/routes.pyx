"""Beside the cache: whether a thread is in a pool, and what memory is filled with before somebody has it.

While a thread is in a pool, or memory is filled, no stream has an arena at hand: every allocation takes the slow way,
which asks. So the hit path needs not ask, and costs nothing more while there is neither.
"""

from libc.string cimport memset

from l0rt.runtime.atomics cimport mutex_lock, mutex_unlock, pthread_mutex_t, store
from l0rt.runtime.devices cimport device_record, device_total
from l0rt.runtime.heap cimport block_free
from l0rt.runtime.lane cimport lane_fill
from l0rt.runtime.records cimport *

from l0rt import config

cdef extern from *:
    """
    static pthread_mutex_t l0rt_routes_lock = PTHREAD_MUTEX_INITIALIZER;
    """
    pthread_mutex_t routes_lock "l0rt_routes_lock"

cdef enum:
    UNKNOWN = -2                    # not looked up yet

cdef int routes_active = 0
filling = UNKNOWN


cdef void at_hand(l0rt_stream* stream, l0rt_arena* arena) noexcept nogil:
    """Let the stream's next allocation find the arena, unless it has to ask."""
    mutex_lock(&routes_lock)
    if routes_active == 0:
        store(&stream.arena, arena)     # heap_arena makes one a stream: a second writer writes the same
    mutex_unlock(&routes_lock)


cdef void routes_change(int change) noexcept nogil:
    global routes_active
    cdef l0rt_stream* stream
    cdef int i, p, s
    mutex_lock(&routes_lock)
    routes_active += change
    for i in range(device_total()):
        stream = device_record(i).others
        while stream != NULL:
            store(&stream.arena, NULL)
            stream = stream.next
        store(&device_record(i).default_stream.arena, NULL)
        for p in range(3):
            for s in range(L0RT_POOL_STREAMS):
                store(&device_record(i).pool[p][s].arena, NULL)
    mutex_unlock(&routes_lock)


cdef int set_filling(byte) except -1:
    """Fill memory with this byte from now on; None: with nothing."""
    global filling
    cdef int before = filling
    filling = -1 if byte is None else byte
    if (filling >= 0) != (before >= 0):
        with nogil:
            routes_change(1 if filling >= 0 else -1)
    return 0


cdef int fill_host(void* pointer, size_t nbytes) except -1:
    """Fill memory that the host writes to and no device uses, if the configuration says so."""
    if filling == UNKNOWN:
        set_filling(config.get("alloc_conf").fill_uninitialized)
    if filling >= 0:
        with nogil:
            memset(pointer, filling, nbytes)
    return 0


cdef int fill_block(l0rt_stream* stream, l0rt_block* block) except -1 nogil:
    """Fill all of a block that nobody has yet, in the order of the stream that it is for."""
    cdef unsigned char byte = filling
    if (<int (*)(l0rt_stream*, void*, const void*, size_t, size_t) noexcept nogil>lane_fill)(
            stream, block.ptr, &byte, 1, block.size) < 0:
        block_free(block)
        return -1
    return 0
