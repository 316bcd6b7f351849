# SPDX-License-Identifier: Apache-2.0
from l0rt.runtime.memory.transfer cimport l0rt_operand
from l0rt.runtime.streams.types cimport l0rt_stream

# Write the numbers of a `l0rt.philox.Draw` from a generator, which moves on; `wait`: return when they are there. The
# operand is held.
cdef int random_fill(l0rt_operand* target, wanted, generator, l0rt_stream* on, bint wait) except -1
