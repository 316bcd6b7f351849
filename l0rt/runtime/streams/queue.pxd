# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint32_t, uint64_t

from l0rt.runtime.alloc.atomics cimport mutex_lock, mutex_unlock
from l0rt.runtime.streams.capture cimport capture_refuse, captures
from l0rt.runtime.streams.hooks cimport implicit_sync, sync_mode
from l0rt.runtime.streams.types cimport l0rt_device, l0rt_load_list, l0rt_slot, l0rt_stream
from l0rt.runtime.streams.wait cimport device_fails
from l0rt.ze cimport table
from l0rt.ze.api cimport ZE_RESULT_SUCCESS, ze_command_list_handle_t, ze_kernel_handle_t, ze_result_t

# Python's hold on a queue; l0rt.Stream is its face.
cdef class Queue:
    cdef l0rt_stream* ptr


# The class whose constructor finds the record: no queue is made but as one of it, so that none is without.
cdef int queue_face(face) except -1


# What the stream is called wherever users read of it: its repr.
cdef str queue_name(l0rt_stream* stream)


cdef inline int about_to_wait(str what, l0rt_stream* stream) except -1:
    """``what`` is about to make the host wait for the stream."""
    if captures(stream):
        capture_refuse(stream, what.encode())
    return implicit_sync(what, queue_name(stream)) if sync_mode else 0


# Every verb appends one thing in the stream's order, or raises. None is called with a C lock held.
cdef int queue_open(l0rt_stream* stream) except -1 nogil
# The native list, for hands that append to it without l0rt: from then on its counts are only a part of the truth.
cdef ze_command_list_handle_t queue_share(l0rt_stream* stream) except NULL nogil
# A launch with the arguments and the group size that the kernel has: its lock is held, so that this never raises. The
# stream was opened before. `seq` is the command's number in the stream. NOT_READY: a pool went to sleep since `seen`.
cdef ze_result_t queue_try_launch(
    l0rt_stream* stream, ze_kernel_handle_t kernel, const char* name, const uint32_t* groups,
    const uint32_t* group_size, bint cooperative, uint64_t seen, uint64_t* seq) noexcept nogil
cdef int queue_record(l0rt_stream* stream, l0rt_slot* slot) except -1 nogil
cdef int record_untold(l0rt_stream* stream, l0rt_slot* slot) except -1 nogil
cdef int queue_wait(l0rt_stream* stream, l0rt_slot* slot) except -1 nogil
cdef int wait_untold(l0rt_stream* stream, uint32_t count, l0rt_slot** slots) except -1 nogil
# All of them with one append.
cdef int queue_wait_all(l0rt_stream* stream, uint32_t count, l0rt_slot** slots) except -1 nogil
# A slot with a reference, recorded behind everything that the stream has been given so far.
cdef l0rt_slot* queue_end_event(l0rt_stream* stream) except NULL nogil
cdef l0rt_slot* queue_try_end_event(l0rt_stream* stream) noexcept nogil
# The same of what the native list was given, whatever is captured from the stream since.
cdef l0rt_slot* issued_end_event(l0rt_stream* stream) except NULL nogil
cdef l0rt_slot* issued_try_end_event(l0rt_stream* stream) noexcept nogil
# Update `done`, the number that the stream has completed, without waiting.
cdef void progress(l0rt_stream* stream) noexcept nogil
cdef bint queue_knows_peer(l0rt_device* device, l0rt_device* peer) except -1 nogil
# An adopted stream's owner takes its list back: behind a last mark, l0rt touches it no more.
cdef void queue_give_back(l0rt_stream* stream) noexcept nogil


# The lock around an append, and its end, which raises what the driver answered.
cdef inline int lock(l0rt_stream* stream) except -1 nogil:
    if not table.alive or l0rt_load_list(&stream.list) == NULL or stream.device.lost:
        queue_open(stream)
    mutex_lock(&stream.lock)
    return 0


cdef inline int unlock(l0rt_stream* stream, ze_result_t result) except -1 nogil:
    mutex_unlock(&stream.lock)
    if result != ZE_RESULT_SUCCESS:
        return device_fails(stream.device, result)
    return 0

# 1: idle, 0: not yet.
cdef int queue_query(l0rt_stream* stream) except -1 nogil
cdef int queue_synchronize(l0rt_stream* stream, uint64_t timeout_ns) except -1 nogil
# Of a stream that is captured too, for what it was given before.
cdef int queue_synchronize_by(l0rt_stream* stream, uint64_t timeout_ns, int policy) except -1 nogil
# Make `stream` wait for what `other` has been given so far.
cdef int queue_wait_queue(l0rt_stream* stream, l0rt_stream* other) except -1 nogil
