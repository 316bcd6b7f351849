# SPDX-License-Identifier: Apache-2.0
"""Guards as objects, with the members of c10's guards: they know what was current before, and restore the original.

`device_index` and ``with stream:`` do the same in less time; these are for code that is written against such members.
One object serves any number of with blocks, nested and on several threads: each block restores what it found itself.
"""

from _thread import get_ident

from l0rt.runtime.current.guard import exchange_device_index, existing_index, restore_device, restore_stream
from l0rt.runtime.current.stream import Stream, current_stream, set_stream
from l0rt.runtime.streams import naming
from l0rt.runtime.streams.naming import index_in


class _BuiltIn:
    """What a guard needs of the built-in device type. Restoring cannot fail, not even in a forked child."""

    exchange_device = staticmethod(exchange_device_index)
    maybe_exchange_device = staticmethod(restore_device)
    current_stream = staticmethod(current_stream)
    set_stream = staticmethod(set_stream)


def _owner_of(stream):
    """The functions of a stream's device type; TypeError if it is not a stream."""
    return _BuiltIn if isinstance(stream, Stream) else naming.other_interface_of_stream(stream)


def _restore_stream(owner, stream):
    (restore_stream if owner is _BuiltIn else owner.set_stream)(stream)


def _named(owner, type, what):
    """The index of an existing device of a device type that ``what`` names, -1 where it changes nothing."""
    index = index_in(what, type)
    return index if index < 0 or owner is _BuiltIn else existing_index(owner, index)


class _Guard:
    """Frames of the blocks entered and not left, of every thread; a frame is what that block found."""

    def __init__(self):
        self._frames = []

    def _frame(self, take=False):
        me = get_ident()
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
        self._frames.append((get_ident(), self._begin()))
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
    """Make ``device`` current inside a with block. A negative index changes nothing.

    Parameters
    ----------
    device : int, str, device or None
        An index, a name such as ``xpu:1``, or an object that has a device. A negative index changes nothing.

    Notes
    -----
    The members and their meaning are those of ``c10::DeviceGuard`` in torch.
    """

    def __init__(self, device):
        super().__init__()
        self._device = device

    def _begin(self):
        type = naming.accelerator_type()
        owner = naming.other_interface_of(type) or _BuiltIn
        index = _named(owner, type, self._device)
        before = owner.exchange_device(index)
        return {"owner": owner, "type": type, "original": before, "current": before if index < 0 else index}

    def _end(self, frame):
        frame["owner"].maybe_exchange_device(frame["original"])

    @property
    def original_device(self):
        """The index that was current when this thread's innermost block began."""
        return self._entered()["original"]

    @property
    def current_device(self):
        """The index that the block has made current."""
        return self._entered()["current"]

    def set_index(self, device):
        """Make another device current; the block's end still restores the original.

        Parameters
        ----------
        device : int, str, device or None
            An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.
        """
        frame = self._entered()
        index = _named(frame["owner"], frame["type"], device)
        frame["owner"].exchange_device(index)
        if index >= 0:
            frame["current"] = index

    def reset_device(self, device=None):
        """Go back to the original device, or on to ``device``.

        Parameters
        ----------
        device : int, str, device or None, optional
            An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.
        """
        self.set_index(self.original_device if device is None else device)


class OptionalDeviceGuard(DeviceGuard):
    """A `DeviceGuard` that may be empty. An empty guard changes nothing, and its properties are None.

    Parameters
    ----------
    device : int, str, device or None, optional
        None makes an empty guard.

    Notes
    -----
    The members and their meaning are those of ``c10::OptionalDeviceGuard`` in torch.
    """

    def __init__(self, device=None):
        super().__init__(device)

    def _begin(self):
        return {"owner": None, "original": None, "current": None} if self._device is None else super()._begin()

    def _end(self, frame):
        if frame["original"] is not None:
            super()._end(frame)

    def set_index(self, device):
        """Make a device current; an empty guard takes the one before it as the original.

        Parameters
        ----------
        device : int, str, device or None
            An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.
        """
        frame = self._entered()
        if frame["owner"] is None:
            type = naming.accelerator_type()
            owner = naming.other_interface_of(type) or _BuiltIn
            _named(owner, type, device)  # a wrong one leaves the guard empty
            frame.update(owner=owner, type=type, original=owner.exchange_device(-1))
        super().set_index(device)

    def reset(self):
        """Restore the original device and be empty."""
        frame = self._entered()
        self._end(frame)
        frame.update(owner=None, original=None, current=None)


class StreamGuard(_Guard):
    """Make ``stream`` and its device current inside a with block.

    Parameters
    ----------
    stream : Stream
        The stream.

    Notes
    -----
    The members and their meaning are those of ``c10::StreamGuard`` in torch.
    """

    def __init__(self, stream):
        super().__init__()
        self._stream = _checked(stream)

    def _begin(self):
        frame = _found(_owner_of(self._stream))
        _switch(frame, self._stream)
        return frame

    def _end(self, frame):
        _restore_stream(frame["owner"], frame["left"])
        frame["owner"].maybe_exchange_device(frame["device"])

    @property
    def original_device(self):
        """The index of the device that was current when the block began."""
        return self._entered()["device"]

    @property
    def original_stream(self):
        """The stream that was current when the block began: on the original device."""
        return self._entered()["stream"]

    @property
    def current_stream(self):
        """The stream that the block has made current."""
        return self._entered()["current"]

    @property
    def current_device(self):
        """The index of that stream's device."""
        return self.current_stream.device_index

    def reset_stream(self, stream):
        """Make another stream and its device current; on the device left behind, the original stream.

        Parameters
        ----------
        stream : Stream or None
            None is the current stream of the device.
        """
        owner, frame = _owner_of(stream), self._entered()
        self._end(frame)
        if owner is not frame["owner"]:
            frame.update(_found(owner))
        _switch(frame, stream)


class OptionalStreamGuard(StreamGuard):
    """A `StreamGuard` that may be empty. An empty guard changes nothing, and its properties are None.

    Parameters
    ----------
    stream : Stream or None, optional
        None makes an empty guard.

    Notes
    -----
    The members and their meaning are those of ``c10::OptionalStreamGuard`` in torch.
    """

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
        """The stream that was current when the block began, on the original device; None if the guard is empty."""
        return None if self.current_stream is None else super().original_stream

    @property
    def current_device(self):
        """The index of the block's stream's device; None if the guard is empty."""
        return None if self.current_stream is None else super().current_device

    def reset_stream(self, stream):
        """Make ``stream`` and its device current; an empty guard takes what was current before as the original.

        Parameters
        ----------
        stream : Stream or None
            None is the current stream of the device.
        """
        frame = self._entered()
        if frame["current"] is None:
            frame.update(_found(_owner_of(stream)))
            _switch(frame, stream)
        else:
            super().reset_stream(stream)

    def reset(self):
        """Restore the originals and be empty."""
        frame = self._entered()
        self._end(frame)
        frame.update(_empty())


class MultiStreamGuard(_Guard):
    """Make each of ``streams`` current on its device inside a with block. The current device stays the same.

    Parameters
    ----------
    streams : iterable of Stream
        If two streams are of one device, the last one becomes current.

    Notes
    -----
    The members and their meaning are those of ``c10::MultiStreamGuard`` in torch.
    """

    def __init__(self, streams):
        super().__init__()
        if not hasattr(streams, "__iter__"):
            raise TypeError(f"expected several Streams, got {type(streams).__name__}")
        self._streams = [_checked(stream) for stream in streams]

    def _begin(self):
        frame = {"devices": {}, "streams": {}}
        for stream in self._streams:
            owner, index = _owner_of(stream), stream.device_index
            if owner not in frame["devices"]:
                frame["devices"][owner] = owner.exchange_device(-1)
            if (owner, index) not in frame["streams"]:
                frame["streams"][owner, index] = owner.current_stream(index)
            owner.set_stream(stream)
        self._end_devices(frame)
        return frame

    @staticmethod
    def _end_devices(frame):
        for owner, index in frame["devices"].items():
            owner.maybe_exchange_device(index)

    def _end(self, frame):
        for (owner, _), stream in frame["streams"].items():
            _restore_stream(owner, stream)
        self._end_devices(frame)

    @property
    def original_streams(self):
        """The streams that were current, one for each device."""
        return list(self._entered()["streams"].values())


def _checked(stream):
    _owner_of(stream)
    return stream


def _empty():
    return {"device": None, "stream": None, "left": None, "current": None}


def _found(owner):
    """What is current on a device type before a stream becomes so."""
    device = owner.exchange_device(-1)
    return {"owner": owner, "device": device, "stream": owner.current_stream(device)}


def _switch(frame, stream):
    frame["left"] = frame["owner"].current_stream(stream.device_index)
    frame["current"] = stream
    frame["owner"].set_stream(stream)
