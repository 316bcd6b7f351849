# SPDX-License-Identifier: Apache-2.0
"""What the driver built, in C: modules and their kernels, which the Python classes and the C API share.

A module is destroyed once nothing runs that it was launched for; until then it is kept, for its destructor must not
wait.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, strcmp, strdup

from l0rt.core.device cimport Limits, device_limits
from l0rt.core.module cimport Kernel, Module, constants_begin, constants_end
from l0rt.runtime.alloc.atomics cimport mutex_destroy, mutex_init, mutex_lock, mutex_unlock
from l0rt.runtime.streams.devices cimport core_context, core_device
from l0rt.runtime.streams.queue cimport progress
from l0rt.runtime.streams.timeline cimport timeline_free
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport refuse
from l0rt.ze cimport table
from l0rt.ze.api cimport ZE_RESULT_ERROR_INVALID_KERNEL_NAME, ze_module_constants_t, ze_module_format_t

from l0rt.errors import L0Error
from l0rt.runtime.lazy import MODULES, on_exit
from l0rt.runtime.streams.devices import is_mended

SYMBOLS = "Intel_Symbol_Table_Void_Program"     # which IGC adds where others may link to a module, and nobody launches

# Both lists are the GIL's. What is destroyed leaves its list first.
cdef l0rt_module* _open = NULL
cdef l0rt_module* _leaving = NULL       # closed, and perhaps still used by running work


cdef l0rt_module* module_open(l0rt_device* device, int format, bytes code, bytes options, dict constants) except NULL:
    cdef l0rt_module* made
    cdef ze_module_constants_t chosen
    cdef Module owner
    cdef Limits limits
    global _open
    module_sweep()
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
    made.most_local_bytes, made.most_argument_bytes = limits.local_bytes, limits.argument_bytes
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
    module_check(module)
    module.users += 1
    return 0


cdef void module_unuse(l0rt_module* module) noexcept:
    module.users -= 1


cdef list module_kernel_names(l0rt_module* module):
    module_use(module)
    try:
        names = (<Module>module.owner).kernel_names()
    finally:
        module_unuse(module)
    return [name for name in names if name != SYMBOLS] if lists_symbols(module) else names


cdef int lists_symbols(l0rt_module* module) except -1:
    return is_mended(module.device.index, "listed_symbols")


cdef bytes module_native_binary(l0rt_module* module):
    module_use(module)
    try:
        return (<Module>module.owner).native_binary()
    finally:
        module_unuse(module)


cdef l0rt_kernel* find(l0rt_module* module, const char* name) noexcept:
    cdef l0rt_kernel* kernel = module.kernels
    while kernel != NULL and strcmp(kernel.name, name) != 0:
        kernel = kernel.next
    return kernel


cdef l0rt_kernel* module_kernel(l0rt_module* module, bytes name) except NULL:
    cdef l0rt_kernel* kernel
    cdef Kernel owner
    module_check(module)
    if b"\0" in name or name == SYMBOLS.encode() and lists_symbols(module):
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
        module_unuse(module)
    module_check(module)
    kernel = find(module, name)
    if kernel != NULL:
        owner.close()
        return kernel
    kernel = <l0rt_kernel*>calloc(1, sizeof(l0rt_kernel))
    if kernel == NULL:
        raise MemoryError()
    kernel.name = strdup(name)
    kernel.pointers = <uint64_t*>calloc(found["argument_count"] // 64 + 1, sizeof(uint64_t))
    if kernel.name == NULL or kernel.pointers == NULL:
        free(kernel.name)
        free(kernel.pointers)
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
        module_unuse(kernel.module)


# --- The end of a module.


cdef void module_retain(l0rt_module* module) noexcept:
    module.refs += 1


cdef void module_release(l0rt_module* module) noexcept:
    if module.refs == 1:
        module_close(module)        # still with the reference, for others run meanwhile
    unreference(module)


cdef void unreference(l0rt_module* module) noexcept:
    """Free the module if this was the last reference, and the driver's was destroyed."""
    module.refs -= 1
    if module.refs == 0 and module.owner == NULL:
        module_free(module)


cdef void module_close(l0rt_module* module) noexcept:
    global _leaving
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
    module.refs += 1
    module.users += 1       # until then a launch may note itself, and others must not look at what is noted
    pass_locks(module)
    module.users -= 1
    unreference(module)
    module_sweep()


cdef void pass_locks(l0rt_module* module) noexcept:
    """Wait for who is just launching one of its kernels. Whoever comes later finds that it was closed."""
    cdef l0rt_kernel* kernel = module.kernels
    while kernel != NULL:
        with nogil:
            mutex_lock(&kernel.lock)
            mutex_unlock(&kernel.lock)
        kernel = kernel.next


cdef void module_sweep() noexcept:
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
    """Destroy what the driver has. It is in no list any more. Each step gives up the GIL, and others may drop it."""
    cdef l0rt_kernel* kernel = module.kernels
    owner = <Module>module.owner
    Py_DECREF(owner)
    module.owner = NULL
    module.refs += 1
    while kernel != NULL:
        (<Kernel>kernel.owner).close()
        kernel = kernel.next
    owner.close()
    unreference(module)


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
        free(kernel.pointers)
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
        pass_locks(module)                  # another thread may be about to do that
        module_destroy(module)


on_exit(MODULES, _close)
