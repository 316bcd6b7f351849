# SPDX-License-Identifier: Apache-2.0
"""Events of other processes for which streams wait, and what becomes of those that nobody will signal any more.

The process of an event may end before its device has signalled the event: it is an orphan then. Whoever waits on the
host finds that out between two looks, says so in the ledger, which all importers have, and signals the event in the
place of the other process: so that streams that wait for it go on, in every process. Their results are worth nothing,
and each of them raises this once. So does a stream that waited for one of them.

While streams wait for an event, this process has a lock on its byte of the other one's ledger, which ends with this
process too: the other process does not record the event again meanwhile. A thread looks which waits are over, as long
as there are some.
"""

from _thread import start_new_thread
from time import sleep

from libc.stdint cimport uint64_t
from libc.string cimport memset
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, nanosleep, timespec

from l0rt.core.event cimport event_query, event_signal
from l0rt.runtime.alloc.atomics cimport mutex_init, mutex_lock, mutex_unlock
from l0rt.runtime.lazy cimport on_fork_child
from l0rt.runtime.streams.devices cimport device_record, device_total
from l0rt.runtime.streams.ledger cimport F_OFD_SETLK, F_RDLCK, F_UNLCK, event_byte, fcntl, flock, peer_lives
from l0rt.runtime.streams.types cimport *
from l0rt.ze cimport table
from l0rt.ze.api cimport ZE_RESULT_SUCCESS, ze_result_t

from l0rt.errors import L0Error
from l0rt.runtime.lazy import DRAIN, exit_time_left, on_exit

cdef enum:
    MOST = 64                   # bits of l0rt_stream.relies_on

cdef long SHORTEST_NS = 100_000, LONGEST_NS = 5_000_000     # between two looks of the thread
cdef l0rt_slot* _relied[MOST]   # each with a reference
cdef int is_watched             # the thread runs; changes with the GIL
cdef int _relying               # calls that append a wait; atomic
cdef bint _is_ending = False
cdef over_fn _is_over = NULL


cdef void ask_over_with(over_fn is_over) noexcept:
    global _is_over
    _is_over = is_over
cdef pthread_mutex_t _lock      # of them, and of what streams say of them; a stream's own lock may be held around it


cdef uint64_t now_ns() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <uint64_t>now.tv_sec * 1000000000 + <uint64_t>now.tv_nsec


cdef bint slot_is_signalled(l0rt_slot* slot) noexcept nogil:
    cdef bint alone = slot.device.racing_queries
    cdef ze_result_t r
    if alone and not l0rt_gate_try_once(&slot.asked):
        return False            # another thread asks just now
    r = event_query(slot.event)
    if alone:
        l0rt_gate_open(&slot.asked)
    return r == ZE_RESULT_SUCCESS


cdef bint slot_is_orphaned(l0rt_slot* slot) noexcept nogil:
    cdef bint lives
    if l0rt_load_int(&slot.told.orphaned):
        return True
    lives = peer_lives(slot.peer, now_ns())
    if slot_is_signalled(slot):                     # perhaps by who found it orphaned meanwhile
        return l0rt_load_int(&slot.told.orphaned) != 0
    if lives:
        return False
    l0rt_store_int(&slot.told.orphaned, 1)          # first: whoever sees the signal sees this
    slot.stays = event_signal(slot.event) != ZE_RESULT_SUCCESS
    return True


cdef int lock_event(const l0rt_slot* slot, short how) noexcept nogil:
    cdef flock lock
    memset(&lock, 0, sizeof(lock))
    lock.l_type, lock.l_start, lock.l_len = how, event_byte(&slot.peer.ledger, slot.told), 1
    return fcntl(slot.peer.ledger.file, F_OFD_SETLK, &lock)


cdef bint rely_on(l0rt_stream* stream, l0rt_slot* slot) noexcept nogil:
    cdef int i, found = -1
    if relied == MOST:
        orphans_look()
    mutex_lock(&_lock)
    for i in range(MOST):
        if _relied[i] == slot:
            found = i
            break
        if _relied[i] == NULL and found < 0:
            found = i
    if found >= 0 and _relied[found] == NULL and lock_event(slot, F_RDLCK) != 0:
        found = -1
    if found >= 0:
        if _relied[found] == NULL:
            _relied[found] = slot
            l0rt_add_int(&slot.refs, 1)
            l0rt_add_int(&relied, 1)
        note_reliance(stream, <uint64_t>1 << found)
    mutex_unlock(&_lock)
    return found >= 0


cdef void rely_through(l0rt_stream* stream, const l0rt_stream* other, uint64_t seq) noexcept nogil:
    mutex_lock(&_lock)
    if (other.relies_on != 0 or other.orphan != 0) and seq > other.relied_seq:
        note_reliance(stream, other.relies_on)
        if other.orphan != 0 and stream.orphan == 0:
            stream.orphan, stream.stays_orphaned = other.orphan, other.stays_orphaned
    mutex_unlock(&_lock)


cdef void note_reliance(l0rt_stream* stream, uint64_t bits) noexcept nogil:
    if stream.relies_on == 0 and stream.orphan == 0:
        stream.relied_seq = l0rt_load64(&stream.issued)     # the wait has a number above this
    stream.relies_on |= bits
    l0rt_store_int(&stream.launched, 1)                     # who finds the stream idle asks


cdef void orphans_look() noexcept nogil:
    relied_look(True)


cdef void relied_look(bint asks) noexcept nogil:
    """Look at all events that streams wait for; with ``asks``, whether their processes have ended, too."""
    cdef bint signalled, orphaned
    cdef int i
    if relied == 0 or not table.alive:
        return
    mutex_lock(&_lock)
    for i in range(MOST):
        if _relied[i] != NULL:
            if asks:
                slot_is_orphaned(_relied[i])
            signalled = slot_is_signalled(_relied[i])
            orphaned = l0rt_load_int(&_relied[i].told.orphaned) != 0    # behind that: who finds it so says so first
            if orphaned or (signalled and slot_is_left(_relied[i])):
                orphan_settle(i, orphaned)
    mutex_unlock(&_lock)


cdef bint slot_is_left(l0rt_slot* slot) noexcept nogil:
    """Have all streams come past it, and is no other made to wait just now?"""
    cdef bint passed
    if not l0rt_gate_try_once(&slot.gate):
        return False
    passed = _is_over(slot, True)
    l0rt_gate_open(&slot.gate)
    return passed


cdef void orphan_settle(int which, bint orphaned) noexcept nogil:
    """Nothing waits for the event any more; tell the streams that did, if it was orphaned."""
    cdef l0rt_slot* slot = _relied[which]
    cdef l0rt_device* device
    cdef l0rt_stream* stream
    cdef int i, k
    for i in range(device_total()):
        device = device_record(i)
        orphan_settle_stream(&device.default_stream, slot, which, orphaned)
        for k in range(3 * L0RT_POOL_STREAMS):
            orphan_settle_stream(&device.pool[0][0] + k, slot, which, orphaned)
        stream = <l0rt_stream*>l0rt_load64(<uint64_t*>&device.others)
        while stream != NULL:
            orphan_settle_stream(stream, slot, which, orphaned)
            stream = stream.next
    _relied[which] = NULL
    for i in range(MOST):           # the event may have been imported twice
        if _relied[i] != NULL and _relied[i].told == slot.told:
            break
    else:
        lock_event(slot, F_UNLCK)
    l0rt_add_int(&slot.refs, -1)
    l0rt_add_int(&relied, -1)


cdef void orphan_settle_stream(l0rt_stream* stream, l0rt_slot* slot, int which, bint orphaned) noexcept nogil:
    cdef uint64_t bit = <uint64_t>1 << which
    if stream.relies_on & bit == 0:
        return
    stream.relies_on &= ~bit
    if orphaned:
        stream.orphan = slot.peer.pid
        stream.stays_orphaned = slot.stays


cdef int orphans_tell(l0rt_stream* stream, uint64_t seq) except -1 nogil:
    cdef uint64_t pid = 0
    orphans_look()
    mutex_lock(&_lock)
    if stream.orphan != 0 and seq > stream.relied_seq:
        pid = stream.orphan
        if not stream.stays_orphaned:
            stream.orphan = 0
    mutex_unlock(&_lock)
    return orphan_refuse(pid) if pid != 0 else 0


cdef int orphan_refuse(uint64_t pid) except -1 nogil:
    with gil:
        raise L0Error(f"process {pid} ended before its event was signalled, which was waited for: the work in front of "
                      "the event may not be done, and what was behind the wait has run without it")


cdef int relying_begin() except -1 nogil:
    """A thread looks from now on which waits are over. It cannot end before `relying_end`, nor while there are some."""
    global is_watched
    l0rt_add_int(&_relying, 1)
    if l0rt_load_int(&is_watched):
        return 0
    with gil:
        if not is_watched:
            l0rt_store_int(&is_watched, 1)
            try:
                start_new_thread(watch, ())
            except BaseException:
                l0rt_store_int(&is_watched, 0)
                relying_end()
                raise
    return 0


cdef void relying_end() noexcept nogil:
    l0rt_add_int(&_relying, -1)


def watch():
    """Look which waits are over, ever more rarely, until there are none."""
    cdef timespec pause
    pause.tv_sec, pause.tv_nsec = 0, SHORTEST_NS
    while (_relying or relied) and table.alive and not _is_ending:
        with nogil:
            nanosleep(&pause, NULL)
            relied_look(False)           # who waits on the host finds orphans
        pause.tv_nsec = min(pause.tv_nsec + pause.tv_nsec // 8, LONGEST_NS)
    l0rt_store_int(&is_watched, 0)      # with the GIL all along: nobody was told that it still looks


def _end_watch():
    global _is_ending
    _is_ending = True
    while is_watched and exit_time_left():
        sleep(1e-4)


cdef void new_lock() noexcept nogil:
    """At first, and in a forked child, where nothing is waited for."""
    global relied, is_watched, _relying
    cdef int i
    mutex_init(&_lock, NULL)
    for i in range(MOST):
        _relied[i] = NULL
    relied = is_watched = _relying = 0


new_lock()
on_fork_child(new_lock)
on_exit(DRAIN, _end_watch)
