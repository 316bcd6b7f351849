# Run the handlers of the signals that have come. False: one of them raised, and that is kept.
cdef bint signals_pass() noexcept nogil
# Raise what was kept.
cdef int interrupt_raise() except -1
# Let the main thread raise what was kept, between two of its bytecodes.
cdef void interrupt_defer() noexcept nogil
