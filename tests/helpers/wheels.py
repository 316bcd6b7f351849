# SPDX-License-Identifier: Apache-2.0
"""What a wheel of l0rt contains: what others build against and what it opens by path, for one Python."""

import re
import zipfile

from helpers.source import ROOT

MOST_BYTES, MOST_WITH_SYMBOLS = 5_000_000, 5_500_000  # of a stripped wheel, and of another
LIBRARY = re.compile(r"\.so(\.\d+)?$")


def files():
    """Return the names of the files that are not compiled for a Python."""
    package = ROOT / "l0rt"
    sources = [path for suffix in ("py", "pyi", "pxd", "npz", "spv") for path in package.rglob(f"*.{suffix}")]
    names = {path.relative_to(ROOT).as_posix() for path in sources}
    names |= {f"l0rt/include/l0rt/{path.name}" for path in (ROOT / "include/l0rt").glob("*.h*")}
    names |= {f"l0rt/bench/trace_data/{path.name}" for path in (ROOT / "bench/traces").glob("*.npz")}
    driver = {"l0rt/cpu_driver/libze_l0rt_cpu.so", "l0rt/cpu_driver/loader/libze_loader.so.1"}
    return names | driver | {"l0rt/py.typed", "l0rt/libraries.txt", "l0rt/kernels/opencl.h"}


def modules(tag, notes):
    """Return the names of the libraries of all extension modules, by a Python's tag and the text of libraries.txt."""
    rows = [line.split() for line in notes.splitlines()]
    shared = {f"{package.replace('.', '/')}/{name}": package for package, *names in rows for name in names}
    sources = [path.relative_to(ROOT).with_suffix("").as_posix() for path in (ROOT / "l0rt").rglob("*.pyx")]
    names = {f"{shared[name].replace('.', '/')}/linked.modules" if name in shared else name for name in sources}
    return {f"{name}.cpython-{tag.removeprefix('cp')}-x86_64-linux-gnu.so" for name in names}


def problems(wheel):
    """Return a line for each thing that is wrong with a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        content = {info.filename: archive.read(info) for info in archive.infolist() if not info.is_dir()}
    folder = next(name.partition("/")[0] for name in content if ".dist-info/" in name)
    metadata = {f"{folder}/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")}
    wanted = files() | metadata | modules(wheel.name.split("-")[2], content.get("l0rt/libraries.txt", b"").decode())
    found = [f"{name} is missing" for name in sorted(wanted - content.keys())]
    most = MOST_BYTES if "manylinux" in wheel.name else MOST_WITH_SYMBOLS
    if wheel.stat().st_size > most:
        found.append(f"{wheel.name} has {wheel.stat().st_size} bytes, more than {most}")
    for name, data in content.items():
        if not name.startswith(("l0rt/", f"{folder}/")):
            found.append(f"{name} is outside of the package")
        if name.endswith((".c", ".pyx", ".pyc")):
            found.append(f"{name} is of no use where l0rt is installed")
        if LIBRARY.search(name) and name not in wanted:
            found.append(f"{name} is a library that nothing loads")
        if LIBRARY.search(name) and str(ROOT).encode() in data:
            found.append(f"{name} has a path of the machine that built it")
        if LIBRARY.search(name) and b".symtab\0" in data and "manylinux" in wheel.name:
            found.append(f"{name} is not stripped")
    return found
