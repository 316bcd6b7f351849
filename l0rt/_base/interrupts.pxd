# SPDX-License-Identifier: Apache-2.0
# Run the handlers of the signals that have come. False: one of them raised, and that is kept.
cdef bint signals_pass() noexcept nogil
# Raise what was kept.
cdef int interrupt_raise() except -1
# Let nothing be raised while callbacks run; False on other threads, which do not end it.
cdef bint interrupts_hold() noexcept
cdef void interrupts_let_go() noexcept
# Let the main thread raise what was kept, between two of its bytecodes.
cdef void interrupt_defer() noexcept nogil
# Let `with` call `__exit__` of these classes whenever `__enter__` has returned.
cdef int enter_at_once(tuple types) except -1
