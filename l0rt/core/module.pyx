# SPDX-License-Identifier: Apache-2.0
"""Modules and kernels: code that a driver has built for a device, and the entry points that a list can launch."""

cimport cython
from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from l0rt.core.device cimport Device
from l0rt.core.driver cimport Context
from l0rt._base.factory cimport made_by
from l0rt.ze cimport table
from l0rt.ze.api cimport *
from l0rt.ze.status cimport CHECK, DROP
from l0rt.ze.table cimport ze

from l0rt.errors import ModuleBuildError
from l0rt.ze.obstacles import no_compiler
from l0rt.ze.status import error_of


cdef ze_result_t kernel_set_group_size(ze_kernel_handle_t kernel, const uint32_t* size) noexcept nogil:
    """Set the number of work-items of a group, along x, y and z."""
    return ze.zeKernelSetGroupSize(kernel, size[0], size[1], size[2])


cdef ze_result_t kernel_set_offset(ze_kernel_handle_t kernel, const uint32_t* offset) noexcept nogil:
    """Set where the global ids begin, along x, y and z."""
    return ze.zeKernelSetGlobalOffsetExp(kernel, offset[0], offset[1], offset[2])


cdef ze_result_t kernel_set_argument(
        ze_kernel_handle_t kernel, uint32_t index, size_t nbytes, const void* value) noexcept nogil:
    """Set what the next launch is given. The value is copied now."""
    return ze.zeKernelSetArgumentValue(kernel, index, nbytes, value)


cdef ze_result_t kernel_suggest_group_size(
        ze_kernel_handle_t kernel, const uint32_t* global_size, uint32_t* size) noexcept nogil:
    """Return the driver's choice of a group size, which divides ``global_size``."""
    return ze.zeKernelSuggestGroupSize(
        kernel, global_size[0], global_size[1], global_size[2], &size[0], &size[1], &size[2])


cdef ze_result_t kernel_cooperative_groups(ze_kernel_handle_t kernel, uint32_t* count) noexcept nogil:
    """Return how many groups of the present size can be resident at once."""
    return ze.zeKernelSuggestMaxCooperativeGroupCount(kernel, count)


cdef ze_result_t list_launch(
        ze_command_list_handle_t list, ze_kernel_handle_t kernel, const uint32_t* groups,
        bint cooperative) noexcept nogil:
    """Append a launch. Group size and arguments are the kernel's present ones, which the driver copies now."""
    cdef const ze_group_count_t* count = <const ze_group_count_t*>groups
    if cooperative:
        return ze.zeCommandListAppendLaunchCooperativeKernel(list, kernel, count, NULL, 0, NULL)
    return ze.zeCommandListAppendLaunchKernel(list, kernel, count, NULL, 0, NULL)


@cython.final
@cython.no_gc
@cython.binding(False)
cdef class Module:
    """Code that the driver has built for a device. Made by ``Module.create(...)``."""

    def __init__(self):
        raise TypeError("core.Module is made by Module.create()")

    @staticmethod
    cdef Module create(
            Context context, Device device, ze_module_format_t format, const uint8_t* code, size_t nbytes,
            const char* options, const ze_module_constants_t* constants):
        cdef Module self = Module.__new__(Module)
        cdef ze_module_desc_t desc
        cdef ze_module_build_log_handle_t log = NULL
        cdef ze_result_t r
        memset(&desc, 0, sizeof(desc))
        desc.stype = ZE_STRUCTURE_TYPE_MODULE_DESC
        desc.format = format
        desc.inputSize = nbytes
        desc.pInputModule = code
        desc.pBuildFlags = options
        desc.pConstants = constants
        self.context = context
        self.device = device
        with nogil:
            r = ze.zeModuleCreate(context._h, device._h, &desc, &self._h, &log)
        text = taken_log(log)
        if r == ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE:
            missing = no_compiler()
            text = text if missing is None else missing.text
        if r != ZE_RESULT_SUCCESS:
            error = error_of(<long>r, "the module was not built", text)
            if isinstance(error, ModuleBuildError):
                error.log = text
            raise error
        return self

    cdef list kernel_names(self):
        """The names of the module's kernels, in the driver's order."""
        cdef uint32_t count = 0
        cdef const char** names
        with nogil:
            CHECK(ze.zeModuleGetKernelNames(self._h, &count, NULL))
        if count == 0:
            return []
        names = <const char**>calloc(count, sizeof(char*))
        if names == NULL:
            raise MemoryError()
        try:
            with nogil:
                CHECK(ze.zeModuleGetKernelNames(self._h, &count, names))
            return [names[i].decode("utf-8", "replace") for i in range(count)]
        finally:
            free(names)

    cdef bytes native_binary(self):
        """What the driver builds the same module from again, without compiling."""
        cdef size_t size = 0
        with nogil:
            CHECK(ze.zeModuleGetNativeBinary(self._h, &size, NULL))
        found = bytearray(size)
        cdef uint8_t* buffer = found
        with nogil:
            CHECK(ze.zeModuleGetNativeBinary(self._h, &size, buffer))
        return bytes(found[:size])

    def close(self):
        """Destroy the module, whose kernels are closed; closing twice is harmless."""
        Module_release(self)

    def __dealloc__(self):
        Module_release(self)


made_by(Module, "core.Module is made by Module.create()")


cdef str taken_log(ze_module_build_log_handle_t log):
    """The text of a build log, which is destroyed. A driver that gives none has nothing to say."""
    cdef size_t size = 0
    cdef ze_result_t r
    cdef char* buffer
    if log == NULL:
        return ""
    text = bytearray()
    with nogil:
        r = ze.zeModuleBuildLogGetString(log, &size, NULL)
    if r == ZE_RESULT_SUCCESS and size != 0:
        text = bytearray(size)
        buffer = text
        with nogil:
            r = ze.zeModuleBuildLogGetString(log, &size, buffer)
    with nogil:
        DROP(ze.zeModuleBuildLogDestroy(log), b"zeModuleBuildLogDestroy")
    return text.decode("utf-8", "replace").rstrip("\0").strip() if r == ZE_RESULT_SUCCESS else ""


cdef void Module_release(Module self) noexcept:
    cdef ze_module_handle_t h = self._h
    self._h = NULL
    if h != NULL and table.alive:
        with nogil:
            DROP(ze.zeModuleDestroy(h), b"zeModuleDestroy")


@cython.final
@cython.no_gc
@cython.binding(False)
cdef class Kernel:
    """An entry point of a module, and what its next launch is given. Made by ``Kernel.create(module, name)``."""

    def __init__(self):
        raise TypeError("core.Kernel is made by Kernel.create()")

    @staticmethod
    cdef Kernel create(Module module, const char* name):
        cdef Kernel self = Kernel.__new__(Kernel)
        cdef ze_kernel_desc_t desc
        memset(&desc, 0, sizeof(desc))
        desc.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC
        desc.pKernelName = name
        self.module = module
        with nogil:
            CHECK(ze.zeKernelCreate(module._h, &desc, &self._h))
            # Structures may hold addresses that the driver does not see.
            CHECK(ze.zeKernelSetIndirectAccess(
                self._h, ZE_KERNEL_INDIRECT_ACCESS_FLAG_HOST | ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE
                | ZE_KERNEL_INDIRECT_ACCESS_FLAG_SHARED))
        return self

    cdef dict properties(self):
        """What the driver says of the kernel, by name; sizes in bytes."""
        cdef ze_kernel_properties_t p
        cdef ze_kernel_preferred_group_size_properties_t preferred
        memset(&p, 0, sizeof(p))
        memset(&preferred, 0, sizeof(preferred))
        p.stype = ZE_STRUCTURE_TYPE_KERNEL_PROPERTIES
        p.pNext = &preferred
        preferred.stype = ZE_STRUCTURE_TYPE_KERNEL_PREFERRED_GROUP_SIZE_PROPERTIES
        with nogil:
            CHECK(ze.zeKernelGetProperties(self._h, &p))
        required = (p.requiredGroupSizeX, p.requiredGroupSizeY, p.requiredGroupSizeZ)
        return {
            "argument_count": p.numKernelArgs,
            "required_group_size": required if any(required) else None,
            "preferred_group_size_multiple": preferred.preferredMultiple or None,
            "required_sub_group_size": p.requiredSubgroupSize or None,
            "max_sub_group_size": p.maxSubgroupSize,
            "max_sub_groups": p.maxNumSubgroups,
            "local_memory": p.localMemSize,
            "private_memory": p.privateMemSize,
            "spill_memory": p.spillMemSize,
        }

    def close(self):
        """Destroy the kernel, which no device may still run; closing twice is harmless."""
        Kernel_release(self)

    def __dealloc__(self):
        Kernel_release(self)


made_by(Kernel, "core.Kernel is made by Kernel.create()")


cdef void Kernel_release(Kernel self) noexcept:
    cdef ze_kernel_handle_t h = self._h
    self._h = NULL
    if h != NULL and table.alive:
        with nogil:
            DROP(ze.zeKernelDestroy(h), b"zeKernelDestroy")


# --- Specialisation constants.


cdef int constants_begin(ze_module_constants_t* chosen, dict constants) except -1:
    cdef uint32_t* ids
    cdef const void** values
    cdef uint32_t count = len(constants) if constants else 0
    chosen.numConstants = count
    ids = <uint32_t*>malloc(max(count, 1) * sizeof(uint32_t))
    values = <const void**>malloc(max(count, 1) * sizeof(void*))
    chosen.pConstantIds = ids
    chosen.pConstantValues = values
    if ids == NULL or values == NULL:
        constants_end(chosen)
        raise MemoryError()
    for at, (number, value) in enumerate((constants or {}).items()):
        ids[at] = number
        values[at] = <const char*><bytes>value
    return 0


cdef void constants_end(ze_module_constants_t* chosen) noexcept:
    free(<void*>chosen.pConstantIds)
    free(<void*>chosen.pConstantValues)
