# SPDX-License-Identifier: Apache-2.0
"""A stream that is kept busy for some time, by a kernel that counts steps."""

from __future__ import annotations

import os

from l0rt._base.integers import whole_number
from l0rt.buffers.empty import empty
from l0rt.errors import InvalidArgumentError
from l0rt.kernels.module import Module
from l0rt.runtime.current.event import Event
from l0rt.runtime.current.stream import index_or_current
from l0rt.runtime.streams.devices import properties

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from typing import SupportsIndex

__all__: list[str] = []

CODE = os.path.join(os.path.dirname(__file__), "spin.spv")
TRIAL = 1 << 15  # steps of the first launch that is timed; each further one has more
ENOUGH_MS = 2.0  # of a trial
MOST = 1 << 63
_measured: dict[int, tuple] = {}  # by device: the kernel, its word of memory, and its steps in a millisecond


def sleep(cycles: SupportsIndex) -> None:
    """Keep the current stream busy for so many cycles of the device's clock. The host does not wait.

    The first call for a device measures how fast it is, and waits for that, so it cannot be in a capture.

    Parameters
    ----------
    cycles : int
        At the clock rate of the device's properties.

    Raises
    ------
    ValueError
        The number is negative, or too large.
    """
    count = whole_number(cycles, "cycles")
    if not 0 <= count < MOST:
        raise InvalidArgumentError(f"cycles must be from 0 to 2**63 - 1, got {count}")
    index = index_or_current(None)
    if index not in _measured:
        _measured[index] = _measure(index)
    kernel, word, rate = _measured[index]
    steps = int(count / (1000 * properties(index)["core_clock_mhz"]) * rate)
    kernel.launch(word, min(steps, MOST - 1), global_size=1)


def _measure(index):
    with open(CODE, "rb") as file:
        kernel = Module(file.read(), index)["spin"]
    word = empty(4, device=index).fill(1)
    begin, end, steps = Event(enable_timing=True), Event(enable_timing=True), TRIAL
    while True:
        begin.record()
        kernel.launch(word, steps, global_size=1)
        end.record()
        end.synchronize()
        time = begin.elapsed_time(end)
        if time >= ENOUGH_MS or steps >= TRIAL << 16:
            return kernel, word, steps / max(time, 1e-3)
        steps *= 4
