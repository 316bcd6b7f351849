cimport cython


@cython.final
cdef class device:
    cdef readonly str type
    cdef readonly object index


cdef int index_of(object what, int otherwise, str type) except? -1
