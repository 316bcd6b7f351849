# SPDX-License-Identifier: Apache-2.0
"""A private pool of another process: what was opened of its memory stays open."""

cimport cython

from l0rt.runtime.memory.imported cimport l0rt_kept, pool_bytes, pool_drop, pool_keep


@cython.binding(False)
cdef class ImportedPool:
    """A private pool of another process, as `MemPool.from_ipc_handle` returns it.

    Nothing can be allocated from it. What is opened of its memory stays open until `close`: a further Buffer of it is
    imported without a driver call.
    """

    cdef l0rt_kept* kept            # NULL: closed
    cdef readonly bytes handle      # for a further process
    cdef readonly tuple id
    cdef readonly int process
    cdef object __weakref__

    def __cinit__(self, bytes handle not None):
        self.kept = pool_keep(handle)
        self.handle = handle
        self.process, self.id = self.kept.peer.pid, (0, self.kept.number)

    def __dealloc__(self):
        if self.kept != NULL:
            pool_drop(self.kept)

    @property
    def names(self):
        """What a handle of its memory has: the process, when that began, the number of the pool."""
        if self.kept == NULL:
            raise ValueError("the imported pool is closed")
        return self.kept.peer.pid, self.kept.peer.began, self.kept.number

    @property
    def closed(self):
        """Whether it was closed."""
        return self.kept == NULL

    @property
    def nbytes(self):
        """How many bytes of its memory are open in this process: whole segments, also without a Buffer."""
        return 0 if self.kept == NULL else pool_bytes(self.kept)

    def close(self):
        """Let go of memory of which there is no Buffer. A second call changes nothing."""
        kept, self.kept = self.kept, NULL
        if kept != NULL:
            pool_drop(kept)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def __reduce__(self):
        return ImportedPool, (self.handle,)

    def __repr__(self):
        state = "closed" if self.kept == NULL else f"{self.nbytes} bytes open"
        return f"<l0rt.ipc.ImportedPool {self.id} of process {self.process}, {state}>"
