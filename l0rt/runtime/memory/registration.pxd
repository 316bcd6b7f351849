# SPDX-License-Identifier: Apache-2.0
from l0rt.runtime.streams.types cimport l0rt_stream


# Copy between pinned host memory, which holds `host`, and a device. False, and nothing is done: it is not pinned.
cdef bint copy_pinned(void* dst, const void* src, const void* host, size_t nbytes, l0rt_stream* on,
                      bint non_blocking) except -1
