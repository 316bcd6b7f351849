# SPDX-License-Identifier: Apache-2.0
cdef int check_sizes(size_t source, size_t target) except -1
cdef int get_view(what, Py_buffer* view, int flags, str where) except -1
cdef bytes bytes_of(what, str where)
