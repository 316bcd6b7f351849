# SPDX-License-Identifier: Apache-2.0
cimport cython
from libc.stdint cimport uint32_t, uint64_t

from l0rt.core.driver cimport Context
from l0rt.core.device cimport Device
from l0rt.ze.api cimport (
    ze_command_list_handle_t,
    ze_command_queue_priority_t,
    ze_context_handle_t,
    ze_device_handle_t,
    ze_event_handle_t,
    ze_result_t,
)


cdef ze_command_queue_priority_t queue_priority(int priority) noexcept nogil


# Verbs on handles, for code without the GIL; the caller holds the list's lock and turns a status into an error.
cdef ze_result_t list_barrier(ze_command_list_handle_t list, ze_event_handle_t signal) noexcept nogil
cdef ze_result_t list_signal(ze_command_list_handle_t list, ze_event_handle_t event) noexcept nogil
cdef ze_result_t list_wait(
    ze_command_list_handle_t list, uint32_t count, ze_event_handle_t* events) noexcept nogil
cdef ze_result_t list_copy(
    ze_command_list_handle_t list, void* dst, const void* src, size_t nbytes, ze_event_handle_t signal) noexcept nogil
cdef ze_result_t list_copy_rows(
    ze_command_list_handle_t list, void* dst, uint32_t dst_pitch, const void* src, uint32_t src_pitch,
    uint32_t width, uint32_t height, ze_event_handle_t signal) noexcept nogil
cdef ze_result_t list_fill(
    ze_command_list_handle_t list, void* dst, const void* pattern, size_t pattern_size,
    size_t nbytes) noexcept nogil
# Hints about shared memory.
cdef ze_result_t list_prefetch(ze_command_list_handle_t list, const void* ptr, size_t nbytes) noexcept nogil
cdef ze_result_t list_advise(
    ze_command_list_handle_t list, ze_device_handle_t device, const void* ptr, size_t nbytes, int advice) noexcept nogil
cdef ze_result_t list_timestamp(
    ze_command_list_handle_t list, uint64_t* ticks, ze_event_handle_t signal) noexcept nogil
# Properties of a foreign list that the driver reports; the others stay unchanged.
cdef int list_facts(
    ze_command_list_handle_t list, bint* immediate, ze_context_handle_t* context, ze_device_handle_t* device,
    int* ordinal) except -1 nogil
# A regular list without its commands, as new.
cdef ze_result_t list_reset(ze_command_list_handle_t list) noexcept nogil
# Of a mutable list: the number of the launch that is appended next; changes of launches, a chain of the driver's
# descriptors, while the list is closed and does not run; then it is to be closed again.
cdef ze_result_t list_next_id(ze_command_list_handle_t list, uint64_t* number) noexcept nogil
cdef ze_result_t list_change(ze_command_list_handle_t list, const void* chain) noexcept nogil
# Make an event unsignalled when its turn comes. Only where `has_queues` of core/queue says so.
cdef ze_result_t list_reset_event(ze_command_list_handle_t list, ze_event_handle_t event) noexcept nogil
cdef ze_result_t list_synchronize(ze_command_list_handle_t list, uint64_t timeout_ns) noexcept nogil


@cython.final
cdef class CommandList:
    cdef ze_command_list_handle_t _h
    cdef readonly Context context
    cdef readonly Device device
    cdef readonly bint in_order

    @staticmethod
    cdef CommandList immediate(
        Context context, Device device, uint32_t ordinal, uint32_t index, int priority, bint in_order,
        bint offloads=*)

    @staticmethod
    cdef CommandList regular(Context context, Device device, uint32_t ordinal, bint in_order, bint is_mutable=*)
    cdef int end(self) except -1
