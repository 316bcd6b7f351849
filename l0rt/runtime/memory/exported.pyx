# SPDX-License-Identifier: Apache-2.0
"""Memory that this process exports to others: the handles of blocks, and when an exported block is freed.

A process that exports has a ledger (runtime/streams/ledger.pyx). It has an entry for each exported block, with the
generation that is current. Who imports checks the generation, so that a handle of memory that was freed and reused is
refused, and has a lock on the entry as long as it uses the block. The kernel ends such a lock with its process, however
that ends: the exporter sees who is left, and frees the block after the last one.

The GIL is the lock of all records here.
"""

import os
import weakref

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport realloc
from libc.string cimport memcpy, memset

from l0rt.core.memory cimport l0rt_identity, memory_identify, memory_share, range_share, range_unshare
from l0rt.runtime.alloc.deferred_free cimport block_share
from l0rt.runtime.alloc.types cimport l0rt_block
from l0rt.runtime.memory.device cimport raise_status
from l0rt.runtime.memory.operations cimport block_let_go, set_shared_keeper, told
from l0rt.runtime.streams.ledger cimport *
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport device_fails
from l0rt.ze.api cimport *

from l0rt.errors import L0Error, UnsupportedError
from l0rt.runtime.memory.device import let_go_before_trim
from l0rt.runtime.streams import handle


cdef struct l0rt_export:
    l0rt_block* block           # NULL: free
    uint32_t next               # among the free, or among those whose Buffer is gone
    bint is_left                # its Buffer is gone, but other processes use it

cdef l0rt_export* _exports = NULL
cdef uint32_t _export_count = 0
cdef uint32_t _export_capacity = 0
cdef uint32_t _free = ENTRIES   # ENTRIES ends a list
cdef uint32_t _left = ENTRIES
cdef uint64_t _generation = 0
cdef dict _owners = {}          # entry -> weak reference to the Buffer
cdef dict _sent = {}            # entry -> the Buffer itself, until one process has imported each handle that was sent
cdef dict _shared = {}          # address of an allocation -> (its id, its size, the driver's handle)
cdef dict _ranges = {}          # entry -> (its address, id, size, the driver's handle), of a part of a range
RANGE_ID = 1 << 62              # and the generation: ids of allocations are smaller, those of physical memory larger


cdef bytes export_handle(owner, l0rt_block* block, l0rt_device* device, size_t offset, size_t nbytes, bint is_sent):
    cdef int64_t entry
    check_shares(device)
    uuid = bytes(device.info.uuid[:16])
    process = os.getpid(), began_here()
    if nbytes == 0:
        return handle.pack(handle.EMPTY, *process, *handle.NO_ENTRY, uuid, *handle.NO_BYTES)
    if block == NULL:
        raise UnsupportedError("this memory belongs to another process: pass on the handle that it came with, or copy "
                               "it to memory of this process")
    if block.segment.granules != NULL and not device.caps.range_ipc:
        raise UnsupportedError(
            "this memory is mapped in parts (an expandable segment), which drivers do not share as a whole. Allocate "
            "what other processes use from a pool that was made with interprocess=True (l0rt.memory.MemPool, "
            "l0rt.memory.use_mem_pool), or set L0RT_ALLOC_CONF=expandable_segments:False")
    exports_poll()
    if block.segment.granules != NULL:
        entry = exported(owner, block, range_offset(block))
        base, id, size, native = shared_range(device, block, entry)
    else:
        base, id, size, native = shared_allocation(device, block)
        entry = exported(owner, block, <size_t>block.ptr - base)
    if is_sent:
        _sent[entry] = owner
        l0rt_add_int(&own.entries[entry].sent, 1)
    return handle.pack(
        handle.DEVICE_MEMORY, *process, own.file, own.inode, entry, own.entries[entry].generation, uuid, id, size,
        <size_t>block.ptr - base, block.requested, offset, nbytes, handle.IS_SENT if is_sent else 0, pool_number(block),
        native)


cdef int64_t pool_number(l0rt_block* block) noexcept:
    return 0 if block.arena.private_pool == NULL else block.arena.private_pool.id[1]


cdef bytes export_pool(int64_t number):
    ledger_open()
    return handle.pack(handle.POOL, os.getpid(), began_here(), own.file, own.inode, number)


cdef int check_shares(l0rt_device* device) except -1:
    if not device.caps.memory_ipc:
        raise UnsupportedError(f"xpu:{device.index} cannot share memory with a process (`l0rt doctor` says why): "
                               "copy_to() copies it to memory of the host")
    return 0


cdef tuple shared_allocation(l0rt_device* device, l0rt_block* block):
    """Address, id and size of the driver's allocation around a block, and its handle, which is asked for once."""
    cdef l0rt_identity found
    cdef ze_ipc_mem_handle_t native
    cdef ze_context_handle_t context = device.context
    cdef void* ptr = block.ptr
    cdef ze_result_t r
    with nogil:
        r = memory_identify(context, ptr, &found)
        if r != ZE_RESULT_SUCCESS:
            device_fails(device, r)
    known = _shared.get(<size_t>found.base)
    if known is None or known[0] != found.id or known[1] != found.nbytes:
        with nogil:
            r = memory_share(context, found.base, &native)
            if r != ZE_RESULT_SUCCESS:
                device_fails(device, r)
        if len(_shared) >= 1024:        # most of these allocations are gone
            _shared.clear()
        known = _shared[<size_t>found.base] = (found.id, found.nbytes, native.data[:sizeof(native.data)])
    return <size_t>found.base, *known


cdef size_t range_offset(l0rt_block* block) noexcept:
    """Where the block begins in the whole granules around it."""
    return (<size_t>block.ptr - <size_t>block.segment.base) % block.arena.heap.granule


cdef tuple shared_range(l0rt_device* device, l0rt_block* block, int64_t entry):
    """Address, id and size of the granules around a block, and the driver's handle, which ends with the export."""
    cdef ze_ipc_mem_handle_t native
    cdef ze_context_handle_t context = device.context
    cdef size_t granule = block.arena.heap.granule, before = range_offset(block)
    cdef size_t nbytes = (before + block.size + granule - 1) // granule * granule
    cdef char* base = <char*>block.ptr - before
    cdef ze_result_t r
    known = _ranges.get(entry)
    if known is None:
        with nogil:
            r = range_share(context, base, nbytes, &native)
            if r != ZE_RESULT_SUCCESS:
                device_fails(device, r)
        known = _ranges[entry] = (<size_t>base, RANGE_ID + own.entries[entry].generation, nbytes,
                                  native.data[:sizeof(native.data)])
    return known


cdef int64_t exported(owner, l0rt_block* block, uint64_t offset) except -1:
    """The entry of a block, which is new for its first handle."""
    global _free, _export_count, _generation
    cdef uint32_t entry
    cdef int status
    ledger_open()
    known = weakref.ref(owner)      # first: it may collect garbage, which may be exported
    if block.shared != 0:
        return block.shared - 1
    if _free != ENTRIES:
        entry = _free
    elif _export_count < ENTRIES:
        exports_grow()
        entry = _export_count
    else:
        raise L0Error(f"this process shares {ENTRIES} blocks of memory: free some of them first")
    status = block_share(block, entry + 1)
    if status != 0:
        raise_status(status, block.ptr)
    if entry == _free:
        _free = _exports[entry].next
    else:
        _export_count += 1
    _generation += 1
    _exports[entry].block, _exports[entry].is_left = block, False
    own.entries[entry].offset, own.entries[entry].nbytes, own.entries[entry].sent = offset, block.requested, 0
    l0rt_store64(&own.entries[entry].generation, _generation)
    _owners[entry] = known
    return entry


cdef int exports_grow() except -1:
    global _exports, _export_capacity
    cdef l0rt_export* grown
    if _export_count == _export_capacity:
        grown = <l0rt_export*>realloc(_exports, (2 * _export_capacity + 16) * sizeof(l0rt_export))
        if grown == NULL:
            raise MemoryError("no host memory for the record of exported memory")
        _exports, _export_capacity = grown, 2 * _export_capacity + 16
    return 0


cdef object export_own(uint32_t entry, uint64_t generation, bint is_sent):
    if own.entries == NULL or entry >= _export_count or own.entries[entry].generation != generation:
        raise handle.stale()
    found = _owners[entry]()
    if found is None:
        raise handle.stale()
    if is_sent:
        sent_down(&own.entries[entry])
        exports_poll()
    return found


cdef void sent_down(l0rt_entry* entry) noexcept nogil:
    """A handle that was sent has come. Who imports one twice may end the wait for another one of the same memory."""
    if l0rt_add_int(&entry.sent, -1) < 0:
        l0rt_add_int(&entry.sent, 1)


cdef bint is_used_elsewhere(uint32_t entry) noexcept:
    """Is the block in use by another process? No handle of it is good any more."""
    cdef flock lock
    l0rt_store64(&own.entries[entry].generation, 0)    # first: who locks the entry later finds this
    memset(&lock, 0, sizeof(lock))
    lock.l_type, lock.l_start, lock.l_len = F_WRLCK, entry, 1
    return fcntl(own.file, F_OFD_GETLK, &lock) == 0 and lock.l_type != F_UNLCK


cdef void export_end(uint32_t entry) noexcept:
    global _free
    cdef l0rt_device* device = <l0rt_device*>_exports[entry].block.arena.heap.self
    cdef ze_ipc_mem_handle_t native
    known = _ranges.pop(<int64_t>entry, None)
    block_share(_exports[entry].block, 0)
    _exports[entry].block = NULL
    _exports[entry].next = _free
    _free = entry
    if known is not None:           # others run meanwhile
        memcpy(native.data, <const char*><bytes>known[3], sizeof(native.data))
        with nogil:
            told(device, range_unshare(device.context, &native), b"zeMemPutIpcHandle")


cdef bint export_keep(l0rt_block* block) noexcept:
    """The owner of an exported block frees it. True: it stays, for others use it."""
    global _left
    cdef uint32_t entry = <uint32_t>(block.shared - 1)
    if own.entries == NULL:                            # a forked child
        return False
    _owners.pop(entry, None)
    if is_used_elsewhere(entry):
        _exports[entry].is_left = True
        _exports[entry].next = _left
        _left = entry
        return True
    export_end(entry)
    return False


cdef void exports_poll() noexcept:
    """Free the blocks that no other process uses any more."""
    global _left
    cdef uint32_t entry, next
    cdef l0rt_block* block
    if _sent:                       # an empty list, too, might collect garbage
        for sent in list(_sent):
            if l0rt_add_int(&own.entries[<uint32_t>sent].sent, 0) <= 0:
                _sent.pop(sent, None)   # ends its Buffer, if nobody else has it
    entry = _left
    _left = ENTRIES                 # they are nobody else's meanwhile
    while entry != ENTRIES:
        next, block = _exports[entry].next, _exports[entry].block
        if is_used_elsewhere(entry):
            _exports[entry].next = _left
            _left = entry
        else:
            export_end(entry)
            with nogil:
                block_let_go(block)
        entry = next


def collect():
    """Free what was exported, has no owner any more, and is used by no other process any more."""
    exports_poll()


def exported_count():
    """Return how many allocations of this process have a handle: those that are alive, and those that other processes
    still use.

    Returns
    -------
    int
    """
    cdef uint32_t entry
    cdef int count = 0
    exports_poll()
    for entry in range(_export_count):
        count += _exports[entry].block != NULL
    return count


set_shared_keeper(export_keep)
let_go_before_trim(collect)
