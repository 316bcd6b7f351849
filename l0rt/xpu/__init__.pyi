# SPDX-License-Identifier: Apache-2.0
from typing import Any

from l0rt.runtime.current.generator import XpuGenerator
from l0rt.runtime.current.guard import xpu_device_index
from l0rt.runtime.current.stream import current_raw_stream as current_raw_stream
from l0rt.runtime.streams.naming import _Device
from l0rt.telemetry import clock_rate as clock_rate
from l0rt.telemetry import device_memory_used as device_memory_used
from l0rt.telemetry import memory_usage as memory_usage
from l0rt.telemetry import power_draw as power_draw
from l0rt.telemetry import temperature as temperature
from l0rt.telemetry import utilization as utilization
from l0rt.xpu import facts as facts
from l0rt.xpu import graphs as graphs
from l0rt.xpu import memory as memory
from l0rt.xpu import native as native
from l0rt.xpu import random as random
from l0rt.xpu import streams as streams
from l0rt.xpu.facts import *  # noqa: F403
from l0rt.xpu.graphs import *  # noqa: F403
from l0rt.xpu.memory import *  # noqa: F403
from l0rt.xpu.native import *  # noqa: F403
from l0rt.xpu.random import *  # noqa: F403
from l0rt.xpu.random import _get_rng_state_offset as _get_rng_state_offset
from l0rt.xpu.random import _set_rng_state_offset as _set_rng_state_offset
from l0rt.xpu.streams import *  # noqa: F403
from l0rt.xpu.streams import _set_stream_by_id as _set_stream_by_id

Generator = XpuGenerator

default_generators: tuple[Generator, ...]

def init() -> None: ...
def is_initialized() -> bool: ...
def is_available() -> bool: ...
def device_count() -> int: ...
def current_device() -> int: ...
def set_device(device: _Device) -> None: ...
def _exchange_device(device: int) -> int: ...
def _maybe_exchange_device(device: int) -> int: ...

class device(xpu_device_index):
    def __new__(cls, device: _Device) -> device: ...

class _DeviceGuard:
    idx: int
    prev_idx: int
    def __init__(self, index: int) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, kind: object, value: object, trace: object) -> None: ...

class device_of(device):
    def __new__(cls, obj: Any) -> device_of: ...
