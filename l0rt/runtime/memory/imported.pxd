# SPDX-License-Identifier: Apache-2.0
from l0rt.runtime.streams.types cimport l0rt_device


# What a handle names, as it is reached in this process.
cdef struct l0rt_import:
    l0rt_device* device
    void* pointer           # NULL: no bytes, or they are this process's own
    size_t offset           # in the block that was exported
    size_t nbytes

# None, and `out.pointer` needs one `shared_free`; or for a handle of this process the Buffer that it was made of.
cdef object import_handle(what, l0rt_import* out)
