# SPDX-License-Identifier: Apache-2.0
cimport cython
from libc.stdint cimport uint32_t, uint64_t

from l0rt.core.device cimport Device
from l0rt.core.driver cimport Context
from l0rt.ze.api cimport ze_command_list_handle_t, ze_command_queue_handle_t, ze_fence_handle_t, ze_result_t


# Execute closed lists, one after another, and signal a fence when the queue has left the last; NULL: none. The caller
# lets no two threads do so for one queue. None of the lists may still run: a driver may write into it.
cdef ze_result_t queue_execute(ze_command_queue_handle_t queue, uint32_t count, ze_command_list_handle_t* lists,
                               ze_fence_handle_t fence) noexcept nogil
# Wait so long for what the queue executes. An error may be that of a launch, which the CPU driver tells of once.
cdef ze_result_t queue_rest(ze_command_queue_handle_t queue, uint64_t timeout_ns) noexcept nogil
# The same; false if that was too short.
cdef bint queue_is_idle(ze_command_queue_handle_t queue, uint64_t timeout_ns) noexcept nogil
# Has the driver all that executes closed lists?
cdef bint has_queues() noexcept nogil
# SUCCESS once signalled, NOT_READY before. A wait, which takes time, also tells of a launch that has failed, once.
cdef ze_result_t fence_wait(ze_fence_handle_t fence, uint64_t timeout_ns) noexcept nogil
cdef ze_result_t fence_reset(ze_fence_handle_t fence) noexcept nogil


@cython.final
cdef class CommandQueue:
    cdef ze_command_queue_handle_t _h
    cdef readonly Context context
    cdef readonly Device device

    @staticmethod
    cdef CommandQueue create(Context context, Device device, uint32_t ordinal, uint32_t index, int priority)


@cython.final
cdef class Fence:
    cdef ze_fence_handle_t _h
    cdef readonly CommandQueue queue

    @staticmethod
    cdef Fence create(CommandQueue queue)
