"""A bound on what a heap caches: see bound.pyx."""

from l0rt.runtime.alloc.types cimport l0rt_heap

# No lock is held, nor the GIL.
cdef void bound_keep(l0rt_heap* heap) noexcept nogil
