# SPDX-License-Identifier: Apache-2.0
"""What streams wait for: a report of those that are not idle, on demand and when a wait times out."""

import sys

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from l0rt.runtime.current.thread cimport current_device
from l0rt.runtime.streams.devices cimport device_at, device_record, device_total
from l0rt.runtime.streams.naming cimport index_of, only_built_in
from l0rt.runtime.streams.queue cimport queue_name, progress
from l0rt.runtime.streams.stream_pool cimport next_stream
from l0rt.runtime.streams.types cimport *
from l0rt.ze cimport table

from l0rt import callers
from l0rt.runtime.streams.devices import lazy


def name_at(size_t address):
    """Return the repr of the stream that `l0rt.xpu.gpu_trace` tells by this number."""
    cdef l0rt_stream* stream
    cdef int i
    for i in range(device_total()):
        stream = next_stream(device_record(i), NULL)
        while stream != NULL:
            if <size_t>stream == address:
                return queue_name(stream)
            stream = next_stream(device_record(i), stream)
    return f"stream {address:#x}" if address else "no stream"


cdef list waits_of(l0rt_stream* stream, uint64_t done):
    """One line for each remembered wait that the stream may still be in."""
    cdef l0rt_waited* wait
    cdef l0rt_waited last[4]
    cdef uint64_t have
    cdef uint32_t i, waits
    if pthread_mutex_trylock(&stream.lock) != 0:    # not waited for: an append holds it, which may block
        return ["    a command is being appended"]
    waits = stream.waits
    memcpy(last, stream.waited, sizeof(last))
    pthread_mutex_unlock(&stream.lock)
    lines = []
    for i in range(4):
        wait = &last[(waits + i) % 4]       # oldest first
        if wait.seq > done and wait.stream != NULL:
            have = l0rt_load64(&wait.stream.done)
            if have < wait.stream_seq:
                lines.append(f"    command {wait.seq} waits for command {wait.stream_seq} of "
                             f"{queue_name(wait.stream)}, which has done {have} of {l0rt_load64(&wait.stream.issued)}")
    return lines


def stuck_report(device=None):
    """Return what each stream that is not idle has done and waits for, a line each; empty if all are idle.

    ``device``: an index, None for all devices. Nothing is waited for. Of the built-in device type:
    NotImplementedError where another is meant.
    """
    cdef int only = -1
    only_built_in(device, "report of streams that are stuck")
    if device is not None:
        only = index_of(device, current_device(), lazy.device_type)
        device_at(only)
    return report_of(only)


cdef str report_of(int only):
    """The report of one device, or with -1 of all."""
    cdef l0rt_stream* stream
    cdef int i
    lines = []
    for i in range(device_total()) if only < 0 else (only,):
        stream = next_stream(device_at(i), NULL)
        while stream != NULL:
            if stream.list != NULL and l0rt_load64(&stream.done) < l0rt_load64(&stream.issued) and table.alive:
                with nogil:             # once to put the mark behind everything, once to look at it
                    progress(stream)
                    progress(stream)
            stream = next_stream(device_at(i), stream)
        stream = next_stream(device_at(i), NULL)
        while stream != NULL:
            done = l0rt_load64(&stream.done)
            if stream.list != NULL and done < l0rt_load64(&stream.issued):
                lines.append(f"{queue_name(stream)}: {done} of {l0rt_load64(&stream.issued)} commands done, on queue "
                             f"{stream.ordinal}.{stream.queue}{', lost' if stream.device.lost else ''}")
                lines += waits_of(stream, done)
            stream = next_stream(device_at(i), stream)
    return "\n".join(lines)


cdef int log_stuck(l0rt_stream* stream) except -1:
    logging = sys.modules.get("logging")  # its import is a tenth of l0rt's; nobody listens where nobody has it
    if logging is None:
        return 0
    log = logging.getLogger("l0rt.stream")
    if log.isEnabledFor(logging.INFO):
        log.info("a wait for %s timed out\n%s", queue_name(stream), report_of(stream.device.index),
                 stacklevel=callers.level())
    return 0
