# SPDX-License-Identifier: Apache-2.0
"""Python stacks, each known by a number. 0 is no stack."""

from libc.stdint cimport uint32_t

# The calling thread's stack. Takes the GIL if `waits` and the thread may have one; else a thread without the GIL has no
# stack. No C lock is held: Python may run its garbage collection.
cdef uint32_t stack_gather(bint waits) noexcept nogil
