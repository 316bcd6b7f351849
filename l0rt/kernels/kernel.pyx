# SPDX-License-Identifier: Apache-2.0
"""Kernels in Python: the sizes of a launch, checked before the driver gets any of them, and its arguments."""

cimport cython
from cpython cimport array
from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t

from l0rt.arguments cimport is_whole, known_as, plain_int, whole
from l0rt.factory cimport made_by
from l0rt.kernels.arguments cimport (
    FEW,
    Expected,
    Slot,
    argument_take,
    argument_told,
    local_arguments,
    new_parameters,
    slot_let_go,
)
from l0rt.kernels.built cimport kernel_properties, l0rt_kernel, module_check, module_release, module_retain
from l0rt.kernels.launch cimport kernel_launch, kernel_most_cooperative, kernel_suggest, l0rt_arg, refuse_count
from l0rt.runtime.current.thread cimport current_device, current_stream
from l0rt.runtime.streams.hooks cimport KERNEL_ACCESS, call_hooks, has_hooks
from l0rt.runtime.streams.naming cimport device as device_name
from l0rt.runtime.streams.queue cimport Queue
from l0rt.runtime.streams.types cimport *

from l0rt import lazynumpy as np
from l0rt.runtime.streams.devices import lazy

cdef extern from *:
    """
    /* A tuple's items are an array as vectorcall takes it. */
    #define l0rt_call(function, args) \
      PyObject_Vectorcall(function, &PyTuple_GET_ITEM(args, 0), (size_t)PyTuple_GET_SIZE(args), NULL)
    """
    object call "l0rt_call" (object function, tuple args)


@cython.final
@cython.binding(False)
cdef class Kernel:
    """A kernel of a module: ``module["name"]``.

    ``kernel[groups, group_size](*args)`` launches it on the current stream of the module's device, and `launch` on any
    stream of it. Several threads may launch one kernel at the same time.
    """

    def __init__(self):
        raise TypeError("a kernel is a module's: module[name]")

    def __dealloc__(self):
        if self.ptr != NULL:
            module_release(self.ptr.module)

    @property
    def device(self):
        """The device that the module is built for."""
        return device_name(lazy.device_type, self.ptr.module.device.index)

    @property
    def attributes(self):
        """What the driver says of the kernel: a dict of sizes in bytes and of group sizes."""
        return kernel_properties(self.ptr)

    def suggest_group_size(self, global_size):
        """Return the group size that the driver suggests.

        Parameters
        ----------
        global_size : int or tuple of int
            The number of work-items, along x or along x, y and z.

        Returns
        -------
        tuple of int
            Three sizes, each of which divides the global size.
        """
        cdef uint32_t[3] wanted, size
        module_check(self.ptr.module)
        extent("global_size", global_size, wanted)
        with nogil:
            kernel_suggest(self.ptr, wanted, size)
        return size[0], size[1], size[2]

    def max_cooperative_groups(self, group_size, *args):
        """Return how many groups of this size can run at the same time, which a cooperative launch may have at most.

        Parameters
        ----------
        group_size : int or tuple of int
            The number of work-items of a group.
        *args
            The arguments of the launch, all or none: only `LocalMemory` among them counts. Without them, a kernel that
            takes local memory is counted with one byte for each such argument.

        Returns
        -------
        int

        Raises
        ------
        TypeError
            The number of arguments is wrong, or there is no local memory where the kernel takes some.
        ValueError
            The local memory is more than the device has, or the module was closed.
        """
        cdef uint32_t[3] size
        cdef bytearray scratch = bytearray((self.ptr.argument_count + 1) * sizeof(l0rt_arg))
        cdef l0rt_arg* values = <l0rt_arg*>PyByteArray_AS_STRING(scratch)
        cdef uint32_t most = 0, count
        module_check(self.ptr.module)
        extent("group_size", group_size, size)
        if args and len(args) != self.ptr.argument_count:
            refuse_count(self.ptr, len(args))
        count = local_arguments(self.takes, args, values)
        with nogil:
            kernel_most_cooperative(self.ptr, size, values, count, &most)
        return most

    def launch(self, *args, groups=None, group_size=None, global_size=None, Queue stream=None,
               bint cooperative=False, global_offset=None):
        """Launch the kernel in the order of a stream. It returns at once.

        Parameters
        ----------
        *args
            The arguments. A pointer takes a Buffer of the device, of host or of shared memory, an array on pinned
            memory, an address of memory that l0rt or the driver knows, `Pointer`, or None for a null pointer. Local
            memory takes `LocalMemory`. A number takes a Python or NumPy number; a vector or a structure takes bytes, or
            a NumPy array or scalar or a ctypes structure of the same elements. A native module does not tell its types:
            there, numbers must be NumPy's or ctypes'.
        groups : int or tuple of int, optional
            The number of groups, along x or along x, y and z. Pass either this or ``global_size``.
        group_size : int or tuple of int, optional
            The number of work-items of a group. Without it, the size is the one that the kernel requires or that the
            driver suggests.
        global_size : int or tuple of int, optional
            The number of work-items. Where it is no multiple of ``group_size``, the last groups are smaller: see Notes.
        stream : Stream or None, optional
            A stream of the module's device. None is its current stream.
        cooperative : bool, optional
            Whether the groups wait for each other, so that all of them must run at the same time.
        global_offset : int or tuple of int, optional
            The first global id, along x or along x, y and z.

        Raises
        ------
        TypeError
            The number of arguments or the type of one is wrong.
        ValueError
            A size or a value is out of range, a Buffer was freed, the module was closed, or the stream is of another
            device.
        UnsupportedError
            The device has no global offsets.

        Notes
        -----
        A ``global_size`` that ``group_size`` does not divide is launched in up to eight parts, one behind the other:
        whole groups, and along each axis a smaller one. The kernel must not require a group size or ask for numbers of
        groups or work-items, nor for its group's number, which each part would count for itself.
        """
        cdef uint32_t[3] count, size, rest, offset
        cdef uint32_t* begin = NULL
        cdef bint is_moved = global_offset is not None
        module_check(self.ptr.module)
        if is_moved:
            extent_from("global_offset", global_offset, 0, offset)
            is_moved = offset[0] != 0 or offset[1] != 0 or offset[2] != 0
        if is_moved:
            begin = offset
        if sizes_of(self, groups, group_size, global_size, count, size, rest):
            Kernel_launch_parts(self, args, count, size, rest, begin, stream, cooperative)
        else:
            Kernel_launch(self, args, count, size, begin, stream, cooperative)

    def __call__(self, *args):
        """Say how a kernel is launched."""
        raise TypeError(f"a launch needs its sizes: {self.name}[groups, group_size](...), or {self.name}.launch(...)")

    def __getitem__(self, sizes):
        cdef Launcher made = new_launcher(sizes)
        made.kernel = self
        return made

    def __reduce__(self):
        raise TypeError("a Kernel cannot be pickled: pickle the code of its module")

    def __repr__(self):
        return f"<l0rt.Kernel {self.name}({', '.join([argument_told(argument) for argument in self.arguments or ()])})>"


@cython.final
@cython.binding(False)
@cython.freelist(8)
cdef class Launcher:
    """A kernel with the sizes of its launches: ``kernel[groups, group_size]``."""
    cdef Kernel kernel          # None: the dispatcher chooses one for each launch
    cdef Dispatcher dispatcher
    cdef Queue stream
    cdef uint32_t[3] groups
    cdef uint32_t[3] size

    def __init__(self):
        raise TypeError("a launch is made by kernel[groups, group_size]")

    def __call__(self, *args):
        """Launch the kernel. See `Kernel.launch`."""
        cdef Kernel kernel = self.kernel
        if kernel is None:
            kernel = Dispatcher_choose(self.dispatcher, args, self.stream)
        Kernel_launch(kernel, args, self.groups, self.size, NULL, self.stream, False)

    def __repr__(self):
        return f"{self.dispatcher if self.kernel is None else self.kernel!r}[{self.groups}, {self.size}]"


cdef Launcher new_launcher(sizes):
    cdef Launcher made
    cdef Py_ssize_t count = PyTuple_GET_SIZE(sizes) if PyTuple_CheckExact(sizes) else 0
    if not 2 <= count <= 3:
        raise TypeError("a launch takes kernel[groups, group_size] or kernel[groups, group_size, stream]")
    made = Launcher.__new__(Launcher)
    extent("groups", <object>PyTuple_GET_ITEM(sizes, 0), made.groups)
    extent("group_size", <object>PyTuple_GET_ITEM(sizes, 1), made.size)
    if count == 3 and sizes[2] is not None:
        if not isinstance(sizes[2], Queue):
            raise TypeError(f"a stream must be a Stream, got {type(sizes[2]).__name__}")
        made.stream = sizes[2]
    return made


@cython.binding(False)
cdef class Dispatcher:
    """What the launches of a specialised kernel look at. `kernels.specialized` has the rest."""
    cdef tuple predicates       # of the variants; the generic one comes behind them
    cdef dict ready             # device's index -> a list of kernels by variant, None for those that are not there
    cdef list row               # the list of the device that launched last, and its index: no list is ever replaced
    cdef int row_index
    cdef array.array hits       # by variant
    cdef int fixed              # the device's index, -1: the one that launches

    def __cinit__(self, tuple predicates=None, dict ready=None, array.array hits=None, int fixed=-1):
        if predicates is None or ready is None or hits is None:
            raise TypeError("a kernel is a module's: module[name]")
        if hits.typecode != "Q" or len(hits) <= len(predicates):
            raise TypeError("hits must be an array of 'Q', with a number for each variant")
        self.predicates, self.ready, self.hits, self.fixed = predicates, ready, hits, fixed

    def _number(self, tuple args not None):
        """Return the number of the variant for some arguments."""
        return Dispatcher_number(self, args)

    def _chosen(self, tuple args not None, stream):
        """Return the kernel for a launch, and count it."""
        return Dispatcher_choose(self, args, stream if isinstance(stream, Queue) else None)

    def __getitem__(self, sizes):
        cdef Launcher made = new_launcher(sizes)
        made.dispatcher = self
        return made


cdef Py_ssize_t Dispatcher_number(Dispatcher self, tuple args) except -1:
    cdef Py_ssize_t at, count = PyTuple_GET_SIZE(self.predicates)
    for at in range(count):
        found = call(<object>PyTuple_GET_ITEM(self.predicates, at), args)
        if found is True:
            return at
        if found is not False:
            if not isinstance(found, np.bool_):     # nearly always a mistake
                raise TypeError(f"the predicate of specialize_on[{at}] must return a bool, got {type(found).__name__}")
            if found:
                return at
    return count


cdef Kernel Dispatcher_choose(Dispatcher self, tuple args, Queue stream):
    cdef Py_ssize_t number = Dispatcher_number(self, args)
    cdef int index = self.fixed
    if index < 0:
        index = current_device() if stream is None else stream.ptr.device.index
    if self.row is None or self.row_index != index:
        self.row, self.row_index = self.ready.get(index), index
    kernel = None if self.row is None else self.row[number]
    if kernel is None:
        return self._missed(number, index)
    self.hits.data.as_ulonglongs[number] += 1
    return <Kernel>kernel


cdef Kernel new_kernel(l0rt_kernel* kernel, str name, interface):
    cdef Kernel self = Kernel.__new__(Kernel)
    self.name = name
    self.ptr = kernel
    module_retain(kernel.module)
    if interface is not None and len(interface.arguments) == kernel.argument_count:
        self.arguments = interface.arguments
        self.required, self.counts_items = interface.required_group_size, interface.counts_items
    else:
        self.counts_items = True
        self.required = kernel_properties(kernel)["required_group_size"]
    self.takes = new_parameters(kernel, name, self.arguments)
    if kernel.told == NULL:
        told = (interface, self.required)
        Py_INCREF(told)
        kernel.told = <PyObject*>told
    return self


cdef Kernel kernel_of(l0rt_kernel* kernel):
    cdef Kernel made
    name = kernel.name.decode("utf-8", "replace")
    interface, required = <tuple>kernel.told if kernel.told != NULL else (None, None)
    if interface is not None or kernel.told == NULL:
        return new_kernel(kernel, name, interface)
    made = Kernel.__new__(Kernel)       # what a native module says of it is known: the module may be closed
    made.name, made.ptr, made.required, made.counts_items = name, kernel, required, True
    module_retain(kernel.module)
    made.takes = new_parameters(kernel, name, None)
    return made


# --- Sizes of a launch.


cdef int extent(str what, value, uint32_t* out) except -1:
    """A size along x, or along up to three axes."""
    return extent_from(what, value, 1, out)


cdef int extent_from(str what, value, long least, uint32_t* out) except -1:
    """A number of at least so much along x, or along up to three axes. Along the others it is that."""
    cdef Py_ssize_t count = 1
    out[1] = out[2] = least
    if not PyLong_CheckExact(value) and isinstance(value, (tuple, list)):
        count = len(value)
        if not 1 <= count <= 3:
            raise ValueError(f"{what} must have 1 to 3 sizes, got {count}")
        for i in range(count):
            out[i] = one_size(what, value[i], least)
        return 0
    out[0] = one_size(what, value, least)
    return 0


cdef uint32_t one_size(str what, value, long least) except? 0:
    cdef long plain = plain_int(value)
    if least <= plain <= <long>0xFFFFFFFF:
        return <uint32_t>plain
    if not is_whole(value):
        raise TypeError(f"{what} must be an int or a tuple of ints, got {type(value).__name__}")
    number = whole(value, what)
    if not least <= number < 1 << 32:
        raise ValueError(f"{what} must be {least} to 2**32 - 1, got {number}")
    return number


cdef int sizes_of(
        Kernel self, groups, group_size, global_size, uint32_t* count, uint32_t* size, uint32_t* rest) except -1:
    """The number of whole groups and the size of each; 1: there are so many work-items more, along each axis."""
    cdef uint32_t[3] items
    cdef int has_rest = 0
    if (groups is None) == (global_size is None):
        raise ValueError("a launch takes groups= or global_size=, one of the two")
    if group_size is None and self.required is not None:
        group_size = self.required
    if group_size is not None:
        extent("group_size", group_size, size)
    if groups is not None:
        extent("groups", groups, count)
        if group_size is None:
            suggest_for(self, count, size)
        return 0
    extent("global_size", global_size, items)
    if group_size is None:
        with nogil:
            kernel_suggest(self.ptr, items, size)
    for i in range(3):
        count[i], rest[i] = items[i] // size[i], items[i] % size[i]
        has_rest |= rest[i] != 0
    return has_rest


cdef int suggest_for(Kernel self, const uint32_t* groups, uint32_t* size) except -1:
    """The group size that the driver suggests for so many groups, where each axis with several groups may have as many
    work-items as the others."""
    cdef uint32_t[3] items
    cdef uint64_t most
    cdef int axes = (groups[0] > 1) + (groups[1] > 1) + (groups[2] > 1), bits = 0
    while self.ptr.module.most_items_of_group >> (bits + 1) != 0:
        bits += 1
    for i in range(3):
        most = 1 << bits // max(axes, 1) if groups[i] > 1 or axes == 0 and i == 0 else 1
        items[i] = min(groups[i] * most, 0xFFFFFFFF)
    with nogil:
        kernel_suggest(self.ptr, items, size)
    return 0


# --- The launch.


cdef int Kernel_launch_parts(
        Kernel self, tuple args, const uint32_t* groups, const uint32_t* size, const uint32_t* rest,
        const uint32_t* offset, Queue stream, bint cooperative) except -1:
    """Launch the whole groups, and what is left along each axis, of sizes that groups do not divide."""
    cdef uint32_t[3] part_groups, part_size, part_offset
    cdef uint32_t begin
    cdef bint is_empty
    cdef str why = ("the kernel requires its group size" if self.required is not None
                    else "the groups of a cooperative launch run together" if cooperative
                    else "the device has no global offsets" if not self.ptr.module.device.caps.global_offset
                    else "the kernel counts groups or work-items, or it is native code" if self.counts_items else None)
    if why is not None:
        raise ValueError(f"{self.name}(): global_size must be a multiple of group_size, for {why}: got "
                         f"{[groups[i] * size[i] + rest[i] for i in range(3)]} and {[size[0], size[1], size[2]]}")
    for part in range(8):
        is_empty = False
        for i in range(3):
            begin = offset[i] if offset != NULL else 0
            if part >> i & 1:
                part_groups[i], part_size[i], part_offset[i] = 1, rest[i], begin + groups[i] * size[i]
            else:
                part_groups[i], part_size[i], part_offset[i] = groups[i], size[i], begin
            is_empty |= part_groups[i] == 0 or part_size[i] == 0
        if not is_empty:
            Kernel_launch(self, args, part_groups, part_size, part_offset, stream, cooperative)
    return 0


cdef int Kernel_launch(
        Kernel self, tuple args, const uint32_t* groups, const uint32_t* size, const uint32_t* offset, Queue stream,
        bint cooperative) except -1:
    cdef Slot[FEW] few_slots
    cdef l0rt_arg[FEW] few_values
    cdef Slot* slots = few_slots
    cdef l0rt_arg* values = few_values
    cdef bytearray scratch = None
    cdef Py_ssize_t count = PyTuple_GET_SIZE(args), taken = 0
    cdef l0rt_kernel* kernel = self.ptr
    cdef l0rt_stream* on
    module_check(self.ptr.module)
    if count != kernel.argument_count:
        refuse_count(kernel, count)
    on = stream.ptr if stream is not None else current_stream(kernel.module.device.index)
    Kernel_check_size(self, size)
    if count > FEW:
        scratch = bytearray(count * (sizeof(Slot) + sizeof(l0rt_arg)))
        slots = <Slot*>PyByteArray_AS_STRING(scratch)
        values = <l0rt_arg*>&slots[count]
    try:
        while taken < count:
            taken += 1
            argument_take(self.takes, taken - 1, <object>PyTuple_GET_ITEM(args, taken - 1), &slots[taken - 1],
                          &values[taken - 1], on)
        with nogil:
            kernel_launch(kernel, groups, size, offset, values, count, cooperative, on)
        if has_hooks():
            note_accesses(self, slots, count, on)
    finally:
        while taken > 0:
            taken -= 1
            if slots[taken].buffer != NULL or slots[taken].viewed:
                slot_let_go(&slots[taken])
    return 0


cdef int Kernel_check_size(Kernel self, const uint32_t* size) except -1:
    if self.required is not None and (size[0], size[1], size[2]) != self.required:
        raise ValueError(f"{self.name}() requires group_size={self.required}, got {(size[0], size[1], size[2])}")
    return 0


cdef int note_accesses(Kernel self, Slot* slots, Py_ssize_t count, l0rt_stream* on) except -1:
    """Tell the hooks which Buffers the launch reads and writes."""
    cdef Expected* expected = self.takes.expected
    for at in range(count):
        if slots[at].buffer != NULL:
            call_hooks(KERNEL_ACCESS, <uint64_t>on, slots[at].word, slots[at].nbytes,
                       3 if expected == NULL else expected[at].access)
    return 0


made_by(Kernel, "a kernel is a module's: module[name]")
made_by(Launcher, "a launch is made by kernel[groups, group_size]")
known_as(Kernel, b"l0rt.kernels.Kernel")
