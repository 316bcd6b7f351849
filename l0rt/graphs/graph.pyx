# SPDX-License-Identifier: Apache-2.0
"""Graphs in Python: capture, replay, and the block around a capture."""

import gc

cimport cython
from cpython.object cimport PyObject, PyTypeObject

from l0rt._base.arguments cimport known_as
from l0rt._base.interrupts cimport enter_at_once
from l0rt.graphs.executable cimport Executable
from l0rt.graphs.node cimport nodes_of
from l0rt.graphs.recording cimport Place, Recording, rest_before_capture, states_of
from l0rt.runtime.current.event cimport built_in_event
from l0rt.runtime.current.generator cimport Generator
from l0rt.runtime.current.thread cimport current_stream
from l0rt.runtime.streams.capture cimport (
    MODE_GLOBAL,
    MODE_RELAXED,
    MODE_THREAD_LOCAL,
    capture_is_of_thread,
    captures,
)
from l0rt.runtime.streams.naming cimport call, current_type, get_slots, maker_of, set_slots, slots
from l0rt.runtime.streams.types cimport *

from l0rt.graphs import lifecycle
from l0rt.graphs.drawing import dot
from l0rt.graphs.executable import leave_running, sweep_graphs
from l0rt.graphs.lifecycle import RemovableHandle, checked_function, lifecycle_of, register_own
from l0rt.graphs.page import page
from l0rt.graphs.pool import handle_of, pool_named
from l0rt.graphs.recording import described
from l0rt._base.paths import write_text
from l0rt.runtime.current import callbacks
from l0rt.runtime.current.guard import current_device_index
from l0rt.runtime.current.lease import lease
from l0rt.runtime.current.stream import XpuStream
from l0rt.runtime.memory.pinned import empty_cache as empty_host_cache
from l0rt.runtime.memory.pools import XpuMemPool, trim_pools, use_mem_pool
from l0rt.runtime.streams.capture import call_where_a_capture_ends
from l0rt.runtime.streams.devices import lazy

MODES = {
    "default": MODE_THREAD_LOCAL, "thread_local": MODE_THREAD_LOCAL, "global": MODE_GLOBAL, "relaxed": MODE_RELAXED}

cdef list listening = lifecycle.listening
cdef dict _begun = {}           # the Recording of each use_mem_pool block around a capture


def is_current_stream_capturing():
    """Return whether a graph is being captured from the calling thread's current stream.

    Returns
    -------
    bool
    """
    return lazy.initialized and captures(current_stream(-1))


def leave_pools():
    """What this thread did has ended its capture: it allocates as it did before."""
    cdef Recording recording
    for inside, candidate in list(_begun.items()):
        recording = candidate
        if recording.capture != NULL and not recording.capture.is_open and capture_is_of_thread(recording.capture):
            inside._leave()


@cython.binding(False)
cdef class Graph:
    """Graph(keep_graph=False, *, pool=None, capture_error_mode="default")
--

Work of streams that is recorded once and replayed as often as one likes, for less than it costs to issue it.

Between `capture_begin` and `capture_end`, what the thread's current stream is given is recorded and does not run:
copies, fills, launches of kernels, waits for events, and callbacks. Another stream joins the capture when it waits for
an event of a stream that is in it. Before the end, the first stream must wait for all others. As a context manager
the graph captures what the block gives to the current stream.

What any thread allocates for its streams comes from the graph's memory pool and has the same address in every replay.
Other memory that the graph uses must be kept by the caller.

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
    cdef object memory              # the MemPool, and
    cdef object earlier             # that before the capture, which is it again if there is no graph
    cdef bint keeps
    cdef readonly str capture_error_mode
    cdef list generators            # that were registered, each with the state that it had then
    cdef public object _lifecycle   # its hooks, and what lives as long as its capture; None: nothing
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
        if recording is None:
            raise RuntimeError("capture_end() needs a capture that capture_begin() of this graph has begun")
        recording.take_turn()
        try:
            end(self, recording)
        finally:
            recording.end_turn()
        tell(self, "capture_end")
        if not self.keeps:
            tell(self, "instantiate")

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
        cdef Recording recording = captured(self)
        cdef Executable executable
        recording.take_turn()
        try:
            executable = self.executable
            if executable is not None and executable_of(self, recording) is executable:
                failure = executable.rest()
                self.executable = None
                executable.close()
                if failure is not None:
                    raise failure
            executable_of(self, recording)
        finally:
            recording.end_turn()
        tell(self, "instantiate")

    def replay(self):
        """Issue what was captured, in the order of the current stream of the graph's device.

        Replays of one graph run one after another, on any stream. The host goes on unless eight of lists are under way.

        Raises
        ------
        RuntimeError
            Nothing was captured.
        """
        if self._lifecycle is None and not listening:
            replay(self)
            return
        if self.executable is None and captured(self) is not None:
            build(self)
        lifecycle.fire(self, "replay_start")
        try:
            replay(self)
        finally:
            lifecycle.fire(self, "replay_end")

    def reset(self):
        """Drop the capture, wait for its replays, and let go of the memory pool. A capture that is under way ends.

        Raises
        ------
        KernelFaultError
            A launch of a replay has failed, which no wait has raised yet. The graph is empty then as well.
        """
        cdef Recording recording = self.recording
        failure = None if recording is None else drop(self, recording)
        if self.recording is None:
            self.memory = None
        sweep_graphs()
        if self._lifecycle is not None:
            self._lifecycle.release()
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
        return nodes_of(self.recording if self.inside is None else None)

    def __enter__(self):
        give_back()
        self.capture_begin()
        return self

    def __exit__(self, kind, value, trace):
        end_block(self, kind)

    def pools(self):
        """Return a list of the ids of all memory pools that the graph uses, its own first."""
        pools = self.recording.pools if self.recording is not None else [self.memory]
        return [handle_of(pool) for pool in pools or () if pool is not None]

    def register_capture_start_hook(self, hook):
        """Call ``hook(graph)`` when a capture of this graph begins, while the stream is captured already.

        If it raises, the capture ends.

        Parameters
        ----------
        hook : callable
            A function of the graph.

        Returns
        -------
        RemovableHandle
            Its ``remove()`` ends the registration.
        """
        return register_own(self, "capture_start", hook)

    def register_capture_end_hook(self, hook):
        """Call ``hook(graph)`` when a capture of this graph has ended.

        Parameters
        ----------
        hook : callable
            A function of the graph.

        Returns
        -------
        RemovableHandle
            Its ``remove()`` ends the registration.
        """
        return register_own(self, "capture_end", hook)

    def register_post_instantiate_hook(self, hook):
        """Call ``hook(graph)`` each time that this graph was instantiated.

        Parameters
        ----------
        hook : callable
            A function of the graph.

        Returns
        -------
        RemovableHandle
            Its ``remove()`` ends the registration.
        """
        return register_own(self, "instantiate", hook)

    def register_replay_start_hook(self, hook):
        """Call ``hook(graph)`` before each replay. If it raises, the graph is not replayed.

        Parameters
        ----------
        hook : callable
            A function of the graph.

        Returns
        -------
        RemovableHandle
            Its ``remove()`` ends the registration.
        """
        return register_own(self, "replay_start", hook)

    def register_replay_end_hook(self, hook):
        """Call ``hook(graph)`` after each replay was issued, or has failed.

        Parameters
        ----------
        hook : callable
            A function of the graph.

        Returns
        -------
        RemovableHandle
            Its ``remove()`` ends the registration.
        """
        return register_own(self, "replay_end", hook)

    def register_destroy_callback(self, cb, *, synchronize_before_release=False):
        """Call ``cb()`` once, when this graph is reset or dropped.

        What it raises is reported. It must not refer to the graph, which would then never be dropped.

        Parameters
        ----------
        cb : callable
            A function without parameters.
        synchronize_before_release : bool, optional
            Wait for the graph's replays before. `reset` does so in any case.

        Returns
        -------
        RemovableHandle
            Its ``remove()`` ends the registration.

        Notes
        -----
        The contract is that of ``torch.cuda.CUDAGraph.register_destroy_callback``.
        """
        own = lifecycle_of(self)
        handle = RemovableHandle(own.callbacks, checked_function(cb, "cb"))
        own.waits |= bool(synchronize_before_release)
        return handle

    def retain_object(self, obj, *, synchronize_before_release=False):
        """Keep ``obj`` alive until this graph is reset or dropped.

        Parameters
        ----------
        obj : object
            Memory that the graph uses, for example. It must not refer to the graph.
        synchronize_before_release : bool, optional
            Wait for the graph's replays before. `reset` does so in any case.

        Returns
        -------
        RemovableHandle
            Its ``remove()`` lets go of the object.

        Notes
        -----
        The contract is that of ``torch.cuda.CUDAGraph.retain_object``.
        """
        own = lifecycle_of(self)
        own.waits |= bool(synchronize_before_release)
        return RemovableHandle(own.objects, (obj,))

    @property
    def exec_graph_id(self):
        """The number of the last instantiation, for hooks; None without one since the first hook was registered."""
        return max(self._lifecycle.executables, default=None) if self._lifecycle is not None else None

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
        write_text(debug_path, dot(self._described()))

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
        text = page(self._described())
        if path is not None:
            write_text(path, text)
        return text

    def enable_debug_mode(self):
        """Do nothing: `debug_dump` works without it. The method exists because torch has it."""

    def _described(self):
        return described(captured(self))

    def __del__(self):
        own, self._lifecycle = self._lifecycle, None
        try:
            if own is not None and own.waits and self.executable is not None:
                self.executable.rest()
        finally:
            if self.recording is not None:
                let_go(self)
            if own is not None:
                own.release()

    def __reduce__(self):
        raise TypeError("a Graph cannot be pickled")

    def __repr__(self):
        state = ("empty" if self.recording is None else "capturing" if self.inside is not None
                 else f"{self.recording.capture.count} nodes")
        return f"<l0rt.Graph {state}>"


cdef int tell(Graph graph, str kind) except -1:
    if graph._lifecycle is not None or listening:
        lifecycle.fire(graph, kind)
    return 0


cdef int build(Graph graph) except -1:
    """Before the hooks of the first replay."""
    cdef Recording recording = captured(graph)
    recording.take_turn()
    try:
        executable_of(graph, recording)
    finally:
        recording.end_turn()
    return tell(graph, "instantiate")


cdef int replay(Graph graph) except -1:
    cdef Recording recording = captured(graph)
    cdef Executable executable
    cdef l0rt_stream* stream
    recording.take_turn()
    try:
        executable = executable_of(graph, recording)
        stream = current_stream(executable.device.index)
        executable.replay(stream)
        called = recording.called
        end = None if called is None else built_in_event(False)
        places = [(branch, Place.of(recording, at, end), *what) for branch, at, *what in called or ()]
    finally:
        recording.end_turn()
    if end is not None:
        end.record(XpuStream(stream_id=stream.id, device_index=stream.device.index))
        for branch, place, function, args in places:
            callbacks.add(<size_t>stream if branch == 0 else (<size_t>stream, branch), place, function, args)
    return 0


cdef Recording captured(Graph graph):
    cdef Recording recording = graph.recording
    if recording is None or graph.inside is not None:
        raise RuntimeError("the graph has nothing captured yet")
    return recording


cdef int begin(Graph graph, pool) except -1:
    cdef l0rt_stream* stream = current_stream(-1)
    cdef Recording recording
    if graph.recording is not None:
        raise RuntimeError("the graph has a capture already: reset() drops it")
    sweep_graphs()
    memory = pool_named(pool) if pool is not None else graph.memory if graph.memory is not None else XpuMemPool()
    inside = use_mem_pool(memory)
    recording = Recording.begin(
        stream, MODES[graph.capture_error_mode], memory, states_of(graph.generators, stream.device.index))
    try:
        inside.__enter__()
        if graph.recording is not None:     # another thread was faster
            inside.__exit__(None, None, None)
            raise RuntimeError("the graph has a capture already: reset() drops it")
    except BaseException:
        recording.close()
        raise
    graph.earlier, graph.memory = graph.memory, memory
    graph.recording, graph.inside = recording, inside
    _begun[inside] = recording
    try:
        tell(graph, "capture_start")
    except BaseException:
        drop(graph, recording)
        raise
    return 0


def give_back(bint collects=False):
    """Before a block that captures: everything has run, and no freed memory is cached. Collect garbage, or not."""
    rest_before_capture()
    if collects:
        gc.collect()
    trim_pools()
    empty_host_cache()


def begin_with(Graph graph not None, pool, mode=None):
    """Begin a capture that allocates from this pool, in this mode; None: the graph's own."""
    if mode is not None:
        graph.capture_error_mode = mode
    begin(graph, pool)


@cython.binding(False)
cdef class Block:
    """The block around a capture of one stream. It is C, so that no handler of a signal runs between a step and what
    knows that it is to be undone."""
    cdef object graph, pool, stream, mode, leased, guard        # the last two inside of the block

    def __init__(self, graph, pool, stream, mode):
        self.graph, self.pool, self.stream, self.mode = graph, pool, stream, mode

    def __enter__(self):
        if self.guard is not None:
            raise RuntimeError("the block was entered before, and has not ended")
        give_back(True)
        leased, guard = None, self.stream
        if guard is None:           # whatever accelerator is current
            leased = lease(f"{lazy.device_type}:{current_device_index()}")
            guard = leased.__enter__()
        guard.__enter__()           # if it fails, the lease ends as it is dropped
        self.guard, self.leased = guard, leased
        try:
            begin_with(self.graph, self.pool, self.mode)
        except BaseException:
            leave_block(self)
            raise

    def __exit__(self, kind, value, trace):
        if self.guard is None:
            raise RuntimeError("the block was not entered")
        try:
            end_block(self.graph, kind)
        finally:
            leave_block(self)


cdef leave_block(Block self):
    guard, leased = self.guard, self.leased
    self.guard = self.leased = None
    try:
        guard.__exit__(None, None, None)
    finally:
        if leased is not None:
            leased.__exit__(None, None, None)


cdef int end(Graph graph, Recording recording) except -1:
    """In a turn of the recording."""
    if graph.recording is not recording or graph.inside is None:
        raise RuntimeError("capture_end() needs a capture that capture_begin() of this graph has begun")
    if not capture_is_of_thread(recording.capture):
        raise RuntimeError("a capture must end on the thread on which it began")
    if recording.capture.is_open:
        graph.inside.__exit__(None, None, None)
    leave(graph)
    try:
        recording.end()
        if not graph.keeps:
            graph.executable = Executable.build(recording)
    except BaseException:
        graph.recording = None
        graph.memory = graph.earlier
        recording.close()
        raise
    finally:
        graph.earlier = None
    return 0


cdef int leave(Graph graph) except -1:
    """The capture's block of the pool is over."""
    inside, graph.inside = graph.inside, None
    _begun.pop(inside, None)
    if capture_is_of_thread(graph.recording.capture):
        inside._leave()
    return 0


cdef Executable executable_of(Graph graph, Recording recording):
    """In a turn of the recording, which may have ended since the graph had it."""
    if graph.recording is not recording:
        raise RuntimeError("the graph has nothing captured yet: it was reset")
    if graph.executable is None:
        graph.executable = Executable.build(recording)
    elif graph.executable.resting:
        raise RuntimeError("the graph is being reset")
    return graph.executable


cdef object drop(Graph graph, Recording recording):
    """Wait for the replays, and drop what was captured; return what `Executable.rest` does. Who waits has no turn:
    other threads may do what the device waits for."""
    cdef Executable executable
    cdef bint done = False
    failure = None
    recording.take_turn()
    try:
        if graph.recording is not recording:
            return None
        if graph.inside is not None:
            leave(graph)
        executable = graph.executable
        if executable is None:
            drop_now(graph, recording, None)
            return None
        executable.resting += 1
    finally:
        recording.end_turn()
    try:
        failure = executable.rest()
        done = True
    finally:
        recording.take_turn()
        try:
            executable.resting -= 1
            if done:
                drop_now(graph, recording, executable)
        finally:
            recording.end_turn()
    return failure


cdef int drop_now(Graph graph, Recording recording, object executable) except -1:
    """In a turn. Of threads that wait, the last one destroys."""
    if graph.recording is recording:
        graph.recording = graph.executable = graph.memory = graph.earlier = None
    if executable is None:
        recording.close()
    elif (<Executable>executable).resting == 0:
        (<Executable>executable).close()
        recording.close()
    return 0


def end_block(Graph graph not None, kind):
    """The end of a with block: of one that raises, the exception is what counts."""
    if kind is None:
        graph.capture_end()
    elif graph.inside is not None:
        graph.reset()


cdef int let_go(Graph graph) except -1:
    """The graph is dropped: without a wait."""
    cdef Executable executable = graph.executable
    cdef Recording recording = graph.recording
    if graph.inside is not None:
        leave(graph)
    graph.executable = graph.recording = graph.memory = None
    if executable is not None:
        leave_running(executable, recording)
    else:
        recording.close()
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


call_where_a_capture_ends(leave_pools)
get_slots(Graph, &_built_in)
_choosing.make = _make
set_slots(Graph, &_choosing)
known_as(Graph, b"l0rt.accelerator.Graph")
enter_at_once((Graph, Block))
