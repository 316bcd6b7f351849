# SPDX-License-Identifier: Apache-2.0
from l0rt.kernels.arguments import LocalMemory as LocalMemory
from l0rt.kernels.arguments import Pointer as Pointer
from l0rt.kernels.compiler import compile as compile
from l0rt.kernels.image import Image as Image
from l0rt.kernels.image import Sampler as Sampler
from l0rt.kernels.kernel import Kernel as Kernel
from l0rt.kernels.module import Module as Module
from l0rt.kernels.specialized import SpecializedKernel as SpecializedKernel
from l0rt.kernels.specialized import SpecializedModule as SpecializedModule
from l0rt.kernels.specialized import specialize as specialize
from l0rt.kernels.spin import sleep as sleep
from l0rt.launch.spirv import Argument as Argument

__all__ = [
    "Argument",
    "Image",
    "Kernel",
    "LocalMemory",
    "Module",
    "Pointer",
    "Sampler",
    "SpecializedKernel",
    "SpecializedModule",
    "compile",
    "sleep",
    "specialize",
]
