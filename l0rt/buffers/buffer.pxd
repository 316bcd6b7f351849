# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject

from l0rt.buffers.dlpack cimport DL_CPU, DL_ONEAPI
from l0rt.runtime.alloc.types cimport l0rt_block
from l0rt.runtime.current.thread cimport current_stream
from l0rt.runtime.memory.transfer cimport l0rt_operand
from l0rt.runtime.streams.queue cimport Queue
from l0rt.runtime.streams.types cimport l0rt_device, l0rt_stream

# The kinds of memory. With ELSEWHERE, memory of another device type, this class can do nothing: see foreign.pyx.
cdef enum:
    DEVICE = 0
    HOST = 1
    SHARED = 2
    ELSEWHERE = 3


# Of 80 bytes: with eight more l0rt.empty takes 15 instructions more.
cdef class Buffer:
    cdef l0rt_block* block      # NULL: shared memory, empty, freed, or a slice
    cdef void* pointer          # NULL: empty or freed. A slice of freed memory still has its own: see Buffer_hold
    cdef readonly size_t nbytes
    cdef l0rt_stream* stream    # allocated in this stream's order
    cdef l0rt_device* owner
    cdef int exports            # memoryviews that look at it, and calls that work on it: it is not freed meanwhile
    cdef char memory            # one of the kinds above
    cdef char freed             # of a slice: ask Buffer_hold
    cdef PyObject* base         # the Buffer that a slice is a part of, with a reference: no object field, for the
    cdef object __weakref__     # garbage collector does not track a Buffer


cdef inline bint Buffer_is_freed(Buffer self) noexcept:
    return self.freed if self.base == NULL else (<Buffer>self.base).freed


# Memory of another process?
cdef inline bint is_imported(Buffer self) noexcept:
    return (self.memory == DEVICE and self.block == NULL and self.pointer != NULL and self.base == NULL
            and type(self) is Buffer)


# 1: keep `free` away from the memory, of whatever type; -1: no more.
cdef inline void Buffer_count_export(Buffer self, int more) noexcept:
    if self.base == NULL:
        self.exports += more
    else:
        (<Buffer>self.base).exports += more


# What `free` refuses: ValueError for a slice, BufferError while the memory is in use.
cdef int Buffer_check_free(Buffer self) except -1

# Make a new object a slice from this byte on. The caller makes sure that `base` lives as long.
cdef inline void Buffer_slice(Buffer part, Buffer source, size_t start) noexcept:
    part.pointer = <char*>source.pointer + start if part.nbytes != 0 else NULL
    part.base = source.base if source.base != NULL else <PyObject*>source


# ValueError if the buffer, or what it is a slice of, was freed or never allocated.
cdef int Buffer_check_open(Buffer self) except -1

# ValueError if it was never allocated, or is memory of another device type.
cdef int Buffer_check_made(Buffer self) except -1

# Keep `free` away from the memory until Buffer_unhold: around whatever gives up the GIL or runs other code. ValueError
# if the buffer, or what it is a slice of, was freed or never allocated, or is memory of another device type.
cdef inline int Buffer_hold(Buffer self) except -1:
    Buffer_check_open(self)
    Buffer_count_export(self, 1)
    return 0


cdef inline void Buffer_unhold(Buffer self) noexcept:
    Buffer_count_export(self, -1)


# The memory is not the buffer's any more: first of all, for what follows runs callbacks and gives up the GIL.
cdef inline void Buffer_take(Buffer self) noexcept:
    self.freed = True
    self.block = NULL
    self.pointer = NULL


# The same as Buffer_unhold for callers that have the buffer as an object.
cdef inline void Buffer_end_export(object self) noexcept:
    Buffer_unhold(<Buffer>self)


# The stream that an argument means; None: the current one, of the buffer's own device if it is device memory.
cdef inline l0rt_stream* Buffer_stream(Buffer self, Queue stream) except NULL:
    if stream is not None:
        return stream.ptr
    Buffer_check_made(self)
    return current_stream(self.owner.index if self.memory == DEVICE else -1)


# Where DLPack's importers find its memory.
cdef inline tuple Buffer_dlpack_device(Buffer self):
    Buffer_check_open(self)
    return (DL_ONEAPI, <int>self.owner.index) if self.memory == DEVICE else (DL_CPU, <int>0)


# The private pool that its memory comes from, for the repr.
cdef inline str Buffer_pool(Buffer self):
    cdef l0rt_block* block = self.block if self.base == NULL else (<Buffer>self.base).block
    if block == NULL or self.memory == ELSEWHERE or block.arena.private_pool == NULL:
        return ""
    return f" in pool {tuple(block.arena.private_pool.id)}"


# What copies and fills work on, while the buffer is held.
cdef inline l0rt_operand Buffer_operand(Buffer self) noexcept:
    cdef l0rt_operand operand
    operand.pointer, operand.nbytes = self.pointer, self.nbytes
    operand.block = self.block if self.base == NULL else (<Buffer>self.base).block
    operand.stream, operand.device, operand.on_device = self.stream, self.owner, self.memory == DEVICE
    return operand


cdef tuple KINDS        # their names, in the order of the numbers

# A buffer that owns the block that it is given.
cdef Buffer new_buffer(size_t nbytes, l0rt_stream* stream, l0rt_device* owner, int memory, l0rt_block* block)

# What unpickles a copy: `l0rt.empty`'s module sets it.
cdef object rebuild

# A new array for a Buffer's bytes, of the dtype and shape in `layout` where None is asked for.
cdef object array_like(tuple layout, size_t nbytes, dtype, shape)

# The classes of Buffers whose memory is l0rt's own: the module of `l0rt.from_numpy` adds its subclass.
cdef set own_types

# Memory of other software at an address of the device's context, with an index of -1 wherever it is; ValueError if
# there is none, or less than so many bytes. `lender` is kept until the Buffer is freed or dropped. `interchange` sets
# it: in Buffer's own module the subclass would keep the C compiler from inlining the function that makes a Buffer.
ctypedef Buffer (*borrow_function)(size_t address, size_t nbytes, int index, lender)
cdef borrow_function borrow
