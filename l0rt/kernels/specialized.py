# SPDX-License-Identifier: Apache-2.0
"""Specialised dispatch: variants of one source, of which the arguments of each launch choose.

A variant is built when a launch first needs it, once for all threads. A launch whose variant is there comes no further
than `Dispatcher`.
"""

import math
import os
import re
import shlex
import threading
from array import array
from collections import namedtuple

import numpy as np

from l0rt._base.integers import whole_number
from l0rt._base.paths import plain_path, read_file
from l0rt.errors import CompilerNotFoundError, ModuleBuildError
from l0rt.kernels import compiler, includes
from l0rt.kernels.kernel import Dispatcher
from l0rt.kernels.module import MOST_BYTES, Compiled, Module
from l0rt.kernels.module import facts as device_facts
from l0rt.launch.spirv import is_spirv
from l0rt.runtime.streams.devices import lazy
from l0rt.runtime.streams.naming import device as device_name

__all__ = ["SpecializedKernel", "SpecializedModule", "specialize"]

ELF = b"\x7fELF"  # what native binaries are
MACRO = re.compile(r"[A-Za-z_]\w*", re.ASCII)
MOST_SHOWN = 200  # characters of a variant's facts in a message

CacheInfo = namedtuple("CacheInfo", "hits misses builds variants")
CacheInfo.__doc__ = """What a specialised module has built and launched.

Parameters
----------
hits : int
    The launches whose variant was there.
misses : int
    The launches that built a variant, or waited for one that another thread was building.
builds : int
    The variants that were built, on all devices.
variants : tuple of VariantInfo
    The same for each variant: those of ``specialize_on`` in their order, then the generic one.
"""
VariantInfo = namedtuple("VariantInfo", "hits misses builds")
Variant = namedtuple("Variant", "shown options constants")
Variant.__doc__ = "What a variant is built with: its facts as a text (empty: the generic one), options and constants."


def specialize(source, specialize_on, options="", device=None, *, include_dirs=(), headers=None, constants=None):
    """Make a module whose launches choose among variants of one source.

    Each variant is built with facts that hold for its launches, such as a fixed size, so that the compiler can unroll
    loops and drop branches. It is built at its first launch, and once.

    Parameters
    ----------
    source : str, bytes or path
        OpenCL C as `l0rt.compile` takes it, or SPIR-V: bytes, or a path object of a file.
    specialize_on : list of (predicate, facts)
        A predicate is called with the arguments of a launch and returns a bool. The first that returns True chooses.
        Its facts are a dict: a str is a macro and its value (OpenCL C only), an int is the SpecId of a specialisation
        constant and its value, and ``"options"`` is a text of further options. If none returns True, the launch
        takes the generic variant, which is built without facts.
    options : str, optional
        Options of all variants.
    device : int, str, device or None, optional
        The device. None: each device that launches gets its own variants.
    include_dirs : list of str or path, optional
        As for `l0rt.compile`.
    headers : dict of str to str or bytes, optional
        As for `l0rt.compile`.
    constants : dict of int to number, optional
        Specialisation constants of all variants. A variant's facts go before them.

    Returns
    -------
    SpecializedModule

    Raises
    ------
    ValueError
        The source is a native binary, or a fact is none that it can have.
    ModuleBuildError
        The SPIR-V is not valid. What does not compile is told by the launch that needs it.
    """
    return SpecializedModule(
        source, specialize_on, options, device, include_dirs=include_dirs, headers=headers, constants=constants
    )


class SpecializedModule:
    """A module whose launches choose among variants of one source: see `specialize`.

    ``module["name"]`` is a `SpecializedKernel`. Several threads may launch it; those that need the same variant at the
    same time wait for the one that builds it, and get its error if it fails. The next launch tries again.

    Parameters
    ----------
    source : str, bytes or path
        OpenCL C or SPIR-V.
    specialize_on : list of (predicate, facts)
        When to take which variant, and with what it is built.
    options : str, optional
        Options of all variants.
    device : int, str, device or None, optional
        The device. None: each device that launches gets its own variants.
    include_dirs : list of str or path, optional
        As for `l0rt.compile`.
    headers : dict of str to str or bytes, optional
        As for `l0rt.compile`.
    constants : dict of int to number, optional
        Specialisation constants of all variants.
    """

    def __init__(
        self, source, specialize_on, options="", device=None, *, include_dirs=(), headers=None, constants=None
    ):
        code = _code_of(source)
        if code is not None and (include_dirs or headers):
            raise ValueError("SPIR-V takes no include_dirs and no headers: it is compiled already")
        if constants is not None and not hasattr(constants, "items"):
            raise TypeError(f"constants must be a dict of SpecId to value, got {type(constants).__name__}")
        common = dict(constants.items()) if constants is not None else {}
        predicates, variants = [], list[Variant]()
        for at, entry in enumerate(_entries(specialize_on)):
            predicate, facts = _pair(at, entry)
            predicates.append(predicate)
            variants.append(_variant(at, facts, options, common, code))
        variants.append(_variant(None, {}, options, common, code))
        if code is None:
            source = bytes(source) if isinstance(source, (bytearray, memoryview)) else source
            headers, include_dirs = includes.given_headers(headers), includes.given_folders(include_dirs)

            def build(variant, index):
                return compiler.compile(
                    source,
                    variant.options,
                    index,
                    include_dirs=include_dirs,
                    headers=headers,
                    constants=variant.constants,
                )
        else:

            def build(variant, index):
                return Module(code, index, variant.options, variant.constants)

        fixed = None if device is None else device_facts(device)[0]
        self._built = Built(variants, tuple(predicates), build, fixed)
        self._kernels = {}

    @property
    def device(self):
        """The device that the module was made for; None: each launch has its own."""
        fixed = self._built.fixed
        return None if fixed is None else device_name(lazy.device_type, fixed)

    @property
    def kernels(self):
        """The names of the kernels, as the generic variant has them, which is built for it."""
        return self._built.module(len(self._built.predicates), self._built.index()).kernels

    @property
    def closed(self):
        """Whether the module was closed."""
        return self._built.closed

    def prebuild(self, device=None):
        """Build all variants now, the generic one too, so that no launch has to wait.

        Parameters
        ----------
        device : int, str, device or None, optional
            The device. None is the module's, or the current one if it has none.

        Returns
        -------
        SpecializedModule
            This one.

        Raises
        ------
        ModuleBuildError
            A variant does not build. The variants before it stay.
        ValueError
            The module was made for another device.
        """
        built = self._built
        index = built.index() if device is None else device_facts(device)[0]
        if built.fixed is not None and index != built.fixed:
            raise ValueError(f"the module is for {self.device}, got {device!r}")
        for number in range(len(built.variants)):
            built.module(number, index)
        return self

    def cache_info(self):
        """Return how often launches have found their variant, and what was built.

        Returns
        -------
        CacheInfo
            ``hits``, ``misses``, ``builds``, and ``variants`` with the three for each variant.
        """
        built = self._built
        variants = tuple(map(VariantInfo, built.hits, built.misses, built.builds))
        return CacheInfo(*(sum(column) for column in zip(*variants, strict=True)), variants)

    def close(self):
        """Close all variants. No kernel can be launched any more; launches that still run end first.

        Nothing waits. Closing twice is harmless.
        """
        self._built.close()

    def __getitem__(self, name):
        if not isinstance(name, str):
            raise TypeError(f"a kernel's name must be a str, got {type(name).__name__}")
        self._built.check_open()
        found = self._kernels.get(name)
        if found is None:
            found = self._kernels.setdefault(name, _kernel(self._built, name))
        return found

    def __contains__(self, name):
        return isinstance(name, str) and name in self.kernels

    def __iter__(self):
        return iter(self.kernels)

    def __len__(self):
        return len(self.kernels)

    def __enter__(self):
        self._built.check_open()
        return self

    def __exit__(self, kind, value, trace):
        self.close()

    def __reduce__(self):
        raise TypeError("a SpecializedModule cannot be pickled: pickle its source")

    def __repr__(self):
        if self.closed:
            return "<l0rt.SpecializedModule closed>"
        count = len(self._built.variants)
        return f"<l0rt.SpecializedModule: {sum(self._built.builds)} built of {count} variants for each device>"


class SpecializedKernel(Dispatcher):
    """A kernel of a specialised module: ``module["name"]``.

    ``kernel[groups, group_size](*args)`` and `launch` launch it as they do a `Kernel`. The arguments choose the
    variant.
    """

    __slots__ = ("name", "_built", "_ready")

    def __init__(self, *args, **kwargs):
        raise TypeError("a kernel is a module's: module[name]")

    def select(self, *args, device=None):
        """Return the kernel that a launch with these arguments runs. Its variant is built if it is not there.

        Parameters
        ----------
        *args
            The arguments of a launch.
        device : int, str, device or None, optional
            The device. None is the module's, or the current one if it has none.

        Returns
        -------
        Kernel
        """
        built = self._built
        if device is None:
            index = built.index()
        else:
            index = device_facts(device)[0]
            if built.fixed is not None and index != built.fixed:
                raise ValueError(f"the module is for {device_name(lazy.device_type, built.fixed)}, got {device!r}")
        return self._find(self._number(args), index)

    def launch(self, *args, groups=None, group_size=None, global_size=None, stream=None, cooperative=False):
        """Launch the kernel in the order of a stream.

        Parameters
        ----------
        *args
            The arguments, of which the predicates choose the variant.
        groups : int or tuple of int, optional
            As for `Kernel.launch`.
        group_size : int or tuple of int, optional
            As for `Kernel.launch`.
        global_size : int or tuple of int, optional
            As for `Kernel.launch`.
        stream : Stream or None, optional
            The stream. None is the current one of the module's device, or of the current device if it has none.
        cooperative : bool, optional
            As for `Kernel.launch`.

        Raises
        ------
        ModuleBuildError
            The variant does not build.
        TypeError
            A predicate does not return a bool, or an argument does not fit.
        ValueError
            As for `Kernel.launch`.
        """
        self._chosen(args, stream).launch(
            *args,
            groups=groups,
            group_size=group_size,
            global_size=global_size,
            stream=stream,
            cooperative=cooperative,
        )

    def _missed(self, number, index):
        """Return the kernel of a launch that did not find its own, and count it."""
        built = self._built
        index = built.index() if index < 0 or not lazy.initialized else index
        counts = built.hits if built.has(number, index) else built.misses
        kernel = self._find(number, index)
        counts[number] += 1
        return kernel

    def _find(self, number, index):
        """Return the kernel of a variant, which is built if it is not there."""
        built = self._built
        row = _row(self._ready, index, len(built.variants))
        if row[number] is None:
            row[number] = built.module(number, index)[self.name]
        return row[number]

    def __call__(self, *args):
        """Say how a kernel is launched."""
        raise TypeError(f"a launch needs its sizes: {self.name}[groups, group_size](...), or {self.name}.launch(...)")

    def __reduce__(self):
        raise TypeError("a SpecializedKernel cannot be pickled: pickle the source of its module")

    def __repr__(self):
        return f"<l0rt.SpecializedKernel {self.name}>"


def _kernel(built, name):
    ready: dict[int, list] = {}
    fixed = -1 if built.fixed is None else built.fixed
    made = SpecializedKernel.__new__(SpecializedKernel, built.predicates, ready, built.hits, fixed)
    made.name, made._built, made._ready = name, built, ready
    return made


def _row(table, index, count):
    """Return the list of a device's index, with a place for each variant."""
    row = table.get(index)
    return table.setdefault(index, [None] * count) if row is None else row


class Building:
    """A build in progress: who does it, and how it ended."""

    __slots__ = ("thread", "process", "over", "error")

    def __init__(self):
        self.thread, self.process = threading.get_ident(), os.getpid()
        self.over, self.error = threading.Event(), None


class Built:
    """The variants of a module, and what was built of them. Kernels keep it, and do not need the module's object."""

    def __init__(self, variants, predicates, build, fixed):
        self.variants = variants
        self.predicates = predicates
        self.fixed = fixed  # the device's index, None: each
        self.closed = False
        self.hits, self.misses, self.builds = (array("Q", bytes(8 * len(variants))) for _ in range(3))
        self._build = build
        self._modules = {}  # device's index -> a module by variant, or None
        self._building = {}  # (variant, device) -> Building

    def index(self):
        """Return the index of the module's device, or of the current one."""
        return device_facts(None)[0] if self.fixed is None else self.fixed

    def check_open(self):
        if self.closed:
            raise ValueError("the module was closed")

    def has(self, number, index):
        return _row(self._modules, index, len(self.variants))[number] is not None

    def module(self, number, index):
        """Return the module of a variant. If another thread builds it, wait for that thread; else build it."""
        key, modules = (number, index), _row(self._modules, index, len(self.variants))
        while True:
            self.check_open()
            if modules[number] is not None:
                return modules[number]
            mine = Building()
            try:
                other = self._building.setdefault(key, mine)
                if other is mine:
                    if modules[number] is None:  # else somebody has just ended it
                        modules[number] = made = self._made(number, index)
                        if self.closed:  # meanwhile
                            made.close()
                    continue
            except BaseException as error:
                mine.error = error
                raise
            finally:
                if self._building.get(key) is mine:
                    del self._building[key]
                mine.over.set()
                mine = None  # which has the error, whose traceback has this frame
            self._wait(key, other)

    def _made(self, number, index):
        variant = self.variants[number]
        try:
            made = self._build(variant, index)
        except CompilerNotFoundError:
            raise
        except ModuleBuildError as error:
            if not variant.shown:
                raise
            told = f"the variant {variant.shown} (specialize_on[{number}]): {error}"
            raise ModuleBuildError(told, error.code, error.log) from None
        self.builds[number] += 1
        return made

    def _wait(self, key, other):
        """Wait until another thread's build is over, and raise its error."""
        if other.process != os.getpid():  # this is a forked child, without the thread that built
            if self._building.get(key) is other:
                del self._building[key]
            return
        if other.thread == threading.get_ident():
            raise RuntimeError(
                f"variant {key[0]} is being built by this thread: what runs meanwhile, such as a "
                "signal handler or a handler of warnings, cannot launch it"
            )
        other.over.wait()
        if isinstance(other.error, Exception):  # an interrupt was for the other thread alone
            try:
                raise other.error
            finally:
                other = None

    def close(self):
        self.closed = True
        for modules in list(self._modules.values()):
            for module in modules:
                if module is not None:
                    module.close()


def _code_of(source):
    """Return the SPIR-V of a source; None if the source is OpenCL C, which is checked too."""
    data = b""
    if isinstance(source, os.PathLike):
        data = read_file(plain_path(source), MOST_BYTES)
    elif isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)
    if data.startswith(ELF):
        raise ValueError("a native binary cannot be specialised: specialize takes OpenCL C or SPIR-V")
    if not is_spirv(data):
        compiler._source_of(source)
        return None
    code = Compiled(data)
    code.told()  # no driver gets what is not whole
    return code


def _entries(specialize_on):
    if isinstance(specialize_on, (str, bytes)) or hasattr(specialize_on, "items"):
        raise TypeError(f"specialize_on must be a list of (predicate, facts), got {type(specialize_on).__name__}")
    try:
        return list(specialize_on)
    except TypeError:
        told = f"specialize_on must be a list of (predicate, facts), got {type(specialize_on).__name__}"
        raise TypeError(told) from None


def _pair(at, entry):
    if not isinstance(entry, (tuple, list)) or len(entry) != 2:
        raise TypeError(f"specialize_on[{at}] must be (predicate, facts), got {type(entry).__name__}")
    predicate, facts = entry
    if not callable(predicate):
        raise TypeError(f"the predicate of specialize_on[{at}] must be callable, got {type(predicate).__name__}")
    if not hasattr(facts, "items"):
        raise TypeError(f"the facts of specialize_on[{at}] must be a dict, got {type(facts).__name__}")
    return predicate, facts


def _variant(at, facts, options, common, code):
    """Return what a variant is built with, after checking it; ``at`` is None for the generic one."""
    words, constants, shown = [], dict(common), []
    if not isinstance(options, str):
        raise TypeError(f"options must be a str, got {type(options).__name__}")
    for key, value in facts.items():
        if isinstance(key, str) and key == "options":
            if not isinstance(value, str):
                raise TypeError(f"specialize_on[{at}]: options must be a str, got {type(value).__name__}")
            words.append(value)
        elif isinstance(key, str):
            if code is not None:
                raise ValueError(
                    f"specialize_on[{at}]: {key!r} is a macro, and SPIR-V has none any more: its facts "
                    "are specialisation constants, by their SpecId"
                )
            if not MACRO.fullmatch(key):
                raise ValueError(f"specialize_on[{at}]: a macro's name must be one of C, got {key!r}")
            words.append(f"-U {key} -D {shlex.quote(f'{key}={_text(at, key, value)}')}")  # also where `options` has it
        else:
            constants[whole_number(key, f"specialize_on[{at}]: a key that is no macro's name")] = value
        shown.append(f"{key}={value!r:.50}")
    joined = " ".join([options, *words]).strip()
    if code is None:
        compiler._options_of(joined)
    else:
        for number in constants:
            if number not in code.told().constants:
                has = sorted(code.told().constants)
                raise ValueError(f"the module has no specialisation constant {number!r:.50}: it has {has}")
    return Variant(f"{', '.join(shown):.{MOST_SHOWN}}", joined, constants or None)


def _text(at, name, value):
    """Return the text of a macro's value in OpenCL C."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            raise ValueError(f"specialize_on[{at}]: {name} must be finite or a text ('INFINITY'), got {value}")
        text = repr(float(value)) if isinstance(value, float) else f"{value!s}f"
        return text if value >= 0 else f"({text})"
    number = whole_number(value, f"specialize_on[{at}]: {name}, unless it is a str or a float,")
    return str(number) if number >= 0 else f"({number})"
