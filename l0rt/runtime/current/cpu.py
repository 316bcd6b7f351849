# SPDX-License-Identifier: Apache-2.0
"""The host as a device: streams and events of ``cpu``, where a call returns when its work is done.

They are there so that code for any device runs on the host too. Nothing waits, for there is nothing to wait for.
"""

import time
from contextlib import nullcontext

import l0rt.runtime.streams.naming as naming
from l0rt.runtime.streams.naming import device as _device
from l0rt.runtime.streams.naming import index_in as _index_in

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


def _existing(device):
    """Refuse a device that the host does not have; None and a negative index name none."""
    index = _index_in(device, "cpu")
    if index > 0:
        raise IndexError(f"The device index is out of range. It must be in [0, 1), but got {index}.")


class Cpu:
    """What ``cpu`` has of a device type's interface: one device, one stream, and nothing to wait for."""

    Stream = Stream
    Event = Event
    Generator = None
    is_host = True

    @staticmethod
    def init():
        """Do nothing."""

    @staticmethod
    def device_count():
        """Return 1."""
        return 1

    @staticmethod
    def current_device():
        """Return 0."""
        return 0

    @staticmethod
    def set_device(device):
        """Do nothing: there is one device."""
        _existing(device)

    @staticmethod
    def exchange_device(device):
        """Return 0: there is one device."""
        _existing(device)
        return 0

    maybe_exchange_device = exchange_device

    @staticmethod
    def device(device=None):
        """Return a block that changes nothing."""
        _existing(device)
        return nullcontext()

    @staticmethod
    def current_stream(device=None):
        """Return the host's one stream."""
        _existing(device)
        return Stream()

    default_stream = current_stream

    @staticmethod
    def set_stream(stream):
        """Do nothing: there is one stream."""

    @staticmethod
    def _set_stream_by_id(stream_id=None, device_index=None, device_type=None):
        """Do nothing: there is one stream."""

    @staticmethod
    def stream(stream):
        """Return the stream, which is a block that changes nothing."""
        return stream

    @staticmethod
    def get_raw_stream(device=None):
        """Return 0, as torch does: the host's stream has no native one."""
        _existing(device)
        return 0

    @staticmethod
    def synchronize(device=None, *, timeout=None):
        """Return at once; with ``timeout``, True."""
        _existing(device)
        return None if timeout is None else True

    @staticmethod
    def is_gpu():
        """Return False."""
        return False


naming.add_maker("cpu", Cpu)
