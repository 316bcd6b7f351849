# SPDX-License-Identifier: Apache-2.0
"""Copies and fills: the commands of a queue that move data, and what a copy signals."""

from libc.stdint cimport UINT32_MAX, UINT64_MAX, uint32_t, uint64_t

from l0rt.core.cmdlist cimport list_advise, list_copy, list_copy_rows, list_fill, list_prefetch
from l0rt.core.image cimport list_copy_image
from l0rt.runtime.alloc.atomics cimport mutex_unlock
from l0rt.runtime.streams.capture cimport capture_copy, capture_fill, capture_refuse, capture_rows, captures
from l0rt.runtime.streams.event_pool cimport slot_acquire, slot_release, slot_retain
from l0rt.runtime.streams.hooks cimport COPY, FILL, STREAM_SYNCHRONIZATION, call_hooks, hooked
from l0rt.runtime.streams.order cimport after, allow_maps, before, hold_off_maps, signal_behind
from l0rt.runtime.streams.queue cimport lock, record_untold, unlock
from l0rt.runtime.streams.sleep cimport check_awake, is_one_asleep, refuse_asleep
from l0rt.runtime.streams.timeline cimport begin_command, end_command, l0rt_command
from l0rt.runtime.streams.types cimport SLOT_COUNTER, l0rt_device, l0rt_rows, l0rt_slot, l0rt_stream
from l0rt.runtime.streams.wait cimport device_fails, slot_wait
from l0rt.ze.api cimport (
    ZE_RESULT_ERROR_UNSUPPORTED_FEATURE,
    ZE_RESULT_SUCCESS,
    ze_event_handle_t,
    ze_image_handle_t,
    ze_image_region_t,
    ze_result_t,
)


cdef inline ze_event_handle_t signal_of(l0rt_stream* stream, l0rt_slot* slot) noexcept nogil:
    """The event that the command signals which was numbered last; NULL for none."""
    if slot == NULL:
        return NULL
    slot.stream = stream
    slot.seq = stream.issued
    return slot.event


cdef inline ze_result_t nothing_locked(l0rt_stream* stream, ze_event_handle_t signal) noexcept nogil:
    """A copy onto itself: a driver's ranges must not overlap, and equal ones are all that do."""
    if signal == NULL:
        return ZE_RESULT_SUCCESS
    return signal_behind(stream, signal)


cdef inline int lock_awake(l0rt_stream* stream, const void* dst, const void* src) except -1 nogil:
    """Take the lock, unless a pool sleeps to which an address belongs: one that goes to sleep waits for the lock."""
    lock(stream)
    if is_one_asleep(dst, src):
        mutex_unlock(&stream.lock)
        return refuse_asleep(dst, src)
    return 0


cdef ze_result_t copy_locked(
        l0rt_stream* stream, void* dst, const void* src, size_t nbytes, ze_event_handle_t signal) noexcept nogil:
    cdef int* gate
    cdef ze_result_t r
    if dst == src:
        return nothing_locked(stream, signal)
    gate = hold_off_maps(stream)
    r = list_copy(stream.list, dst, src, nbytes, signal)
    allow_maps(gate)
    return r


cdef inline ze_result_t pattern_locked(
        l0rt_stream* stream, void* dst, const void* pattern, size_t pattern_size, size_t nbytes) noexcept nogil:
    cdef int* gate = hold_off_maps(stream)
    cdef ze_result_t r = list_fill(stream.list, dst, pattern, pattern_size, nbytes)
    allow_maps(gate)
    return r


cdef inline int end_copy(l0rt_stream* stream, l0rt_slot* slot, ze_result_t r) except -1 nogil:
    cdef l0rt_slot* old = NULL
    if slot != NULL and r == ZE_RESULT_SUCCESS:
        slot_retain(slot)
        old = stream.end_event      # while nothing is appended behind the copy, it is the stream's end as well
        stream.end_event = slot
    elif slot != NULL:
        slot.stream = NULL          # nothing will signal it
    if r == ZE_RESULT_SUCCESS and stream.shared:
        r = after(stream)
    mutex_unlock(&stream.lock)
    if old != NULL:
        slot_release(old)
    return 0 if r == ZE_RESULT_SUCCESS else device_fails(stream.device, r)


cdef inline int append_bytes(
        l0rt_stream* stream, void* dst, const void* src, size_t nbytes, l0rt_slot* slot) except -1 nogil:
    cdef ze_event_handle_t signal = NULL
    cdef ze_result_t r
    cdef l0rt_command* told
    if captures(stream) and not check_awake(dst, src) and capture_copy(stream, dst, src, nbytes):
        return 0
    lock_awake(stream, dst, src)
    told = begin_command(stream, COPY, dst, src, nbytes)
    r = before(stream)
    if r == ZE_RESULT_SUCCESS:
        signal = signal_of(stream, slot)
        r = copy_locked(stream, dst, src, nbytes, signal)
    if told != NULL:
        end_command(told, r)
    end_copy(stream, slot, r)
    if hooked:
        call_hooks(COPY, <uint64_t>stream, <uint64_t>dst, <uint64_t>src, nbytes)
    return 0


cdef int append_rows(
        l0rt_stream* stream, void* dst, const void* src, const l0rt_rows* rows, l0rt_slot* slot) except -1 nogil:
    cdef ze_event_handle_t signal = NULL
    cdef l0rt_command* told
    cdef ze_result_t r
    cdef size_t i
    if captures(stream) and not check_awake(dst, src) and capture_rows(stream, dst, src, rows):
        return 0
    lock_awake(stream, dst, src)
    told = begin_command(stream, COPY, dst, src, rows.width * rows.height)
    r = before(stream)
    if r == ZE_RESULT_SUCCESS:
        signal = signal_of(stream, slot)
        r = rows_locked(stream, <char*>dst, <const char*>src, rows, signal)
    if told != NULL:
        end_command(told, r)
    end_copy(stream, slot, r)
    if hooked:                      # row by row: what lies between two rows is not copied
        for i in range(rows.height):
            call_hooks(COPY, <uint64_t>stream, <uint64_t>dst + i * rows.target_pitch,
                       <uint64_t>src + i * rows.source_pitch, rows.width)
    return 0


cdef int queue_copy(l0rt_stream* stream, void* dst, const void* src, size_t nbytes) except -1 nogil:
    return append_bytes(stream, dst, src, nbytes, NULL) if nbytes != 0 else 0


cdef int queue_copy_rows(l0rt_stream* stream, void* dst, const void* src, const l0rt_rows* rows) except -1 nogil:
    if is_contiguous(rows):
        return queue_copy(stream, dst, src, rows.width * rows.height)
    return append_rows(stream, dst, src, rows, NULL) if rows.width != 0 and rows.height != 0 else 0


cdef int queue_move_signal(l0rt_stream* stream, void* dst, const void* src, size_t nbytes, const l0rt_rows* rows,
                           l0rt_slot* slot) except -1 nogil:
    if rows != NULL:
        nbytes = rows.width * rows.height
    # Where the driver does not keep the order, the copy may be complete before the barrier in front of it has signalled
    # its event. Whoever takes the copy's event for the end of all before it would recycle that event too early.
    # An event of a pool that the copy itself signals may take the copy out of that order (uncounted_signals).
    if nbytes == 0 or not stream.in_order or (stream.device.uncounted_signals and slot.cache.kind != SLOT_COUNTER):
        queue_move(stream, dst, src, nbytes, rows)
        return record_untold(stream, slot)
    if rows == NULL or is_contiguous(rows):
        return append_bytes(stream, dst, src, nbytes, slot)
    return append_rows(stream, dst, src, rows, slot)


cdef int queue_move_wait(
        l0rt_stream* stream, void* dst, const void* src, size_t nbytes, const l0rt_rows* rows) except -1 nogil:
    cdef l0rt_slot* slot = slot_acquire(stream, False)
    try:
        queue_move_signal(stream, dst, src, nbytes, rows, slot)
        slot_wait(slot, UINT64_MAX)
    finally:
        slot_release(slot)
    if hooked:
        call_hooks(STREAM_SYNCHRONIZATION, <uint64_t>stream, 0, 0, 0)
    return 0


cdef ze_result_t rows_locked(
        l0rt_stream* stream, char* dst, const char* src, const l0rt_rows* rows,
        ze_event_handle_t signal) noexcept nogil:
    """With one command; row by row if the engine has none, or if a number has more bits than the command's."""
    cdef ze_result_t r = ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
    cdef int* gate
    cdef size_t i
    if dst == src:
        return nothing_locked(stream, signal)
    gate = hold_off_maps(stream)
    if not stream.refuses_rows and (rows.height | rows.target_pitch | rows.source_pitch) <= UINT32_MAX:
        r = list_copy_rows(stream.list, dst, <uint32_t>rows.target_pitch, src, <uint32_t>rows.source_pitch,
                           <uint32_t>rows.width, <uint32_t>rows.height, signal)
        stream.refuses_rows = r == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
    if r == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE:
        for i in range(rows.height):
            r = list_copy(stream.list, dst + i * rows.target_pitch, src + i * rows.source_pitch, rows.width, NULL)
            if r != ZE_RESULT_SUCCESS:
                break
        if r == ZE_RESULT_SUCCESS and signal != NULL:
            r = signal_behind(stream, signal)
    allow_maps(gate)
    return r


cdef int queue_copy_image(l0rt_stream* stream, ze_image_handle_t image, const ze_image_region_t* region, void* memory,
                          size_t nbytes, bint reads) except -1 nogil:
    """To hooks and profiles, an image is memory at its handle."""
    cdef l0rt_command* told
    cdef ze_result_t r
    cdef int* gate
    cdef void* dst = memory if reads else <void*>image
    cdef void* src = <void*>image if reads else memory
    if captures(stream):
        capture_refuse(stream, b"a copy from or to an image")
    lock_awake(stream, memory, NULL)
    told = begin_command(stream, COPY, dst, src, nbytes)
    r = before(stream)
    if r == ZE_RESULT_SUCCESS:
        gate = hold_off_maps(stream)
        r = list_copy_image(stream.list, image, region, memory, reads)
        allow_maps(gate)
    if told != NULL:
        end_command(told, r)
    end_copy(stream, NULL, r)
    if hooked:
        call_hooks(COPY, <uint64_t>stream, <uint64_t>dst, <uint64_t>src, nbytes)
    return 0


cdef int queue_fill(
        l0rt_stream* stream, void* dst, const void* pattern, size_t pattern_size, size_t nbytes) except -1 nogil:
    cdef l0rt_command* told
    cdef ze_result_t r
    if nbytes == 0 or (captures(stream) and not check_awake(dst, NULL)
                       and capture_fill(stream, dst, pattern, pattern_size, nbytes)):
        return 0
    lock_awake(stream, dst, NULL)
    told = begin_command(stream, FILL, dst, NULL, nbytes)
    r = fill_locked(stream, <char*>dst, <const char*>pattern, pattern_size, nbytes)
    if told != NULL:
        end_command(told, r)
    if r == ZE_RESULT_SUCCESS and stream.shared:
        r = after(stream)
    unlock(stream, r)
    if hooked:
        call_hooks(FILL, <uint64_t>stream, <uint64_t>dst, nbytes, 0)
    return 0


cdef ze_result_t fill_locked(
        l0rt_stream* stream, char* dst, const char* pattern, size_t pattern_size, size_t nbytes) noexcept nogil:
    """If the engine fills only with short patterns, write the first pattern in parts and then copy it.

    The same where the address is not a multiple of the pattern's size, which drivers refuse.
    """
    cdef ze_result_t r
    cdef size_t piece = min(max(stream.fill_limit, <size_t>1), pattern_size), filled = 0
    while <size_t>dst % piece:
        piece >>= 1
    if pattern_size <= piece:
        r = before(stream)
        return r if r != ZE_RESULT_SUCCESS else pattern_locked(stream, dst, pattern, pattern_size, nbytes)
    while filled < pattern_size:
        r = before(stream)
        if r == ZE_RESULT_SUCCESS:
            r = pattern_locked(stream, dst + filled, pattern + filled, piece, piece)
        if r != ZE_RESULT_SUCCESS:
            return r
        filled += piece
    while filled < nbytes:
        r = before(stream)
        if r == ZE_RESULT_SUCCESS:
            r = copy_locked(stream, dst + filled, dst, min(filled, nbytes - filled), NULL)
        if r != ZE_RESULT_SUCCESS:
            return r
        filled += min(filled, nbytes - filled)
    return ZE_RESULT_SUCCESS


cdef int queue_hint(
        l0rt_stream* stream, const void* ptr, size_t nbytes, l0rt_device* device, int advice) except -1 nogil:
    cdef ze_result_t r
    if captures(stream):
        capture_refuse(stream, b"prefetch() or advise() of shared memory")
    if nbytes == 0:
        return 0
    lock(stream)
    r = before(stream)
    if r == ZE_RESULT_SUCCESS and device == NULL:
        r = list_prefetch(stream.list, ptr, nbytes)
    elif r == ZE_RESULT_SUCCESS:
        r = list_advise(stream.list, device.handle, ptr, nbytes, advice)
    if r == ZE_RESULT_SUCCESS and stream.shared:
        r = after(stream)
    unlock(stream, r)
    return 0
