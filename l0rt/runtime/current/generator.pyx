# SPDX-License-Identifier: Apache-2.0
"""Generators: a seed and an offset into the Philox stream of that seed; one default generator a device.

A generator is arithmetic, not a device object: seeding one opens no driver.
"""

import os
import struct

cimport cython
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport uint64_t

from l0rt._base.arguments cimport bytes_of, is_whole, known_as, plain_int, whole
from l0rt.runtime.current.thread cimport current_device, current_stream
from l0rt.runtime.streams.capture cimport capture_number, capture_refuse, captures
from l0rt.runtime.streams.devices cimport device_total
from l0rt.runtime.streams.hooks cimport CAPTURES, hooked
from l0rt.runtime.streams.naming cimport (
    call,
    current_type,
    device as device_named,
    get_slots,
    index_of,
    maker_for,
    maker_of,
    set_slots,
    slots,
    type_named,
)
from l0rt.runtime.streams.types cimport l0rt_stream

from l0rt.errors import DeviceIndexError, UnsupportedError
from l0rt.runtime.streams.devices import lazy

cdef enum:
    NONE = -0x80000000
    PLACES = 64         # states in the memory of a stream, one after another

cdef object _empty = None       # makes a Buffer: memory is a matter of later packages

DEFAULT_SEED = 67280421310721   # torch's, for generators without a seed


cdef uint64_t seed_bits(seed) except? 0:
    """A seed as 64 bits; a negative one in two's complement."""
    if not is_whole(seed):
        raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
    number = whole(seed, "a seed")
    if not -(1 << 63) <= number < 1 << 64:
        raise ValueError(f"Overflow when unpacking long long: a seed must be from -2**63 to 2**64 - 1, got {number}")
    return <uint64_t>(number & 0xFFFFFFFFFFFFFFFF)


cdef uint64_t offset_bits(offset) except? 1:
    offset = whole(offset, "an offset")
    if not 0 <= offset < 1 << 64:
        raise RuntimeError(f"an offset must be from 0 to 2**64 - 4, got {offset}")
    if offset % 4:
        raise RuntimeError(f"offset must be a multiple of 4, got {offset}")
    return offset


def provide_memory(empty):
    """Let the memory for `Generator.philox_state` come from ``empty(nbytes, device=)``, which makes Buffers."""
    global _empty
    _empty = empty


@cython.final
@cython.binding(False)
cdef class PhiloxState:
    def __cinit__(self):
        self.captures = {}


@cython.final
@cython.binding(False)
cdef class CapturedState:

    @staticmethod
    cdef CapturedState create(Generator generator, memory):
        cdef CapturedState made = CapturedState.__new__(CapturedState)
        made.state, made.index = generator.state, generator.index
        made.memory, made.place = memory, memory.ptr
        return made

    cdef int begin(self, uint64_t capture) except -1:
        self.capture = capture
        self.state.captures[capture] = self
        return 0

    cdef int end(self) except -1:
        self.state.captures.pop(self.capture, None)
        return 0

    cdef uint64_t draw(self, uint64_t words) noexcept:
        cdef uint64_t before = self.words
        self.words = before + words
        return before

    cdef int replayed(self, uint64_t* seed, uint64_t* offset) noexcept:
        seed[0], offset[0] = self.state.seed, self.state.offset
        self.state.offset += self.words
        return 0


cdef CapturedState captured_state(Generator generator, l0rt_stream* stream):
    cdef uint64_t capture = capture_number(stream)
    cdef CapturedState found
    if capture == 0:
        return None
    found = generator.state.captures.get(capture)
    if found is None:
        capture_refuse(stream, b"a draw from a generator that was not registered (Graph.register_generator_state)")
    elif found.index != stream.device.index:
        capture_refuse(stream, b"a draw on another device than the generator's")
        return None
    return found


cdef uint64_t generator_advance(Generator generator, uint64_t words) noexcept:
    cdef uint64_t offset = generator.state.offset
    generator.state.offset = offset + ((words + 3) & ~<uint64_t>3)
    return offset


cdef int refuse_captured(Generator self, const char* what) except -1:
    """A replay would not do it again."""
    cdef l0rt_stream* stream
    if self.state.captures and self.index < device_total():
        stream = current_stream(self.index)
        if captures(stream):
            capture_refuse(stream, what)
    return 0


cdef uint64_t checked_words(increment) except? 1:
    """An increment, rounded up."""
    cdef long plain = plain_int(increment)
    if plain >= 0:
        return (<uint64_t>plain + 3) & ~<uint64_t>3
    increment = whole(increment, "an increment")
    if not 0 <= increment < 1 << 63:
        raise ValueError(f"an increment must be from 0 to 2**63 - 1, got {increment}")
    return (<uint64_t>increment + 3) & ~<uint64_t>3


@cython.final
@cython.binding(False)
cdef class Places:
    """Where the kernels of a stream find states: 16 bytes each, in turn."""
    cdef object memory
    cdef int next


@cython.binding(False)
cdef class Generator:
    """Generator(device=None)
--

A source of random numbers. It has a seed, and an offset into the Philox4x32-10 stream of that seed.

A new generator has a constant seed; the clock does not seed it. The state is 16 bytes: the seed and the offset, each
little-endian. The offset is the number of 32-bit words that were used, a multiple of 4. Generators can be pickled.

Parameters
----------
device : int, str, device or None, optional
    The device for which it makes random numbers. None is the current device of the current accelerator.

Notes
-----
Philox4x32-10 is the generator of Salmon et al. (SC11) that torch uses on CUDA and XPU. The constant seed
67280421310721 and the 16 bytes of the state are torch's (``torch.cuda.get_rng_state``).
"""

    def __cinit__(self, device=None):
        named = lazy.device_type if isinstance(self, XpuGenerator) else type_named(device)
        self.type = current_type() if named is None else named
        self.index = index_of(device, NONE, self.type)
        if self.index == NONE:
            self.index = current_index(self.type)
        elif self.index < 0:
            raise DeviceIndexError(f"Device index must not be negative, got {self.index}")
        self.places = {}
        self.state = PhiloxState.__new__(PhiloxState)
        self.state.seed = DEFAULT_SEED

    @property
    def device(self):
        """The device that the generator is for."""
        return device_named(self.type) if self.index < 0 else device_named(self.type, self.index)

    def manual_seed(self, seed):
        """Set the seed, set the offset to 0, and return the generator.

        Parameters
        ----------
        seed : int
            From -2**63 to 2**64 - 1.

        Returns
        -------
        Generator
            This generator.

        Raises
        ------
        ValueError
            The seed is out of range.

        Notes
        -----
        A negative seed ``s`` means ``2**64 + s``, as in ``torch.Generator.manual_seed``.
        """
        cdef uint64_t bits = seed_bits(seed)
        refuse_captured(self, b"Generator.manual_seed()")
        self.state.seed = bits
        self.state.offset = 0
        return self

    def seed(self):
        """Set a random seed of the system, and return that seed.

        Returns
        -------
        int
        """
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self.state.seed

    def initial_seed(self):
        """Return the seed.

        Returns
        -------
        int
        """
        return self.state.seed

    def get_offset(self):
        """Return the offset: how many words of the stream were used.

        Returns
        -------
        int
            32-bit words.
        """
        return self.state.offset

    def set_offset(self, offset):
        """Set the offset.

        Parameters
        ----------
        offset : int
            The number of 32-bit words that were used before, a multiple of 4.

        Raises
        ------
        RuntimeError
            ``offset`` is not a multiple of 4.
        """
        cdef uint64_t bits = offset_bits(offset)
        refuse_captured(self, b"Generator.set_offset()")
        self.state.offset = bits

    def get_state(self):
        """Return the state: 16 bytes, the seed and the offset.

        Returns
        -------
        bytes
        """
        return struct.pack("<QQ", self.state.seed, self.state.offset)

    def set_state(self, new_state):
        """Set the state, and return the generator.

        Parameters
        ----------
        new_state : bytes-like
            16 bytes: the seed and the offset, each little-endian. 8 bytes are a seed, with offset 0.

        Returns
        -------
        Generator
            This generator.

        Raises
        ------
        RuntimeError
            The size is not 16 or 8 bytes.

        Notes
        -----
        The format is that of torch's CUDA generator. As there, 8 bytes are a seed alone.
        """
        raw = bytes_of(new_state, "set_state")
        if len(raw) not in (8, 16):
            raise RuntimeError(f"RNG state is wrong size: expected 16 bytes, or 8 of a seed alone, got {len(raw)}")
        seed, offset = struct.unpack("<QQ", raw.ljust(16, b"\0"))
        offset = offset_bits(offset)
        refuse_captured(self, b"Generator.set_state()")
        self.state.offset = offset
        self.state.seed = seed
        return self

    def clone_state(self):
        """Return a new generator with the same seed and offset.

        Returns
        -------
        Generator
        """
        cdef Generator clone = made_for(self.device)
        clone.state.seed = self.state.seed
        clone.state.offset = self.state.offset
        return clone

    def graphsafe_get_state(self):
        """Return a generator that shares the state of this one. Numbers that one generator uses, the other does not
        use again.

        Returns
        -------
        Generator

        Notes
        -----
        The name and the contract are those of ``torch.Generator.graphsafe_get_state``.
        """
        cdef Generator same = made_for(self.device)
        same.state = self.state
        return same

    def graphsafe_set_state(self, Generator state not None):
        """Share the state of the generator ``state`` from now on, and return this generator.

        Parameters
        ----------
        state : Generator
            The generator whose state is shared.

        Returns
        -------
        Generator
            This generator.
        """
        self.state = state.state
        return self

    def philox_engine_inputs(self, increment):
        """Advance the offset by ``increment`` words, and return the seed and the offset of the first of these words.

        Parameters
        ----------
        increment : int
            How many 32-bit words the caller uses. It is rounded up to a multiple of 4.

        Returns
        -------
        tuple of two int
            The seed, and the offset of the first word.

        Notes
        -----
        The name and the rounding to 4 words are those of torch's ``CUDAGeneratorImpl::philox_engine_inputs``:
        Philox4x32 makes 4 words at a time.
        """
        cdef uint64_t words = checked_words(increment)
        cdef l0rt_stream* stream
        if hooked >> CAPTURES & 1 and self.type == lazy.device_type and self.index < device_total():
            stream = current_stream(self.index)
            if captures(stream):
                capture_refuse(stream, b"Generator.philox_engine_inputs()")
        return self.state.seed, generator_advance(self, words)

    def philox_state(self, increment):
        """Advance the offset by ``increment`` words, and return where a kernel finds the seed and the offset.

        The kernel uses the words from ``*offset + intragraph_offset`` on. Seed and offset are written in the order of
        the current stream of the generator's device: launch the kernel there, or behind it. 64 more calls for that
        stream write at other addresses. While a graph is captured from that stream, the offset does not advance: each
        replay of the graph writes the seed and the offset, and advances it by what the whole graph uses.

        Parameters
        ----------
        increment : int
            How many 32-bit words the kernel uses. It is rounded up to a multiple of 4.

        Returns
        -------
        tuple of three int
            The address of the seed and that of the offset, 64 bits each, in memory of the device; and how many words
            of a captured graph come before, which is 0 outside of a graph.

        Raises
        ------
        UnsupportedError
            The generator is for another device type than the built-in one.
        RuntimeError
            A graph is captured from the stream, and the generator is not registered with it.

        Notes
        -----
        The three values are those of torch's ``PhiloxCudaState``, which a captured graph needs: an address stays where
        the number that is there changes from replay to replay.
        """
        cdef uint64_t words = checked_words(increment)
        cdef CapturedState captured
        cdef l0rt_stream* stream
        cdef Places places
        cdef int at
        if self.type != lazy.device_type:
            raise UnsupportedError(f"kernels of the device type {self.type} are not l0rt's: philox_engine_inputs() "
                                   "returns the seed and the offset themselves")
        lazy.init()
        stream = current_stream(self.index)
        if captures(stream):
            captured = captured_state(self, stream)
            if captured is not None:
                return captured.place, captured.place + sizeof(uint64_t), captured.draw(words)
        key = <size_t>stream
        places = self.places.get(key)
        if places is None:
            places = Places.__new__(Places)
            places.memory = _empty(STATE_BYTES * PLACES, device=self.device)
            places = self.places.setdefault(key, places)
        seed, offset = self.state.seed, generator_advance(self, words)
        at = STATE_BYTES * places.next
        places.next = (places.next + 1) % PLACES
        place = places.memory[at:at + STATE_BYTES].fill(pattern=struct.pack("<QQ", seed, offset))
        return place.ptr, place.ptr + sizeof(uint64_t), 0

    def __reduce__(self):
        return Generator, (self.device,), (self.state.seed, self.state.offset, self.get_state())

    def __setstate__(self, saved):
        if not isinstance(saved, tuple) or len(saved) != 3:
            raise TypeError("expected the state of a pickled Generator, a tuple of three")
        self.set_state(saved[2])

    def __repr__(self):
        return f"<l0rt.Generator device={self.device} seed={self.state.seed} offset={self.state.offset}>"


@cython.final
@cython.binding(False)
cdef class XpuGenerator(Generator):
    """Generator(device=None)
--

A generator of the built-in device type, independent of the current accelerator. See `l0rt.Generator`.

Parameters
----------
device : int, str, device or None, optional
    The device for which it makes random numbers. None is the current device.

Raises
------
ValueError
    ``device`` is of another type.
"""


cdef slots _built_in, _choosing


cdef Generator made_for(device_named device):
    """A generator of this class for a device, though its type may have one of its own."""
    if device.type == lazy.device_type:
        return XpuGenerator.__new__(XpuGenerator, device)
    return Generator.__new__(Generator, device)


cdef PyObject* _make(PyTypeObject* cls, PyObject* args, PyObject* kwargs) except NULL:
    """``l0rt.Generator(...)`` is the device type's own if that gives one, else this class serves any type."""
    if cls != <PyTypeObject*>Generator:
        return _built_in.make(cls, args, kwargs)
    maker = maker_for(args, kwargs)
    if maker is None:
        return _built_in.make(<PyTypeObject*>XpuGenerator, args, kwargs)
    own = getattr(maker, "Generator", None)
    return _built_in.make(cls, args, kwargs) if own is None else call(own, args, kwargs)


get_slots(Generator, &_built_in)
_choosing.make = _make
set_slots(Generator, &_choosing)


cdef int current_index(str type) except? -2:
    """The thread's current device of a type; -1 of one whose devices are not numbered."""
    if type == lazy.device_type:
        return current_device()
    interface = maker_of(type)
    try:
        named = hasattr(interface, "current_device") and not getattr(interface, "is_host", False)
        return interface.current_device() if named else -1
    except NotImplementedError:
        return 0


_defaults = {}          # device index -> its default generator
cdef object _all_seed = None    # the seed of manual_seed_all, also for devices that were not used yet


def default_generator(int index):
    """Return the default generator of device ``index``. If no seed was set, it has a random seed of the system."""
    cdef Generator made
    found = _defaults.get(index)
    if found is None:
        made = XpuGenerator.__new__(XpuGenerator, index)
        if _all_seed is None:
            made.seed()
        else:
            made.manual_seed(_all_seed)
        found = _defaults.setdefault(index, made)   # another thread may have been first
    return found


_other_defaults = {}    # (device type, index) -> its default generator


def default_generator_of(str type, index):
    """Return the default generator of a device of another type, for a type without generators of its own."""
    found = _other_defaults.get((type, index))
    if found is None:
        made = Generator.__new__(Generator, type if index is None else f"{type}:{index}")
        made.seed()
        found = _other_defaults.setdefault((type, index), made)
    return found


def set_states(states, int count, get, set):
    """Set the states of the generators of ``count`` devices, or of the first of them: all, or with an error none."""
    if not hasattr(states, "__iter__"):
        raise TypeError(f"expected the list of get_rng_state_all(), got {type(states).__name__}")
    states = list(states)
    if len(states) > count:
        raise ValueError(f"expected a state for each of {count} devices, got {len(states)}")
    before = [get(index) for index in range(len(states))]
    try:
        for index, state in enumerate(states):
            set(state, index)
    except BaseException:
        for index, state in enumerate(before):
            set(state, index)
        raise


def manual_seed_all(seed):
    """Seed the default generators of all devices, also of devices that are not opened yet.

    Parameters
    ----------
    seed : int
        From -2**63 to 2**64 - 1.

    Raises
    ------
    ValueError
        The seed is out of range.
    """
    global _all_seed
    cdef uint64_t bits = seed_bits(seed)
    _all_seed = bits
    for generator in list(_defaults.values()):
        generator.manual_seed(bits)


def manual_seed(seed):
    """Seed the default generator of the thread's current device. It opens no driver.

    Parameters
    ----------
    seed : int
        From -2**63 to 2**64 - 1.

    Raises
    ------
    ValueError
        The seed is out of range.
    """
    cdef uint64_t bits = seed_bits(seed)
    default_generator(current_device()).manual_seed(bits)


known_as(Generator, b"l0rt.Generator")
known_as(XpuGenerator, b"l0rt.xpu.Generator")
