# SPDX-License-Identifier: Apache-2.0
from l0rt.runtime.alloc.types cimport l0rt_heap

cdef int background_add(l0rt_heap* heap) except -1
