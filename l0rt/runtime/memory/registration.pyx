# SPDX-License-Identifier: Apache-2.0
"""Pinned memory: which host memory is, how memory that is there already becomes it, and copies from and to it."""

cimport cython
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBuffer_Release
from libc.stdint cimport UINT64_MAX, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, realloc

from l0rt._base.arguments cimport address_in, checked_size, get_view, is_address, known_as
from l0rt.core.driver cimport driver_importer, l0rt_importer, pointer_import, pointer_release
from l0rt.core.memory cimport memory_import, memory_kind, memory_release
from l0rt.runtime.alloc.deferred_free cimport block_use
from l0rt.runtime.alloc.page_map cimport map_overlaps
from l0rt.runtime.alloc.types cimport l0rt_block
from l0rt.runtime.current.thread cimport current_device
from l0rt.runtime.memory.device cimport raise_status
from l0rt.runtime.memory.operations cimport machine_memory
from l0rt.runtime.memory.pinned cimport is_pinned as is_allocated
from l0rt.runtime.streams.copy cimport l0rt_rows, queue_move, queue_move_wait
from l0rt.runtime.streams.devices cimport core_device, device_at
from l0rt.runtime.streams.hooks cimport MEMORY_USE, note
from l0rt.runtime.streams.naming cimport index_of
from l0rt.runtime.streams.queue cimport about_to_wait, queue_synchronize
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport refuse
from l0rt.ze cimport table
from l0rt.ze.api cimport (
    ZE_MEMORY_TYPE_UNKNOWN, ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY, ZE_RESULT_SUCCESS, ze_memory_type_t, ze_result_t,
)
from l0rt.ze.status cimport DROP

from l0rt._base import callers
from l0rt.errors import UnsupportedError
from l0rt.runtime.lazy import MEMORY, on_exit
from l0rt.runtime.streams.devices import lazy
from l0rt.ze.status import error_of

cdef extern from *:
    """
    #include <errno.h>
    #include <sys/mman.h>
    #ifndef MADV_POPULATE_READ
    #define MADV_POPULATE_READ 22
    #endif

    /* Can every page be read? Linux before 5.14 says only which pages are mapped. */
    static int l0rt_is_readable(char *base, size_t size) {
      enum { PAGE = 4096, AT_ONCE = 4096 };
      unsigned char present[AT_ONCE];
      if (madvise(base, size, MADV_POPULATE_READ) == 0) return 1;
      if (errno != EINVAL || madvise(base, 0, MADV_POPULATE_READ) == 0) return 0;
      for (size_t at = 0, part; at < size; at += part) {
        part = size - at < (size_t)AT_ONCE * PAGE ? size - at : (size_t)AT_ONCE * PAGE;
        if (mincore(base + at, part, present) != 0) return 0;
      }
      return 1;
    }
    """
    bint is_readable "l0rt_is_readable" (char* base, size_t size) noexcept nogil

cdef enum:
    HOST_PAGE = 4096                # what a driver imports is a multiple of it

cdef str NEEDS_PINNED = ("non_blocking=True needs pinned memory on the host side: l0rt.empty(n, kind='host'), "
                         "or l0rt.memory.register()")


cdef struct l0rt_registered:             # registered memory. The GIL guards all of them
    char* start
    size_t nbytes
    char* base                      # whole pages
    size_t span
    l0rt_device* device             # of whose context it is
    l0rt_importer importer          # cached_imports: whose functions have imported it
    bint is_changing                # it is not registered yet, or just no more
    int copies                      # being given to a stream just now
    l0rt_stream** streams           # that were given some
    int stream_count
    Py_buffer view                  # of the object whose memory it is: it cannot go meanwhile
    bint has_view
    l0rt_registered* next

cdef l0rt_registered* _registered = NULL


cdef l0rt_registered* held_of(const void* start, size_t nbytes) noexcept:
    """The registered memory that has all of these bytes."""
    cdef l0rt_registered* held = _registered
    cdef size_t offset
    while held != NULL:
        offset = <size_t>start - <size_t>held.start
        if not held.is_changing and offset < held.nbytes and nbytes <= held.nbytes - offset:
            return held
        held = held.next
    return NULL


cdef bint is_registered(const void* start, size_t nbytes) noexcept:
    return held_of(start, nbytes) != NULL


cdef bint overlaps(char* base, size_t span) noexcept:
    cdef l0rt_registered* held = _registered
    while held != NULL:
        if base < held.base + held.span and held.base < base + span:
            return True
        held = held.next
    return False


cdef int held_use(l0rt_registered* held, l0rt_stream* stream) except -1:
    cdef l0rt_stream** grown
    cdef int i
    for i in range(held.stream_count):
        if held.streams[i] == stream:
            return 0
    grown = <l0rt_stream**>realloc(held.streams, (held.stream_count + 1) * sizeof(l0rt_stream*))
    if grown == NULL:
        raise MemoryError("no host memory for the record of a stream")
    held.streams = grown
    grown[held.stream_count] = stream
    held.stream_count += 1
    return 0


cdef void held_drop(l0rt_registered* held) noexcept:
    """Forget the memory, which the driver has given up."""
    global _registered
    cdef l0rt_registered** link = &_registered
    while link[0] != held:
        link = &link[0].next
    link[0] = held.next
    held_free(held)


cdef ze_result_t held_begin(l0rt_registered* held) noexcept nogil:
    if held.span > machine_memory():
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY
    if held.importer.begin != NULL:
        return pointer_import(&held.importer, held.base, held.span)
    return memory_import(held.device.context, held.base, held.span)


cdef ze_result_t held_end(l0rt_registered* held) noexcept nogil:
    if held.importer.begin != NULL:
        return pointer_release(&held.importer, held.base)
    return memory_release(held.device.context, False, held.base)


cdef void held_free(l0rt_registered* held) noexcept:
    if held.has_view:
        PyBuffer_Release(&held.view)
    free(held.streams)
    free(held)


@cython.binding(False)
cdef class Registration:
    """Host memory that devices copy from and to directly. Made by `register`; ends with `unregister` or a with block.

    Dropped without that, the memory stays pinned, and is kept, for as long as the process lives: a ResourceWarning.
    """
    cdef l0rt_registered* held

    def __init__(self):
        raise TypeError("make a Registration with l0rt.memory.register(memory)")

    @property
    def ptr(self):
        """The address of the memory as an integer, 0 once it is registered no more."""
        return <size_t>self.held.start if self.held != NULL else 0

    @property
    def nbytes(self):
        """How many bytes are registered, 0 once none are."""
        return self.held.nbytes if self.held != NULL else 0

    def unregister(self):
        """Wait for the copies that streams were given, and let the memory be ordinary memory; twice is harmless."""
        cdef l0rt_registered* held = self.held
        cdef ze_result_t r = ZE_RESULT_SUCCESS
        cdef int i
        if held == NULL or held.is_changing:
            return
        if held.copies:
            raise BufferError("another thread is giving a copy with this memory to a stream")
        if not table.alive:         # a forked child, or exit: the registration belongs to the parent, or has ended
            self.held = NULL
            held_drop(held)
            return
        held.is_changing = True
        try:
            with nogil:
                for i in range(held.stream_count):
                    if not held.device.lost:
                        queue_synchronize(held.streams[i], UINT64_MAX)
        except BaseException:
            held.is_changing = False
            raise
        self.held = NULL
        with nogil:
            r = held_end(held)
        held_drop(held)
        if r != ZE_RESULT_SUCCESS:
            raise error_of(r)

    def __enter__(self):
        if self.held == NULL:
            raise ValueError("the memory is not registered any more")
        return self

    def __exit__(self, kind, value, trace):
        self.unregister()

    def __repr__(self):
        if self.held == NULL:
            return "<l0rt.memory.Registration ended>"
        return f"<l0rt.memory.Registration {<size_t>self.held.start:#x} {self.held.nbytes} bytes>"

    def __dealloc__(self):
        if self.held != NULL and table.alive:
            warn_of(self.held)


cdef void warn_of(l0rt_registered* held) noexcept:
    callers.warn_late(f"registered memory at {<size_t>held.start:#x}, {held.nbytes} bytes, was dropped without "
                      "unregister(): it stays pinned", ResourceWarning)


def register(memory, nbytes=None, *, device=None):
    """Pin host memory of other software, and return a `Registration` that ends this.

    Until then copies between it and the devices of ``device``'s context need no staging, and may be non-blocking. The
    registration keeps an object's memory alive; memory at an address is the caller's to keep.

    Parameters
    ----------
    memory : bytes-like or int
        The object, or an address.
    nbytes : int, optional
        The size in bytes, of an address.
    device : int, str, device or None, optional
        The device in whose context the memory is pinned. None is the current device.

    Returns
    -------
    Registration
        The registration, which ends with `unregister` or at the end of a with block.

    Raises
    ------
    UnsupportedError
        The driver cannot pin memory. The message says why.
    ValueError
        The memory is l0rt's or the driver's own, is registered already, or cannot be read.
    TypeError
        ``memory`` is an address without ``nbytes``, or it is no memory at all.
    DeviceIndexError
        There is no device with this index.

    Notes
    -----
    It uses ``ZE_extension_external_memmap_sysmem`` of Level Zero, which imports whole pages. CUDA's counterpart is
    ``cudaHostRegister``.
    """
    global _registered
    cdef l0rt_device* record
    cdef l0rt_registered* held
    cdef Registration made
    cdef ze_result_t r
    cdef uintptr_t start, end
    lazy.init()
    record = device_at(index_of(device, current_device(), lazy.device_type))
    held = <l0rt_registered*>calloc(1, sizeof(l0rt_registered))
    if held == NULL:
        raise MemoryError("no host memory for a registration")
    try:
        held_fill(held, memory, nbytes)
        start = <uintptr_t>held.start & ~<uintptr_t>(HOST_PAGE - 1)
        end = (<uintptr_t>held.start + held.nbytes + HOST_PAGE - 1) & ~<uintptr_t>(HOST_PAGE - 1)
        held.base, held.span, held.device = <char*>start, end - start, record
        check_free(held)
        if not table.alive or record.lost:
            refuse(record)
        if not record.caps.memmap:
            raise UnsupportedError(
                "this driver pins no memory that is there already: it lacks the extension "
                "ZE_extension_external_memmap_sysmem, or L0RT_DISABLE has memmap. Copies from such memory are staged; "
                "l0rt.empty(n, kind='host') is pinned memory")
        if record.foreign_imports:
            raise UnsupportedError(
                "this driver pins memory that is there already for its first device only (`l0rt doctor` names the "
                "quirk single_device_imports). Copies from such memory are staged; l0rt.empty(n, kind='host') is "
                "pinned memory")
        check_readable(held)
        if record.cached_imports:
            driver_importer(core_device(record.index).driver, &held.importer)
            if held.importer.begin == NULL:
                raise UnsupportedError(
                    "this driver hands memory that was registered on to later allocations (`l0rt doctor` names the "
                    "quirk cached_imports), and lacks zexDriverImportExternalPointer, which does not. Copies of such "
                    "memory are staged; l0rt.empty(n, kind='host') is pinned")
        made = Registration.__new__(Registration)
    except BaseException:
        held_free(held)
        raise
    held.is_changing = True         # no copy uses it yet, and no other call registers its pages
    held.next = _registered
    _registered = held
    with nogil:
        r = held_begin(held)
    if r != ZE_RESULT_SUCCESS:
        held_drop(held)
        raise error_of(r)
    held.is_changing = False
    made.held = held
    return made


cdef int held_fill(l0rt_registered* held, memory, nbytes) except -1:
    """Return the memory to register, from the arguments."""
    cdef uintptr_t address
    if is_address(memory):
        if nbytes is None:
            raise TypeError("register() of an address takes nbytes too")
        address = address_in(memory, 1)
        held.start, held.nbytes = <char*>address, checked_size(nbytes)
        if address > UINT64_MAX - HOST_PAGE or held.nbytes > UINT64_MAX - HOST_PAGE - address:
            raise ValueError(f"{nbytes} bytes at {<size_t>address:#x} exceed the address space")
    else:
        if nbytes is not None:
            raise TypeError("register() takes nbytes with an address only: an object knows its size")
        get_view(memory, &held.view, PyBUF_C_CONTIGUOUS, "register")
        held.has_view = True
        held.start, held.nbytes = <char*>held.view.buf, held.view.len
    if held.nbytes == 0:
        raise ValueError("the memory to register has 0 bytes")
    return 0


cdef int check_free(l0rt_registered* held) except -1:
    cdef l0rt_block* block = NULL
    if is_allocated(held.start, &block) or is_allocated(held.start + held.nbytes - 1, &block):
        raise ValueError("this is already pinned memory of l0rt")
    if map_overlaps(held.start, 1) or map_overlaps(held.start + held.nbytes - 1, 1):
        refuse_memory(held, "l0rt's own: only memory of other software is registered")
    if overlaps(held.base, held.span):
        raise ValueError("this memory is already registered, or shares a page with registered memory: "
                         "register what is next to each other at once")
    return 0


cdef int check_readable(l0rt_registered* held) except -1:
    """The driver would import addresses without memory, and copies would fail much later."""
    cdef bint readable, own
    cdef ze_memory_type_t first, last
    with nogil:
        first = memory_kind(held.device.context, held.start)
        last = memory_kind(held.device.context, held.start + held.nbytes - 1)
        readable = is_readable(held.base, held.span)
        own = readable and map_overlaps(held.base, held.span)       # bounded: there is memory everywhere
    if first != ZE_MEMORY_TYPE_UNKNOWN or last != ZE_MEMORY_TYPE_UNKNOWN:
        refuse_memory(held, "the driver's already: only memory of other software is registered")
    if not readable:
        refuse_memory(held, "not all memory that this process can read")
    if own:
        refuse_memory(held, "partly l0rt's own: only memory of other software is registered")
    return 0


cdef int refuse_memory(l0rt_registered* held, str why) except -1:
    raise ValueError(f"register(): {held.nbytes} bytes at {<size_t>held.start:#x} are {why}")


def is_pinned(memory):
    """Return whether host memory is pinned: allocated by ``kind="host"`` or registered.

    Parameters
    ----------
    memory : bytes-like or int
        The object, or an address.

    Returns
    -------
    bool
    """
    cdef l0rt_block* block = NULL
    cdef Py_buffer view
    cdef uintptr_t address
    if is_address(memory):
        address = address_in(memory, 0)
        return is_allocated(<void*>address, &block) or held_of(<void*>address, 1) != NULL
    if getattr(memory, "kind", None) == "device":
        return False
    get_view(memory, &view, PyBUF_C_CONTIGUOUS, "is_pinned")
    try:
        return is_allocated(view.buf, &block) or (view.len != 0 and held_of(view.buf, view.len) != NULL)
    finally:
        PyBuffer_Release(&view)


cdef bint copy_pinned(void* dst, const void* src, const void* host, size_t nbytes, const l0rt_rows* rows,
                      l0rt_stream* on, bint non_blocking) except -1:
    cdef l0rt_block* block = NULL
    cdef l0rt_registered* held = NULL
    cdef int status
    if is_allocated(host, &block):  # another object owns it: it is not reused before the copy is complete
        status = block_use(block, on)
        if status != 0:
            raise_status(status, block.ptr)
        note(MEMORY_USE, <uint64_t>block.ptr, <uint64_t>on, 0)
    else:
        held = held_of(host, nbytes)
        if held == NULL or held.device.context != on.device.context or on.device.foreign_imports:
            if non_blocking:
                raise ValueError(NEEDS_PINNED)
            return False
        held_use(held, on)
        held.copies += 1
    try:
        if not non_blocking:
            about_to_wait(
                "a copy from or to host memory without non_blocking=True (copy_from, copy_to, memcpy, memcpy2d)", on)
        with nogil:
            if non_blocking:
                queue_move(on, dst, src, nbytes, rows)
            else:
                queue_move_wait(on, dst, src, nbytes, rows)
    finally:
        if held != NULL:
            held.copies -= 1
    return True


def _close():
    """At exit, end the registrations that remain. The operating system frees the memory."""
    cdef l0rt_registered* held = _registered
    while held != NULL:
        if not held.device.lost:
            with nogil:
                DROP(held_end(held), b"the end of a registration")
        held = held.next


on_exit(MEMORY, _close)


known_as(Registration, b"l0rt.memory.Registration")
