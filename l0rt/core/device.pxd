# SPDX-License-Identifier: Apache-2.0
cimport cython
from libc.stdint cimport uint32_t, uint64_t

from l0rt.core.driver cimport Driver
from l0rt.ze.api cimport ze_device_handle_t, ze_result_t
from l0rt.ze.caps cimport l0rt_caps

ctypedef struct l0rt_device_info:
    char name[256]
    uint32_t vendor_id
    uint32_t device_id
    uint32_t sub_devices
    uint32_t core_clock_mhz
    uint32_t slices
    uint32_t subslices_per_slice
    uint32_t eus_per_subslice
    uint32_t threads_per_eu
    uint64_t max_alloc
    uint64_t total_memory
    uint32_t memory_clock_mhz
    uint32_t memory_bus_width
    uint64_t cache_bytes
    uint64_t timer_hz           # ticks per second of both timestamp kinds
    uint32_t timestamp_bits     # valid bits of a global timestamp
    uint32_t kernel_timestamp_bits
    bint integrated
    bint has_pci
    uint32_t pci[4]             # domain, bus, device, function
    unsigned char uuid[16]
    int compute_ordinal         # queue group that computes
    int copy_ordinal            # queue group that only copies, -1 if there is none
    uint32_t compute_queues
    uint32_t copy_queues
    uint32_t copy_fill_pattern  # longest fill pattern of the copy group, bytes


@cython.final
cdef class Device:
    cdef ze_device_handle_t _h
    cdef readonly Driver driver
    cdef l0rt_device_info info
    cdef l0rt_caps caps
    cdef readonly bint is_first         # of its driver's: what belongs to one device of a context is this one's


# The most that a launch may have: groups, and work-items of a group, along x, y and z; local memory.
cdef struct Limits:
    uint32_t total_group_size
    uint32_t[3] group_size
    uint32_t[3] group_count
    uint32_t local_bytes        # of a group
    uint32_t argument_bytes     # of a kernel


cdef Limits device_limits(Device device) except *
# SUCCESS also where the driver cannot tell: unknown is not lost.
cdef ze_result_t device_status(ze_device_handle_t device) noexcept nogil
# Blocks until every queue of the device has completed its present work. Only with the capability `device_sync`.
cdef ze_result_t device_rest(ze_device_handle_t device) noexcept nogil
cdef ze_result_t device_clocks(ze_device_handle_t device, uint64_t* host_ns, uint64_t* ticks) noexcept nogil
