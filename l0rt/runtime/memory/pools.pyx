# SPDX-License-Identifier: Apache-2.0
"""Private pools of device memory, and which of them a thread allocates from."""

from functools import wraps

from _weakref import ref

cimport cython
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free

from l0rt._base.arguments cimport known_as
from l0rt._base.interrupts cimport enter_at_once
from l0rt.runtime.alloc.allocator cimport Pool
from l0rt.runtime.alloc.arena_index cimport heap_reclaim
from l0rt.runtime.alloc.atomics cimport load
from l0rt.runtime.alloc.deferred_free cimport block_mark, block_order
from l0rt.runtime.alloc.heap cimport block_find
from l0rt.runtime.alloc.share cimport private_pool_leave
from l0rt.runtime.alloc.types cimport *
from l0rt.runtime.current.thread cimport current_device, current_stream, thread_peek, thread_record
from l0rt.runtime.memory.active_pool cimport active_pools_left, active_pools_pop, active_pools_push, active_pools_remove
from l0rt.runtime.memory.backup cimport Backup, pool_give_back, pool_sleep, pool_wake
from l0rt.runtime.memory.device cimport raise_status, trim
from l0rt.runtime.memory.exported cimport export_pool
from l0rt.runtime.memory.imported cimport own_pool
from l0rt.runtime.memory.operations cimport knows_streams, l0rt_extent, shared_find
from l0rt.runtime.memory.pluggable cimport PluggableAllocator, functions_of, l0rt_plugged, plugged_leave, plugged_new
from l0rt.runtime.streams.devices cimport device_at, device_record, device_total
from l0rt.runtime.streams.naming cimport call, current_type, get_slots, index_of, maker_of, set_slots, slots
from l0rt.runtime.streams.queue cimport Queue
from l0rt.runtime.streams.types cimport *
from l0rt.ze cimport table

from l0rt.errors import InvalidArgumentError, UnsupportedError
from l0rt.runtime.memory.device import attach_pool, let_go, let_go_before_trim
from l0rt.runtime.memory.importedpool import ImportedPool
from l0rt.runtime.memory.pluggable import set_current
from l0rt.runtime.memory.trace import numbers_of_tags
from l0rt.runtime.memory.trace import segments
from l0rt.runtime.streams.devices import lazy
from l0rt.runtime.streams.handle import stale

cdef void reclaim() noexcept:
    """Give back the memory of dropped pools that no work uses."""
    cdef l0rt_heap* heap
    cdef int i
    with nogil:
        for i in range(device_total()):
            heap = <l0rt_heap*>load(&device_record(i).heap)
            if heap != NULL:
                heap_reclaim(heap)
            heap = <l0rt_heap*>load(&device_record(i).host_heap)
            if heap != NULL:        # pinned memory of graphs
                heap_reclaim(heap)


WHAT = "private memory pools"
_living = {}  # by id: weak references to the pools


@cython.binding(False)
cdef class MemPool:
    """MemPool(allocator=None, use_on_oom=False, no_split=False, *, limit=None, on_oom=None, interprocess=False)
--

A private pool of the current accelerator. Memory that a thread allocates inside ``use_mem_pool(pool)`` comes from it
and returns to it.

Memory of an ``allocator`` is cached like the driver's. With ``use_on_oom`` an allocation outside of pools that
would fail is served from a free block, whatever its stream, or else by letting the pool grow. If ``on_oom`` returns
True, the allocation is tried again. What is allocated outlives the pool.

Parameters
----------
allocator : PluggableAllocator, adaptor or None, optional
    The source of the pool's memory. None is the driver.
use_on_oom : bool, optional
    Serve allocations outside of pools from this pool before they fail.
no_split : bool, optional
    Hand out free blocks whole, without splitting them.
limit : int or None, optional
    How many bytes the pool reserves on each device at most. None sets no limit.
on_oom : callable or None, optional
    A function that is called with the number of bytes before an allocation from the pool fails.
interprocess : bool, optional
    Take memory that other processes can share: ordinary segments, never mapped in parts.

Raises
------
ValueError
    ``limit`` is not positive.
NotImplementedError
    The current accelerator has no pools.

Notes
-----
The contract is that of ``torch.cuda.MemPool``; the parameters after ``no_split`` are l0rt's. The parameters are those
of the built-in device type; another type's interface has a ``MemPool`` of its own.
"""

    cdef Pool pool
    cdef readonly tuple id
    cdef readonly PluggableAllocator allocator
    cdef readonly object limit
    cdef readonly object on_oom
    cdef l0rt_private_pool* private_pool  # the allocator's record of it, and
    cdef l0rt_plugged* plugged      # the allocator's, which both outlive their objects
    cdef int users
    cdef bint is_moving             # some thread puts it to sleep or wakes it
    cdef Backup backup              # while it sleeps; None: the contents are lost
    cdef object __weakref__

    def __cinit__(self, allocator=None, bint use_on_oom=False, bint no_split=False, *,
                  limit=None, on_oom=None, bint interprocess=False):
        if on_oom is not None and not callable(on_oom):
            raise TypeError(f"on_oom must be a function of the size, got {type(on_oom).__name__}")
        self.pool = Pool(use_on_oom, no_split, limit, interprocess)
        self.private_pool = self.pool.private_pool
        self.id = id = self.pool.id
        self.limit = limit
        self.on_oom = on_oom
        if allocator is not None:
            self.allocator = functions_of(allocator)
            self.plugged = plugged_new(self.allocator)
            self.private_pool.upstream = &self.plugged.upstream
        _living[id] = ref(self, lambda gone: _living.pop(id, None))
        if on_oom is not None:
            attach_pool(<size_t>self.private_pool, _living[id])
        reclaim()

    def __del__(self):
        # Not __dealloc__: the functions of an allocator may be in a cycle with the pool, and are still whole here.
        if self.private_pool == NULL:
            return
        attach_pool(<size_t>self.private_pool, None)
        if self.plugged != NULL:
            plugged_leave(self.plugged)
        private_pool_leave(self.private_pool)
        reclaim()

    def use_count(self):
        """Return 1, and 1 more for every thread that is inside of it and every graph or checkpoint that uses it.

        Returns
        -------
        int
        """
        return 1 + self.users + self.private_pool.holders

    def empty_cache(self):
        """Give cached memory of the pool back to the driver, on every device; waits for work that may use it."""
        cdef int i
        with nogil:
            for i in range(device_total()):
                trim(i, NULL, self.private_pool)

    def sleep(self, backup=None, tags=None):
        """Give back all memory of the pool and keep the addresses, until `wake`.

        The call waits for all devices. Until the pool wakes, copies, fills, launches and exports of its memory raise
        RuntimeError, and so do allocations from it. Freeing memory of it works. A second call changes nothing.

        On Intel's GPUs memory is not unmapped while another thread appends a command. The call asks those threads to
        wait for a moment, and tries for 30 seconds. If it fails then, or is interrupted, the pool sleeps and still has
        memory, which the next call gives back.

        Parameters
        ----------
        backup : "host" or None, optional
            Where the contents of what is allocated go until then: into pinned memory. None: they are lost.
        tags : str, iterable of str or None, optional
            What there is a backup of: memory that was allocated with one of these tags (`l0rt.memory.tag`). None is
            everything.

        Raises
        ------
        NotImplementedError
            The pool has ordinary segments, whose addresses end with their memory: there is no virtual memory.
        MemoryError
            There is not enough pinned memory for the backup. The pool stays awake, as after every other error.
        RuntimeError
            Another call is putting the pool to sleep or waking it, or a stream is being captured; or other threads
            append commands all the time.
        ValueError
            There is no such place for a backup, or no such tag; or there are tags without a backup.
        """
        if backup not in (None, "host"):
            raise ValueError(f"backup must be 'host' or None, got {backup!r}")
        if tags is not None and backup is None:
            raise ValueError("tags choose what there is a backup of: pass backup='host' too")
        numbers = None if tags is None else numbers_of_tags(tags)
        self.begin_move()
        try:
            made = pool_sleep(self.private_pool, backup is not None, numbers)
            if made is not None:
                self.backup = made
            pool_give_back(self.private_pool)
        finally:
            self.is_moving = False

    def wake(self):
        """Give a sleeping pool memory again, at the same addresses, with the contents of which there is a backup.

        Raises
        ------
        MemoryError
            There is not enough memory. The pool sleeps on, as after every other error, and keeps its backup.
        RuntimeError
            Another call is putting the pool to sleep or waking it; or other threads append commands all the time,
            beside which memory is not mapped on Intel's GPUs: it is tried for 30 seconds.
        """
        self.begin_move()
        try:
            pool_wake(self.private_pool, self.backup)
            self.backup = None
        finally:
            self.is_moving = False

    cdef int begin_move(self) except -1:
        """Sleeping and waking pass from device to device, and wait: both at once would end with a pool that is awake
        and has no memory."""
        if lazy.opened:
            lazy.init()                         # raises in a forked child, with the reason
        if self.allocator is not None:
            raise UnsupportedError("this pool cannot sleep: its memory comes from an allocator, with its own addresses")
        if self.is_moving:
            raise RuntimeError("another call is putting the memory pool to sleep or waking it, and must end first")
        self.is_moving = True
        return 0

    def snapshot(self, bint include_traces=True):
        """Return the pool's segments, each with its blocks, as `l0rt.memory.memory_snapshot` does.

        ``frames`` of a block is the stack of its allocation, if `l0rt.memory.record_memory_history` keeps it.

        Parameters
        ----------
        include_traces : bool, optional
            It has no effect: `l0rt.memory.snapshot` returns the history.

        Returns
        -------
        list of dict
            One dict for each segment. Sizes are in bytes.
        """
        return segments(self.id)

    def ipc_handle(self):
        """Return bytes with which another process can use the pool's memory, through `from_ipc_handle`.

        Returns
        -------
        bytes

        Raises
        ------
        UnsupportedError
            The pool was made without ``interprocess=True``, or its memory comes from an allocator.
        """
        if self.allocator is not None:
            raise UnsupportedError("the memory of this pool comes from an allocator: share its Buffers one by one")
        if not self.private_pool.plain:
            raise UnsupportedError("this pool may have memory that is mapped in parts, which drivers do not share as a "
                                   "whole: make it with interprocess=True")
        return export_pool(self.private_pool.id[1])

    @staticmethod
    def from_ipc_handle(handle):
        """Return a pool that another process has exported.

        Parameters
        ----------
        handle : bytes
            The bytes that `ipc_handle` returned.

        Returns
        -------
        l0rt.ipc.ImportedPool or MemPool
            In the process that exported it, the MemPool itself.

        Raises
        ------
        ValueError
            The handle is damaged, or its process has ended.
        PermissionError
            The kernel does not let this process open memory of the other one.
        """
        number = own_pool(handle)
        if number is None:
            return ImportedPool(handle)
        known = _living.get((0, number))
        found = None if known is None else known()
        if found is None:
            raise stale("pool", "MemPool")
        return found

    def __repr__(self):
        return f"<l0rt.MemPool {self.id}>"


@cython.binding(False)
cdef class XpuMemPool(MemPool):
    """MemPool(allocator=None, use_on_oom=False, no_split=False, *, limit=None, on_oom=None, interprocess=False)
--

A private pool of the built-in device type. Memory that a thread allocates inside ``use_mem_pool(pool)`` comes from it
and returns to it.

Memory of an ``allocator`` is cached like the driver's. With ``use_on_oom`` an allocation outside of pools that
would fail is served from a free block, whatever its stream, or else by letting the pool grow. If ``on_oom`` returns
True, the allocation is tried again. What is allocated outlives the pool.

Parameters
----------
allocator : PluggableAllocator, adaptor or None, optional
    The source of the pool's memory. None is the driver.
use_on_oom : bool, optional
    Serve allocations outside of pools from this pool before they fail.
no_split : bool, optional
    Hand out free blocks whole, without splitting them.
limit : int or None, optional
    How many bytes the pool reserves on each device at most. None sets no limit.
on_oom : callable or None, optional
    A function that is called with the number of bytes before an allocation from the pool fails.
interprocess : bool, optional
    Take memory that other processes can share: ordinary segments, never mapped in parts.

Raises
------
ValueError
    ``limit`` is not positive.

Notes
-----
The contract is that of ``torch.cuda.MemPool``; the parameters after ``no_split`` are l0rt's.
"""


cdef slots _built_in, _choosing


cdef PyObject* _make(PyTypeObject* cls, PyObject* args, PyObject* kwargs) except NULL:
    """``l0rt.accelerator.MemPool(...)`` makes a pool of the current accelerator; a subclass stays what it is."""
    if cls != <PyTypeObject*>MemPool:
        return _built_in.make(cls, args, kwargs)
    type = current_type()
    maker = maker_of(type)
    if maker is None:
        return _built_in.make(<PyTypeObject*>XpuMemPool, args, kwargs)
    own = getattr(maker, "MemPool", None)
    if own is None:
        raise NotImplementedError(f"device type {type} has no {WHAT}")
    return call(own, args, kwargs)


get_slots(MemPool, &_built_in)
_choosing.make = _make
set_slots(MemPool, &_choosing)


cdef void active_pool_drop(l0rt_active_pool* active) noexcept:
    """An active pool that no thread has any more."""
    cdef MemPool pool = <MemPool>active.pool
    free(active)
    pool.users -= 1
    Py_DECREF(pool)


def forget_left():
    """Let go of the pools that threads were in when they ended."""
    cdef l0rt_active_pool* active_pools = active_pools_left()
    cdef l0rt_active_pool* active
    while active_pools != NULL:
        active = active_pools
        active_pools = active.outer
        active_pool_drop(active)


@cython.binding(False)
cdef class use_mem_pool:
    """use_mem_pool(pool, device=None)
--

Make the calling thread allocate from ``pool`` inside a with block.

Blocks nest, and the innermost block for the device applies. Other threads are not affected.

Parameters
----------
pool : MemPool
    The pool.
device : int, str, device or None, optional
    The device on which the pool is used. None is every device.

Notes
-----
The contract is that of ``torch.cuda.use_mem_pool``; docs/parity.md has the differences.
"""

    cdef MemPool pool
    cdef int device
    cdef list entered

    def __cinit__(self, MemPool pool not None, device=None):
        self.pool = pool
        self.device = -1
        self.entered = []
        if device is not None:
            lazy.init()
            self.device = index_of(device, current_device(), lazy.device_type)
            device_at(self.device)

    def __enter__(self):
        lazy.init()
        # Its finalizer has run, for a cycle of garbage that something refers to again.
        if self.pool.private_pool.is_gone:
            raise RuntimeError("the memory pool was dropped: nothing can be allocated from it any more")
        cdef l0rt_thread* thread = thread_record()
        cdef l0rt_active_pool* active = <l0rt_active_pool*>calloc(1, sizeof(l0rt_active_pool))
        if active == NULL:
            raise MemoryError()
        active.private_pool = self.pool.private_pool
        active.device = self.device
        active.pool = <void*>self.pool
        Py_INCREF(self.pool)
        self.pool.users += 1
        with nogil:
            active_pools_push(thread, active)
        self.entered.append(<uintptr_t>active)
        forget_left()
        return self.pool

    def __exit__(self, *error):
        cdef l0rt_thread* thread = thread_peek()
        cdef l0rt_active_pool* active
        if thread == NULL and self.entered and not table.alive:     # entered before the fork: nothing is left to leave
            self.entered.pop()
            self.pool.users -= 1
            return
        active = <l0rt_active_pool*>thread.active_pools if thread != NULL else NULL
        if not self.entered or <uintptr_t>active != <uintptr_t>self.entered[-1]:
            raise RuntimeError("use_mem_pool is left in another order or thread than it was entered")
        self.entered.pop()
        with nogil:
            active_pools_pop(thread)
        active_pool_drop(active)

    def _leave(self):
        """Leave the block that was entered last, if this thread is in it, also behind blocks entered since."""
        cdef l0rt_thread* thread = thread_peek()
        cdef l0rt_active_pool* active
        cdef bint left = False
        if not self.entered:
            return
        active = <l0rt_active_pool*><uintptr_t>self.entered[-1]
        if thread != NULL and table.alive:
            with nogil:
                left = active_pools_remove(thread, active)
        self.entered.pop()
        if left:
            active_pool_drop(active)

    def __call__(self, function):
        """Return ``function`` as one that allocates from the pool."""
        if not callable(function):
            raise TypeError(f"use_mem_pool decorates functions, got {type(function).__name__}")

        return within(self.pool, None if self.device < 0 else self.device, function)


def within(pool, device, function):
    # outside of the class: a function without binding could not be given the name of another
    @wraps(function)
    def inside(*args, **kwargs):
        with use_mem_pool(pool, device):
            return function(*args, **kwargs)
    return inside


def trim_pools(device=None, Queue stream=None, MemPool pool=None):
    """Give back what one pool has cached, or what is cached outside of pools, of one stream or all, on one device or
    all."""
    cdef int i, only = -1
    cdef l0rt_private_pool* private_pool
    let_go()
    if device is not None:
        only = index_or_current(device)
    if stream is not None:
        if only >= 0 and only != stream.ptr.device.index:
            raise ValueError(f"device {only} is not the stream's device, {stream.ptr.device.index}")
        only = stream.ptr.device.index
    private_pool = NULL if pool is None else pool.private_pool
    for i in range(device_total()):
        if only < 0 or i == only:
            with nogil:
                trim(i, NULL if stream is None else stream.ptr, private_pool)


def change_current_allocator(allocator):
    """Make all device memory come from ``allocator``, without a cache.

    Parameters
    ----------
    allocator : PluggableAllocator or adaptor
        Its memory is not cached.

    Raises
    ------
    RuntimeError
        Device memory was allocated before.

    Notes
    -----
    The contract is that of ``torch.cuda.memory.change_current_allocator``.
    """
    cdef PluggableAllocator functions = functions_of(allocator)
    cdef int i
    for i in range(device_total()):
        if device_record(i).heap != NULL:
            raise RuntimeError("Can't swap an already initialized allocator")
    set_current(functions)


def index_or_current(device):
    """Return the index that ``device`` names; None: the current one."""
    lazy.init()
    index = index_of(device, current_device(), lazy.device_type)
    device_at(index)
    return index


def pointer_info(size_t ptr):
    """Return what is known of the allocation around an address, None if there is none."""
    cdef l0rt_block* block = block_find(<void*>ptr)
    cdef const l0rt_extent* extent
    cdef l0rt_stream* stream
    cdef int i
    if block == NULL:
        extent = shared_find(ptr)
        if extent == NULL:
            return None
        kind = "device" if extent.is_imported else "shared"
        return described_as(kind, extent.device, extent.base, extent.nbytes, extent.nbytes, None)
    stream = <l0rt_stream*>block_order(block)
    for i in range(device_total()):
        if block.arena.heap == device_record(i).heap or block.arena.heap == device_record(i).host_heap:
            return described_as(
                "host" if block.arena.heap == device_record(i).host_heap else "device", i, <size_t>block.ptr,
                block.size, block.requested, None if stream == NULL else stream.id)
    return None


cdef dict described_as(str kind, int device, size_t base, size_t size, size_t requested, stream):
    return {"kind": kind, "device": device, "base": base, "size": size, "requested": requested, "stream": stream}


def pool_of(id):
    """Return the `MemPool` with this ``id``, None if there is none any more."""
    found = _living.get(id)
    return None if found is None else found()


def keep_addresses(MemPool pool not None, bint keeps):
    """A graph or a checkpoint uses the pool's addresses from now on, or one does no more: as long as one does, no
    memory of it is given back. Return the address of the pool's record."""
    pool.pool.keep(keeps)
    if not keeps:
        reclaim()
    return <size_t>pool.private_pool


def record_use(size_t ptr, Queue stream=None):
    """A stream, or the current one, has used the allocation around an address: see `Buffer.record_use`."""
    cdef l0rt_block* block = block_find(<void*>ptr)
    cdef l0rt_stream* on
    cdef int status
    if block == NULL or not knows_streams(block.arena.heap):
        if shared_find(ptr) != NULL:    # the driver waits for who uses it
            return
        raise InvalidArgumentError(f"invalid device pointer: {ptr:#x} is in no allocation of l0rt")
    on = stream.ptr if stream is not None else current_stream(-1)
    with nogil:
        status = block_mark(block, on)
    if status != L0RT_OK:
        raise_status(status, <void*>ptr)


let_go_before_trim(forget_left)
enter_at_once((use_mem_pool,))
known_as(MemPool, b"l0rt.accelerator.MemPool")
known_as(XpuMemPool, b"l0rt.memory.MemPool")
