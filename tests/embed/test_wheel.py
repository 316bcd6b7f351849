# SPDX-License-Identifier: Apache-2.0
"""The wheel has what others build against, nothing else, and is small; `make dist` asks the same of each Python's."""

import random
import zipfile

import pytest

from helpers.wheels import problems


def changed(wheel, target, drops=None, adds=()):
    """Write a copy of a wheel, without one file and with others."""
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as copy:
        for name in source.namelist():
            if drops is None or not name.endswith(drops):
                copy.writestr(name, source.read(name))
        for name, data in adds:
            copy.writestr(name, data)
    return target


def test_the_wheel_has_what_others_need_and_is_small(wheel):
    assert problems(wheel) == []


@pytest.mark.parametrize(
    "missing",
    ["l0rt/__init__.pyi", "buffers/buffer.pxd", "l0rt.hpp", "licenses/LICENSE", "libze_l0rt_cpu.so", "py.typed"],
)
def test_a_wheel_that_lacks_something_is_refused(wheel, tmp_path, missing):
    (problem,) = problems(changed(wheel, tmp_path / wheel.name, drops=missing))
    assert problem.endswith(f"{missing} is missing")


def test_a_wheel_with_something_else_is_refused(wheel, tmp_path):
    adds = {
        "tests/conftest.py": b"",
        "l0rt/core/event.c": b"",
        "l0rt/core/event.cpython-39-x86_64-linux-gnu.so": b"",
    }
    found = problems(changed(wheel, tmp_path / wheel.name, adds=adds.items()))
    assert [line.split()[0] for line in found] == list(adds)
    huge = changed(wheel, tmp_path / wheel.name, adds=[("l0rt/huge", random.Random(0).randbytes(5_000_000))])
    assert [line.split()[0] for line in problems(huge)] == [wheel.name]
