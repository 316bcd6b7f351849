# SPDX-License-Identifier: Apache-2.0
"""The stream pool: 32 streams for each device and priority, handed out in turn, and the device's default stream.

Beside the pool are streams with one holder: leased ones, and those over adopted lists. Their records are made when
they are needed, chained at the device, and used again once their holder has gone.

Who waits for a whole device waits for all of these, and for the queues beside l0rt that its driver knows.
"""

from cpython.exc cimport PyErr_Clear
from libc.stdint cimport UINT64_MAX, int64_t, uint64_t
from libc.stdlib cimport calloc

from l0rt.core.cmdlist cimport list_facts
from l0rt._base.interrupts cimport interrupt_defer
from l0rt.runtime.alloc.types cimport L0RT_INTERRUPTED
from l0rt.runtime.lazy cimport LazyInit
from l0rt.runtime.streams.capture cimport capture_lose, capture_refuse_device, captures
from l0rt.runtime.streams.devices cimport device_at, device_record, device_total, fill_stream
from l0rt.runtime.streams.event_pool cimport slot_acquire_kind, slot_release
from l0rt.runtime.streams.hooks cimport CAPTURES, DEVICE_SYNCHRONIZATION, STREAM_CREATION, call_hooks, hooked
from l0rt.runtime.streams.queue cimport (
    issued_try_end_event,
    progress,
    queue_give_back,
    queue_knows_peer,
    queue_open,
    queue_synchronize_by,
)
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport WAIT_ADAPTIVE, driver_synchronize, host_clock_ns, refuse, slot_rest
from l0rt.ze cimport table
from l0rt.ze.api cimport ze_command_list_handle_t, ze_device_handle_t

from l0rt import config
from l0rt.errors import L0Error
from l0rt.runtime.lazy import DRAIN, exit_time_left, on_exit
from l0rt.runtime.streams.devices import lazy
from l0rt.runtime.streams.wait import end_helpers

cdef extern from *:
    """
    #define l0rt_next(p) (__atomic_fetch_add((p), 1, __ATOMIC_RELAXED))
    """
    uint64_t l0rt_next(uint64_t*) noexcept nogil

cdef enum:
    FIRST_OTHER = 1 + 3 * 32    # the first id behind the pool's

cdef int _size = 0  # read with the first hand-out
cdef dict _owners = {}  # of adopted lists: kept alive as long as the stream is
cdef dict _returned = {}    # (device, priority, ordinal) -> addresses of the leased streams without a holder


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
    """Find a stream again by its id: 0 is the default stream, the pool's follow, then those that have a holder."""
    cdef l0rt_stream* stream
    if id == 0:
        return &device.default_stream
    if 1 <= id < FIRST_OTHER:
        return &device.pool[(id - 1) // L0RT_POOL_STREAMS][(id - 1) % L0RT_POOL_STREAMS]
    stream = device.others
    while stream != NULL:
        if stream.id == id and stream.live:
            return stream
        stream = stream.next
    with gil:
        raise ValueError(f"device {device.index} has no stream with the id {id}")


cdef l0rt_stream* next_stream(l0rt_device* device, l0rt_stream* last) noexcept nogil:
    if last == NULL:
        return &device.default_stream
    if last.id >= FIRST_OTHER:
        return last.next
    if last.id + 1 == FIRST_OTHER:
        return device.others
    return &device.pool[0][0] + last.id     # without a division: a wait for the device looks at each of them


cdef int streams_synchronize(l0rt_device* device, uint64_t timeout_ns, bint adopted) except -1 nogil:
    cdef uint64_t start = host_clock_ns(), spent = 0
    cdef l0rt_stream* stream = NULL
    while True:
        stream = next_stream(device, stream)
        if stream == NULL:
            return 1
        if l0rt_load64(&stream.issued) == 0 and not l0rt_load_int(&stream.shared):
            continue
        if stream.kind == STREAM_ADOPTED and not adopted:
            continue
        if timeout_ns != UINT64_MAX:
            spent = min(host_clock_ns() - start, timeout_ns)
        if not queue_synchronize_by(
                stream, timeout_ns - spent if timeout_ns != UINT64_MAX else UINT64_MAX, WAIT_ADAPTIVE):
            return 0


cdef void context_rest(l0rt_device* device) noexcept nogil:
    """Wait for everything that any stream of the device's context was given, without raising. What a signal handler
    raises meanwhile is raised afterwards: the caller gives memory back that must not be in use."""
    cdef l0rt_stream* stream
    cdef l0rt_slot* slot
    cdef bint interrupted = False
    cdef int i
    for i in range(device_total()):
        if device_record(i).context != device.context:
            continue
        stream = next_stream(device_record(i), NULL)
        while stream != NULL and table.alive and not l0rt_load_int(&stream.device.lost):
            if not known_idle(stream):
                slot = issued_try_end_event(stream)
                if slot == NULL:
                    with gil:
                        PyErr_Clear()       # a device that is being lost
                else:
                    while slot_rest(slot) == L0RT_INTERRUPTED:
                        interrupted = True
                    slot_release(slot)
            stream = next_stream(stream.device, stream)
    if interrupted:
        interrupt_defer()


cdef int device_synchronize(l0rt_device* device, uint64_t timeout_ns) except -1 nogil:
    cdef uint64_t start_ns = host_clock_ns(), spent
    cdef int idle
    if hooked >> CAPTURES & 1:
        capture_refuse_device(device, b"synchronize()")
    if not table.alive or l0rt_load_int(&device.lost):
        return refuse(device)
    idle = streams_synchronize(device, timeout_ns, True)
    if idle and device.caps.device_sync:
        spent = min(host_clock_ns() - start_ns, timeout_ns) if timeout_ns != UINT64_MAX else 0
        idle = driver_synchronize(device, timeout_ns - spent)
    if idle and hooked:
        call_hooks(DEVICE_SYNCHRONIZATION, device.index, 0, 0, 0)
    return idle


cdef l0rt_stream* add_other(l0rt_device* device, int priority, bint copies, int kind) except NULL:
    cdef l0rt_stream* stream = <l0rt_stream*>calloc(1, sizeof(l0rt_stream))
    if stream == NULL:
        raise MemoryError()
    fill_stream(stream, device, FIRST_OTHER if device.others == NULL else device.others.id + 1, priority, copies)
    stream.kind = kind
    stream.live = 1
    stream.next = device.others
    l0rt_store64(<uint64_t*>&device.others, <uint64_t>stream)   # complete before a walker without the GIL sees it
    return stream


cdef l0rt_stream* lease_stream(l0rt_device* device, int priority, bint copies) except NULL:
    cdef bint on_copy_engine = copies and device.info.copy_ordinal >= 0
    cdef int ordinal = device.info.copy_ordinal if on_copy_engine else device.info.compute_ordinal
    cdef l0rt_stream* stream
    cdef list returned = _returned.get((device.index, priority, ordinal))
    if not returned:
        return add_other(device, priority, on_copy_engine, STREAM_LEASED)
    stream = <l0rt_stream*><size_t>returned.pop()
    stream.live = 1
    return stream


cdef void return_stream(l0rt_stream* stream) noexcept:
    if captures(stream):
        capture_lose(stream)
    stream.live = 0
    _returned.setdefault((stream.device.index, stream.priority, stream.ordinal), []).append(<size_t>stream)


cdef l0rt_stream* find_list(l0rt_device* device, ze_command_list_handle_t list) noexcept:
    cdef l0rt_stream* stream = next_stream(device, NULL)
    while stream != NULL:
        if stream.list == list:
            return stream
        stream = next_stream(device, stream)
    return NULL


cdef l0rt_stream* adopt_list(l0rt_device* device, ze_command_list_handle_t list, owner) except NULL:
    cdef l0rt_stream* stream = find_list(device, list)
    cdef ze_device_handle_t on = device.handle
    cdef ze_context_handle_t context = device.context
    cdef int ordinal = device.info.compute_ordinal
    cdef bint immediate = True
    cdef l0rt_slot* mark
    if stream != NULL:          # adopted before, or l0rt's own
        hold_adopted(stream)
        return stream
    with nogil:
        list_facts(list, &immediate, &context, &on, &ordinal)
    if not immediate:
        raise ValueError("only immediate command lists can be adopted: a regular list runs nothing by itself")
    if on != device.handle:
        raise ValueError(f"the command list belongs to another device than {device.index}")
    if context != device.context:
        raise ValueError("the command list belongs to another context than l0rt's, whose memory it does not know: "
                         "make it in l0rt.xpu.native_context(), or let l0rt work in yours by l0rt.xpu.adopt_context()")
    stream = device.others
    while stream != NULL:       # a record whose last mark was passed: nothing of its former list is in flight
        if stream.kind == STREAM_ADOPTED and not stream.live:
            progress(stream)
            if l0rt_load64(&stream.done) >= stream.issued:
                break
        stream = stream.next
    if stream == NULL:
        with nogil:
            mark = slot_acquire_kind(device, SLOT_PLAIN)
        stream = add_other(device, 0, False, STREAM_ADOPTED)
        stream.mark = mark
    stream.live = 1
    stream.ordinal = ordinal
    # Of a group that l0rt makes no streams on, only as much is expected as of an engine that copies.
    stream.fill_limit = <size_t>-1 if ordinal == device.info.compute_ordinal else device.info.copy_fill_pattern
    stream.in_order = False     # no call reports it: barriers are correct for both kinds
    stream.shared = 1
    stream.dirty = True
    _owners[<size_t>stream] = owner
    l0rt_store_list(&stream.list, list)
    if hooked:
        call_hooks(STREAM_CREATION, <uint64_t>stream, 0, 0, 0)
    return stream


cdef void hold_adopted(l0rt_stream* stream) noexcept:
    if stream.kind == STREAM_ADOPTED:
        stream.live += 1


cdef void release_adopted(l0rt_stream* stream) noexcept:
    if stream.kind == STREAM_ADOPTED:
        stream.live -= 1
        if stream.live == 0:
            with nogil:
                queue_give_back(stream)
            _owners.pop(<size_t>stream, None)


def pool_state(int index):
    """Return how many streams of device ``index`` have a list, are leased, adopted, and idle in the lease's store."""
    cdef l0rt_device* device = device_at(index)
    cdef l0rt_stream* stream = next_stream(device, NULL)
    state = {"open": 0, "leased": 0, "returned": 0, "adopted": 0}
    while stream != NULL:
        state["open"] += stream.list != NULL
        state["leased"] += stream.kind == STREAM_LEASED and stream.live
        state["returned"] += stream.kind == STREAM_LEASED and not stream.live
        state["adopted"] += stream.kind == STREAM_ADOPTED and stream.live > 0
        stream = next_stream(device, stream)
    return state


def open_all():
    """Create what is otherwise created at its first use: the list of every stream, and the table of peers."""
    cdef l0rt_stream* stream
    cdef int i, peer
    for i in range(device_total()):
        stream = next_stream(device_at(i), NULL)
        while stream != NULL:
            if stream.kind != STREAM_ADOPTED:
                with nogil:
                    queue_open(stream)
            stream = next_stream(device_at(i), stream)
        for peer in range(device_total()):
            if peer != i:
                queue_knows_peer(device_at(i), device_at(peer))


def _opened():
    if config.get("lazy_init") == "0":
        open_all()


def drain():
    """Wait for all devices, as long as an exiting process may take; return whether all came to rest."""
    cdef uint64_t left_ns
    cdef int i
    for i in range(device_total()):
        left_ns = <uint64_t>(1e9 * exit_time_left())
        try:
            with nogil:
                if not streams_synchronize(device_at(i), left_ns, False):  # adopted lists may be destroyed already
                    device_at(i).lost = 1
        except (L0Error, RuntimeError, KeyboardInterrupt):
            device_at(i).lost = 1
    return not any(device_at(i).lost for i in range(device_total()))


(<LazyInit>lazy).call_for("the setting lazy_init", _opened)
on_exit(DRAIN, drain)
on_exit(DRAIN, end_helpers)      # behind it: what drains needs no helper any more
