from libc.stdint cimport uint64_t

from l0rt.runtime.records cimport l0rt_device, l0rt_slot, l0rt_stream


# How the recycling asks a stream for its progress (`done`); given by who knows how to append to it.
ctypedef void (*progress_fn)(l0rt_stream* stream) noexcept nogil
cdef void ask_progress_with(progress_fn progress) noexcept
cdef void slot_completed(l0rt_slot* slot) noexcept nogil

# A slot with one reference, ready to be recorded.
cdef l0rt_slot* slot_acquire(l0rt_device* device, bint timing) except NULL nogil
cdef void slot_retain(l0rt_slot* slot) noexcept nogil
cdef void slot_release(l0rt_slot* slot) noexcept nogil
cdef int slot_add_waiter(l0rt_slot* slot, l0rt_stream* stream, uint64_t seq) except -1 nogil
# 1: complete, 0: not yet, -1: the driver says neither. Raises nothing, takes no GIL.
cdef int slot_poll(l0rt_slot* slot) noexcept nogil
# 1: complete, 0: not yet.
cdef int slot_query(l0rt_slot* slot) except -1 nogil
# 1: complete, 0: the time is up. Interruptible by signals; a lost device raises.
cdef int slot_wait(l0rt_slot* slot, uint64_t timeout_ns) except -1 nogil
cdef uint64_t host_clock_ns() noexcept nogil
cdef int device_fails(l0rt_device* device, int result) except -1 nogil
cdef int refuse(l0rt_device* device) except -1 nogil
