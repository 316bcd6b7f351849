# SPDX-License-Identifier: Apache-2.0
from l0rt.runtime.memory.transfer cimport l0rt_operand
from l0rt.runtime.streams.types cimport l0rt_stream

# Write the numbers of a `l0rt.philox.Draw` from a generator, which moves on; `wait`: return when they are there. The
# operand is held.
# Where another's generator begins; it is asked before the memory is looked at. None: it is l0rt's.
cdef random_begins(wanted, generator, l0rt_stream* on)
cdef int random_fill(l0rt_operand* target, wanted, generator, begins, l0rt_stream* on, bint wait) except -1
