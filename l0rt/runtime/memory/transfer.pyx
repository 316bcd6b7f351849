# SPDX-License-Identifier: Apache-2.0
"""Transfers: copies between device memory, pinned memory and pageable memory, in the order of a stream.

Pageable memory is staged: it goes through two pinned chunks in turn, so that the host copies while the device does.
Drivers differ in what they do with a pageable pointer: some copy inside the append call, some make the pages resident,
old ones abort the process. A pinned chunk is the same everywhere.
"""

from libc.stdint cimport UINT64_MAX, uint64_t
from libc.string cimport memcpy, memmove

from l0rt.arguments cimport check_overlap
from l0rt.runtime.alloc.deferred_free cimport block_mark, block_use
from l0rt.runtime.alloc.types cimport l0rt_block
from l0rt.runtime.memory.device cimport raise_status
from l0rt.runtime.memory.operations cimport block_let_go
from l0rt.runtime.memory.pinned cimport host_malloc
from l0rt.runtime.memory.registration cimport copy_pinned
from l0rt.runtime.streams.event_pool cimport slot_acquire, slot_release
from l0rt.runtime.streams.hooks cimport MEMORY_USE, STREAM_SYNCHRONIZATION, note
from l0rt.runtime.streams.queue cimport (
    about_to_wait,
    l0rt_rows,
    queue_copy,
    queue_copy_rows,
    queue_move,
    queue_record,
    queue_synchronize,
    queue_wait_queue,
)
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport slot_wait

cdef size_t CHUNK = 4 << 20


cdef struct Chunk:
    l0rt_block* block       # pinned memory
    l0rt_slot* slot         # recorded behind the copy that uses it; NULL: none does


cdef int chunk_wait(Chunk* chunk) except -1 nogil:
    if chunk.slot != NULL:
        slot_wait(chunk.slot, UINT64_MAX)
        slot_release(chunk.slot)
        chunk.slot = NULL
    return 0


cdef int chunk_mark(Chunk* chunk, l0rt_stream* stream) except -1 nogil:
    chunk.slot = slot_acquire(stream, False)
    return queue_record(stream, chunk.slot)


cdef int chunk_open(Chunk* chunk, l0rt_stream* stream, size_t nbytes) except -1 nogil:
    cdef int status
    if chunk.block == NULL:
        chunk.block = host_malloc(stream.device, min(nbytes, CHUNK))
        status = block_use(chunk.block, stream)  # so that an error on the way frees it behind the copies
        if status != 0:
            raise_status(status, chunk.block.ptr)
    return 0


cdef void chunk_close(Chunk* chunk) noexcept nogil:
    slot_release(chunk.slot)
    if chunk.block != NULL:
        block_let_go(chunk.block)


cdef int copy_in(l0rt_stream* stream, void* dst, const void* src, size_t nbytes) except -1 nogil:
    """Copy to the device; return when ``src`` may be reused."""
    cdef Chunk chunks[2]
    cdef size_t at = 0, size
    cdef int turn = 0
    chunks[0].block = chunks[1].block = NULL
    chunks[0].slot = chunks[1].slot = NULL
    try:
        while at < nbytes:
            size = min(CHUNK, nbytes - at)
            chunk_open(&chunks[turn], stream, nbytes)
            chunk_wait(&chunks[turn])
            memcpy(chunks[turn].block.ptr, <const char*>src + at, size)
            queue_copy(stream, <char*>dst + at, chunks[turn].block.ptr, size)
            at += size
            if at < nbytes:
                chunk_mark(&chunks[turn], stream)
            turn ^= 1
    finally:
        chunk_close(&chunks[0])
        chunk_close(&chunks[1])
    return 0


cdef int copy_out(l0rt_stream* stream, void* dst, const void* src, size_t nbytes) except -1 nogil:
    """Copy from the device; return when ``dst`` has the data."""
    cdef Chunk chunks[2]
    cdef size_t asked = 0, got = 0, size
    cdef int turn = 0
    chunks[0].block = chunks[1].block = NULL
    chunks[0].slot = chunks[1].slot = NULL
    try:
        while got < nbytes:
            while asked < nbytes and asked < got + 2 * CHUNK:
                turn = (asked // CHUNK) & 1
                size = min(CHUNK, nbytes - asked)
                chunk_open(&chunks[turn], stream, nbytes)
                queue_copy(stream, chunks[turn].block.ptr, <const char*>src + asked, size)
                chunk_mark(&chunks[turn], stream)
                asked += size
            turn = (got // CHUNK) & 1
            size = min(CHUNK, nbytes - got)
            chunk_wait(&chunks[turn])
            memcpy(<char*>dst + got, chunks[turn].block.ptr, size)
            got += size
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


cdef int transfer_in(l0rt_operand* target, const void* source, const l0rt_rows* rows, l0rt_stream* on,
                     bint non_blocking, bint wait) except -1:
    cdef size_t span = target.nbytes if rows == NULL else span_of(rows, rows.source_pitch)
    check_apart(target.pointer, source, target.nbytes, rows)
    operand_use(target, on)     # before the copy: one that fails half-way leaves work behind
    if not copy_pinned(target.pointer, source, source, span, rows, on, non_blocking):
        about_to_wait("copy_from() from memory that is not pinned", on)
        with nogil:
            if rows == NULL:
                copy_in(on, target.pointer, source, target.nbytes)
            else:
                copy_rows_in(on, <char*>target.pointer, <const char*>source, rows)
            if wait:
                queue_synchronize(on, UINT64_MAX)
    return 0


cdef int transfer_out(void* target, l0rt_operand* source, const l0rt_rows* rows, l0rt_stream* on,
                      bint non_blocking) except -1:
    cdef size_t span = source.nbytes if rows == NULL else span_of(rows, rows.target_pitch)
    check_apart(target, source.pointer, source.nbytes, rows)
    operand_use(source, on)
    if not copy_pinned(target, source.pointer, target, span, rows, on, non_blocking):
        about_to_wait("copy_to() into host memory", on)
        with nogil:
            if rows == NULL:
                copy_out(on, target, source.pointer, source.nbytes)
            else:
                copy_rows_out(on, <char*>target, <const char*>source.pointer, rows)
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
        about_to_wait("a copy from or to host memory without non_blocking=True", on)
    with nogil:
        queue_move(on, target.pointer, source.pointer, source.nbytes, rows)
        if wait:
            queue_synchronize(on, UINT64_MAX)
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


cdef int transfer_host(void* target, const void* source, size_t nbytes, const l0rt_rows* rows, l0rt_stream* on,
                       str what) except -1:
    cdef size_t i
    check_apart(target, source, nbytes, rows)
    about_to_wait(what, on)
    with nogil:
        queue_synchronize(on, UINT64_MAX)
        if rows == NULL:
            memmove(target, source, nbytes)
        else:
            for i in range(rows.height):
                memmove(<char*>target + i * rows.target_pitch, <const char*>source + i * rows.source_pitch, rows.width)
    return 0


# --- Rows.


cdef inline size_t span_of(const l0rt_rows* rows, size_t pitch) noexcept nogil:
    """How many bytes there are from the start of the first row to the end of the last."""
    return (rows.height - 1) * pitch + rows.width if rows.height != 0 and rows.width != 0 else 0


cdef int check_apart(const void* target, const void* source, size_t nbytes, const l0rt_rows* rows) except -1:
    """Refuse a copy onto some of its own bytes. Rows may lie between each other."""
    cdef size_t here = <size_t>target, there = <size_t>source, i = 0, j = 0
    if rows == NULL:
        return check_overlap(target, source, nbytes)
    if here == there and rows.target_pitch == rows.source_pitch:
        return 0
    if here >= there + span_of(rows, rows.source_pitch) or there >= here + span_of(rows, rows.target_pitch):
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


cdef int copy_rows_in(l0rt_stream* stream, char* dst, const char* src, const l0rt_rows* rows) except -1 nogil:
    """Copy rows to the device, packed into chunks; return when ``src`` may be reused."""
    cdef Chunk chunks[2]
    cdef l0rt_rows packed
    cdef size_t at = 0, i, most = CHUNK // rows.width if rows.width != 0 else 0
    cdef int turn = 0
    if rows.width == 0 or rows.height == 0:
        return 0
    if most == 0:
        for i in range(rows.height):
            copy_in(stream, dst + i * rows.target_pitch, src + i * rows.source_pitch, rows.width)
        return 0
    chunks[0].block = chunks[1].block = NULL
    chunks[0].slot = chunks[1].slot = NULL
    packed.width, packed.source_pitch, packed.target_pitch = rows.width, rows.width, rows.target_pitch
    try:
        while at < rows.height:
            packed.height = min(most, rows.height - at)
            chunk_open(&chunks[turn], stream, min(most, rows.height) * rows.width)
            chunk_wait(&chunks[turn])
            for i in range(packed.height):
                memcpy(<char*>chunks[turn].block.ptr + i * rows.width, src + (at + i) * rows.source_pitch, rows.width)
            queue_copy_rows(stream, dst + at * rows.target_pitch, chunks[turn].block.ptr, &packed)
            at += packed.height
            if at < rows.height:
                chunk_mark(&chunks[turn], stream)
            turn ^= 1
    finally:
        chunk_close(&chunks[0])
        chunk_close(&chunks[1])
    return 0


cdef int copy_rows_out(l0rt_stream* stream, char* dst, const char* src, const l0rt_rows* rows) except -1 nogil:
    """Copy rows from the device, packed into chunks; return when ``dst`` has them."""
    cdef Chunk chunks[2]
    cdef l0rt_rows packed
    cdef size_t asked = 0, got = 0, i, most = CHUNK // rows.width if rows.width != 0 else 0
    cdef int turn = 0
    if rows.width == 0 or rows.height == 0:
        return 0
    if most == 0:
        for i in range(rows.height):
            copy_out(stream, dst + i * rows.target_pitch, src + i * rows.source_pitch, rows.width)
        return 0
    chunks[0].block = chunks[1].block = NULL
    chunks[0].slot = chunks[1].slot = NULL
    packed.width, packed.source_pitch, packed.target_pitch = rows.width, rows.source_pitch, rows.width
    try:
        while got < rows.height:
            while asked < rows.height and asked < got + 2 * most:
                turn = (asked // most) & 1
                packed.height = min(most, rows.height - asked)
                chunk_open(&chunks[turn], stream, min(most, rows.height) * rows.width)
                queue_copy_rows(stream, chunks[turn].block.ptr, src + asked * rows.source_pitch, &packed)
                chunk_mark(&chunks[turn], stream)
                asked += packed.height
            turn = (got // most) & 1
            chunk_wait(&chunks[turn])
            for i in range(min(most, rows.height - got)):
                memcpy(dst + (got + i) * rows.target_pitch, <char*>chunks[turn].block.ptr + i * rows.width, rows.width)
            got += min(most, rows.height - got)
    finally:
        chunk_close(&chunks[0])
        chunk_close(&chunks[1])
    return 0
