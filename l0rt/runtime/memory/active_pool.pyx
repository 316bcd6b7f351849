# SPDX-License-Identifier: Apache-2.0
"""The pool from which a thread allocates, and the byte with which memory is filled before it is handed out.

While any thread is in a pool, as one is that captures, or memory is filled, no stream has an arena at hand: every
allocation asks. So the hit path needs not ask, and costs nothing more while there is neither. Who asks finds the arena
in its own thread's record: the default pool's, of the stream, or what its innermost active pool remembers. That
remembers for as long as it is the innermost one, and holds its pool, so that what it remembers stays right. For a
stream that is captured nothing is remembered: its pool is the capture's.
"""

from libc.string cimport memset

from l0rt.runtime.alloc.atomics cimport load, load_int, mutex_lock, mutex_unlock, pthread_mutex_t, store, store_int
from l0rt.runtime.alloc.heap cimport block_free
from l0rt.runtime.alloc.share cimport private_pool_hold, private_pool_release
from l0rt.runtime.current.thread cimport on_thread_end
from l0rt.runtime.streams.capture cimport capture_keep, capture_pool, captures
from l0rt.runtime.streams.copy cimport queue_fill

from l0rt import config

cdef extern from *:
    """
    static pthread_mutex_t l0rt_active_pools_lock = PTHREAD_MUTEX_INITIALIZER;
    """
    pthread_mutex_t active_pools_lock "l0rt_active_pools_lock"

cdef enum:
    UNKNOWN = -2                    # not looked up yet

cdef int active_pools_count = 0     # active pools of all threads, and one more while memory is filled
cdef l0rt_stream* streams_at_hand   # those that have an arena at hand
cdef l0rt_active_pool* left_behind  # of threads that ended inside of a pool
filling = UNKNOWN
asking = 0


cdef l0rt_private_pool* pool_for(l0rt_stream* stream, bint is_pinned, bint* is_captured) except? NULL nogil:
    cdef l0rt_thread* thread = NULL if is_pinned else thread_peek()
    cdef l0rt_active_pool* active = <l0rt_active_pool*>thread.active_pools if thread != NULL else NULL
    cdef l0rt_private_pool* chosen
    cdef l0rt_private_pool* captured = NULL
    while active != NULL and 0 <= active.device != stream.device.index:
        active = active.outer
    chosen = active.private_pool if active != NULL else NULL
    if captures(stream):
        captured = capture_pool(stream, chosen, is_pinned)
    is_captured[0] = captured != NULL
    if captured == NULL:
        if chosen != NULL:
            private_pool_hold(chosen)
        return chosen
    if captured == chosen:
        with gil:
            try:
                capture_keep(stream, chosen, <object>active.pool)
            except BaseException:
                private_pool_release(chosen)
                raise
    return captured


cdef void active_pool_keep(l0rt_thread* thread, l0rt_stream* stream, l0rt_arena* arena) noexcept nogil:
    """Let the next allocation of the thread for the stream find the arena, and that of all threads while no thread is
    in a pool."""
    global streams_at_hand
    cdef l0rt_active_entry* entry
    if arena.private_pool == NULL:
        store(&stream.default_arena, arena)     # one a stream: a second writer writes the same
    if thread != NULL and thread.active_pools != NULL:
        entry = entry_of(<l0rt_active_pool*>thread.active_pools, stream)
        entry.stream = stream
        entry.arena = arena
    if load_int(&active_pools_count) != 0:
        return
    mutex_lock(&active_pools_lock)
    if active_pools_count == 0 and stream.arena == NULL:
        stream.next_at_hand = streams_at_hand
        streams_at_hand = stream
        store(&stream.arena, arena)
    mutex_unlock(&active_pools_lock)


cdef void active_pools_change(int change) noexcept nogil:
    """Count active pools, and what makes everybody ask like one. The lock is held."""
    global streams_at_hand
    cdef l0rt_stream* stream
    store_int(&active_pools_count, active_pools_count + change)
    store_int(&asking, active_pools_count != 0 and load_int(&filling) < 0)
    while active_pools_count != 0 and streams_at_hand != NULL:
        stream = streams_at_hand
        streams_at_hand = stream.next_at_hand
        store(&stream.arena, NULL)


cdef void active_pools_push(l0rt_thread* thread, l0rt_active_pool* active) noexcept nogil:
    """The calling thread allocates from this pool from now on."""
    active.outer = <l0rt_active_pool*>thread.active_pools
    thread.active_pools = active
    mutex_lock(&active_pools_lock)
    active_pools_change(1)
    mutex_unlock(&active_pools_lock)


cdef l0rt_active_pool* active_pools_pop(l0rt_thread* thread) noexcept nogil:
    """The calling thread leaves its innermost active pool, which is the caller's from now on."""
    cdef l0rt_active_pool* active = <l0rt_active_pool*>thread.active_pools
    thread.active_pools = active.outer
    mutex_lock(&active_pools_lock)
    active_pools_change(-1)
    mutex_unlock(&active_pools_lock)
    return active


cdef bint active_pools_remove(l0rt_thread* thread, l0rt_active_pool* active) noexcept nogil:
    """The calling thread leaves an active pool wherever it stands among its others; False: it is not in it."""
    cdef l0rt_active_pool** at = <l0rt_active_pool**>&thread.active_pools
    cdef l0rt_active_pool* inner = <l0rt_active_pool*>thread.active_pools
    while at[0] != NULL and at[0] != active:
        at = &at[0].outer
    if at[0] == NULL:
        return False
    at[0] = active.outer
    mutex_lock(&active_pools_lock)
    while inner != NULL and inner != active:    # these may remember arenas of the pool
        memset(inner.entries, 0, sizeof(inner.entries))
        inner = inner.outer
        if inner == active.outer:
            break
    active_pools_change(-1)
    mutex_unlock(&active_pools_lock)
    return True


cdef void leave_behind(l0rt_thread* thread) noexcept nogil:
    """A thread ends: it is in no pool any more. Its active pools wait for who may touch Python objects."""
    global left_behind
    cdef l0rt_active_pool* active
    mutex_lock(&active_pools_lock)
    while thread.active_pools != NULL:
        active = <l0rt_active_pool*>thread.active_pools
        thread.active_pools = active.outer
        active.outer = left_behind
        store(<void**>&left_behind, active)
        active_pools_change(-1)
    mutex_unlock(&active_pools_lock)


cdef l0rt_active_pool* active_pools_left() noexcept nogil:
    """The active pools of threads that ended inside of a pool: the caller's from now on."""
    global left_behind
    cdef l0rt_active_pool* active_pools = NULL
    if load(<void**>&left_behind) != NULL:
        mutex_lock(&active_pools_lock)
        active_pools = left_behind
        store(<void**>&left_behind, NULL)
        mutex_unlock(&active_pools_lock)
    return active_pools


cdef int set_filling(byte) except -1:
    """Fill memory with this byte from now on; None: with nothing."""
    global filling
    cdef int before
    cdef int after = -1 if byte is None else byte
    with nogil:
        mutex_lock(&active_pools_lock)
        before = filling
        store_int(&filling, after)
        active_pools_change(<int>(after >= 0) - <int>(before >= 0))
        mutex_unlock(&active_pools_lock)
    return 0


cdef int fill_host(void* pointer, size_t nbytes) except -1:
    """Fill memory that the host writes to and no device uses, if the configuration says so."""
    cdef int byte
    if load_int(&filling) == UNKNOWN:
        set_filling(config.alloc_conf().fill_uninitialized)
    byte = load_int(&filling)
    if byte >= 0:
        with nogil:
            memset(pointer, byte, nbytes)
    return 0


cdef int fill_block(l0rt_stream* stream, l0rt_block* block, unsigned char byte) except -1 nogil:
    """Fill a whole block before it is handed out, in the order of its stream."""
    if (<int (*)(l0rt_stream*, void*, const void*, size_t, size_t) noexcept nogil>queue_fill)(
            stream, block.ptr, &byte, 1, block.size) < 0:
        block_free(block)
        return -1
    return 0


on_thread_end(leave_behind)
