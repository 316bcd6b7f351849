# SPDX-License-Identifier: Apache-2.0
"""Transfers: copies between device memory, pinned memory and pageable memory, in the order of a stream.

Pageable memory is staged: it goes through two pinned chunks in turn, so that the host copies while the device does.
Drivers differ in what they do with a pageable pointer: some copy inside the append call, some make the pages resident,
old ones abort the process. A pinned chunk is the same everywhere.
"""

from libc.stdint cimport UINT64_MAX, uint64_t
from libc.string cimport memmove

from l0rt._base.arguments cimport check_overlap
from l0rt.runtime.alloc.deferred_free cimport block_mark, block_use, block_user
from l0rt.runtime.alloc.types cimport l0rt_block
from l0rt.runtime.memory.device cimport raise_status
from l0rt.runtime.memory.operations cimport block_let_go
from l0rt.runtime.memory.pinned cimport host_malloc
from l0rt.runtime.memory.registration cimport copy_pinned
from l0rt.runtime.streams.capture cimport captures
from l0rt.runtime.streams.copy cimport (
    is_contiguous, l0rt_rows, queue_fill, queue_move, queue_move_signal, queue_move_wait)
from l0rt.runtime.streams.event_pool cimport slot_acquire, slot_release
from l0rt.runtime.streams.hooks cimport MEMORY_USE, STREAM_SYNCHRONIZATION, note
from l0rt.runtime.streams.queue cimport about_to_wait, queue_synchronize, queue_wait_queue
from l0rt.runtime.streams.stream_pool cimport next_stream
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport slot_wait
from l0rt._base.threads cimport pthread_join, pthread_t, thread_start

# Nothing overlaps with the first copy of the first chunk, nor with the second copy of the last one: both are small.
# Between them a chunk should be worth its append: chunks double up to the largest, and halve again.
cdef size_t LEAST_CHUNK = 512 << 10
cdef size_t CHUNK = 4 << 20
cdef size_t LEAST_SHARE = 512 << 10     # of a chunk: a thread takes about as long to start as to copy a quarter of it

cdef enum:
    MOST_THREADS = 4


cdef struct Chunk:
    l0rt_block* block       # pinned memory
    l0rt_slot* slot         # that the copy signals which uses it; NULL: none does
    size_t height           # the rows in it, where they are asked for ahead


cdef struct Ramp:
    size_t least            # rows of the smallest chunk,
    size_t most             # of the largest,
    size_t next             # and of the next, but near the end


cdef int chunk_wait(Chunk* chunk) except -1 nogil:
    if chunk.slot != NULL:
        slot_wait(chunk.slot, UINT64_MAX)
        slot_release(chunk.slot)
        chunk.slot = NULL
    return 0


cdef int chunk_open(Chunk* chunk, l0rt_stream* stream, size_t nbytes) except -1 nogil:
    cdef int status
    if chunk.block == NULL:
        chunk.block = host_malloc(stream.device, nbytes)
        status = block_use(chunk.block, stream)  # so that an error on the way frees it behind the copies
        if status != 0:
            raise_status(status, chunk.block.ptr)
    return 0


cdef void chunk_close(Chunk* chunk) noexcept nogil:
    slot_release(chunk.slot)
    if chunk.block != NULL:
        block_let_go(chunk.block)


cdef inline l0rt_rows bytes_as_rows(size_t nbytes) noexcept nogil:
    """Bytes without a gap: rows of one byte, so that a chunk may end behind any of them."""
    cdef l0rt_rows rows
    rows.width = rows.source_pitch = rows.target_pitch = 1
    rows.height = nbytes
    return rows


cdef void host_copy_rows(char* dst, const char* src, const l0rt_rows* rows) noexcept nogil:
    cdef size_t i
    if is_contiguous(rows):
        memmove(dst, src, rows.width * rows.height)
        return
    for i in range(rows.height):
        memmove(dst + i * rows.target_pitch, src + i * rows.source_pitch, rows.width)


cdef struct Share:
    char* dst
    const char* src
    l0rt_rows rows


cdef void* copy_share(void* argument) noexcept nogil:
    cdef Share* share = <Share*>argument
    host_copy_rows(share.dst, share.src, &share.rows)
    return NULL


cdef void share_copy(const l0rt_device* device, char* dst, const char* src, const l0rt_rows* rows) noexcept nogil:
    """A host's copy from or to a chunk, divided among threads where one is slower than the device's link."""
    cdef Share shares[MOST_THREADS]
    cdef pthread_t threads[MOST_THREADS]
    cdef bint runs[MOST_THREADS]
    cdef size_t count = min(<size_t>device.copy_threads, rows.width * rows.height // LEAST_SHARE, rows.height)
    cdef size_t i, at = 0
    if count < 2:
        host_copy_rows(dst, src, rows)
        return
    for i in range(count):
        shares[i].rows = rows[0]
        shares[i].rows.height = rows.height * (i + 1) // count - at
        shares[i].dst = dst + at * rows.target_pitch
        shares[i].src = src + at * rows.source_pitch
        at += shares[i].rows.height
        runs[i] = i + 1 < count and thread_start(&threads[i], copy_share, &shares[i]) == 0
    for i in range(count):
        if not runs[i]:     # the last share, and those for which there is no thread
            copy_share(&shares[i])
    for i in range(count):
        if runs[i]:
            pthread_join(threads[i], NULL)


cdef int chunk_copy(
        Chunk* chunk, l0rt_stream* stream, char* dst, const char* src, const l0rt_rows* rows) except -1 nogil:
    """Copy to or from the chunk. The last copy to the device signals too: the chunk's memory is freed behind it."""
    chunk.slot = slot_acquire(stream, False)
    return queue_move_signal(stream, dst, src, 0, rows, chunk.slot)


cdef inline Ramp ramp_of(const l0rt_device* device, size_t width) noexcept nogil:
    """Of rows no longer than a chunk."""
    cdef Ramp ramp
    ramp.most = CHUNK // width
    # The plain CPU driver copies out of the host's cache, without a link: to it a further chunk is another append.
    ramp.least = ramp.most if device.is_plain_software else max(1, LEAST_CHUNK // width)
    ramp.next = ramp.least
    return ramp


cdef inline size_t ramp_last(const Ramp* ramp) noexcept nogil:
    """The most rows that are not divided any more."""
    return min(ramp.most, ramp.least + ramp.least // 2)


cdef inline size_t ramp_take(Ramp* ramp, size_t left) noexcept nogil:
    """How many of the rows that are left the next chunk gets."""
    cdef size_t height = min(ramp.next, max(ramp.least, (left + 1) // 2))
    ramp.next = min(2 * ramp.next, ramp.most)
    return left if left <= ramp_last(ramp) else height


cdef inline size_t ramp_capacity(const Ramp* ramp, size_t height) noexcept nogil:
    """The most rows that a chunk gets of so many."""
    return min(height, ramp.most, max(ramp_last(ramp), (height + 1) // 2))


cdef int stage_in(l0rt_stream* stream, char* dst, const char* src, const l0rt_rows* rows) except -1 nogil:
    """Copy to the device, packed into chunks; return when ``src`` may be reused."""
    cdef Chunk chunks[2]
    cdef l0rt_rows packing = rows[0], packed = rows[0]
    cdef size_t at = 0, capacity
    cdef Ramp ramp
    cdef int turn = 0
    if rows.width > CHUNK:
        packed = bytes_as_rows(rows.width)
        for at in range(rows.height):
            stage_in(stream, dst + at * rows.target_pitch, src + at * rows.source_pitch, &packed)
        return 0
    ramp = ramp_of(stream.device, rows.width)
    capacity = ramp_capacity(&ramp, rows.height) * rows.width
    packing.target_pitch = packed.source_pitch = rows.width
    chunks[0].block = chunks[1].block = NULL
    chunks[0].slot = chunks[1].slot = NULL
    try:
        while at < rows.height:
            packing.height = packed.height = ramp_take(&ramp, rows.height - at)
            chunk_open(&chunks[turn], stream, capacity)
            chunk_wait(&chunks[turn])
            share_copy(stream.device, <char*>chunks[turn].block.ptr, src + at * rows.source_pitch, &packing)
            chunk_copy(&chunks[turn], stream, dst + at * rows.target_pitch, <char*>chunks[turn].block.ptr, &packed)
            at += packed.height
            turn ^= 1
    finally:
        chunk_close(&chunks[0])
        chunk_close(&chunks[1])
    return 0


cdef int stage_out(l0rt_stream* stream, char* dst, const char* src, const l0rt_rows* rows) except -1 nogil:
    """Copy from the device, packed into chunks; return when ``dst`` has the data."""
    cdef Chunk chunks[2]
    cdef l0rt_rows packed = rows[0], unpacking = rows[0]
    cdef size_t asked = 0, got = 0, capacity
    cdef size_t asks = 0, gots = 0      # chunks
    cdef Ramp ramp
    cdef Chunk* chunk
    if rows.width > CHUNK:
        packed = bytes_as_rows(rows.width)
        for got in range(rows.height):
            stage_out(stream, dst + got * rows.target_pitch, src + got * rows.source_pitch, &packed)
        return 0
    ramp = ramp_of(stream.device, rows.width)
    capacity = ramp_capacity(&ramp, rows.height) * rows.width
    packed.target_pitch = unpacking.source_pitch = rows.width
    chunks[0].block = chunks[1].block = NULL
    chunks[0].slot = chunks[1].slot = NULL
    try:
        while got < rows.height:
            while asked < rows.height and asks < gots + 2:
                chunk = &chunks[asks & 1]
                packed.height = chunk.height = ramp_take(&ramp, rows.height - asked)
                chunk_open(chunk, stream, capacity)
                chunk_copy(chunk, stream, <char*>chunk.block.ptr, src + asked * rows.source_pitch, &packed)
                asked += packed.height
                asks += 1
            chunk = &chunks[gots & 1]
            unpacking.height = chunk.height
            chunk_wait(chunk)
            share_copy(stream.device, dst + got * rows.target_pitch, <char*>chunk.block.ptr, &unpacking)
            got += unpacking.height
            gots += 1
    finally:
        chunk_close(&chunks[0])
        chunk_close(&chunks[1])
    return 0


cdef int operand_use(l0rt_operand* what, l0rt_stream* stream, bint is_past=False) except -1:
    cdef l0rt_block* block = what.block
    cdef int status
    if block != NULL and (stream != what.stream or not what.on_device):
        with nogil:
            status = block_mark(block, stream) if is_past else block_use(block, stream)
        if status != 0:
            raise_status(status, block.ptr)
        note(MEMORY_USE, <uint64_t>block.ptr, <uint64_t>stream, 0)
    return 0


cdef int work_behind(l0rt_stream* behind, l0rt_stream* stream) except -1 nogil:
    return queue_synchronize(stream, UINT64_MAX) if behind == NULL else queue_wait_queue(behind, stream)


cdef int operand_order(l0rt_operand* what, l0rt_stream* on, l0rt_stream* behind) except -1 nogil:
    cdef l0rt_stream* user = NULL
    cdef int i = 0
    work_behind(behind, on)
    if what.nbytes == 0:
        return 0
    if what.block == NULL:          # nobody was told who uses it
        user = next_stream(what.device, NULL)
        while user != NULL:
            if not captures(user):
                work_behind(behind, user)
            user = next_stream(what.device, user)
        return 0
    work_behind(behind, what.stream)
    while True:
        user = <l0rt_stream*>block_user(what.block, &i)
        if user == NULL:
            return 0
        work_behind(behind, user)


cdef int transfer_in(l0rt_operand* target, const void* source, const l0rt_rows* rows, l0rt_stream* on,
                     bint non_blocking, bint wait) except -1:
    cdef l0rt_rows taken = rows[0] if rows != NULL else bytes_as_rows(target.nbytes)
    cdef size_t span = rows_span(&taken, taken.source_pitch)
    check_apart(target.pointer, source, target.nbytes, rows)
    operand_use(target, on)     # before the copy: one that fails half-way leaves work behind
    if not copy_pinned(target.pointer, source, source, span, rows, on, non_blocking):
        about_to_wait("copy_from(), memcpy() or memcpy2d() from memory that is not pinned", on)
        with nogil:
            if span != 0:
                stage_in(on, <char*>target.pointer, <const char*>source, &taken)
            if wait:
                queue_synchronize(on, UINT64_MAX)
    return 0


cdef int transfer_out(void* target, l0rt_operand* source, const l0rt_rows* rows, l0rt_stream* on,
                      bint non_blocking) except -1:
    cdef l0rt_rows taken = rows[0] if rows != NULL else bytes_as_rows(source.nbytes)
    cdef size_t span = rows_span(&taken, taken.target_pitch)
    check_apart(target, source.pointer, source.nbytes, rows)
    operand_use(source, on)
    if not copy_pinned(target, source.pointer, target, span, rows, on, non_blocking):
        about_to_wait("copy_to(), memcpy() or memcpy2d() into host memory", on)
        with nogil:
            if span != 0:
                stage_out(on, <char*>target, <const char*>source.pointer, &taken)
        note(STREAM_SYNCHRONIZATION, <uint64_t>on, 0, 0)
    return 0


cdef int transfer(l0rt_operand* target, l0rt_operand* source, const l0rt_rows* rows, l0rt_stream* on,
                  l0rt_stream* target_on, bint wait) except -1:
    check_apart(target.pointer, source.pointer, source.nbytes, rows)
    operand_use(source, on)
    if target_on != NULL:
        return transfer_across(target, source, rows, on, target_on)
    operand_use(target, on)
    if wait:
        about_to_wait(
            "a copy from or to host memory without non_blocking=True (copy_from, copy_to, memcpy, memcpy2d)", on)
    with nogil:
        if wait:
            queue_move_wait(on, target.pointer, source.pointer, source.nbytes, rows)
        else:
            queue_move(on, target.pointer, source.pointer, source.nbytes, rows)
    return 0


cdef int transfer_across(l0rt_operand* target, l0rt_operand* source, const l0rt_rows* rows, l0rt_stream* on,
                         l0rt_stream* target_on) except -1:
    """To another device: behind the current streams of both devices, which both go on behind the copy."""
    cdef bint done = False
    if target_on != target.stream:
        operand_use(target, on)
    try:
        with nogil:
            queue_wait_queue(on, target_on)
            queue_move(on, target.pointer, source.pointer, source.nbytes, rows)
            queue_wait_queue(target_on, on)
        done = True
    finally:
        if not done:            # nothing orders the target's stream behind a copy that may have begun
            operand_use(target, on)
    return 0


cdef int transfer_fill(l0rt_operand* target, bytes pattern, l0rt_stream* on, bint wait) except -1:
    cdef const unsigned char* first = pattern
    cdef size_t size = len(pattern)
    operand_use(target, on)
    if wait:
        about_to_wait("fill() or memset() of host memory without non_blocking=True", on)
    with nogil:
        queue_fill(on, target.pointer, first, size, target.nbytes)
        if wait:
            queue_synchronize(on, UINT64_MAX)
    return 0


cdef int transfer_host(void* target, const void* source, size_t nbytes, const l0rt_rows* rows, l0rt_stream* on,
                       str what) except -1:
    cdef l0rt_rows taken = rows[0] if rows != NULL else bytes_as_rows(nbytes)
    check_apart(target, source, nbytes, rows)
    about_to_wait(what, on)
    with nogil:
        queue_synchronize(on, UINT64_MAX)
        host_copy_rows(<char*>target, <const char*>source, &taken)
    return 0


# --- Rows.


cdef size_t rows_span(const l0rt_rows* rows, size_t pitch) noexcept nogil:
    return (rows.height - 1) * pitch + rows.width if rows.height != 0 and rows.width != 0 else 0


cdef int check_apart(const void* target, const void* source, size_t nbytes, const l0rt_rows* rows) except -1:
    """Refuse a copy onto some of its own bytes. Rows may lie between each other."""
    cdef size_t here = <size_t>target, there = <size_t>source, i = 0, j = 0
    if rows == NULL:
        return check_overlap(target, source, nbytes)
    if here == there and rows.target_pitch == rows.source_pitch:
        return 0
    if here >= there + rows_span(rows, rows.source_pitch) or there >= here + rows_span(rows, rows.target_pitch):
        return 0
    while i < rows.height and j < rows.height:      # both are in the order of their addresses
        if here < there + rows.width and there < here + rows.width:
            raise ValueError(f"the source and the target overlap: row {j} of the source and row {i} of the target. "
                             "Copy through another buffer")
        if here < there:
            i += 1
            here += rows.target_pitch
        else:
            j += 1
            there += rows.source_pitch
    return 0
