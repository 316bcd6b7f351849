"""Pinned host memory as the caching core sees it: its table of operations, on Level Zero, and how long they take."""

from libc.stdint cimport uint64_t

from l0rt.core.memory cimport memory_release, memory_reserve
from l0rt.runtime.alloc.atomics cimport spin_lock, spin_unlock
from l0rt.runtime.memory.operations cimport stream_ops, told
from l0rt.runtime.streams.wait cimport host_clock_ns
from l0rt.ze cimport table
from l0rt.ze.api cimport ZE_RESULT_ERROR_DEVICE_LOST, ZE_RESULT_SUCCESS, ze_result_t


cdef int op_reserve(void* self, size_t nbytes, void** out) noexcept nogil:
    cdef l0rt_host_memory* memory = <l0rt_host_memory*>self
    cdef l0rt_device* device = memory.device
    cdef uint64_t start = host_clock_ns()
    cdef ze_result_t r
    if not table.alive:
        return ZE_RESULT_ERROR_DEVICE_LOST
    r = memory_reserve(device.context, NULL, device.info.max_alloc, device.caps.relaxed, nbytes, out)
    if r == ZE_RESULT_SUCCESS:
        duration_add(memory, &memory.taken, host_clock_ns() - start)
    return r


cdef int op_release(void* self, void* ptr, size_t nbytes) noexcept nogil:
    cdef l0rt_host_memory* memory = <l0rt_host_memory*>self
    cdef uint64_t start = host_clock_ns()
    cdef ze_result_t r
    if not table.alive:
        return 0
    r = memory_release(memory.device.context, False, ptr)
    duration_add(memory, &memory.given, host_clock_ns() - start)
    return told(memory.device, r, b"zeMemFree")


cdef void duration_add(l0rt_host_memory* memory, l0rt_duration* duration, uint64_t ns) noexcept nogil:
    ns = max(ns, <uint64_t>1)
    if spin_lock(&memory.lock):
        duration.total += ns
        duration.count += 1
        duration.most = max(duration.most, ns)
        duration.least = ns if duration.least == 0 else min(duration.least, ns)
        spin_unlock(&memory.lock)


cdef void durations_read(l0rt_host_memory* memory, l0rt_duration* taken, l0rt_duration* given) noexcept nogil:
    cdef bint locked = spin_lock(&memory.lock)
    taken[0] = memory.taken
    given[0] = memory.given
    if locked:
        spin_unlock(&memory.lock)


cdef void durations_reset(l0rt_host_memory* memory, bint peaks) noexcept nogil:
    """Forget the longest and the shortest, or how many and how long all were together."""
    if not spin_lock(&memory.lock):
        return
    if peaks:
        memory.taken.most = memory.taken.least = memory.given.most = memory.given.least = 0
    else:
        memory.taken.total = memory.taken.count = memory.given.total = memory.given.count = 0
    spin_unlock(&memory.lock)


cdef l0rt_memory_ops host_ops
stream_ops(&host_ops)
host_ops.reserve = op_reserve
host_ops.release = op_release
