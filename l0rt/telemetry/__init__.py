# SPDX-License-Identifier: Apache-2.0
"""What a device's sensors say: temperature, clock, power, how busy it is; a sampler that keeps a history.

The functions have the names and units of ``torch.xpu``. Their source is the system management of Level Zero (sysman),
then what Linux's driver of the device publishes in sysfs. Some figures are rates: two readings, `PERIOD` apart.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque

from l0rt._base.described import described, takes_device
from l0rt._base.integers import real_number, whole_number
from l0rt.errors import L0Error, UnsupportedError
from l0rt.memory import mem_get_info
from l0rt.memory.stats import reason_of as _reason_of
from l0rt.runtime.memory.pools import index_or_current as index_of
from l0rt.runtime.streams import devices as _devices
from l0rt.ze import pci as _pci

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Any, ClassVar, SupportsFloat, SupportsIndex, TypeVar

    from typing_extensions import Self

    from l0rt.runtime.streams.naming import _Device

    _Sensor = TypeVar("_Sensor", bound=Callable[..., int])

__all__: list[str] = [
    "Sample",
    "Sampler",
    "clock_rate",
    "device_memory_used",
    "errors",
    "memory_usage",
    "power_draw",
    "temperature",
    "utilization",
]

PERIOD: float = 0.15  # seconds between two readings of a rate
_sysfs = "/sys"


class Sample:
    """What a device's sensors say at one time. A `Sampler` makes it.

    Parameters
    ----------
    time : float
        Seconds, of `time.time`.
    missing : dict of str to str
        For each figure that is None because it is not known: what is missing.
    **figures : int or None
        ``temperature``, ``power_draw``, ``clock_rate``, ``utilization``, ``memory_usage`` and ``device_memory_used``,
        as the functions of the same names return them. They are attributes, like the time; None for one that is not
        given.
    """

    time: float
    missing: dict[str, str]
    temperature: int | None
    power_draw: int | None
    clock_rate: int | None
    utilization: int | None
    memory_usage: int | None
    device_memory_used: int | None

    __slots__ = ("clock_rate", "device_memory_used", "memory_usage", "missing", "power_draw", "temperature", "time",
                 "utilization")  # fmt: skip
    FIGURES: ClassVar[tuple[str, ...]] = (
        "temperature",
        "power_draw",
        "clock_rate",
        "utilization",
        "memory_usage",
        "device_memory_used",
    )

    def __init__(self, time: float, missing: dict[str, str], **figures: int | None) -> None:
        self.time = time
        self.missing = missing
        for name in self.FIGURES:
            setattr(self, name, figures.get(name))

    def as_dict(self) -> dict[str, Any]:
        """Return the figures, the time and what is missing as a dict that JSON can take."""
        return {name: getattr(self, name, None) for name in ("time", *self.FIGURES, "missing")}

    def __repr__(self):
        return f"Sample({', '.join(f'{name}={getattr(self, name, None)}' for name in self.FIGURES)})"


class Meter:
    """Readings of a device's sensors, of which two make a rate."""

    index: int

    def __init__(self, index: int) -> None:
        self.index = index
        self._address = _devices.properties(index)["pci"]
        try:
            self._sensors = _devices.sensors(index)
            self._why = None
        except L0Error as error:
            self._sensors, self._why = None, str(error)  # an error would keep its callers' frames
        self._before: dict = {}

    def read(self, names: Iterable[str] = Sample.FIGURES) -> Sample:
        """Return a `Sample` of these figures. The first one has no rates."""
        values, missing = {}, {}
        for name in names:
            try:
                values[name] = getattr(self, f"_{name}")()
            except L0Error as error:
                missing[name] = _reason_of(error)
        return Sample(time.time(), missing, **values)

    def ask(self, name: str) -> Any:
        """Return what the card's sensor says; UnsupportedError without system management."""
        if self._sensors is None:
            raise UnsupportedError(self._why or "")
        return getattr(self._sensors, name)()

    def _or_linux(self, name, key):
        """What system management says, else what Linux's driver publishes, with whether it was Linux."""
        try:
            return self.ask(name), False
        except L0Error:
            value = _pci.sensors(self._address, _sysfs)[key]
            if value is None:
                raise
            return value, True

    def _temperature(self):
        values, _ = self._or_linux("temperatures", "temperatures")
        if not values:
            raise UnsupportedError("this driver reports no temperature of the GPU")
        return round(values["gpu"] if "gpu" in values else max(values.values()))

    def _clock_rate(self):
        rate, is_linux = self._or_linux("clock", "clock")
        return round(rate if is_linux else rate[0])

    def _rate(self, name, rows):
        """Each row's growth for a microsecond since the last reading; rows are (count, microseconds).

        None the first time, and where no counter has grown older: some drivers renew theirs every few milliseconds.
        """
        before = self._before.get(name)
        if (
            before is not None
            and len(before) == len(rows)
            and all(b[1] == r[1] for b, r in zip(before, rows, strict=True))
        ):
            return None
        self._before[name] = rows
        if before is None or len(before) != len(rows):
            return None
        return [(row[0] - b[0]) / (row[1] - b[1]) if row[1] > b[1] and row[0] >= b[0] else 0.0
                for b, row in zip(before, rows, strict=True)]  # fmt: skip

    def _power_draw(self):
        energy, is_linux = self._or_linux("energy", "energy")
        rates = self._rate("power_draw", [(energy, time.monotonic_ns() // 1000) if is_linux else energy])
        return None if rates is None else round(rates[0] * 1000)

    def _utilization(self):
        rates = self._rate("utilization", self.ask("activity"))
        return None if rates is None else _percent(max(rates))

    def _memory_usage(self):
        rows = self.ask("traffic")
        most = sum(row[1] for row in rows)
        if not most:
            raise UnsupportedError("this driver does not report what its memory can do")
        rates = self._rate("memory_usage", [(row[0], row[2]) for row in rows])
        return None if rates is None else _percent(sum(rates) * 1e6 / most)

    def _device_memory_used(self):
        free, total = mem_get_info(self.index)
        return total - free


def _percent(share):
    return min(100, round(share * 100))


def _now(device, name):
    meter = Meter(index_of(device))
    reading = meter.read((name,))
    if getattr(reading, name) is None and not reading.missing:
        time.sleep(PERIOD)
        reading = meter.read((name,))
    value = getattr(reading, name)
    if value is None:
        why = reading.missing.get(name, f"the counter has not changed in {PERIOD} s")
        raise UnsupportedError(f"the {name} of xpu:{meter.index} is not known: {why}")
    return value


_one_figure = described([("UnsupportedError", "The figure is not known; the text says what is missing.")], "int")


def _sensor(function: _Sensor) -> _Sensor:
    """Complete the docstring of a function that returns one figure of a card."""
    return takes_device(_one_figure(function))


@_sensor
def temperature(device: _Device = None) -> int:
    """Return the temperature of the GPU in degrees Celsius."""
    return _now(device, "temperature")


@_sensor
def clock_rate(device: _Device = None) -> int:
    """Return the clock rate of the GPU in MHz: 0 while it rests."""
    return _now(device, "clock_rate")


@_sensor
def power_draw(device: _Device = None) -> int:
    """Return the power that the card draws, in milliwatts, over 0.15 seconds."""
    return _now(device, "power_draw")


@_sensor
def utilization(device: _Device = None) -> int:
    """Return how much of 0.15 seconds the busiest group of engines works, in percent."""
    return _now(device, "utilization")


@_sensor
def memory_usage(device: _Device = None) -> int:
    """Return how much of its bandwidth the device's memory uses over 0.15 seconds, in percent."""
    return _now(device, "memory_usage")


@takes_device
def device_memory_used(device: _Device = None) -> int:
    """Return how many bytes of the device's memory all processes use, as far as `mem_get_info` knows.

    Returns
    -------
    int
    """
    return _now(device, "device_memory_used")


@takes_device
def errors(device: _Device = None) -> dict[str, Any]:
    """Return the errors of the card since its driver was loaded.

    Returns
    -------
    dict
        ``resets`` (a count), ``corrected`` and ``uncorrected`` (counts by category), ``ecc`` and ``needs_reset``
        (bools). None for what is not known, and then ``missing`` says why.
    """
    meter, missing = Meter(index_of(device)), {}
    counts = {"resets": None, "corrected": None, "uncorrected": None, "ecc": None, "needs_reset": None}
    for name, question in (("resets", "errors"), ("ecc", "has_ecc"), ("needs_reset", "needs_reset")):
        try:
            answer = meter.ask(question)
            counts.update(answer if name == "resets" else {name: answer})
        except L0Error as error:
            missing[name] = _reason_of(error)
    return {**counts, "missing": missing}


class Sampler:
    """Read a device's sensors in a thread of its own, and keep the last samples.

    The thread does not keep the process alive. A forked child has the samples of its parent and takes none.

    Parameters
    ----------
    device : int, str, device or None, optional
        An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.
    interval : float, optional
        Seconds between two samples: from 0.01 to 3600.
    history : int, optional
        How many samples are kept: 600, which are five minutes.

    Raises
    ------
    ValueError
        ``interval`` or ``history`` is out of range.
    DeviceIndexError
        There is no device with this index.

    Examples
    --------
    >>> with Sampler(interval=0.1) as sampler:  # doctest: +SKIP
    ...     train()
    >>> max(sample.power_draw for sample in sampler.samples)  # doctest: +SKIP
    """

    device_index: int
    interval: float

    def __init__(self, device: _Device = None, interval: SupportsFloat = 0.5, history: SupportsIndex = 600) -> None:
        seconds = real_number(interval, "interval")
        if not 0.01 <= seconds <= 3600:
            raise ValueError(f"interval must be from 0.01 to 3600 seconds, got {seconds!r}")
        count = whole_number(history, "history")
        if not 1 <= count <= 10_000_000:
            raise ValueError(f"history must be from 1 to 10000000 samples, got {count}")
        self.device_index = index_of(device)
        self.interval = seconds
        self._samples: deque[Sample] = deque(maxlen=count)
        self._thread: threading.Thread | None = None
        self._end = threading.Event()
        self._switch = threading.Lock()  # start and stop, one at a time

    @property
    def samples(self) -> list[Sample]:
        """A list of the samples, the oldest first."""
        return list(self._samples.copy())

    @property
    def is_running(self) -> bool:
        """Whether samples are taken."""
        return self._thread is not None

    def start(self) -> Self:
        """Begin to take samples, the first at once; return the sampler. If they are taken already, go on."""
        with self._switch:
            if self._thread is None:
                self._end = threading.Event()
                if not _samplers:  # after the driver's own end was registered: before it
                    atexit.register(_stop_all)
                _samplers.add(self)
                meter = Meter(self.device_index)
                meter.read()
                arguments = (meter, self._samples, self._end, self.interval)
                thread = threading.Thread(target=_sample, args=arguments, name="l0rt-sampler", daemon=True)
                thread.start()
                self._thread = thread
        return self

    def stop(self) -> None:
        """End: when this returns, no sample is taken any more. Those that are there stay."""
        with self._switch:
            thread, self._thread = self._thread, None
            self._end.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __del__(self) -> None:
        if end := getattr(self, "_end", None):
            end.set()

    def __repr__(self):
        state = "running" if self.is_running else "stopped"
        return f"<l0rt.telemetry.Sampler of xpu:{self.device_index}, {state}, {len(self._samples)} samples>"


def _sample(meter, samples, end, interval):
    """Take samples until the end; the thread holds no reference to its `Sampler`, which may go before."""
    due = time.monotonic()
    while not end.wait(max(0.0, due - time.monotonic())):
        samples.append(meter.read())
        due = max(due + interval, time.monotonic())  # what was missed is not made up for


_samplers: weakref.WeakSet[Sampler] = weakref.WeakSet()


def _forget():
    """A forked child has no threads of its parent's."""
    for sampler in list(_samplers):
        sampler._thread, sampler._switch, sampler._end = None, threading.Lock(), threading.Event()


def _stop_all():
    for sampler in list(_samplers):
        sampler.stop()


os.register_at_fork(after_in_child=_forget)


def __dir__():
    return __all__
