# SPDX-License-Identifier: Apache-2.0
"""Compiling OpenCL C: from a source to a module, at most once for all threads, processes and runs.

A compiler makes SPIR-V of the source, and the driver native code of that. Both are kept, in memory and in the cache of
`cache`, under a key of everything that they depend on: the source, the headers that it may include, the options, the
compiler's build; native code also the device, the driver and the specialisation constants.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import threading
import time
from collections import namedtuple
from contextlib import nullcontext, suppress
from functools import lru_cache, partial
from weakref import WeakValueDictionary

from l0rt import config
from l0rt._base import callers
from l0rt._base.paths import plain_path, read_file
from l0rt.errors import CompilerNotFoundError, L0Error, ModuleBuildError, ModuleBuildWarning
from l0rt.kernels import cache, includes, ocloc, zig
from l0rt.kernels.module import Compiled, Module, facts, tell, watchers
from l0rt.launch import spirv
from l0rt.launch.spirv import Spirv, is_spirv

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import ModuleType
    from typing import Any, NamedTuple

    class Compiler(NamedTuple):
        kind: str
        path: str
        identity: str
else:
    Compiler = namedtuple("Compiler", "kind path identity")

__all__ = ["compile"]

COMPILERS: dict[str, ModuleType] = {"ocloc": ocloc, "zig": zig}
MOST_KEPT, MOST_BYTES = 256, 1 << 26  # in memory: whichever is reached first
MOST_TOLD = 10_000  # characters of a log in an error's message; all of it is in its `log`
INTEL = 0x8086
# Of the settings fp32_precision: the values that the macros have, and a macro's middle for each kind of operation.
PRECISIONS = ("none", "ieee", "tf32", "bf16")
OPERATIONS = {"": "", "matmul.": "MATMUL_", "conv.": "CONV_", "rnn.": "RNN_"}

Options = namedtuple("Options", "language driver definitions folders")
Options.__doc__ = "Options of the compiler, those of the driver, definitions as a text, and folders of headers."
Work = namedtuple("Work", "shown text headers options compiler target spirv_key key is_cached")
Work.__doc__ = "One compile: what it is made of, and the keys of the SPIR-V and of what the driver makes of it."


def compile(
    source: str | bytes | bytearray | memoryview | os.PathLike[str],
    options: str = "",
    device: Any = None,
    *,
    include_dirs: Iterable[str | os.PathLike[str]] | None = (),
    headers: Mapping[str, str | bytes] | None = None,
    constants: Mapping[int, int | float | bool] | None = None,
) -> Module:
    """Compile OpenCL C for a device.

    The same source with the same options is compiled once: the result is kept in a cache on the disk, which later
    processes use too.

    Parameters
    ----------
    source : str, bytes or path
        The text of the program, or a path object (`pathlib.Path`) of the file that has it.
    options : str, optional
        Options of OpenCL C such as ``-cl-std=CL2.0``, ``-D NAME=VALUE`` and ``-I FOLDER``, and of the driver, which
        begin with ``-ze-``. Quotes group words as in a shell.
    device : int, str, device or None, optional
        The device. None is the current device.
    include_dirs : list of str or path, optional
        Folders in which headers are looked for, before those of ``-I``.
    headers : dict of str to str or bytes, optional
        Headers by name that are no files. They are looked for first.
    constants : dict of int to number, optional
        Specialisation constants by SpecId. The others keep their default values.

    Returns
    -------
    Module

    Raises
    ------
    ModuleBuildError
        The source has errors. ``log`` is the compiler's output, with files, lines and the text of these lines.
    CompilerNotFoundError
        No compiler is installed.

    Warns
    -----
    ModuleBuildWarning
        The compiler had warnings. They are in ``build_log`` of the module too.

    Notes
    -----
    The compiler is libocloc where it is installed, else zig's clang; the setting ``compiler`` chooses. Without
    ``-cl-std`` the language is OpenCL C 1.2, as the OpenCL specification says (section 5.8.6.5).

    The source can read the settings ``fp32_precision``: each of the macros L0RT_FP32_PRECISION,
    L0RT_MATMUL_FP32_PRECISION, L0RT_CONV_FP32_PRECISION and L0RT_RNN_FP32_PRECISION is one of L0RT_NONE, L0RT_IEEE,
    L0RT_TF32 and L0RT_BF16, which are 0 to 3. ``-D`` takes precedence.
    """
    begun = time.perf_counter()
    given = _options_of(options)
    text, shown, home = _source_of(source)
    named = includes.given_headers(headers)
    folders = includes.given_folders(include_dirs) + includes.given_folders(given.folders)
    if constants is not None and not hasattr(constants, "items"):
        raise TypeError(f"constants must be a dict of SpecId to value, got {type(constants).__name__}")
    index, about = facts(device)
    found = includes.headers_of(text, home, folders, named)
    given = _with_precisions(given, text, found, f"xpu:{index}")
    work = _work_of(shown, text, found, given, target_of(about), about, constants)
    compiled, how = _kept.get(work.key), "taken from memory"
    try:
        if compiled is None:
            module, how = _made(work, partial(_module_of, work, index, constants))
        else:
            module = _module_of(work, index, constants, compiled)
    except ModuleBuildError:
        how = f"refused by {work.compiler.kind} or the driver"
        raise
    finally:
        if watchers:
            tell(shown, how, index, begun)
    if module.build_log:
        callers.warn(f"the compiler's warnings for {shown}:\n{module.build_log[:MOST_TOLD]}", ModuleBuildWarning)
    return module


def prepare(
    source: str | bytes | bytearray | memoryview | os.PathLike[str], options: str = "", target: str | None = None
) -> None:
    """Compile OpenCL C into the cache, without a device: `compile` finds it there, also in another process.

    ``target`` is what `target_of` says of the device. Nothing is done if the cache is off. Errors are `compile`'s.
    """
    if config.get("cache_size"):
        _translated(source, options, target, "xpu")


def translated(source: bytes, options: str, index: int) -> tuple[Compiled, str]:
    """Compile OpenCL C for a device, for the C API. Return the result and the options that are the driver's."""
    return _translated(source, options, target_of(facts(index)[1]), f"xpu:{index}")


def _translated(source, options, target, owner):
    text, shown, home = _source_of(source)
    given = _options_of(options)
    found = includes.headers_of(text, home, includes.given_folders(given.folders), {})
    work = _work_of(shown, text, found, _with_precisions(given, text, found, owner), target)
    compiled = _kept.get(work.key)
    if compiled is None:
        compiled, _ = _made(work, partial(_spirv_of, work))
    return compiled, work.options.driver


def _source_of(source):
    """Return the text of a source, its name in messages, and its folder if it is a file."""
    if isinstance(source, os.PathLike):
        path = os.fspath(source)
        if not isinstance(path, str):
            raise TypeError("the path of a source must be one of str")
        path = plain_path(path)
        text = read_file(path, includes.MOST_BYTES)
        shown, home = path, os.path.dirname(os.path.abspath(path))
    else:
        text, shown, home = source, "<source>", None
        if isinstance(source, str) and "\n" not in source and (source.endswith(".cl") or os.path.isfile(source[:4096])):
            raise ValueError(f"source must be a program's text; for a file give pathlib.Path({source!r})")
    if isinstance(text, (bytes, bytearray, memoryview)) and is_spirv(bytes(text)):
        raise ValueError(f"{shown} is SPIR-V, which needs no compiler: l0rt.Module loads it")
    text = includes.text_of(text, "source" if home is None else f"source {shown!r}")
    if not text.strip():
        raise ValueError("source is empty")
    if home is not None and includes.odd(home):
        home = None
    return text, shown, home


@lru_cache(64)
def _split(options):
    language, driver, definitions, folders = [], [], [], []
    try:
        words = iter(shlex.split(options))
    except ValueError as error:
        raise ValueError(f"options: {error}") from None
    for word in words:
        if word[:2] in ("-D", "-U", "-I"):
            value = word[2:] or next(words, "")
            if word[:2] == "-I":
                folders.append(value)
            else:
                definitions.append(_definition(word[:2], value))
        elif word.startswith("-ze-"):
            driver.append(word)
        elif word in ("-w", "-g") or re.match("-(cl-|W|O|f)", word):
            language.append(word)
            if re.match("-(g$|cl-(?!std|kernel-arg|ext|single))", word):
                driver.append(word)  # it concerns both halves of the work
        else:
            raise ValueError(f"options: {word!r} is none: -D, -U, -I, -w, -W..., -g, -O..., -f..., -cl-... or -ze-...")
    return Options(tuple(language), " ".join(driver), "".join(definitions).encode(), tuple(folders))


def _definition(option, value):
    found = re.fullmatch(r"([^\W\d]\w*)(\([\w\s,.]*\))?(?:=(.*))?", value)
    if found is None or (option == "-U" and found.end(1) < len(value)):
        raise ValueError(f"options: {option} takes a name{' or NAME=VALUE' if option == '-D' else ''}, got {value!r}")
    name, parameters, text = found.groups()
    if option == "-U":
        return f"#undef {name}\n"
    return f"#define {name}{parameters or ''} {'1' if text is None else text}\n"


def _options_of(options):
    if not isinstance(options, str):
        raise TypeError(f"options must be a str, got {type(options).__name__}")
    if "\0" in options:
        raise ValueError("options must not contain a null character")
    try:
        options.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"options has no text at character {error.start}: {options[error.start]!a}") from None
    return _split(options)


def _with_precisions(options, text, headers, owner):
    """Return the options with a macro for each setting ``fp32_precision`` of a device, unless nothing reads them: then
    a change of the setting compiles nothing anew."""
    texts = [text, options.definitions, *(header.content for header in headers.files)]
    if headers.is_whole and not any(b"FP32_PRECISION" in each for each in texts):
        return options
    lines = [f"#define L0RT_{word.upper()} {number}\n" for number, word in enumerate(PRECISIONS)]
    for place, kind in OPERATIONS.items():
        macro, word = f"L0RT_{kind}FP32_PRECISION", config.effective(f"{owner}.{place}fp32_precision")
        lines.append(f"#ifndef {macro}\n#define {macro} {PRECISIONS.index(word)}\n#endif\n")
    return options._replace(definitions=options.definitions + "".join(lines).encode())


_found: dict[tuple, Compiler] = {}  # what the search depends on -> the compiler, and never that there is none


def compiler() -> Compiler:
    """Return the `Compiler` that is used; CompilerNotFoundError if none is installed."""
    chosen = config.get("compiler")
    known = _found.get((chosen, os.environ.get("LD_LIBRARY_PATH")))
    if known is not None:
        return known
    for kind in COMPILERS if chosen == "auto" else (chosen,):
        path = COMPILERS[kind].find()
        if path is not None:
            try:
                known = Compiler(kind, path, COMPILERS[kind].identity(path))
            except OSError as error:
                raise ModuleBuildError(f"the compiler {path} cannot be read: {error.strerror}") from None
            _found[chosen, os.environ.get("LD_LIBRARY_PATH")] = known
            return known
    reason = "" if ocloc.child_command() else f"; {ocloc.NO_PYTHON.format(sys.executable)}"
    ways = {"ocloc": f"libocloc ({ocloc.PACKAGE}){reason}", "zig": f"the package ziglang ({zig.PACKAGE})"}
    told = " or ".join(ways.values())
    if chosen != "auto":
        told = f"{ways[chosen]}, which the setting compiler={chosen} (L0RT_COMPILER) asks for"
    raise CompilerNotFoundError(
        f"l0rt.compile needs a compiler of OpenCL C, and none was found. Install {told}. "
        "Without one, l0rt.Module loads SPIR-V that was compiled elsewhere"
    )


@lru_cache(1)
def _own_identity():
    """Return what distinguishes this code from another version's, which may do otherwise with the same source."""
    files: list[Any] = [__file__, *(module.__file__ for module in (includes, ocloc, spirv, zig))]
    found = [os.stat(file) for file in (files if os.path.isfile(__file__) else [sys.executable])]  # else it is frozen
    return repr([(facts.st_size, facts.st_mtime_ns) for facts in found])


def target_of(about: Mapping[str, Any]) -> str | None:
    """Return the device as libocloc names it; None where every device will do."""
    return f"{about['device_id']:#06x}" if about["vendor_id"] == INTEL and not about["is_software"] else None


def _work_of(shown, text, headers, options, target, about=None, constants=None):
    chosen = compiler()
    parts = [_own_identity(), chosen.identity, target, shown, text, options.definitions]
    parts += [*options.language, "", *headers.folders, ""]
    for header in headers.files:
        parts += header
    spirv_key = cache.digest(*parts)
    key = spirv_key
    if about is not None and keeps_native(about):
        given = sorted((str(number), repr(value)) for number, value in (constants or {}).items())
        key = cache.digest(spirv_key, repr(sorted(about.items())), options.driver, repr(given))
    return Work(shown, text, headers, options, chosen, target, spirv_key, key, headers.is_whole)


def keeps_native(about: Mapping[str, Any]) -> bool:
    """Whether the driver's own code of a module is worth keeping: the CPU driver's is the SPIR-V again."""
    return not about["is_software"]


_kept: dict[str, Compiled] = {}
_keeping = threading.RLock()
_working = WeakValueDictionary[str, threading.RLock]()  # who compiles holds the lock of the SPIR-V's key


def _forked():
    global _keeping, _working
    _keeping, _working = threading.RLock(), WeakValueDictionary()


os.register_at_fork(after_in_child=_forked)


def _keep(key, compiled):
    """Keep a result in memory, and drop the oldest if there are too many."""
    with _keeping:
        _kept[key] = compiled
        total = sum(len(each.spirv) + len(each.native or b"") for each in _kept.values())
        while _kept and (len(_kept) > MOST_KEPT or total > MOST_BYTES):
            oldest = _kept.pop(next(iter(_kept)))
            total -= len(oldest.spirv) + len(oldest.native or b"")


def _turn(key):
    """Return the lock of a key, which lives while a thread has it: other work never waits."""
    with _keeping:
        return _working.setdefault(key, threading.RLock())


def _made(work, finish):
    """Return what ``finish`` makes of the SPIR-V, and where that comes from: the cache, or the compiler, now.

    Other threads and processes with the same work wait.
    """
    with _turn(work.spirv_key):
        compiled = _kept.get(work.key)
        if compiled is not None:
            return finish(compiled), "taken from memory"
        folder = _usable(cache.chosen) if work.is_cached else None
        compiled = _loaded(folder, work.key)
        if compiled is None and folder is not None and not _usable(folder.prepare):
            folder = None
        with nullcontext() if folder is None or compiled is not None else folder.locked(work.spirv_key):
            how = "taken from the cache"
            if compiled is None:  # another process may have made it meanwhile, and another work of the SPIR-V a part
                compiled = _loaded(folder, work.key) or _loaded(folder, work.spirv_key)
            if compiled is None:
                compiled, how = _compiled(work, folder), f"compiled by {work.compiler.kind}"
            return finish(compiled, folder), how


def _usable(ask):
    """Return what ``ask`` finds; None if the cache cannot be used, of which a warning tells once."""
    try:
        return ask()
    except cache.Unusable as why:
        cache.warn_once(why)
        return None


def _loaded(folder, key):
    parts = folder and folder.load(key)
    if not parts:
        return None
    spirv, native, log = parts
    return Compiled(spirv, log.decode(), native or None)


def _stored(folder, key, compiled):
    try:
        folder.store(key, compiled.spirv, compiled.native or b"", compiled.log.encode())
    except cache.Unusable as why:
        cache.warn_once(why)


def _spirv_of(work, compiled, folder=None):
    if work.is_cached:
        _keep(work.key, compiled)
    return compiled


def _module_of(work, index, constants, compiled, folder=None):
    """Return a module of what was compiled. What the driver makes of SPIR-V is kept, where it is worth it."""
    if compiled.native is not None:
        try:
            return Module(compiled, index, work.options.driver)
        except ModuleBuildError:  # the driver takes it no more: once more from the beginning
            compiled = Compiled(compiled.spirv, compiled.log)
    module = Module(compiled, index, work.options.driver, constants)
    if work.key != work.spirv_key:
        with suppress(L0Error):
            compiled = Compiled(compiled.spirv, compiled.log, module.native_binary())
            if folder is not None:
                _stored(folder, work.key, compiled)
    if config.get("cache_size") and work.is_cached and _kept.get(work.key) is not compiled:
        _keep(work.key, compiled)
    return module


# Words that a call may follow, but no declaration.
_NO_TYPES = "return|else|do|case|goto|sizeof"


def _declaration(name, text):
    """Return the number of the line that declares a function; None if no line of the text does."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", lambda comment: re.sub(r"[^\n]", " ", comment[0]), text, flags=re.DOTALL)
    found = re.search(rf"\b(?!(?:{_NO_TYPES})\b)\w+[\s*]+{re.escape(name)}\s*\(", text)
    return None if found is None else 1 + text.count("\n", 0, found.end())


def _without_body(work, imports):
    """Return an error for each function that the source declares and calls, and that has no body.

    Drivers have the functions of OpenCL C and of its extensions, whose names are mangled or reserved.
    """
    errors = []
    texts = [(work.shown, work.text), *((header.shown, header.content) for header in work.headers.files)]
    for name in imports:
        mangled = re.match(r"_Z(\d+)", name)
        plain = name[mangled.end() :][: int(mangled[1])] if mangled else name
        if plain.startswith(("__", "intel_", "llvm.")):
            continue
        lines = ((shown, _declaration(plain, text.decode("utf-8", "replace"))) for shown, text in texts)
        shown, line = next(((shown, line) for shown, line in lines if line), (work.shown, None))
        if line or not mangled:
            place = shown if line is None else f"{shown}:{line}"
            errors.append(f"{place}: error: the function {plain} is declared and called, but has no body")
    return errors


def _compiled(work, folder):
    """Return what the compiler makes of the source; ModuleBuildError with its log if it refuses."""
    given = [(header.place, includes.lined(header.content, header.shown)) for header in work.headers.files]
    source = includes.lined(work.options.definitions, "<options>") + includes.lined(work.text, work.shown)
    options = [*work.options.language]
    for place in work.headers.folders:
        options += ["-I", place]
        if not work.headers.is_whole and place.startswith(f"{includes.DISK}/"):
            options += ["-I", place[len(includes.DISK) :]]
    output = COMPILERS[work.compiler.kind].build(work.compiler.path, source, given, options, work.target)
    log = output.log
    if output.code is not None:
        missing = _without_body(work, Spirv(output.code).imports)
        log = "\n".join([*missing, output.log])
    if output.code is None or missing:
        count = len(re.findall(r"\berror: ", log))
        errors = f", {count} error{'s' if count != 1 else ''}" if count else ""
        told = log if len(log) <= MOST_TOLD else f"{log[:MOST_TOLD]}\n..."
        raise ModuleBuildError(f"{work.shown} does not compile{errors}:\n{told}", None, log)
    compiled = Compiled(output.code, output.log)
    if folder is not None:
        _stored(folder, work.spirv_key, compiled)
    return compiled
