"""Device memory by its address, which nothing owns."""

from libc.stdint cimport uintptr_t

from l0rt.arguments cimport checked_size
from l0rt.runtime.alloc.heap cimport block_raw, raw_free
from l0rt.runtime.alloc.types cimport L0RT_OK, l0rt_block
from l0rt.runtime.current.thread cimport stream_or_current
from l0rt.runtime.memory.device cimport malloc_slow, raise_status
from l0rt.runtime.streams.queue cimport Lane
from l0rt.runtime.streams.types cimport *


def malloc(nbytes, device=None, Lane stream=None):
    """Return the address of ``nbytes`` bytes in a stream's order; 0 for 0 bytes."""
    cdef size_t size = checked_size(nbytes)
    cdef l0rt_block* block
    cdef void* ptr
    cdef l0rt_stream* on = stream_or_current(device, stream)
    if size == 0:
        return 0
    with nogil:
        block = malloc_slow(on, size)
        ptr = block_raw(block)
    return <uintptr_t>ptr


def free(size_t address):
    """Free the allocation that starts at ``address``."""
    cdef int status = L0RT_OK
    with nogil:
        if address != 0:
            status = raw_free(<void*>address)
    if status != L0RT_OK:
        raise_status(status, <void*>address)
