"""Shares: what a heap's private pools have of its reserved memory, each with its peak. The census mutex is held."""

from libc.stdint cimport int64_t

from l0rt.runtime.structs cimport l0rt_heap, l0rt_owner, l0rt_share, l0rt_stat

cdef l0rt_share* share_of(l0rt_heap* heap, l0rt_owner* owner) noexcept nogil
cdef void shares_reset_peak(l0rt_heap* heap) noexcept nogil
cdef void shares_reset_accumulated(l0rt_heap* heap) noexcept nogil
cdef int64_t shares_reserved(l0rt_heap* heap) noexcept nogil
cdef int64_t shares_copy(l0rt_heap* heap, l0rt_share* out, int64_t room) noexcept nogil


cdef inline void stat_move(l0rt_stat* stat, int64_t change) noexcept nogil:
    stat.current += change
    if change > 0:
        stat.allocated += change
    else:
        stat.freed -= change
    if stat.peak < stat.current:
        stat.peak = stat.current
