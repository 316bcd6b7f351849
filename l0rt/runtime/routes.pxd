"""Beside the cache: whether a thread is in a pool, and what memory is filled with before somebody has it."""

from l0rt.runtime.records cimport l0rt_stream
from l0rt.runtime.structs cimport l0rt_arena, l0rt_block

# The byte that device memory is filled with; negative: none.
cdef int filling

cdef void at_hand(l0rt_stream* stream, l0rt_arena* arena) noexcept nogil
cdef void routes_change(int change) noexcept nogil
cdef int set_filling(byte) except -1
cdef int fill_host(void* pointer, size_t nbytes) except -1
cdef int fill_block(l0rt_stream* stream, l0rt_block* block) except -1 nogil
