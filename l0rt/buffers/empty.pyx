# SPDX-License-Identifier: Apache-2.0
"""`l0rt.empty`: memory of the built-in device type, or what another type's allocator serves."""

from cpython.exc cimport PyErr_Clear
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint64_t

from l0rt._base.arguments cimport checked_size, vectorcall, vectorcall_replace
from l0rt.buffers cimport buffer as buffer_module
from l0rt.buffers.buffer cimport Buffer_check_free, DEVICE, HOST, KINDS, SHARED, Buffer, new_buffer
from l0rt.buffers.foreign cimport serve
from l0rt.runtime.alloc.atomics cimport load
from l0rt.runtime.alloc.deferred_free cimport block_order
from l0rt.runtime.alloc.heap cimport heap_restore, l0rt_place
from l0rt.runtime.alloc.types cimport L0RT_INVALID_POINTER, L0RT_OK, l0rt_block, l0rt_heap, l0rt_private_pool
from l0rt.runtime.current.thread cimport stream_or_current
from l0rt.runtime.memory.active_pool cimport block_at_hand, fill_host
from l0rt.runtime.memory.device cimport malloc_slow, raise_status, shared_take
from l0rt.runtime.memory.pinned cimport host_malloc_for, pool_asked
from l0rt.runtime.streams.capture cimport capture_refuse_device
from l0rt.runtime.streams.devices cimport device_at, pickled_index
from l0rt.runtime.streams.hooks cimport MEMORY_ALLOCATION, note
from l0rt.runtime.streams.naming cimport current_type, device as device_name, other, type_named
from l0rt.runtime.streams.queue cimport Queue
from l0rt.runtime.streams.types cimport *

from l0rt.errors import L0Error
from l0rt.runtime.memory.device import free as free_address
from l0rt.runtime.streams.devices import lazy

cdef extern from "Python.h":
    size_t PyLong_AsSize_t(object) noexcept     # -1 with an error set: looked at below
    Py_ssize_t PyVectorcall_NARGS(size_t) noexcept

cdef str DEVICE_NAME = "device"
cdef size_t MOST = (<size_t>1 << 62) - 1


cdef bint is_elsewhere(device, stream) except -1:
    """Is a buffer asked for that another device type's allocator serves?"""
    type = type_named(device)
    if type is None and stream is not None:
        return not isinstance(stream, Queue) and hasattr(stream, "device_index")
    return (current_type() if type is None else type) != lazy.device_type


def empty(nbytes, *, device=None, stream=None, str kind="device", numa=None):
    """Return a Buffer of ``nbytes`` uninitialised bytes.

    Device memory and pinned memory come from caching allocators. Of another device type the memory comes from the
    allocator that `l0rt.interface.register_allocator` gave; ``"cpu"`` is plain memory of the process, of kind ``host``.

    Parameters
    ----------
    nbytes : int
        The size in bytes, below 2**62. 0 gives a buffer without memory.
    device : int, str, device or None, optional
        None is the current device. It may be of any registered type; ``"cpu"`` needs no driver.
    stream : Stream or None, optional
        The stream in whose order device memory is used and reused. None is the device's current stream.
    kind : "device", "host" or "shared", optional
        Device memory, pinned host memory, or memory that both the device and the host can use.
    numa : int, "any" or None, optional
        The node of the machine for pinned memory. None is the one near the device, "any" leaves it to Linux.

    Returns
    -------
    Buffer

    Raises
    ------
    OutOfMemoryError
        The device or the limit has no memory left. The message says what holds the memory.
    ValueError
        The size is negative or too large, ``kind`` is not one of these, or ``numa`` is no node.
    DeviceIndexError
        There is no device with this index.

    Notes
    -----
    Contents are undefined, as those of ``torch.empty``. Device memory is reused in the order of a stream, as torch's
    caching allocator and ``cudaMallocAsync`` do it.
    """
    cdef size_t size = checked_size(nbytes)
    cdef bint plain = device is None and stream is None and numa is None and <void*>kind == <void*>DEVICE_NAME
    cdef Buffer buffer = hit(size) if plain and size != 0 else None
    return buffer if buffer is not None else empty_slow(size, device, stream, kind, numa)


cdef inline Buffer hit(size_t size):
    """Return device memory of the current stream that is at hand, or None."""
    cdef l0rt_stream* on
    cdef l0rt_block* block = block_at_hand(size, &on) if other == NULL else NULL
    return new_buffer(size, on, on.device, DEVICE, block) if block != NULL else None


cdef PyObject* call_empty(PyObject* function, PyObject* const* args, size_t count, PyObject* names) except NULL:
    """Call `empty`. Most calls have a size alone: no other argument is looked for, and what is at hand is served."""
    cdef Buffer buffer
    cdef size_t size
    if names == NULL and PyVectorcall_NARGS(count) == 1 and PyLong_CheckExact(<object>args[0]):
        size = PyLong_AsSize_t(<object>args[0])
        buffer = hit(size) if size - 1 < MOST else None
        if buffer is not None:
            Py_INCREF(buffer)
            return <PyObject*>buffer
        PyErr_Clear()                   # negative or huge: `empty` says so
    return called(function, args, count, names)


cdef vectorcall called = vectorcall_replace(empty, call_empty)


cdef Buffer empty_slow(size_t size, device, stream, str kind, numa):
    cdef l0rt_block* block = NULL
    cdef l0rt_private_pool* pool = NULL
    cdef bint is_given = numa is not None
    cdef l0rt_stream* on
    cdef Buffer buffer
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    if is_given and (kind != "host" or is_elsewhere(device, stream)):
        raise ValueError("numa is for pinned memory, which is kind='host' of the built-in device type")
    if is_elsewhere(device, stream):
        return serve(size, device, stream, kind)
    if stream is not None and not isinstance(stream, Queue):
        raise TypeError(f"expected a Stream, got {type(stream).__name__}")
    on = stream_or_current(device, <Queue>stream)
    if is_given:
        pool = pool_asked(on.device, numa)
    if size == 0:
        return new_buffer(0, on, on.device, KINDS.index(kind), NULL)
    if kind == "device":
        with nogil:
            block = malloc_slow(on, size)
        return new_buffer(size, on, on.device, DEVICE, block)
    if kind == "host":
        with nogil:
            block = host_malloc_for(on, size, pool, is_given)
        buffer = new_buffer(size, on, on.device, HOST, block)
        fill_host(block.ptr, block.size)
        return buffer
    buffer = new_buffer(size, on, on.device, SHARED, NULL)
    buffer.pointer = shared_take(on.device, size)
    fill_host(buffer.pointer, size)
    note(MEMORY_ALLOCATION, <uint64_t>buffer.pointer, size, <uint64_t>on)
    return buffer


def restore(size_t record, int index, stale, places):
    """Free the Buffers and the addresses of ``stale``, and allocate again what a pool, given by its record, had on a
    device: address, size and requested size of each. Return its Buffers, in the same order: all of them, or none.
    RuntimeError if a place is in use."""
    cdef l0rt_device* device = device_at(index)
    cdef l0rt_private_pool* private_pool = <l0rt_private_pool*>record
    cdef int64_t count = len(places), failed = 0, i
    cdef bytearray records = bytearray((count + 1) * sizeof(l0rt_place))
    cdef bytearray storage = bytearray((count + 1) * sizeof(void*))
    cdef l0rt_place* requests = <l0rt_place*><char*>records
    cdef l0rt_block** blocks = <l0rt_block**><char*>storage
    cdef l0rt_heap* heap
    cdef Buffer buffer
    cdef int status
    capture_refuse_device(device, b"set_checkpoint_pool_state()")
    for item in stale:
        if isinstance(item, Buffer):
            Buffer_check_free(<Buffer>item)
    buffers = [new_buffer(requested, NULL, device, DEVICE, NULL) for _, _, requested in places]
    for i, (address, size, requested) in enumerate(places):
        requests[i].ptr, requests[i].size, requests[i].requested = <void*><size_t>address, size, requested
    for item in stale:
        if isinstance(item, Buffer):
            item.free()
        else:
            free_address(item)
    heap = <l0rt_heap*>load(&device.heap)
    if count == 0:
        return buffers
    with nogil:
        status = heap_restore(heap, private_pool, requests, count, blocks, &failed)
    if status == L0RT_INVALID_POINTER:
        raise L0Error(f"the checkpoint of the memory pool {tuple(private_pool.id)} cannot be restored: the memory at "
                      f"{places[failed][0]:#x} is in use. No other thread may allocate from the pool meanwhile")
    if status != L0RT_OK:
        raise_status(status, NULL)
    for i in range(count):
        buffer = buffers[i]
        buffer.block, buffer.pointer, buffer.stream = blocks[i], blocks[i].ptr, <l0rt_stream*>block_order(blocks[i])
    for buffer in buffers:            # only now, for hooks run code of the program
        note(MEMORY_ALLOCATION, <uint64_t>buffer.pointer, buffer.nbytes, <uint64_t>buffer.stream)
    return buffers


def rebuild(data, kind, type, index, bytes uuid=None):
    """Return a new Buffer with these contents, on what `l0rt.device` would be unpickled as; on the current device if
    that is not here: the contents are what was asked for."""
    if type == lazy.device_type:
        index = pickled_index(index, uuid)
        if index < 0:
            index = None
    return empty(memoryview(data).nbytes, device=device_name(type, index), kind=kind).copy_from(data)


buffer_module.rebuild = rebuild
