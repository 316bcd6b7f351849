# SPDX-License-Identifier: Apache-2.0
"""Modules, kernels and launches in C: what the Python classes and the C API are made of.

A kernel object of the driver is not thread-safe, and has the arguments of its next launch: a lock of the kernel's makes
arguments and launch one step. A module is destroyed once nothing runs that it was launched for; until then it is kept,
for its destructor must not wait.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset, strcmp, strdup

from l0rt.core.device cimport Limits, device_limits
from l0rt.core.module cimport (
    Kernel,
    Module,
    constants_begin,
    constants_end,
    kernel_cooperative_groups,
    kernel_set_argument,
    kernel_set_group_size,
    kernel_suggest_group_size,
)
from l0rt.runtime.alloc.atomics cimport mutex_destroy, mutex_init, mutex_lock, mutex_unlock
from l0rt.runtime.streams.capture cimport NODE_KERNEL, capture_add, captures, l0rt_node
from l0rt.runtime.streams.devices cimport core_context, core_device
from l0rt.runtime.streams.hooks cimport KERNEL_LAUNCH, note
from l0rt.runtime.streams.queue cimport progress, queue_open, queue_try_launch
from l0rt.runtime.streams.sleep cimport ANY_SLEEP, is_any_asleep, refuse_asleep, sleeps
from l0rt.runtime.streams.timeline cimport timeline_free
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport device_fails, refuse
from l0rt.ze cimport table
from l0rt.ze.api cimport (
    ZE_RESULT_ERROR_INVALID_KERNEL_NAME,
    ZE_RESULT_NOT_READY,
    ZE_RESULT_SUCCESS,
    ze_module_constants_t,
    ze_module_format_t,
    ze_result_t,
)

from l0rt.errors import L0Error
from l0rt.runtime.lazy import MODULES, on_exit

# Both lists are the GIL's. What is destroyed leaves its list first.
cdef l0rt_module* _open = NULL
cdef l0rt_module* _leaving = NULL       # closed, and perhaps still used by running work


cdef l0rt_module* module_open(l0rt_device* device, int format, bytes code, bytes options, dict constants) except NULL:
    cdef l0rt_module* made
    cdef ze_module_constants_t chosen
    cdef Module owner
    cdef Limits limits
    global _open
    sweep()
    if not table.alive or device.lost:
        refuse(device)
    limits = device_limits(core_device(device.index))
    made = <l0rt_module*>calloc(1, sizeof(l0rt_module))
    if made == NULL:
        raise MemoryError()
    constants_begin(&chosen, constants)
    try:
        owner = Module.create(
            core_context(device.index), core_device(device.index), <ze_module_format_t>format, code, len(code),
            <const char*>options, &chosen if constants else NULL)
    except BaseException:
        free(made)
        raise
    finally:
        constants_end(&chosen)
    Py_INCREF(owner)
    made.owner = <PyObject*>owner
    made.device = device
    made.refs = 1
    made.most_items_of_group = limits.total_group_size
    made.most_local_bytes = limits.local_bytes
    memcpy(made.most_items, limits.group_size, sizeof(limits.group_size))
    memcpy(made.most_groups, limits.group_count, sizeof(limits.group_count))
    made.next = _open
    _open = made
    return made


cdef int module_check(l0rt_module* module) except -1:
    if l0rt_load_int(&module.closed):
        raise ValueError("the module was closed")
    return 0


cdef int module_use(l0rt_module* module) except -1:
    """Keep the driver's module, until ``users`` is lowered again: around calls that give up the GIL."""
    module_check(module)
    module.users += 1
    return 0


cdef list module_kernel_names(l0rt_module* module):
    module_use(module)
    try:
        return (<Module>module.owner).kernel_names()
    finally:
        module.users -= 1


cdef bytes module_native_binary(l0rt_module* module):
    module_use(module)
    try:
        return (<Module>module.owner).native_binary()
    finally:
        module.users -= 1


cdef l0rt_kernel* find(l0rt_module* module, const char* name) noexcept:
    cdef l0rt_kernel* kernel = module.kernels
    while kernel != NULL and strcmp(kernel.name, name) != 0:
        kernel = kernel.next
    return kernel


cdef l0rt_kernel* module_kernel(l0rt_module* module, bytes name) except NULL:
    cdef l0rt_kernel* kernel
    cdef Kernel owner
    module_check(module)
    if b"\0" in name:
        check_name(module, name)
    kernel = find(module, name)
    if kernel != NULL:
        return kernel
    module_use(module)
    try:
        try:
            owner = Kernel.create(<Module>module.owner, name)
        except L0Error as error:
            if error.code[1] == ZE_RESULT_ERROR_INVALID_KERNEL_NAME:
                check_name(module, name)
            raise
        found = owner.properties()
        if l0rt_load_int(&module.closed):       # others ran meanwhile
            owner.close()
    finally:
        module.users -= 1
    module_check(module)
    kernel = find(module, name)
    if kernel != NULL:
        owner.close()
        return kernel
    kernel = <l0rt_kernel*>calloc(1, sizeof(l0rt_kernel))
    if kernel == NULL:
        raise MemoryError()
    kernel.name = strdup(name)
    if kernel.name == NULL:
        free(kernel)
        raise MemoryError()
    mutex_init(&kernel.lock, NULL)
    Py_INCREF(owner)
    kernel.owner = <PyObject*>owner
    kernel.handle = owner._h
    kernel.argument_count = found["argument_count"]
    kernel.local_bytes = found["local_memory"]
    kernel.module = module
    kernel.next = module.kernels
    module.kernels = kernel
    return kernel


cdef int check_name(l0rt_module* module, bytes name) except -1:
    told = name.decode("utf-8", "replace")
    names = module_kernel_names(module)
    if told not in names:
        raise KeyError(f"the module has no kernel {told!r}: it has {', '.join(names) or 'none'}") from None
    return 0


cdef dict kernel_properties(l0rt_kernel* kernel):
    module_use(kernel.module)
    try:
        return (<Kernel>kernel.owner).properties()
    finally:
        kernel.module.users -= 1


# --- The end of a module.


cdef void module_retain(l0rt_module* module) noexcept:
    module.refs += 1


cdef void module_release(l0rt_module* module) noexcept:
    module.refs -= 1
    if module.refs == 0:
        if module.owner == NULL:        # it was closed, and is destroyed
            module_free(module)
        else:
            module_close(module)


cdef void module_close(l0rt_module* module) noexcept:
    global _leaving
    cdef l0rt_kernel* kernel
    cdef l0rt_module** at = &_open
    if not table.alive or module.closed:    # a forked child: its parent's lists may have been in the making
        return
    l0rt_store_int(&module.closed, 1)
    while at[0] != NULL and at[0] != module:
        at = &at[0].next
    if at[0] == module:
        at[0] = module.next
    module.next = _leaving
    _leaving = module
    kernel = module.kernels
    module.refs += 1
    while kernel != NULL:                   # who is just launching it ends that first
        with nogil:
            mutex_lock(&kernel.lock)
            mutex_unlock(&kernel.lock)
        kernel = kernel.next
    module.refs -= 1
    sweep()


cdef void sweep() noexcept:
    """Destroy the closed modules that nothing uses any more."""
    cdef l0rt_module** at = &_leaving
    cdef l0rt_module* module
    while at[0] != NULL:
        module = at[0]
        if is_in_use(module):
            at = &module.next
            continue
        at[0] = module.next
        module_destroy(module)
        at = &_leaving          # the GIL was given up: the list may be another one


cdef bint is_in_use(l0rt_module* module) noexcept:
    cdef l0rt_kernel* kernel = module.kernels
    cdef l0rt_stream* stream
    cdef uint32_t i
    if module.users != 0:
        return True
    if module.device.lost:
        return False
    while kernel != NULL:
        for i in range(kernel.launched_count):
            stream = kernel.launched[i].stream
            if l0rt_load64(&stream.done) < kernel.launched[i].seq:
                progress(stream)
                if l0rt_load64(&stream.done) < kernel.launched[i].seq:
                    return True
        kernel = kernel.next
    return False


cdef void module_destroy(l0rt_module* module) noexcept:
    """Destroy what the driver has. It is in no list any more."""
    cdef l0rt_kernel* kernel = module.kernels
    owner = <Module>module.owner
    Py_DECREF(owner)
    module.owner = NULL
    while kernel != NULL:
        (<Kernel>kernel.owner).close()
        kernel = kernel.next
    owner.close()
    if module.refs == 0:
        module_free(module)


cdef void module_free(l0rt_module* module) noexcept:
    cdef l0rt_kernel* kernel
    while module.kernels != NULL:
        kernel = module.kernels
        module.kernels = kernel.next
        owner = <Kernel>kernel.owner
        Py_DECREF(owner)
        Py_XDECREF(kernel.told)
        mutex_destroy(&kernel.lock)
        free(kernel.launched)
        timeline_free(kernel.name)
        free(kernel)
    free(module)


def _close():
    """At exit: nothing runs any more."""
    cdef l0rt_module* module
    global _open, _leaving
    while _open != NULL:
        module_close(_open)
    while _leaving != NULL:
        module = _leaving
        _leaving = module.next
        module_destroy(module)


on_exit(MODULES, _close)


# --- Launches.


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


cdef enum:
    NO_MEMORY = -1
    CLOSED = -2
    ASLEEP = -3


cdef int launch_locked(
        l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* size, const l0rt_arg* args, uint32_t count,
        bint cooperative, l0rt_stream* stream) noexcept nogil:
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
        status = append_locked(kernel, groups, size, args, count, cooperative, stream, seen, &launched.seq)
        if status != ZE_RESULT_NOT_READY or l0rt_load64(&sleeps) == seen:
            return status


cdef inline ze_result_t append_locked(
        l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* size, const l0rt_arg* args, uint32_t count,
        bint cooperative, l0rt_stream* stream, uint64_t seen, uint64_t* seq) noexcept nogil:
    cdef ze_result_t r = set_size(kernel, size)
    cdef uint32_t i
    for i in range(count):
        if r != ZE_RESULT_SUCCESS:
            return r
        r = kernel_set_argument(kernel.handle, i, args[i].size, args[i].value)
    if r == ZE_RESULT_SUCCESS:
        r = queue_try_launch(stream, kernel.handle, kernel.name, groups, kernel.group_size, cooperative, seen,
                             seq)
    return r


cdef int kernel_launch(
        l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* size, const l0rt_arg* args, uint32_t count,
        bint cooperative, l0rt_stream* stream) except -1 nogil:
    cdef int status
    if count != kernel.argument_count or stream.device != kernel.module.device or not fits(kernel, groups, size):
        return refuse_launch(kernel, groups, size, count, stream)
    if captures(stream) and record_launch(kernel, groups, size, args, count, cooperative, stream):
        return 0
    queue_open(stream)                  # may need the GIL: before the lock
    mutex_lock(&kernel.lock)
    status = launch_locked(kernel, groups, size, args, count, cooperative, stream)
    mutex_unlock(&kernel.lock)
    if status == ASLEEP:
        return refuse_asleep(argument_asleep(args, count), NULL)
    if status != ZE_RESULT_SUCCESS:
        queue_open(stream)              # raises where the list was given back to its owner
        return fail(kernel, status)
    note(KERNEL_LAUNCH, <uint64_t>stream, <uint64_t>kernel, 0)
    return 0


# --- Launches of a graph. Its module stays until the graph is dropped.


cdef l0rt_recorded_launch* launch_copy(
        l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* size, const l0rt_arg* args, uint32_t count,
        bint cooperative) noexcept nogil:
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
                           size if size != NULL else launch.group_size, values, launch.count, launch.cooperative)
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
        uint64_t local_bytes) except -1:
    cdef l0rt_kernel* kernel = launch.kernel
    cdef uint32_t most = 0
    if not fits(kernel, groups, size):
        refuse_launch(kernel, groups, size, kernel.argument_count, NULL)
    if local_bytes + kernel.local_bytes > kernel.module.most_local_bytes:
        name = kernel.name.decode("utf-8", "replace")
        raise ValueError(f"a group of {name}() would have {local_bytes + kernel.local_bytes} bytes of local memory: "
                         f"the device has {kernel.module.most_local_bytes}")
    if launch.cooperative:
        with nogil:
            kernel_most_cooperative(kernel, size, &most)
        if <uint64_t>groups[0] * groups[1] * groups[2] > most:
            raise ValueError(f"a cooperative launch may have at most {most} groups of this size, got "
                             f"{groups[0]} x {groups[1]} x {groups[2]}")
    return 0


cdef int record_launch(
        l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* size, const l0rt_arg* args, uint32_t count,
        bint cooperative, l0rt_stream* stream) except -1 nogil:
    """1: recorded, 0: nothing is captured from the stream any more."""
    cdef l0rt_node node
    cdef int added = 0
    check_arguments(args, count)
    memset(&node, 0, sizeof(node))
    node.kind = NODE_KERNEL
    node.payload = launch_copy(kernel, groups, size, args, count, cooperative)
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
    cdef ze_result_t r
    cdef uint64_t seq
    mutex_lock(&kernel.lock)
    r = append_locked(kernel, launch.groups, launch.group_size, launch.args, launch.count, launch.cooperative, list,
                      ANY_SLEEP, &seq)
    mutex_unlock(&kernel.lock)
    return 0 if r == ZE_RESULT_SUCCESS else device_fails(list.device, r)


cdef void launch_drop(l0rt_recorded_launch* launch) noexcept:
    cdef l0rt_module* module = launch.kernel.module
    free(launch.changed)
    launch.changed = NULL
    module.users -= 1
    module_release(module)
    sweep()


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
        check_limits("groups", [groups[i] for i in range(3)], [kernel.module.most_groups[i] for i in range(3)])
        check_limits("group_size", [size[i] for i in range(3)], [kernel.module.most_items[i] for i in range(3)])
        raise ValueError(f"a group must have at most {kernel.module.most_items_of_group} work-items, got "
                         f"{size[0]} x {size[1]} x {size[2]}")


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


cdef int kernel_most_cooperative(l0rt_kernel* kernel, const uint32_t* size, uint32_t* count) except -1 nogil:
    cdef int status = CLOSED
    mutex_lock(&kernel.lock)
    if not l0rt_load_int(&kernel.module.closed):
        status = set_size(kernel, size)
    if status == ZE_RESULT_SUCCESS:
        status = kernel_cooperative_groups(kernel.handle, count)
    mutex_unlock(&kernel.lock)
    return 0 if status == ZE_RESULT_SUCCESS else fail(kernel, status)
