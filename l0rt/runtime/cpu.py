"""The host as a device: streams and events of ``cpu``, where a call returns when its work is done.

They are there so that code for any device runs on the host too. Nothing waits, for there is nothing to wait for.
"""

import time

from l0rt.runtime import interfaces
from l0rt.runtime.naming import device as _device

DEVICE = _device("cpu")


class _OnHost:
    device_type = "cpu"
    device_index = 0
    device = DEVICE

    def __init__(self, device=None):
        if device is not None and (named := _device(device)) not in (DEVICE, _device("cpu:0")):
            raise IndexError(f"The device index is out of range. It must be in [0, 1), but got {named.index}.")

    def query(self):
        """Return True: all work is done."""
        return True

    def synchronize(self, timeout=None, *, policy=None):
        """Return at once; with ``timeout``, True."""
        return None if timeout is None else True


class Stream(_OnHost):
    """Stream(device="cpu"): the one queue of the host's work, the calling thread's own."""

    stream_id = 0
    priority = 0
    native_handle = 0

    def __init__(self, device=None, priority=0, *, stream_id=None, device_index=None, device_type=None):
        super().__init__(device)

    def wait_event(self, event):
        """Do nothing."""

    def wait_stream(self, stream):
        """Do nothing."""

    def record_event(self, event=None):
        """Record ``event``, a new one by default; return it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def is_capturing(self):
        """Return False."""
        return False

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        return False

    def __eq__(self, other):
        return isinstance(other, Stream) or NotImplemented

    def __hash__(self):
        return hash("cpu")

    def __repr__(self):
        return "<l0rt.Stream device=cpu>"


class Event(_OnHost):
    """Event(device="cpu", *, enable_timing=False, blocking=False, interprocess=False): a moment of the host's clock."""

    event_id = 0

    def __init__(self, device=None, *, enable_timing=False, blocking=False, interprocess=False):
        super().__init__(device)
        self.enable_timing, self.blocking, self.interprocess = bool(enable_timing), bool(blocking), bool(interprocess)
        self._recorded_ns = None

    def record(self, stream=None):
        """Note the time."""
        self._recorded_ns = time.perf_counter_ns()

    def wait(self, stream=None):
        """Do nothing."""

    def elapsed_time(self, end_event):
        """Return the milliseconds from this event's record to that of ``end_event``, both timed."""
        if not isinstance(end_event, Event):
            raise TypeError(f"elapsed_time() takes an Event of cpu, not {type(end_event).__name__}")
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._recorded_ns is None or end_event._recorded_ns is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end_event._recorded_ns - self._recorded_ns) * 1e-6

    def ipc_handle(self):
        """Raise NotImplementedError: the host's events stay in their process."""
        raise NotImplementedError("torch.Event ipc is not supported yet for cpu")

    def __repr__(self):
        return f"<l0rt.Event device=cpu {'complete' if self._recorded_ns else 'not recorded'}>"


class Cpu:
    """What `l0rt.Stream`, `l0rt.Event` and `l0rt.Generator` find for ``cpu``."""

    Stream = Stream
    Event = Event
    Generator = None


interfaces.add_maker("cpu", Cpu)
