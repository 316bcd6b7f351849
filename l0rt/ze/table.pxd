# SPDX-License-Identifier: Apache-2.0
from l0rt.ze.api cimport l0rt_ze_table

# One table for the whole process; modules that cimport it share the variable itself.
cdef l0rt_ze_table* ze

# 0 before the library is loaded, after the exit hook, and in a forked child: destructors then leave handles alone.
cdef int alive

# 1 in a child forked from a process that had loaded the library.
cdef int forked

cdef void leave_driver() noexcept nogil
