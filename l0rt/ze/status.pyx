# SPDX-License-Identifier: Apache-2.0
"""Results: every status of the driver becomes an answer, an exception or a warning; none is lost."""

import sys

from libc.stdlib cimport free, malloc
from l0rt.ze cimport api, table
from l0rt.ze.api cimport ze_driver_handle_t, ze_result_t
from l0rt.ze.table cimport ze

from l0rt._base import callers
from l0rt.errors import CLASS_OF_RESULT, L0Error

ctypedef int (*pending_call)(void*) noexcept

cdef extern from "Python.h":
    int Py_AddPendingCall(pending_call function, void* argument) noexcept nogil     # needs no thread state either

ctypedef struct l0rt_dropped:
    ze_result_t result
    const char* call

NAMES = {
    api.ZE_RESULT_SUCCESS: "SUCCESS",
    api.ZE_RESULT_NOT_READY: "NOT_READY",
    api.ZE_RESULT_ERROR_DEVICE_LOST: "ERROR_DEVICE_LOST",
    api.ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY: "ERROR_OUT_OF_HOST_MEMORY",
    api.ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY: "ERROR_OUT_OF_DEVICE_MEMORY",
    api.ZE_RESULT_ERROR_MODULE_BUILD_FAILURE: "ERROR_MODULE_BUILD_FAILURE",
    api.ZE_RESULT_ERROR_MODULE_LINK_FAILURE: "ERROR_MODULE_LINK_FAILURE",
    api.ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET: "ERROR_DEVICE_REQUIRES_RESET",
    api.ZE_RESULT_ERROR_DEVICE_IN_LOW_POWER_STATE: "ERROR_DEVICE_IN_LOW_POWER_STATE",
    api.ZE_RESULT_EXP_ERROR_DEVICE_IS_NOT_VERTEX: "EXP_ERROR_DEVICE_IS_NOT_VERTEX",
    api.ZE_RESULT_EXP_ERROR_VERTEX_IS_NOT_DEVICE: "EXP_ERROR_VERTEX_IS_NOT_DEVICE",
    api.ZE_RESULT_EXP_ERROR_REMOTE_DEVICE: "EXP_ERROR_REMOTE_DEVICE",
    api.ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS: "ERROR_INSUFFICIENT_PERMISSIONS",
    api.ZE_RESULT_ERROR_NOT_AVAILABLE: "ERROR_NOT_AVAILABLE",
    api.ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE: "ERROR_DEPENDENCY_UNAVAILABLE",
    api.ZE_RESULT_WARNING_DROPPED_DATA: "WARNING_DROPPED_DATA",
    api.ZE_RESULT_ERROR_UNINITIALIZED: "ERROR_UNINITIALIZED",
    api.ZE_RESULT_ERROR_UNSUPPORTED_VERSION: "ERROR_UNSUPPORTED_VERSION",
    api.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE: "ERROR_UNSUPPORTED_FEATURE",
    api.ZE_RESULT_ERROR_INVALID_ARGUMENT: "ERROR_INVALID_ARGUMENT",
    api.ZE_RESULT_ERROR_INVALID_NULL_HANDLE: "ERROR_INVALID_NULL_HANDLE",
    api.ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE: "ERROR_HANDLE_OBJECT_IN_USE",
    api.ZE_RESULT_ERROR_INVALID_NULL_POINTER: "ERROR_INVALID_NULL_POINTER",
    api.ZE_RESULT_ERROR_INVALID_SIZE: "ERROR_INVALID_SIZE",
    api.ZE_RESULT_ERROR_UNSUPPORTED_SIZE: "ERROR_UNSUPPORTED_SIZE",
    api.ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT: "ERROR_UNSUPPORTED_ALIGNMENT",
    api.ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT: "ERROR_INVALID_SYNCHRONIZATION_OBJECT",
    api.ZE_RESULT_ERROR_INVALID_ENUMERATION: "ERROR_INVALID_ENUMERATION",
    api.ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION: "ERROR_UNSUPPORTED_ENUMERATION",
    api.ZE_RESULT_ERROR_UNSUPPORTED_IMAGE_FORMAT: "ERROR_UNSUPPORTED_IMAGE_FORMAT",
    api.ZE_RESULT_ERROR_INVALID_NATIVE_BINARY: "ERROR_INVALID_NATIVE_BINARY",
    api.ZE_RESULT_ERROR_INVALID_GLOBAL_NAME: "ERROR_INVALID_GLOBAL_NAME",
    api.ZE_RESULT_ERROR_INVALID_KERNEL_NAME: "ERROR_INVALID_KERNEL_NAME",
    api.ZE_RESULT_ERROR_INVALID_FUNCTION_NAME: "ERROR_INVALID_FUNCTION_NAME",
    api.ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION: "ERROR_INVALID_GROUP_SIZE_DIMENSION",
    api.ZE_RESULT_ERROR_INVALID_GLOBAL_WIDTH_DIMENSION: "ERROR_INVALID_GLOBAL_WIDTH_DIMENSION",
    api.ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX: "ERROR_INVALID_KERNEL_ARGUMENT_INDEX",
    api.ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE: "ERROR_INVALID_KERNEL_ARGUMENT_SIZE",
    api.ZE_RESULT_ERROR_INVALID_KERNEL_ATTRIBUTE_VALUE: "ERROR_INVALID_KERNEL_ATTRIBUTE_VALUE",
    api.ZE_RESULT_ERROR_INVALID_MODULE_UNLINKED: "ERROR_INVALID_MODULE_UNLINKED",
    api.ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE: "ERROR_INVALID_COMMAND_LIST_TYPE",
    api.ZE_RESULT_ERROR_OVERLAPPING_REGIONS: "ERROR_OVERLAPPING_REGIONS",
    api.ZE_RESULT_WARNING_ACTION_REQUIRED: "WARNING_ACTION_REQUIRED",
    api.ZE_RESULT_ERROR_INVALID_KERNEL_HANDLE: "ERROR_INVALID_KERNEL_HANDLE",
    api.ZE_RESULT_ERROR_ADDRESS_NOT_FOUND: "ERROR_ADDRESS_NOT_FOUND",
    api.ZE_RESULT_QUERY_TRUE: "QUERY_TRUE",
    api.ZE_RESULT_QUERY_FALSE: "QUERY_FALSE",
    api.ZE_RESULT_ERROR_INVALID_GRAPH: "ERROR_INVALID_GRAPH",
    api.ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED: "ERROR_GRAPH_CAPTURE_UNSUPPORTED",
    api.ZE_RESULT_ERROR_GRAPH_CAPTURE_INVALIDATED: "ERROR_GRAPH_CAPTURE_INVALIDATED",
    api.ZE_RESULT_ERROR_GRAPH_CAPTURE_MERGE_ATTEMPT: "ERROR_GRAPH_CAPTURE_MERGE_ATTEMPT",
    api.ZE_RESULT_ERROR_COMMAND_LIST_NOT_CAPTURING: "ERROR_COMMAND_LIST_NOT_CAPTURING",
    api.ZE_RESULT_ERROR_GRAPH_UNJOINED_FORKS: "ERROR_GRAPH_UNJOINED_FORKS",
    api.ZE_RESULT_ERROR_GRAPH_INTERNAL_EVENT: "ERROR_GRAPH_INTERNAL_EVENT",
    api.ZE_RESULT_ERROR_UNKNOWN: "ERROR_UNKNOWN",
}

FORKED = ("Cannot re-initialize XPU in forked subprocess. To use XPU with multiprocessing, "
          "you must use the 'spawn' start method")

cdef ze_driver_handle_t _describing = NULL


cdef void describe_with(ze_driver_handle_t driver) noexcept:
    """Ask ``driver`` for the text of errors from now on."""
    global _describing
    _describing = driver


def name_of(code):
    """Return the name of a result without ZE_RESULT_, or its number in hexadecimal."""
    return NAMES.get(code, hex(code))


def error_of(code, doing="", detail=""):
    """Return the exception that stands for the result ``code``; ``doing`` says what failed, ``detail`` why, if that is
    known better than from the driver's text of its last error."""
    if table.forked:
        return RuntimeError(FORKED)
    name = name_of(code)
    text = f"{doing}: " if doing else ""
    text += f"Level Zero answered {name} ({code:#x})"
    described = _last_description()     # asked in any case: a driver may tell it once
    detail = detail or described
    if detail:
        text += f": {detail}"
    return CLASS_OF_RESULT.get(name, L0Error)(text, (name, code))


cdef str _last_description():
    cdef const char* text = NULL
    cdef ze_result_t r
    if _describing == NULL or ze.zeDriverGetLastErrorDescription == NULL:
        return ""
    with nogil:
        r = ze.zeDriverGetLastErrorDescription(_describing, &text)
    if r != api.ZE_RESULT_SUCCESS or text == NULL:
        return ""
    return text.decode("utf-8", "replace").strip()


cdef int raise_result(ze_result_t result) except -1 nogil:
    with gil:
        raise error_of(<long> result)


cdef bint is_device_lost(ze_result_t result) noexcept nogil:
    return result == api.ZE_RESULT_ERROR_DEVICE_LOST or result == api.ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET


cdef void warn_dropped(ze_result_t result, const char* call) noexcept nogil:
    with gil:
        if sys is None or sys.is_finalizing():
            return
        # if warnings are errors, this raises, and Cython reports it as unraisable: a destructor cannot raise
        callers.warn_late(
            f"{call.decode()} failed with {name_of(<long> result)}; the object is given up", ResourceWarning)


cdef void warn_soon(ze_result_t result, const char* call) noexcept nogil:
    cdef l0rt_dropped* dropped = <l0rt_dropped*>malloc(sizeof(l0rt_dropped))
    if dropped == NULL:
        return
    dropped.result = result
    dropped.call = call
    if Py_AddPendingCall(warn_now, dropped) != 0:   # as many warnings as fit are on their way already
        free(dropped)


cdef int warn_now(void* argument) noexcept:
    cdef l0rt_dropped* dropped = <l0rt_dropped*>argument
    warn_dropped(dropped.result, dropped.call)
    free(dropped)
    return 0
