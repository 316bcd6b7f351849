"""Pieces of memory: taken, mapped over a held block's addresses, unmapped. No lock but the growth mutex is held."""

from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc

from l0rt.runtime.alloc.page_map cimport map_forget, map_memory
from l0rt.runtime.alloc.recount cimport census_memory, heap_room, owner_room
from l0rt.runtime.alloc.types cimport L0RT_OK, L0RT_OUT_OF_MEMORY, l0rt_granule

cdef enum:
    PIECE_SHARE = 3                 # a piece is at most 1/8 of what is reserved, or one granule


cdef int pieces_map(l0rt_heap* heap, l0rt_block* held, l0rt_spare** spares, uint64_t* mapped) noexcept nogil:
    """Memory for all of a held block, from spare pieces first; or for nothing of it, but for what the driver does not
    unmap again: ``mapped`` bytes from its start."""
    cdef l0rt_segment* segment = held.segment
    cdef uint64_t first = (<uintptr_t>held.ptr - <uintptr_t>segment.base) // heap.granule
    cdef uint64_t total = held.size // heap.granule, at = 0
    cdef l0rt_spare piece
    cdef int status, calls = 0
    mapped[0] = 0
    if (<int64_t>held.size > owner_room(heap, held.arena.owner)
            or (spare_bytes(heap, spares[0]) < held.size and <int64_t>held.size > heap_room(heap, NULL))):
        heap.by_limit = True        # told before anything is mapped that would have to be undone
        return L0RT_OUT_OF_MEMORY
    status = map_memory(segment.pool, held.ptr, held.size)
    if status != L0RT_OK:
        return status
    while status == L0RT_OK and at < total:
        status = piece_get(heap, at, total - at, spares, &piece)
        if status == L0RT_OK:
            status = heap.ops.piece_map(heap.self, <char*>held.ptr + at * heap.granule,
                                        piece.count * heap.granule, piece.piece)
            if status == L0RT_OK:
                granules_set(&segment.granules[first + at], first + at, &piece)
                at += piece.count
                calls += 1
            else:
                heap.ops.piece_destroy(heap.self, piece.piece, piece.count * heap.granule)
                if heap.ops.is_oom(status):
                    status = L0RT_OUT_OF_MEMORY
    while status != L0RT_OK and at > 0 and piece_back(heap, segment, first + at - 1):
        at = segment.granules[first + at - 1].first - first
        calls -= 1
    mapped[0] = at * heap.granule
    if at != 0:
        census_memory(heap, segment, mapped[0], 0, calls)
    if at != total:
        map_forget(<char*>held.ptr + mapped[0], held.size - mapped[0])
    return status


cdef uint64_t spare_bytes(l0rt_heap* heap, l0rt_spare* spare) noexcept nogil:
    """What is spare counts as given back already."""
    cdef uint64_t granules = 0
    while spare != NULL:
        granules += spare.count
        spare = spare.next
    return granules * heap.granule


cdef bint piece_back(l0rt_heap* heap, l0rt_segment* segment, uint64_t index) noexcept nogil:
    """Unmap and destroy the piece of this granule. False: it stays mapped, and nothing else can be there."""
    cdef l0rt_granule* granule = &segment.granules[segment.granules[index].first]
    cdef uint64_t nbytes = granule.count * heap.granule
    if heap.ops.piece_unmap(heap.self, <char*>segment.base + granule.first * heap.granule, nbytes,
                            granule.piece) != L0RT_OK:
        return False
    heap.ops.piece_destroy(heap.self, granule.piece, nbytes)
    granule.count = 0
    return True


cdef inline void granules_set(l0rt_granule* granules, uint64_t first, l0rt_spare* piece) noexcept nogil:
    cdef uint32_t i
    for i in range(piece.count):
        granules[i].piece = piece.piece
        granules[i].first = first
        granules[i].count = piece.count


cdef int piece_get(l0rt_heap* heap, uint64_t mapped, uint64_t most, l0rt_spare** spares,
                   l0rt_spare* out) noexcept nogil:
    """A spare piece of at most that many granules, or else a new one."""
    cdef l0rt_spare** link = spares
    cdef l0rt_spare* spare
    cdef uint64_t nbytes
    cdef int status
    while link[0] != NULL and link[0].count > most:
        link = &link[0].next
    if link[0] != NULL:
        spare = link[0]
        link[0] = spare.next
        out[0] = spare[0]
        free(spare)
        return L0RT_OK
    spares_destroy(heap, spares)
    out.count = max(<uint64_t>1, min(most, (<uint64_t>heap.reserved >> PIECE_SHARE) // heap.granule))
    nbytes = out.count * heap.granule
    if <int64_t>(mapped * heap.granule + nbytes) > heap_room(heap, NULL):
        heap.by_limit = True
        return L0RT_OUT_OF_MEMORY
    heap.by_limit = False
    status = heap.ops.piece_create(heap.self, nbytes, &out.piece)
    if status != L0RT_OK and heap.ops.is_oom(status):
        return L0RT_OUT_OF_MEMORY
    return status


cdef uint64_t pieces_unmap(l0rt_heap* heap, l0rt_block* held, l0rt_spare** spares) noexcept nogil:
    """Unmap a held block's pieces from its end on, until one is refused. Of a pool that sleeps they have no memory."""
    cdef l0rt_segment* segment = held.segment
    cdef uint64_t offset = <uintptr_t>held.ptr - <uintptr_t>segment.base, size = 0
    cdef int64_t bytes = 0
    cdef l0rt_granule* granule
    cdef l0rt_spare* spare
    cdef int calls = 0
    cdef uint32_t count
    while size < held.size:
        granule = &segment.granules[(offset + held.size - size) // heap.granule - 1]
        granule = &segment.granules[granule.first]
        count = granule.count
        if granule.piece == NULL:
            granule.count = 0
            size += count * heap.granule
            continue
        if heap.ops.piece_unmap(heap.self, <char*>segment.base + granule.first * heap.granule,
                                count * heap.granule, granule.piece) != L0RT_OK:
            break
        spare = <l0rt_spare*>malloc(sizeof(l0rt_spare))
        if spare == NULL:
            heap.ops.piece_destroy(heap.self, granule.piece, count * heap.granule)
        else:
            spare.piece, spare.count, spare.next = granule.piece, count, spares[0]
            spares[0] = spare
        granule.count = 0
        held.arena.moves += 1
        size += count * heap.granule
        bytes += count * heap.granule
        calls += 1
    census_memory(heap, segment, -bytes, 0, calls)
    return size


cdef void spares_destroy(l0rt_heap* heap, l0rt_spare** spares) noexcept nogil:
    cdef l0rt_spare* spare = spares[0]
    while spare != NULL:
        spares[0] = spare.next
        heap.ops.piece_destroy(heap.self, spare.piece, spare.count * heap.granule)
        free(spare)
        spare = spares[0]
