from l0rt.runtime.alloc.types cimport l0rt_arena, l0rt_block
from l0rt.runtime.streams.types cimport l0rt_device


# Pinned memory that every device of the context reaches. `nbytes` is not 0.
cdef l0rt_arena* host_arena(l0rt_device* device) except NULL nogil
cdef l0rt_block* host_malloc(l0rt_device* device, size_t nbytes) except NULL nogil
cdef bint is_pinned(const void* ptr, l0rt_block** block) noexcept nogil
