# SPDX-License-Identifier: Apache-2.0
from l0rt.runtime.streams.types cimport l0rt_slot


cdef object await_slot(l0rt_slot* slot)
