# SPDX-License-Identifier: Apache-2.0
"""The pool from which a thread allocates, and the byte with which memory is filled before it is handed out."""

from libc.stdint cimport uint32_t, uintptr_t

from l0rt.runtime.alloc.arena cimport arena_hit
from l0rt.runtime.alloc.atomics cimport load, load_int, unlikely
from l0rt.runtime.alloc.share cimport is_asleep
from l0rt.runtime.alloc.types cimport (
    ACTIVE_ENTRIES,
    l0rt_arena,
    l0rt_block,
    l0rt_private_pool,
    l0rt_active_pool,
    l0rt_active_entry,
)
from l0rt.runtime.current.thread cimport thread_peek
from l0rt.runtime.streams.types cimport l0rt_stream, l0rt_thread

# The byte that device memory is filled with; negative: none. Atomic.
cdef int filling
# Some thread is in a pool, and memory is not filled: a thread may use the arena that it found before.
cdef int asking

# The private pool of the calling thread's allocation for a stream, held until `private_pool_release`; NULL: the default
# one. A captured stream's is its capture's, and nothing else may remember it. Pinned memory has no other.
cdef l0rt_private_pool* pool_for(l0rt_stream* stream, bint is_pinned, bint* is_captured) except? NULL nogil
cdef void active_pool_keep(l0rt_thread* thread, l0rt_stream* stream, l0rt_arena* arena) noexcept nogil
cdef void active_pools_push(l0rt_thread* thread, l0rt_active_pool* active) noexcept nogil
cdef l0rt_active_pool* active_pools_pop(l0rt_thread* thread) noexcept nogil
cdef bint active_pools_remove(l0rt_thread* thread, l0rt_active_pool* active) noexcept nogil
cdef l0rt_active_pool* active_pools_left() noexcept nogil
cdef int set_filling(byte) except -1
cdef int fill_host(void* pointer, size_t nbytes) except -1
cdef int fill_block(l0rt_stream* stream, l0rt_block* block, unsigned char byte) except -1 nogil


cdef inline l0rt_active_entry* entry_of(l0rt_active_pool* active, l0rt_stream* stream) noexcept nogil:
    cdef uint32_t hash = <uint32_t>(<uintptr_t>stream >> 4) * <uint32_t>0x9E3779B1
    return &active.entries[hash >> 28 & (ACTIVE_ENTRIES - 1)]


cdef inline l0rt_arena* arena_asked(l0rt_thread* thread, l0rt_stream* stream) noexcept nogil:
    """The arena from which the thread allocates for a stream that names no arena; NULL: the slow path finds it."""
    cdef l0rt_active_entry* entry
    cdef l0rt_active_pool* active
    if unlikely(load_int(&asking) == 0 or thread == NULL or stream.branch != NULL):
        return NULL
    active = <l0rt_active_pool*>thread.active_pools
    if active == NULL:
        return <l0rt_arena*>load(&stream.default_arena)
    entry = entry_of(active, stream)
    if unlikely(entry.stream != stream or is_asleep(entry.arena.private_pool)):
        return NULL
    return entry.arena


cdef inline l0rt_block* block_at_hand(size_t nbytes, l0rt_stream** on) noexcept nogil:
    """Take a cached block for the thread's current stream, and tell the stream; NULL: the slow path finds both."""
    cdef l0rt_thread* thread = thread_peek()
    cdef l0rt_arena* arena
    if thread == NULL:
        return NULL
    on[0] = thread.streams[thread.device]
    arena = <l0rt_arena*>load(&on[0].arena)
    if arena == NULL:
        arena = arena_asked(thread, on[0])
    return arena_hit(arena, nbytes) if arena != NULL else NULL
