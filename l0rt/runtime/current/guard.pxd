# SPDX-License-Identifier: Apache-2.0
# The type of a guard table and the guards over it are here too: who uses them needs no other module.
from l0rt.runtime.streams.guard_impl cimport (
    l0rt_device_guard,
    l0rt_device_guard_enter,
    l0rt_device_guard_reset_device,
    l0rt_device_guard_set_index,
    l0rt_guard_impl,
    l0rt_multi_stream_guard,
    l0rt_multi_stream_guard_enter,
    l0rt_multi_stream_guard_reset,
    l0rt_optional_device_guard,
    l0rt_optional_device_guard_reset,
    l0rt_optional_device_guard_set_index,
    l0rt_optional_stream_guard,
    l0rt_optional_stream_guard_reset,
    l0rt_optional_stream_guard_reset_stream,
    l0rt_stream_guard,
    l0rt_stream_guard_enter,
    l0rt_stream_guard_reset,
)

# The table of the built-in device type. What concerns memory is set by memory, which comes after this.
cdef l0rt_guard_impl xpu_impl
cdef const l0rt_guard_impl* xpu_guard_impl() noexcept nogil


cdef class device_index:
    cdef object device
    cdef list others            # (thread, DeviceBlock) of blocks entered on another accelerator
    cdef int enter(self) except -1
    cdef int leave(self) except -1
