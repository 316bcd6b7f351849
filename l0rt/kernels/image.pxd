# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint64_t

from l0rt.core.image cimport Image as CoreImage, Sampler as CoreSampler
from l0rt.runtime.streams.types cimport l0rt_device, l0rt_stream


cdef class Image:
    cdef CoreImage owner        # None: closed
    cdef l0rt_device* on
    cdef readonly tuple shape
    cdef readonly str format
    cdef readonly bint array
    cdef object element         # the NumPy type of a component, or of a packed texel
    cdef int components
    cdef set streams            # that use it, as addresses


cdef class Sampler:
    cdef CoreSampler owner      # None: closed
    cdef l0rt_device* on
    cdef readonly str addressing
    cdef readonly str filter
    cdef readonly bint normalized
    cdef set streams


# What a kernel is given; the stream uses it from now on, unless it is NULL. ValueError: it was closed, or is another
# device's.
cdef uint64_t Image_use(Image self, l0rt_device* device, l0rt_stream* stream) except 0
cdef uint64_t Sampler_use(Sampler self, l0rt_device* device, l0rt_stream* stream) except 0
