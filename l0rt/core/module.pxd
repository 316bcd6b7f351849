# SPDX-License-Identifier: Apache-2.0
cimport cython
from libc.stdint cimport uint8_t, uint32_t

from l0rt.core.device cimport Device
from l0rt.core.driver cimport Context
from l0rt.ze.api cimport (
    ze_command_list_handle_t,
    ze_kernel_handle_t,
    ze_module_constants_t,
    ze_module_format_t,
    ze_module_handle_t,
    ze_result_t,
)


# Verbs on handles, for code without the GIL. Kernels are not thread-safe: the caller holds the kernel's lock.
cdef ze_result_t kernel_set_group_size(ze_kernel_handle_t kernel, const uint32_t* size) noexcept nogil
# Only with the capability `global_offset`.
cdef ze_result_t kernel_set_offset(ze_kernel_handle_t kernel, const uint32_t* offset) noexcept nogil
# `value` NULL: local memory of `nbytes` bytes.
cdef ze_result_t kernel_set_argument(
    ze_kernel_handle_t kernel, uint32_t index, size_t nbytes, const void* value) noexcept nogil
cdef ze_result_t kernel_suggest_group_size(
    ze_kernel_handle_t kernel, const uint32_t* global_size, uint32_t* size) noexcept nogil
cdef ze_result_t kernel_cooperative_groups(ze_kernel_handle_t kernel, uint32_t* count) noexcept nogil
cdef ze_result_t list_launch(
    ze_command_list_handle_t list, ze_kernel_handle_t kernel, const uint32_t* groups,
    bint cooperative) noexcept nogil


# The driver's form of a dict of SpecId -> bytes, or None, and its end. The values' bytes belong to the dict.
cdef int constants_begin(ze_module_constants_t* chosen, dict constants) except -1
cdef void constants_end(ze_module_constants_t* chosen) noexcept


@cython.final
cdef class Module:
    cdef ze_module_handle_t _h
    cdef readonly Context context
    cdef readonly Device device

    @staticmethod
    cdef Module create(
        Context context, Device device, ze_module_format_t format, const uint8_t* code, size_t nbytes,
        const char* options, const ze_module_constants_t* constants)
    cdef list kernel_names(self)
    cdef bytes native_binary(self)


@cython.final
cdef class Kernel:
    cdef ze_kernel_handle_t _h
    cdef readonly Module module

    @staticmethod
    cdef Kernel create(Module module, const char* name)
    cdef dict properties(self)
