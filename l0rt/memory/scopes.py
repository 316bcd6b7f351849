# SPDX-License-Identifier: Apache-2.0
"""Scopes of the memory's statistics: the peaks and the totals of a part of a program, as a block, as a decorator, and
by push and pop."""

from __future__ import annotations

import threading
from functools import wraps

from l0rt.runtime.memory.pools import index_or_current
from l0rt.runtime.memory.scope import Scope

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec, TypeVar

    from typing_extensions import Self

    from l0rt.runtime.streams.naming import _Device

    _P = ParamSpec("_P")
    _R = TypeVar("_R")

_stacks = threading.local()  # of each thread: what it has pushed
_records: dict[str, tuple[int, int, int]] = {}  # by name: calls, the largest peak, the total


class stats_scope:
    """Measure the memory that a part of a program allocates: a with block, or a decorator of functions.

    A scope is of one device, and counts the allocations of all threads and streams on it. It resets nothing: the
    statistics and other scopes keep their peaks.

    Parameters
    ----------
    name : str, optional
        `scope_records` adds up the scopes of a name. Without one they are not kept.
    device : int, str, device or None, optional
        None is the device that is current when the block is entered.

    Raises
    ------
    DeviceIndexError
        There is no device with this index.
    """

    def __init__(self, name: str = "", *, device: _Device = None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of a scope must be a str, got {type(name).__name__}")
        self._name, self._device = name, device
        self._scope: Scope | None = None
        self._is_open = False

    def __enter__(self) -> Self:
        if self._is_open:
            raise RuntimeError("the scope is entered already: a block in it needs a scope of its own")
        self._scope = Scope(index_or_current(self._device))
        self._is_open = True
        return self

    def __exit__(self, *error: object) -> None:
        if self._scope is None or not self._is_open:
            raise RuntimeError("the scope was not entered")
        self._is_open = False
        self._scope.end()
        if self._name:
            calls, peak, total = _records.get(self._name, (0, 0, 0))
            here = self.stats["allocated_bytes"]
            _records[self._name] = calls + 1, max(peak, here["peak"] - here["begin"]), total + here["allocated"]

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        """Return ``function`` as one of which each call is a scope."""
        if not callable(function):
            raise TypeError(f"stats_scope decorates functions, got {type(function).__name__}")

        @wraps(function)
        def inside(*args, **kwargs):
            with stats_scope(self._name, device=self._device):
                return function(*args, **kwargs)

        return inside

    @property
    def name(self) -> str:
        """The name, ``""`` for none."""
        return self._name

    @property
    def stats(self) -> dict[str, dict[str, int]]:
        """For ``allocated_bytes``, ``reserved_bytes``, ``active_bytes`` and ``requested_bytes`` a dict of bytes: at the
        ``begin``, the ``current`` ones, the ``peak``, and what was ``allocated`` and ``freed`` since; at the end of the
        scope, or now."""
        if self._scope is None:
            raise RuntimeError("the scope was not entered")
        return self._scope.figures()

    @property
    def peak_allocated_bytes(self) -> int:
        """The most that was allocated on the device at a time, with what was allocated before."""
        return self.stats["allocated_bytes"]["peak"]

    @property
    def peak_reserved_bytes(self) -> int:
        """The most that the allocator had reserved at a time."""
        return self.stats["reserved_bytes"]["peak"]

    @property
    def peak_increase_bytes(self) -> int:
        """How far the peak of allocated bytes is above the beginning."""
        figures = self.stats["allocated_bytes"]
        return figures["peak"] - figures["begin"]

    @property
    def total_allocated_bytes(self) -> int:
        """What was allocated in total, whether it was freed or not."""
        return self.stats["allocated_bytes"]["allocated"]

    def __repr__(self):
        return f"<l0rt.memory.stats_scope {self._name!r}>"


def push_stats_scope(name: str = "", *, device: _Device = None) -> stats_scope:
    """Enter a `stats_scope`, which `pop_stats_scope` leaves. Each thread has a stack of its own.

    Parameters
    ----------
    name, device : optional
        As in `stats_scope`.

    Returns
    -------
    stats_scope
    """
    scope = stats_scope(name, device=device).__enter__()
    if not hasattr(_stacks, "pushed"):
        _stacks.pushed = []
    _stacks.pushed.append(scope)
    return scope


def pop_stats_scope() -> stats_scope:
    """Leave the scope that this thread has pushed last, and return it.

    Returns
    -------
    stats_scope

    Raises
    ------
    IndexError
        This thread has pushed no scope.
    """
    if not getattr(_stacks, "pushed", None):
        raise IndexError("pop_stats_scope() without push_stats_scope() on this thread")
    scope = _stacks.pushed.pop()
    scope.__exit__()
    return scope


def scope_records() -> dict[str, dict[str, int]]:
    """Return what the scopes with a name have measured.

    Returns
    -------
    dict
        By name: ``num_calls``, ``peak_bytes``, the largest increase above a beginning, and ``total_bytes``, the sum of
        what was allocated.
    """
    return {name: {"num_calls": calls, "peak_bytes": peak, "total_bytes": total}
            for name, (calls, peak, total) in list(_records.items())}


def reset_scope_records() -> None:
    """Forget what scopes with a name have measured."""
    _records.clear()
