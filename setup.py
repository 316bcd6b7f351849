# SPDX-License-Identifier: Apache-2.0
"""Builds the Cython modules and, beside them, the CPU driver: a plain shared library."""

import gc
import hashlib
import logging
import multiprocessing
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from glob import glob
from itertools import count
from typing import NamedTuple

import Cython
from Cython.Build import cythonize
from Cython.Build.Dependencies import create_dependency_tree
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.editable_wheel import editable_wheel

DIRECTIVES = {
    "language_level": 3,
    "embedsignature": True,
    "embedsignature.format": "clinic",  # names no C types; inspect.signature finds it without binding too
    "always_allow_keywords": True,
    "allow_none_for_extension_args": False,
    "auto_pickle": False,
    "binding": True,
    "freethreading_compatible": False,
}
FLAVOUR = os.environ.get("L0RT_BUILD") or "release"
FLAVOURS = {
    "release": ["-O2", "-fno-tree-slp-vectorize", "-g0"],
    "debug": ["-O0", "-g"],
    "tsan": ["-O1", "-g", "-fsanitize=thread"],
}
if FLAVOUR not in FLAVOURS:
    raise SystemExit(f"L0RT_BUILD={FLAVOUR!r} is not valid: expected debug, tsan, or nothing for a release build")
if FLAVOUR == "debug":
    DIRECTIVES["linetrace"] = True
# Code that mostly calls Python takes as many instructions, within 1 %, with the functions inlined that -O2 inlines and
# little more; it compiles in two thirds of the time. What runs without Python is in these packages.
FAST = ("l0rt/core/", "l0rt/runtime/alloc/", "l0rt/runtime/streams/", "l0rt/bench/")
QUICK = "-O1 -finline-small-functions -fpartial-inlining -findirect-inlining -foptimize-sibling-calls -fstrict-aliasing"
QUICK_FLAGS = [*QUICK.split(), "-fpeephole2", "-fcaller-saves"] if FLAVOUR == "release" else []
C_FLAGS = [*FLAVOURS[FLAVOUR], "-std=gnu11", "-fvisibility=hidden", "-Wno-unused-function"]
TRACEBACK = ["-include", "include/l0rt/traceback.h"]
# One read-only segment a library instead of three: an import maps, and reads, fewer pages of each.
L_FLAGS = ["-Wl,-O1", "-Wl,-z,noseparate-code", *(["-fsanitize=thread"] if FLAVOUR == "tsan" else [])]
# Packages whose files lie elsewhere in the source tree.
ELSEWHERE = {"l0rt.include.l0rt": "include/l0rt", "l0rt.bench.trace_data": "bench/traces"}
DRIVER_FOLDER = "l0rt/cpu_driver"
CPU_DRIVER = "libze_l0rt_cpu.so"
STAND_IN = "loader/libze_loader.so.1"  # beside the driver
STAND_IN_SOURCES = sorted(glob(f"{DRIVER_FOLDER}/loader/*.c"))
DRIVER_SOURCES = sorted({*glob(f"{DRIVER_FOLDER}/**/*.c", recursive=True)} - {*STAND_IN_SOURCES})
# What reads SPIR-V is compiled for the driver, and linked into a module too, which includes its headers.
READER = "l0rt/launch/spirv.c"
READER_SOURCES = [
    f"{DRIVER_FOLDER}/spirv/decode/{name}.c"
    for name in ("arena", "check", "constant", "describe", "function", "module", "type")
]
# The modules of each of these packages are linked into one library, where l0rt/_base/libraries.py finds them: a third
# of what an import of l0rt takes is the loading of libraries, one by one.
RUNTIME = [f"l0rt.runtime.{name}" for name in ("alloc", "streams", "current", "memory")]
SHARING = ("l0rt._base", "l0rt.ze", "l0rt.core", "l0rt.launch", "l0rt.buffers", "l0rt.kernels", "l0rt.graphs", *RUNTIME)
LIBRARY = "modules"
NOTES = "l0rt/libraries.txt"
DESCRIBING = {"egg_info", "dist_info", "sdist"}  # commands that build nothing; pip calls two of them before it builds
# Neither cythonize nor build_ext rebuilds when only a directive or a flag has changed: each set has its own folder.
SETTINGS = repr((sorted(DIRECTIVES.items()), C_FLAGS, QUICK_FLAGS, L_FLAGS, Cython.__version__))
BUILD = os.path.join("build", hashlib.sha1(SETTINGS.encode()).hexdigest()[:12])
BUILD_C = os.path.join(BUILD, "c")
HANDLERS = 1 << 30  # bytes of other source that take as long to compile as the handlers of kernels: more than there are


class Unit(NamedTuple):
    """A source file, and how it is compiled."""

    source: str
    headers: list
    include_dirs: list
    flags: list


def is_older(target, sources):
    """Return whether a file is older than any of its sources, or not there."""
    return not os.path.exists(target) or os.path.getmtime(target) < max(map(os.path.getmtime, sources))


def module_name(source):
    return os.path.splitext(os.path.basename(source))[0]


class BuildExt(build_ext):
    """build_ext that compiles the CPU driver too: C11 and pthreads, no Python in it."""

    def finalize_options(self):
        if not DESCRIBING.intersection(self.distribution.commands):
            self.distribution.ext_modules = cythonized()
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self):
        super().run()
        self.note_libraries()
        self.link_cpu_driver()

    def get_ext_filename(self, fullname):
        """Give a library of several modules a name with a dot: it is no module itself."""
        found = super().get_ext_filename(fullname)
        return found.replace(f"{LIBRARY}.", f"linked.{LIBRARY}.") if fullname.rpartition(".")[2] == LIBRARY else found

    def build_extensions(self):
        """Compile what has changed, of the CPU driver too, and link the extensions."""
        units = [module_unit(source, ext) for ext in self.extensions for source in ext.sources]
        self.compile([*units, *driver_units(), *stand_in_units()])
        with ThreadPoolExecutor(self.parallel) as workers:
            list(workers.map(self.build_extension, self.extensions))

    def compile(self, units):
        """Compile the units whose objects are older than they, those that take longest first."""
        stale = [unit for unit in units if is_older(*self.objects([unit.source]), [unit.source, *unit.headers])]
        stale.sort(key=lambda unit: os.path.getsize(unit.source) + HANDLERS * ("handlers" in unit.source), reverse=True)
        numbers = count(1)

        def compiled(unit):
            print(f"[{next(numbers):3}/{len(stale)}] Compiling {unit.source.removeprefix(f'{BUILD_C}/')}", flush=True)
            self.compiler.compile(
                [unit.source],
                output_dir=self.build_temp,
                include_dirs=unit.include_dirs,
                extra_postargs=unit.flags,
            )

        with ThreadPoolExecutor(self.parallel) as workers:
            list(workers.map(compiled, stale))

    def objects(self, sources):
        return self.compiler.object_filenames(sources, output_dir=self.build_temp)

    def link(self, target, sources, flags):
        """Link a library, if it is older than its objects."""
        objects = self.objects(sources)
        if is_older(target, objects):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            self.compiler.link_shared_object(objects, target, extra_postargs=flags)

    def build_extension(self, ext):
        """Link an extension, which may be a library of several modules."""
        is_reader = any(source.endswith(READER) for source in ext.sources)
        sources = [*ext.sources, *(READER_SOURCES if is_reader else ())]
        self.link(self.get_ext_fullpath(ext.name), sources, ext.extra_link_args)

    def note_libraries(self):
        """Write down, for l0rt/_base/libraries.py, which modules are in which package's library."""
        shared = [ext for ext in self.extensions if ext.name.endswith(f".{LIBRARY}")]
        rows = [[ext.name.rpartition(".")[0], *map(module_name, ext.sources)] for ext in shared]
        for folder in (self.build_lib, *([os.curdir] if self.inplace else [])):
            if rows:
                with open(os.path.join(folder, NOTES), "w", encoding="utf-8") as notes:
                    notes.writelines(f"{' '.join(row)}\n" for row in rows)

    def link_cpu_driver(self):
        """Link the CPU driver, and the loader that has no other driver."""
        folder = os.path.join(self.build_lib, DRIVER_FOLDER)
        # -Bsymbolic: a driver that exports zeX and is hosted by the loader must find its own zeX, not the loader's.
        driver = ["-pthread", "-lm", "-Wl,-Bsymbolic"]
        stand_in = ["-Wl,--no-as-needed", f"-L{folder}", f"-l:{CPU_DRIVER}", "-Wl,-rpath,$ORIGIN/.."]
        stand_in.append(f"-Wl,-soname,{os.path.basename(STAND_IN)}")
        for name, sources, flags in (CPU_DRIVER, DRIVER_SOURCES, driver), (STAND_IN, STAND_IN_SOURCES, stand_in):
            if not sources:
                continue
            self.link(os.path.join(folder, name), sources, [*flags, *L_FLAGS])
            if self.inplace:
                place = os.path.join(DRIVER_FOLDER, name)
                shutil.copy2(os.path.join(folder, name), f"{place}.new")
                os.replace(f"{place}.new", place)  # a running process has the file mapped that was there

    def copy_extensions_to_source(self):
        # By their times, modules of the flavour that was built before would stay: they may be newer.
        force, self.force = self.force, True
        try:
            super().copy_extensions_to_source()
        finally:
            self.force = force


class EditableWheel(editable_wheel):
    """An editable installation that is a folder on sys.path, where Cython finds the .pxd files of foreign cimports."""

    def finalize_options(self):
        # What lies elsewhere in the source tree is found there (l0rt.get_include(), l0rt.bench.traces). With one
        # folder for all packages setuptools writes a .pth file; otherwise import hooks, which Cython cannot read.
        packages = self.distribution.packages
        self.distribution.packages = [name for name in packages if name not in ELSEWHERE]
        self.distribution.package_dir = {"": "."}
        super().finalize_options()


def module_unit(source, ext):
    is_reader = source.endswith(READER)
    headers = [*ext.depends, *(glob(f"{DRIVER_FOLDER}/spirv/**/*.h", recursive=True) if is_reader else ())]
    include_dirs = [*ext.include_dirs, *([DRIVER_FOLDER] if is_reader else ())]
    return Unit(source, headers, include_dirs, ext.extra_compile_args)


def driver_units():
    headers = glob(f"{DRIVER_FOLDER}/**/*.h", recursive=True) + glob("include/l0rt/*.h")
    # Handlers of kernels are short: a reduction takes up to 1.5 times as long by where they begin in a cache line.
    flags = [*C_FLAGS, "-fPIC", "-pthread", "-D_GNU_SOURCE", "-falign-functions=64"]
    return [Unit(source, headers, ["include", DRIVER_FOLDER], flags) for source in DRIVER_SOURCES]


def stand_in_units():
    return [Unit(source, glob("include/l0rt/*.h"), ["include"], [*C_FLAGS, "-fPIC"]) for source in STAND_IN_SOURCES]


def extensions():
    """Return an extension module for each .pyx of the package."""
    return [
        Extension(
            os.path.splitext(source)[0].replace("/", "."),
            [source],
            include_dirs=["include"],
            extra_compile_args=[*C_FLAGS, *([] if source.startswith(FAST) else QUICK_FLAGS), *TRACEBACK],
            extra_link_args=L_FLAGS,
            depends=glob("include/l0rt/*.h"),
        )
        for source in sorted(glob("l0rt/**/*.pyx", recursive=True))
    ]


def cythonized():
    """Translate to C what has changed since the last build; return the extensions to link.

    cythonize by itself would translate everything again for each pip command: it compares with the time of Cython's own
    declarations too, and pip installs those anew.
    """
    modules, stale = extensions(), []
    tree = create_dependency_tree(quiet=True)
    for module in modules:
        (source,) = module.sources
        target = f"{BUILD_C}/{os.path.splitext(source)[0]}.c"
        ours = [path for path in tree.all_dependencies(source) if not os.path.isabs(path)]
        if is_older(target, ours):
            stale.append(module)
        else:
            module.sources = [target]
    # Cython allocates most of its objects for good. Collecting garbage takes half of its time, and these frees little.
    thresholds = gc.get_threshold()
    gc.set_threshold(500_000, 50, 1000)
    multiprocessing.set_start_method("fork", force=True)  # workers inherit the thresholds
    try:
        translated = cythonize(
            stale, build_dir=BUILD_C, compiler_directives=DIRECTIVES, nthreads=os.cpu_count() or 1, force=True
        )
    finally:
        gc.set_threshold(*thresholds)
    for module in translated:
        name_constructors(module.name, module.sources[0])
    return shared_libraries([module for module in modules if module not in stale] + translated)


def shared_libraries(modules):
    """Return the extensions to link: those of a package that shares a library are one."""
    found = {}
    for module in modules:
        package = module.name.rpartition(".")[0]
        name = f"{package}.{LIBRARY}" if package in SHARING else module.name
        if name in found:
            found[name].sources += module.sources
        else:
            module.name = name
            found[name] = module
    return list(found.values())


# Whose users know another name.
PUBLIC_NAMES = {"XpuStream": "Stream", "xpu_device_index": "device"}


def name_constructors(module, path):
    """Let errors about a constructor's arguments name the class: Cython says __cinit__ of each."""
    with open(f"{module.replace('.', '/')}.pyx") as source:
        classes = re.findall(r"^cdef class (\w+)", source.read(), re.MULTILINE)
    with open(path) as generated:
        before = generated.read()
    parts = re.split(r"(?=^static \w+ __pyx_p[wf]_\w+\([^;]*$)", before, flags=re.MULTILINE)
    for i, part in enumerate(parts):
        for name in classes:
            if re.match(rf"static int __pyx_pw_\w*_{len(name)}{name}_\d+__cinit__\(", part):
                parts[i] = part.replace('"__cinit__"', f'"{PUBLIC_NAMES.get(name, name)}"')
    after = "".join(parts)
    if after != before:
        with open(path, "w") as generated:
            generated.write(after)


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # a line for each file that is copied: what takes time says so by itself
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        raise SystemExit("l0rt needs a C compiler to build: on Debian or Ubuntu, apt install gcc")
    setup(
        packages=[os.path.dirname(f).replace("/", ".") for f in glob("l0rt/**/__init__.py", recursive=True)]
        + list(ELSEWHERE),
        package_dir={"l0rt": "l0rt", **ELSEWHERE},
        package_data={
            "": ["*.pxd", "*.h", "*.hpp", "*.cpp", "py.typed", "*.pyi", "*.npz", "*.spv", "*.html", "*.css", "*.js"]
        },
        exclude_package_data={"": ["*.c", "*.pyx"]},
        ext_modules=extensions(),
        cmdclass={"build_ext": BuildExt, "editable_wheel": EditableWheel},
        options={"build": {"build_base": BUILD}},
        zip_safe=False,
    )
