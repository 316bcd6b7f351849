# SPDX-License-Identifier: Apache-2.0
"""The registry of device types, where a device type registers and software that works on any device asks. Neither
touches a driver."""

import re as _re

from l0rt import memory as _memory
from l0rt import xpu as _xpu
from l0rt._base.integers import whole_number as _whole
from l0rt.buffers.foreign import add_allocator as _add_allocator
from l0rt.buffers.foreign import allocator_of as _allocator_of
from l0rt.errors import DeviceIndexError as _DeviceIndexError
from l0rt.graphs import block as _graphs
from l0rt.runtime.current import generator as _generator
from l0rt.runtime.current import guard_table as _guard_table
from l0rt.runtime.current import stream as _stream
from l0rt.runtime.current.guard import DeviceBlock as _DeviceBlock
from l0rt.runtime.current.thread import Guard as _Guard
from l0rt.runtime.streams import naming as _naming

__all__ = [
    "CpuInterface",
    "DeviceGuard",
    "DeviceInterface",
    "StreamMethodContainer",
    "XpuInterface",
    "get_allocator",
    "get_interface_for_device",
    "get_registered_device_interfaces",
    "register_allocator",
    "register_guard_impl",
    "register_interface_for_device",
    "register_stream_method",
    "set_accelerator",
    "stream_methods",
]


def _missing(what):
    def function(*args, **kwargs):
        raise NotImplementedError(f"this device type's interface has no {what}")

    function.__name__ = function.__qualname__ = what
    function.is_missing = True
    return function


def _without(what):
    def __new__(cls, *args, **kwargs):
        raise NotImplementedError(f"this device type's interface has no {what}")

    return type(what, (), {"__new__": __new__, "__doc__": f"What a device type gives as its {what}."})


class DeviceInterface:
    """The interface of a device type. A subclass defines plain functions and classes as class attributes.

    It is used as a class and never instantiated. `l0rt.accelerator` resolves the names of devices, so an argument
    ``device`` is the index of an existing device, or None for the current device. A function that the subclass does not
    define raises NotImplementedError when it is called.
    """

    device = _without("device")
    Event = _without("Event")
    Stream = _without("Stream")
    Generator = None  # `l0rt.Generator` serves any device type
    MemPool = use_mem_pool = None  # a class and what enters an object of it; None: no private memory pools
    Graph = graph = graph_pool_handle = None  # as `l0rt.accelerator` has them; None: no graphs

    class Worker:
        """The current device and the properties for a process that must not open the driver."""

        set_device = _missing("Worker.set_device")
        current_device = _missing("Worker.current_device")
        get_device_properties = _missing("Worker.get_device_properties")

    # torch's names
    current_device = _missing("current_device")
    set_device = _missing("set_device")
    exchange_device = _missing("exchange_device")
    maybe_exchange_device = _missing("maybe_exchange_device")
    device_count = _missing("device_count")
    stream = _missing("stream")
    current_stream = _missing("current_stream")
    set_stream = _missing("set_stream")
    _set_stream_by_id = _missing("_set_stream_by_id")
    get_raw_stream = _missing("get_raw_stream")
    synchronize = _missing("synchronize")
    get_compute_capability = _missing("get_compute_capability")
    is_bf16_supported = _missing("is_bf16_supported")

    @classmethod
    def is_available(cls):
        """Return whether there is at least one device."""
        return cls.device_count() > 0

    @classmethod
    def get_device_properties(cls, device=None):
        """Return the properties of ``device``."""
        return cls.Worker.get_device_properties(device)

    @classmethod
    def is_dtype_supported(cls, dtype, including_emulation=False):
        """Return whether ``dtype``, a NumPy-style name or an object whose text ends in one, is computed with."""
        name = str(dtype).rpartition(".")[2]
        return name != "bfloat16" or cls.is_bf16_supported(including_emulation)

    @classmethod
    def memory_allocated(cls, device=None):
        """Return the bytes that allocations on ``device`` hold."""
        return cls.memory_stats(device).get("allocated_bytes.all.current", 0)

    @staticmethod
    def is_triton_capable(device=None):
        """Return whether Triton kernels run here: not that l0rt knows."""
        return False

    @classmethod
    def raise_if_triton_unavailable(cls, device=None):
        """Raise RuntimeError unless `is_triton_capable`."""
        if not cls.is_triton_capable(device):
            raise RuntimeError("This device is not capable of supporting Triton")

    # torch 2.15's names
    @staticmethod
    def is_gpu():
        """Return whether the device type is a GPU's."""
        return True

    @staticmethod
    def exposes_streams():
        """Return whether the device type has streams."""
        return True

    @classmethod
    def get_multi_processor_count(cls, device=None):
        """Return how many independent processors ``device`` has."""
        return cls.get_device_properties(device).gpu_subslice_count

    @staticmethod
    def get_cpp_device_options(aot_mode, compile_only):
        """Return the compiler's options for this device type: none."""
        return {}

    @staticmethod
    def get_cache_system_info():
        """Return what cached binaries depend on besides the device: nothing."""
        return {}


# What torch.accelerator's other functions need.
for _name in """
init default_stream default_generator can_device_access_peer empty_cache empty_host_cache memory_stats mem_get_info
reset_peak_memory_stats reset_accumulated_memory_stats memory_snapshot attach_oom_observer set_memory_limit
get_memory_limit set_per_process_memory_fraction get_per_process_memory_fraction supported_dtypes
record_data_ptr_on_stream copy_memory fill_memory
""".split():
    setattr(DeviceInterface, _name, staticmethod(_missing(_name)))


def _type_of(device):
    """The device type of a name such as ``"demo"`` or ``"demo:1"``, or of a device object."""
    name = device if isinstance(device, str) else getattr(device, "type", None)
    if not isinstance(name, str):
        raise TypeError(f"expected a str or an object with a type, got {device!r}")
    type, colon, index = name.partition(":")
    if colon and not (index.isascii() and index.isdigit()):
        raise NotImplementedError(f"No interface for device {device}: expected a type, or a type:index")
    return type


_of_device = {}  # "type:index" -> the interface that was registered for this device alone


def register_interface_for_device(device, device_interface):
    """Register the interface of a device type, or of one device, which `get_interface_for_device` returns for its name.

    Parameters
    ----------
    device : str or device
        The type's name, of letters, digits and ``_``, or a device of it; or one device's name, such as ``demo:1``.
    device_interface : type
        A `DeviceInterface`, or any class with its names.

    Raises
    ------
    TypeError, ValueError
        ``device_interface`` is no class or lacks a name of `DeviceInterface`; or the type's name is malformed.

    Notes
    -----
    The contract is that of ``torch._dynamo.device_interface.register_interface_for_device``.
    """
    if not isinstance(device_interface, type):
        raise TypeError(f"an interface must be a class, got an object of {type(device_interface).__name__}")
    if missing := next((n for n in dir(DeviceInterface) if n[0] != "_" and not hasattr(device_interface, n)), None):
        raise TypeError(f"an interface must be a DeviceInterface or have its names, {missing} is missing")
    single = isinstance(device, str) and _re.fullmatch("(.+):(?:0|[1-9][0-9]{0,4})", device)
    name = single[1] if single else device if isinstance(device, str) else _type_of(device)
    _naming.register_type(name)
    if single:
        _of_device[device] = device_interface
    else:
        _naming.add_interface(name, device_interface)


def get_interface_for_device(device):
    """Return the interface class of ``device``.

    Parameters
    ----------
    device : str or device
        The type, or a device of it. For the name of one device, what was registered for that name comes first.

    Returns
    -------
    type

    Raises
    ------
    NotImplementedError
        No such type is registered. The message lists the registered types.
    """
    return (isinstance(device, str) and _of_device.get(device)) or _naming.get_interface(_type_of(device))


def get_registered_device_interfaces():
    """Return the pairs of device type and interface class, and then those of single devices.

    Returns
    -------
    tuple of tuple
    """
    return (*_naming.all_interfaces(), *_of_device.items())


def set_accelerator(device, /):
    """Make a registered device type the current accelerator of the whole process, on which `l0rt.accelerator` works.

    Streams, events and with blocks of the previous accelerator stay valid. A with block restores what it has changed
    there.

    Parameters
    ----------
    device : str or device
        The registered type, or a device of it.

    Raises
    ------
    NotImplementedError
        No such type is registered.
    """
    _naming.choose_accelerator(_type_of(device))


def register_allocator(type, index, allocator):
    """Register the allocator from which `l0rt.empty` takes memory of a device type.

    It has ``malloc(nbytes, stream)``, which returns an address, and ``free(ptr)``, and may have ``record_stream(ptr,
    stream)``, ``record_use`` and ``host_accessible``; a stream is its ``stream_id``.
    `l0rt.runtime.alloc.allocator.Allocator` is one. The built-in type has its own
    (`l0rt.memory.change_current_allocator` puts functions in its place).

    Parameters
    ----------
    type : str or device
        The device type.
    index : int or None
        The index of the device. None is every device that has no allocator of its own.
    allocator : object
        It has ``malloc(nbytes, stream)`` and ``free(ptr)``.
    """
    name = _known(type)
    if name == "xpu":
        raise ValueError("xpu has its own allocator: see l0rt.memory.change_current_allocator")
    _add_allocator(name, None if index is None else _index_of(index), allocator)


def get_allocator(type, index=None):
    """Return the allocator of a device.

    Parameters
    ----------
    type : str or device
        The device type.
    index : int or None, optional
        The index. None is the current device.

    Returns
    -------
    object

    Raises
    ------
    NotImplementedError
        No allocator was registered.
    """
    name = _known(type)
    if name == "xpu":
        return _XpuAllocator(_naming.existing_index_in(index, _xpu))
    if index is None and name in dict(_naming.all_interfaces()):
        index = _naming.get_interface(name).current_device()
    return _allocator_of(name, None if index is None else _index_of(index))


def _known(type):
    """The device type that a name or a device object says, if there is such a type."""
    name = type if isinstance(type, str) else _type_of(type)
    _naming.check_type(name)
    if name != "cpu":
        _naming.get_interface(name)
    return name


def _index_of(index):
    number = _whole(index, "a device index")
    if number < 0:
        raise _DeviceIndexError(f"a device index must not be negative, got {number}")
    return number


class _XpuAllocator:
    """The built-in allocator of one device, as the registry's others are used."""

    def __init__(self, index):
        self.index = index

    def malloc(self, nbytes, stream=None):
        """Return the address of ``nbytes`` bytes in the order of a stream, a Stream or its number."""
        if stream is not None and not isinstance(stream, _xpu.Stream):
            index = _stream.index_or_current(self.index)
            stream = _xpu.Stream(stream_id=stream, device_index=index, device_type="xpu")
        return _memory.caching_allocator_alloc(nbytes, self.index, stream)

    def free(self, ptr):
        """Free what `malloc` returned."""
        _memory.caching_allocator_delete(ptr)

    def stats(self):
        """Return the device's statistics, under torch's names."""
        return _memory.memory_stats(self.index)

    def empty_cache(self):
        """Give cached memory back."""
        _memory.empty_cache(_stream.index_or_current(self.index))


class DeviceGuard(_Guard):
    """Make a device of ``device_interface`` current inside a with block.

    Blocks nest, and one object can be used for any number of blocks, on any thread.

    Parameters
    ----------
    device_interface : type
        A `DeviceInterface`.
    index : int or None
        The index. None or a negative index changes nothing.
    """

    _make = _DeviceBlock

    def __init__(self, device_interface, index):
        if not hasattr(device_interface, "exchange_device"):
            raise TypeError(f"expected a DeviceInterface, got {device_interface!r}")
        self.device_interface = device_interface
        self.idx = None if index is None else _whole(index, "an index")

    def _begin(self, block):
        if self.idx is not None and self.idx >= 0:
            block.set_index(None, self.device_interface, self.idx)


class StreamMethodContainer:
    """The stream methods of the device types that registered only these. See `register_stream_method`."""

    KEYS = ("current_stream", "create_stream_context", "set_stream", "set_stream_by_id")

    def __init__(self):
        self._methods = {}

    def add(self, device_name, methods):
        """Take the methods of a device type; ValueError for a missing or an unknown key."""
        if not hasattr(methods, "keys"):
            raise TypeError(f"stream methods of {device_name} must be a dict, got {type(methods).__name__}")
        methods = dict(methods)
        missing = [key for key in self.KEYS if key not in methods]
        unknown = sorted(str(key) for key in methods if key not in self.KEYS)
        if missing or unknown:
            raise ValueError(
                f"stream methods of {device_name}: {', '.join(missing) or 'none'} missing, "
                f"{', '.join(unknown) or 'none'} unknown; there are {', '.join(self.KEYS)}"
            )
        if wrong := [key for key in self.KEYS if not callable(methods[key])]:
            raise TypeError(f"stream method {wrong[0]} of {device_name} is not callable")
        self._methods[device_name] = methods

    def __getitem__(self, device_name):
        return self._methods[device_name]

    def __contains__(self, device_name):
        return device_name in self._methods

    def __iter__(self):
        return iter(self._methods)

    def __len__(self):
        return len(self._methods)


stream_methods = StreamMethodContainer()


def register_stream_method(device_name, methods):
    """Register a device type that has only stream methods, for use through `l0rt.accelerator`.

    ``methods``: ``current_stream(device)``, ``create_stream_context(stream)`` (a context manager),
    ``set_stream(stream)`` and ``set_stream_by_id(stream_id=, device_index=, device_type=)``.

    Parameters
    ----------
    device_name : str
        The type's name.
    methods : dict of str to callable
        The four methods.

    Raises
    ------
    ValueError
        A method is missing, or its name is unknown.
    """
    name = device_name if isinstance(device_name, str) else _type_of(device_name)
    _naming.check_type(name)
    stream_methods.add(name, methods)
    register_interface_for_device(name, _interface_of_methods(name, **stream_methods[name]))


def _interface_of_methods(name, current_stream, create_stream_context, set_stream, set_stream_by_id):
    def by_id(device=None, priority=0, *, stream_id=None, device_index=None, device_type=name):
        """Find a stream by its number: make it current for as long as it takes to ask for it."""
        if stream_id is None:
            raise NotImplementedError(f"{name} has registered no function that makes a stream")
        index = device_index if device is None else device
        before = current_stream(None)
        set_stream_by_id(stream_id=stream_id, device_index=index, device_type=name)
        try:
            return current_stream(index)
        finally:
            set_stream(before)

    return type(
        f"{name.capitalize()}StreamInterface",
        (DeviceInterface,),
        {
            "__doc__": f"What {name} registered: its stream methods.",
            "Stream": staticmethod(by_id),
            "current_stream": staticmethod(current_stream),
            "stream": staticmethod(create_stream_context),
            "set_stream": staticmethod(set_stream),
            "_set_stream_by_id": staticmethod(set_stream_by_id),
        },
    )


def register_guard_impl(table, base=DeviceInterface):
    """Register the device type that a guard table (include/l0rt/guard_impl.h) names; return its interface.

    Devices, streams and events use the functions of the table.

    Parameters
    ----------
    table : capsule or int
        The ``l0rt_guard_impl``, or its address. It lives as long as the process.
    base : type, optional
        The `DeviceInterface` with the functions that the table lacks.

    Returns
    -------
    type
        The `DeviceInterface`.

    Raises
    ------
    ValueError
        The version or the size of the table is wrong, or a required function is missing.
    """
    if hasattr(table, "__index__") and (table := _whole(table, "the address of a guard table")) < 4096:
        raise ValueError(f"a guard table cannot be at address {table}")
    functions = _guard_table.Table(table)
    _naming.check_type(functions.type)
    register_interface_for_device(functions.type, interface := _interface_of_table(functions, base))
    functions.publish()
    return interface


def _interface_of_table(functions, base=DeviceInterface):
    """The interface over a guard table. Three names that it has of its own need not be used: ``base`` may have them."""
    members = functions.members() | {
        "__doc__": f"What {functions.type} brought: a guard table.",
        "device": classmethod(lambda cls, device=None: DeviceGuard(cls, _naming.index_in(device, functions.type))),
        "stream": staticmethod(lambda stream: stream),
    }
    own = ("device", "get_raw_stream", "supported_dtypes")
    members = {k: v for k, v in members.items() if k not in own or getattr(base, k) is getattr(DeviceInterface, k)}
    return type(f"{functions.type.capitalize()}Interface", (base,), members)


class XpuInterface(DeviceInterface):
    """The built-in device type: `l0rt.xpu`."""

    device, Event, Stream = _xpu.device, _xpu.Event, _xpu.Stream
    MemPool, use_mem_pool = _memory.MemPool, _memory.use_mem_pool
    Graph, graph, graph_pool_handle = _graphs.Graph, _graphs.graph, staticmethod(_graphs.graph_pool_handle)

    class Worker:
        """Cached facts: filled in the parent, they serve a forked child, which must not open the driver."""

        _device = None
        _properties = []

        @staticmethod
        def set_device(device):
            """Choose the device that the worker works for; the driver's current device stays."""
            XpuInterface.Worker._device = _naming.existing_index(_xpu, _naming.index_to_set(device))

        @staticmethod
        def current_device():
            """Return what `set_device` chose; without it, the thread's current device, 0 if the driver is not open."""
            index = XpuInterface.Worker._device
            if index is not None:
                return index
            return _xpu.current_device() if _xpu.is_initialized() else 0

        @staticmethod
        def get_device_properties(device=None):
            """Return the properties of ``device``, of all devices asked for once in the life of the process."""
            index = _naming.existing_index_in(device, _xpu)
            properties = XpuInterface.Worker._properties
            if not properties:
                properties[:] = [_xpu.get_device_properties(i) for i in range(_xpu.device_count())]
            return properties[XpuInterface.Worker.current_device() if index is None else index]

    init = _xpu.init
    current_device = _xpu.current_device
    set_device = _xpu.set_device
    exchange_device = _xpu._exchange_device
    maybe_exchange_device = _xpu._maybe_exchange_device
    device_count = _xpu.device_count
    is_available = _xpu.is_available
    stream = _xpu.stream
    current_stream = _xpu.current_stream
    default_stream = _stream.default_stream
    set_stream = _xpu.set_stream
    _set_stream_by_id = _xpu._set_stream_by_id
    get_raw_stream = _xpu.current_raw_stream
    synchronize = _xpu.synchronize
    get_device_properties = _xpu.get_device_properties
    get_compute_capability = _xpu.get_device_capability
    is_bf16_supported = _xpu.is_bf16_supported
    memory_allocated = _xpu.memory_allocated
    memory_stats = _xpu.memory_stats
    mem_get_info = _xpu.mem_get_info
    empty_cache = _xpu.empty_cache
    empty_host_cache = _memory.empty_host_cache
    reset_peak_memory_stats = _xpu.reset_peak_memory_stats
    reset_accumulated_memory_stats = _xpu.reset_accumulated_memory_stats
    memory_snapshot = _xpu.memory_snapshot
    attach_oom_observer = _memory.attach_oom_observer
    set_memory_limit = _memory.set_memory_limit
    get_memory_limit = _memory.get_memory_limit
    set_per_process_memory_fraction = _xpu.set_per_process_memory_fraction
    get_per_process_memory_fraction = _xpu.get_per_process_memory_fraction
    can_device_access_peer = _xpu.can_device_access_peer
    supported_dtypes = _xpu.facts.supported_dtypes

    @staticmethod
    def default_generator(device=None):
        """Return the default generator of ``device``."""
        return _generator.default_generator(_stream.index_or_current(device))

    @staticmethod
    def is_dtype_supported(dtype, including_emulation=False):
        """Return whether ``dtype``, a NumPy-style name or an object whose text ends in one, is computed with."""
        name = str(dtype).rpartition(".")[2]
        if name == "bfloat16":
            return _xpu.is_bf16_supported(including_emulation)
        return name in XpuInterface.supported_dtypes()


class CpuInterface(_interface_of_table(_guard_table.host)):
    """The interface of the host: one device, and one stream, whose work is complete when a call returns."""

    is_host = True
    is_gpu = staticmethod(lambda: False)
    init = staticmethod(lambda: None)
    _set_stream_by_id = staticmethod(lambda stream_id=None, device_index=None, device_type=None: None)


register_interface_for_device("xpu", XpuInterface)
register_interface_for_device("cpu", CpuInterface)


def __dir__():
    return __all__
