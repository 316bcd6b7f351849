# SPDX-License-Identifier: Apache-2.0

# Store the exception that is set, for l0rt_last_error. It stays set.
cdef int failed() except -1 nogil
cdef void note(object error) noexcept
# ValueError: what was needed is NULL.
cdef int refuse_null(const char* what) except -1 nogil
# ValueError: flags that there are not, where `known` is the only one.
cdef int refuse_flags(unsigned int flags, const char* whose, int known) except -1 nogil
# The text of the thread's last failure, and its code.
cdef int failure_last(char* text, size_t size) noexcept nogil
