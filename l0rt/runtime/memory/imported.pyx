# SPDX-License-Identifier: Apache-2.0
"""Memory of other processes that is open here: each allocation once, each block of it locked in its process's ledger.

See exported.pyx for what the ledger has. The GIL is the lock of all records here.
"""

import os
import threading

from cpython.exc cimport PyErr_Clear
from libc.stdint cimport UINT64_MAX, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from l0rt.core.memory cimport l0rt_identity, memory_close, memory_identify, memory_open
from l0rt.runtime.lazy cimport on_fork_child
from l0rt.runtime.memory.exported cimport check_shares, export_own, exports_poll, sent_down
from l0rt.runtime.memory.operations cimport extent_add, extent_remove, set_import_end, told
from l0rt.runtime.streams.devices cimport device_of_uuid, device_record, device_total
from l0rt.runtime.streams.event_pool cimport slot_release
from l0rt.runtime.streams.ledger cimport *
from l0rt.runtime.streams.queue cimport issued_try_end_event
from l0rt.runtime.streams.stream_pool cimport context_rest, next_stream
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport device_fails, slot_poll
from l0rt.ze cimport table
from l0rt.ze.api cimport *

from l0rt.errors import InvalidArgumentError, L0Error
from l0rt.runtime.lazy import MEMORY, on_exit
from l0rt.runtime.memory.device import let_go_before_trim
from l0rt.runtime.streams import handle
from l0rt.runtime.streams.devices import lazy

cdef struct l0rt_held:              # a block that is kept from being freed there
    size_t offset
    size_t nbytes
    uint32_t entry
    int uses                        # Buffers, and those that were dropped and may still be in use
    l0rt_held* next

cdef struct l0rt_opened:            # an allocation that is mapped here
    l0rt_peer* peer
    l0rt_device* device
    uint64_t id
    uint64_t pool                   # the number of its private pool there; 0: none
    char* base
    size_t nbytes
    l0rt_held* held                 # NULL: only a pool keeps it open
    l0rt_opened* next

cdef struct l0rt_ending:            # a Buffer was dropped while work may use it
    l0rt_opened* opened
    l0rt_held* held
    int count
    int capacity
    l0rt_slot** slots
    l0rt_ending* next

cdef l0rt_opened* _opened = NULL
cdef l0rt_ending* _endings = NULL
cdef l0rt_kept* _kept = NULL
_opening = threading.RLock()        # one thread imports at a time


cdef object import_handle(what, l0rt_import* out, of_pool=None):
    cdef l0rt_peer* peer
    cdef l0rt_opened* opened
    cdef l0rt_device* device
    cdef size_t block_offset, block_size
    memset(out, 0, sizeof(l0rt_import))
    lazy.init()
    (kind, pid, began_at, file, inode, entry, generation, uuid, id, size, block_offset, block_size, offset, nbytes,
     flags, pool, native) = handle.unpack(what)
    if of_pool is not None and (pid, began_at, pool) != of_pool:
        raise InvalidArgumentError("the handle names memory that is not of this pool")
    out.offset, out.nbytes = offset, nbytes
    device = out.device = device_of_uuid(uuid, "memory")
    check_shares(device)
    if kind == handle.EMPTY:
        return None
    if pid == os.getpid() and began_at == began_here():
        return export_own(entry, generation, flags & handle.IS_SENT)
    exports_poll()
    endings_poll()
    with _opening:
        peer = peer_of(pid, began_at, file, inode, "memory")
        try:
            check_current(peer, entry, generation, block_offset, block_size)
            opened = opened_find(peer, device, id)
            if opened == NULL:
                opened = opened_new(peer, entry, generation, device, id, size, pool, native)
            out.pointer = hold(opened, entry, generation, block_offset, block_size) + out.offset
            if flags & handle.IS_SENT:
                sent_down(&peer.ledger.entries[<uint32_t>entry])
        finally:
            peer_drop(peer)
    return None


cdef int check_current(l0rt_peer* peer, uint32_t entry, uint64_t generation, size_t offset, size_t nbytes) except -1:
    # The place first: who exports other memory here has changed the generation before it changes the place.
    cdef bint is_there = (l0rt_load64(&peer.ledger.entries[entry].offset) == offset
                          and l0rt_load64(&peer.ledger.entries[entry].nbytes) == nbytes)
    if l0rt_load64(&peer.ledger.entries[entry].generation) != generation:
        raise handle.stale()
    if not is_there:
        raise InvalidArgumentError("the handle names other memory than was exported with it")
    return 0


cdef l0rt_opened* opened_find(l0rt_peer* peer, l0rt_device* device, uint64_t id) noexcept:
    cdef l0rt_opened* opened = _opened
    while opened != NULL and (opened.peer != peer or opened.device != device or opened.id != id):
        opened = opened.next
    return opened


cdef l0rt_opened* opened_new(
        l0rt_peer* peer, uint32_t entry, uint64_t generation, l0rt_device* device, uint64_t id, size_t nbytes,
        uint64_t pool, bytes native) except NULL:
    """Map an allocation of another process."""
    global _opened
    cdef l0rt_opened* opened
    cdef l0rt_identity found
    cdef ze_ipc_mem_handle_t opener
    cdef ze_context_handle_t context = device.context
    cdef void* base = NULL
    cdef ze_result_t r
    memcpy(opener.data, <const char*>native, sizeof(opener.data))
    try:
        with nogil:
            r = memory_open(context, device.handle, &opener, &base)
            if r != ZE_RESULT_SUCCESS:
                device_fails(device, r)
    except InvalidArgumentError as refused:     # also if the kernel did not let the driver look into the process
        if l0rt_load64(&peer.ledger.entries[entry].generation) != generation:
            raise handle.stale() from None
        if not peer_lives(peer, UINT64_MAX):    # or it is being killed just now
            raise handle.ended(peer.pid, "memory") from None
        raise InvalidArgumentError(f"the driver does not open memory of process {peer.pid}: {refused}. Note that "
                                   f"{handle.REMEDY}", refused.code) from None
    try:
        with nogil:
            r = memory_identify(context, base, &found)
            if r != ZE_RESULT_SUCCESS:
                device_fails(device, r)
        if found.base != base or found.nbytes < nbytes:
            raise InvalidArgumentError(f"the handle names an allocation of {nbytes} bytes, and the driver has opened "
                                       f"one of {found.nbytes}")
        opened = <l0rt_opened*>calloc(1, sizeof(l0rt_opened))
        if opened == NULL:
            raise MemoryError("no host memory for the record of imported memory")
        try:
            extent_add(base, nbytes, device.index, True)
        except MemoryError:
            free(opened)
            raise
    except BaseException:
        with nogil:
            told(device, memory_close(context, base), b"zeMemCloseIpcHandle")
        raise
    opened.peer, opened.device, opened.id, opened.base, opened.nbytes = peer, device, id, <char*>base, nbytes
    opened.pool = pool
    opened.next = _opened
    _opened = opened
    peer.uses += 1
    return opened


cdef char* hold(l0rt_opened* opened, uint32_t entry, uint64_t generation, size_t offset, size_t nbytes) except NULL:
    """Keep a block from being freed, if it is still what the handle says; its address. A failure ends what is opened
    and not used."""
    cdef l0rt_held* held = opened.held
    cdef bint is_new = False
    try:
        while held != NULL and held.entry != entry:
            held = held.next
        if held == NULL:
            held = <l0rt_held*>calloc(1, sizeof(l0rt_held))
            if held == NULL:
                raise MemoryError("no host memory for the record of imported memory")
            held.entry, held.offset, held.nbytes, held.next, is_new = entry, offset, nbytes, opened.held, True
            opened.held = held
        held.uses += 1
        if held.offset != offset or held.nbytes != nbytes or offset + nbytes > opened.nbytes:
            raise InvalidArgumentError("the handle contradicts another one of the same memory")
        if is_new and lock_entry(opened.peer, entry, F_RDLCK) != 0:
            raise L0Error(f"this process cannot mark memory of process {opened.peer.pid} as used (F_OFD_SETLK)")
        check_current(opened.peer, entry, generation, offset, nbytes)
    except BaseException:
        if held != NULL:
            hold_end(opened, held)
        else:
            opened_let_go(opened)
        raise
    return opened.base + offset


cdef object own_pool(what):
    pid, began_at, _, _, number = handle.unpack_pool(what)
    return number if pid == os.getpid() and began_at == began_here() else None


cdef l0rt_kept* pool_keep(what) except NULL:
    global _kept
    cdef l0rt_peer* peer
    cdef l0rt_kept* kept
    cdef uint64_t number
    lazy.init()
    pid, began_at, file, inode, number = handle.unpack_pool(what)
    peer = peer_of(pid, began_at, file, inode, "memory")
    kept = kept_find(peer, number)
    if kept != NULL:
        peer_drop(peer)             # the record has a use of it
    else:
        kept = <l0rt_kept*>calloc(1, sizeof(l0rt_kept))
        if kept == NULL:
            peer_drop(peer)
            raise MemoryError("no host memory for the record of an imported pool")
        kept.peer, kept.number, kept.next = peer, number, _kept
        _kept = kept
    kept.uses += 1
    return kept


cdef l0rt_kept* kept_find(l0rt_peer* peer, uint64_t number) noexcept:
    cdef l0rt_kept* kept = _kept
    while kept != NULL and (kept.peer != peer or kept.number != number):
        kept = kept.next
    return kept


cdef size_t pool_bytes(l0rt_kept* kept) noexcept:
    cdef l0rt_opened* opened = _opened
    cdef size_t nbytes = 0
    while opened != NULL:
        if opened.peer == kept.peer and opened.pool == kept.number:
            nbytes += opened.nbytes
        opened = opened.next
    return nbytes


cdef int lock_entry(l0rt_peer* peer, uint32_t entry, short how) noexcept:
    cdef flock lock
    memset(&lock, 0, sizeof(lock))
    lock.l_type, lock.l_start, lock.l_len = how, entry, 1
    return fcntl(peer.ledger.file, F_OFD_SETLK, &lock)


# --- The end of what was imported: destructors are here, so none of it runs Python code.


cdef void hold_end(l0rt_opened* opened, l0rt_held* held) noexcept:
    cdef l0rt_held** link = &opened.held
    held.uses -= 1
    if held.uses != 0:
        return
    while link[0] != held:
        link = &link[0].next
    link[0] = held.next
    lock_entry(opened.peer, held.entry, F_UNLCK)
    free(held)
    opened_let_go(opened)


cdef bint opened_let_go(l0rt_opened* opened) noexcept:
    """End what neither a Buffer nor a pool uses. True: it is no more."""
    if opened.held != NULL or (opened.pool != 0 and kept_find(opened.peer, opened.pool) != NULL):
        return False
    opened_end(opened)
    return True


cdef void pool_drop(l0rt_kept* kept) noexcept:
    global _kept
    cdef l0rt_kept** link = &_kept
    cdef l0rt_opened* opened = _opened
    while link[0] != NULL and link[0] != kept:
        link = &link[0].next
    if link[0] == NULL:             # a forked child, or after exit
        return
    kept.uses -= 1
    if kept.uses != 0:
        return
    link[0] = kept.next
    while opened != NULL:
        if opened.peer == kept.peer and opened.pool == kept.number and opened_let_go(opened):
            opened = _opened        # others may have changed the list meanwhile
        else:
            opened = opened.next
    peer_drop(kept.peer)
    free(kept)


cdef void opened_end(l0rt_opened* opened) noexcept:
    global _opened
    cdef l0rt_opened** link = &_opened
    while link[0] != opened:
        link = &link[0].next
    link[0] = opened.next
    extent_remove(opened.base)              # first: another thread may be given the address at once
    with nogil:
        told(opened.device, memory_close(opened.device.context, opened.base), b"zeMemCloseIpcHandle")
    peer_drop(opened.peer)
    free(opened)


cdef void import_end(void* ptr) noexcept:
    """A Buffer of imported memory ends, which work may still use."""
    global _endings
    cdef l0rt_opened* opened = _opened
    cdef l0rt_held* held
    cdef l0rt_ending* ending
    cdef size_t offset
    while opened != NULL and not opened.base <= <char*>ptr < opened.base + opened.nbytes:
        opened = opened.next
    if opened == NULL or not table.alive:
        return
    offset = <char*>ptr - opened.base
    held = opened.held
    while held != NULL and not held.offset <= offset < held.offset + held.nbytes:
        held = held.next
    if held == NULL:
        return
    ending = <l0rt_ending*>calloc(1, sizeof(l0rt_ending))
    with nogil:
        if ending == NULL or not ending_marks_take(ending, opened.device):
            context_rest(opened.device)
    if ending != NULL and ending.count != 0:
        ending.opened, ending.held, ending.next = opened, held, _endings
        _endings = ending
    else:
        ending_free(ending)
        hold_end(opened, held)
    endings_poll()


cdef bint ending_marks_take(l0rt_ending* ending, l0rt_device* device) noexcept nogil:
    """Note where each stream that may use the memory is. False: not all of them."""
    cdef l0rt_stream* stream
    cdef l0rt_slot* slot
    cdef l0rt_slot** grown
    cdef int i
    for i in range(device_total()):
        if device_record(i).context != device.context or l0rt_load_int(&device_record(i).lost):
            continue
        stream = next_stream(device_record(i), NULL)
        while stream != NULL:
            if not known_idle(stream):
                slot = issued_try_end_event(stream)
                if slot == NULL:
                    with gil:
                        PyErr_Clear()       # a device that is being lost
                elif slot_poll(slot) == 1:
                    slot_release(slot)
                else:
                    if ending.count == ending.capacity:
                        grown = <l0rt_slot**>realloc(ending.slots, (2 * ending.capacity + 4) * sizeof(l0rt_slot*))
                        if grown == NULL:
                            slot_release(slot)
                            ending_marks_drop(ending)
                            return False
                        ending.slots, ending.capacity = grown, 2 * ending.capacity + 4
                    ending.slots[ending.count] = slot
                    ending.count += 1
            stream = next_stream(stream.device, stream)
    return True


cdef void ending_marks_drop(l0rt_ending* ending) noexcept nogil:
    while ending.count != 0:
        ending.count -= 1
        slot_release(ending.slots[ending.count])


cdef bint ending_is_over(l0rt_ending* ending) noexcept nogil:
    cdef l0rt_slot* slot
    while ending.count != 0:
        slot = ending.slots[ending.count - 1]
        if not l0rt_load_int(&slot.device.lost) and slot_poll(slot) != 1:
            return False
        ending.count -= 1
        slot_release(slot)
    return True


cdef void ending_free(l0rt_ending* ending) noexcept:
    if ending != NULL:
        free(ending.slots)
        free(ending)


cdef void endings_poll() noexcept:
    """End what no work uses any more."""
    global _endings
    cdef l0rt_ending* ending = _endings
    cdef l0rt_ending* next
    cdef bint over
    _endings = NULL                 # they are nobody else's meanwhile
    while ending != NULL:
        next = ending.next
        with nogil:
            over = ending_is_over(ending)
        if over:
            hold_end(ending.opened, ending.held)
            ending_free(ending)
        else:
            ending.next = _endings
            _endings = ending
        ending = next


def collect():
    """End imports that no work uses any more."""
    endings_poll()


def imported_count():
    """Return how many allocations of other processes are open here.

    Returns
    -------
    int
    """
    cdef l0rt_opened* opened
    cdef int count = 0
    endings_poll()
    opened = _opened
    while opened != NULL:
        count += 1
        opened = opened.next
    return count


cdef void _forget() noexcept nogil:
    """In a forked child: the ledgers are the parent's."""
    global _opened, _endings, _kept
    _opened, _endings, _kept = NULL, NULL, NULL


def _close():
    """At exit, when nothing runs any more."""
    global _endings, _kept
    cdef l0rt_ending* ending
    _kept = NULL                    # an ImportedPool that is still there looks at its record
    while _endings != NULL:
        ending = _endings
        _endings = ending.next
        ending_marks_drop(ending)
        ending_free(ending)
    while _opened != NULL:
        opened_end(_opened)         # what is held of it is given up: who holds it finds nothing


set_import_end(import_end)
let_go_before_trim(collect)
on_fork_child(_forget)
on_exit(MEMORY, _close)
