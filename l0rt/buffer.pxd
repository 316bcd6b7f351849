from l0rt.runtime.records cimport l0rt_device, l0rt_stream
from l0rt.runtime.structs cimport l0rt_block


cdef class Buffer:
    cdef l0rt_block* block      # NULL: shared memory, empty, or freed
    cdef void* pointer          # NULL: empty or freed
    cdef readonly size_t nbytes
    cdef l0rt_stream* stream    # allocated in this stream's order
    cdef l0rt_device* owner
    cdef int memory             # one of the kinds below
    cdef int exports            # memoryviews that look at it, and calls that work on it: it is not freed meanwhile
    cdef bint freed
    cdef object __weakref__
