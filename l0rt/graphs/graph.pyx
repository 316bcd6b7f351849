# SPDX-License-Identifier: Apache-2.0
"""Graphs in Python: capture, replay, and the block around a capture."""

import gc

cimport cython
from cpython.object cimport PyObject, PyTypeObject

from l0rt.arguments cimport known_as
from l0rt.graphs.executable cimport Executable
from l0rt.graphs.node cimport nodes_of
from l0rt.graphs.recording cimport Recording
from l0rt.runtime.current.event cimport built_in_event
from l0rt.runtime.current.generator cimport STATE_BYTES, CapturedState, Generator
from l0rt.runtime.current.thread cimport current_device, current_stream
from l0rt.runtime.streams.capture cimport (
    MODE_GLOBAL,
    MODE_RELAXED,
    MODE_THREAD_LOCAL,
    NODE_CALLBACK,
    capture_is_of_thread,
    captures,
    l0rt_node,
)
from l0rt.runtime.streams.naming cimport call, current_type, get_slots, maker_of, set_slots, slots
from l0rt.runtime.streams.queue cimport Queue
from l0rt.runtime.streams.types cimport *

from l0rt.graphs.drawing import dot, page
from l0rt.graphs.recording import described
from l0rt.otherbuffer import empty
from l0rt.paths import plain_path
from l0rt.runtime.current import callbacks
from l0rt.runtime.current.generator import default_generator
from l0rt.runtime.current.lease import lease
from l0rt.runtime.current.stream import XpuStream, default_stream, synchronize
from l0rt.runtime.memory.device import let_go_before_trim
from l0rt.runtime.memory.pools import MemPool, XpuMemPool, pool_of, trim_pools, use_mem_pool
from l0rt.runtime.streams.devices import lazy

cdef dict MODES = {
    "default": MODE_THREAD_LOCAL, "thread_local": MODE_THREAD_LOCAL, "global": MODE_GLOBAL, "relaxed": MODE_RELAXED}

# (Executable or None, Recording) of dropped graphs whose last replay may be running.
cdef list _leaving = []


class PoolHandle(tuple):
    """The id of a graph's pool, which lives as long as a graph or a handle has it."""

    def __reduce__(self):
        return tuple, (tuple(self),)


def graph_pool_handle():
    """Return the id of a new memory pool, for graphs that share it: see `l0rt.accelerator.graph_pool_handle`.

    Returns
    -------
    tuple of two int
    """
    return handle_of(XpuMemPool())


cdef object handle_of(pool):
    handle = PoolHandle(pool.id)
    handle.pool = pool
    return handle


cdef object pool_named(handle):
    """The MemPool that a handle, an id or None means; None is a new one."""
    if handle is None:
        return XpuMemPool()
    if isinstance(handle, MemPool):
        return handle
    pool = getattr(handle, "pool", None)
    if isinstance(handle, PoolHandle) and pool is not None:
        return pool
    if not isinstance(handle, tuple):
        raise TypeError(f"pool must be what graph_pool_handle() or Graph.pool() returned, not {type(handle).__name__}")
    pool = pool_of(handle)
    if pool is None:
        raise ValueError(f"there is no memory pool with the id {handle}")
    return pool


def is_current_stream_capturing():
    """Return whether a graph is being captured from the calling thread's current stream.

    Returns
    -------
    bool
    """
    return lazy.initialized and captures(current_stream(-1))


def sweep_graphs():
    """Destroy what dropped graphs have left, unless it may be running."""
    cdef Executable executable
    for pair in list(_leaving):
        executable = pair[0]
        if executable.is_idle() and pair in _leaving:
            _leaving.remove(pair)
            executable.close()
            (<Recording>pair[1]).close()


@cython.binding(False)
cdef class Graph:
    """Graph(keep_graph=False, *, pool=None, capture_error_mode="default")
--

Work of streams that is recorded once and replayed as often as one likes, for less than it costs to issue it.

Between `capture_begin` and `capture_end`, what the thread's current stream is given is recorded and does not run:
copies, fills, launches of kernels, waits for events, and callbacks. Another stream joins the capture when it waits for
an event of a stream that is in it. Before the end, the first stream must wait for all others. As a context manager
the graph captures what the block gives to the current stream.

What the thread allocates meanwhile comes from the graph's memory pool and has the same address in every replay. Other
memory that the graph uses must be kept by the caller.

Parameters
----------
keep_graph : bool, optional
    Build what is replayed at `instantiate` or the first replay instead of at the end of the capture.
pool : tuple of two int or None, optional
    What `graph_pool_handle` or another graph's `pool` returned: graphs that never run at the same time can share
    memory. None makes a pool.
capture_error_mode : "default", "thread_local", "global" or "relaxed", optional
    Which waits for a whole device are refused during the capture: the capturing thread's (``thread_local``, which is
    the default), those of every thread (``global``), or none (``relaxed``). Waits for a stream that is captured are
    always refused.

Raises
------
ValueError
    There is no such mode or pool.
NotImplementedError
    The current accelerator has no graphs.

Notes
-----
The interface is that of ``torch.accelerator.Graph``. A graph is one that the driver has recorded, or a set of closed
command lists of Level Zero, which command queues execute, ordered by events. Either is a copy of what was captured, so
a graph is replayed on any stream of its device.
"""

    cdef Recording recording
    cdef Executable executable
    cdef object inside              # the use_mem_pool block around the capture
    cdef object memory              # the MemPool
    cdef bint keeps
    cdef readonly str capture_error_mode
    cdef list called                # (function, arguments) at each replay
    cdef list generators            # that were registered, each with the state that it had then
    cdef object __weakref__

    def __cinit__(self, keep_graph=False, *, pool=None, capture_error_mode="default"):
        if capture_error_mode not in MODES:
            raise ValueError(f"capture_error_mode must be one of {', '.join(MODES)}, got {capture_error_mode!r}")
        lazy.init()
        self.keeps = bool(keep_graph)
        self.capture_error_mode = capture_error_mode
        self.memory = None if pool is None else pool_named(pool)
        self.generators = []
        sweep_graphs()

    @property
    def graph_pool(self):
        """The id of the memory pool that the graph was given or has made; None before its capture."""
        return None if self.memory is None else handle_of(self.memory)

    def capture_begin(self):
        """Begin to record what the thread's current stream is given.

        Raises
        ------
        RuntimeError
            The stream or the graph is in a capture already, or the graph has one: `reset` drops it.
        """
        begin(self, None)

    def capture_end(self):
        """End the capture. Without ``keep_graph`` it also builds what is replayed.

        Raises
        ------
        RuntimeError
            Nothing is being captured by this graph and thread, a call that cannot be captured has ended the capture,
            or a stream that joined it was not joined. There is no graph then, and all streams are as they were before
            the capture.
        """
        cdef Recording recording = self.recording
        if recording is None or self.inside is None:
            raise RuntimeError("capture_end() needs a capture that capture_begin() of this graph has begun")
        if not capture_is_of_thread(recording.capture):
            raise RuntimeError("a capture must end on the thread on which it began")
        self.inside.__exit__(None, None, None)
        self.inside = None
        try:
            recording.end()
            self.called = callbacks_of(recording)
            if not self.keeps:
                with recording.turn:
                    self.executable = Executable.build(recording)
        except BaseException:
            self.recording = None
            recording.close()
            raise

    def register_generator_state(self, Generator generator not None):
        """Let captures of this graph draw random numbers from ``generator``.

        Each replay uses the numbers that the captured calls would have used if they had been issued then. So the
        generator's offset advances by what they use, and no two replays have the same numbers. The default generator
        of the device is registered by itself.

        Parameters
        ----------
        generator : Generator
            A generator of the device of which streams are captured.

        Raises
        ------
        RuntimeError
            A capture of this graph is under way.
        ValueError
            The generator is of another device type.

        Notes
        -----
        The name and the contract are those of ``torch.cuda.CUDAGraph.register_generator_state``. What is registered is
        the state, which generators can share: see `Generator.graphsafe_get_state`.
        """
        cdef Generator same
        if self.inside is not None:
            raise RuntimeError("a generator must be registered before the capture begins")
        if generator.type != lazy.device_type:
            raise ValueError(f"graphs are of devices of type {lazy.device_type}, the generator of {generator.device}")
        same = generator.graphsafe_get_state()      # what it shares later is another state
        for registered in self.generators:
            if (<Generator>registered).state is same.state:
                return
        self.generators.append(same)

    def instantiate(self):
        """Build what is replayed, of a graph that was made with ``keep_graph=True``.

        A second call waits for the replays of what the first has built, and builds it anew.

        Raises
        ------
        RuntimeError
            The graph was not made so, or has no capture.
        """
        if not self.keeps:
            raise RuntimeError("instantiate() is for graphs that were made with keep_graph=True")
        built(self, True)

    def replay(self):
        """Issue what was captured, in the order of the current stream of the graph's device.

        The host continues at once. Replays of one graph run one after another, on whatever streams.

        Raises
        ------
        RuntimeError
            Nothing was captured.
        """
        cdef Executable executable = built(self, False)
        cdef l0rt_stream* stream = current_stream(executable.device.index)
        executable.replay(stream)
        if self.called is not None:
            event = built_in_event(False)
            event.record(XpuStream(stream_id=stream.id, device_index=stream.device.index))
            for function, args in self.called:
                callbacks.add(<size_t>stream, event, function, args)

    def reset(self):
        """Drop the capture, wait for its replays, and let go of the memory pool. A capture that is under way ends.

        Raises
        ------
        KernelFaultError
            A launch of a replay has failed, of which no wait has told yet. The graph is empty then as well.
        """
        cdef Executable executable = self.executable
        cdef Recording recording = self.recording
        failure = None
        self.called = None
        if self.inside is not None:
            if capture_is_of_thread(recording.capture):
                self.inside._leave()
            self.inside = None
        if executable is not None:
            failure = executable.rest()
            self.executable = None
            executable.close()
        self.recording = self.memory = None
        if recording is not None:
            recording.close()
        sweep_graphs()
        if failure is not None:
            raise failure

    def pool(self):
        """Return the id of the graph's memory pool, which other graphs can share.

        Returns
        -------
        tuple of two int

        Raises
        ------
        RuntimeError
            The graph has no pool before its capture.
        """
        if self.memory is None:
            raise RuntimeError("the graph has no memory pool before its capture")
        return handle_of(self.memory)

    @property
    def nodes(self):
        """What was captured, a tuple of nodes in the order of the capture. `Node.update` changes one of them.

        Raises
        ------
        RuntimeError
            Nothing was captured.
        """
        check_captured(self)
        return nodes_of(self.recording)

    def enable_debug_mode(self):
        """Do nothing: `debug_dump` works without it. The method exists because torch has it."""

    def debug_dump(self, debug_path):
        """Write the nodes of the graph and their dependencies to a file, in the language of Graphviz (DOT).

        Parameters
        ----------
        debug_path : str or os.PathLike
            The file.

        Raises
        ------
        RuntimeError
            Nothing was captured.
        """
        check_captured(self)
        with open(plain_path(debug_path), "w", encoding="utf-8") as file:
            file.write(dot(described(self.recording)))

    def to_html(self, path=None):
        """Return a page of HTML that shows the nodes, their streams, sizes and events, and needs no other file.

        Parameters
        ----------
        path : str or os.PathLike or None, optional
            A file into which the page is written, too.

        Returns
        -------
        str

        Raises
        ------
        RuntimeError
            Nothing was captured.
        """
        check_captured(self)
        text = page(described(self.recording))
        if path is not None:
            with open(plain_path(path), "w", encoding="utf-8") as file:
                file.write(text)
        return text

    def __enter__(self):
        synchronize()
        trim_pools()
        self.capture_begin()
        return self

    def __exit__(self, kind, value, trace):
        leave_block(self, kind)

    def __del__(self):
        if self.recording is not None:
            let_go(self)

    def __reduce__(self):
        raise TypeError("a Graph cannot be pickled")

    def __repr__(self):
        state = ("empty" if self.recording is None else "capturing" if self.inside is not None
                 else f"{self.recording.capture.count} nodes")
        return f"<l0rt.Graph {state}>"


cdef int check_captured(Graph graph) except -1:
    if graph.recording is None or graph.inside is not None:
        raise RuntimeError("the graph has nothing captured yet")
    return 0


cdef int begin(Graph graph, pool) except -1:
    cdef l0rt_stream* stream = current_stream(-1)
    if graph.recording is not None:
        raise RuntimeError("the graph has a capture already: reset() drops it")
    sweep_graphs()
    memory = pool_named(pool) if pool is not None else graph.memory if graph.memory is not None else XpuMemPool()
    graph.recording = Recording.begin(
        stream, MODES[graph.capture_error_mode], memory, states_of(graph, stream.device.index))
    graph.memory = memory
    inside = use_mem_pool(memory)
    inside.__enter__()
    graph.inside = inside
    return 0


def begin_with(Graph graph not None, pool):
    """Begin a capture that allocates from this pool; None: from the graph's own."""
    begin(graph, pool)


cdef list states_of(Graph graph, int index):
    """What a capture of streams of this device draws from. The memory is no node's, and so of the default stream."""
    cdef Generator default = default_generator(index)
    cdef Generator generator
    found = []
    for registered in [default, *graph.generators]:
        generator = registered
        if generator.index != index:
            raise ValueError(f"the graph is of device {index}, a generator that was registered of {generator.device}")
        if generator.state is not default.state or generator is default:
            memory = empty(STATE_BYTES, device=index, stream=default_stream(index))
            found.append(CapturedState.create(generator, memory))
    return found


cdef Executable built(Graph graph, bint anew):
    cdef Executable executable
    check_captured(graph)
    if anew and graph.executable is not None:
        executable, graph.executable = graph.executable, None
        failure = executable.rest()
        executable.close()
        if failure is not None:
            raise failure
    with graph.recording.turn:
        if graph.executable is None:
            graph.executable = Executable.build(graph.recording)
        return graph.executable


cdef list callbacks_of(Recording recording):
    """What each replay calls, None for nothing."""
    cdef l0rt_node* node
    found = []
    for i in range(recording.capture.count):
        node = &recording.capture.nodes[i]
        if node.kind == NODE_CALLBACK:
            found.append((<list>recording.capture.objects)[node.size])
    return found or None


cdef int leave_block(Graph graph, kind) except -1:
    """The end of a with block: of one that raises, the exception is what counts."""
    if kind is None:
        graph.capture_end()
    elif graph.inside is not None:
        graph.reset()
    return 0


cdef int let_go(Graph graph) except -1:
    """The graph is dropped: without a wait."""
    cdef Executable executable = graph.executable
    cdef Recording recording = graph.recording
    if graph.inside is not None and capture_is_of_thread(recording.capture):
        graph.inside._leave()
    graph.inside = graph.executable = graph.recording = graph.memory = None
    if executable is not None:
        _leaving.append((executable, recording))
        sweep_graphs()
    else:
        recording.close()
    return 0


@cython.binding(False)
cdef class graph:
    """graph(graph, pool=None, stream=None, capture_error_mode=None)
--

As `l0rt.accelerator.graph`, which has the parameters.
"""

    cdef Graph captured
    cdef object memory, stream, mode
    cdef object leased, guard       # inside of the block

    def __cinit__(self, Graph graph not None, pool=None, stream=None, capture_error_mode=None):
        if capture_error_mode is not None and capture_error_mode not in MODES:
            raise ValueError(f"capture_error_mode must be one of {', '.join(MODES)}, got {capture_error_mode!r}")
        if stream is not None and not isinstance(stream, Queue):
            raise TypeError(f"stream must be a Stream, got {type(stream).__name__}")
        self.captured, self.memory, self.stream, self.mode = graph, pool, stream, capture_error_mode

    def __enter__(self):
        synchronize()
        gc.collect()
        trim_pools()
        if self.mode is not None:
            self.captured.capture_error_mode = self.mode
        if self.guard is not None:
            raise RuntimeError("the block was entered before, and has not ended")
        if self.stream is None:
            self.leased = lease(f"{lazy.device_type}:{current_device()}")   # whatever accelerator is current
        self.guard = self.leased.__enter__() if self.stream is None else self.stream
        self.guard.__enter__()
        try:
            begin(self.captured, self.memory)
        except BaseException:
            leave_stream(self)
            raise

    def __exit__(self, kind, value, trace):
        if self.guard is None:
            raise RuntimeError("the block was not entered")
        try:
            leave_block(self.captured, kind)
        finally:
            leave_stream(self)


cdef int leave_stream(graph block) except -1:
    guard, leased = block.guard, block.leased
    block.guard = block.leased = None
    guard.__exit__(None, None, None)
    if leased is not None:
        leased.__exit__(None, None, None)
    return 0


cdef slots _built_in, _choosing


cdef PyObject* _make(PyTypeObject* cls, PyObject* args, PyObject* kwargs) except NULL:
    """``l0rt.accelerator.Graph(...)`` makes a graph of the current accelerator; a subclass stays what it is."""
    if cls != <PyTypeObject*>Graph:
        return _built_in.make(cls, args, kwargs)
    type = current_type()
    maker = maker_of(type)
    if maker is None:
        return _built_in.make(cls, args, kwargs)
    own = getattr(maker, "Graph", None)
    if own is None:
        raise NotImplementedError(f"device type {type} has no graphs")
    return call(own, args, kwargs)


let_go_before_trim(sweep_graphs)
get_slots(Graph, &_built_in)
_choosing.make = _make
set_slots(Graph, &_choosing)
known_as(Graph, b"l0rt.accelerator.Graph")
known_as(graph, b"l0rt.accelerator.graph")
