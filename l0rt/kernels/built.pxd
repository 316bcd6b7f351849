# SPDX-License-Identifier: Apache-2.0
# A module and its kernels in C. Whoever made a module holds a reference; its kernels live as long as it.
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t

from l0rt.runtime.alloc.atomics cimport pthread_mutex_t
from l0rt.runtime.streams.types cimport l0rt_device, l0rt_stream
from l0rt.ze.api cimport ze_kernel_handle_t


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
    uint64_t* pointers          # one bit for each argument that is known to be one
    uint32_t local_bytes        # of a group, beside its arguments
    uint32_t group_size[3]      # of the last launch; 0: not known
    uint32_t offset[3]          # of its work-items
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
    uint32_t most_argument_bytes


# Build code; `constants` is None or a dict of SpecId -> bytes.
cdef l0rt_module* module_open(l0rt_device* device, int format, bytes code, bytes options, dict constants) except NULL
# ValueError if the module was closed.
cdef int module_check(l0rt_module* module) except -1
# ValueError if the module was closed. The driver's module stays until module_unuse: around what gives up the GIL.
cdef int module_use(l0rt_module* module) except -1
cdef void module_unuse(l0rt_module* module) noexcept
# Destroy the closed modules that nothing uses any more.
cdef void module_sweep() noexcept
cdef list module_kernel_names(l0rt_module* module)
cdef bytes module_native_binary(l0rt_module* module)
cdef void module_retain(l0rt_module* module) noexcept
# Give a reference back: with the last, the module is closed.
cdef void module_release(l0rt_module* module) noexcept
# Its kernels cannot be launched any more. What still runs ends first; nothing waits.
cdef void module_close(l0rt_module* module) noexcept
# KeyError if the module has no kernel of that name.
cdef l0rt_kernel* module_kernel(l0rt_module* module, bytes name) except NULL
cdef dict kernel_properties(l0rt_kernel* kernel)
