# SPDX-License-Identifier: Apache-2.0
from l0rt.runtime.streams.types cimport l0rt_device, l0rt_rows, l0rt_slot, l0rt_stream
from l0rt.ze.api cimport ze_event_handle_t, ze_image_handle_t, ze_image_region_t, ze_result_t


cdef inline bint is_contiguous(const l0rt_rows* rows) noexcept nogil:
    return rows.height == 1 or rows.target_pitch == rows.source_pitch == rows.width


# Every verb appends one thing in the stream's order, or raises. None is called with a C lock held.
cdef int queue_copy(l0rt_stream* stream, void* dst, const void* src, size_t nbytes) except -1 nogil
cdef int queue_copy_rows(l0rt_stream* stream, void* dst, const void* src, const l0rt_rows* rows) except -1 nogil


cdef inline int queue_move(
        l0rt_stream* stream, void* dst, const void* src, size_t nbytes, const l0rt_rows* rows) except -1 nogil:
    """Copy rows, or with NULL so many bytes."""
    return queue_copy(stream, dst, src, nbytes) if rows == NULL else queue_copy_rows(stream, dst, src, rows)


# The same; and the slot is signalled by the copy itself, which takes the driver no submission of its own. No hook hears
# of the record: the slot belongs to no Event.
cdef int queue_move_signal(l0rt_stream* stream, void* dst, const void* src, size_t nbytes, const l0rt_rows* rows,
                           l0rt_slot* slot) except -1 nogil
# The same, and the host waits for it, and so for everything before.
cdef int queue_move_wait(
    l0rt_stream* stream, void* dst, const void* src, size_t nbytes, const l0rt_rows* rows) except -1 nogil
cdef int queue_fill(
    l0rt_stream* stream, void* dst, const void* pattern, size_t pattern_size, size_t nbytes) except -1 nogil

# From an image to memory of the device, whose rows have no gaps, or from there to an image: `reads` chooses.
cdef int queue_copy_image(l0rt_stream* stream, ze_image_handle_t image, const ze_image_region_t* region, void* memory,
                          size_t nbytes, bint reads) except -1 nogil

# The command alone, for who holds the list's lock. The first two need `before`; a fill has its own, for it may take
# several commands. `signal` is NULL, or the event that is signalled then.
cdef ze_result_t copy_locked(
    l0rt_stream* stream, void* dst, const void* src, size_t nbytes, ze_event_handle_t signal) noexcept nogil
cdef ze_result_t rows_locked(
    l0rt_stream* stream, char* dst, const char* src, const l0rt_rows* rows, ze_event_handle_t signal) noexcept nogil
cdef ze_result_t fill_locked(
    l0rt_stream* stream, char* dst, const char* pattern, size_t pattern_size, size_t nbytes) noexcept nogil
# Shared memory is wanted on the stream's device, or `device` has an advice of Level Zero about it.
cdef int queue_hint(
    l0rt_stream* stream, const void* ptr, size_t nbytes, l0rt_device* device, int advice) except -1 nogil
