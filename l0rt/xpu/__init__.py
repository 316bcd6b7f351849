"""Intel GPUs: torch.xpu's names and signatures for devices, streams and events, and what only Level Zero has."""

from types import SimpleNamespace as _Namespace

from l0rt import memory as _memory
from l0rt.runtime import devices as _devices
from l0rt.runtime import event as _event
from l0rt.runtime import guard as _guard
from l0rt.runtime import naming as _naming
from l0rt.runtime import stream as _stream
from l0rt.runtime.devices import device_count
from l0rt.runtime.stream import Stream, current_raw_stream

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "can_device_access_peer",
    "current_device",
    "current_raw_stream",
    "current_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "init",
    "is_available",
    "is_initialized",
    "mem_get_info",
    "set_device",
    "set_stream",
    "stream",
    "synchronize",
]


def init():
    """Open the driver now instead of at first use."""
    _devices.lazy.init()


def is_initialized():
    """Return whether this process has opened the driver and may use it."""
    return _devices.lazy.initialized


def is_available():
    """Return whether there is at least one device. Opens no driver, never raises."""
    return device_count() > 0


def current_device():
    """Return the index of the calling thread's current device."""
    return _guard.current_device_index()


def set_device(device):
    """Make ``device`` the calling thread's current device; a negative index changes nothing."""
    index = _naming.index_in(device)
    if index >= 0:
        _guard.set_device_index(index)


class device(_guard.device_index):
    """Make a device current for the length of a with block; None or a negative index: no change."""


class _DeviceGuard:
    """Make the device ``index`` current for the length of a with block."""

    def __init__(self, index):
        self.idx = index
        self.prev_idx = -1

    def __enter__(self):
        self.prev_idx = _guard.exchange_device_index(self.idx)

    def __exit__(self, kind, value, trace):
        _guard.exchange_device_index(self.prev_idx)


class device_of(device):
    """Make the device of ``obj`` current: a Buffer, Stream, Event, or anything with ``__dlpack_device__``.

    Other objects change nothing.
    """

    def __new__(cls, obj):
        return super().__new__(cls, _naming.index_of_object(obj))


class Event(_event.Event):
    """An event, with torch.xpu.Event's positional arguments."""

    def __new__(cls, enable_timing=False, blocking=False, interprocess=False):
        return super().__new__(cls, enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)


class StreamContext:
    """Make ``stream`` and its device current for the length of a with block; None: no change."""

    def __init__(self, stream):
        if stream is not None and not isinstance(stream, Stream):
            raise TypeError(f"expected a Stream or None, got {type(stream).__name__}")
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, kind, value, trace):
        if self.stream is not None:
            self.stream.__exit__(kind, value, trace)


def stream(stream):
    """Return a context manager in which ``stream`` and its device are current; None: no change."""
    return StreamContext(stream)


def current_stream(device=None):
    """Return the calling thread's current stream on ``device`` (the current one by default)."""
    return _stream.current_stream(device)


def set_stream(stream):
    """Make ``stream`` and its device current; None changes nothing."""
    if stream is not None:
        _stream.set_stream(stream)


def synchronize(device=None):
    """Wait for all work of ``device`` (the current one by default), on all streams."""
    _stream.synchronize(device)


def get_device_name(device=None):
    """Return the name of ``device`` (the current one by default)."""
    return get_device_properties(device).name


def get_device_capability(device=None):
    """Return the properties of ``device`` (the current one by default) as a dict."""
    properties = vars(get_device_properties(device)).copy()
    for name in ("name", "uuid", "index"):
        del properties[name]
    return properties


class _XpuDeviceProperties(_Namespace):
    """What a device is; every field is an attribute."""


def get_device_properties(device=None):
    """Return the properties of ``device`` (the current one by default) under torch's names and some more.

    Sizes are in bytes, clock rates in MHz; ``is_software`` is True for the bundled CPU driver, which is not a GPU.
    """
    p = _devices.properties(_stream.index_or_current(device))
    subslices = p["slices"] * p["subslices_per_slice"]
    return _XpuDeviceProperties(
        name=p["name"],
        platform_name="Intel(R) oneAPI Unified Runtime over Level-Zero" if p["vendor_id"] == 0x8086 else p["name"],
        vendor="Intel(R) Corporation" if p["vendor_id"] == 0x8086 else f"{p['vendor_id']:#06x}",
        device_id=p["device_id"],
        driver_version=p["driver_version"],
        version="{}.{}".format(*p["api_version"]),
        max_compute_units=subslices * p["eus_per_subslice"],
        gpu_eu_count=subslices * p["eus_per_subslice"],
        gpu_subslice_count=subslices,
        max_work_group_size=p["max_work_group_size"],
        sub_group_sizes=p["sub_group_sizes"],
        memory_clock_rate=p["memory_clock_mhz"],
        memory_bus_width=p["memory_bus_width"],
        local_mem_size=p["local_mem_size"],
        last_level_cache_size=p["cache_bytes"],
        total_memory=p["total_memory"],
        max_alloc_size=p["max_alloc"],
        core_clock_rate=p["core_clock_mhz"],
        has_fp16=p["has_fp16"],
        has_fp64=p["has_fp64"],
        has_atomic64=p["has_atomic64"],
        is_integrated_gpu=bool(p["integrated"]),
        is_software=p["is_software"],
        type="gpu",
        pci=p["pci"],
        uuid=p["uuid"],
        index=p["index"],
    )


def can_device_access_peer(device=None, peer=None):
    """Return whether ``device`` reads and writes memory of ``peer`` directly (None: the current device)."""
    return _devices.can_access_peer(_stream.index_or_current(device), _stream.index_or_current(peer))


empty_cache = _memory.empty_cache


def mem_get_info(device=None):
    """Return ``(free, total)`` bytes of device memory."""
    return _memory.get_memory_info(device)
