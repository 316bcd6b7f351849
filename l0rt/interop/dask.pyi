# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any

from distributed import LocalCluster, WorkerPlugin

__all__ = ["DevicePlugin", "LocalDeviceCluster", "SpillingStore"]

class LocalDeviceCluster(LocalCluster):
    def __init__(
        self,
        devices: Iterable[int] | None = None,
        *,
        n_workers: int | None = None,
        threads_per_worker: int = 1,
        device_memory_limit: int | float | str | None = None,
        device_target: int | float | str | None = 0.6,
        pool_size: int | float | str | None = None,
        memory_limit: int | float | str | None = "auto",
        disk_limit: int | None = None,
        host: str | None = "127.0.0.1",
        dashboard_address: str | None = None,
        plugins: Iterable[Any] = (),
        **kwargs: Any,
    ) -> None: ...

class DevicePlugin(WorkerPlugin):
    name: str
    devices: Iterable[int] | None
    timeout: float
    device_memory_limit: int | float | str | None
    device_target: int | float | str | None
    pool_size: int | float | str | None
    def __init__(
        self,
        *,
        devices: Iterable[int] | None = None,
        device_memory_limit: int | float | str | None = None,
        device_target: int | float | str | None = 0.6,
        pool_size: int | float | str | None = None,
        timeout: float = 30.0,
    ) -> None: ...
    def setup(self, worker: Any) -> None: ...

class SpillingStore(MutableMapping[Any, Any]):
    device_limit: int | None
    def __init__(
        self,
        worker_local_directory: str,
        device_limit: int | None = None,
        host_limit: int | None = None,
        disk_limit: int | None = None,
    ) -> None: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __delitem__(self, key: Any, /) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    @property
    def device(self) -> Mapping[Any, Any]: ...
    @property
    def host(self) -> Mapping[Any, Any]: ...
    @property
    def disk(self) -> Mapping[Any, Any]: ...
    @property
    def fast(self) -> Mapping[Any, Any]: ...
    def evict(self) -> int: ...
    @property
    def spilled_total(self) -> tuple[int, int]: ...
