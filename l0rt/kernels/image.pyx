# SPDX-License-Identifier: Apache-2.0
"""Images and samplers: texels that kernels read and write by coordinates, and how they are filtered."""

import re

cimport cython
from libc.stdint cimport uint64_t

from l0rt._base.arguments cimport checked_shape, known_as
from l0rt.buffers.buffer cimport DEVICE, Buffer, Buffer_check_open, Buffer_hold, Buffer_operand, Buffer_unhold
from l0rt.core.image cimport (
    Image as CoreImage, Sampler as CoreSampler, image_limits, l0rt_image_desc, l0rt_image_limits,
)
from l0rt.runtime.current.thread cimport current_device, current_stream
from l0rt.runtime.memory.transfer cimport l0rt_operand, operand_use
from l0rt.runtime.streams.copy cimport queue_copy_image
from l0rt.runtime.streams.devices cimport core_context, core_device, device_at
from l0rt.runtime.streams.naming cimport device as device_name, index_of
from l0rt.runtime.streams.queue cimport Queue, progress
from l0rt.runtime.streams.types cimport *
from l0rt.ze cimport table
from l0rt.ze.api cimport *

from l0rt._base import lazynumpy as np
from l0rt.buffers.empty import empty
from l0rt.errors import UnsupportedError
from l0rt.runtime.lazy import MODULES, on_exit
from l0rt.runtime.streams.devices import lazy

# Level Zero's numbers: a layout by the bits of the components, a number's type, and what each channel shows.
cdef dict LAYOUTS = {
    (8,): 0, (16,): 1, (32,): 2, (8, 8): 3, (8,) * 4: 4, (16, 16): 5, (16,) * 4: 6, (32, 32): 7, (32,) * 4: 8,
    (10, 10, 10, 2): 9, (11, 11, 10): 10, (5, 6, 5): 11, (5, 5, 5, 1): 12, (4,) * 4: 13, (8,) * 3: 43, (16,) * 3: 44,
    (32,) * 3: 45,
}
cdef dict NUMBERS = {"uint": 0, "sint": 1, "unorm": 2, "snorm": 3, "float": 4}
cdef str SHOWN = "RGBA01XD"
cdef dict CHANNELS = {
    "r": "R001", "rg": "RG01", "ra": "R00G", "rgb": "RGB1", "rgba": "RGBA", "bgra": "BGRA", "argb": "ARGB",
    "abgr": "ABGR", "a": "000R", "l": "RRR1", "i": "RRRR", "d": "D001",
}
cdef dict PACKED = {        # format -> (bits of the components, channels, number)
    "rgb10a2unorm": ((10, 10, 10, 2), "RGBA", "unorm"), "rgb10a2uint": ((10, 10, 10, 2), "RGBA", "uint"),
    "rgb10a2snorm": ((10, 10, 10, 2), "RGBA", "snorm"), "rgb10a2sint": ((10, 10, 10, 2), "RGBA", "sint"),
    "rg11b10float": ((11, 11, 10), "RGB1", "float"), "r5g6b5unorm": ((5, 6, 5), "RGB1", "unorm"),
    "rgb5a1unorm": ((5, 5, 5, 1), "RGBA", "unorm"), "rgba4unorm": ((4, 4, 4, 4), "RGBA", "unorm"),
}
cdef dict ADDRESSING = {"none": 0, "repeat": 1, "clamp": 2, "border": 3, "mirror": 4}
cdef dict FILTERS = {"nearest": 0, "linear": 1}

# What was closed and may be in use: (the owner, [(stream, how many of its commands must be complete)]). The GIL's.
cdef list _leaving = []


cdef tuple parsed(format):
    """Return the bits of the components, the channels and the kind of number of a format."""
    if not isinstance(format, str):
        raise TypeError(f"an image's format must be a str, got {type(format).__name__}")
    packed = PACKED.get(format)
    if packed is not None:
        return packed
    match = re.fullmatch("([rgbalid]+)(8|16|32)(uint|sint|unorm|snorm|float)", format)
    channels = CHANNELS.get(match[1]) if match else None
    if channels is None or (match[2] == "8" and match[3] == "float"):
        raise ValueError(f"there is no image format {format!r}: one is such as 'rgba8unorm', 'r32float', 'bgra8unorm' "
                         f"or 'rg16uint', or one of {', '.join(PACKED)}")
    components = len({channel for channel in channels if channel in "RGBAD"})
    return (int(match[2]),) * components, channels, match[3]


cdef l0rt_device* device_of(device) except NULL:
    lazy.init()
    return device_at(index_of(device, current_device(), lazy.device_type))


@cython.final
@cython.binding(False)
cdef class Image:
    """Image(shape, format="rgba8unorm", *, array=False, device=None)
--

Texels that kernels read, sample and write by coordinates.

Parameters
----------
shape : int or tuple of int
    The extents in the order of NumPy's axes: ``(width,)``, ``(height, width)`` or ``(depth, height, width)``. With
    ``array`` the number of images comes first: ``(images, width)`` or ``(images, height, width)``.
format : str, optional
    Channels, bits of each and the kind of number, such as ``"rgba8unorm"``, ``"r32float"``, ``"bgra8unorm"`` or
    ``"rg16uint"``, or a packed one such as ``"rgb10a2unorm"``.
array : bool, optional
    Whether it is an array of images.
device : int, str, device or None, optional
    None is the current device.

Raises
------
UnsupportedError
    The device has no images, or none of this format or size.
ValueError
    There is no such format, or the shape has too many or too few axes.
OutOfMemoryError
    The device has no memory left.

Notes
-----
Its contents are undefined. Memory of images does not come from l0rt's allocator.
"""

    def __cinit__(self, shape, format="rgba8unorm", *, bint array=False, device=None):
        cdef l0rt_image_desc desc
        cdef l0rt_image_limits limits
        bits, channels, number = parsed(format)
        self.shape, self.format, self.array = checked_shape(shape), format, array
        cdef int axes = len(self.shape) - array
        if not 1 <= axes <= (2 if array else 3):
            raise ValueError(f"an image's shape must have {'2 or 3' if array else '1 to 3'} extents, got {self.shape}")
        packed = format in PACKED
        self.components = 1 if packed else len(bits)
        self.element = np.dtype(f"u{sum(bits) // 8}" if packed else
                                f"{ {'sint': 'i', 'snorm': 'i', 'float': 'f'}.get(number, 'u') }{bits[0] // 8}")
        self.streams = set()
        self.on = device_of(device)
        limits = image_limits(core_device(self.on.index))
        most = limits.extents[axes - 1]
        if most == 0:
            raise UnsupportedError(f"{Image_device(self)} has no images")
        extents = self.shape[array:]
        if max(extents) > most or min(self.shape) < 1 or (array and self.shape[0] > limits.elements):
            raise UnsupportedError(f"an image of {Image_device(self)} has 1 to {most} texels along each of {axes} axes,"
                                   f" and an array at most {limits.elements} images, got {self.shape}")
        desc.type = ((1 if array else 0), (3 if array else 2), 4)[axes - 1]
        desc.layout, desc.number = LAYOUTS[bits], NUMBERS[number]
        desc.channels = [SHOWN.index(channel) for channel in channels]
        desc.width = extents[axes - 1]
        desc.height = extents[axes - 2] if axes > 1 else 1
        desc.depth = extents[0] if axes > 2 else 1
        desc.elements = self.shape[0] if array else 1
        sweep()
        self.owner = CoreImage.create(core_context(self.on.index), core_device(self.on.index), &desc)

    @property
    def device(self):
        """The device that has the image."""
        return Image_device(self)

    @property
    def dtype(self):
        """The NumPy type of a component; of a packed format, of a whole texel."""
        return self.element

    @property
    def nbytes(self):
        """How many bytes its texels have, as an array."""
        return self.element.itemsize * np.prod(array_shape(self, self.shape), dtype=int).item()

    @property
    def closed(self):
        """Whether the image was closed."""
        return self.owner is None

    def copy_from(self, source, *, origin=None, Queue stream=None):
        """Copy texels into the image, in the order of ``stream``, and return the image.

        A copy from device memory returns at once, and one from host memory when the source may be changed.

        Parameters
        ----------
        source : numpy.ndarray or Buffer
            An array of the image's `dtype`, whose axes are those of the image, and one more for several components; or
            device memory of all texels.
        origin : tuple of int, optional
            Where an array that is smaller than the image goes.
        stream : Stream or None, optional
            None is the current stream of the image's device.

        Returns
        -------
        Image

        Raises
        ------
        ValueError
            The sizes differ, or the image or the buffer was closed.
        TypeError
            The array is of another type.
        """
        cdef ze_image_region_t region
        cdef l0rt_stream* on = stream_for(self, stream)
        if isinstance(source, Buffer):
            copy(self, whole_region(self, origin, &region), check_buffer(self, source), &region, on, False)
            return self
        array = np.ascontiguousarray(source)
        shape = region_of(self, array, origin, &region)
        if array.nbytes != 0:
            staging = empty(array.nbytes, device=self.device, stream=stream)   # reused behind the copy
            staging.copy_from(array.reshape(-1).view(np.uint8), stream=stream)
            copy(self, shape, staging, &region, on, False)
        return self

    def copy_to(self, target, *, origin=None, Queue stream=None):
        """Copy texels out of the image, in the order of ``stream``, and return ``target``.

        A copy to device memory returns at once, and one to host memory when the data is there.

        Parameters
        ----------
        target : numpy.ndarray or Buffer
            A contiguous array of the image's `dtype`, or device memory of all texels: see `copy_from`.
        origin, stream : optional, optional
            As in `copy_from`.

        Returns
        -------
        object
            ``target``.

        Raises
        ------
        ValueError
            The sizes differ, the array is not contiguous, or the image or the buffer was closed.
        TypeError
            The array is of another type.
        """
        cdef ze_image_region_t region
        cdef l0rt_stream* on = stream_for(self, stream)
        if isinstance(target, Buffer):
            copy(self, whole_region(self, origin, &region), check_buffer(self, target), &region, on, True)
            return target
        if not isinstance(target, np.ndarray):
            raise TypeError(f"an image is copied to a NumPy array or a Buffer, got {type(target).__name__}")
        if not target.flags.c_contiguous:
            raise ValueError(f"the array must be contiguous, got one with strides {target.strides}")
        shape = region_of(self, target, origin, &region)
        if target.nbytes != 0:
            staging = empty(target.nbytes, device=self.device, stream=stream)
            copy(self, shape, staging, &region, on, True)
            staging.copy_to(target.reshape(-1).view(np.uint8), stream=stream)
        return target

    def numpy(self, *, Queue stream=None):
        """Return the texels as a new NumPy array, when they are there.

        Parameters
        ----------
        stream : Stream or None, optional
            As in `copy_from`.

        Returns
        -------
        numpy.ndarray
        """
        return self.copy_to(np.empty(array_shape(self, self.shape), self.element), stream=stream)

    def close(self):
        """Destroy the image once nothing runs that uses it; closing twice is harmless. A graph that uses it cannot be
        replayed any more."""
        owner, self.owner = self.owner, None
        leave(owner, self.streams)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __dealloc__(self):
        if self.owner is not None:
            leave(self.owner, self.streams)

    def __reduce__(self):
        raise TypeError("an Image cannot be pickled: pickle its texels")

    def __repr__(self):
        state = " closed" if self.owner is None else f" on {Image_device(self)}"
        return f"<l0rt.Image {self.shape} {self.format}{' array' if self.array else ''}{state}>"


cdef object Image_device(Image self):
    return device_name(lazy.device_type, self.on.index)


cdef tuple array_shape(Image self, tuple shape):
    """The shape of an array of so many texels."""
    return (*shape, self.components) if self.components > 1 else shape


cdef l0rt_stream* stream_for(Image self, Queue stream) except NULL:
    if self.owner is None:
        raise ValueError("the image was closed")
    if stream is not None and stream.ptr.device != self.on:
        raise ValueError(f"the image is of device {self.on.index}, the stream of device {stream.ptr.device.index}")
    return current_stream(self.on.index) if stream is None else stream.ptr


cdef Buffer check_buffer(Image self, Buffer buffer):
    Buffer_check_open(buffer)
    if buffer.memory != DEVICE or buffer.owner != self.on:
        raise ValueError(f"the buffer must be device memory of {Image_device(self)}, got {buffer!r}")
    if buffer.nbytes != self.nbytes:
        raise ValueError(f"the image has {self.nbytes} bytes, got a buffer of {buffer.nbytes}")
    return buffer


cdef tuple whole_region(Image self, origin, ze_image_region_t* region):
    if origin is not None:
        raise TypeError("origin= is for arrays: a buffer has all texels")
    return set_region(self, (0,) * len(self.shape), self.shape, region)


cdef tuple region_of(Image self, array, origin, ze_image_region_t* region):
    """Set the region to the texels of an array, and return its extents."""
    if array.dtype != self.element:
        raise TypeError(f"the array must be of {self.element}, got {array.dtype}")
    extents = array.shape if self.components == 1 else array.shape[:-1]
    start = (0,) * len(self.shape) if origin is None else checked_shape(origin)
    fits = len(extents) == len(start) == len(self.shape) and array.shape == array_shape(self, extents)
    fits = fits and all([0 <= first <= there - extent for first, extent, there in zip(start, extents, self.shape)])
    if not fits or (origin is None and extents != self.shape):
        raise ValueError(f"the array must have the shape {array_shape(self, self.shape)}, or be a part of it with "
                         f"origin=, got {array.shape}{'' if origin is None else f' at {start}'}")
    return set_region(self, start, extents, region)


cdef tuple set_region(Image self, tuple start, tuple extents, ze_image_region_t* region):
    first, size = [*reversed(start), 0, 0][:3], [*reversed(extents), 1, 1][:3]
    region.originX, region.originY, region.originZ = first
    region.width, region.height, region.depth = size
    return extents


cdef int copy(Image self, tuple extents, Buffer memory, const ze_image_region_t* region, l0rt_stream* on,
              bint reads) except -1:
    cdef ze_image_handle_t handle = self.owner._h
    cdef l0rt_operand operand
    if 0 in extents:
        return 0
    self.streams.add(<uint64_t>on)
    Buffer_hold(memory)
    try:
        operand = Buffer_operand(memory)
        operand_use(&operand, on)
        with nogil:
            queue_copy_image(on, handle, region, operand.pointer, operand.nbytes, reads)
    finally:
        Buffer_unhold(memory)
    return 0


cdef uint64_t Image_use(Image self, l0rt_device* device, l0rt_stream* stream) except 0:
    if self.owner is None:
        raise ValueError("the image was closed")
    if self.on != device:
        raise ValueError(f"the image is of device {self.on.index}, the kernel of device {device.index}")
    if stream != NULL:
        self.streams.add(<uint64_t>stream)
    return <uint64_t>self.owner._h


# --- Samplers.


@cython.final
@cython.binding(False)
cdef class Sampler:
    """Sampler(addressing="clamp", filter="nearest", *, normalized=False, device=None)
--

How kernels sample images.

Parameters
----------
addressing : "clamp", "border", "repeat", "mirror" or "none", optional
    What is beyond the image: its nearest texel, the border's color, the image again, or the image mirrored. With "none"
    the kernel asks for nothing there.
filter : "nearest" or "linear", optional
    The nearest texel, or the weighted mean of the nearest ones.
normalized : bool, optional
    Whether coordinates go from 0 to 1, and not to the extents.
device : int, str, device or None, optional
    None is the current device.

Raises
------
UnsupportedError
    The device has no samplers.
ValueError
    There is no such addressing or filter, or one that repeats has coordinates that are not normalized.
"""

    def __cinit__(self, str addressing="clamp", str filter="nearest", *, bint normalized=False, device=None):
        if addressing not in ADDRESSING:
            raise ValueError(f"a sampler's addressing must be one of {', '.join(ADDRESSING)}, got {addressing!r}")
        if filter not in FILTERS:
            raise ValueError(f"a sampler's filter must be nearest or linear, got {filter!r}")
        if addressing in ("repeat", "mirror") and not normalized:
            raise ValueError(f"addressing {addressing!r} needs normalized=True")
        self.addressing, self.filter, self.normalized = addressing, filter, normalized
        self.streams = set()
        self.on = device_of(device)
        if image_limits(core_device(self.on.index)).samplers == 0:
            raise UnsupportedError(f"{device_name(lazy.device_type, self.on.index)} has no samplers")
        sweep()
        self.owner = CoreSampler.create(core_context(self.on.index), core_device(self.on.index), ADDRESSING[addressing],
                                        FILTERS[filter], normalized)

    @property
    def device(self):
        """The device that has the sampler."""
        return device_name(lazy.device_type, self.on.index)

    @property
    def closed(self):
        """Whether the sampler was closed."""
        return self.owner is None

    def close(self):
        """Destroy the sampler once nothing runs that uses it; closing twice is harmless."""
        owner, self.owner = self.owner, None
        leave(owner, self.streams)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __dealloc__(self):
        if self.owner is not None:
            leave(self.owner, self.streams)

    def __reduce__(self):
        raise TypeError("a Sampler cannot be pickled")

    def __repr__(self):
        text = f"{self.addressing!r}, {self.filter!r}, normalized={self.normalized}"
        return f"<l0rt.Sampler {text}{' closed' if self.owner is None else ''}>"


cdef uint64_t Sampler_use(Sampler self, l0rt_device* device, l0rt_stream* stream) except 0:
    if self.owner is None:
        raise ValueError("the sampler was closed")
    if self.on != device:
        raise ValueError(f"the sampler is of device {self.on.index}, the kernel of device {device.index}")
    if stream != NULL:
        self.streams.add(<uint64_t>stream)
    return <uint64_t>self.owner._h


# --- The end of both: a destructor must not wait.


cdef void leave(owner, set streams) noexcept:
    """Destroy it when the streams have completed what they were given so far."""
    if owner is None or not table.alive:
        return
    _leaving.append((owner, [(stream, l0rt_load64(&(<l0rt_stream*><uint64_t>stream).issued)) for stream in streams]))
    sweep()


cdef bint is_in_use(list marks) except -1:
    cdef l0rt_stream* stream
    for address, seq in marks:
        stream = <l0rt_stream*><uint64_t>address
        if l0rt_load64(&stream.done) < <uint64_t>seq and not stream.device.lost:
            progress(stream)
            if l0rt_load64(&stream.done) < <uint64_t>seq:
                return True
    return False


cdef void sweep() noexcept:
    global _leaving
    closed, _leaving = _leaving, []     # a collection of garbage may close others meanwhile
    ended = []
    for entry in closed:
        (_leaving if is_in_use(entry[1]) else ended).append(entry)
    for owner, _ in ended:
        owner.close()


def _sweep():
    """Destroy what was closed and is not used any more: for a test that counts what is alive."""
    sweep()


def _close():
    """At exit: nothing runs any more."""
    global _leaving
    ended, _leaving = _leaving, []
    for owner, _ in ended:
        owner.close()


on_exit(MODULES, _close)

known_as(Image, b"l0rt.Image")
known_as(Sampler, b"l0rt.Sampler")
