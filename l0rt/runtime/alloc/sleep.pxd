# SPDX-License-Identifier: Apache-2.0
from l0rt.runtime.alloc.types cimport l0rt_heap, l0rt_private_pool

cdef bint heap_can_sleep(l0rt_heap* heap, l0rt_private_pool* private_pool) noexcept nogil
cdef int heap_sleep(l0rt_heap* heap, l0rt_private_pool* private_pool) noexcept nogil
cdef int heap_wake(l0rt_heap* heap, l0rt_private_pool* private_pool, bint is_last) noexcept nogil
