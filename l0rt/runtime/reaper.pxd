from l0rt.runtime.structs cimport l0rt_heap

cdef int reaper_watch(l0rt_heap* heap) except -1
