"""A heap's statistics as a dictionary, under torch's keys."""

from l0rt.runtime.alloc.types cimport l0rt_heap

cdef dict stats_of_heap(l0rt_heap* heap)
