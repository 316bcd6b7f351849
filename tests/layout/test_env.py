# SPDX-License-Identifier: Apache-2.0
"""Every environment variable of l0rt is in the table of docs/environment.md, and every row is read somewhere."""

import re

import pytest
from l0rt.config import variables

from helpers.source import PYTHON, ROOT, files, none_of, not_yet, plant, strings_and_comments

# As a string of its own, or as NAME= in a text that tells the user what to set.
NAME = re.compile(r"""["'`](L0RT_[A-Z0-9_]*[A-Z0-9])(?=["'`])|\b(L0RT_[A-Z0-9_]*[A-Z0-9])(?==)""")


def documented(root):
    """Return the names in the first column of the tables."""
    return set(re.findall(r"^\|\s*`(L0RT_\w+)`\s*\|", (root / "docs/environment.md").read_text(), re.MULTILINE))


def development(root):
    """Return the names of the tables' rows that say who reads them: the build and the tests."""
    return set(re.findall(r"^\|\s*`(L0RT_\w+)` \(", (root / "docs/environment.md").read_text(), re.MULTILINE))


def named(root):
    """Return name -> the first file of l0rt/ or include/ that has it in a text."""
    found = {}
    for path in files(root, *PYTHON, ".c", ".h", under=("l0rt", "include")):
        for names in NAME.findall(strings_and_comments(path.read_text(), c=path.suffix in (".c", ".h"))):
            found.setdefault("".join(names), path.relative_to(root))
    return found


def violations(root):
    known = documented(root)
    return [f"{path}: {name} is not in docs/environment.md" for name, path in named(root).items() if name not in known]


def test_every_variable_is_documented():
    none_of(violations(ROOT))


def test_the_list_in_code_is_the_documents():
    assert sorted(variables.KNOWN) == sorted(documented(ROOT))
    assert sorted(f"L0RT_{name}" for name in variables.DEVELOPMENT) == sorted(development(ROOT))


def test_every_documented_variable_is_read():
    not_yet("documented, read nowhere", documented(ROOT) - set(named(ROOT)))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("l0rt/planted.py", 'x = os.environ.get("L0RT_PLANTED")'),
        ("l0rt/planted.pyx", "raise L0Error('set L0RT_PLANTED=1')"),
        ("l0rt/cpu_driver/planted.c", '/* x */ getenv("L0RT_PLANTED");'),
        ("include/l0rt/planted.h", '// "L0RT_PLANTED"'),
    ],
)
def test_it_bites(tree, path, text):
    plant(tree, path, text)
    assert f"{path}: L0RT_PLANTED is not in docs/environment.md" in violations(tree)


def test_macros_are_no_variables(tree):
    plant(tree, "l0rt/planted.h", "#define L0RT_PLANTED 1\n/* L0RT_CPU_* and the like */\n")
    plant(tree, "l0rt/planted.pyx", 'cdef extern from *:\n    """\n    #define L0RT_PLANTED(x) x\n    """\n')
    assert "L0RT_PLANTED" not in named(tree)


def test_an_unread_row_is_seen(tree):
    with (tree / "docs/environment.md").open("a") as file:
        file.write("| `L0RT_PLANTED` | 1 | | never |\n")
    assert "L0RT_PLANTED" in documented(tree) - set(named(tree))
