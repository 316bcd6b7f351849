from l0rt.runtime.alloc.types cimport l0rt_heap

cdef int reaper_watch(l0rt_heap* heap) except -1
