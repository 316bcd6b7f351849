"""Native events, recycled: pools of 256 slots a device, each slot reset only when nobody can still need it."""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport UINT64_MAX, uint64_t
from libc.stdlib cimport calloc, realloc
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from l0rt.core.context cimport Context
from l0rt.core.device cimport device_status
from l0rt.core.event cimport EventPool, event_query, event_reset, event_wait
from l0rt.core.memory cimport Allocation
from l0rt.runtime.devices cimport core_context, device_at
from l0rt.runtime.records cimport *
from l0rt.ze cimport table
from l0rt.ze.api cimport ZE_RESULT_NOT_READY, ZE_RESULT_SUCCESS, ze_result_t
from l0rt.ze.status cimport is_device_lost, raise_result

from l0rt.errors import DeviceLostError
from l0rt.runtime.devices import lazy
from l0rt.runtime.lazy import EVENTS, on_exit

cdef extern from "Python.h":
    int PyGC_Disable()
    int PyGC_Enable()

cdef enum:
    POOL_SLOTS = 256
    SCANNED = 8         # retired slots looked at before new ones are made

cdef uint64_t FIRST_SLICE_NS = 10_000_000
cdef uint64_t SLICE_NS = 100_000_000   # Ctrl-C and a lost device are noticed after so long at the latest

_owners = []   # EventPool and Allocation objects: they hold what the slots point to


cdef progress_fn _progress = NULL


cdef void ask_progress_with(progress_fn progress) noexcept:
    global _progress
    _progress = progress


cdef uint64_t host_clock_ns() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <uint64_t>now.tv_sec * 1000000000 + <uint64_t>now.tv_nsec


cdef int refuse(l0rt_device* device) except -1 nogil:
    """Raise why this device may not be used any more: lost, forked, or the process is exiting."""
    with gil:
        if device.lost:
            raise DeviceLostError(f"device {device.index} was lost; restart the process to use it again")
        lazy.init()
        raise RuntimeError("l0rt was shut down")


cdef int device_fails(l0rt_device* device, int result) except -1 nogil:
    """Raise the driver's ``result``; a lost device stays lost."""
    if is_device_lost(<ze_result_t>result):
        l0rt_store_int(&device.lost, 1)
    return raise_result(<ze_result_t>result)


cdef l0rt_slot* slot_acquire(l0rt_device* device, bint timing) except NULL nogil:
    cdef l0rt_slotcache* cache = &device.slots[timing]
    cdef l0rt_slot* slot
    if not table.alive or device.lost:
        refuse(device)
    while True:
        pthread_mutex_lock(&cache.lock)
        if cache.free == NULL:
            cache_scan(cache, SCANNED)
        slot = cache.free
        if slot != NULL:
            cache.free = slot.next
        pthread_mutex_unlock(&cache.lock)
        if slot != NULL:
            slot.refs = 1
            slot.complete = 0
            slot.stream = NULL
            return slot
        with gil:
            grow(device, cache)


cdef int grow(l0rt_device* device, l0rt_slotcache* cache) except -1:
    """Add a pool of slots to the cache.

    An allocator may be behind this, with its locks: a garbage collection would run finalisers that want the same.
    """
    cdef bint collecting = PyGC_Disable()
    try:
        return add_pool(device, cache)
    finally:
        if collecting:
            PyGC_Enable()


cdef int add_pool(l0rt_device* device, l0rt_slotcache* cache) except -1:
    cdef Context context = core_context(device.index)
    cdef EventPool pool = EventPool.create(context, POOL_SLOTS)
    cdef Allocation clock = None
    cdef int i
    cdef l0rt_slot* slots = <l0rt_slot*>calloc(POOL_SLOTS, sizeof(l0rt_slot))
    if slots == NULL:
        raise MemoryError()
    if cache.timing:
        clock = Allocation.host(context, POOL_SLOTS * sizeof(uint64_t))
    _owners.append((pool, clock))
    for i in range(POOL_SLOTS):
        slots[i].event = pool.events[i]
        slots[i].device = device
        if cache.timing:
            slots[i].ticks = &(<uint64_t*>clock._h)[i]
        slots[i].next = &slots[i + 1] if i + 1 < POOL_SLOTS else NULL
    with nogil:
        pthread_mutex_lock(&cache.lock)
        slots[POOL_SLOTS - 1].next = cache.free
        cache.free = slots
        cache.made += POOL_SLOTS
        pthread_mutex_unlock(&cache.lock)
    return 0


cdef void slot_retain(l0rt_slot* slot) noexcept nogil:
    l0rt_add_int(&slot.refs, 1)


cdef void slot_release(l0rt_slot* slot) noexcept nogil:
    """Give a reference back; without references the slot is retired, and reused once nobody can still need it."""
    cdef l0rt_slotcache* cache
    if slot == NULL or l0rt_add_int(&slot.refs, -1) != 0 or not table.alive:
        return
    cache = &slot.device.slots[slot.ticks != NULL]
    pthread_mutex_lock(&cache.lock)
    if slot.stream == NULL or slot_is_over(slot, False):
        slot_recycle(cache, slot)
    else:
        slot.next = NULL
        if cache.retired == NULL:
            cache.retired = slot
        else:
            cache.retired_last.next = slot
        cache.retired_last = slot
        cache.retired_count += 1
    pthread_mutex_unlock(&cache.lock)


cdef bint slot_is_over(l0rt_slot* slot, bint ask) noexcept nogil:
    """Is the slot signalled, and has every stream that waits for it come past? ``ask``: the driver, if need be."""
    cdef int i
    if not slot.complete:
        if not ask or event_query(slot.event) != ZE_RESULT_SUCCESS:
            return False
        slot_completed(slot)
    for i in range(slot.waiter_count):
        if ask and l0rt_load64(&slot.waiters[i].stream.done) < slot.waiters[i].seq:
            _progress(slot.waiters[i].stream)
        if l0rt_load64(&slot.waiters[i].stream.done) < slot.waiters[i].seq:
            return False
    return True


cdef void slot_recycle(l0rt_slotcache* cache, l0rt_slot* slot) noexcept nogil:
    slot.waiter_count = 0
    if slot.stream != NULL and event_reset(slot.event) != ZE_RESULT_SUCCESS:
        return  # the driver refuses to reset it: better one slot less than one in an unknown state
    slot.next = cache.free
    cache.free = slot


cdef void cache_scan(l0rt_slotcache* cache, int limit) noexcept nogil:
    """Recycle retired slots whose time is over; look at ``limit`` at the most, oldest first."""
    cdef l0rt_slot* slot
    for _ in range(limit):
        slot = cache.retired
        if slot == NULL:
            return
        cache.retired = slot.next
        cache.retired_count -= 1
        if slot_is_over(slot, True):
            slot_recycle(cache, slot)
            continue
        slot.next = NULL  # not yet: to the end, so that one slow stream does not hide the others
        if cache.retired == NULL:
            cache.retired = slot
        else:
            cache.retired_last.next = slot
        cache.retired_last = slot
        cache.retired_count += 1


cdef int slot_add_waiter(l0rt_slot* slot, l0rt_stream* stream, uint64_t seq) except -1 nogil:
    """Remember that ``stream`` passes the slot with its command number ``seq``."""
    cdef l0rt_slotcache* cache = &slot.device.slots[slot.ticks != NULL]
    cdef l0rt_waiter* grown
    cdef int i, status = 0
    pthread_mutex_lock(&cache.lock)
    for i in range(slot.waiter_count):
        if slot.waiters[i].stream == stream:
            slot.waiters[i].seq = seq
            break
    else:
        if slot.waiter_count == slot.waiter_capacity:
            grown = <l0rt_waiter*>realloc(slot.waiters, (2 * slot.waiter_capacity + 4) * sizeof(l0rt_waiter))
            if grown != NULL:
                slot.waiters = grown
                slot.waiter_capacity = 2 * slot.waiter_capacity + 4
            else:
                status = -1
        if status == 0:
            slot.waiters[slot.waiter_count].stream = stream
            slot.waiters[slot.waiter_count].seq = seq
            slot.waiter_count += 1
    pthread_mutex_unlock(&cache.lock)
    if status:
        with gil:
            raise MemoryError()
    return 0


cdef void slot_completed(l0rt_slot* slot) noexcept nogil:
    """The slot was seen signalled: so is everything before it on its stream."""
    if slot.stream != NULL and l0rt_load64(&slot.stream.done) < slot.seq:
        l0rt_store64(&slot.stream.done, slot.seq)  # a lost race only forgets some progress
    l0rt_store_int(&slot.complete, 1)


cdef int slot_poll(l0rt_slot* slot) noexcept nogil:
    cdef ze_result_t r
    if l0rt_load_int(&slot.complete):
        return 1
    r = event_query(slot.event)
    if r == ZE_RESULT_SUCCESS:
        slot_completed(slot)
        return 1
    return 0 if r == ZE_RESULT_NOT_READY else -1


cdef int slot_query(l0rt_slot* slot) except -1 nogil:
    cdef ze_result_t r
    if l0rt_load_int(&slot.complete):
        return 1
    if not table.alive or slot.device.lost:
        return refuse(slot.device)
    r = event_query(slot.event)
    if r == ZE_RESULT_SUCCESS:
        slot_completed(slot)
        return 1
    if r == ZE_RESULT_NOT_READY:
        return 0
    return device_fails(slot.device, r)


cdef int slot_wait(l0rt_slot* slot, uint64_t timeout_ns) except -1 nogil:
    cdef ze_result_t r
    cdef uint64_t slice = FIRST_SLICE_NS, start = 0, spent = 0
    if l0rt_load_int(&slot.complete):
        return 1
    if not table.alive or slot.device.lost:
        return refuse(slot.device)
    if timeout_ns != UINT64_MAX:
        start = host_clock_ns()
    while True:
        r = event_wait(slot.event, min(slice, timeout_ns - spent))
        if r == ZE_RESULT_SUCCESS:
            slot_completed(slot)
            return 1
        if r != ZE_RESULT_NOT_READY:
            return device_fails(slot.device, r)
        if timeout_ns != UINT64_MAX:
            spent = host_clock_ns() - start
            if spent >= timeout_ns:
                return 0
        if slot.device.caps.device_status:
            r = device_status(slot.device.handle)
            if is_device_lost(r):
                return device_fails(slot.device, r)
        with gil:
            PyErr_CheckSignals()
        slice = SLICE_NS


def cache_state(int index):
    """Return how many native events device ``index`` has, and how many of them wait to be recycled."""
    cdef l0rt_device* device = device_at(index)
    return {"made": device.slots[0].made + device.slots[1].made,
            "retired": device.slots[0].retired_count + device.slots[1].retired_count}


def _close():
    """Destroy the pools; every list is gone by now."""
    for pool, clock in _owners:
        pool.close()
        if clock is not None:
            clock.close()
    _owners.clear()


on_exit(EVENTS, _close)
