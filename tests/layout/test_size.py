# SPDX-License-Identifier: Apache-2.0
"""Files of at most 1,000 lines and functions of at most 60; a longer one says why in its head, after "Long: "."""

import re

import pytest

from helpers.source import FUNCTION, PYTHON, ROOT, files, lines, none_of, plant

FILE, CALLABLE = 1000, 60  # lines
HEAD = 15  # lines of a file in which its reason stands
REASON = re.compile(r"\bLong: \w")


def python_functions(text):
    """Give the first line of each function of Python or Cython, and the lines of its code: the docstring is none."""
    source = lines(text)
    for at, line in enumerate(source):
        if FUNCTION.match(line.text) and line.text.endswith(":"):
            inside = [inner for inner in source[at + 1 :] if line in inner.parents]
            if inside:
                yield line.number, line.text, inside[-1].number - inside[0].number + 2


def c_functions(text):
    """Give the same of C that clang-format has formatted: a function ends where a line begins with a brace."""
    source = text.splitlines()
    for at, line in enumerate(source):
        if re.match(r"[a-z].*\(.*\{$", line) or (line == "{" and ")" in source[at - 1]):
            size = next(size for size, inner in enumerate(source[at:], 1) if inner.startswith("}"))
            yield at + 1, line.removesuffix(" {"), size


def reason(source, number):
    """Report whether the comment above a function, or the beginning of its docstring, has a reason for its length."""
    first = number - 1
    while first and re.match(r"\s*(#|//|@|/?\*)", source[first - 1]):
        first -= 1
    return REASON.search("\n".join(source[first : number + HEAD]))


def violations(root):
    for path in files(root, *PYTHON, ".c", ".h", under=("l0rt", "include", "tests", "bench")):
        text, name = path.read_text(), path.relative_to(root)
        source = text.splitlines()
        if len(source) > FILE and not REASON.search("\n".join(source[:HEAD])):
            yield f"{name}: {len(source)} lines, at most {FILE} without a reason"
        functions = python_functions if path.suffix in PYTHON else c_functions
        for number, header, size in functions(text):
            if size > CALLABLE and not reason(source, number):
                yield f"{name}:{number}: {header} has {size} lines, at most {CALLABLE} without a reason"


def test_every_file_and_function_can_be_read_in_one_sitting():
    none_of(list(violations(ROOT)))


def planted(tree, path, text):
    plant(tree, path, text)
    return [complaint for complaint in violations(tree) if "planted" in complaint]


@pytest.mark.parametrize("path", ["l0rt/core/planted.pyx", "l0rt/cpu_driver/planted.c", "tests/core/planted.py"])
def test_a_long_file_needs_a_reason(tree, path):
    assert not planted(tree, path, "x\n" * FILE)
    assert planted(tree, path, "x\n" * (FILE + 1)) == [f"{path}: 1001 lines, at most 1000 without a reason"]
    assert not planted(tree, path, f"# Long: {path}\n" + "x\n" * FILE)


@pytest.mark.parametrize(
    ("path", "header", "line", "end"),
    [
        ("l0rt/core/planted.pyx", "cdef int planted(int x) except -1 nogil:", "    x += 1", None),
        ("tests/core/planted.py", "def planted(x):", "    x += 1", None),
        ("l0rt/cpu_driver/planted.c", "static int planted(int x) {", "  x++;", "}"),
    ],
)
def test_a_long_function_needs_a_reason(tree, path, header, line, end):
    def function(size, *head):
        rest = [end] if end else []
        return "\n".join([*head, header, *[line] * (size - 1 - len(rest)), *rest, ""])

    mark = "//" if end else "#"
    assert not planted(tree, path, function(CALLABLE))
    assert len(planted(tree, path, function(CALLABLE + 1))) == 1
    assert not planted(tree, path, function(CALLABLE + 1, f"{mark} Long: one case for each kind."))
