# SPDX-License-Identifier: Apache-2.0
"""How long a function takes on the host and on the device."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from time import perf_counter

import numpy as np

from l0rt._base.integers import real_number, time_text, whole_number
from l0rt.accelerator import stream as entered
from l0rt.accelerator.timer import Timer

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import SupportsFloat, SupportsIndex

    from l0rt.runtime.current.stream import Stream

    _Times = np.ndarray[tuple[int], np.dtype[np.float64]]

__all__ = ["Timing", "time"]

MOST = 10_000  # calls, where only their time is limited


@dataclass(frozen=True)
class Timing:
    """The times of a function's calls, in seconds and in the order of the calls.

    Parameters
    ----------
    name : str
        The name of the function.
    device : array
        The time between an event before each call and one behind it.
    host : array
        The time until each call returned.
    """

    name: str
    device: _Times
    host: _Times

    def __str__(self):
        return (
            f"{self.name}: device {spread(self.device)}, host {spread(self.host)}, "
            f"median (minimum to maximum) of {len(self.host)} calls"
        )


def spread(seconds):
    """Return the median of times, with their minimum and maximum, as text."""
    if not len(seconds):
        return "never"
    median, least, most = (time_text(1e9 * figure(seconds)) for figure in (np.median, np.min, np.max))
    return f"{median} ({least} to {most})"


def time(
    function: Callable[..., object],
    args: Iterable[object] = (),
    kwargs: Mapping[str, object] | None = None,
    *,
    repeats: SupportsIndex | None = None,
    warmup: SupportsIndex = 10,
    seconds: SupportsFloat = 1.0,
    setup: Callable[[], object] | None = None,
    stream: Stream | None = None,
) -> Timing:
    """Call a function again and again, and measure each call on the host and on the device.

    Each call begins when the call before it is complete on the device.

    Parameters
    ----------
    function : callable
        The function. Its work must be in the order of the current stream.
    args : tuple, optional
        Positional arguments of every call.
    kwargs : dict or None, optional
        Keyword arguments of every call.
    repeats : int or None, optional
        How many calls to measure. None measures for ``seconds``, at most 10,000 calls.
    warmup : int, optional
        How many calls go before, without being measured.
    seconds : float, optional
        No call begins later than this after the first that is measured. One is measured in any case.
    setup : callable or None, optional
        Is called before each call and not measured, for example to fill memory anew or to clear a cache.
    stream : Stream or None, optional
        The stream that is current during the calls. None is the one that is current now.

    Returns
    -------
    Timing

    Raises
    ------
    ValueError
        A number is out of range.
    TypeError
        ``function`` or ``setup`` is not callable.

    Notes
    -----
    The figures are those of CuPy's ``cupyx.profiler.benchmark``. A device that has nothing to do waits for the host's
    appends: see `l0rt.accelerator.Timer`.

    Examples
    --------
    >>> x = l0rt.empty(64 << 20)
    >>> print(l0rt.bench.time(x.fill, (0,)))
    fill: device 4.71 ms (4.52 ms to 6.2 ms), host 1.40 µs (1.1 µs to 9.3 µs), median (minimum to maximum) of 210 calls
    """
    for what, called in (("function", function), ("setup", setup)):
        if not callable(called) and (what == "function" or called is not None):
            raise TypeError(f"{what} must be callable, got {type(called).__name__}")
    count = MOST if repeats is None else whole_number(repeats, "repeats")
    lead = whole_number(warmup, "warmup")
    if count < 1:
        raise ValueError(f"repeats must be at least 1, got {count}")
    if lead < 0:
        raise ValueError(f"warmup must be at least 0, got {lead}")
    limit = real_number(seconds, "seconds")
    if not (isfinite(limit) and limit > 0):
        raise ValueError(f"seconds must be a finite positive number, got {seconds}")
    named = {} if kwargs is None else kwargs
    device = list[float]()
    host = list[float]()
    with entered(stream):
        timer = Timer()
        for _ in range(lead):
            measure(timer, function, args, named, setup)
        began = perf_counter()
        while len(host) < count and (not host or perf_counter() - began < limit):
            measure(timer, function, args, named, setup)
            device.append(timer.elapsed_time())
            host.append(timer.host_time())
    name = getattr(function, "__name__", type(function).__name__)
    return Timing(name, np.array(device) / 1e3, np.array(host) / 1e3)


def measure(timer, function, args, kwargs, setup):
    """Make one call, and wait until it is complete on the device."""
    if setup is not None:
        setup()
    with timer:
        function(*args, **kwargs)
    timer.elapsed_time()


def __dir__():
    return __all__
