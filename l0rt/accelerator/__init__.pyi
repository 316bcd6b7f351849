# SPDX-License-Identifier: Apache-2.0
from typing import Any

from l0rt.accelerator import memory as memory
from l0rt.accelerator import random as random
from l0rt.accelerator._api import current_device_index as current_device_index
from l0rt.accelerator._api import current_stream as current_stream
from l0rt.accelerator._api import default_stream as default_stream
from l0rt.accelerator._api import device_count as device_count
from l0rt.accelerator._api import set_device_index as set_device_index
from l0rt.accelerator._api import set_stream as set_stream
from l0rt.accelerator._api import stream as stream
from l0rt.accelerator._api import synchronize as synchronize
from l0rt.accelerator.graphs import Graph as Graph
from l0rt.accelerator.graphs import generate_graph_pool_handle as generate_graph_pool_handle
from l0rt.accelerator.graphs import graph as graph
from l0rt.accelerator.graphs import graph_pool_handle as graph_pool_handle
from l0rt.accelerator.graphs import is_current_stream_capturing as is_current_stream_capturing
from l0rt.accelerator.memory import MemPool as MemPool
from l0rt.accelerator.memory import attach_oom_observer as attach_oom_observer
from l0rt.accelerator.memory import empty_cache as empty_cache
from l0rt.accelerator.memory import empty_host_cache as empty_host_cache
from l0rt.accelerator.memory import get_memory_info as get_memory_info
from l0rt.accelerator.memory import get_memory_limit as get_memory_limit
from l0rt.accelerator.memory import get_per_process_memory_fraction as get_per_process_memory_fraction
from l0rt.accelerator.memory import max_memory_allocated as max_memory_allocated
from l0rt.accelerator.memory import max_memory_reserved as max_memory_reserved
from l0rt.accelerator.memory import memory_allocated as memory_allocated
from l0rt.accelerator.memory import memory_reserved as memory_reserved
from l0rt.accelerator.memory import memory_snapshot as memory_snapshot
from l0rt.accelerator.memory import memory_stats as memory_stats
from l0rt.accelerator.memory import memory_stats_as_nested_dict as memory_stats_as_nested_dict
from l0rt.accelerator.memory import memory_summary as memory_summary
from l0rt.accelerator.memory import reset_accumulated_memory_stats as reset_accumulated_memory_stats
from l0rt.accelerator.memory import reset_peak_memory_stats as reset_peak_memory_stats
from l0rt.accelerator.memory import set_memory_limit as set_memory_limit
from l0rt.accelerator.memory import set_per_process_memory_fraction as set_per_process_memory_fraction
from l0rt.accelerator.memory import use_mem_pool as use_mem_pool
from l0rt.accelerator.random import default_generator as default_generator
from l0rt.accelerator.random import fork_rng as fork_rng
from l0rt.accelerator.random import get_rng_state as get_rng_state
from l0rt.accelerator.random import get_rng_state_all as get_rng_state_all
from l0rt.accelerator.random import initial_seed as initial_seed
from l0rt.accelerator.random import manual_seed as manual_seed
from l0rt.accelerator.random import manual_seed_all as manual_seed_all
from l0rt.accelerator.random import seed as seed
from l0rt.accelerator.random import seed_all as seed_all
from l0rt.accelerator.random import set_rng_state as set_rng_state
from l0rt.accelerator.random import set_rng_state_all as set_rng_state_all
from l0rt.accelerator.timer import Timer as Timer
from l0rt.interface import set_accelerator as set_accelerator
from l0rt.runtime.current.event import Event as Event
from l0rt.runtime.current.generator import Generator as Generator
from l0rt.runtime.current.guard import device_index as device_index
from l0rt.runtime.current.guards import DeviceGuard as DeviceGuard
from l0rt.runtime.current.guards import MultiStreamGuard as MultiStreamGuard
from l0rt.runtime.current.guards import OptionalDeviceGuard as OptionalDeviceGuard
from l0rt.runtime.current.guards import OptionalStreamGuard as OptionalStreamGuard
from l0rt.runtime.current.guards import StreamGuard as StreamGuard
from l0rt.runtime.current.lease import stream_pool as stream_pool
from l0rt.runtime.current.stream import Stream as Stream
from l0rt.runtime.current.waits import stuck_report as stuck_report
from l0rt.runtime.current.waits import wait_all as wait_all
from l0rt.runtime.current.waits import wait_any as wait_any
from l0rt.runtime.streams.hooks import get_sync_debug_mode as get_sync_debug_mode
from l0rt.runtime.streams.hooks import set_sync_debug_mode as set_sync_debug_mode
from l0rt.runtime.streams.naming import _Device
from l0rt.runtime.streams.naming import device as _device

get_device_index = current_device_index
current_device_idx = current_device_index
set_device_idx = set_device_index
mem_get_info = get_memory_info

def is_available() -> bool: ...
def current_accelerator(check_available: bool = False) -> _device | None: ...
def init(*, lazy: bool = True) -> None: ...
def get_device_capability(device: _Device = None, /) -> dict[str, Any]: ...
def get_device_properties(device: _Device = None, /) -> Any: ...
def get_device_name(device: _Device = None, /) -> str: ...
def can_device_access_peer(device: _Device, peer: _Device, /) -> bool: ...
