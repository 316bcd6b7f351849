# SPDX-License-Identifier: Apache-2.0
"""How commands are kept in order on a list, numbered, and kept apart from mapping. The stream's lock is held around all
of these."""

from libc.stdint cimport uint64_t

from l0rt.core.cmdlist cimport list_barrier, list_signal
from l0rt.runtime.streams.types cimport (
    l0rt_gate_give_way,
    l0rt_gate_leave,
    l0rt_gate_share,
    l0rt_load_int,
    l0rt_store64,
    l0rt_stream,
)
from l0rt.ze.api cimport ZE_RESULT_SUCCESS, ze_event_handle_t, ze_result_t


cdef inline uint64_t number(l0rt_stream* stream) noexcept nogil:
    """Number the next command. The lock is held; others read the number without it."""
    l0rt_store64(&stream.issued, stream.issued + 1)
    return stream.issued


cdef inline ze_result_t before(l0rt_stream* stream) noexcept nogil:
    """Put what comes next behind everything appended so far."""
    cdef ze_result_t r = ZE_RESULT_SUCCESS
    number(stream)
    if not stream.in_order:
        if stream.dirty or stream.shared:
            r = list_barrier(stream.list, NULL)
        stream.dirty = True
    return r


cdef inline ze_result_t after(l0rt_stream* stream) noexcept nogil:
    """Hold back what other hands append to a list that does not keep the order itself."""
    if not stream.shared or stream.in_order or not stream.dirty:
        return ZE_RESULT_SUCCESS
    stream.dirty = False
    return list_barrier(stream.list, NULL)


cdef inline ze_result_t signal_behind(l0rt_stream* stream, ze_event_handle_t event) noexcept nogil:
    """Signal when everything appended so far is done. The signal is numbered already."""
    if stream.in_order:
        return list_signal(stream.list, event)
    stream.dirty = False
    return list_barrier(stream.list, event)


cdef inline int* hold_off_maps(l0rt_stream* stream) noexcept nogil:
    """Before a command that the driver must not append while another thread maps memory; NULL: it may."""
    cdef int* gate = stream.device.map_gate
    if gate != NULL:
        if l0rt_load_int(&gate[1]) != 0:
            l0rt_gate_give_way(&gate[1])
        l0rt_gate_share(gate)
    return gate


cdef inline void allow_maps(int* gate) noexcept nogil:
    if gate != NULL:
        l0rt_gate_leave(gate)
