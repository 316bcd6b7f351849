# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint64_t

from l0rt.runtime.streams.types cimport SLOT_COUNTER, SLOT_PLAIN, SLOT_TIMED, l0rt_device, l0rt_slot, l0rt_stream


# How the recycling asks a stream for its progress (`done`); given by who knows how to append to it.
ctypedef void (*progress_fn)(l0rt_stream* stream) noexcept nogil
cdef void ask_progress_with(progress_fn progress) noexcept

# What kind of slot a stream records.
cdef inline int slot_kind(const l0rt_stream* stream, bint timing) noexcept nogil:
    if timing:
        return SLOT_TIMED
    return SLOT_COUNTER if stream.device.counter_based and stream.in_order else SLOT_PLAIN


# A slot with one reference, ready to be recorded on the stream. Of a stream that is captured, one without a native
# event, which is recorded already.
cdef l0rt_slot* slot_acquire(l0rt_stream* stream, bint timing) except NULL nogil
cdef l0rt_slot* slot_acquire_kind(l0rt_device* device, int kind) except NULL nogil
cdef void slot_retain(l0rt_slot* slot) noexcept nogil
cdef void slot_release(l0rt_slot* slot) noexcept nogil
# Is the slot signalled, and has every stream that waits for it come past? `ask`: the driver, if need be. No stream is
# made to wait for it meanwhile.
cdef bint slot_is_over(l0rt_slot* slot, bint ask) noexcept nogil
# A slot that no cache owns, complete, whose gate the caller has alone: as new.
cdef int slot_reset(l0rt_slot* slot) except -1 nogil
cdef void slot_add_waiter(l0rt_slot* slot, l0rt_stream* stream, uint64_t seq) noexcept nogil
