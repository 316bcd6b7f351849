# SPDX-License-Identifier: Apache-2.0
# Launches in C.
from libc.stdint cimport uint32_t, uint64_t

from l0rt.kernels.built cimport l0rt_kernel
from l0rt.runtime.streams.sleep cimport check_awake, is_any_asleep, sleeps_at
from l0rt.runtime.streams.types cimport l0rt_stream

cdef extern from "l0rt/l0rt.h" nogil:
    ctypedef struct l0rt_arg:
        const void* value       # NULL: local memory of `size` bytes
        size_t size


# A launch that a graph has recorded: in one piece of memory, with what its arguments point to.
cdef struct l0rt_recorded_launch:
    l0rt_kernel* kernel
    uint32_t groups[3]
    uint32_t group_size[3]
    uint32_t offset[3]
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


# Is this the null pointer, or eight zero bytes of something else?
cdef inline bint is_zero(const l0rt_arg* arg) noexcept nogil:
    return arg.value != NULL and arg.size == sizeof(void*) and (<const void**>arg.value)[0] == NULL


# The same of an argument that the module says is a pointer.
cdef inline bint is_null_pointer(const l0rt_kernel* kernel, uint32_t at, const l0rt_arg* arg) noexcept nogil:
    return kernel.pointers[at // 64] >> (at % 64) & 1 and is_zero(arg)


# RuntimeError: one of them is.
cdef inline int check_arguments(const l0rt_arg* args, uint32_t count) except -1 nogil:
    return check_awake(argument_asleep(args, count), NULL) if is_any_asleep() else 0


# TypeError: a launch has ``count`` arguments.
cdef int refuse_count(l0rt_kernel* kernel, uint64_t count) except -1
cdef int kernel_suggest(l0rt_kernel* kernel, const uint32_t* global_size, uint32_t* size) except -1 nogil
# How many groups with the local memory that is among the arguments can run at the same time.
cdef int kernel_most_cooperative(
    l0rt_kernel* kernel, const uint32_t* size, const l0rt_arg* args, uint32_t count, uint32_t* most) except -1 nogil
# `offset` NULL: global ids begin at 0.
cdef int kernel_launch(
    l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* size, const uint32_t* offset, const l0rt_arg* args,
    uint32_t count, bint cooperative, l0rt_stream* stream) except -1 nogil
# Append a recorded launch to a regular list.
cdef int kernel_append(const l0rt_recorded_launch* launch, l0rt_stream* list) except -1 nogil
# A launch like another one, with other values: what is NULL stays, and `args` are those of the arguments `which`. It
# takes the other one's place: nothing is kept of that, which the caller frees. NULL without memory.
cdef l0rt_recorded_launch* launch_changed(
    l0rt_recorded_launch* launch, uint32_t count, const uint32_t* which, const l0rt_arg* args, const uint32_t* groups,
    const uint32_t* size, uint64_t now) noexcept nogil
# ValueError: a launch cannot have these sizes and the local memory of these arguments, which a driver would not refuse
# before it is appended.
cdef int launch_check(
    const l0rt_recorded_launch* launch, const uint32_t* groups, const uint32_t* size, const l0rt_arg* args) except -1
# A recorded launch is dropped: its module may end.
cdef void launch_drop(l0rt_recorded_launch* launch) noexcept
