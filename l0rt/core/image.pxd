# SPDX-License-Identifier: Apache-2.0
cimport cython
from libc.stdint cimport uint32_t, uint64_t

from l0rt.core.device cimport Device
from l0rt.core.driver cimport Context
from l0rt.ze.api cimport (
    ze_command_list_handle_t, ze_event_handle_t, ze_image_handle_t, ze_image_region_t, ze_result_t, ze_sampler_handle_t,
)


# What a description has: Level Zero's numbers, and extents in texels.
cdef struct l0rt_image_desc:
    int type
    int layout
    int number
    int[4] channels
    uint64_t width
    uint32_t height
    uint32_t depth
    uint32_t elements


# The largest extents along one, two and three axes, the elements of an array, and the samplers: zeros: there are none.
cdef struct l0rt_image_limits:
    uint32_t[3] extents
    uint32_t elements
    uint32_t samplers


cdef l0rt_image_limits image_limits(Device device) except *
# From an image to memory, or from memory to an image: `reads` chooses.
cdef ze_result_t list_copy_image(
    ze_command_list_handle_t list, ze_image_handle_t image, const ze_image_region_t* region, void* memory,
    bint reads) noexcept nogil


@cython.final
cdef class Image:
    cdef ze_image_handle_t _h
    cdef Context context

    @staticmethod
    cdef Image create(Context context, Device device, const l0rt_image_desc* desc)


@cython.final
cdef class Sampler:
    cdef ze_sampler_handle_t _h
    cdef Context context

    @staticmethod
    cdef Sampler create(Context context, Device device, int addressing, bint linear, bint normalized)
