# SPDX-License-Identifier: Apache-2.0
from l0rt.runtime.streams.types cimport l0rt_stream


# Between pageable host memory and a device, through pinned chunks.
cdef int copy_in(l0rt_stream* stream, void* dst, const void* src, size_t nbytes) except -1 nogil
cdef int copy_out(l0rt_stream* stream, void* dst, const void* src, size_t nbytes) except -1 nogil
