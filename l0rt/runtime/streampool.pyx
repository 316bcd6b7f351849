"""The stream pool: 32 streams a device and priority, handed out in turn; the device's default stream beside them."""

from libc.stdint cimport UINT64_MAX, int64_t, uint64_t

from l0rt.runtime.devices cimport device_at, device_total
from l0rt.runtime.idle cimport lane_synchronize
from l0rt.runtime.records cimport *
from l0rt.runtime.waits cimport host_clock_ns

from l0rt import config
from l0rt.errors import L0Error
from l0rt.runtime.lazy import DRAIN, on_exit

cdef extern from *:
    """
    #define l0rt_next(p) (__atomic_fetch_add((p), 1, __ATOMIC_RELAXED))
    """
    uint64_t l0rt_next(uint64_t*) noexcept nogil

cdef uint64_t EXIT_WAIT_NS = 5_000_000_000

cdef int _size = 0  # read with the first hand-out


cdef int read_size() except -1:
    global _size
    _size = config.get("stream_pool_size")
    return 0


cdef l0rt_stream* pool_stream(l0rt_device* device, int priority) except NULL nogil:
    """Hand out the next stream of a priority: below zero high, zero normal, above low."""
    cdef int level = 0 if priority < 0 else 1 if priority == 0 else 2
    if _size == 0:
        with gil:
            read_size()
    return &device.pool[level][l0rt_next(&device.next_stream[level]) % _size]


cdef l0rt_stream* stream_by_id(l0rt_device* device, int64_t id) except NULL nogil:
    """Find a stream again by its id: 0 is the default stream, the pool's follow."""
    if id == 0:
        return &device.default_stream
    if 1 <= id <= 3 * L0RT_POOL_STREAMS:
        return &device.pool[(id - 1) // L0RT_POOL_STREAMS][(id - 1) % L0RT_POOL_STREAMS]
    with gil:
        raise ValueError(f"device {device.index} has no stream with the id {id}")


cdef int device_synchronize(l0rt_device* device, uint64_t timeout_ns) except -1 nogil:
    """Wait for everything that was appended to any stream of the device."""
    cdef uint64_t start = host_clock_ns(), spent = 0
    cdef l0rt_stream* stream
    cdef int i
    for i in range(3 * L0RT_POOL_STREAMS + 1):
        stream = stream_by_id(device, i)
        if stream.issued == 0:
            continue
        if timeout_ns != UINT64_MAX:
            spent = min(host_clock_ns() - start, timeout_ns)
        if not lane_synchronize(stream, timeout_ns - spent if timeout_ns != UINT64_MAX else UINT64_MAX):
            return 0
    return 1


def drain():
    """Wait for all devices, as long as an exiting process may take; a device that cannot finish is left alone."""
    cdef int i
    for i in range(device_total()):
        try:
            with nogil:
                device_synchronize(device_at(i), EXIT_WAIT_NS)
        except (L0Error, RuntimeError, KeyboardInterrupt):
            device_at(i).lost = 1


on_exit(DRAIN, drain)
