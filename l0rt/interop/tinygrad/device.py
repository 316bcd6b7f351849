# SPDX-License-Identifier: Apache-2.0
"""tinygrad's device on l0rt: its memory, programs and timing, in the order of the device's default stream.

This module is ``tinygrad.runtime.ops_l0rt``.
"""

from functools import partial
from typing import Literal

from tinygrad import runtime  # noqa: F401
from tinygrad.device import (
    ALL_DEVICES,  # noqa: F401
    Allocator,
    Compiled,
    CompileError,
    Program,
)
from tinygrad.helpers import is_image_shape

from l0rt import xpu
from l0rt.buffers.buffer import Buffer
from l0rt.buffers.copies import memcpy
from l0rt.buffers.empty import empty
from l0rt.errors import ModuleBuildError
from l0rt.interop.tinygrad.graph import L0RTGraph
from l0rt.interop.tinygrad.renderer import OPTIONS, L0RTRenderer, arch_of
from l0rt.interop.tinygrad.timing import timed
from l0rt.kernels.compiler import compile
from l0rt.kernels.module import facts
from l0rt.runtime.current.stream import default_stream

MOST_SIZES = 64  # of one program's launches, that are kept ready


class L0RTAllocator(Allocator):
    """Buffers of l0rt, without a cache of tinygrad's own: l0rt has one."""

    def _alloc(self, size, options):
        if options.external_ptr is not None:
            return options.external_ptr
        kind: Literal["device", "host", "shared"] = "shared" if options.cpu_access else "device"
        if options.host:
            kind = "host"
        buffer = empty(size, device=self.dev.name, stream=self.dev.stream, kind=kind)
        return buffer.fill(0, stream=self.dev.stream) if options.zero else buffer

    def _free(self, opaque, options):
        """A Buffer goes with its last reference: views keep it."""

    def _offset(self, buf, size, offset):
        return buf[offset : offset + size] if isinstance(buf, Buffer) else buf + offset

    def _map(self, buf):
        if isinstance(buf, (Buffer, int)):
            return buf
        raise RuntimeError(f"kernels of {self.dev.device} cannot reach {type(buf).__name__}: copy it to the device")

    def _copyin(self, dest, src):
        memcpy(dest, src, src.nbytes, self.dev.stream)

    def _copyout(self, dest, src):
        memcpy(dest, src, dest.nbytes, self.dev.stream)

    def _transfer(self, dest, src, sz, src_dev, dest_dev):
        if src_dev is not dest_dev:
            dest_dev.stream.wait_stream(src_dev.stream)
        memcpy(dest, src, sz, dest_dev.stream, non_blocking=True)
        if src_dev is not dest_dev:
            src_dev.stream.wait_stream(dest_dev.stream)


class L0RTProgram(Program):
    """One kernel of tinygrad's. ``slots`` says which of its buffers and numbers each argument is."""

    def __init__(self, dev, obj):
        super().__init__(dev, obj)
        if any(is_image_shape(shape) for _, _, _, shape in obj.signature):
            raise NotImplementedError(f"{obj.name} uses images, which l0rt has none of: run without IMAGE")
        self.dev, self.name = dev, obj.name
        try:
            self.kernel = compile(obj.lib.decode(), OPTIONS, dev.name)[obj.name]
        except ModuleBuildError as error:
            raise CompileError(str(error)) from error
        slots = [slot for _, slot, _, _ in obj.signature]
        self.slots = None if slots == list(range(len(slots))) else slots
        self.launchers = {}

    def launcher(self, groups, group_size):
        """Return what launches the kernel with these sizes."""
        launcher = self.launchers.get((groups, group_size))
        if launcher is None:
            if group_size is None:
                return partial(self.kernel.launch, global_size=groups, stream=self.dev.stream)
            launcher = self.kernel[groups, group_size, self.dev.stream]
            if len(self.launchers) == MOST_SIZES:
                self.launchers.clear()
            self.launchers[groups, group_size] = launcher
        return launcher

    def arguments(self, bufs, vals):
        """Return buffers and numbers in the kernel's order."""
        arguments = (*bufs, *vals)
        return arguments if self.slots is None else tuple([arguments[slot] for slot in self.slots])

    def __call__(self, *bufs, global_size=(1, 1, 1), local_size=None, vals=(), wait=False, **_):
        launch = self.launcher(global_size, local_size)
        args = self.arguments(bufs, vals)
        if wait:
            return timed(self.dev.stream, launch, *args)
        return launch(*args)


class L0RTDevice(Compiled):
    """A device of l0rt, ``L0RT`` or ``L0RT:1`` by l0rt's order of devices."""

    def __init__(self, device):
        index = int(device.partition(":")[2] or 0)
        count = xpu.device_count()
        if index >= count > 0:
            raise RuntimeError(f"there is no device {device}: l0rt has {count}, L0RT:0 to L0RT:{count - 1}")
        xpu.init()  # without a driver or a device, its error says why
        self.name = f"xpu:{index}"
        self.stream = default_stream(self.name)
        arch = arch_of(xpu.get_device_properties(self.name), facts(self.name)[1])
        super().__init__(device, L0RTAllocator(self), [L0RTRenderer], L0RTProgram, L0RTGraph, arch=arch)

    def count(self):
        return xpu.device_count()

    def synchronize(self):
        self.stream.synchronize()
