# SPDX-License-Identifier: Apache-2.0
"""zig's clang, of the package ziglang: where is it, and what does it make of a source?

It makes SPIR-V of OpenCL C by itself, and declares OpenCL's functions itself, except those whose names the source
defines: ``overloads.h`` here declares these. What its package lacks, types and constants, is in ``opencl.h``. Without
headers everything goes through pipes; headers are written to a folder that is removed afterwards, since clang reads
them from files.
"""

import os
import re
import tempfile
from importlib.util import find_spec

from l0rt.errors import ModuleBuildError
from l0rt.kernels.ocloc import Output, run

__all__: list[str] = []

PRELUDE, OVERLOADS = (
    os.path.join(os.path.dirname(os.path.abspath(__file__)), name) for name in ("opencl.h", "overloads.h")
)
PACKAGE = "pip install 'l0rt[zig]'"
# LLVM writes what OpenCL C has for these only if it may.
EXTENSIONS = ("SPV_EXT_shader_atomic_float_add", "SPV_EXT_shader_atomic_float_min_max", "SPV_KHR_bit_instructions",
              "SPV_KHR_integer_dot_product")  # fmt: skip
# Without optimisation LLVM writes SPIR-V that is not valid. A plain `inline` of C99 leaves no body behind, of gnu89 it
# does: OpenCL C says that functions may be inline, and not that they need another definition.
COMMAND = ("clang", "-x", "cl", "-target", "spirv64", "-O1", "-cl-no-stdinc", "-Xclang", "-fdeclare-opencl-builtins",
           "-fgnu89-inline", "-fno-color-diagnostics", "-c", "-o", "-", "-mllvm",
           "--spirv-ext=" + ",".join(f"+{name}" for name in EXTENSIONS))  # fmt: skip
# OpenCL's functions by the shape that overloads.h has for them.
SHAPES = {
    "float1": "acos acosh asin asinh atan atanh cbrt ceil cos cosh degrees erf erfc exp exp10 exp2 expm1 fabs floor "
    "lgamma log log10 log1p log2 logb radians rint round rsqrt sign sin sinh sinpi cospi sqrt tan tanh tanpi tgamma "
    "trunc native_cos native_exp native_log native_recip native_rsqrt native_sin native_sqrt half_recip half_sqrt",
    "float2": "atan2 copysign fdim fmod hypot nextafter pow powr remainder native_divide native_powr half_divide",
    "float3": "fma mad", "int1": "clz ctz popcount", "int3": "mad_hi mad_sat",
    "int2": "add_sat hadd mul_hi rhadd rotate sub_sat", "fbound": "fmax fmin", "bound": "max min", "clamp": "clamp",
    "mix": "mix", "step": "step", "smoothstep": "smoothstep", "length": "length fast_length",
    "normalize": "normalize fast_normalize", "dot": "dot distance fast_distance", "cross": "cross",
}  # fmt: skip
SHAPE_OF = {name.encode(): shape for shape, names in SHAPES.items() for name in names.split()}
NO_HALF = b"#pragma OPENCL EXTENSION cl_khr_fp16 : disable\n"  # as it is where a source begins
DEFINITION = re.compile(rb"\b([a-z]\w+)\s*\([^;{}()]*\)\s*\{")


def find():
    """Return the path of the program; None if the package is not installed."""
    try:
        found = find_spec("ziglang")
    except (ImportError, ValueError):
        return None
    if found is None or not found.origin:
        return None
    path = os.path.join(os.path.dirname(found.origin), "zig")
    return path if os.access(path, os.X_OK) else None


def identity(path):
    """Return what distinguishes this build of the compiler from others."""
    found = [os.stat(file) for file in (path, PRELUDE, OVERLOADS)]
    return f"zig {path} {[(facts.st_size, facts.st_mtime_ns) for facts in found]}"


def build(path, source, headers, options, device):
    """Return the `Output` of compiling a source; see `ocloc.build`. It is the same for each ``device``."""
    output = _build(path, source, headers, options, b"")
    defined = {name for text in (source, *(content for _, content in headers)) for name in DEFINITION.findall(text)}
    shapes = [b"__l0rt_%s(%s)\n" % (SHAPE_OF[name].encode(), name) for name in sorted(defined) if name in SHAPE_OF]
    if output.code is None and shapes:  # it may call a function of OpenCL beside its own of that name
        with open(OVERLOADS, "rb") as file:
            given = [b'#line 1 "overloads.h"\n', file.read(), *shapes, NO_HALF]
        again = _build(path, source, headers, options, b"".join(given))
        output = output if again.code is None else again
    return output


def _build(path, source, headers, options, declarations):
    with open(PRELUDE, "rb") as file:
        given = b'#line 1 "opencl.h"\n' + file.read() + declarations + source
    # -cl-intel options are for the driver's part of the work.
    command = [path, *COMMAND, *[option for option in options if not option.startswith("-cl-intel")], "-"]
    if not headers:
        return _output(path, run(command, given))
    try:
        with tempfile.TemporaryDirectory(prefix="l0rt-") as folder:
            for name, content in headers:
                place = os.path.join(folder, name)
                if not os.path.isabs(name):  # else it is read where it is
                    os.makedirs(os.path.dirname(place), exist_ok=True)
                    with open(place, "wb") as file:
                        file.write(content)
            return _output(path, run(command, given, folder))
    except OSError as error:
        raise ModuleBuildError(f"the headers cannot be written for {path}: {error}") from None


def _output(path, result):
    out, errors, status = result
    log = errors.decode("utf-8", "replace").strip()
    if status < 0:
        raise ModuleBuildError(f"the compiler {path} ended with signal {-status}{log and ': '}{log[-2000:]}", None, log)
    if status == 0 and out:
        return Output(out, log)
    return Output(None, log or f"zig failed with status {status}")
