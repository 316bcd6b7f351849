# SPDX-License-Identifier: Apache-2.0
"""Buffers between processes: what is added to the class `Buffer` for that, and how a pickle shares one."""

import threading

cimport cython

from l0rt.buffers.buffer cimport DEVICE, Buffer, Buffer_hold, Buffer_unhold, new_buffer
from l0rt.runtime.current.thread cimport current_stream
from l0rt.runtime.memory.exported cimport export_handle
from l0rt.runtime.memory.imported cimport import_handle, l0rt_import
from l0rt.runtime.memory.operations cimport shared_free

from l0rt._base.callers import warn
from l0rt.errors import UnsupportedError
from l0rt.runtime.memory.importedpool import ImportedPool

cdef extern from *:
    """
    static void l0rt_add_method(PyObject *type, PyObject *name, PyObject *value) {
      if (PyDict_SetItem(((PyTypeObject *)type)->tp_dict, name, value) == 0) PyType_Modified((PyTypeObject *)type);
    }
    """
    void add_method "l0rt_add_method"(object type, object name, object value) except *


@cython.binding(True)
def ipc_handle(Buffer self not None):
    """Return bytes with which another process can use this memory, through `from_ipc_handle`.

    Returns
    -------
    bytes

    Raises
    ------
    UnsupportedError
        It is no device memory, it is in an expandable segment, or the driver cannot share it.
    ValueError
        The buffer was freed.

    Notes
    -----
    Keep the buffer until the other process has imported it. From then on its memory is not reused before the other
    process drops its Buffer, or ends. Nothing orders the work of the processes: synchronize, or share an Event.
    """
    return export(self, False)


@cython.binding(True)
def from_ipc_handle(handle, *, pool=None):
    """Return the memory that another process has exported, as a Buffer on the same device.

    Parameters
    ----------
    handle : bytes
        The bytes that `ipc_handle` returned.
    pool : l0rt.ipc.ImportedPool or None, optional
        The pool that the memory has to be of. None: any, or none.

    Returns
    -------
    Buffer
        In the process that exported it, a slice of its Buffer.

    Raises
    ------
    ValueError
        The handle is damaged or stale, its process has ended, or this process does not have the device; or the pool is
        closed, or the memory is not of it.
    TypeError
        ``handle`` is not bytes, or ``pool`` is no pool of another process.
    PermissionError
        The kernel does not let this process open memory of the other one.
    """
    cdef l0rt_import found
    cdef Buffer made
    if pool is not None and not isinstance(pool, ImportedPool):
        raise TypeError(f"pool must be what MemPool.from_ipc_handle returns of another process, or None, got "
                        f"{type(pool).__name__}")
    own = import_handle(handle, &found, None if pool is None else pool.names)
    if own is not None:
        return own[found.offset:found.offset + found.nbytes]
    try:
        made = new_buffer(found.nbytes, current_stream(found.device.index), found.device, DEVICE, NULL)
    except BaseException:
        if found.pointer != NULL:
            shared_free(found.device, found.pointer)
        raise
    made.pointer = found.pointer
    return made


cdef bytes export(Buffer self, bint is_sent):
    cdef Buffer whole = self if self.base == NULL else <Buffer>self.base
    Buffer_hold(self)
    try:
        if self.memory != DEVICE:
            raise UnsupportedError(f"processes share device memory, not {self.kind} memory: for this there is "
                                   "multiprocessing.shared_memory, and l0rt.memory.register makes it fast")
        if type(whole) is not Buffer:
            raise UnsupportedError("this memory belongs to other software, which may share it: copy it to l0rt's own")
        return export_handle(whole, whole.block, self.owner, <char*>self.pointer - <char*>whole.pointer, self.nbytes,
                             is_sent)
    finally:
        Buffer_unhold(self)


def reduce_shared(Buffer self not None):
    """What a pickle keeps of a Buffer that is shared and not copied: it is kept here until it is unpickled once. None
    if only a copy can be sent."""
    global _has_warned
    whole = self if self.base == NULL else <object>self.base
    if self.memory != DEVICE or type(whole) is not Buffer:
        return None
    try:
        return from_ipc_handle, (export(self, True),)
    except UnsupportedError as why:
        if not _has_warned:
            _has_warned = True
            warn(f"device memory is sent to another process as a copy, since it cannot be shared: {why}")
        return None


_has_warned = False
here = threading.local()        # `depth`: in how many blocks of `l0rt.ipc.sharing()` the thread is

add_method(Buffer, "ipc_handle", ipc_handle)
add_method(Buffer, "from_ipc_handle", staticmethod(from_ipc_handle))
