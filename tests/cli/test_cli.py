# SPDX-License-Identifier: Apache-2.0
"""The command line as such: help, version, and refusals in one line."""

import sys

import l0rt as package
import pytest

from helpers.cli import complaint, l0rt
from helpers.process import run_python


def test_version():
    result = l0rt("--version")
    assert (result.returncode, result.stdout) == (0, f"l0rt {package.__version__}\n")


@pytest.mark.parametrize("words", [[], ["--help"], ["doctor", "--help"], ["selftest", "--help"], ["bench", "--help"]])
def test_help(words):
    result = l0rt(*words)
    assert result.returncode == 0, result
    assert "usage: l0rt" in result.stdout
    assert "--smoke" not in result.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["dance"], "dance"),
        (["--loud"], "--loud"),
        (["doctor", "dance"], "dance"),
        (["selftest", "dance"], "'dance'"),
        (["selftest", "--seconds", "0"], "seconds"),
        (["selftest", "--seconds", "soon"], "'soon'"),
        (["selftest", "--device", "-1"], "--device"),
        (["selftest", "--json", "/no/such/folder/report.json"], "No such file or directory"),
        (["bench", "dance"], "'dance'"),
        (["bench", "allocator", "dance"], "'dance'"),
        (["bench", "--loud"], "--loud"),
        (["bench", "--json"], "--json"),
        (["bench", "--json", "/no/such/folder/report.json"], "No such file or directory"),
        (["bench", "event.nothing.*"], "'event.nothing.*'"),
        (["bench", "--plot", "/no/such/folder/plot.png"], "No such file or directory"),
        (["bench", "--plot", "plot.jpg"], ".png or .svg"),
        (["bench", "compare"], "two reports"),
        (["bench", "compare", "a.json"], "two reports"),
        (["bench", "compare", "a.json", "b.json"], "'a.json': No such file"),
    ],
)
def test_bad_words_are_refused_in_one_line(words, says):
    assert says in complaint(l0rt(*words))


@pytest.mark.parametrize(
    ("name", "value"), [("L0RT_DRIVER", "warp"), ("L0RT_DISABLE", "gravity"), ("L0RT_STREAM_POOL_SIZE", "0")]
)
def test_a_bad_setting_is_refused_in_one_line(name, value):
    text = complaint(l0rt("bench", "--smoke", env={name: value}))
    assert name in text
    assert "expected" in text


def test_no_driver_is_told_in_one_line():
    result = l0rt("bench", "--smoke", env={"L0RT_DRIVER": "/no/such/library.so"})
    assert result.returncode == 1, result
    assert "/no/such/library.so cannot be opened" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [["doctor"], ["--help"], ["bench", "--help"], ["--version"]])
def test_a_reader_who_has_seen_enough(words):
    code = f"""
import subprocess
with subprocess.Popen([{sys.executable!r}, "-m", "l0rt", *{words!r}], stdout=subprocess.PIPE,
                      stderr=subprocess.PIPE) as child:
    child.stdout.close()
    print(child.stderr.read().decode())
"""
    for unbuffered in (None, "1"):
        result = run_python(code, {"PYTHONUNBUFFERED": unbuffered})
        assert (result.returncode, result.stdout) == (0, "\n"), result


@pytest.mark.parametrize("columns", ["20", "40", "80", "nonsense", "0", "100000000"])
def test_any_width_of_a_window_will_do(columns):
    result = l0rt("bench", "device.current.c", "--smoke", env={"COLUMNS": columns, "L0RT_DRIVER": "cpu"})
    assert (result.returncode, result.stderr) == (0, ""), result
    assert package.cpu_driver_path() in result.stdout
