# SPDX-License-Identifier: Apache-2.0
"""Builds the Cython modules and, beside them, the CPU driver: a plain shared library."""

import hashlib
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from glob import glob

import Cython
from Cython.Build import cythonize
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
C_FLAGS = [*FLAVOURS[FLAVOUR], "-std=gnu11", "-fvisibility=hidden", "-Wno-unused-function"]
# One read-only segment a library instead of three: an import maps, and reads, fewer pages of each.
L_FLAGS = ["-Wl,-O1", "-Wl,-z,noseparate-code", *(["-fsanitize=thread"] if FLAVOUR == "tsan" else [])]
# Packages whose files lie elsewhere in the source tree.
ELSEWHERE = {"l0rt.include.l0rt": "include/l0rt", "l0rt.cli.trace_data": "bench/traces"}
CPU_DRIVER = "libze_l0rt_cpu.so"
STAND_IN = "loader/libze_loader.so.1"  # beside the driver
# The modules of each of these packages are linked into one library, which l0rt/libraries.py finds them in: what an
# import of l0rt takes is to a third the loading of libraries, one by one.
RUNTIME = [f"l0rt.runtime.{name}" for name in ("alloc", "streams", "current", "memory")]
SHARING = ("l0rt.ze", "l0rt.core", "l0rt.kernels", "l0rt.graphs", *RUNTIME)
LIBRARY = "modules"
NOTES = "l0rt/libraries.txt"
DESCRIBING = {"egg_info", "dist_info", "sdist"}  # commands that build nothing; pip calls two of them before it builds
# Neither cythonize nor build_ext rebuilds when only a directive or a flag has changed: each set has its own folder.
SETTINGS = repr((sorted(DIRECTIVES.items()), C_FLAGS, L_FLAGS, Cython.__version__))
BUILD = os.path.join("build", hashlib.sha1(SETTINGS.encode()).hexdigest()[:12])


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
        self.build_cpu_driver()

    def get_ext_filename(self, fullname):
        """Give a library of several modules a name with a dot: it is no module itself."""
        found = super().get_ext_filename(fullname)
        return found.replace(f"{LIBRARY}.", f"linked.{LIBRARY}.") if fullname.rpartition(".")[2] == LIBRARY else found

    def build_extensions(self):
        """Compile what has changed, the largest files of all libraries first, so that no processor waits at the end."""
        sources = [(source, ext) for ext in self.extensions for source in ext.sources]
        sources.sort(key=lambda one: os.path.getsize(one[0]), reverse=True)

        def compiled(one):
            source, ext = one
            self.compiled(source, ext.depends, ext.include_dirs, ext.extra_compile_args)

        with ThreadPoolExecutor(self.parallel) as workers:
            list(workers.map(compiled, sources))
            list(workers.map(self.build_extension, self.extensions))

    def build_extension(self, ext):
        """Link an extension, which may be a library of several modules."""
        objects = self.compiler.object_filenames(ext.sources, output_dir=self.build_temp)
        target = self.get_ext_fullpath(ext.name)
        if is_older(target, objects):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            self.compiler.link_shared_object(objects, target, extra_postargs=ext.extra_link_args)

    def compiled(self, source, headers, include_dirs, flags):
        """Return the object file of a source, compiled anew if that or a header has changed."""
        (target,) = self.compiler.object_filenames([source], output_dir=self.build_temp)
        if is_older(target, [source, *headers]):
            self.compiler.compile([source], output_dir=self.build_temp, include_dirs=include_dirs, extra_postargs=flags)
        return target

    def note_libraries(self):
        """Write down, for l0rt/libraries.py, which modules are in which package's library."""
        shared = [ext for ext in self.extensions if ext.name.endswith(f".{LIBRARY}")]
        rows = [[ext.name.rpartition(".")[0], *map(module_name, ext.sources)] for ext in shared]
        for folder in (self.build_lib, *([os.curdir] if self.inplace else [])):
            if rows:
                with open(os.path.join(folder, NOTES), "w", encoding="utf-8") as notes:
                    notes.writelines(f"{' '.join(row)}\n" for row in rows)

    def build_cpu_driver(self):
        sources = sorted(glob("l0rt/cpu_driver/*.c") + glob("l0rt/cpu_driver/spirv/*.c"))
        if not sources:
            return
        target = os.path.join(self.build_lib, "l0rt/cpu_driver", CPU_DRIVER)
        headers = glob("l0rt/cpu_driver/*.h") + glob("l0rt/cpu_driver/spirv/*.h") + glob("include/l0rt/*.h")
        if is_older(target, sources + headers):
            self.compile_cpu_driver(sources, headers, target)
        made = [CPU_DRIVER, *self.build_stand_in(os.path.dirname(target))]
        if self.inplace:
            for name in made:
                place = os.path.join("l0rt/cpu_driver", name)
                shutil.copy2(os.path.join(os.path.dirname(target), name), f"{place}.new")
                os.replace(f"{place}.new", place)  # a running process has the file mapped that was there

    def build_stand_in(self, folder):
        """Build the loader that has the CPU driver only; return its name in the driver's folder."""
        sources = sorted(glob("l0rt/cpu_driver/loader/*.c"))
        target = os.path.join(folder, STAND_IN)
        if sources and is_older(target, [*sources, *glob("include/l0rt/*.h")]):
            flags = [*C_FLAGS, "-fPIC"]
            self.compiler.compile(sources, output_dir=self.build_temp, include_dirs=["include"], extra_postargs=flags)
            objects = self.compiler.object_filenames(sources, output_dir=self.build_temp)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            driver = ["-Wl,--no-as-needed", f"-L{folder}", f"-l:{CPU_DRIVER}", "-Wl,-rpath,$ORIGIN/.."]
            flags = [f"-Wl,-soname,{os.path.basename(STAND_IN)}", *driver, *L_FLAGS]
            self.compiler.link_shared_object(objects, target, extra_postargs=flags)
        return [STAND_IN] if sources else []

    def copy_extensions_to_source(self):
        # By their times, modules of the flavour that was built before would stay: they may be newer.
        force, self.force = self.force, True
        try:
            super().copy_extensions_to_source()
        finally:
            self.force = force

    def compile_cpu_driver(self, sources, headers, target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        # Handlers of kernels are short: a reduction takes up to 1.5 times as long by where they begin in a cache line.
        flags = [*C_FLAGS, "-fPIC", "-pthread", "-D_GNU_SOURCE", "-falign-functions=64"]

        def compiled(source):
            return self.compiled(source, headers, ["include", "l0rt/cpu_driver"], flags)

        sources.sort(key=lambda source: "handlers" not in source)  # they take longest
        with ThreadPoolExecutor(self.parallel) as workers:
            objects = list(workers.map(compiled, sources))
        # -Bsymbolic: a driver that exports zeX and is hosted by the loader must find its own zeX, not the loader's.
        flags = ["-pthread", "-lm", "-Wl,-Bsymbolic", *L_FLAGS]
        self.compiler.link_shared_object(objects, target, extra_postargs=flags)


class EditableWheel(editable_wheel):
    """An editable installation that is a folder on sys.path, where Cython finds the .pxd files of foreign cimports."""

    def finalize_options(self):
        # What lies elsewhere in the source tree is found there (l0rt.get_include(), l0rt.cli.traces). With one
        # folder for all packages setuptools writes a .pth file; otherwise import hooks, which Cython cannot read.
        packages = self.distribution.packages
        self.distribution.packages = [name for name in packages if name not in ELSEWHERE]
        self.distribution.package_dir = {"": "."}
        super().finalize_options()


def extensions():
    """Return an extension module for each .pyx of the package."""
    return [
        Extension(
            os.path.splitext(source)[0].replace("/", "."),
            [source],
            include_dirs=["include"],
            extra_compile_args=[*C_FLAGS, "-include", "include/l0rt/traceback.h"],
            extra_link_args=L_FLAGS,
            depends=glob("include/l0rt/*.h"),
        )
        for source in sorted(glob("l0rt/**/*.pyx", recursive=True))
    ]


def cythonized():
    found = cythonize(
        extensions(), build_dir=f"{BUILD}/c", compiler_directives=DIRECTIVES, nthreads=os.cpu_count() or 1, quiet=True
    )
    for extension in found:
        name_constructors(extension.name, extension.sources[0])
    return shared_libraries(found)


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
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        raise SystemExit("l0rt needs a C compiler to build: on Debian or Ubuntu, apt install gcc")
    setup(
        packages=[os.path.dirname(f).replace("/", ".") for f in glob("l0rt/**/__init__.py", recursive=True)]
        + list(ELSEWHERE),
        package_dir={"l0rt": "l0rt", **ELSEWHERE},
        package_data={"": ["*.pxd", "*.h", "*.hpp", "py.typed", "*.pyi", "*.npz", "*.spv", "*.html", "*.css", "*.js"]},
        exclude_package_data={"": ["*.c", "*.pyx"]},
        ext_modules=extensions(),
        cmdclass={"build_ext": BuildExt, "editable_wheel": EditableWheel},
        options={"build": {"build_base": BUILD}},
        zip_safe=False,
    )
