# SPDX-License-Identifier: Apache-2.0
"""Launches in C: what the Python classes and the C API are made of.

A kernel object of the driver is not thread-safe, and has the arguments of its next launch: a lock of the kernel's makes
arguments and launch one step.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from l0rt.core.module cimport (
    kernel_cooperative_groups,
    kernel_set_argument,
    kernel_set_group_size,
    kernel_set_offset,
    kernel_suggest_group_size,
)
from l0rt.kernels.built cimport (
    l0rt_kernel,
    l0rt_launched,
    l0rt_module,
    module_check,
    module_release,
    module_retain,
    module_sweep,
    module_unuse,
    module_use,
)
from l0rt.runtime.alloc.atomics cimport mutex_lock, mutex_unlock
from l0rt.runtime.streams.capture cimport NODE_KERNEL, capture_add, captures, l0rt_node
from l0rt.runtime.streams.hooks cimport KERNEL_LAUNCH, note
from l0rt.runtime.streams.queue cimport queue_open, queue_try_launch
from l0rt.runtime.streams.sleep cimport ANY_SLEEP, is_any_asleep, refuse_asleep, sleeps
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport device_fails
from l0rt.ze.api cimport ZE_RESULT_NOT_READY, ZE_RESULT_SUCCESS, ze_result_t

from l0rt.errors import UnsupportedError

cdef uint32_t[3] NOWHERE = [0, 0, 0]     # where global ids begin of themselves


cdef l0rt_launched* launch_on(l0rt_kernel* kernel, l0rt_stream* stream) noexcept nogil:
    """Where the kernel's last launch on a stream is kept; NULL: no memory. The kernel's lock is held."""
    cdef uint32_t i, capacity
    cdef l0rt_launched* grown
    for i in range(kernel.launched_count):
        if kernel.launched[i].stream == stream:
            return &kernel.launched[i]
    if kernel.launched_count == kernel.launched_capacity:
        capacity = max(2 * kernel.launched_capacity, <uint32_t>4)
        grown = <l0rt_launched*>realloc(kernel.launched, capacity * sizeof(l0rt_launched))
        if grown == NULL:
            return NULL
        kernel.launched, kernel.launched_capacity = grown, capacity
    kernel.launched[kernel.launched_count].stream = stream
    kernel.launched[kernel.launched_count].seq = 0
    kernel.launched_count += 1
    return &kernel.launched[kernel.launched_count - 1]


cdef ze_result_t set_size(l0rt_kernel* kernel, const uint32_t* size) noexcept nogil:
    cdef ze_result_t r
    if kernel.group_size[0] == size[0] and kernel.group_size[1] == size[1] and kernel.group_size[2] == size[2]:
        return ZE_RESULT_SUCCESS
    r = kernel_set_group_size(kernel.handle, size)
    memcpy(kernel.group_size, size, sizeof(kernel.group_size))
    if r != ZE_RESULT_SUCCESS:
        kernel.group_size[0] = 0
    return r


cdef ze_result_t set_global_offset(l0rt_kernel* kernel, const uint32_t* offset) noexcept nogil:
    cdef ze_result_t r
    if offset == NULL:
        offset = &NOWHERE[0]
    if kernel.offset[0] == offset[0] and kernel.offset[1] == offset[1] and kernel.offset[2] == offset[2]:
        return ZE_RESULT_SUCCESS
    r = kernel_set_offset(kernel.handle, offset)
    if r == ZE_RESULT_SUCCESS:          # else the driver has changed nothing
        memcpy(kernel.offset, offset, sizeof(kernel.offset))
    return r


cdef inline ze_result_t set_argument(l0rt_kernel* kernel, uint32_t at, const l0rt_arg* arg) noexcept nogil:
    cdef ze_result_t r = kernel_set_argument(kernel.handle, at, arg.size, arg.value)
    if r != ZE_RESULT_SUCCESS and is_zero(arg):
        # Intel's driver of 2022 takes an address that it has allocated, or no value: no value is the null pointer.
        return kernel_set_argument(kernel.handle, at, arg.size, NULL)
    return r


cdef enum:
    NO_MEMORY = -1
    CLOSED = -2
    ASLEEP = -3
    TOO_MANY = -4       # groups, of a cooperative launch


cdef int launch_locked(
        l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* size, const uint32_t* offset, const l0rt_arg* args,
        uint32_t count, bint cooperative, l0rt_stream* stream) noexcept nogil:
    """A driver's result, or one of the codes above. Nothing raises, for the kernel's lock is held."""
    cdef l0rt_launched* launched
    cdef uint64_t seen
    cdef int status
    if l0rt_load_int(&kernel.module.closed):
        return CLOSED
    launched = launch_on(kernel, stream)
    if launched == NULL:
        return NO_MEMORY
    while True:
        seen = l0rt_load64(&sleeps)
        if is_any_asleep() and argument_asleep(args, count) != NULL:
            return ASLEEP
        status = append_locked(kernel, groups, size, offset, args, count, cooperative, stream, seen, &launched.seq)
        if status != ZE_RESULT_NOT_READY or l0rt_load64(&sleeps) == seen:
            return status


cdef inline int append_locked(
        l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* size, const uint32_t* offset, const l0rt_arg* args,
        uint32_t count, bint cooperative, l0rt_stream* stream, uint64_t seen, uint64_t* seq) noexcept nogil:
    cdef int status = set_locked(kernel, groups, size, offset, args, count, cooperative)
    if status != ZE_RESULT_SUCCESS:
        return status
    return queue_try_launch(stream, kernel.handle, kernel.name, groups, kernel.group_size, cooperative, seen, seq)


cdef inline int set_locked(
        l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* size, const uint32_t* offset, const l0rt_arg* args,
        uint32_t count, bint cooperative) noexcept nogil:
    """Set the group size and the arguments. No driver has to refuse too many groups of a cooperative launch."""
    cdef ze_result_t r = set_size(kernel, size)
    cdef uint32_t i, most = 0
    if r == ZE_RESULT_SUCCESS:
        r = set_global_offset(kernel, offset)
    for i in range(count):
        if r != ZE_RESULT_SUCCESS:
            return r
        r = set_argument(kernel, i, &args[i])
    if r == ZE_RESULT_SUCCESS and cooperative:
        r = kernel_cooperative_groups(kernel.handle, &most)
        if r == ZE_RESULT_SUCCESS and <uint64_t>groups[0] * groups[1] * groups[2] > most:
            return TOO_MANY
    return r


cdef int kernel_launch(
        l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* size, const uint32_t* offset, const l0rt_arg* args,
        uint32_t count, bint cooperative, l0rt_stream* stream) except -1 nogil:
    cdef int status
    if count != kernel.argument_count or stream.device != kernel.module.device or not fits(kernel, groups, size):
        return refuse_launch(kernel, groups, size, count, stream)
    if offset != NULL:
        check_offset(kernel, groups, size, offset)
    if local_bytes_of(kernel, args, count) > kernel.module.most_local_bytes:
        return refuse_local(kernel, local_bytes_of(kernel, args, count))
    if captures(stream) and record_launch(kernel, groups, size, offset, args, count, cooperative, stream):
        return 0
    queue_open(stream)                  # may need the GIL: before the lock
    mutex_lock(&kernel.lock)
    status = launch_locked(kernel, groups, size, offset, args, count, cooperative, stream)
    mutex_unlock(&kernel.lock)
    if status == ASLEEP:
        return refuse_asleep(argument_asleep(args, count), NULL)
    if status == TOO_MANY:
        return refuse_cooperative(kernel, groups, size, args, count)
    if status != ZE_RESULT_SUCCESS:
        queue_open(stream)              # raises where the list was given back to its owner
        return fail(kernel, status)
    note(KERNEL_LAUNCH, <uint64_t>stream, <uint64_t>kernel, 0)
    return 0


def _name_at(kernel):
    """Return the name of the kernel that a hook is being called for."""
    return (<l0rt_kernel*><size_t>kernel).name.decode("utf-8", "replace")


# --- Launches of a graph. Its module stays until the graph is dropped.


cdef l0rt_recorded_launch* launch_copy(
        l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* size, const uint32_t* offset, const l0rt_arg* args,
        uint32_t count, bint cooperative) noexcept nogil:
    cdef size_t nbytes = sizeof(l0rt_recorded_launch) + count * sizeof(l0rt_arg)
    cdef l0rt_recorded_launch* made
    cdef char* at
    cdef uint32_t i
    for i in range(count):
        nbytes += (args[i].size + 7) & ~<size_t>7 if args[i].value != NULL else 0
    made = <l0rt_recorded_launch*>malloc(nbytes)
    if made == NULL:
        return NULL
    made.kernel, made.count, made.cooperative, made.changed = kernel, count, cooperative, NULL
    memcpy(made.groups, groups, sizeof(made.groups))
    memcpy(made.group_size, size, sizeof(made.group_size))
    memcpy(made.offset, offset if offset != NULL else &NOWHERE[0], sizeof(made.offset))
    at = <char*>&made.args[count]
    for i in range(count):
        made.args[i] = args[i]
        if args[i].value != NULL:
            memcpy(at, args[i].value, args[i].size)
            made.args[i].value = at
            at += (args[i].size + 7) & ~<size_t>7
    return made


cdef l0rt_recorded_launch* launch_changed(
        l0rt_recorded_launch* launch, uint32_t count, const uint32_t* which, const l0rt_arg* args,
        const uint32_t* groups, const uint32_t* size, uint64_t now) noexcept nogil:
    cdef l0rt_arg* values = <l0rt_arg*>malloc((launch.count + 1) * sizeof(l0rt_arg))
    cdef uint64_t* changed = launch.changed
    cdef l0rt_recorded_launch* made = NULL
    cdef uint32_t i
    if changed == NULL:
        changed = <uint64_t*>calloc(launch.count + 2, sizeof(uint64_t))
    if values != NULL and changed != NULL:
        memcpy(values, launch.args, launch.count * sizeof(l0rt_arg))
        for i in range(count):
            values[which[i]] = args[i]
        made = launch_copy(launch.kernel, groups if groups != NULL else launch.groups,
                           size if size != NULL else launch.group_size, launch.offset, values, launch.count,
                           launch.cooperative)
    free(values)
    if made == NULL:
        if changed != launch.changed:
            free(changed)
        return NULL
    for i in range(count):
        changed[which[i]] = now
    if groups != NULL:
        changed[launch.count] = now
    if size != NULL:
        changed[launch.count + 1] = now
    made.changed, launch.changed = changed, NULL
    return made


cdef int launch_check(
        const l0rt_recorded_launch* launch, const uint32_t* groups, const uint32_t* size,
        const l0rt_arg* args) except -1:
    cdef l0rt_kernel* kernel = launch.kernel
    cdef uint64_t local_bytes = local_bytes_of(kernel, args, launch.count)
    cdef uint32_t most = 0
    if not fits(kernel, groups, size):
        refuse_launch(kernel, groups, size, kernel.argument_count, NULL)
    if local_bytes > kernel.module.most_local_bytes:
        refuse_local(kernel, local_bytes)
    if launch.cooperative:
        with nogil:
            kernel_most_cooperative(kernel, size, args, launch.count, &most)
        if <uint64_t>groups[0] * groups[1] * groups[2] > most:
            raise_cooperative(kernel, groups, most)
    return 0


cdef int record_launch(
        l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* size, const uint32_t* offset, const l0rt_arg* args,
        uint32_t count, bint cooperative, l0rt_stream* stream) except -1 nogil:
    """1: recorded, 0: nothing is captured from the stream any more."""
    cdef l0rt_node node
    cdef int added = 0, status = CLOSED
    check_arguments(args, count)
    if cooperative:
        mutex_lock(&kernel.lock)
        if not l0rt_load_int(&kernel.module.closed):
            status = set_locked(kernel, groups, size, offset, args, count, True)
        mutex_unlock(&kernel.lock)
        if status == TOO_MANY:
            return refuse_cooperative(kernel, groups, size, args, count)
        if status != ZE_RESULT_SUCCESS:
            return fail(kernel, status)
    memset(&node, 0, sizeof(node))
    node.kind = NODE_KERNEL
    node.payload = launch_copy(kernel, groups, size, offset, args, count, cooperative)
    with gil:
        if node.payload == NULL:
            raise MemoryError()
        try:
            module_use(kernel.module)
        except ValueError:              # it was closed
            free(node.payload)
            raise
        module_retain(kernel.module)
        try:
            added = capture_add(stream, &node)
        finally:
            if added != 1:
                launch_drop(<l0rt_recorded_launch*>node.payload)
                free(node.payload)
    return added


cdef int kernel_append(const l0rt_recorded_launch* launch, l0rt_stream* list) except -1 nogil:
    cdef l0rt_kernel* kernel = launch.kernel
    cdef int r
    cdef uint64_t seq
    mutex_lock(&kernel.lock)
    r = append_locked(kernel, launch.groups, launch.group_size, launch.offset, launch.args, launch.count,
                      launch.cooperative, list, ANY_SLEEP, &seq)
    mutex_unlock(&kernel.lock)
    if r == TOO_MANY:
        return refuse_cooperative(kernel, launch.groups, launch.group_size, launch.args, launch.count)
    return 0 if r == ZE_RESULT_SUCCESS else device_fails(list.device, <ze_result_t>r)


cdef void launch_drop(l0rt_recorded_launch* launch) noexcept:
    cdef l0rt_module* module = launch.kernel.module
    free(launch.changed)
    launch.changed = NULL
    module_unuse(module)
    module_release(module)
    module_sweep()


cdef inline bint fits(const l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* size) noexcept nogil:
    """Are both sizes within the device's limits, and above 0?"""
    cdef const l0rt_module* module = kernel.module
    for i in range(3):
        if groups[i] - 1 >= module.most_groups[i] or size[i] - 1 >= module.most_items[i]:   # 0 becomes the largest
            return False
    return <uint64_t>size[0] * size[1] * size[2] <= module.most_items_of_group


cdef int refuse_launch(
        l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* size, uint32_t count,
        l0rt_stream* stream) except -1 nogil:
    with gil:
        name = kernel.name.decode("utf-8", "replace")
        if count != kernel.argument_count:
            refuse_count(kernel, count)
        if stream != NULL and stream.device != kernel.module.device:
            raise ValueError(f"{name}() is of device {kernel.module.device.index}, the stream of device "
                             f"{stream.device.index}")
        check_limits(f"{name}(): groups", [groups[i] for i in range(3)],
                     [kernel.module.most_groups[i] for i in range(3)])
        check_limits(f"{name}(): group_size", [size[i] for i in range(3)],
                     [kernel.module.most_items[i] for i in range(3)])
        raise ValueError(f"a group of {name}() must have at most {kernel.module.most_items_of_group} work-items, got "
                         f"{size[0]} x {size[1]} x {size[2]}")


cdef int check_offset(
        l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* size, const uint32_t* offset) except -1 nogil:
    cdef bint good = kernel.module.device.caps.global_offset
    for i in range(3):
        good = good and offset[i] + <uint64_t>groups[i] * size[i] <= <uint64_t>1 << 32
    return 0 if good else refuse_offset(kernel, groups, size, offset)


cdef int refuse_offset(
        l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* size, const uint32_t* offset) except -1 nogil:
    with gil:
        name = kernel.name.decode("utf-8", "replace")
        if not kernel.module.device.caps.global_offset:
            raise UnsupportedError(f"{name}(): device {kernel.module.device.index} has no global offsets: see "
                                   "global_offset of `l0rt doctor`")
        items = [groups[i] * <uint64_t>size[i] for i in range(3)]
        raise ValueError(f"{name}(): global ids must be below 2**32, got {items} work-items from "
                         f"{[offset[i] for i in range(3)]} on")


cdef inline uint64_t local_bytes_of(const l0rt_kernel* kernel, const l0rt_arg* args, uint32_t count) noexcept nogil:
    """The local memory of a group: what the kernel declares, and its arguments."""
    cdef uint64_t total = kernel.local_bytes
    for i in range(count):
        if args[i].value == NULL:
            total += args[i].size
    return total


cdef int refuse_local(l0rt_kernel* kernel, uint64_t nbytes) except -1 nogil:
    with gil:
        name = kernel.name.decode("utf-8", "replace")
        raise ValueError(f"a group of {name}() would have {nbytes} bytes of local memory: the device has "
                         f"{kernel.module.most_local_bytes}")


cdef int refuse_cooperative(
        l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* size, const l0rt_arg* args,
        uint32_t count) except -1 nogil:
    cdef uint32_t most = 0
    kernel_most_cooperative(kernel, size, args, count, &most)
    with gil:
        return raise_cooperative(kernel, groups, most)


cdef int raise_cooperative(l0rt_kernel* kernel, const uint32_t* groups, uint32_t most) except -1:
    name = kernel.name.decode("utf-8", "replace")
    raise ValueError(f"a cooperative launch of {name}() may have at most {most} groups of this size, got "
                     f"{groups[0]} x {groups[1]} x {groups[2]}")


cdef int refuse_count(l0rt_kernel* kernel, uint64_t count) except -1:
    name = kernel.name.decode("utf-8", "replace")
    raise TypeError(f"{name}() takes {kernel.argument_count} arguments, got {count}")


cdef int check_limits(str what, list values, list most) except -1:
    for axis, value, limit in zip("xyz", values, most):
        if not 1 <= value <= limit:
            raise ValueError(f"{what} must be 1 to {limit} along {axis}, got {value}")
    return 0


cdef int fail(l0rt_kernel* kernel, int status) except -1 nogil:
    if status == CLOSED:
        with gil:
            module_check(kernel.module)
    if status == NO_MEMORY:
        with gil:
            raise MemoryError()
    return device_fails(kernel.module.device, status)


cdef int kernel_suggest(l0rt_kernel* kernel, const uint32_t* global_size, uint32_t* size) except -1 nogil:
    cdef int status = CLOSED
    mutex_lock(&kernel.lock)
    if not l0rt_load_int(&kernel.module.closed):
        status = kernel_suggest_group_size(kernel.handle, global_size, size)
    mutex_unlock(&kernel.lock)
    return 0 if status == ZE_RESULT_SUCCESS else fail(kernel, status)


cdef int kernel_most_cooperative(
        l0rt_kernel* kernel, const uint32_t* size, const l0rt_arg* args, uint32_t count,
        uint32_t* most) except -1 nogil:
    cdef int status = CLOSED
    cdef uint32_t i
    if local_bytes_of(kernel, args, count) > kernel.module.most_local_bytes:
        return refuse_local(kernel, local_bytes_of(kernel, args, count))
    mutex_lock(&kernel.lock)
    if not l0rt_load_int(&kernel.module.closed):
        status = set_size(kernel, size)
    for i in range(count):              # the driver counts the local memory that the kernel was given last
        if status == ZE_RESULT_SUCCESS and args[i].value == NULL and args[i].size != 0:
            status = set_argument(kernel, i, &args[i])
    if status == ZE_RESULT_SUCCESS:
        status = kernel_cooperative_groups(kernel.handle, most)
    mutex_unlock(&kernel.lock)
    return 0 if status == ZE_RESULT_SUCCESS else fail(kernel, status)
