# SPDX-License-Identifier: Apache-2.0
"""The CI file of a public forge calls targets that there are, for every Python, and says that it never ran."""

import re

import pytest

from helpers.source import ROOT

FILES = sorted((ROOT / ".github/workflows").glob("*.yml"))


def wrong(text, makefile, project):
    """Return what is wrong with a CI file."""
    targets = set(re.findall(r"^([a-z][a-z-]*)(?: [a-z-]+)*:", makefile, re.MULTILINE))
    commands = re.findall(r"run: (.*)$", text, re.MULTILINE)
    found = [line for line in commands if not line.startswith(("make ", "apt-get "))]
    found += [line for line in commands if line.startswith("make ") and line.split()[1] not in targets]
    pythons = re.findall(r'"(3\.\d+)"', text)
    if pythons != re.findall(r"Python :: (3\.\d+)", project):
        found.append(f"Pythons: {pythons}")
    return found + ([] if "Untested" in text.partition("name:")[0] else ["it says nothing of being untested"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_calls_targets_of_the_makefile(path):
    assert wrong(path.read_text(), (ROOT / "Makefile").read_text(), (ROOT / "pyproject.toml").read_text()) == []


def test_there_is_one():
    assert [path.name for path in FILES] == ["ci.yml"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("make style", "make styles"),
        ("make test-c", "pytest"),
        ('"3.14"', '"3.15"'),
        ("Untested", "Tested"),
    ],
)
def test_it_bites(old, new):
    text, makefile, project = (path.read_text() for path in (FILES[0], ROOT / "Makefile", ROOT / "pyproject.toml"))
    assert old in text
    assert len(wrong(text.replace(old, new), makefile, project)) == 1
