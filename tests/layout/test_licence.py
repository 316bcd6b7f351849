# SPDX-License-Identifier: Apache-2.0
"""Every source file says its licence in its first line, as SPDX writes it; only a shebang may stand before it."""

import pytest

from helpers.source import ROOT, none_of, plant

HASH = (".py", ".pyi", ".pyx", ".pxd", ".sh")
C = (".c", ".h", ".hpp")
FOLDERS = ("l0rt", "include", "tests", "bench", "examples")
ALONE = ("setup.py", "Makefile", ".ci/run")
LICENCE = "SPDX-License-Identifier: Apache-2.0"


def sources(root):
    """Yield the source files of the folders, and those that stand alone."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            made = {"build", "__pycache__"} & set(path.relative_to(root).parts)
            if path.is_file() and not made and (path.suffix in HASH + C or path.name == "Makefile"):
                yield path
    yield from (root / name for name in ALONE if (root / name).exists())


def says(path):
    """Is the first line, or the line after a shebang, the licence?"""
    lines = path.read_text().splitlines()[:2]
    if lines and lines[0].startswith("#!"):
        del lines[0]
    return bool(lines) and lines[0] == (f"/* {LICENCE} */" if path.suffix in C else f"# {LICENCE}")


def violations(root):
    return [f"{path.relative_to(root)}: its first line is not {LICENCE}" for path in sources(root) if not says(path)]


def test_every_file_says_its_licence():
    assert {path.suffix for path in sources(ROOT)} >= {*HASH, ".c", ".h", ""}
    none_of(violations(ROOT))


def test_it_is_the_licence_of_the_package():
    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("l0rt/planted.py", "import os\n"),
        ("l0rt/planted.pyi", ""),
        ("l0rt/planted.pyx", f'"""Doc."""\n# {LICENCE}\n'),
        ("l0rt/planted.c", f"# {LICENCE}\n"),
        ("include/l0rt/planted.hpp", f"// {LICENCE}\n"),
        ("tests/planted/Makefile", "all:\n"),
        ("bench/planted.sh", "#!/bin/sh\nexit 0\n"),
    ],
)
def test_it_bites(tree, path, text):
    plant(tree, path, text)
    assert f"{path}: its first line is not {LICENCE}" in violations(tree)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("l0rt/planted.py", f"#!/usr/bin/env python3\n# {LICENCE}\n"),
        ("l0rt/planted.pyx", f"# {LICENCE}\n# cython: language_level=3\n"),
        ("l0rt/planted.h", f"/* {LICENCE} */\n/* planted.h */\n"),
    ],
)
def test_what_may_stand_around_it(tree, path, text):
    plant(tree, path, text)
    assert not [found for found in violations(tree) if "planted" in found]
