# SPDX-License-Identifier: Apache-2.0
from l0rt.runtime.streams.copy cimport l0rt_rows
from l0rt.runtime.streams.types cimport l0rt_stream


# Copy between pinned host memory, which holds `nbytes` bytes from `host` on, and a device: all of them, or rows. False,
# and nothing is done: it is not pinned.
cdef bint copy_pinned(void* dst, const void* src, const void* host, size_t nbytes, const l0rt_rows* rows,
                      l0rt_stream* on, bint non_blocking) except -1

# Is all of it registered? Copies of it then go through copy_pinned, for which `unregister` waits.
cdef bint is_registered(const void* start, size_t nbytes) noexcept
