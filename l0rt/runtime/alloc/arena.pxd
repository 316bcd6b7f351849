# SPDX-License-Identifier: Apache-2.0
"""An arena: what one stream has of a memory. Class stacks in front for up to 1 MiB, coalescing bins behind.

The hit path is here. It may run with the GIL held: it only tries the lock, calls no memory operation, and costs the
same however much is cached."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from l0rt.runtime.alloc.atomics cimport spin_try, spin_unlock, store_i64, unlikely
from l0rt.runtime.alloc.types cimport (
    CACHED,
    CLASSES,
    GRAIN,
    GRAIN_SHIFT,
    LIVE,
    RAW,
    SMALL,
    l0rt_headroom,
    l0rt_arena,
    l0rt_block,
    l0rt_heap,
    l0rt_stat,
    l0rt_tuning,
)

cdef enum:
    # results of arena_take, different from all status codes
    TAKEN = 0
    MISS = -100                     # nothing fits
    TIGHT = -101                    # the headroom needs a recount first

# The arena's lock is held. `recounting`: all arenas' are, and the recount follows.
cdef int arena_take(l0rt_arena* arena, uint64_t size, uint64_t requested, bint recounting,
                    l0rt_block** out) noexcept nogil
cdef bint arena_give(l0rt_block* block, bint recounting) noexcept nogil
# Allocate just this part of a free block. All arenas are locked, and a recount follows.
cdef int arena_take_part(l0rt_block* block, void* ptr, uint64_t size, uint64_t requested,
                         l0rt_block** out) noexcept nogil
cdef void arena_unstack(l0rt_arena* arena) noexcept nogil
cdef uint64_t size_step(const l0rt_tuning* tuning, uint64_t nbytes) noexcept nogil
cdef void oversize_bump(l0rt_heap* heap, l0rt_stat* stat, bint more) noexcept nogil
cdef void oversize_count(l0rt_block* block) noexcept nogil
cdef void arena_gain(l0rt_block* block) noexcept nogil
cdef void arena_resize(l0rt_arena* arena, int64_t reserved) noexcept nogil

# The other halves of the two below: behind the stacks. The lock is held if `locked`, and will be released.
cdef l0rt_block* arena_try(l0rt_arena* arena, size_t nbytes, bint locked) noexcept nogil
cdef int block_try(l0rt_block* block, bint locked) noexcept nogil
# The same for blocks without an owner, which are handed out and freed by their address.
cdef l0rt_block* raw_try(l0rt_arena* arena, size_t nbytes, bint locked) noexcept nogil
cdef int raw_try_free(l0rt_block* block, bint locked) noexcept nogil
cdef int pinned_try_free(l0rt_block* block, bint locked) noexcept nogil

# The rest of the hit path for a miss. It is called last, so that a hit saves and restores no register.
ctypedef void* (*l0rt_serve_rest)(void* who, size_t nbytes, bint locked) noexcept nogil
ctypedef int (*l0rt_return_rest)(l0rt_block* block, bint locked) noexcept nogil


cdef inline bint is_uncached(const l0rt_tuning* tuning, uint64_t nbytes) noexcept nogil:
    """Does an allocation of this size get a segment of its own?"""
    return unlikely(tuning.uncached_from != 0 and nbytes >= tuning.uncached_from)


cdef inline uint64_t size_round(const l0rt_tuning* tuning, uint64_t nbytes) noexcept nogil:
    """What is taken for a request, a multiple of 512 bytes."""
    if unlikely(tuning.rounds):
        return size_step(tuning, nbytes)
    return (nbytes + GRAIN - 1) & ~<uint64_t>(GRAIN - 1)


# What a hit asks, and what it does: apart, so that a hit that is recorded does the same behind the hit path. Negative:
# the headroom, or the stacks' bound, does not suffice. The lock is held.
cdef inline int64_t signs_of_pop(l0rt_arena* arena, size_t klass, size_t nbytes) noexcept nogil:
    cdef l0rt_headroom* headroom = &arena.headroom[SMALL]
    return ((headroom.left.count - 1) | (headroom.left.bytes - <int64_t>((klass + 1) << GRAIN_SHIFT))
            | (headroom.left.requested - <int64_t>nbytes))


cdef inline void stack_pop(l0rt_arena* arena, size_t klass, size_t nbytes, uint32_t state) noexcept nogil:
    cdef l0rt_headroom* headroom = &arena.headroom[SMALL]
    cdef l0rt_block* block = arena.stacks[klass]
    cdef int64_t size = (klass + 1) << GRAIN_SHIFT
    arena.stacks[klass] = block.next
    arena.stack_left += size
    headroom.left.count -= 1
    store_i64(&headroom.left.bytes, headroom.left.bytes - size)
    headroom.left.requested -= <int64_t>nbytes
    block.requested = nbytes
    block.state = state


cdef inline int64_t signs_of_push(l0rt_block* block) noexcept nogil:
    cdef l0rt_headroom* headroom = &block.arena.headroom[SMALL]
    cdef int64_t size = block.size
    return ((headroom.ceiling.count - (headroom.left.count + 1))
            | (headroom.ceiling.bytes - (headroom.left.bytes + size)) | (block.arena.stack_left - size))


cdef inline void stack_push(l0rt_block* block) noexcept nogil:
    cdef l0rt_arena* arena = block.arena
    cdef l0rt_headroom* headroom = &arena.headroom[SMALL]
    cdef int64_t size = block.size
    cdef size_t klass = (<size_t>size >> GRAIN_SHIFT) - 1
    arena.stack_left -= size
    headroom.left.count += 1
    store_i64(&headroom.left.bytes, headroom.left.bytes + size)
    headroom.left.requested += block.requested
    headroom.freed.count += 1
    headroom.freed.bytes += size
    headroom.freed.requested += block.requested
    block.state = CACHED
    block.next = arena.stacks[klass]
    arena.stacks[klass] = block
    arena.filled[klass >> 6] |= <uint64_t>1 << (klass & 63)


cdef inline void* arena_serve(l0rt_arena* arena, size_t nbytes, bint as_pointer,
                              l0rt_serve_rest rest, void* who) noexcept nogil:
    """The top of a class stack, as a block that is the caller's or by its address; else what the rest comes to."""
    cdef size_t klass = (nbytes - 1) >> GRAIN_SHIFT
    cdef l0rt_block* block
    if unlikely(klass >= CLASSES or not spin_try(&arena.lock)):
        return rest(who, nbytes, False)
    block = arena.stacks[klass]
    if unlikely(block == NULL or (signs_of_pop(arena, klass, nbytes) | arena.recording) < 0):
        return rest(who, nbytes, True)
    stack_pop(arena, klass, nbytes, LIVE | RAW if as_pointer else LIVE)
    spin_unlock(&arena.lock)
    return block.ptr if as_pointer else block


cdef inline int block_return(l0rt_block* block, int done, uint32_t raw, l0rt_return_rest rest) noexcept nogil:
    """Put a block that only its own stream used on its class stack: ``done``; else what the rest comes to.

    ``raw`` is RAW or RAW_PINNED for what was handed out by address, 0 for what has an owner: none frees another's."""
    cdef l0rt_arena* arena = block.arena
    if unlikely(not spin_try(&arena.lock)):
        return rest(block, False)
    if unlikely(block.state != LIVE | raw or (signs_of_push(block) | arena.recording) < 0):
        return rest(block, True)
    stack_push(block)
    spin_unlock(&arena.lock)
    return done


cdef inline l0rt_block* arena_hit(l0rt_arena* arena, size_t nbytes) noexcept nogil:
    """A cached block. NULL: nothing fits, the lock is contended, or the heap is closed; call arena_malloc."""
    return <l0rt_block*>arena_serve(arena, nbytes, False, <l0rt_serve_rest>arena_try, arena)


cdef inline bint block_drop(l0rt_block* block) noexcept nogil:
    """Free a block that only its own stream used. False: call block_free, without the GIL."""
    return block_return(block, True, 0, block_try)
