# SPDX-License-Identifier: Apache-2.0
"""A file that passes 600 lines holds two nouns."""

import pytest

from helpers.source import PYTHON, ROOT, files, none_of, plant

LIMIT = 600


def violations(root):
    sizes = {
        path.relative_to(root): len(path.read_text().splitlines())
        for path in files(root, *PYTHON, ".c", ".h", under=("l0rt", "include", "tests", "bench"))
    }
    return [f"{path}: {size} lines" for path, size in sizes.items() if size > LIMIT]


def test_every_file_can_be_read_in_one_sitting():
    none_of(violations(ROOT))


@pytest.mark.parametrize("path", ["l0rt/core/planted.pyx", "l0rt/cpu_driver/planted.c", "tests/core/planted.py"])
def test_it_bites(tree, path):
    plant(tree, path, "x\n" * LIMIT)
    assert not [found for found in violations(tree) if "planted" in found]
    plant(tree, path, "x\n" * (LIMIT + 1))
    assert f"{path}: {LIMIT + 1} lines" in violations(tree)
