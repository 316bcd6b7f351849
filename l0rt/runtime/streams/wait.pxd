# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint64_t

from l0rt.runtime.streams.types cimport l0rt_device, l0rt_slot, l0rt_stream
from l0rt.ze.api cimport ze_result_t


# How a wait passes its time. ADAPTIVE: the driver's own wait at first, then ever longer naps.
cdef enum:
    WAIT_ADAPTIVE = 0
    WAIT_SPIN = 1
    WAIT_YIELD = 2
    WAIT_BLOCK = 3


cdef void slot_completed(l0rt_slot* slot) noexcept nogil
# 1: complete, 0: not yet, -1: the driver says neither. Raises nothing, takes no GIL.
cdef int slot_poll(l0rt_slot* slot) noexcept nogil
# 1: complete, 0: not yet.
cdef int slot_query(l0rt_slot* slot) except -1 nogil
# 1: complete, 0: the time is up. Interruptible by signals; a lost device raises.
cdef int slot_wait(l0rt_slot* slot, uint64_t timeout_ns) except -1 nogil
cdef int slot_wait_by(l0rt_slot* slot, uint64_t timeout_ns, int policy) except -1 nogil
# Wait without raising. 0: complete, or the device is lost; L0RT_INTERRUPTED: a signal handler raised, which is kept;
# else what the driver answered.
cdef int slot_rest(l0rt_slot* slot) noexcept nogil
# Pass the time between two looks of a wait that has lasted for `spent_ns`, and `left_ns` at the most.
cdef void nap(int policy, uint64_t spent_ns, uint64_t left_ns) noexcept nogil
# The policy that a caller's word, or None, means; the settings are those of a device's events and streams, -1: of all
# devices'.
cdef int event_policy(word, int index) except -1
cdef int stream_policy(word, int index) except -1
# Seconds, None for no limit, as nanoseconds.
cdef uint64_t timeout_ns(timeout) except? 0

cdef uint64_t host_clock_ns() noexcept nogil
cdef int device_fails(l0rt_device* device, int result) except -1 nogil
cdef int refuse(l0rt_device* device) except -1 nogil
# Look at the device between two slices of a wait: raise if it is lost, l0rt was shut down, or a signal came.
cdef int check_device(l0rt_device* device) except -1 nogil
# Wait for all queues of the device that its driver knows. 1: it is done, 0: the time is up.
cdef int driver_synchronize(l0rt_device* device, uint64_t timeout_ns) except -1 nogil
# A wait for the stream's work has failed. Where launches may have: the failure of one, which the driver tells of once.
cdef int stream_fails(l0rt_stream* stream, ze_result_t result) except -1 nogil
