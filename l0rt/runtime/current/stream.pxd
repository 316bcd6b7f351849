# SPDX-License-Identifier: Apache-2.0
from l0rt.runtime.streams.queue cimport Queue
from l0rt.runtime.streams.types cimport l0rt_stream

cdef class Stream(Queue):
    cdef object __weakref__
    cdef bint holds             # one hold on an adopted list


cdef object stream_object(l0rt_stream* stream)
