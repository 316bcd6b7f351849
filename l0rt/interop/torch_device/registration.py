# SPDX-License-Identifier: Apache-2.0
"""torch.compile for the device type ``lzrt``: what is registered in Dynamo and in Inductor, when they are loaded."""

import os
from glob import glob
from typing import NamedTuple

import l0rt_torch_device as _extension
import torch
from torch._dynamo import device_interface as dynamo
from torch._inductor import lowering
from torch._inductor.codegen import common
from torch._inductor.custom_graph_pass import CustomGraphModulePass

from l0rt import xpu
from l0rt._base.paths import read_file
from l0rt.interop.torch_device import module
from l0rt.interop.torch_device.build import HERE, MOST
from l0rt.interop.torch_device.inductor import Scheduling
from l0rt.interop.torch_device.inductor import Wrapper as PythonWrapperCodegen
from l0rt.interop.torch_device.operations import Operations
from l0rt.kernels import cache

__all__ = ["Interface", "PythonWrapperCodegen", "Scheduling"]

NAME = "lzrt"


class Properties(NamedTuple):
    """What Inductor asks of a device, by torch's names."""

    name: str
    total_memory: int
    multi_processor_count: int
    max_threads_per_block: int
    warp_size: int


def properties(index):
    """Return the properties of a device."""
    facts = xpu.get_device_properties(index)
    size, widths = facts.max_work_group_size, facts.sub_group_sizes
    return Properties(facts.name, facts.total_memory, facts.gpu_subslice_count, size, max(widths, default=32))


class Interface(dynamo.DeviceInterface):
    """Devices, streams and events, as Dynamo and Inductor ask for them."""

    device = module.device
    Event = torch.Event
    Stream = torch.Stream

    class Worker:
        """The current device and the properties, in a process that must not open the driver."""

        @staticmethod
        def set_device(device):
            dynamo.caching_worker_current_devices[NAME] = device

        @staticmethod
        def current_device():
            if NAME in dynamo.caching_worker_current_devices:
                return dynamo.caching_worker_current_devices[NAME]
            return module.current_device()

        @staticmethod
        def get_device_properties(device=None):
            cache = dynamo.caching_worker_device_properties.setdefault(NAME, {})
            index = torch.device(device).index if isinstance(device, str) else getattr(device, "index", device)
            index = Interface.Worker.current_device() if index is None else index
            if index not in cache:
                cache[index] = properties(index)
            return cache[index]

    current_device = staticmethod(module.current_device)
    set_device = staticmethod(module.set_device)
    exchange_device = staticmethod(_extension.exchange_device)
    device_count = staticmethod(module.device_count)
    is_available = staticmethod(module.is_available)
    current_stream = staticmethod(module.current_stream)
    set_stream = staticmethod(torch.accelerator.set_stream)
    synchronize = staticmethod(module.synchronize)
    memory_allocated = staticmethod(module.memory_allocated)

    @staticmethod
    def maybe_exchange_device(device):
        return _extension.exchange_device(device) if device >= 0 else -1

    @staticmethod
    def stream(stream):
        return stream  # a stream of torch is a context manager

    @staticmethod
    def get_raw_stream(index):
        return module.current_stream(index).native_handle

    @staticmethod
    def get_compute_capability(device=None):
        return 0

    @staticmethod
    def is_bf16_supported(including_emulation=False):
        return including_emulation  # kernels load and store it, and compute in fp32

    @classmethod
    def is_dtype_supported(cls, dtype, including_emulation=False):
        return True


class Overrides(common.DeviceOpOverrides):
    """The Python text with which generated code enters a device."""

    def import_get_raw_stream_as(self, name):
        return f"from l0rt.interop.torch_device.module import get_raw_stream as {name}"

    def set_device(self, device_idx):
        return f"torch.lzrt.set_device({device_idx})"

    def synchronize(self):
        return "torch.lzrt.synchronize()"

    def device_guard(self, device_idx):
        return f"torch.lzrt.device({device_idx})"

    def current_stream(self):
        return "torch.lzrt.current_stream()"


class Identity(CustomGraphModulePass):
    """Changes no graph: the keys of Inductor's cache, which keeps generated code, contain what a pass is."""

    def __call__(self, gm):
        pass

    def uuid(self):
        """Return a digest of what writes the code."""
        return cache.digest(*(read_file(path, MOST) for path in sorted(glob(os.path.join(HERE, "*.py")))))


def serve_by_fallback(op):
    """Let an operator of torch that kernels do not have run eagerly on this device type."""
    lower, fall_back = lowering.lowerings[op], lowering.fallback_handler(op, add_to_fallback_set=False)

    def choose(*args, **kwargs):
        devices = [arg.get_device() for arg in args if hasattr(arg, "get_device")]
        return (fall_back if any(device.type == NAME for device in devices if device) else lower)(*args, **kwargs)

    lowering.lowerings[op] = choose


def register():
    """Register the device type."""
    dynamo.register_interface_for_device(NAME, Interface)
    for index in range(module.device_count()):
        dynamo.register_interface_for_device(f"{NAME}:{index}", Interface)
    common.register_device_op_overrides(NAME, Overrides())
    common.register_backend_for_device(NAME, Scheduling, PythonWrapperCodegen, device_custom_pass=Identity())
    for name, facts in common.pointwise_overrides_data.items():
        packet = getattr(torch.ops.aten, facts.name, None)
        if packet is not None and Operations._is_unimplemented(name):
            for overload in packet.overloads():
                if getattr(packet, overload) in lowering.lowerings:
                    serve_by_fallback(getattr(packet, overload))


register()
