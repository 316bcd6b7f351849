# SPDX-License-Identifier: Apache-2.0
"""The timeline: each command that streams are given while a profile runs, between two stamps of the device's clock.

A stamp is a command of its own, zeCommandListAppendWriteGlobalTimestamp, in the order of the stream: the first is
written once everything before the command is complete, the second once the command is. So the intervals of one stream
never overlap, on every kind of list, and nothing waits. Nothing is allocated while a profile runs.
"""

cimport cython
from libc.stdint cimport UINT64_MAX, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy
from posix.time cimport clock_gettime, timespec

from l0rt.core.cmdlist cimport list_timestamp
from l0rt.core.device cimport device_clocks
from l0rt.core.memory cimport Allocation, memory_kind
from l0rt._base.factory cimport made_by
from l0rt.runtime.alloc.atomics cimport mutex_init, mutex_lock, mutex_unlock
from l0rt.runtime.alloc.page_map cimport map_find
from l0rt.runtime.alloc.types cimport l0rt_block
from l0rt.runtime.lazy cimport on_fork_child
from l0rt.runtime.streams.devices cimport core_context, device_at, device_record, device_total
from l0rt.runtime.streams.hooks cimport COPY, EVENT_WAIT, FILL, GRAPH_REPLAY, KERNEL_LAUNCH, note_timeline
from l0rt.runtime.streams.order cimport before
from l0rt.runtime.streams.types cimport *
from l0rt.ze.api cimport (
    ZE_MEMORY_TYPE_DEVICE,
    ZE_MEMORY_TYPE_HOST,
    ZE_MEMORY_TYPE_SHARED,
    ZE_RESULT_SUCCESS,
    ze_memory_type_t,
    ze_result_t,
)

from l0rt.errors import UnsupportedError
from l0rt.runtime.lazy import EVENTS, on_exit
from l0rt.runtime.streams.devices import lazy
from l0rt.ze.status import error_of

cdef extern from *:
    """
    #include <sys/syscall.h>
    #include <time.h>
    #include <unistd.h>
    static __thread int l0rt_own_tid;
    static int l0rt_thread_id(void) {
      if (l0rt_own_tid == 0) l0rt_own_tid = (int)syscall(SYS_gettid);
      return l0rt_own_tid;
    }
    static void l0rt_new_thread_id(void) { l0rt_own_tid = 0; } /* a forked child's thread is another */
    """
    int thread_id "l0rt_thread_id" () noexcept nogil
    void new_thread_id "l0rt_new_thread_id" () noexcept nogil
    int CLOCK_MONOTONIC_RAW

cdef enum:
    READINGS = 8        # of both clocks

KINDS_OF_COMMANDS = {KERNEL_LAUNCH: "kernel", COPY: "copy", FILL: "fill", EVENT_WAIT: "wait",
                     GRAPH_REPLAY: "graph"}
PLACES = {PLACE_UNKNOWN: None, PLACE_HOST: "host", PLACE_DEVICE: "device", PLACE_SHARED: "shared"}


@cython.final
@cython.binding(False)
cdef class Timeline:
    """The commands of one profile. Made by `begin_timeline`."""
    cdef l0rt_command* commands
    cdef uint64_t count, most, dropped
    cdef uint64_t* stamps[64]       # by device
    cdef list memory                # what has the stamps

    def __dealloc__(self):
        free(self.commands)


made_by(Timeline, "a Timeline is made by begin_timeline()")

cdef Timeline _running = None
cdef pthread_mutex_t _lock          # of the three below, inside a stream's lock
cdef l0rt_command* _commands = NULL     # of the profile that runs
cdef uint64_t _count = 0, _most = 0, _dropped = 0
cdef uint64_t* _stamps[64]

cdef list _kept = []                # every Timeline whose stamps a device may still write, or whose commands are shown
cdef list _names = []               # addresses of the names that are freed when there is none any more


cdef inline uint64_t raw_clock_ns() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC_RAW, &now)
    return <uint64_t>now.tv_sec * 1000000000 + <uint64_t>now.tv_nsec


# --- While a profile runs.


cdef l0rt_command* new_command(l0rt_stream* stream, int kind) noexcept nogil:
    cdef l0rt_command* command = NULL
    cdef uint64_t* stamps
    if stream.kind == STREAM_RECORDED:      # it runs when its graph does: then there may be no profile any more
        return NULL
    mutex_lock(&_lock)
    stamps = _stamps[stream.device.index]
    if _commands != NULL and stamps != NULL:
        if _count == _most:
            _drop()
        else:
            command = &_commands[_count]
            command.stamps = stamps + 2 * _count
            command.stream = stream     # before it is counted
            _add()
    mutex_unlock(&_lock)
    if command != NULL:
        command.kind = kind
        command.thread = thread_id()
        command.called_ns = raw_clock_ns()
    return command


cdef inline void _drop() noexcept nogil:
    global _dropped
    _dropped += 1


cdef inline void _add() noexcept nogil:
    global _count
    l0rt_store64(&_count, _count + 1)


cdef ze_result_t add_stamp(l0rt_stream* stream, uint64_t* where) noexcept nogil:
    cdef ze_result_t r = before(stream)
    return r if r != ZE_RESULT_SUCCESS else list_timestamp(stream.list, where, NULL)


cdef l0rt_command* begun(l0rt_command* command) noexcept nogil:
    """Stamp the beginning. A driver that refuses a stamp does not keep the command from its stream."""
    if add_stamp(command.stream, command.stamps) == ZE_RESULT_SUCCESS:
        return command
    l0rt_store_int(&command.state, COMMAND_FAILED)
    return NULL


cdef l0rt_command* timeline_add(
        l0rt_stream* stream, int kind, const void* target, const void* source, uint64_t nbytes) noexcept nogil:
    cdef l0rt_command* command = new_command(stream, kind)
    if command == NULL:
        return NULL
    command.nbytes = nbytes
    if kind == COPY:
        command.source = place_of(stream.device, source, &command.source_device)
        command.target = place_of(stream.device, target, &command.target_device)
    return begun(command)


cdef l0rt_command* timeline_add_kernel(
        l0rt_stream* stream, const char* name, const uint32_t* groups, const uint32_t* group_size) noexcept nogil:
    cdef l0rt_command* command = new_command(stream, KERNEL_LAUNCH)
    if command == NULL:
        return NULL
    command.name = name
    memcpy(command.groups, groups, sizeof(command.groups))
    memcpy(command.group_size, group_size, sizeof(command.group_size))
    return begun(command)


cdef void end_command(l0rt_command* command, ze_result_t result) noexcept nogil:
    if result == ZE_RESULT_SUCCESS:
        result = add_stamp(command.stream, command.stamps + 1)
    command.number = command.stream.issued
    command.returned_ns = raw_clock_ns()
    l0rt_store_int(&command.state, COMMAND_APPENDED if result == ZE_RESULT_SUCCESS else COMMAND_FAILED)


cdef int place_of(l0rt_device* near, const void* address, int* device) noexcept nogil:
    """Look at l0rt's own map first; only of other memory is the driver asked."""
    cdef l0rt_block* block = map_find(address)
    cdef ze_memory_type_t kind
    cdef int i
    device[0] = near.index
    if block != NULL:
        for i in range(device_total()):
            if block.arena.heap == device_record(i).heap:
                device[0] = i
                return PLACE_DEVICE
            if block.arena.heap == device_record(i).host_heap:
                return PLACE_HOST
    kind = memory_kind(near.context, address)
    if kind == ZE_MEMORY_TYPE_DEVICE:
        return PLACE_DEVICE
    if kind == ZE_MEMORY_TYPE_HOST:
        return PLACE_HOST
    return PLACE_SHARED if kind == ZE_MEMORY_TYPE_SHARED else PLACE_UNKNOWN


# --- The beginning and the end of a profile. All of these have the GIL.


def clocks(int index):
    """Return the host's clock (CLOCK_MONOTONIC_RAW) in nanoseconds and device ``index``'s in ticks, at one moment.

    A driver reads one after the other. Of some readings the quickest counts: in a slow one, the thread may have been
    interrupted in between.
    """
    cdef l0rt_device* device = device_at(index)
    cdef uint64_t host_ns = 0, ticks = 0, one_host_ns = 0, one_ticks = 0, began_ns, took_ns, least_ns = UINT64_MAX
    cdef ze_result_t r
    cdef int _i
    if not device.caps.global_ts:
        raise UnsupportedError(f"device {index} cannot be profiled: its driver cannot read both clocks "
                               "(zeDeviceGetGlobalTimestamps)")
    for _i in range(READINGS):
        with nogil:
            began_ns = raw_clock_ns()
            r = device_clocks(device.handle, &one_host_ns, &one_ticks)
            took_ns = raw_clock_ns() - began_ns
        if r != ZE_RESULT_SUCCESS:
            raise error_of(<long>r)     # the device is no more lost than before
        if took_ns < least_ns:
            least_ns, host_ns, ticks = took_ns, one_host_ns, one_ticks
    return host_ns, ticks


def clock_facts(int index):
    """Return how many bits of device ``index``'s clock count, and how many ticks a second has."""
    cdef l0rt_device* device = device_at(index)
    return device.info.timestamp_bits, device.info.timer_hz


def begin_timeline(most, list begun not None):
    """Begin to stamp the commands of all streams, ``most`` at the most, and append their Timeline to ``begun``.

    RuntimeError if another profile runs.
    """
    global _running, _commands, _count, _most, _dropped
    cdef Timeline made = Timeline.__new__(Timeline)
    cdef Allocation memory
    cdef int i, other
    lazy.init()
    check_alone()
    made.memory = []
    made.most = most
    made.commands = <l0rt_command*>calloc(most, sizeof(l0rt_command))
    if made.commands == NULL:
        raise MemoryError()
    try:
        for i in range(device_total()):
            if device_record(i).lost:
                continue
            for other in range(i):
                if device_record(other).context == device_record(i).context and made.stamps[other] != NULL:
                    made.stamps[i] = made.stamps[other]
            if made.stamps[i] == NULL:
                memory = Allocation.host(core_context(i), most * 2 * sizeof(uint64_t))
                made.memory.append(memory)
                made.stamps[i] = <uint64_t*>memory._h
        check_alone()       # others ran meanwhile
    except BaseException:
        close_memory(made)
        raise
    _kept.append(made)
    begun.append(made)
    _running = made
    mutex_lock(&_lock)
    memcpy(_stamps, made.stamps, sizeof(_stamps))
    _commands, _most = made.commands, made.most
    _count = _dropped = 0
    mutex_unlock(&_lock)
    note_timeline(True)


cdef int check_alone() except -1:
    if _running is not None:
        raise RuntimeError("a profile is running already: one runs at a time, for all threads")
    return 0


def end_timeline(Timeline timeline not None):
    """Stamp no further command; what streams were given before goes on. False: it is over already."""
    global _running, _commands
    if timeline is not _running:
        return False
    note_timeline(False)
    mutex_lock(&_lock)
    _commands = NULL
    timeline.count, timeline.dropped = _count, _dropped
    mutex_unlock(&_lock)
    _running = None
    return True


def devices(Timeline timeline not None):
    """Return the indices of the devices whose commands are stamped: all but lost ones."""
    return [i for i in range(device_total()) if timeline.stamps[i] != NULL]


def counted():
    """Return how many commands the profile that runs has recorded so far."""
    return l0rt_load64(&_count) if _running is not None else 0


def kept():
    """Return how many profiles have memory."""
    return len(_kept)


def dropped(Timeline timeline not None):
    """Return how many commands had no place."""
    return timeline.dropped


def unfinished_streams(Timeline timeline not None):
    """Return the addresses of the streams that may not have come past all their stamps.

    None if a thread is still appending a command.
    """
    cdef l0rt_command* command
    cdef uint64_t i
    found = {}
    for i in range(timeline.count):
        command = &timeline.commands[i]
        if l0rt_load_int(&command.state) == COMMAND_BEGUN:
            return None
        if not command.stream.device.lost and l0rt_load64(&command.stream.done) < command.number:
            found[<size_t>command.stream] = None
    return list(found)


def commands(Timeline timeline not None):
    """Return the commands in the order in which they were appended: (kind, name, device, stream's address and id,
    first stamp, second stamp, call, return, thread, bytes or a graph's nodes, source, its device, target, its device,
    groups, group size).

    The stamps are ticks; both are 0 if the device did not come so far. What was refused is left out.
    """
    cdef l0rt_command* command
    cdef uint64_t i
    found = []
    for i in range(timeline.count):
        command = &timeline.commands[i]
        if l0rt_load_int(&command.state) != COMMAND_APPENDED:
            continue
        found.append((
            KINDS_OF_COMMANDS[command.kind],
            None if command.name == NULL else command.name.decode("utf-8", "replace"),
            command.stream.device.index, <size_t>command.stream, command.stream.id,
            command.stamps[0], command.stamps[1], command.called_ns, command.returned_ns, command.thread,
            command.nbytes, PLACES[command.source], command.source_device, PLACES[command.target],
            command.target_device, command.groups if command.name != NULL else None,
            command.group_size if command.name != NULL else None))
    return found


def drop(Timeline timeline not None):
    """Free what the stamps are in, and with the last Timeline the names."""
    if timeline in _kept:
        _kept.remove(timeline)
        timeline.count = 0
        close_memory(timeline)
        free(timeline.commands)
        timeline.commands = NULL
    if not _kept:
        free_names()


cdef void close_memory(Timeline timeline) noexcept:
    for memory in timeline.memory:
        (<Allocation>memory).close()


cdef void free_names() noexcept:
    while _names:
        free(<void*><size_t>_names.pop())


cdef void timeline_free(char* name) noexcept:
    if _kept:
        _names.append(<size_t>name)
    else:
        free(name)


cdef void forget_timeline() noexcept nogil:
    """In a forked child no profile runs: its stamps are the parent's."""
    global _commands
    mutex_init(&_lock, NULL)
    _commands = NULL
    note_timeline(False)
    new_thread_id()


def _close():
    """At exit: nothing runs any more."""
    global _running
    if _running is not None:
        end_timeline(_running)
    while _kept:
        drop(_kept[0])


mutex_init(&_lock, NULL)
on_fork_child(forget_timeline)
on_exit(EVENTS, _close)
