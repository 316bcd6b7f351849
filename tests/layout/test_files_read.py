# SPDX-License-Identifier: Apache-2.0
"""A file that l0rt reads is regular and bounded: `l0rt._base.paths.read_file` reads it.

A user's path may name a device, a pipe, or a file of any size; so may a file that others can put where l0rt looks.
"""

import re

import pytest

from helpers.source import ROOT, files, lines, none_of, plant

READ = re.compile(r"(?<![\w.])(?<!def )(?<!int )open\(|\bos\.open\(|\.read_text\(|\.read_bytes\(|\bio\.open\(")
# Files that open otherwise: how often, and why.
ELSEWHERE = {
    "cli/__init__.py": (4, "/dev/null; files that are written"),
    "bench/compare.py": (2, "checks the same by itself, with messages of its own"),
    "bench/counts.py": (2, "files of a folder that l0rt has made"),
    "cli/doctor.py": (2, "/sys"),
    "bench/graphs_rows.py": (1, "a file of l0rt's own"),
    "bench/kernels_rows.py": (4, "files of l0rt's own"),
    "cli/keys.py": (1, "/dev/null"),
    "cli/memory/page.py": (4, "files of l0rt's own; one that is written"),
    "cli/memory/snapshot.py": (4, "checks the same by itself, and reads pickles in parts; /proc"),
    "cli/memory/watch.py": (1, "/dev/tty"),
    "bench/report.py": (1, "/proc"),
    "selftest/ground.py": (1, "/proc"),
    "selftest/launches.py": (1, "a file of l0rt's own"),
    "selftest/quirk_tests.py": (3, "files of l0rt's own; /dev/null"),
    "selftest/trap_tests.py": (1, "/proc"),
    "cli/top.py": (1, "/proc"),
    "graphs/page.py": (1, "a file of l0rt's own"),
    "interop/dpctl.py": (1, "/proc"),
    "kernels/cache.py": (3, "checks the same by itself, and whose the file is; files that are written"),
    "kernels/includes.py": (2, "checks the same by itself; what is no file is no header"),
    "launch/random.pyx": (1, "a file of l0rt's own"),
    "kernels/spin.py": (1, "a file of l0rt's own"),
    "kernels/zig.py": (3, "files of l0rt's own; one that is written"),
    "_base/libraries.py": (1, "a file of l0rt's own"),
    "_base/paths.py": (6, "read_file, and files that are written"),
    "profiler/text.py": (1, "a file that is written"),
    "runtime/memory/pinned.pyx": (2, "/sys, /proc"),
    "runtime/streams/ledger.pyx": (1, "/proc"),
    "ze/count.py": (2, "a pipe; /dev/null"),
    "ze/fdinfo.py": (1, "/proc"),
    "ze/loader.py": (1, "/proc"),
    "ze/pci.py": (2, "/sys"),
}


def violations(root):
    found = []
    for path in files(root, ".py", ".pyx"):
        name = path.relative_to(root / "l0rt").as_posix()
        calls = [line.number for line in lines(path.read_text()) for _ in READ.findall(line.text)]
        if len(calls) != ELSEWHERE.get(name, (0,))[0]:
            found.append(f"l0rt/{name} opens files at lines {calls}: l0rt._base.paths.read_file, or say why not")
    return found


def test_files_are_read_by_what_refuses_devices_and_looks_at_the_size():
    none_of(violations(ROOT))


@pytest.mark.parametrize("call", ["open(path).read()", "Path(path).read_text()", "os.open(path, 0)"])
def test_it_bites(tree, call):
    plant(tree, "l0rt/core/planted.pyx", f"def f(path):\n    return {call}\n")
    assert any("planted" in found for found in violations(tree))
