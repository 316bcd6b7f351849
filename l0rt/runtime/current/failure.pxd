# SPDX-License-Identifier: Apache-2.0
# The last failure of each thread, for C callers: code and text without the GIL.

# Give a thread that Python did not start a thread state, which it keeps until it ends; return whether it had none. An
# exception is lost with the thread state that only the raising code had. The caller may hold the GIL.
cdef bint attach() noexcept nogil
# Store the exception that is set. It stays set, except where no Python code could ever catch it.
cdef int note_failure() except -1 nogil
# The same with an exception that is not set.
cdef int fail_with(error) except -1
cdef int failure_last(char* text, size_t size) noexcept nogil
