# SPDX-License-Identifier: Apache-2.0
from l0rt.ze.api cimport ZE_RESULT_NOT_READY, ZE_RESULT_SUCCESS, ze_driver_handle_t, ze_result_t


cdef int raise_result(ze_result_t result) except -1 nogil
cdef void warn_dropped(ze_result_t result, const char* call) noexcept nogil
cdef void warn_soon(ze_result_t result, const char* call) noexcept nogil
cdef bint is_device_lost(ze_result_t result) noexcept nogil
cdef void describe_with(ze_driver_handle_t driver) noexcept


cdef inline int CHECK(ze_result_t result) except -1 nogil:
    if result != ZE_RESULT_SUCCESS:
        return raise_result(result)
    return 0


# 1: ready, 0: not yet; anything else raises.
cdef inline int CHECK_READY(ze_result_t result) except -1 nogil:
    if result == ZE_RESULT_SUCCESS:
        return 1
    if result == ZE_RESULT_NOT_READY:
        return 0
    return raise_result(result)


# For destructors: a failure becomes a ResourceWarning.
cdef inline void DROP(ze_result_t result, const char* call) noexcept nogil:
    if result != ZE_RESULT_SUCCESS:
        warn_dropped(result, call)


# The same where locks are held: neither takes the GIL nor runs Python now; the main thread warns a little later.
cdef inline void DROP_LATER(ze_result_t result, const char* call) noexcept nogil:
    if result != ZE_RESULT_SUCCESS:
        warn_soon(result, call)
