# SPDX-License-Identifier: Apache-2.0
"""A queue is what a stream is below Python: one list, its lock, its order.

Where the driver keeps the order, commands are appended as they are. Where it does not, a barrier stands between a
command and what came before it, so that both kinds of list behave alike.
"""

from cpython.exc cimport PyErr_Clear
from cpython.object cimport PyObject_TypeCheck, PyTypeObject
cimport cython
from libc.stdint cimport UINT64_MAX, uint32_t, uint64_t

from l0rt._base.arguments cimport known_as
from l0rt.core.cmdlist cimport (
    CommandList,
    list_synchronize,
    list_timestamp,
    list_wait,
)
from l0rt.core.event cimport event_query, event_reset
from l0rt.core.module cimport list_launch
from l0rt.runtime.alloc.atomics cimport mutex_lock, mutex_trylock, mutex_unlock
from l0rt.runtime.streams.capture cimport (
    capture_lose,
    capture_point,
    capture_refuse,
    capture_wait,
    captures,
    replays_failure,
)
from l0rt.runtime.streams.devices cimport core_context, core_device
from l0rt.runtime.streams.event_pool cimport (
    ask_progress_with,
    slot_acquire_kind,
    slot_add_waiter,
    slot_kind,
    slot_release,
    slot_retain,
)
from l0rt.runtime.streams.hooks cimport (
    EVENT_RECORD,
    EVENT_WAIT,
    STREAM_CREATION,
    STREAM_SYNCHRONIZATION,
    STREAM_WAIT,
    call_hooks,
    hooked,
)
from l0rt.runtime.streams.orphans cimport orphans_tell, rely_on, rely_through, relying_begin, relying_end
from l0rt.runtime.streams.order cimport after, allow_maps, before, hold_off_maps, number, signal_behind
from l0rt.runtime.streams.sleep cimport ANY_SLEEP, sleeps
from l0rt.runtime.streams.timeline cimport begin_command, begin_kernel, end_command, l0rt_command
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport (
    WAIT_ADAPTIVE,
    stream_fails,
    host_clock_ns,
    refuse,
    slot_completed,
    slot_poll,
    slot_query,
    slot_wait,
    slot_wait_by,
)
from l0rt.ze cimport table
from l0rt.ze.api cimport (
    ZE_RESULT_NOT_READY,
    ZE_RESULT_SUCCESS,
    ze_command_list_handle_t,
    ze_event_handle_t,
    ze_kernel_handle_t,
    ze_result_t,
)

from l0rt import config
from l0rt.errors import DeviceLostError
from l0rt.runtime.lazy import LISTS, on_exit
from l0rt.runtime.streams.devices import lazy


_owners = []   # every CommandList that a queue uses

cdef PyTypeObject* _face = NULL

cdef enum:
    AT_ONCE = 16        # events that one append waits for


@cython.binding(False)
cdef class Queue:
    """A stream as the lower floors know it. Users make ``l0rt.Stream``."""

    def __cinit__(self, *args, **kwargs):
        if _face == NULL or not PyObject_TypeCheck(self, _face):
            raise TypeError("make a stream with l0rt.Stream()")


cdef int queue_face(face) except -1:
    global _face
    _face = <PyTypeObject*>face     # a class of an extension module lives as long as the process
    return 0


cdef str queue_name(l0rt_stream* stream):
    return (f"<l0rt.Stream device={lazy.device_type}:{stream.device.index} stream_id={stream.id} "
            f"priority={stream.priority}>")


cdef int queue_open(l0rt_stream* stream) except -1 nogil:
    """Make the queue's list, unless it has one; refuse a device that may not be used."""
    if not table.alive or stream.device.lost:
        return refuse(stream.device)
    if l0rt_load_list(&stream.list) != NULL:
        return 0
    with gil:
        return queue_create(stream)


# By device, for a thread that cannot run Python: it may hold the locks of an allocator.
cdef bint _may_offload[L0RT_MAX_DEVICES]


def read_copy_engines():
    """Take over from the settings whether copies of host memory may use a copy engine. One hint is for both ways."""
    cdef int i
    own = config.indices_set()
    common = may_offload("xpu")
    for i in range(L0RT_MAX_DEVICES):
        _may_offload[i] = may_offload(f"xpu:{i}") if i in own else common


cdef bint may_offload(str owner) except -1:
    return "compute" not in [config.effective(f"{owner}.{way}.copy_engine") for way in ("h2d", "d2h")]


config.on_change(read_copy_engines)
read_copy_engines()


cdef inline bint offloads(l0rt_stream* stream) noexcept nogil:
    """Should the driver give copies from and to host memory to a copy engine?"""
    return (_may_offload[stream.device.index] and stream.device.caps.copy_offload
            and stream.ordinal == stream.device.info.compute_ordinal)


cdef int queue_create(l0rt_stream* stream) except -1:
    cdef CommandList made
    cdef l0rt_slot* mark
    if stream.kind == STREAM_ADOPTED:
        raise RuntimeError("the stream's list was given back to its owner")
    try:
        made = CommandList.immediate(
            core_context(stream.device.index), core_device(stream.device.index),
            stream.ordinal, stream.queue, stream.priority, stream.in_order, offloads(stream))
    except DeviceLostError:
        l0rt_store_int(&stream.device.lost, 1)
        raise
    with nogil:
        mark = slot_acquire_kind(stream.device, slot_kind(stream, False))
    if stream.list != NULL:     # another thread was quicker while this one was in the driver
        made.close()
        slot_release(mark)
        return 0
    stream.mark = mark
    _owners.append(made)
    l0rt_store_list(&stream.list, made._h)
    if hooked:
        call_hooks(STREAM_CREATION, <uint64_t>stream, 0, 0, 0)
    return 0


cdef ze_command_list_handle_t queue_share(l0rt_stream* stream) except NULL nogil:
    cdef ze_result_t r = ZE_RESULT_SUCCESS
    if captures(stream):
        capture_refuse(stream, b"Stream.native_handle (what other software appends to the native list of a stream)")
    lock(stream)
    if not stream.shared:
        l0rt_store_int(&stream.shared, 1)
        r = after(stream)
    unlock(stream, r)
    return stream.list


cdef ze_result_t queue_try_launch(
        l0rt_stream* stream, ze_kernel_handle_t kernel, const char* name, const uint32_t* groups,
        const uint32_t* group_size, bint cooperative, uint64_t seen, uint64_t* seq) noexcept nogil:
    # The list was just given back to its owner, or a pool went to sleep since the arguments were looked at.
    cdef ze_result_t r = ZE_RESULT_NOT_READY
    cdef l0rt_command* told = NULL
    cdef int* gate
    mutex_lock(&stream.lock)
    if stream.list != NULL and (sleeps == seen or seen == ANY_SLEEP):
        told = begin_kernel(stream, name, groups, group_size)
        r = before(stream)
        if stream.device.is_software:
            l0rt_store_int(&stream.launched, 1)
    if r == ZE_RESULT_SUCCESS:
        gate = hold_off_maps(stream)
        r = list_launch(stream.list, kernel, groups, cooperative)
        allow_maps(gate)
    if told != NULL:
        end_command(told, r)
    seq[0] = stream.issued
    if r == ZE_RESULT_SUCCESS and stream.shared:
        r = after(stream)
    mutex_unlock(&stream.lock)
    return r


cdef ze_result_t record_locked(l0rt_stream* stream, l0rt_slot* slot) noexcept nogil:
    cdef ze_result_t r
    slot.stream = stream
    slot.seq = stream.issued + 1
    if slot.ticks != NULL:
        slot.host_ns = host_clock_ns()
        stream.dirty = True     # the barrier in front may not have signalled yet: see queue_move_signal
        r = before(stream)
        return r if r != ZE_RESULT_SUCCESS else list_timestamp(stream.list, slot.ticks, slot.event)
    number(stream)
    return signal_behind(stream, slot.event)


cdef int queue_record(l0rt_stream* stream, l0rt_slot* slot) except -1 nogil:
    if slot.event == NULL:          # captured
        return 0
    record_untold(stream, slot)
    if hooked:
        call_hooks(EVENT_RECORD, <uint64_t>slot, <uint64_t>stream, 0, 0)
    return 0


cdef int record_untold(l0rt_stream* stream, l0rt_slot* slot) except -1 nogil:
    """Record without hooks: an end event belongs to no Event, and may be recorded with the allocator's locks held."""
    cdef ze_result_t r
    lock(stream)
    r = record_locked(stream, slot)
    if r != ZE_RESULT_SUCCESS:
        slot.stream = NULL      # nothing will signal it
    return unlock(stream, r)


cdef l0rt_slot* queue_end_event(l0rt_stream* stream) except NULL nogil:
    cdef l0rt_slot* slot = capture_point(stream) if captures(stream) else NULL
    return slot if slot != NULL else issued_end_event(stream)


cdef l0rt_slot* issued_end_event(l0rt_stream* stream) except NULL nogil:
    """Of what the native list was given, whatever is captured since."""
    cdef l0rt_slot* slot
    cdef l0rt_slot* old
    cdef bint recorded = False
    if stream.kind == STREAM_ADOPTED and l0rt_load_list(&stream.list) == NULL and stream.end_event != NULL:
        slot = stream.end_event     # given back: this was its last command
        slot_retain(slot)
        return slot
    lock(stream)
    slot = stream.end_event
    if slot != NULL and slot.seq == stream.issued and not stream.shared:
        slot_retain(slot)
        unlock(stream, ZE_RESULT_SUCCESS)
        return slot
    unlock(stream, ZE_RESULT_SUCCESS)
    slot = slot_acquire_kind(stream.device, slot_kind(stream, False))
    try:
        record_untold(stream, slot)
        recorded = True
    finally:
        if not recorded:
            slot_release(slot)
    slot_retain(slot)           # one reference is the stream's, one the caller's
    lock(stream)
    old = stream.end_event
    stream.end_event = slot
    unlock(stream, ZE_RESULT_SUCCESS)
    slot_release(old)
    return slot


ctypedef l0rt_slot* (*end_event_fn)(l0rt_stream*) noexcept nogil


cdef l0rt_slot* queue_try_end_event(l0rt_stream* stream) noexcept nogil:
    """The same for who cannot raise: NULL, and the exception is set, which the caller clears or leaves to its own."""
    return (<end_event_fn>queue_end_event)(stream)


cdef l0rt_slot* issued_try_end_event(l0rt_stream* stream) noexcept nogil:
    return (<end_event_fn>issued_end_event)(stream)


cdef int queue_wait(l0rt_stream* stream, l0rt_slot* slot) except -1 nogil:
    return queue_wait_all(stream, 1, &slot)


cdef int queue_wait_all(l0rt_stream* stream, uint32_t count, l0rt_slot** slots) except -1 nogil:
    cdef uint32_t i
    if hooked:
        for i in range(count):
            if slots[i].event != NULL:
                call_hooks(EVENT_WAIT, <uint64_t>slots[i], <uint64_t>stream, 0, 0)
    return wait_untold(stream, count, slots)


cdef int wait_untold(l0rt_stream* stream, uint32_t count, l0rt_slot** slots) except -1 nogil:
    cdef l0rt_slot* needed[AT_ONCE]
    cdef uint32_t i, n = 0
    if not table.alive or stream.device.lost:
        return refuse(stream.device)
    for i in range(count):
        if slots[i].event == NULL or captures(stream):
            queue_open(stream)
            if capture_wait(stream, slots[i]):
                continue
        if l0rt_load_int(&slots[i].complete) or slots[i].stream == stream:
            continue
        if can_wait_for(stream, slots[i]):
            if slots[i].cache == NULL:
                if wait_for_shared(stream, slots[i]):
                    continue
            else:
                needed[n] = slots[i]
                n += 1
                if n == AT_ONCE:
                    wait_for(stream, n, needed)
                    n = 0
                continue
        if sync_mode:
            with gil:
                implicit_sync("waiting for an event that the stream's device cannot see", "another process"
                              if slots[i].stream == NULL else queue_name(slots[i].stream))
        slot_wait(slots[i], UINT64_MAX)
    if n:
        wait_for(stream, n, needed)
    return 0


cdef bint wait_for_shared(l0rt_stream* stream, l0rt_slot* slot) except -1 nogil:
    """Let the stream wait for an interprocess event, which is not recorded again before it has come past. False: it
    would be one of too many events of other processes."""
    if slot.peer != NULL:
        relying_begin()
    l0rt_gate_share(&slot.gate)
    try:
        if slot.peer != NULL and not rely_on(stream, slot):
            return False
        wait_for(stream, 1, &slot)
    finally:
        l0rt_gate_leave(&slot.gate)
        if slot.peer != NULL:
            relying_end()
    return True


cdef bint can_wait_for(l0rt_stream* stream, l0rt_slot* slot) except -1 nogil:
    """Can the stream's list wait for the slot's event? Another driver's means nothing to it, and a counter-based one
    lives in its own device's memory."""
    if slot.device == stream.device:
        return True
    if slot.device.context != stream.device.context:
        return False
    if slot.cache == NULL or slot.cache.kind != SLOT_COUNTER:
        return True
    return queue_knows_peer(stream.device, slot.device)


cdef bint queue_knows_peer(l0rt_device* device, l0rt_device* peer) except -1 nogil:
    """Can ``device`` reach the memory of ``peer``? Asked once; two threads that ask at once get the same answer."""
    cdef signed char* known = &device.peers[peer.index]
    if known[0] == 0:
        with gil:
            known[0] = 1 if (device.context == peer.context and not device.peer_counters
                             and core_device(device.index).can_access_peer(core_device(peer.index))) else -1
    return known[0] > 0


cdef int wait_for(l0rt_stream* stream, uint32_t count, l0rt_slot** slots) except -1 nogil:
    """Append one wait for ``count`` events, AT_ONCE at the most."""
    cdef ze_event_handle_t events[AT_ONCE]
    cdef l0rt_waited* note
    cdef l0rt_command* told
    cdef ze_result_t r
    cdef uint64_t seq
    cdef uint32_t i
    for i in range(count):
        events[i] = slots[i].event
    lock(stream)
    for i in range(count):
        if slots[i].stream != NULL and (slots[i].stream.relies_on != 0 or slots[i].stream.orphan != 0):
            rely_through(stream, slots[i].stream, slots[i].seq)
    if stream.relies_on != 0:
        l0rt_store_int(&stream.launched, 1)     # another thread may have found the stream idle since
    told = begin_command(stream, EVENT_WAIT, NULL, NULL, 0)
    seq = number(stream)
    r = list_wait(stream.list, count, events)
    if told != NULL:
        end_command(told, r)
    if r == ZE_RESULT_SUCCESS:
        for i in range(count):
            note = &stream.waited[stream.waits % 4]
            note.seq = seq
            note.stream = slots[i].stream
            note.stream_seq = slots[i].seq
            note.pid = note.began = 0
            if slots[i].peer != NULL:
                note.pid, note.began = slots[i].peer.pid, slots[i].peer.began
            stream.waits += 1
    unlock(stream, r)
    for i in range(count):
        slot_add_waiter(slots[i], stream, seq)
    return 0


cdef void progress(l0rt_stream* stream) noexcept nogil:
    """Find out how far the stream is, without waiting: its mark is put behind everything, and looked at later."""
    if mutex_trylock(&stream.lock) != 0:
        return
    if stream.list == NULL:         # given back: its end event was its last command
        if stream.end_event != NULL:
            slot_poll(stream.end_event)
    elif stream.marked:
        if event_query(stream.mark.event) == ZE_RESULT_SUCCESS:
            slot_completed(stream.mark)
            stream.marked = (stream.mark.cache.kind != SLOT_COUNTER
                             and event_reset(stream.mark.event) != ZE_RESULT_SUCCESS)
    elif stream.mark != NULL:
        stream.marked = record_locked(stream, stream.mark) == ZE_RESULT_SUCCESS
    mutex_unlock(&stream.lock)


ask_progress_with(progress)


cdef void queue_give_back(l0rt_stream* stream) noexcept nogil:
    cdef l0rt_slot* last
    if captures(stream):
        capture_lose(stream)
    if table.alive and not stream.device.lost:
        last = issued_try_end_event(stream)
        if last == NULL:
            with gil:
                PyErr_Clear()       # a lost device: nothing of the stream is waited for any more
        slot_release(last)
    mutex_lock(&stream.lock)
    l0rt_store_list(&stream.list, NULL)
    mutex_unlock(&stream.lock)


def _close():
    for owner in _owners:
        owner.close()
    _owners.clear()


on_exit(LISTS, _close)


known_as(Queue, b"l0rt.Stream")


# --- Is a stream idle, and who waits until it is: the host, or another stream.


cdef int queue_wait_queue(l0rt_stream* stream, l0rt_stream* other) except -1 nogil:
    cdef l0rt_slot* slot
    if stream == other:
        return 0
    if not captures(stream) and not captures(other):
        if hooked:
            call_hooks(STREAM_WAIT, <uint64_t>stream, <uint64_t>other, 0, 0)
        if known_idle(other):
            return 0
    slot = queue_end_event(other)
    try:
        return wait_untold(stream, 1, &slot)
    finally:
        slot_release(slot)


cdef int poll(l0rt_stream* stream) except -1 nogil:
    """Ask the driver once, where it can be asked about a whole list. 1: idle, 0: not yet or unknown."""
    cdef ze_result_t r
    if l0rt_load_list(&stream.list) == NULL:    # not made yet, or given back: then its end event was its last command
        return stream.end_event == NULL or l0rt_load64(&stream.done) >= l0rt_load64(&stream.issued)
    if known_idle(stream) and not l0rt_load_int(&stream.launched):  # else a launch may have failed
        if stream.relies_on != 0 or stream.orphan != 0:
            orphans_tell(stream, UINT64_MAX)
        return 1
    if not stream.device.caps.list_sync:
        return 0
    lock(stream)
    r = list_synchronize(stream.list, 0)
    if r == ZE_RESULT_SUCCESS:
        l0rt_raise64(&stream.done, stream.issued)
        r = replays_failure(stream, True)
    if r == ZE_RESULT_SUCCESS:
        l0rt_store_int(&stream.launched, 0)
    mutex_unlock(&stream.lock)
    if stream.relies_on != 0 or stream.orphan != 0:
        orphans_tell(stream, UINT64_MAX)
    return r == ZE_RESULT_SUCCESS if r == ZE_RESULT_SUCCESS or r == ZE_RESULT_NOT_READY else stream_fails(stream, r)


cdef int queue_query(l0rt_stream* stream) except -1 nogil:
    cdef l0rt_slot* slot
    cdef int idle
    if captures(stream):
        capture_refuse(stream, b"Stream.query()")
    if not table.alive or stream.device.lost:
        return refuse(stream.device)
    idle = poll(stream)
    if not idle and (not stream.device.caps.list_sync or stream.list == NULL):
        slot = issued_end_event(stream)
        try:
            idle = slot_query(slot)
        finally:
            slot_release(slot)
    if idle and hooked:
        call_hooks(STREAM_SYNCHRONIZATION, <uint64_t>stream, 0, 0, 0)
    return idle


cdef int queue_synchronize(l0rt_stream* stream, uint64_t timeout_ns) except -1 nogil:
    if captures(stream):
        capture_refuse(stream, b"Stream.synchronize()")
    return queue_synchronize_by(stream, timeout_ns, WAIT_ADAPTIVE)


cdef int queue_synchronize_by(l0rt_stream* stream, uint64_t timeout_ns, int policy) except -1 nogil:
    """Wait for what has been appended so far; others may go on appending meanwhile."""
    cdef l0rt_slot* slot
    cdef int idle
    if not table.alive or stream.device.lost:
        return refuse(stream.device)
    idle = poll(stream)
    if not idle:
        slot = issued_end_event(stream)
        try:
            idle = slot_wait_by(slot, timeout_ns, policy)
        finally:
            slot_release(slot)
    if idle and hooked:
        call_hooks(STREAM_SYNCHRONIZATION, <uint64_t>stream, 0, 0, 0)
    return idle
