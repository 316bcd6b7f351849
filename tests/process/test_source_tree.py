# SPDX-License-Identifier: Apache-2.0
"""Python that runs in the source folder, where `import l0rt` finds the sources first; and installing the sources."""

import os
import re
import shutil
import sys
import zipfile
from pathlib import Path

import l0rt
import pytest
from packaging.metadata import Metadata

from helpers.process import run, run_python
from helpers.source import ROOT

INSTALLED = Path(l0rt.__file__).parent
ALL = ("*.py", "*.pxd", "*.pyi", "*.h")


def copied(folder, *suffixes):
    """Copy the files of the package's source tree that have these names; return the copy."""
    for suffix in suffixes:
        for path in [*(ROOT / "l0rt").rglob(suffix), *(ROOT / "include").rglob(suffix)]:
            target = folder / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    return folder


@pytest.fixture
def unbuilt(tmp_path):
    """A source tree in which nothing is compiled."""
    return copied(tmp_path / "clone", "*.py")


@pytest.mark.parametrize(
    "start",
    ["import l0rt", "import l0rt.accelerator", "from l0rt import Buffer", "from l0rt.runtime.streams import devices"],
)
def test_the_installed_package_is_used_in_an_unbuilt_source_tree(unbuilt, start):
    code = f"""
{start}
import l0rt, l0rt.xpu, sys
assert sys.modules["l0rt"] is l0rt
print(l0rt.__file__, l0rt.xpu.__file__, l0rt.get_include())
l0rt.empty(64).fill(1)
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu"}, cwd=unbuilt)
    assert (result.returncode, result.stderr) == (0, ""), result
    assert result.stdout.split() == [str(INSTALLED / name) for name in ("__init__.py", "xpu/__init__.py", "include")]


def test_python_m_works_in_an_unbuilt_source_tree(unbuilt):
    result = run([sys.executable, "-m", "l0rt", "--version"], cwd=unbuilt)
    assert (result.returncode, result.stdout, result.stderr) == (0, f"l0rt {l0rt.__version__}\n", ""), result


def test_what_the_environment_starts_is_started_once(unbuilt):
    code = "import l0rt.logs as logs; print(logs.__file__); l0rt = __import__('l0rt'); l0rt.empty(64)"
    elsewhere = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_LOGS": "alloc"})
    here = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_LOGS": "alloc"}, cwd=unbuilt)
    assert here.returncode == 0, here
    assert here.stdout == elsewhere.stdout
    assert 0 < len(here.stderr.splitlines()) == len(elsewhere.stderr.splitlines()), here


@pytest.mark.parametrize("start", ["import l0rt", "import l0rt.accelerator", "from l0rt import empty"])
def test_an_unbuilt_source_tree_alone_says_so_and_what_to_do(unbuilt, start):
    result = run([sys.executable, "-S", "-c", start], cwd=unbuilt)  # -S: no installed packages
    assert result.returncode == 1, result
    assert re.search(
        rf"^ImportError: {re.escape(str(unbuilt / 'l0rt'))} is a source tree that is not built for Python 3\.\d+, and "
        rf"no installed l0rt was found\. Install it: \S+ -m pip install {re.escape(str(unbuilt))}$",
        result.stderr,
        re.MULTILINE,
    ), result


def test_a_second_unbuilt_tree_is_passed_over(unbuilt, tmp_path):
    other = copied(tmp_path / "other", "*.py")
    result = run([sys.executable, "-c", "import l0rt; print(l0rt.__file__)"], {"PYTHONPATH": other}, unbuilt)
    assert result.stdout == f"{INSTALLED / '__init__.py'}\n", result


def test_a_source_tree_that_is_built_in_place_is_used_by_python_cython_and_c(tmp_path):
    tree = copied(tmp_path / "clone", *ALL)
    for path in (*INSTALLED.rglob("*.so"), INSTALLED / "libraries.txt"):
        os.symlink(path, tree / "l0rt" / path.relative_to(INSTALLED))
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "used.pyx").write_text(
        '# cython: language_level=3\ncdef extern from "l0rt/guard_impl.h":\n    ctypedef struct l0rt_guard_impl\n'
        "from l0rt.capi cimport *\n\ndef count():\n    return l0rt_device_count()\n"
    )
    (foreign / "setup.py").write_text(
        "import l0rt\nfrom Cython.Build import cythonize\nfrom setuptools import Extension, setup\n"
        "setup(name='used', ext_modules=cythonize(Extension('used', ['used.pyx'], include_dirs=[l0rt.get_include()])))"
    )
    environment = {"PYTHONPATH": tree, "L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2, "CFLAGS": "-O0"}
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    result = run(command, environment, foreign, timeout=300)
    assert result.returncode == 0, result
    code = "import l0rt, used; print(l0rt.__file__, l0rt.get_include(), used.count())"
    result = run([sys.executable, "-c", code], environment, foreign)
    assert result.stdout == f"{tree}/l0rt/__init__.py {tree}/include 2\n", result


@pytest.fixture
def buildable(tmp_path):
    """A source tree that setuptools takes, without the extension modules, which take minutes."""
    tree = copied(tmp_path / "clone", *ALL)
    (tree / "bench/traces").mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copyfile(ROOT / name, tree / name)
    text = (ROOT / "setup.py").read_text()
    assert "ext_modules=extensions()" in text
    (tree / "setup.py").write_text(text.replace("ext_modules=extensions()", "ext_modules=[]"))
    return tree


def test_the_wheel_says_all_that_an_index_shows(buildable):
    code = "from setuptools import build_meta; print(build_meta.prepare_metadata_for_build_wheel('.'))"
    result = run([sys.executable, "-c", code], cwd=buildable, timeout=120)
    assert result.returncode == 0, result
    folder = buildable / result.stdout.split()[-1]
    told = Metadata.from_email((folder / "METADATA").read_bytes())  # refuses what an index would
    assert str(told.version) == l0rt.__version__
    assert (told.license_expression, told.license_files) == ("Apache-2.0", ["LICENSE"])
    assert (folder / "licenses/LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert told.description == (ROOT / "README.md").read_text()
    assert (told.description_content_type, str(told.requires_python)) == ("text/markdown", ">=3.10")
    assert all([told.summary, told.keywords, told.classifiers, told.project_urls])


def test_the_version_stands_in_one_place():
    version = re.compile(rf"(?<![\w.]){re.escape(l0rt.__version__)}(?![\w.])")
    texts = [*ROOT.glob("*.*"), *(ROOT / "include").rglob("*.h")]
    texts += [path for path in ROOT.glob("docs/*.md") if path.name != "performance.md"]  # a record
    texts += [path for path in (ROOT / "l0rt").rglob("*") if path.suffix in (".py", ".pyx", ".pxd", ".pyi", ".c", ".h")]
    found = [path.relative_to(ROOT) for path in texts if path.is_file() and version.search(path.read_text())]
    assert [str(path) for path in found if path.name != "CHANGELOG.md"] == ["l0rt/__init__.py"]


def test_an_editable_installation_is_a_folder_on_the_path(buildable):
    """Cython looks for .pxd files in the folders of sys.path, and knows nothing of setuptools' import hooks."""
    code = "from setuptools import build_meta; print(build_meta.build_editable('.'))"
    result = run([sys.executable, "-c", code], cwd=buildable, timeout=120)
    assert result.returncode == 0, result
    with zipfile.ZipFile(buildable / result.stdout.split()[-1]) as wheel:
        files = [name for name in wheel.namelist() if ".dist-info/" not in name]
        assert [Path(name).suffix for name in files] == [".pth"]
        assert wheel.read(files[0]).decode().strip() == str(buildable)
