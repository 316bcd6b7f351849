cdef size_t checked_size(nbytes) except? 0
cdef bint is_whole(value) noexcept
cdef object whole(value, str what)
cdef bint is_address(value) except -1
cdef object address_in(value, int low)
cdef int clamped_priority(priority) except? 2
