# SPDX-License-Identifier: Apache-2.0
from l0rt.runtime.streams.types cimport l0rt_stream

# A wait for this stream timed out: tell the log, if that listens, what its device's streams wait for.
cdef int log_stuck(l0rt_stream* stream) except -1
