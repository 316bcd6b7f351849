# SPDX-License-Identifier: Apache-2.0
"""Device types and what a device is called: a type and an index; how the many ways to name one are understood.

Beside the names: the interface of each registered type, and which of them is the current accelerator, one choice a
process; the guard table of each type that has one, and what the type "cpu" is, which needs nothing but the host.
"""

cimport cython
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport strcmp

from l0rt._base.arguments cimport is_whole, known_as, whole
from l0rt.runtime.streams.devices cimport device_total, pickled_index, pickled_uuid
from l0rt.runtime.streams.guard_impl cimport (
    L0RT_GUARD_IMPL_VERSION,
    int_int,
    int_int_bits,
    int_place_ptr,
    int_place_ptr_flags,
    int_ptrs_double,
    l0rt_guard_impl,
    ptr_int,
    ptr_int_int,
    ptr_ptr,
)
from l0rt.runtime.streams.types cimport l0rt_load64, l0rt_store64
from l0rt.runtime.streams.wait cimport host_clock_ns

from l0rt import config
from l0rt.errors import DeviceIndexError, DriverNotFoundError, InvalidArgumentError
from l0rt.runtime.streams.devices import lazy, properties

cdef str BUILT_IN = lazy.device_type
cdef set _types = {"cpu", BUILT_IN}
cdef int ONEAPI = 14  # DLPack's device type
cdef dict registered = {}
cdef dict _makers = {}      # device type -> what has its Stream, Event and Generator, for types without an interface
_kept = []      # replaced interfaces: another thread may be inside a call of one
cdef str _current = BUILT_IN
cdef PyObject* other = NULL


def register_type(str name):
    """Let ``device("name:0")`` name this type, and settings stand under its name."""
    check_type(name)
    if name != "cpu":
        config.add_device_type(name)
    _types.add(name)


def check_type(str name):
    """ValueError unless this can be a device type's name."""
    if not is_type(name):
        raise ValueError(f"a device type must be a name of letters, digits and _, without an index; got {name!r}")


cdef bint is_type(str name) except -1:
    return name.isascii() and name.isidentifier() and not name.startswith("_")


def accelerator_type():
    """Return the current accelerator's device type: the one that an index alone means."""
    return current_type()


cdef str current_type():
    return _current


cdef object interface_of(str type):
    """The interface of a device type; NotImplementedError names those that there are."""
    try:
        return registered[type]
    except KeyError:
        known = ", ".join(sorted(registered)) or "none"
        raise NotImplementedError(f"No interface for device {type} (registered: {known})") from None


cdef object interface_of_stream(object stream):
    """The interface of a foreign stream: of the type that the stream reports, else the current accelerator's."""
    type = getattr(stream, "device_type", None)
    if type is None:
        type = getattr(getattr(stream, "device", None), "type", None)
    if isinstance(type, str) and type in registered:
        return registered[type]
    if other == NULL or stream is None:
        raise TypeError(f"expected a Stream, got {stream.__class__.__name__}")
    return <object>other


cdef object maker_of(str type):
    """Whose Stream, Event and Generator a device type's are; None for the built-in one, and for an unknown type."""
    if type == BUILT_IN:
        return None
    found = registered.get(type)
    return found if found is not None else _makers.get(type)


def add_maker(str type, maker):
    """Let ``maker`` have the Stream, Event and Generator of a device type that has no interface."""
    _makers[type] = maker


def add_interface(str type, interface):
    """Register ``interface`` for a device type; it replaces an earlier one."""
    global other
    if type in registered and registered[type] is not interface:
        _kept.append(registered[type])
    registered[type] = interface
    if other != NULL and type == _current:
        other = <PyObject*>interface


def get_interface(str type):
    """Return the interface of a device type."""
    return interface_of(type)


def all_interfaces():
    """Return the registered (type, interface) pairs."""
    return tuple(registered.items())


def choose_accelerator(str type):
    """Make the registered device type the current accelerator, for all threads."""
    global _current, other
    interface = interface_of(type)
    _current = type
    other = NULL if type == BUILT_IN else <PyObject*>interface


def other_interface_of(str type):
    """Return the interface of a device type, None for the built-in one: its own code runs."""
    return None if type == BUILT_IN else interface_of(type)


def other_interface_of_stream(stream):
    """Return the interface of a stream of another device type; TypeError if it is not a stream."""
    found = interface_of_stream(stream) if hasattr(stream, "device_index") else None
    if found is None or registered.get(BUILT_IN) is found:
        raise TypeError(f"expected a Stream, got {stream.__class__.__name__}")
    return found


def other_interface():
    """Return the current accelerator's interface, None for the built-in one: its own code runs."""
    return None if other == NULL else <object>other


@cython.final
@cython.freelist(32)
@cython.binding(False)
cdef class device:
    """The name of a device: ``device("xpu", 1)``, ``device("xpu:1")``, or ``device(1)`` for the current accelerator.

    ``index`` is None if the name has no index.

    Raises
    ------
    RuntimeError
        The name is malformed, or its type is unknown.
    """

    def __cinit__(self, type, index=None):
        if isinstance(type, str):
            self.type, self.index = _parse(type, index)
        elif index is None and is_whole(type):
            self.type, self.index = current_type(), _checked_index(whole(type, "a device index"))
        elif index is None and (named := device_like(type)) is not None:
            self.type, self.index = _parse(named[0], named[1])
        elif index is not None and device_like(type) is not None:
            raise TypeError("device() takes an index only beside a type's name")
        else:
            raise TypeError(
                f"device() takes a name such as 'xpu:0', an index, or a name and an index; got {type!r}, {index!r}")

    def __eq__(self, other):
        if not isinstance(other, device):
            return NotImplemented
        return self.type == (<device>other).type and self.index == (<device>other).index

    def __hash__(self):
        return hash((self.type, self.index))

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self):
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        uuid = pickled_uuid(self.index) if self.type == BUILT_IN and self.index is not None else None
        return (device, (self.type, self.index)) if uuid is None else (_unpickled, (self.index, uuid))


def _unpickled(int index, bytes uuid):
    cdef int here
    what = f"the pickled device {BUILT_IN}:{index} with UUID {uuid.hex()}"
    try:
        here = pickled_index(index, uuid)
    except DriverNotFoundError as e:
        raise DriverNotFoundError(f"{e}. Expected {what}", e.code) from e
    if here < 0:
        raise InvalidArgumentError(
            f"{what} is not in this process, nor is one with its index: expected it among the {device_total()} that "
            "there are (ZE_AFFINITY_MASK may hide it)")
    return device(BUILT_IN, here)


cdef object _checked_index(index):
    if index < 0:
        raise DeviceIndexError(f"Device index must not be negative, got {index}")
    if index > 0x7FFF:
        raise DeviceIndexError(f"Device index {index} is out of range: it must be below 32768")
    return int(index)


cdef tuple _parse(str text, index):
    name, colon, digits = text.partition(":")
    if name not in _types and is_type(name):
        raise RuntimeError(
            f"Expected one of {', '.join(sorted(_types))} device type at start of device string: {text}")
    if not is_type(name) or (colon and not (
            digits.isascii() and digits.isdigit() and (digits == "0" or digits[0] != "0"))):
        raise RuntimeError(f"Invalid device string: '{text}'")
    if colon and index is not None:
        raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {text}")
    if colon:
        return name, _checked_index(int(digits))
    if index is None:
        return name, None
    return name, _checked_index(whole(index, "a device index"))


cdef tuple device_like(what):
    """The type and index of a device, this class's or another library's (torch.device); None for anything else."""
    if isinstance(what, device):
        return (<device>what).type, (<device>what).index
    name = getattr(what, "type", None)
    if not isinstance(name, str) or not hasattr(what, "index"):
        return None
    index = what.index
    if index is not None and not is_whole(index):
        return None
    return str(name), None if index is None else whole(index, "a device index")


cdef tuple named_by(what):
    """The type and index that a name, a device, or the device of a Stream, an Event, a Buffer or a tensor is."""
    if isinstance(what, str):
        what = device(what)
    named = device_like(what)
    return named if named is not None else device_like(getattr(what, "device", None))


cdef str type_named(what):
    """The device type that ``what`` names; None where it is an index, nothing, or no device."""
    if what is None or is_whole(what):
        return None
    named = named_by(what)
    return None if named is None else named[0]


def named_type(what):
    """Return the device type that ``what`` names; None where it is an index, nothing, or no device."""
    return type_named(what)


cdef int only_built_in(what, str which) except -1:
    """NotImplementedError, for ``which``, unless ``what`` names the built-in type, or no type while that is current."""
    type = type_named(what)
    if type is None:
        type = current_type()
    if type != BUILT_IN:
        raise NotImplementedError(f"device type {type} has no {which}")
    return 0


cdef object maker_for(PyObject* args, PyObject* kwargs):
    """Whose class is meant by a call with a ``device`` in front: of the type that it names, else of the current one.

    None: the built-in one's, which also says what is wrong with a device that is none.
    """
    what = None
    if PyTuple_GET_SIZE(<object>args) != 0:
        what = (<tuple>args)[0]
    elif kwargs != NULL:
        what = (<dict>kwargs).get("device")
    type = type_named(what)
    return maker_of(current_type() if type is None else type)


cdef int index_of(object what, int otherwise, str type) except? -1:
    """Return the index that ``what`` names on device type ``type``, ``otherwise`` where it names none.

    A number is returned as it is, in range or not: the callee checks, and a negative one has its own meaning there.
    """
    cdef int overflow
    cdef long long number
    if what is None:
        return otherwise
    if PyLong_CheckExact(what):
        index = what
    elif is_whole(what):
        index = whole(what, "a device index")
    else:
        named = named_by(what)
        if named is None:
            raise TypeError(f"expected a device, a str, an int or None, got {what!r}")
        if named[0] != type:
            role = "the current accelerator" if type == current_type() else "the device type"
            raise ValueError(f"{named[0]} doesn't match {role} {type}.")
        if named[1] is None:
            return otherwise
        index = _checked_index(named[1])
    number = PyLong_AsLongLongAndOverflow(index, &overflow)
    if overflow or not NO_INDEX < number <= 0x7FFFFFFF:
        raise DeviceIndexError(f"The device index is out of range: {what}")
    return <int>number


cdef int settable_index(what, str type) except? -1:
    """The index that ``what`` names where a device must be named; negative: change nothing."""
    cdef int index = NO_INDEX
    cdef bint numbered = is_whole(what)
    if numbered or isinstance(what, str) or device_like(what) is not None:
        index = index_of(what, NO_INDEX, type)
    if index == NO_INDEX and not numbered:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{what}")
    return index


def index_to_set(what):
    """Return the index that ``what`` names; ValueError if it names none, and a negative one is no change."""
    return settable_index(what, lazy.device_type)


cdef object other_index(interface, int index):
    """``index`` if it exists on the other accelerator, as far as that tells how many devices it has."""
    try:
        count = interface.device_count()
    except NotImplementedError:
        return index
    if not 0 <= index < count:
        out_of_range(count, index)
    return index


cdef int out_of_range(count, int index) except -1:
    raise DeviceIndexError(f"The device index is out of range. It must be in [0, {count}), but got {index}.")


def existing_index(interface, int index):
    """Return ``index`` if it exists on another accelerator, as far as that tells how many devices it has."""
    return other_index(interface, index)


def index_in(what, str type=BUILT_IN):
    """Return the index of a device of ``type``, the built-in one by default, that ``what`` names, -1: none."""
    if what is not None and not is_whole(what):
        named = named_by(what)
        if named is not None and named[0] != type:
            raise ValueError(f"Expected a {type} device, but got: {what}")
    return index_of(what, -1, type)


cpdef object existing_index_in(what, interface, str type=BUILT_IN):
    """Return the index of the existing device of ``type`` that ``what`` names, None if it names none."""
    cdef int index = index_of(what, NO_INDEX, type)
    return None if index == NO_INDEX else other_index(interface, index)


def index_of_object(obj):
    """Return the index of the device of ``obj``, -1 if it has none or is not on a device of this type."""
    named = device_like(getattr(obj, "device", None))
    if named is not None:
        return named[1] if named[0] == lazy.device_type and named[1] is not None else -1
    if hasattr(obj, "__dlpack_device__"):
        kind, index = obj.__dlpack_device__()
        return index if kind == ONEAPI else -1
    return -1


def supported_dtypes(int index):
    """Return the names of the element types that device ``index`` computes with."""
    known = properties(index)
    names = {"bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "complex64"}
    if known["has_fp16"]:
        names |= {"float16", "bfloat16"}
    if known["has_fp64"]:
        names |= {"float64", "complex128"}
    return names


# --- Guard tables.

# The bits of a device's capability, lowest first.
DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16",
          "float32", "float64", "complex64", "complex128")


cdef struct Known:
    const l0rt_guard_impl* impl
    Known* next

cdef Known* _known = NULL       # newest first; no table is ever removed, since a thread may be inside a call of it


cdef int add_guard_impl(const l0rt_guard_impl* impl) except -1:
    cdef Known* made = <Known*>malloc(sizeof(Known))
    if made == NULL:
        raise MemoryError()
    made.impl = impl
    made.next = _known
    l0rt_store64(<uint64_t*>&_known, <uint64_t>made)    # complete before a walker without the GIL sees it
    return 0


cdef const l0rt_guard_impl* guard_impl_of(const char* type) noexcept nogil:
    cdef Known* known = <Known*>l0rt_load64(<uint64_t*>&_known)
    while known != NULL:
        if strcmp(known.impl.type, type) == 0:
            return known.impl
        known = known.next
    return NULL


cdef int publish(l0rt_guard_impl* impl, const char* type) except -1:
    impl.version = L0RT_GUARD_IMPL_VERSION
    impl.size = sizeof(l0rt_guard_impl)
    impl.type = type
    return add_guard_impl(impl)


cdef int needed(const void* what, const char* name) except -1 nogil:
    """Refuse NULL for what a table's function cannot do without."""
    if what == NULL:
        with gil:
            raise ValueError(f"{name.decode()} is needed, got NULL")
    return 0


# --- The host's own table, "cpu": one device, one stream, and events that are a moment of its clock. A call returns
# when its work is done, so nothing here waits.

cdef l0rt_guard_impl cpu_impl
cdef char _cpu_stream           # its address is what the host's stream is
cdef uint64_t _cpu_dtypes = (1 << len(DTYPES)) - 1


cdef int cpu_existing(int device) except -1 nogil:
    """The host's one device; -1 names it too."""
    if device > 0:
        with gil:
            out_of_range(1, device)
    return 0


cdef int cpu_device_count() noexcept nogil:
    return 1


cdef int cpu_get_device() noexcept nogil:
    return 0


cdef int cpu_no_change(int device) noexcept nogil:
    return 0


cdef void* cpu_get_stream(int device) except NULL nogil:
    cpu_existing(device)
    return &_cpu_stream


cdef void* cpu_new_stream(int device, int priority) except NULL nogil:
    return cpu_get_stream(device)


cdef void* cpu_exchange_stream(void* stream) noexcept nogil:
    return &_cpu_stream


cdef int cpu_of_stream(void* stream) noexcept nogil:
    """Its device, whether it is captured, and whether waiting for it has failed."""
    return 0


cdef void* cpu_native_handle(void* stream) except NULL nogil:
    with gil:
        raise NotImplementedError("the host's stream has no native handle")


cdef int cpu_is_complete(void* what) noexcept nogil:
    return 1


cdef int cpu_priority_of(void* stream, int* priority) except -1 nogil:
    needed(priority, b"a place for the priority")
    priority[0] = 0
    return 0


cdef int cpu_record(void** event, void* stream) except -1 nogil:
    needed(event, b"a place for the event")
    if event[0] == NULL:
        event[0] = malloc(sizeof(uint64_t))
        if event[0] == NULL:
            with gil:
                raise MemoryError()
    (<uint64_t*>event[0])[0] = host_clock_ns()
    return 0


cdef int cpu_record_event(void** event, void* stream, uint32_t flags) except -1 nogil:
    return cpu_record(event, stream)


cdef int cpu_two_are_fine(void* first, void* second) noexcept nogil:
    return 0


cdef void cpu_destroy_event(void* event) noexcept nogil:
    free(event)


cdef int cpu_elapsed_time(void* start, void* end, double* milliseconds) except -1 nogil:
    if start == NULL or end == NULL:
        with gil:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
    needed(milliseconds, b"a place for the time")
    milliseconds[0] = (<double>(<uint64_t*>end)[0] - <double>(<uint64_t*>start)[0]) * 1e-6
    return 0


cdef int cpu_capability(int device, uint64_t* dtypes) except -1 nogil:
    cpu_existing(device)
    needed(dtypes, b"a place for the types")
    dtypes[0] = _cpu_dtypes
    return 0


cpu_impl.device_count = cpu_device_count
cpu_impl.get_device = cpu_get_device
cpu_impl.exchange_device = <int_int>cpu_existing
cpu_impl.set_device = <int_int>cpu_existing
cpu_impl.unchecked_set_device = cpu_no_change
cpu_impl.get_stream = <ptr_int>cpu_get_stream
cpu_impl.get_default_stream = <ptr_int>cpu_get_stream
cpu_impl.get_stream_from_pool = <ptr_int_int>cpu_new_stream
cpu_impl.exchange_stream = cpu_exchange_stream
cpu_impl.stream_device = cpu_of_stream
cpu_impl.stream_native_handle = <ptr_ptr>cpu_native_handle
cpu_impl.query_stream = cpu_is_complete
cpu_impl.synchronize_stream = cpu_of_stream
cpu_impl.synchronize_device = <int_int>cpu_existing
cpu_impl.record = <int_place_ptr>cpu_record
cpu_impl.block = cpu_two_are_fine
cpu_impl.query_event = cpu_is_complete
cpu_impl.synchronize_event = cpu_of_stream
cpu_impl.destroy_event = cpu_destroy_event
cpu_impl.get_new_stream = <ptr_int_int>cpu_new_stream
cpu_impl.stream_priority = <int (*)(void*, int*) noexcept nogil>cpu_priority_of
cpu_impl.is_stream_capturing = cpu_of_stream
cpu_impl.record_event = <int_place_ptr_flags>cpu_record_event
cpu_impl.elapsed_time = <int_ptrs_double>cpu_elapsed_time
cpu_impl.record_data_ptr_on_stream = cpu_two_are_fine
cpu_impl.device_capability = <int_int_bits>cpu_capability
publish(&cpu_impl, b"cpu")

known_as(device, b"l0rt.device")
