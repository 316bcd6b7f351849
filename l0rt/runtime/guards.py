"""Guards as objects, with CUDA's members: they tell what was current before, change again, and restore the original.

`device_index` and ``with stream:`` do the same in less time; these are for code that is written against such members.
One object serves any number of with blocks, nested and on several threads: each block restores what it found itself.
"""

import threading

from l0rt.runtime.guard import exchange_device_index
from l0rt.runtime.naming import index_in
from l0rt.runtime.stream import Stream, current_stream, set_stream


class _Guard:
    """Frames of the blocks entered and not left, of every thread; a frame is what that block found."""

    def __init__(self):
        self._frames = []

    def _frame(self, take=False):
        me = threading.get_ident()
        for i in range(len(self._frames) - 1, -1, -1):
            if self._frames[i][0] == me:
                return (self._frames.pop(i) if take else self._frames[i])[1]
        return None

    def _entered(self):
        frame = self._frame()
        if frame is None:
            raise RuntimeError("this thread is not inside the guard: a with block begins and ends on one thread")
        return frame

    def __enter__(self):
        self._frames.append((threading.get_ident(), self._begin()))
        return self

    def __exit__(self, kind, value, trace):
        self._entered()
        self._end(self._frame(take=True))

    def __copy__(self):
        raise TypeError(f"a {type(self).__name__} cannot be copied: two would restore the same original")

    def __deepcopy__(self, memo):
        self.__copy__()

    def __reduce__(self):
        raise TypeError(f"a {type(self).__name__} cannot be pickled")


class DeviceGuard(_Guard):
    """Make ``device`` current for the length of a with block; a negative index changes nothing."""

    def __init__(self, device):
        super().__init__()
        self._device = device

    def _begin(self):
        index = index_in(self._device)
        before = exchange_device_index(index)
        return {"original": before, "current": before if index < 0 else index}

    def _end(self, frame):
        exchange_device_index(frame["original"])

    @property
    def original_device(self):
        """The index that was current when this thread's innermost block began."""
        return self._entered()["original"]

    @property
    def current_device(self):
        """The index that the block has made current."""
        return self._entered()["current"]

    def set_index(self, device):
        """Make another device current; the block's end still restores the original."""
        frame, index = self._entered(), index_in(device)
        exchange_device_index(index)
        if index >= 0:
            frame["current"] = index

    def reset_device(self, device=None):
        """Go back to the original device, or on to ``device``."""
        self.set_index(self.original_device if device is None else device)


class OptionalDeviceGuard(DeviceGuard):
    """A `DeviceGuard` that may be empty: then it changes nothing, and tells None."""

    def __init__(self, device=None):
        super().__init__(device)

    def _begin(self):
        return {"original": None, "current": None} if self._device is None else super()._begin()

    def _end(self, frame):
        if frame["original"] is not None:
            super()._end(frame)

    def set_index(self, device):
        """Make a device current; an empty guard takes the one before it as the original."""
        frame = self._entered()
        if frame["original"] is None:
            frame["original"] = exchange_device_index(-1)
        super().set_index(device)

    def reset(self):
        """Restore the original device and be empty."""
        frame = self._entered()
        self._end(frame)
        frame.update(original=None, current=None)


class StreamGuard(_Guard):
    """Make ``stream`` and its device current for the length of a with block."""

    def __init__(self, stream):
        super().__init__()
        self._stream = _checked(stream)

    def _begin(self):
        frame = {"device": exchange_device_index(-1), "streams": {}, "current": None}
        _switch(frame, self._stream)
        return frame

    def _end(self, frame):
        for stream in frame["streams"].values():
            set_stream(stream)
        exchange_device_index(frame["device"])

    @property
    def original_device(self):
        """The index of the device that was current when the block began."""
        return self._entered()["device"]

    @property
    def original_stream(self):
        """The stream that was current on the device of the block's stream."""
        frame = self._entered()
        return frame["streams"][frame["current"].device_index]

    @property
    def current_stream(self):
        """The stream that the block has made current."""
        return self._entered()["current"]

    @property
    def current_device(self):
        """The index of that stream's device."""
        return self.current_stream.device_index

    def reset_stream(self, stream):
        """Make another stream and its device current; on the device left behind, the original stream."""
        _checked(stream)
        frame = self._entered()
        self._end(frame)
        _switch(frame, stream)


class OptionalStreamGuard(StreamGuard):
    """A `StreamGuard` that may be empty: then it changes nothing, and tells None."""

    def __init__(self, stream=None):
        _Guard.__init__(self)
        self._stream = None if stream is None else _checked(stream)

    def _begin(self):
        return _empty() if self._stream is None else super()._begin()

    def _end(self, frame):
        if frame["current"] is not None:
            super()._end(frame)

    @property
    def original_stream(self):
        """The stream that was current on the device of the block's stream; None if the guard is empty."""
        return None if self.current_stream is None else super().original_stream

    @property
    def current_device(self):
        """The index of the block's stream's device; None if the guard is empty."""
        return None if self.current_stream is None else super().current_device

    def reset_stream(self, stream):
        """Make ``stream`` and its device current; an empty guard takes what was current before as the original."""
        frame = self._entered()
        if frame["current"] is None:
            _checked(stream)
            frame["device"] = exchange_device_index(-1)
        super().reset_stream(stream)

    def reset(self):
        """Restore the originals and be empty."""
        frame = self._entered()
        self._end(frame)
        frame.update(_empty())


class MultiStreamGuard(_Guard):
    """Make each of ``streams`` current on its device for the length of a with block; the current device stays."""

    def __init__(self, streams):
        super().__init__()
        if not hasattr(streams, "__iter__"):
            raise TypeError(f"expected several Streams, got {type(streams).__name__}")
        self._streams = [_checked(stream) for stream in streams]

    def _begin(self):
        frame = {"device": exchange_device_index(-1), "streams": {}}
        for stream in self._streams:
            frame["streams"].setdefault(stream.device_index, current_stream(stream.device_index))
            set_stream(stream)
        exchange_device_index(frame["device"])
        return frame

    _end = StreamGuard._end

    @property
    def original_streams(self):
        """The streams that were current, one for each device."""
        return list(self._entered()["streams"].values())


def _checked(stream):
    if not isinstance(stream, Stream):
        raise TypeError(f"expected a Stream, got {type(stream).__name__}")
    return stream


def _empty():
    return {"device": None, "streams": {}, "current": None}


def _switch(frame, stream):
    frame["streams"] = {stream.device_index: current_stream(stream.device_index)}
    frame["current"] = stream
    set_stream(stream)
