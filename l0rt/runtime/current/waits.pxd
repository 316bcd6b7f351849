# SPDX-License-Identifier: Apache-2.0
from l0rt.runtime.streams.types cimport l0rt_stream

# A wait for this stream timed out: log what the streams of its device wait for, if the logger is enabled.
cdef int log_stuck(l0rt_stream* stream) except -1
