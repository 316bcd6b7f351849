# SPDX-License-Identifier: Apache-2.0
# A module and its kernels in C. Whoever made a module holds a reference; its kernels live as long as it.
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t

from l0rt.runtime.alloc.atomics cimport pthread_mutex_t
from l0rt.runtime.streams.sleep cimport check_awake, is_any_asleep, sleeps_at
from l0rt.runtime.streams.types cimport l0rt_device, l0rt_stream
from l0rt.ze.api cimport ze_kernel_handle_t

cdef extern from "l0rt/l0rt.h" nogil:
    ctypedef struct l0rt_arg:
        const void* value       # NULL: local memory of `size` bytes
        size_t size


# The last launch of a kernel on a stream: once the stream has completed so many commands, that is over.
cdef struct l0rt_launched:
    l0rt_stream* stream
    uint64_t seq


cdef struct l0rt_kernel:
    ze_kernel_handle_t handle
    l0rt_module* module
    l0rt_kernel* next
    PyObject* owner             # the core Kernel
    char* name
    pthread_mutex_t lock        # around arguments, group size and launch, which are one step; no GIL inside
    PyObject* told              # (what the module says of it, its required group size), both or None; NULL: not known
    uint32_t argument_count
    uint32_t local_bytes        # of a group, beside its arguments
    uint32_t group_size[3]      # of the last launch; 0: not known
    l0rt_launched* launched
    uint32_t launched_count
    uint32_t launched_capacity


cdef struct l0rt_module:
    l0rt_device* device
    l0rt_kernel* kernels
    l0rt_module* next           # of all that are open, or of those that work still uses
    PyObject* owner             # the core Module
    int refs
    int users                   # calls that need the driver's module, and have given up the GIL
    int closed
    uint32_t most_groups[3]
    uint32_t most_items[3]      # in a group, along each axis
    uint32_t most_items_of_group
    uint32_t most_local_bytes   # of a group


# A launch that a graph has recorded: in one piece of memory, with what its arguments point to.
cdef struct l0rt_recorded_launch:
    l0rt_kernel* kernel
    uint32_t groups[3]
    uint32_t group_size[3]
    uint32_t count
    bint cooperative
    uint64_t* changed           # when each argument was changed last, then the groups, then their size; NULL: never
    l0rt_arg args[0]


# The address in memory of a pool that sleeps which an argument is; NULL: none is.
cdef inline const void* argument_asleep(const l0rt_arg* args, uint32_t count) noexcept nogil:
    cdef uint32_t i
    for i in range(count):
        if args[i].value != NULL and args[i].size == sizeof(void*) and sleeps_at((<const void**>args[i].value)[0]):
            return (<const void**>args[i].value)[0]
    return NULL


# RuntimeError: one of them is.
cdef inline int check_arguments(const l0rt_arg* args, uint32_t count) except -1 nogil:
    return check_awake(argument_asleep(args, count), NULL) if is_any_asleep() else 0


# Build code; `constants` is None or a dict of SpecId -> bytes.
cdef l0rt_module* module_open(l0rt_device* device, int format, bytes code, bytes options, dict constants) except NULL
# ValueError if the module was closed.
cdef int module_check(l0rt_module* module) except -1
cdef list module_kernel_names(l0rt_module* module)
cdef bytes module_native_binary(l0rt_module* module)
cdef void module_retain(l0rt_module* module) noexcept
# Give a reference back: with the last, the module is closed.
cdef void module_release(l0rt_module* module) noexcept
# Its kernels cannot be launched any more. What still runs ends first; nothing waits.
cdef void module_close(l0rt_module* module) noexcept
# KeyError if the module has no kernel of that name.
cdef l0rt_kernel* module_kernel(l0rt_module* module, bytes name) except NULL
# TypeError: a launch has ``count`` arguments.
cdef int refuse_count(l0rt_kernel* kernel, uint64_t count) except -1
cdef dict kernel_properties(l0rt_kernel* kernel)
cdef int kernel_suggest(l0rt_kernel* kernel, const uint32_t* global_size, uint32_t* size) except -1 nogil
cdef int kernel_most_cooperative(l0rt_kernel* kernel, const uint32_t* size, uint32_t* count) except -1 nogil
cdef int kernel_launch(
    l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* size, const l0rt_arg* args, uint32_t count,
    bint cooperative, l0rt_stream* stream) except -1 nogil
# Append a recorded launch to a regular list.
cdef int kernel_append(const l0rt_recorded_launch* launch, l0rt_stream* list) except -1 nogil
# A launch like another one, with other values: what is NULL stays, and `args` are those of the arguments `which`. It
# takes the other one's place: nothing is kept of that, which the caller frees. NULL without memory.
cdef l0rt_recorded_launch* launch_changed(
    l0rt_recorded_launch* launch, uint32_t count, const uint32_t* which, const l0rt_arg* args, const uint32_t* groups,
    const uint32_t* size, uint64_t now) noexcept nogil
# ValueError: a launch cannot have these sizes, which a driver would not refuse before it is appended.
cdef int launch_check(
    const l0rt_recorded_launch* launch, const uint32_t* groups, const uint32_t* size, uint64_t local_bytes) except -1
# A recorded launch is dropped: its module may end.
cdef void launch_drop(l0rt_recorded_launch* launch) noexcept
