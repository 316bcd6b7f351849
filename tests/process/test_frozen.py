# SPDX-License-Identifier: Apache-2.0
"""Programs that contain Python, and installations without sources: they compile, and nothing starts itself."""

import compileall
import os
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import l0rt
import pytest
from l0rt._base.paths import interpreter
from l0rt.kernels import ocloc, ocloc_child

from helpers import compilers
from helpers.process import run, run_python
from helpers.source import ROOT

COMPILE = """
import l0rt
x = l0rt.empty(4).fill(0)
l0rt.compile("kernel void f(global int *x) { x[0] = 7; }", "-DTURN=%d" % TURN)["f"][1, 1](x)
print(x.numpy("i4")[0])
"""
CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "1", "L0RT_CACHE_SIZE": "0"}
needs_ocloc = pytest.mark.skipif(ocloc.find() is None, reason=f"libocloc is not installed: {ocloc.PACKAGE}")


def spy(folder, name):
    """Return a program that notes that it was started, and the note's path."""
    program, note = folder / name, folder / "started"
    program.write_text(f"#!/bin/sh\necho $$ >> {note}\nexec sleep 1\n")
    program.chmod(0o700)
    return program, note


@needs_ocloc
@pytest.mark.parametrize("frozen", [False, True])
def test_a_program_that_is_not_known_to_be_python_is_never_started(tmp_path, frozen):
    program, note = spy(tmp_path, "application")
    code = f"import sys; sys.executable = {str(program)!r}; TURN = 1\n"
    if frozen:
        code += "sys.frozen = True\nimport os; os.environ['L0RT_COMPILER'] = 'ocloc'\n"
    result = run_python(code + "import l0rt.accelerator as acc; print(acc.device_count())" + COMPILE, CPU, fresh=True)
    assert not note.exists()
    if frozen:  # nothing else is known to be Python
        assert result.stdout == "1\n"
        why = f"libocloc runs in a Python of its own, and '{program}' is not known to be one"
        assert "CompilerNotFoundError" in result.stderr
        assert why in result.stderr
    else:
        assert (result.returncode, result.stdout, result.stderr) == (0, "1\n7\n", "")


@pytest.mark.parametrize("name", ["python", "python3", "python3.13t", "python3-dbg", "python2.7"])
def test_names_of_python(monkeypatch, tmp_path, name):
    program, _ = spy(tmp_path, name)
    monkeypatch.setattr("sys.executable", str(program))
    assert interpreter() == str(program)


@pytest.mark.parametrize("name", ["python-application", "mypython", "python.exe", "pythonw", "blender", "uwsgi"])
def test_other_names_are_not_pythons(monkeypatch, tmp_path, name):
    program, _ = spy(tmp_path, name)
    monkeypatch.setattr("sys.executable", str(program))
    assert interpreter() != str(program)
    monkeypatch.setattr("sys.frozen", True, raising=False)
    assert interpreter() is None


def test_only_one_place_names_the_program_that_runs():
    """All others ask it, which knows when the program is no Python."""
    allowed = {"l0rt/_base/paths.py"}
    allowed |= {"l0rt/__init__.py", "l0rt/kernels/compiler.py", "l0rt/kernels/ocloc.py"}  # in messages
    allowed.add("l0rt/kernels/ocloc_child.py")  # the program that has said that it can be the child
    files = [*(ROOT / "l0rt").rglob("*.py"), *(ROOT / "l0rt").rglob("*.pyx")]
    found = {path.relative_to(ROOT).as_posix() for path in files if "sys.executable" in path.read_text()}
    assert found == allowed


@pytest.mark.parametrize("reply", ["cat", "head -c 16", "printf 'l0rt'; cat /dev/null", "printf '[]'"])
def test_a_reply_that_is_not_the_childs_is_refused(monkeypatch, tmp_path, reply):
    child = tmp_path / "child"
    child.write_text(f"#!/bin/sh\n{reply}\n")
    monkeypatch.setattr(ocloc_child, "command", ["sh", str(child)])
    with pytest.raises(l0rt.ModuleBuildError, match="ended with status 0"):
        ocloc.build("libocloc.so", b"", [], [], None)


@needs_ocloc
def test_an_installation_without_sources_compiles(tmp_path):
    """Python's files are compiled; the others stay as they are."""
    package, copy = Path(l0rt.__file__).parent, tmp_path / "l0rt"
    shutil.copytree(package, copy, copy_function=os.symlink, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for path in package.rglob("*.py"):
        shutil.copy(path, copy / path.relative_to(package))
    assert compileall.compile_dir(copy, legacy=True, quiet=1, workers=1)
    for path in copy.rglob("*.py"):
        path.unlink()
    cache = {**CPU, "L0RT_CACHE_SIZE": None, "L0RT_CACHE_DIR": tmp_path / "cache", "PYTHONPATH": tmp_path}
    for _ in range(2):
        result = run_python("TURN = 2" + COMPILE + "print(l0rt.__file__)", cache, fresh=True)
        assert (result.returncode, result.stdout) == (0, f"7\n{copy}/__init__.pyc\n"), result


def readme():
    """Return the script of README.md."""
    return re.search(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE).group(1)


@pytest.mark.skipif(find_spec("PyInstaller") is None, reason="needs PyInstaller: pip install 'l0rt[freeze]'")
def test_readmes_script_runs_frozen(tmp_path):
    """With PyInstaller, in one process: the hook brings what is needed, and the program is its compiler's process."""
    compiles = bool(compilers.INSTALLED)
    (tmp_path / "script.py").write_text(readme() + ("TURN = 3" + COMPILE if compiles else ""))
    folders = ["--specpath", tmp_path, "--distpath", tmp_path / "dist", "--workpath", tmp_path / "work"]
    command = ["-m", "PyInstaller", "--onedir", "--log-level", "ERROR", *folders, tmp_path / "script.py"]
    made = run([interpreter(), *command], cwd=tmp_path, timeout=600)
    assert made.returncode == 0, made
    environment = {**CPU, "PYTHONPATH": None, "PATH": "/usr/bin:/bin"}
    result = run([tmp_path / "dist/script/script"], environment, tmp_path, timeout=60)
    assert (result.returncode, result.stdout) == (0, "0.0 1048576 xpu:0\n" + "7\n" * compiles), result
