# SPDX-License-Identifier: Apache-2.0
cimport cython
from libc.stdint cimport uint32_t, uint64_t

from l0rt.core.driver cimport Context
from l0rt.ze.api cimport ze_device_handle_t, ze_event_handle_t, ze_event_pool_handle_t, ze_result_t


# Functions on handles, for code without the GIL. A wait returns the driver's result; the caller interprets it.
cdef ze_result_t event_wait(ze_event_handle_t event, uint64_t timeout_ns) noexcept nogil
cdef ze_result_t event_query(ze_event_handle_t event) noexcept nogil
cdef ze_result_t event_signal(ze_event_handle_t event) noexcept nogil
cdef ze_result_t event_reset(ze_event_handle_t event) noexcept nogil


@cython.final
cdef class EventPool:
    cdef ze_event_pool_handle_t _h
    cdef ze_event_handle_t* events
    cdef readonly uint32_t count
    cdef readonly Context context
    cdef bint imported

    @staticmethod
    cdef EventPool create(Context context, uint32_t count, bint counter_based, bint interprocess,
                          uint32_t device_count, ze_device_handle_t* devices)

    @staticmethod
    cdef EventPool open_ipc(Context context, bytes handle)
    cdef bytes ipc_handle(self)
