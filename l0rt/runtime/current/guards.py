# SPDX-License-Identifier: Apache-2.0
"""Guards as objects, with the members of c10's guards: they know what was current before, and restore the original.

`device_index` and ``with stream:`` do the same in less time; these are for code that is written against such members.
One object serves any number of with blocks, nested and on several threads: each block restores what it found itself.
"""

from __future__ import annotations

from l0rt.runtime.current.guard import Blocks, DeviceBlock, StreamBlock
from l0rt.runtime.current.stream import Stream
from l0rt.runtime.current.thread import Guard
from l0rt.runtime.streams import naming
from l0rt.runtime.streams.naming import existing_index, index_in

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from collections.abc import Iterable

    from l0rt.runtime.streams.naming import _Device


def _interface_of(stream):
    """The interface of a stream's device type, None for the built-in one; TypeError if it is no stream."""
    return None if isinstance(stream, Stream) else naming.other_interface_of_stream(stream)


def _make_current(block, device):
    """Make ``device`` current: of the device type that the block is on, or while it is empty of the accelerator's."""
    empty = block.original is None
    type = naming.accelerator_type() if empty else block.type
    interface = naming.other_interface_of(type) if empty else block.interface
    index = index_in(device, type)
    block.set_index(type, interface, index if index < 0 or interface is None else existing_index(interface, index))


class DeviceGuard(Guard):
    """Make ``device`` current inside a with block. A negative index changes nothing.

    Parameters
    ----------
    device : int, str, device or None
        An index, a name such as ``xpu:1``, or an object that has a device. A negative index changes nothing.

    Notes
    -----
    The members and their meaning are those of ``c10::DeviceGuard`` in torch.
    """

    _make = DeviceBlock

    def __init__(self, device: _Device) -> None:
        self._device = device

    def _begin(self, block):
        _make_current(block, self._device)

    @property
    def original_device(self) -> int | None:
        """The index that was current when this thread's innermost block began."""
        return self._block.original

    @property
    def current_device(self) -> int | None:
        """The index that the block has made current."""
        return self._block.current

    def set_index(self, device: _Device) -> None:
        """Make another device current; the block's end still restores the original.

        Parameters
        ----------
        device : int, str, device or None
            An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.
        """
        _make_current(self._block, device)

    def reset_device(self, device: _Device = None) -> None:
        """Go back to the original device, or on to ``device``.

        Parameters
        ----------
        device : int, str, device or None, optional
            An index, a name such as ``xpu:1``, or an object that has a device. None is the original device.
        """
        if device is None:
            self._block.go_back()
        else:
            self.set_index(device)


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

    def __init__(self, device: _Device = None) -> None:
        super().__init__(device)

    def _begin(self, block):
        if self._device is not None:
            super()._begin(block)

    def set_index(self, device: _Device) -> None:
        """Make a device current; an empty guard takes the one before it as the original.

        Parameters
        ----------
        device : int, str, device or None
            An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.
        """
        super().set_index(device)

    def reset(self) -> None:
        """Restore the original device and be empty."""
        self._block.reset()


class StreamGuard(Guard):
    """Make ``stream`` and its device current inside a with block.

    Parameters
    ----------
    stream : Stream
        The stream.

    Notes
    -----
    The members and their meaning are those of ``c10::StreamGuard`` in torch.
    """

    _make = StreamBlock

    def __init__(self, stream: Stream) -> None:
        self._stream = _checked(stream)

    def _begin(self, block):
        block.reset_stream(_interface_of(self._stream), self._stream)

    @property
    def original_device(self) -> int | None:
        """The index of the device that was current when the block began."""
        return self._block.original_device

    @property
    def original_stream(self) -> Stream | None:
        """The stream that was current when the block began: on the original device."""
        return self._block.original_stream

    @property
    def current_stream(self) -> Stream | None:
        """The stream that the block has made current."""
        return self._block.current_stream

    @property
    def current_device(self) -> int | None:
        """The index of that stream's device."""
        return self._block.current_stream.device_index

    def reset_stream(self, stream: Stream) -> None:
        """Make another stream and its device current; on the device left behind, the original stream.

        Parameters
        ----------
        stream : Stream or None
            None is the current stream of the device.
        """
        self._block.reset_stream(_interface_of(stream), stream)


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

    def __init__(self, stream: Stream | None = None) -> None:
        self._stream = None if stream is None else _checked(stream)

    def _begin(self, block):
        if self._stream is not None:
            super()._begin(block)

    @property
    def original_stream(self) -> Stream | None:
        """The stream that was current when the block began, on the original device; None if the guard is empty."""
        return super().original_stream

    @property
    def current_device(self) -> int | None:
        """The index of the block's stream's device; None if the guard is empty."""
        return None if self.current_stream is None else super().current_device

    def reset_stream(self, stream: Stream) -> None:
        """Make ``stream`` and its device current; an empty guard takes what was current before as the original.

        Parameters
        ----------
        stream : Stream or None
            None is the current stream of the device.
        """
        super().reset_stream(stream)

    def reset(self) -> None:
        """Restore the originals and be empty."""
        self._block.reset()


class MultiStreamGuard(Guard):
    """Make each of ``streams`` current on its device inside a with block. The current device stays the same.

    Parameters
    ----------
    streams : iterable of Stream
        If two streams are of one device, the last one becomes current.

    Notes
    -----
    The members and their meaning are those of ``c10::MultiStreamGuard`` in torch.
    """

    _make = Blocks

    def __init__(self, streams: Iterable[Stream]) -> None:
        if not hasattr(streams, "__iter__"):
            raise TypeError(f"expected several Streams, got {type(streams).__name__}")
        self._streams = [_checked(stream) for stream in streams]

    def _begin(self, block):
        by_interface: dict = {}
        for stream in self._streams:
            by_interface.setdefault(_interface_of(stream), []).append(stream)
        for interface, streams in by_interface.items():
            block.add(interface, streams)

    @property
    def original_streams(self) -> list[Stream]:
        """The streams that were current, one for each device."""
        return [stream for block in self._block.entered for stream in block.original_streams]


def _checked(stream):
    _interface_of(stream)
    return stream
