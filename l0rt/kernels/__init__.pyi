# SPDX-License-Identifier: Apache-2.0
from l0rt.kernels.arguments import LocalMemory as LocalMemory
from l0rt.kernels.arguments import Pointer as Pointer
from l0rt.kernels.compiler import compile as compile
from l0rt.kernels.kernel import Kernel as Kernel
from l0rt.kernels.module import Module as Module
from l0rt.kernels.specialized import SpecializedKernel as SpecializedKernel
from l0rt.kernels.specialized import SpecializedModule as SpecializedModule
from l0rt.kernels.specialized import specialize as specialize
from l0rt.kernels.spirv import Argument as Argument

__all__ = [
    "Argument",
    "Kernel",
    "LocalMemory",
    "Module",
    "Pointer",
    "SpecializedKernel",
    "SpecializedModule",
    "compile",
    "specialize",
]
