# SPDX-License-Identifier: Apache-2.0
"""Intel's offline compiler, libocloc: where is it, and what does it make of a source?

It runs in a child process, a Python. There it may print, crash or exit without harm, Ctrl-C ends it, and threads can
compile at the same time. That takes some 20 ms of the 200 ms and more of a compile. The child gets everything through
pipes and writes no files.
"""

import glob
import marshal
import os
import re
import subprocess
import sys
from collections import namedtuple

from l0rt._base.paths import interpreter, read_file
from l0rt.errors import ModuleBuildError
from l0rt.kernels import ocloc_child
from l0rt.ze.packages import advice

__all__: list[str] = []

NAMES = ("libocloc.so", "libocloc.so.1")
# What libocloc loads for the work: the build of a compiler is that of these too.
PARTS = re.compile(r"lib(igc|igdfcl|opencl-clang|ocloc)[\w.-]*\.so")
CONFIGURATION = "/etc/ld.so.conf"
DEFAULTS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
PACKAGE = advice("ocloc")
# SPIR-V is the same for all devices: these have double, half and 64-bit atomics, and no build of a compiler knows all.
# "bdw" is also for OpenCL C 1.1 where an older libocloc knows no other but "skl".
ANY_DEVICE = ("pvc", "bmg", "skl", "bdw")
# Debian's libocloc has headers that do not compile as OpenCL C 1.1 for "skl", nor as 3.0 for "pvc": it has no images.
OWN_ERROR = re.compile(rb"^\./opencl-c\.h:[\d:]+ error: ", re.MULTILINE)
# Of whole numbers libocloc makes an instruction of it that is one of floats, which its own next stage refuses; of this
# other function, which adds a third number, it makes a call.
DOT = b"""#line 1 "dot"
#ifdef __opencl_c_integer_dot_product_input_4x8bit
#define __l0rt_function static inline __attribute__((overloadable, always_inline))
__l0rt_function int __l0rt_dot(char4 a, char4 b) { return dot_acc_sat(a, b, 0); }
__l0rt_function uint __l0rt_dot(uchar4 a, uchar4 b) { return dot_acc_sat(a, b, 0u); }
__l0rt_function int __l0rt_dot(char4 a, uchar4 b) { return dot_acc_sat(a, b, 0); }
__l0rt_function int __l0rt_dot(uchar4 a, char4 b) { return dot_acc_sat(a, b, 0); }
#define __l0rt_floats(t) __l0rt_function t __l0rt_dot(t a, t b) { return dot(a, b); } \\
  __l0rt_function t __l0rt_dot(t##2 a, t##2 b) { return dot(a, b); } \\
  __l0rt_function t __l0rt_dot(t##3 a, t##3 b) { return dot(a, b); } \\
  __l0rt_function t __l0rt_dot(t##4 a, t##4 b) { return dot(a, b); }
__l0rt_floats(float)
#ifdef cl_khr_fp64
__l0rt_floats(double)
#endif
#ifdef cl_khr_fp16
__l0rt_floats(half)
#endif
#define dot(...) __l0rt_dot(__VA_ARGS__)
#endif
"""
UNKNOWN_DEVICE = -33
NO_PYTHON = "libocloc runs in a Python of its own, and {!r} is not known to be one (docs/process.md, Frozen programs)"
NO_NEWS = re.compile(
    r"^(Build succeeded\.|Build failed with error code: .*|Auto-detected target .*|Could not determine target .*)\n?",
    re.MULTILINE,
)

Output = namedtuple("Output", "code log")
Output.__doc__ = "What a compiler answered: SPIR-V, None if it refused the source, and its log."


def find():
    """Return the path of the library that a dynamic linker would find; None if it cannot be used here."""
    for folder in _folders() if child_command() else ():
        for name in NAMES:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                return os.path.realpath(path)
    return None


def _folders():
    yield from filter(os.path.isabs, os.environ.get("LD_LIBRARY_PATH", "").split(":"))
    yield os.path.join(sys.prefix, "lib")  # of a conda environment
    yield from _configured(CONFIGURATION, set())
    yield from DEFAULTS


def _configured(path, seen):
    """Yield the folders that a file of the dynamic linker's configuration names."""
    if path in seen:
        return
    seen.add(path)
    try:
        lines = read_file(path, 1 << 20).decode("utf-8", "replace").splitlines()
    except OSError:
        return
    for line in lines:
        words = line.partition("#")[0].split()
        if words[:1] == ["include"]:
            for pattern in words[1:]:
                for each in sorted(glob.glob(os.path.join(os.path.dirname(path), pattern))):
                    yield from _configured(each, seen)
        elif words and os.path.isabs(words[0]):
            yield words[0]


def identity(path):
    """Return what distinguishes this build of the compiler from others."""
    found = []
    with os.scandir(os.path.dirname(path)) as files:
        for file in files:
            if PARTS.match(file.name) and not file.is_symlink():
                facts = file.stat()
                found.append(f"{file.name} {facts.st_size} {facts.st_mtime_ns}")
    return f"ocloc {path} {sorted(found)}"


def quoted(option):
    """Return an option as the compiler's command line takes it."""
    if '"' in option:
        raise ValueError(f"options: libocloc takes no quote in an option, only in the value of -D: {option!r}")
    return f'"{option}"' if any(sign.isspace() for sign in option) else option


def build(path, source, headers, options, device):
    """Return the `Output` of compiling a source.

    Parameters
    ----------
    path : str
        The library.
    source : bytes
        The source, which names its lines itself.
    headers : list of (str, bytes)
        The headers by place.
    options : list of str
        The options of OpenCL C.
    device : str or None
        The device by a name of libocloc. None is any.
    """
    words = ["ocloc", "compile", "-file", "kernel.cl", "-output", "out", "-spv_only"]
    words += ["-options", " ".join(map(quoted, options))] if options else []
    if any(re.search(rb"\bdot\s*\(", text) for text in (source, *(content for _, content in headers))):
        source = DOT + source
    code = UNKNOWN_DEVICE
    for name in dict.fromkeys(filter(None, (device, *ANY_DEVICE))):
        answer = _invoke(path, [*words, "-device", name], [("kernel.cl", source)], headers)
        if code == UNKNOWN_DEVICE or answer[0] != UNKNOWN_DEVICE:  # that it knows no other says nothing of the source
            code, outputs = answer
        if answer[0] != UNKNOWN_DEVICE and not OWN_ERROR.search(outputs.get("stdout.log", b"")):
            break
    log = NO_NEWS.sub("", outputs.pop("stdout.log", b"").decode("utf-8", "replace")).strip("\n\0")
    spirv = next((data for name, data in outputs.items() if name.endswith(".spv")), None)
    return Output(spirv if code == 0 else None, log or ("" if code == 0 else f"libocloc failed with code {code}"))


def child_command():
    """Return the command that runs `ocloc_child`; None if no program is known to be a Python that could."""
    if ocloc_child.command is not None:
        return ocloc_child.command
    python = interpreter()
    return None if python is None else [python, "-I", "-S", ocloc_child.__file__]


def _invoke(path, words, sources, headers):
    """Return (code, name -> bytes) of a call in a child process."""
    command = child_command()
    if command is None:
        raise ModuleBuildError(NO_PYTHON.format(sys.executable))
    token = os.urandom(16)
    reply, errors, status = run(command, token + marshal.dumps((path, words, sources, headers)))
    answer = ocloc_child.answer_of(token)
    if status != 0 or not reply.startswith(answer):
        how = f"signal {-status}" if status < 0 else f"status {status}"
        told = errors.decode("utf-8", "replace").strip()
        raise ModuleBuildError(f"the compiler {path} ended with {how}{told and ': '}{told[-2000:]}", None, told)
    return marshal.loads(reply[len(answer) :])


def run(command, given, folder="/"):
    """Run a compiler; return what it wrote, its messages, and its exit status. Whatever comes between ends it.

    An exception before `communicate` closes the compiler's stdin, and it ends by itself: nothing was sent.
    """
    try:
        child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
            start_new_session=True,  # a Ctrl-C is this process's; it ends the child
        )  # fmt: skip
    except OSError as error:
        raise ModuleBuildError(f"the compiler cannot be started: {command[0]}: {error.strerror}") from None
    with child:
        try:
            out, errors = child.communicate(given)
        except BaseException:
            child.kill()
            child.wait()  # a Popen waits for nobody after a KeyboardInterrupt
            raise
    return out, errors, child.returncode
