# SPDX-License-Identifier: Apache-2.0
"""printf of kernels on the CPU driver: widths of pointers, and numbers in the locale C whatever the program's is."""

import shutil

import pytest

from helpers.process import run, run_python
from helpers.rings import TESTS

CODE = f"""
import locale, os
import l0rt, l0rt.accelerator as acc
if "LOCPATH" in os.environ:
    assert locale.setlocale(locale.LC_ALL, "de_DE") and locale.localeconv()["decimal_point"] == ","
x = l0rt.empty(64)
with l0rt.Module({str(TESTS / "kernels/prints.spv")!r}) as module:
    module["prints"][1, 1](x, 1234.5)
    acc.synchronize()
print(hex(x.ptr), locale.format_string("%.1f", 0.5))
"""


def printed(environment):
    result = run_python(CODE, {"L0RT_DRIVER": "cpu", **environment}, fresh=True)
    assert (result.returncode, result.stderr) == (0, ""), result
    *lines, last = result.stdout.splitlines()
    pointer, half = last.split()
    assert lines[0] == f"[{pointer}] [{pointer:>24}] [{pointer:<24}] [{pointer}] [0x0]"
    return lines[1], half


def test_pointers_have_the_width_that_the_format_says():
    line, half = printed({})
    vector = ",".join(["1234.500000"] * 4)
    assert line == f"[1234.50] [1.234500e+03] [1234.5] [0x1.34ap+10] [{vector}] [%'d]"
    assert half == "0.5"


@pytest.mark.skipif(shutil.which("localedef") is None, reason="needs localedef (Debian: apt install locales)")
def test_numbers_are_those_of_the_locale_c(tmp_path):
    """A program's own locale, with a comma, is made here."""
    made = run(["localedef", "-i", "de_DE", "-f", "ISO-8859-1", tmp_path / "de_DE"])
    if not (tmp_path / "de_DE/LC_NUMERIC").exists():
        pytest.skip(f"localedef has no source of the locale (Debian: apt install locales): {made.stderr}")
    line, half = printed({"LOCPATH": tmp_path})
    assert half == "0,5"
    assert line == printed({})[0]
