# SPDX-License-Identifier: Apache-2.0
"""Native events and their reuse: pools of 256 slots for each device. A slot is reset only when nothing can need it any
more.

Where the driver has counter-based events, the slots of those are used for everything but timing: they are never reset
and can be signalled anew while an earlier signal is in flight. ``L0RT_EVENTS`` chooses.

An interprocess event has one slot for good: whoever makes a stream wait for it shares its gate, and whoever resets it,
or looks whether all streams have come past it, is alone in that.
"""

from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free as free_memory, realloc

from l0rt.core.driver cimport Context
from l0rt.core.event cimport EventPool, event_query, event_reset
from l0rt.core.memory cimport Allocation
from l0rt.runtime.alloc.atomics cimport mutex_lock, mutex_unlock
from l0rt.runtime.streams.capture cimport capture_point, captures
from l0rt.runtime.streams.devices cimport core_context, device_at, event_pool_for
from l0rt.runtime.streams.orphans cimport ask_over_with
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport device_fails, refuse, slot_completed
from l0rt.ze cimport table
from l0rt.ze.api cimport ZE_RESULT_SUCCESS, ze_result_t

from l0rt.errors import DeviceLostError
from l0rt.runtime.lazy import EVENTS, on_exit

cdef extern from "Python.h":
    int PyGC_Disable()
    int PyGC_Enable()

cdef enum:
    POOL_SLOTS = 256
    SCANNED = 8         # retired slots looked at before new ones are made

_owners = []   # EventPool and Allocation objects: they hold what the slots point to
cdef progress_fn _progress = NULL


cdef void ask_progress_with(progress_fn progress) noexcept:
    global _progress
    _progress = progress


cdef l0rt_slot* slot_acquire(l0rt_stream* stream, bint timing) except NULL nogil:
    cdef l0rt_slot* slot = capture_point(stream) if captures(stream) else NULL
    return slot if slot != NULL else slot_acquire_kind(stream.device, slot_kind(stream, timing))


cdef l0rt_slot* slot_acquire_kind(l0rt_device* device, int kind) except NULL nogil:
    cdef l0rt_event_pool* cache = &device.slots[kind]
    cdef l0rt_slot* slot
    if not table.alive or device.lost:
        refuse(device)
    while True:
        mutex_lock(&cache.lock)
        slot = cache.free
        if slot != NULL:
            cache.free = slot.next
        mutex_unlock(&cache.lock)
        if slot == NULL:
            slot = event_pool_scan(cache)
        if slot != NULL:
            slot.refs = 1
            slot.complete = 0
            slot.stream = NULL
            return slot
        with gil:
            add_pool_uncollected(device, cache)


cdef int add_pool_uncollected(l0rt_device* device, l0rt_event_pool* cache) except -1:
    """Add a pool of slots to the cache.

    An allocator that is out of memory records events with its growth mutex held, to make a stream wait for another's
    memory. Python collects garbage where it makes objects, and a finaliser that allocates would want the same mutex.
    """
    cdef bint collecting = PyGC_Disable()
    try:
        return add_pool(device, cache)
    finally:
        if collecting:
            PyGC_Enable()


cdef int add_pool(l0rt_device* device, l0rt_event_pool* cache) except -1:
    cdef Context context = core_context(device.index)
    cdef EventPool pool
    cdef Allocation clock = None
    cdef int i
    cdef l0rt_slot* slots = <l0rt_slot*>calloc(POOL_SLOTS, sizeof(l0rt_slot))
    if slots == NULL:
        raise MemoryError()
    try:
        pool = event_pool_for(device.index, POOL_SLOTS, cache.kind == SLOT_COUNTER, False)
        if cache.kind == SLOT_TIMED:
            clock = Allocation.host(context, POOL_SLOTS * sizeof(uint64_t))
    except DeviceLostError:
        l0rt_store_int(&device.lost, 1)
        raise
    _owners.append((pool, clock))
    for i in range(POOL_SLOTS):
        slots[i].event = pool.events[i]
        slots[i].device = device
        slots[i].cache = cache
        if cache.kind == SLOT_TIMED:
            slots[i].ticks = &(<uint64_t*>clock._h)[i]
        slots[i].next = &slots[i + 1] if i + 1 < POOL_SLOTS else NULL
    with nogil:
        mutex_lock(&cache.lock)
        slots[POOL_SLOTS - 1].next = cache.free
        cache.free = slots
        cache.made += POOL_SLOTS
        mutex_unlock(&cache.lock)
    return 0


cdef void slot_retain(l0rt_slot* slot) noexcept nogil:
    l0rt_add_int(&slot.refs, 1)


cdef void slot_release(l0rt_slot* slot) noexcept nogil:
    """Release a reference. A slot without references is retired, and reused when nothing can need it any more."""
    cdef l0rt_event_pool* cache
    cdef bint over
    if slot == NULL or l0rt_add_int(&slot.refs, -1) != 0 or not table.alive:
        return
    cache = slot.cache
    if cache == NULL:
        if slot.event == NULL:
            free_memory(slot)
        return
    over = slot_is_over(slot, False)
    if over and not slot_clear(slot):
        return
    mutex_lock(&cache.lock)
    if over:
        slot.next = cache.free
        cache.free = slot
    else:
        event_pool_retire(cache, slot)
    mutex_unlock(&cache.lock)


# A slot without references is in one place only, the free list, the queue of the retired, or a thread's hands: whoever
# took it out of the queue may look at it, ask the driver and append to a stream without the cache's lock. Appending may
# block, and a thread that drops an event holds the GIL and needs the lock.

cdef bint slot_is_over(l0rt_slot* slot, bint ask) noexcept nogil:
    """Is the slot signalled, and has every stream that waits for it come past? ``ask``: the driver, if need be."""
    cdef int i
    if slot.cache != NULL and slot.cache.kind == SLOT_COUNTER:
        return True
    if slot.stream != NULL and not l0rt_load_int(&slot.complete):
        if not ask or event_query(slot.event) != ZE_RESULT_SUCCESS:
            return False
        slot_completed(slot)
    for i in range(slot.waiter_count):
        if ask and l0rt_load64(&slot.waiters[i].stream.done) < slot.waiters[i].seq:
            _progress(slot.waiters[i].stream)
        if (l0rt_load64(&slot.waiters[i].stream.done) < slot.waiters[i].seq
                and not l0rt_load_int(&slot.waiters[i].stream.device.lost)):
            return False
    return True


cdef bint slot_clear(l0rt_slot* slot) noexcept nogil:
    """Make the slot as new. False: the driver refuses; better one slot less than one in an unknown state."""
    slot.waiter_count = 0
    return slot.stream == NULL or slot.cache.kind == SLOT_COUNTER or event_reset(slot.event) == ZE_RESULT_SUCCESS


cdef int slot_reset(l0rt_slot* slot) except -1 nogil:
    cdef ze_result_t r = event_reset(slot.event)
    if r != ZE_RESULT_SUCCESS:
        return device_fails(slot.device, r)
    slot.waiter_count = 0
    slot.complete = 0
    slot.stream = NULL
    return 0


cdef void event_pool_retire(l0rt_event_pool* cache, l0rt_slot* slot) noexcept nogil:
    slot.next = NULL
    if cache.retired == NULL:
        cache.retired = slot
    else:
        cache.retired_last.next = slot
    cache.retired_last = slot
    cache.retired_count += 1


cdef l0rt_slot* event_pool_scan(l0rt_event_pool* cache) noexcept nogil:
    """Return a retired slot whose time is over, NULL if none of the oldest is."""
    cdef l0rt_slot* slot
    for _ in range(SCANNED):
        mutex_lock(&cache.lock)
        slot = cache.retired
        if slot != NULL:
            cache.retired = slot.next
            cache.retired_count -= 1
        mutex_unlock(&cache.lock)
        if slot == NULL:
            return NULL
        if slot_is_over(slot, True):
            if slot_clear(slot):
                return slot
            continue
        mutex_lock(&cache.lock)
        event_pool_retire(cache, slot)   # to the end, so that one slow stream does not hide the others
        mutex_unlock(&cache.lock)
    return NULL


cdef void slot_add_waiter(l0rt_slot* slot, l0rt_stream* stream, uint64_t seq) noexcept nogil:
    """Remember that ``stream`` passes the slot with its command number ``seq``. The caller holds a reference."""
    cdef l0rt_event_pool* cache = slot.cache if slot.cache != NULL else &slot.device.slots[SLOT_PLAIN]
    cdef l0rt_waiter* grown
    cdef int i
    if cache.kind == SLOT_COUNTER:
        return
    mutex_lock(&cache.lock)
    for i in range(slot.waiter_count):
        if slot.waiters[i].stream == stream:
            slot.waiters[i].seq = max(slot.waiters[i].seq, seq)     # two threads may come in either order
            mutex_unlock(&cache.lock)
            return
    if slot.waiter_count == slot.waiter_capacity:
        grown = <l0rt_waiter*>realloc(slot.waiters, (2 * slot.waiter_capacity + 4) * sizeof(l0rt_waiter))
        if grown != NULL:
            slot.waiters = grown
            slot.waiter_capacity = 2 * slot.waiter_capacity + 4
    if slot.waiter_count < slot.waiter_capacity:
        slot.waiters[slot.waiter_count].stream = stream
        slot.waiters[slot.waiter_count].seq = seq
        slot.waiter_count += 1
    else:
        slot_retain(slot)           # no memory to remember it in: the slot is not used again
    mutex_unlock(&cache.lock)


def cache_state(int index):
    """Return how many native events device ``index`` has, how many of them wait to be recycled, and how many could be
    taken at once."""
    cdef l0rt_device* device = device_at(index)
    cdef l0rt_slot* slot
    cdef int kind
    free = 0
    for kind in range(3):
        mutex_lock(&device.slots[kind].lock)
        slot = device.slots[kind].free
        while slot != NULL:
            free += 1
            slot = slot.next
        mutex_unlock(&device.slots[kind].lock)
    made = [device.slots[kind].made for kind in range(3)]
    return {"made": sum(made), "plain": made[SLOT_PLAIN], "timed": made[SLOT_TIMED], "counter": made[SLOT_COUNTER],
            "free": free, "retired": sum(device.slots[kind].retired_count for kind in range(3))}


def _close():
    """Destroy the pools. All command lists were destroyed before."""
    for pool, clock in _owners:
        pool.close()
        if clock is not None:
            clock.close()
    _owners.clear()


on_exit(EVENTS, _close)
ask_over_with(slot_is_over)
