# SPDX-License-Identifier: Apache-2.0
from l0rt import accelerator as accelerator
from l0rt import bench as bench
from l0rt import capi as capi
from l0rt import config as config
from l0rt import debug as debug
from l0rt import errors as errors
from l0rt import interface as interface
from l0rt import interop as interop
from l0rt import ipc as ipc
from l0rt import kernels as kernels
from l0rt import logs as logs
from l0rt import memory as memory
from l0rt import philox as philox
from l0rt import profiler as profiler
from l0rt import sanitizer as sanitizer
from l0rt import telemetry as telemetry
from l0rt import xpu as xpu
from l0rt.buffers.buffer import Buffer as Buffer
from l0rt.buffers.copies import advise as advise
from l0rt.buffers.copies import from_dlpack as from_dlpack
from l0rt.buffers.copies import from_numpy as from_numpy
from l0rt.buffers.copies import memcpy as memcpy
from l0rt.buffers.copies import memcpy2d as memcpy2d
from l0rt.buffers.copies import memset as memset
from l0rt.buffers.copies import pinned as pinned
from l0rt.buffers.copies import prefetch as prefetch
from l0rt.buffers.empty import empty as empty
from l0rt.buffers.interchange import from_usm as from_usm
from l0rt.errors import CompilerNotFoundError as CompilerNotFoundError
from l0rt.errors import DeviceIndexError as DeviceIndexError
from l0rt.errors import DeviceLostError as DeviceLostError
from l0rt.errors import DriverNotFoundError as DriverNotFoundError
from l0rt.errors import InvalidArgumentError as InvalidArgumentError
from l0rt.errors import KernelFaultError as KernelFaultError
from l0rt.errors import L0Error as L0Error
from l0rt.errors import ModuleBuildError as ModuleBuildError
from l0rt.errors import ModuleBuildWarning as ModuleBuildWarning
from l0rt.errors import OutOfMemoryError as OutOfMemoryError
from l0rt.errors import UnsupportedError as UnsupportedError
from l0rt.kernels.arguments import LocalMemory as LocalMemory
from l0rt.kernels.arguments import Pointer as Pointer
from l0rt.kernels.compiler import compile as compile
from l0rt.kernels.image import Image as Image
from l0rt.kernels.image import Sampler as Sampler
from l0rt.kernels.module import Module as Module
from l0rt.kernels.specialized import specialize as specialize
from l0rt.runtime.current.event import Event as Event
from l0rt.runtime.current.generator import Generator as Generator
from l0rt.runtime.current.stream import Stream as Stream
from l0rt.runtime.streams.naming import device as device

__version__: str

def get_include() -> str: ...
def cpu_driver_path() -> str: ...
