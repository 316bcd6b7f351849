# SPDX-License-Identifier: Apache-2.0
"""Backups: what lives in a memory pool that sleeps, in pinned memory; how a pool falls asleep and wakes.

A pool that is to sleep first refuses allocations and commands, then waits for those that came before. From then on
nothing changes its contents, which are copied while it still has its memory: until the copies are complete, every
error leaves it awake. It wakes in the opposite order.
"""

cimport cython
from cpython.exc cimport PyErr_Clear
from libc.stdint cimport UINT64_MAX, int64_t, uint64_t
from libc.stdlib cimport free, realloc

from l0rt._base.interrupts cimport interrupt_defer
from l0rt.runtime.alloc.atomics cimport load, mutex_lock, mutex_unlock, store_int
from l0rt.runtime.alloc.block cimport heap_snapshot, l0rt_block_info
from l0rt.runtime.alloc.heap cimport heap_can_sleep, heap_sleep, heap_wake
from l0rt.runtime.alloc.share cimport is_asleep, is_kept
from l0rt.runtime.alloc.types cimport *
from l0rt.runtime.memory.device cimport raise_status, raise_wake_oom
from l0rt.runtime.memory.operations cimport block_let_go
from l0rt.runtime.memory.pinned cimport host_malloc
from l0rt.runtime.streams.capture cimport capture_refuse_device
from l0rt.runtime.streams.copy cimport copy_locked
from l0rt.runtime.streams.devices cimport device_record, device_total
from l0rt.runtime.streams.event_pool cimport slot_release
from l0rt.runtime.streams.order cimport before
from l0rt.runtime.streams.queue cimport issued_try_end_event, lock, queue_synchronize, unlock
from l0rt.runtime.streams.sleep cimport others_replay, replays_pass, sleep_begin, sleep_end
from l0rt.runtime.streams.stream_pool cimport device_synchronize, lease_stream, next_stream, return_stream
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport WAIT_ADAPTIVE, check_device, host_clock_ns, nap, slot_rest
from l0rt.ze.api cimport ZE_RESULT_SUCCESS, ze_result_t

from l0rt.errors import UnsupportedError

cdef enum:
    PIECE = 64 << 20    # bytes of one copy, and of one piece of pinned memory, at the most
    LET_IN_S = 30       # at the most, until mapping is possible beside the appends of other threads
    GIVE_UP_MS = 100    # the same for what nobody waits for
    GAP = 4096          # fewer bytes than that between two blocks are copied with them: they are in one mapping


@cython.final
@cython.binding(False)
cdef class Backup:
    """Made by ``pool_sleep()``."""

    def __init__(self):
        raise TypeError("made by MemPool.sleep()")

    def __dealloc__(self):
        cdef size_t i
        for i in range(self.count):
            if self.saved[i].block != NULL:
                with nogil:
                    block_let_go(self.saved[i].block)
        free(self.saved)


cdef inline l0rt_heap* heap_at(int index) noexcept nogil:
    return <l0rt_heap*>load(&device_record(index).heap)


# --- Falling asleep and waking.


cdef Backup pool_sleep(l0rt_private_pool* private_pool, bint backs_up, frozenset tags):
    cdef Backup made = None
    cdef bint done = False
    cdef int i
    if is_asleep(private_pool):
        return None
    with nogil:
        for i in range(device_total()):
            capture_refuse_device(device_record(i), b"MemPool.sleep()")
    refuse_more(private_pool)
    try:
        wait_for_users()
        if backs_up:
            made = Backup.__new__(Backup)
            for i in range(device_total()):
                find_contents(made, i, private_pool, tags)
            copy_all(made, False)
        done = True
    finally:
        if not done:
            awake(private_pool)
    return made


cdef int pool_give_back(l0rt_private_pool* private_pool) except -1:
    """Take the memory of a pool that sleeps, as far as it still has some."""
    cdef int last
    if move_all(private_pool, False, &last) == L0RT_HELD_UP:
        raise RuntimeError(HELD_UP.format("the pool sleeps and still has memory: call sleep() again, or wake()"))
    return 0


cdef int pool_wake(l0rt_private_pool* private_pool, Backup backup) except -1:
    cdef bint done = False
    cdef int status, last = 0
    if not is_asleep(private_pool):
        return 0
    try:
        status = move_all(private_pool, True, &last)
        if status == L0RT_HELD_UP:
            raise RuntimeError(HELD_UP.format("the pool sleeps on"))
        if status == L0RT_OUT_OF_MEMORY:
            raise_wake_oom(device_record(last), private_pool)
        if status != L0RT_OK:
            raise_status(status, NULL)
        if backup is not None:
            copy_all(backup, True)
        done = True
    finally:
        if not done:
            with nogil:
                take_again(private_pool)
    awake(private_pool)
    return 0


HELD_UP = "other threads append commands all the time, and memory cannot be mapped or unmapped beside them: {}"


cdef int move_all(l0rt_private_pool* private_pool, bint wakes, int* last) except? -1000:
    """Give the pool memory on all devices, or take it; `last` is where that failed. Appends of other threads may hold
    that up, where the two race inside the driver: then they are asked to let it in, and it is tried again with no lock
    held."""
    cdef uint64_t start = host_clock_ns(), spent = 0
    cdef int status
    with nogil:
        status = heaps_move(private_pool, wakes, last)
    if status != L0RT_HELD_UP:
        return status
    ask_to_be_let_in(1)
    try:
        with nogil:
            while status == L0RT_HELD_UP and spent < LET_IN_S * 1000000000ULL:
                status = heaps_move(private_pool, wakes, last)
                if status == L0RT_HELD_UP:
                    nap(WAIT_ADAPTIVE, 0, UINT64_MAX)
                    check_device(device_record(0))
                spent = host_clock_ns() - start
    finally:
        ask_to_be_let_in(-1)
    return status


cdef void take_again(l0rt_private_pool* private_pool) noexcept nogil:
    """Take what a wake that failed has given, or leave it to the next one."""
    cdef uint64_t start = host_clock_ns()
    cdef int last
    ask_to_be_let_in(1)
    while (heaps_move(private_pool, False, &last) == L0RT_HELD_UP
           and host_clock_ns() - start < GIVE_UP_MS * 1000000ULL):
        nap(WAIT_ADAPTIVE, 0, UINT64_MAX)
    ask_to_be_let_in(-1)


cdef void ask_to_be_let_in(int change) noexcept nogil:
    cdef int i
    for i in range(device_total()):
        if device_record(i).map_gate != NULL:
            l0rt_add_int(&device_record(i).map_gate[1], change)


cdef int heaps_move(l0rt_private_pool* private_pool, bint wakes, int* last) noexcept nogil:
    cdef int i, moved, status = L0RT_OK
    for i in range(device_total()):
        if heap_at(i) == NULL:
            continue
        last[0] = i
        if wakes:
            status = heap_wake(heap_at(i), private_pool, False)
            if status != L0RT_OK:
                return status
        else:
            moved = heap_sleep(heap_at(i), private_pool)
            status = moved if moved == L0RT_HELD_UP else status
    return status


cdef void awake(l0rt_private_pool* private_pool) noexcept:
    store_int(&private_pool.is_asleep, False)
    sleep_end()


cdef int refuse_more(l0rt_private_pool* private_pool) except -1:
    """Nothing is allocated from the pool any more, and no command takes its memory; it still has its memory."""
    cdef bint can = True
    cdef int i
    with nogil:
        for i in range(device_total()):
            can = can and (heap_at(i) == NULL or heap_can_sleep(heap_at(i), private_pool))
        if can:
            store_int(&private_pool.is_asleep, True)
        for i in range(device_total()):     # whoever found it awake has allocated, by then perhaps a segment
            if can and heap_at(i) != NULL:
                can = heap_sleep(heap_at(i), private_pool, False) == L0RT_OK
        if not can:
            store_int(&private_pool.is_asleep, False)
    if not can:
        raise UnsupportedError("this pool cannot sleep: it has segments, whose addresses end with their memory")
    sleep_begin()
    return 0


cdef int wait_for_users() except -1:
    """Wait for those who have not seen that the pool sleeps, and for all work: any device may use the memory."""
    cdef uint64_t start = host_clock_ns()
    cdef l0rt_stream* stream
    cdef int i, generation = replays_pass()
    while generation < 0 or others_replay(generation):
        if generation < 0:
            generation = replays_pass()
        with nogil:
            nap(WAIT_ADAPTIVE, host_clock_ns() - start, UINT64_MAX)
            check_device(device_record(0))
    with nogil:
        for i in range(device_total()):
            stream = next_stream(device_record(i), NULL)
            while stream != NULL:
                mutex_lock(&stream.lock)
                mutex_unlock(&stream.lock)
                stream = next_stream(device_record(i), stream)
        for i in range(device_total()):     # no wait behind the first that sleeps: a signal may end it
            device_synchronize(device_record(i), UINT64_MAX)
    return 0


# --- What there is to save.


cdef int find_contents(Backup self, int index, l0rt_private_pool* private_pool, frozenset tags) except -1:
    """Take pinned memory for everything that lives in the pool on a device."""
    cdef l0rt_block_info* blocks = NULL
    cdef int64_t capacity = 1024, count = 0, i
    cdef uint64_t start = 0, end = 0, segment = 0
    # A graph may find in its memory what an earlier replay left there.
    cdef bint all = tags is None and is_kept(private_pool)
    if heap_at(index) == NULL:
        return 0
    try:
        while True:
            blocks = enlarged(blocks, capacity)
            with nogil:
                count = heap_snapshot(heap_at(index), blocks, capacity, NULL)
            if count <= capacity:
                break
            capacity = count + count // 4
        for i in range(count):
            if not is_saved(&blocks[i], private_pool, all) or (tags is not None and blocks[i].tag not in tags):
                continue
            if blocks[i].segment != segment or blocks[i].address - end >= GAP:
                add_bytes(self, index, start, end)
                start, segment = blocks[i].address, blocks[i].segment
            end = blocks[i].address + (blocks[i].size if all else blocks[i].requested)
        add_bytes(self, index, start, end)
    finally:
        free(blocks)
    return 0


cdef l0rt_block_info* enlarged(l0rt_block_info* blocks, int64_t capacity) except NULL:
    cdef void* made = realloc(blocks, capacity * sizeof(l0rt_block_info))
    if made == NULL:
        raise MemoryError("no host memory for a snapshot")
    return <l0rt_block_info*>made


cdef inline bint is_saved(const l0rt_block_info* block, const l0rt_private_pool* private_pool, bint all) noexcept nogil:
    if block.pool_id[0] != private_pool.id[0] or block.pool_id[1] != private_pool.id[1]:
        return False
    return all or LIVE <= block.state <= USED or block.state == UNCACHED


cdef int add_bytes(Backup self, int index, uint64_t start, uint64_t end) except -1:
    cdef l0rt_saved_bytes* saved
    cdef uint64_t nbytes
    while start < end:
        if self.count == self.capacity:
            self.capacity = max(2 * self.capacity, <size_t>16)
            saved = <l0rt_saved_bytes*>realloc(self.saved, self.capacity * sizeof(l0rt_saved_bytes))
            if saved == NULL:
                self.capacity = self.count
                raise MemoryError()
            self.saved = saved
        nbytes = min(end - start, <uint64_t>PIECE)
        saved = &self.saved[self.count]
        saved.address, saved.nbytes, saved.device, saved.block = start, nbytes, index, NULL
        self.count += 1
        with nogil:
            saved.block = host_malloc(device_record(index), nbytes)
        start += nbytes
    return 0


# --- Copies. Each device has a stream for them that no one else has.


cdef int copy_all(Backup self, bint is_back) except -1:
    """Copy everything, on all devices at once, and wait."""
    cdef list streams = []
    cdef l0rt_stream* stream = NULL
    cdef int last = -1
    cdef size_t i
    try:
        for i in range(self.count):
            if self.saved[i].device != last:
                last = self.saved[i].device
                stream = lease_stream(device_record(last), 0, True)
                streams.append(<size_t>stream)
            with nogil:
                copy_one(&self.saved[i], stream, is_back)
        for leased in streams:
            stream = <l0rt_stream*><size_t>leased
            with nogil:
                queue_synchronize(stream, UINT64_MAX)
    finally:
        for leased in streams:
            stream = <l0rt_stream*><size_t>leased
            with nogil:
                rest(stream)    # after an error: neither memory is given back while it is in use
            return_stream(stream)
    return 0


cdef int copy_one(const l0rt_saved_bytes* saved, l0rt_stream* stream, bint is_back) except -1 nogil:
    """Without the look whether the pool sleeps."""
    cdef ze_result_t r
    lock(stream)
    r = before(stream)
    if r == ZE_RESULT_SUCCESS and is_back:
        r = copy_locked(stream, <void*>saved.address, saved.block.ptr, saved.nbytes, NULL)
    elif r == ZE_RESULT_SUCCESS:
        r = copy_locked(stream, saved.block.ptr, <const void*>saved.address, saved.nbytes, NULL)
    return unlock(stream, r)


cdef void rest(l0rt_stream* stream) noexcept nogil:
    """Wait without raising: what a signal handler raises meanwhile is raised afterwards."""
    cdef l0rt_slot* slot
    cdef bint interrupted = False
    if stream.list == NULL or l0rt_load64(&stream.done) >= l0rt_load64(&stream.issued):
        return
    slot = issued_try_end_event(stream)
    if slot == NULL:
        with gil:
            PyErr_Clear()       # a device that is being lost
        return
    while slot_rest(slot) == L0RT_INTERRUPTED:
        interrupted = True
    slot_release(slot)
    if interrupted:
        interrupt_defer()
