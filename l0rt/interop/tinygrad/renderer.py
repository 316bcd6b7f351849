# SPDX-License-Identifier: Apache-2.0
"""What tinygrad generates for l0rt, and its compiler; works in processes that have opened no device."""

from tinygrad.device import CompileError, Compiler
from tinygrad.renderer.cstyle import OpenCLRenderer

from l0rt.errors import CompilerNotFoundError, ModuleBuildError
from l0rt.kernels.compiler import prepare, target_of

OPTIONS = "-w"  # tinygrad's source is not the user's: its warnings help no user


def arch_of(properties, facts):
    """Return what a renderer needs to know of a device, as tinygrad's text of its architecture."""
    parts = [name for name, has in (("cl_khr_fp16", properties.has_fp16), ("cl_khr_fp64", properties.has_fp64)) if has]
    parts += [f"group={properties.max_work_group_size}", f"local={properties.local_mem_size}"]
    target = target_of(facts)
    return ",".join(parts + ([f"target={target}"] if target else []))


class L0RTCompiler(Compiler):
    """Compiles a source into l0rt's cache, where `L0RTProgram` finds it. The source stays what tinygrad keeps."""

    def __init__(self, target=None):
        super().__init__()  # no cache of tinygrad's: l0rt's knows the headers, the compiler's build and the driver
        self.target = target

    def compile(self, src):
        try:
            prepare(src, OPTIONS, self.target)
        except CompilerNotFoundError:
            raise
        except ModuleBuildError as error:
            raise CompileError(str(error)) from error
        return src.encode()


class L0RTRenderer(OpenCLRenderer):
    """tinygrad's OpenCL C, with the limits of the device that `arch_of` has noted."""

    def __init__(self, target):
        super().__init__(target)
        limits = dict(part.partition("=")[::2] for part in target.arch.split(","))
        self.local_max = (int(limits.get("group") or 256),) * 3
        self.shared_max = int(limits.get("local") or 32768)
        self.compiler = L0RTCompiler(limits.get("target"))
