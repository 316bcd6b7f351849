# SPDX-License-Identifier: Apache-2.0
"""Events between processes: their handles. An exported event has an entry in the ledger as long as its Event lives."""

import os

from libc.stdint cimport UINT64_MAX, uint64_t
from libc.string cimport memset

from l0rt.core.event cimport EventPool
from l0rt.runtime.streams.devices cimport core_context, device_at, device_of_uuid
from l0rt.runtime.streams.event_pool cimport slot_is_over
from l0rt.runtime.streams.ledger cimport (
    ENTRIES,
    F_OFD_GETLK,
    F_UNLCK,
    F_WRLCK,
    began_here,
    event_byte,
    fcntl,
    flock,
    ledger_open,
    own,
    peer_drop,
    peer_lives,
    peer_of,
)
from l0rt.runtime.streams.naming cimport NO_INDEX, index_of
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport slot_query

from l0rt.errors import InvalidArgumentError, L0Error, UnsupportedError
from l0rt.runtime.streams import handle
from l0rt.runtime.streams.devices import lazy

cdef dict _entries = {}         # slot -> entry
cdef list _free = []
cdef uint64_t _generation = 0


cdef int check_shares_events(l0rt_device* device) except -1:
    if not device.caps.event_ipc:
        raise UnsupportedError(f"xpu:{device.index} cannot share an event with a process: this driver's handles of "
                               "events mean something else there (`l0rt doctor` names the quirk)")
    return 0


cdef bytes event_export(EventPool pool, l0rt_slot* slot):
    check_shares_events(slot.device)
    if pool.imported:
        raise UnsupportedError("this event belongs to another process: pass on the handle that it came with")
    native = pool.ipc_handle()
    entry = event_entry_of(slot)
    return handle.pack(handle.EVENT, os.getpid(), began_here(), own.file, own.inode, entry,
                       own.events[<size_t>entry].generation, bytes(slot.device.info.uuid[:16]), native)


cdef object event_entry_of(l0rt_slot* slot):
    """The entry of an event, which is new for its first handle."""
    global _generation
    cdef size_t made
    ledger_open()
    known = _entries.get(<size_t>slot)
    if known is not None:
        return known
    if len(_entries) >= ENTRIES:
        raise L0Error(f"this process shares {ENTRIES} events: drop some of them first")
    found = _free.pop() if _free else len(_entries)
    _entries[<size_t>slot] = found
    made = found
    _generation += 1
    l0rt_store_int(&own.events[made].orphaned, 0)
    l0rt_store64(&own.events[made].generation, _generation)
    return found


cdef bint event_is_awaited(l0rt_slot* slot) noexcept:
    """Does a stream of another process wait for the event's last record? That has not ended then."""
    cdef flock lock
    entry = _entries.get(<size_t>slot)
    if entry is None:
        return False
    memset(&lock, 0, sizeof(lock))
    lock.l_type, lock.l_start, lock.l_len = F_WRLCK, event_byte(&own, &own.events[<size_t>entry]), 1
    return fcntl(own.file, F_OFD_GETLK, &lock) == 0 and lock.l_type != F_UNLCK


cdef bint event_take(l0rt_slot* slot) except -1:
    """Keep all others from making a stream wait for the slot, if its last record is complete and all streams that wait
    for that have come past."""
    cdef bint passed = False
    if not l0rt_gate_try_once(&slot.gate):
        return False
    try:
        if slot_query(slot) and not event_is_awaited(slot):
            with nogil:
                passed = slot_is_over(slot, True)
    finally:
        if not passed:
            l0rt_gate_open(&slot.gate)
    return passed


cdef void event_export_end(l0rt_slot* slot) noexcept:
    entry = _entries.pop(<size_t>slot, None)
    if entry is not None and own.events != NULL:    # NULL: a forked child
        l0rt_store64(&own.events[<size_t>entry].generation, 0)
        _free.append(entry)


cdef tuple event_identity(device, what):
    """The event of a handle, and the index of the device that it is to be used on: equal for all its handles."""
    pid, began, _, _, entry, generation, uuid, _ = handle.unpack_event(what)
    lazy.init()
    index = index_of(device, NO_INDEX, lazy.device_type)
    return index if index != NO_INDEX else device_of_uuid(uuid, "event").index, pid, began, entry, generation


cdef bint event_is_current(l0rt_slot* slot, uint64_t generation) except -1:
    """Does its process still share the event whose slot this is here?"""
    if slot.peer == NULL:       # it is of this process
        return True
    return l0rt_load64(&slot.told.generation) == generation and peer_lives(slot.peer, UINT64_MAX)


cdef EventPool event_import(device, what, l0rt_foreign* out):
    cdef EventPool pool
    cdef l0rt_device* recorded
    cdef uint64_t current
    pid, began, file, inode, entry, generation, uuid, native = handle.unpack_event(what)
    lazy.init()
    recorded = device_of_uuid(uuid, "event")
    index = index_of(device, NO_INDEX, lazy.device_type)
    out.device = recorded if index == NO_INDEX else device_at(index)
    check_shares_events(out.device)
    if out.device.context != recorded.context:
        raise InvalidArgumentError(f"the event was recorded on xpu:{recorded.index}, for which streams of another "
                                   f"driver's device, xpu:{out.device.index}, cannot wait")
    current = generation
    out.peer = peer_of(pid, began, file, inode, "event")
    try:
        out.told = &out.peer.ledger.events[<size_t>entry]
        if l0rt_load64(&out.told.generation) != current:
            raise handle.stale("event", "Event")
        try:
            pool = EventPool.open_ipc(core_context(out.device.index), native)
        except InvalidArgumentError as refused:     # also if the kernel did not let the driver look into the process
            if l0rt_load64(&out.told.generation) != current:
                raise handle.stale("event", "Event") from None
            if not peer_lives(out.peer, UINT64_MAX):    # or it is being killed just now
                raise handle.ended(pid, "event") from None
            raise InvalidArgumentError(f"the driver does not open an event of process {pid}: {refused}. Note that "
                                       f"{handle.event_remedy()}", refused.code) from None
        if l0rt_load64(&out.told.generation) != current:
            raise handle.stale("event", "Event")
    except BaseException:
        peer_drop(out.peer)
        raise
    return pool
