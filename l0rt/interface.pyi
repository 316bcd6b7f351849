# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from l0rt.runtime.current.thread import Guard
from l0rt.runtime.streams.naming import device as _device

class DeviceInterface:
    device: ClassVar[Any]
    Event: ClassVar[Any]
    Stream: ClassVar[Any]
    MemPool: ClassVar[Any]
    use_mem_pool: ClassVar[Any]
    Graph: ClassVar[Any]
    graph: ClassVar[Any]
    graph_pool_handle: ClassVar[Any]
    class Worker:
        set_device: ClassVar[Callable[..., Any]]
        current_device: ClassVar[Callable[..., Any]]
        get_device_properties: ClassVar[Callable[..., Any]]

    current_device: ClassVar[Callable[..., Any]]
    set_device: ClassVar[Callable[..., Any]]
    exchange_device: ClassVar[Callable[..., Any]]
    maybe_exchange_device: ClassVar[Callable[..., Any]]
    device_count: ClassVar[Callable[..., Any]]
    stream: ClassVar[Callable[..., Any]]
    current_stream: ClassVar[Callable[..., Any]]
    set_stream: ClassVar[Callable[..., Any]]
    _set_stream_by_id: ClassVar[Callable[..., Any]]
    get_raw_stream: ClassVar[Callable[..., Any]]
    synchronize: ClassVar[Callable[..., Any]]
    get_compute_capability: ClassVar[Callable[..., Any]]
    is_bf16_supported: ClassVar[Callable[..., Any]]
    init: ClassVar[Callable[..., Any]]
    default_stream: ClassVar[Callable[..., Any]]
    default_generator: ClassVar[Callable[..., Any]]
    can_device_access_peer: ClassVar[Callable[..., Any]]
    empty_cache: ClassVar[Callable[..., Any]]
    empty_host_cache: ClassVar[Callable[..., Any]]
    memory_stats: ClassVar[Callable[..., Any]]
    mem_get_info: ClassVar[Callable[..., Any]]
    reset_peak_memory_stats: ClassVar[Callable[..., Any]]
    reset_accumulated_memory_stats: ClassVar[Callable[..., Any]]
    memory_snapshot: ClassVar[Callable[..., Any]]
    attach_oom_observer: ClassVar[Callable[..., Any]]
    set_memory_limit: ClassVar[Callable[..., Any]]
    get_memory_limit: ClassVar[Callable[..., Any]]
    set_per_process_memory_fraction: ClassVar[Callable[..., Any]]
    get_per_process_memory_fraction: ClassVar[Callable[..., Any]]
    Generator: ClassVar[Any]
    copy_memory: ClassVar[Callable[..., Any]]
    fill_memory: ClassVar[Callable[..., Any]]
    supported_dtypes: ClassVar[Callable[..., Any]]
    record_data_ptr_on_stream: ClassVar[Callable[..., Any]]
    is_available: ClassVar[Callable[..., bool]]
    get_device_properties: ClassVar[Callable[..., Any]]
    is_dtype_supported: ClassVar[Callable[..., bool]]
    memory_allocated: ClassVar[Callable[..., int]]
    is_triton_capable: ClassVar[Callable[..., bool]]
    raise_if_triton_unavailable: ClassVar[Callable[..., None]]
    is_gpu: ClassVar[Callable[..., bool]]
    exposes_streams: ClassVar[Callable[..., bool]]
    get_multi_processor_count: ClassVar[Callable[..., int]]
    get_cpp_device_options: ClassVar[Callable[..., dict[str, Any]]]
    get_cache_system_info: ClassVar[Callable[..., dict[str, Any]]]

class XpuInterface(DeviceInterface): ...
class CpuInterface(DeviceInterface): ...

def register_interface_for_device(device: str | _device, device_interface: type[Any]) -> None: ...
def get_interface_for_device(device: str | _device) -> type[Any]: ...
def get_registered_device_interfaces() -> tuple[tuple[str, type[Any]], ...]: ...
def set_accelerator(device: str | _device, /) -> None: ...

def register_allocator(type: str | _device, index: int | None, allocator: Any) -> None: ...
def get_allocator(type: str | _device, index: int | None = None) -> Any: ...

class DeviceGuard(Guard):
    device_interface: type[Any]
    idx: int | None
    def __init__(self, device_interface: type[Any], index: int | None) -> None: ...

class StreamMethodContainer:
    KEYS: ClassVar[tuple[str, ...]]
    def __init__(self) -> None: ...
    def add(self, device_name: str, methods: Mapping[str, Callable[..., Any]]) -> None: ...
    def __getitem__(self, device_name: str) -> dict[str, Callable[..., Any]]: ...
    def __contains__(self, device_name: str) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...

stream_methods: StreamMethodContainer

def register_stream_method(device_name: str, methods: Mapping[str, Callable[..., Any]]) -> None: ...
def register_guard_impl(table: Any, base: type[DeviceInterface] = ...) -> type[DeviceInterface]: ...
