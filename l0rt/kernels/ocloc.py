# SPDX-License-Identifier: Apache-2.0
"""Intel's offline compiler, libocloc: where is it, and what does it make of a source?

It runs in a child process. There it may print, crash or exit without harm, Ctrl-C ends it, and threads can compile at
the same time. That takes some 20 ms of the 200 ms and more of a compile. The child gets everything through pipes and
writes no files.
"""

import glob
import marshal
import os
import re
import subprocess
import sys
from collections import namedtuple

from l0rt.errors import ModuleBuildError
from l0rt.kernels import ocloc_child

__all__: list[str] = []

NAMES = ("libocloc.so", "libocloc.so.1")
# What libocloc loads for the work: the build of a compiler is that of these too.
PARTS = re.compile(r"lib(igc|igdfcl|opencl-clang|ocloc)[\w.-]*\.so")
CONFIGURATION = "/etc/ld.so.conf"
DEFAULTS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
PACKAGE = "Debian and Ubuntu: apt install intel-opencl-icd, or intel-ocloc of Intel's own packages"
# SPIR-V is the same for all devices: these have double, half and 64-bit atomics, and no build of a compiler knows all.
ANY_DEVICE = ("pvc", "bmg", "skl")
UNKNOWN_DEVICE = -33
NO_NEWS = re.compile(
    r"^(Build succeeded\.|Build failed with error code: .*|Auto-detected target .*|Could not determine target .*)\n?",
    re.MULTILINE,
)

Output = namedtuple("Output", "code log")
Output.__doc__ = "What a compiler answered: SPIR-V, None if it refused the source, and its log."


def find():
    """Return the path of the library that a dynamic linker would find; None if it is not installed."""
    for folder in _folders():
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
        with open(path, errors="replace") as file:
            lines = file.readlines()
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
    for name in filter(None, (device, *ANY_DEVICE)):
        code, outputs = _invoke(path, [*words, "-device", name], [("kernel.cl", source)], headers)
        if code != UNKNOWN_DEVICE:  # a device that is newer than the compiler
            break
    log = NO_NEWS.sub("", outputs.pop("stdout.log", b"").decode("utf-8", "replace")).strip("\n\0")
    spirv = next((data for name, data in outputs.items() if name.endswith(".spv")), None)
    return Output(spirv if code == 0 else None, log or ("" if code == 0 else f"libocloc failed with code {code}"))


def _invoke(path, words, sources, headers):
    """Return (code, name -> bytes) of a call in a child process."""
    if not sys.executable:
        raise ModuleBuildError("the compiler runs in a Python process of its own, and sys.executable names no Python")
    request = marshal.dumps((path, words, sources, headers))
    command = [sys.executable, "-I", "-S", ocloc_child.__file__]
    reply, errors, status = run(command, request)
    if not reply:
        how = f"signal {-status}" if status < 0 else f"status {status}"
        told = errors.decode("utf-8", "replace").strip()
        raise ModuleBuildError(f"the compiler {path} ended with {how}{told and ': '}{told[-2000:]}", None, told)
    return marshal.loads(reply)


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
