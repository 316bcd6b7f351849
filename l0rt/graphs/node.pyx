# SPDX-License-Identifier: Apache-2.0
"""Nodes in Python: what one thing that a graph does is, and changes of it, checked before any of them is made."""

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.long cimport PyLong_CheckExact
from libc.stdint cimport uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from l0rt._base.arguments cimport checked_pattern, is_whole, known_as, whole
from l0rt.buffers.copies cimport Side, side_of
from l0rt._base.factory cimport made_by
from l0rt.graphs.recording cimport Recording, node_kind, node_name
from l0rt.kernels.arguments cimport Slot, argument_take, argument_value, slot_access, slot_let_go
from l0rt.kernels.kernel cimport Kernel, Kernel_check_size, extent, kernel_of
from l0rt.launch.launch cimport l0rt_access, l0rt_arg, l0rt_recorded_launch, launch_changed, launch_check
from l0rt.runtime.current.stream cimport stream_object
from l0rt.runtime.memory.registration cimport is_registered
from l0rt.runtime.memory.transfer cimport check_apart, rows_span
from l0rt.runtime.streams.capture cimport (
    NODE_CALLBACK,
    NODE_COPY,
    NODE_FILL,
    NODE_KERNEL,
    NODE_ROWS,
    NODE_WAIT,
    l0rt_branch,
    l0rt_node,
)
from l0rt.runtime.streams.types cimport *

from l0rt.graphs.recording import NoNodesError

# What `update` takes for each kind.
cdef dict TAKES = {"kernel": "args, groups, group_size", "copy": "src, dst", "fill": "dst, value"}


@cython.final
@cython.binding(False)
cdef class Node:
    """One thing that a graph does: ``graph.nodes`` has them in the order in which they were captured.

    Two objects are equal if they are the same node of the same capture.
    """

    def __init__(self):
        raise TypeError("the nodes of a graph are graph.nodes")

    @property
    def stream(self):
        """The stream that it was captured from."""
        return stream_object(branch_of(self).stream)

    @property
    def nbytes(self):
        """How many bytes a copy or a fill writes; 0 of other nodes."""
        return node_of(self).nbytes

    @property
    def name(self):
        """The name of a kernel or of a callback's function; None of other nodes."""
        return node_name(self.recording, node_of(self))

    @property
    def arguments(self):
        """The values of a kernel's arguments; ``(dst, src)`` of a copy and ``(dst, value)`` of a fill; a callback's
        arguments; nothing of a wait.

        Memory is an address, and a fill's value its pattern's bytes. Arguments whose type is not known are bytes.
        """
        cdef l0rt_node* node = node_of(self)
        cdef Kernel kernel
        cdef l0rt_recorded_launch* launch
        if node.kind == NODE_KERNEL:
            kernel = kernel_of_node(self)
            with self.recording.turn:
                launch = launch_of(node_of(self))
                return tuple([argument_value(kernel.takes, at, &launch.args[at]) for at in range(launch.count)])
        if node.kind == NODE_FILL:
            return <size_t>node.target, (<const char*>node.payload)[:node.size]
        if node.kind == NODE_CALLBACK:
            return (<list>self.recording.capture.objects)[node.size][1]
        return () if node.kind == NODE_WAIT else (<size_t>node.target, <size_t>node.source)

    @property
    def groups(self):
        """The number of a kernel's groups along x, y and z; None of other nodes."""
        cdef l0rt_node* node = node_of(self)
        return sizes(launch_of(node).groups) if node.kind == NODE_KERNEL else None

    @property
    def group_size(self):
        """The number of work-items of a kernel's group along x, y and z; None of other nodes."""
        cdef l0rt_node* node = node_of(self)
        return sizes(launch_of(node).group_size) if node.kind == NODE_KERNEL else None

    @property
    def global_offset(self):
        """The first global id of a kernel along x, y and z; None of other nodes."""
        cdef l0rt_node* node = node_of(self)
        return sizes(launch_of(node).offset) if node.kind == NODE_KERNEL else None

    def update(self, *, args=None, src=None, dst=None, value=None, groups=None, group_size=None):
        """Change what the node does in later replays, without a new capture.

        A replay that was issued before is not changed. What is not given stays. Either all of the changes are made or,
        with an exception, none is. The host does not wait, unless it is several replays with changes ahead of the
        device.

        Parameters
        ----------
        args : dict of int to object, optional
            Arguments of a kernel by index, from 0 on. Values are what a launch takes.
        src : Buffer, bytes-like or int, optional
            What a copy copies from: memory of a device or pinned memory, or its address. It has at least as many bytes
            as the node copies.
        dst : Buffer, writable bytes-like or int, optional
            What a copy or a fill writes to, likewise.
        value : int or bytes-like, optional
            The byte of a fill, 0 to 255, or a pattern of 1, 2, 4, 8 or 16 bytes.
        groups : int or tuple of int, optional
            The number of groups of a kernel.
        group_size : int or tuple of int, optional
            The number of work-items of a group.

        Raises
        ------
        TypeError
            The node cannot be changed so: a wait or a callback cannot at all, and nothing else has all of these. Or an
            argument is of a wrong type.
        ValueError
            A size or a value is out of range, memory was freed, is too small, overlaps the other side, or is not the
            device's nor pinned.
        IndexError
            The kernel has no argument of this index.
        RuntimeError
            The graph was reset or dropped.

        Notes
        -----
        The nodes are changed in the driver's command lists by the next replay. A kernel's argument is changed in the
        list that has it, if the driver has mutable command lists; otherwise, and for copies and fills, the list is
        recorded anew.
        """
        cdef int kind = node_of(self).kind
        if kind == NODE_KERNEL:
            if src is not None or dst is not None or value is not None or (
                    args is None and groups is None and group_size is None):
                refuse(self, src=src, dst=dst, value=value)
            update_kernel(self, args, groups, group_size)
        elif kind == NODE_FILL:
            if args is not None or src is not None or groups is not None or group_size is not None or (
                    dst is None and value is None):
                refuse(self, args=args, src=src, groups=groups, group_size=group_size)
            update_memory(self, None, dst, value)
        elif kind == NODE_COPY or kind == NODE_ROWS:
            if args is not None or value is not None or groups is not None or group_size is not None or (
                    src is None and dst is None):
                refuse(self, args=args, value=value, groups=groups, group_size=group_size)
            update_memory(self, src, dst, None)
        else:
            raise TypeError(f"a {self.kind} cannot be updated: kernels, copies and fills can")

    def __eq__(self, other):
        return (isinstance(other, Node) and (<Node>other).recording is self.recording
                and (<Node>other).number == self.number)

    def __hash__(self):
        return hash((id(self.recording), self.number))

    def __reduce__(self):
        raise TypeError("a node of a graph cannot be pickled")

    def __repr__(self):
        if self.recording.capture == NULL:
            return f"<l0rt.graphs.Node {self.kind}, of a graph that was reset>"
        return f"<l0rt.graphs.Node {' '.join(filter(None, (self.kind, self.name)))} on {self.stream}>"


made_by(Node, "the nodes of a graph are graph.nodes")


cdef tuple nodes_of(Recording recording):
    cdef list nodes = []
    cdef Node node
    cdef uint32_t i
    if recording is None:
        raise NoNodesError("the graph has nothing captured yet")
    with recording.turn:
        recording.check_open()
        for i in range(recording.capture.count):
            node = Node.__new__(Node)
            node.recording, node.number = recording, i + 1
            node.kind = node_kind(&recording.capture.nodes[i])
            nodes.append(node)
    return tuple(nodes)


cdef l0rt_node* node_of(Node self) except NULL:
    self.recording.check_open()
    return &self.recording.capture.nodes[self.number - 1]


cdef l0rt_branch* branch_of(Node self) except NULL:
    return self.recording.capture.branches[node_of(self).branch]


cdef inline l0rt_recorded_launch* launch_of(const l0rt_node* node) noexcept:
    return <l0rt_recorded_launch*>node.payload


cdef tuple sizes(const uint32_t* size):
    return size[0], size[1], size[2]


def refuse(Node self, **others):
    """Raise for an update with what a node of its kind does not have, or without anything that it has."""
    for name, what in others.items():
        if what is not None:
            raise TypeError(f"a {self.kind} has no {name}=: its update takes {TAKES[self.kind]}")
    raise TypeError(f"update() of a {self.kind} takes at least one of {TAKES[self.kind]}")


# --- Kernels.


cdef Kernel kernel_of_node(Node self):
    if self.kernel is None:
        self.kernel = kernel_of(launch_of(node_of(self)).kernel)
    return self.kernel


cdef int update_kernel(Node self, args, groups, group_size) except -1:
    cdef uint32_t[3] count, size
    cdef uint32_t changes = 0, i
    cdef l0rt_access* access
    cdef int how
    cdef Kernel kernel = kernel_of_node(self)
    cdef dict entries = args if type(args) is dict else dict_of(args)
    cdef Py_ssize_t most = len(entries) + 1
    cdef bytearray scratch = bytearray(most * (sizeof(Slot) + sizeof(l0rt_arg) + sizeof(uint32_t)))
    cdef Slot* slots = <Slot*>PyByteArray_AS_STRING(scratch)
    cdef l0rt_arg* values = <l0rt_arg*>&slots[most]
    cdef uint32_t* which = <uint32_t*>&values[most]
    if groups is not None:
        extent("groups", groups, count)
    if group_size is not None:
        extent("group_size", group_size, size)
        Kernel_check_size(kernel, size)
    try:
        for index, value in entries.items():
            if changes == most:
                raise RuntimeError("args changed while it was read")
            which[changes] = index_of(kernel, index)
            changes += 1
            argument_take(kernel.takes, which[changes - 1], value, &slots[changes - 1], &values[changes - 1], NULL)
        with self.recording.turn:
            change_launch(self, kernel, changes, which, values, count if groups is not None else NULL,
                          size if group_size is not None else NULL)
            for i in range(changes):
                access = &launch_of(node_of(self)).accesses[which[i]]
                how = access.how        # of the launch: its module may know more than the node's kernel
                access[0] = slot_access(kernel.takes, which[i], &slots[i])
                if how != 0:
                    access.how = how
    finally:
        while changes > 0:
            changes -= 1
            slot_let_go(&slots[changes])
    return 0


cdef dict dict_of(args):
    if args is not None and not hasattr(args, "items"):
        raise TypeError(f"args must be a dict of index to value, got {type(args).__name__}")
    return {} if args is None else dict(args.items())


cdef uint32_t index_of(Kernel kernel, index) except? 0:
    if PyLong_CheckExact(index) and 0 <= index < kernel.ptr.argument_count:
        return index
    if not is_whole(index):
        raise TypeError(f"args must be a dict of index to value: an index is an int, got {type(index).__name__}")
    at = whole(index, "an index")
    if not 0 <= at < kernel.ptr.argument_count:
        raise IndexError(f"{kernel.name}() has {kernel.ptr.argument_count} arguments, and none of index {at}")
    return at


cdef int change_launch(Node self, Kernel kernel, uint32_t changes, const uint32_t* which, const l0rt_arg* values,
                       const uint32_t* groups, const uint32_t* size) except -1:
    """With what was taken from the caller: nothing else runs meanwhile that could change the node."""
    cdef l0rt_node* node = node_of(self)
    cdef l0rt_recorded_launch* launch = launch_of(node)
    cdef l0rt_recorded_launch* changed
    cdef bytearray scratch = bytearray((launch.count + 1) * sizeof(l0rt_arg))
    cdef l0rt_arg* all_values = <l0rt_arg*>PyByteArray_AS_STRING(scratch)
    cdef uint32_t i
    cdef bint changes_local = size != NULL
    memcpy(all_values, launch.args, launch.count * sizeof(l0rt_arg))
    for i in range(changes):
        if (values[i].value == NULL) != (launch.args[which[i]].value == NULL) or (
                values[i].value != NULL and values[i].size != launch.args[which[i]].size):
            raise TypeError(f"{kernel.name}() argument {which[i]} must have {launch.args[which[i]].size} bytes, as in "
                            f"the launch that was captured, got {values[i].size}")
        all_values[which[i]] = values[i]
        changes_local |= values[i].value == NULL
    if changes_local or groups != NULL:
        launch_check(launch, groups if groups != NULL else launch.groups, size if size != NULL else launch.group_size,
                     all_values)
    self.recording.announce_change()
    changed = launch_changed(launch, changes, which, values, groups, size, self.recording.now)
    if changed == NULL:
        raise MemoryError()
    node.payload = changed
    free(launch)
    self.recording.note_change(self.number)
    return 0


# --- Copies and fills.


cdef int update_memory(Node self, src, dst, value) except -1:
    cdef l0rt_node* node = node_of(self)
    cdef const l0rt_rows* rows = <const l0rt_rows*>node.payload if node.kind == NODE_ROWS else NULL
    cdef size_t nbytes = node.nbytes
    cdef Side target = None
    cdef Side source = None
    cdef bytes pattern = None
    cdef void* copy = NULL
    cdef size_t target_span = nbytes if rows == NULL else rows_span(rows, rows.target_pitch)
    cdef size_t source_span = nbytes if rows == NULL else rows_span(rows, rows.source_pitch)
    if dst is not None:
        target = side_of(dst, target_span, True, "update")
        check_reach(self, target, "dst")
    if src is not None:
        source = side_of(src, source_span, False, "update")
        check_reach(self, source, "src")
    if value is not None:
        pattern = checked_pattern(value, None, nbytes) if is_whole(value) else checked_pattern(None, value, nbytes)
    with self.recording.turn:
        node = node_of(self)        # which may have gone since, with its rows
        rows = <const l0rt_rows*>node.payload if node.kind == NODE_ROWS else NULL
        if node.kind != NODE_FILL:
            check_apart(node.target if target is None else target.operand.pointer,
                        node.source if source is None else source.operand.pointer, nbytes, rows)
        if pattern is not None:
            copy = malloc(len(pattern))
            if copy == NULL:
                raise MemoryError()
            memcpy(copy, <const char*>pattern, len(pattern))
        try:
            self.recording.announce_change()
        except BaseException:
            free(copy)
            raise
        if target is not None:
            node.target = target.operand.pointer
        if source is not None:
            node.source = source.operand.pointer
        if copy != NULL:
            free(node.payload)
            node.payload, node.size = copy, len(pattern)
        self.recording.note_change(self.number)
    return 0


cdef int check_reach(Node self, Side side, str what) except -1:
    """What the host alone knows, a queue cannot copy: such a copy would not have been captured either."""
    cdef l0rt_device* device = branch_of(self).device
    if side.is_plain:
        if not is_registered(side.operand.pointer, side.operand.nbytes) or device.foreign_imports:
            raise ValueError(f"{what} must be memory of the device or pinned memory: a graph cannot wait for the host")
    elif side.operand.device.context != device.context:
        raise ValueError(f"{what} must be memory that the node's device {device.index} reaches")
    return 0


known_as(Node, b"l0rt.graphs.Node")
