# SPDX-License-Identifier: Apache-2.0
"""What is called while a graph is captured, built, replayed and destroyed, and what lives as long as its capture."""

from __future__ import annotations

from itertools import count

from l0rt._base.described import described
from l0rt.runtime.streams.hooks import report_unraisable

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from collections.abc import Callable

    from l0rt.graphs.graph import Graph

KINDS = ("capture_start", "capture_end", "instantiate", "replay_start", "replay_end")
_of_all: dict[str, dict] = {kind: {} for kind in (*KINDS, "destroy")}
listening: list[int] = []  # the handles of these: a replay asks whether it is empty, and nothing else
_ids = count(1)


class RemovableHandle:
    """What a registration returns: `remove` ends it. As a context manager it does so at the end of the block."""

    id: int

    def __init__(self, entries: dict[int, object], value: object, all_handles: list[int] | None = None) -> None:
        if not isinstance(entries, dict) or not isinstance(all_handles, (list, type(None))):
            raise TypeError("a RemovableHandle is what a registration returns")
        self.id = next(_ids)
        self._entries, self._handles = entries, all_handles
        entries[self.id] = value
        if all_handles is not None:
            all_handles.append(self.id)

    def remove(self) -> None:
        """End the registration. A second call does nothing."""
        if self._entries.pop(self.id, None) is not None and self._handles is not None:
            self._handles.remove(self.id)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def checked_function(function, what):
    if not callable(function):
        raise TypeError(f"{what} must be callable, got {type(function).__name__}")
    return function


class Lifecycle:
    """The hooks of one graph, and what is kept until its capture is dropped."""

    def __init__(self):
        self.hooks: dict[str, dict] = {kind: {} for kind in KINDS}
        self.callbacks, self.objects = {}, {}
        self.waits = False
        self.executables = set()

    def release(self):
        """The capture is dropped: call the callbacks, and let go of the objects. What a callback raises is reported."""
        callbacks, self.callbacks = self.callbacks, {}
        objects, self.objects = self.objects, {}
        ids, self.executables = self.executables, set()
        self.waits = False
        calls = [(function, (ids,)) for function in list(_of_all["destroy"].values())] if ids else []
        for function, args in [*((function, ()) for function in callbacks.values()), *calls]:
            try:
                function(*args)
            except BaseException as error:
                report_unraisable(function, error)
        callbacks.clear()
        objects.clear()


def lifecycle_of(graph):
    """Return the Lifecycle of a graph, a new one if it has none."""
    if graph._lifecycle is None:
        graph._lifecycle = Lifecycle()
    return graph._lifecycle


def fire(graph, kind):
    """Call the hooks of all graphs, whose exceptions are reported, and then the graph's own."""
    if kind == "instantiate":
        lifecycle_of(graph).executables.add(next(_ids))
    for function in list(_of_all[kind].values()):
        try:
            function(graph)
        except Exception as error:
            report_unraisable(function, error)
    if graph._lifecycle is not None:
        for function in list(graph._lifecycle.hooks[kind].values()):
            function(graph)


def _register(kind, function):
    return RemovableHandle(_of_all[kind], checked_function(function, "a hook"), listening)


_registers = described(
    returns="RemovableHandle\n    Its ``remove()`` ends the registration.", fn=("callable", "A function of the graph.")
)


@_registers
def register_graph_capture_start_hook(fn: Callable[[Graph], object]) -> RemovableHandle:
    """Call ``fn(graph)`` for every graph whose capture begins, while its stream is captured already.

    What the hook gives to the stream is captured. An exception of it is reported, and goes no further.

    Notes
    -----
    The contract is that of ``torch.cuda.graphs.register_graph_capture_start_hook``.
    """
    return _register("capture_start", fn)


@_registers
def register_graph_capture_end_hook(fn: Callable[[Graph], object]) -> RemovableHandle:
    """Call ``fn(graph)`` for every graph whose capture has ended: see `register_graph_capture_start_hook`."""
    return _register("capture_end", fn)


@_registers
def register_graph_instantiate_hook(fn: Callable[[Graph], object]) -> RemovableHandle:
    """Call ``fn(graph)`` for every graph that was instantiated: see `register_graph_capture_start_hook`."""
    return _register("instantiate", fn)


@_registers
def register_graph_replay_start_hook(fn: Callable[[Graph], object]) -> RemovableHandle:
    """Call ``fn(graph)`` before every replay of every graph: see `register_graph_capture_start_hook`."""
    return _register("replay_start", fn)


@_registers
def register_graph_replay_end_hook(fn: Callable[[Graph], object]) -> RemovableHandle:
    """Call ``fn(graph)`` for every replay once it is issued, or has failed: see `register_graph_capture_start_hook`."""
    return _register("replay_end", fn)


@_registers
def register_graph_destroy_hook(fn: Callable[[set[int]], object]) -> RemovableHandle:
    """Call ``fn(ids)`` when a graph that was instantiated is reset or dropped.

    Parameters
    ----------
    fn : callable
        A function of a set: the `exec_graph_id` of each time that the graph was instantiated.

    Notes
    -----
    The contract is that of ``torch.cuda.graphs.register_graph_destroy_hook``.
    """
    return _register("destroy", fn)


def register_own(graph, kind, hook):
    """Let a graph call ``hook`` with itself; return what removes the hook."""
    return RemovableHandle(lifecycle_of(graph).hooks[kind], checked_function(hook, "a hook"))
