# SPDX-License-Identifier: Apache-2.0
"""What is installed is what others build against, and is this source tree's."""

import sysconfig
from importlib.util import find_spec
from pathlib import Path

import l0rt

from helpers.source import ROOT

INSTALLED = Path(l0rt.__file__).parent


def test_everything_others_need_is_installed_and_up_to_date():
    sources = [p for suffix in ("py", "pyi", "pxd", "npz") for p in (ROOT / "l0rt").rglob(f"*.{suffix}")]
    wanted = {p.relative_to(ROOT / "l0rt"): p for p in sources}
    wanted |= {Path("include/l0rt") / p.name: p for p in (ROOT / "include/l0rt").glob("*.h*")}
    wanted[Path("kernels/opencl.h")] = ROOT / "l0rt/kernels/opencl.h"  # what zig compiles with
    wanted[Path("py.typed")] = ROOT / "l0rt/py.typed"
    missing = [str(name) for name in wanted if not (INSTALLED / name).exists()]
    assert missing == []
    stale = [str(name) for name, p in wanted.items() if (INSTALLED / name).read_bytes() != p.read_bytes()]
    assert stale == [], "the installed package is older than the source: make build"


def test_every_extension_and_the_cpu_driver_are_installed():
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    names = [".".join(p.relative_to(ROOT).with_suffix("").parts) for p in (ROOT / "l0rt").rglob("*.pyx")]
    origins = {name: find_spec(name).origin for name in names}
    assert [name for name, origin in origins.items() if not origin.endswith(suffix) or not Path(origin).exists()] == []
    assert Path(l0rt.cpu_driver_path()) == INSTALLED / "cpu_driver/libze_l0rt_cpu.so"
    assert Path(l0rt.cpu_driver_path()).exists()


def test_the_headers_are_where_get_include_says():
    assert (Path(l0rt.get_include()) / "l0rt/l0rt.h").samefile(INSTALLED / "include/l0rt/l0rt.h")
