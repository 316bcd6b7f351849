# SPDX-License-Identifier: Apache-2.0
"""Only core/, ze/ and the bench's raw loops call the driver; no status is dropped, the driver's or one handed on."""

import re

import pytest

from helpers.source import DRIVER_CALL, PYTHON, ROOT, calls, files, lines, none_of, plant

STATUS = re.compile(r"cdef\s+(?:inline\s+)?ze_result_t\s+(\w+)\s*\(")
TAKES_STATUS = re.compile(r"cdef\s+(?:inline\s+)?[\w ]+?\b(\w+)\s*\((?:[^()]*,)?\s*ze_result_t\s+\w+")
HANDS_ON = re.compile(r"cdef\s+(inline\s+)?(ze_result_t|int)\s+\w+\s*\(.*\)\s*noexcept\b")  # an int that is a code
# Bare driver calls with nothing around them.
RAW = {("l0rt", "bench", "loops.pyx"), ("l0rt", "bench", "launch_loops.pyx")}
CHECKS = {"CHECK", "CHECK_READY", "CHECK_ON", "DROP"}


def is_looked_at(line, before, after, later, checks):
    """Is a status checked, compared, cast away aloud, handed on as a code, or kept and read?"""
    if re.search(rf"\b({'|'.join(checks)})\s*\((\s*[\w.]+\s*,)*$|<\s*void\s*>$", before):
        return True
    if re.match(r"[!=]= ?(0\b|(api\.)?ZE_RESULT_)", after):
        return True
    function = line.function()
    if before.startswith("return") and before.count("(") == before.count(")"):
        return function is not None and bool(HANDS_ON.match(function.text))
    if kept := re.search(r"(?:^|;|:|ze_result_t)\s*(\w+)\s*=$", before):
        word, again = rf"\b{kept.group(1)}\b", rf"(cdef ze_result_t )?{kept.group(1)} = "
        uses = (other for other in later if other.function() == function and re.search(word, other.text))
        first = next(uses, None)
        return first is not None and not re.match(again, first.text)
    return False


def violations(root):
    sources = {path: lines(path.read_text()) for path in files(root, *PYTHON)}
    everything = [line.text for source in sources.values() for line in source]
    statuses = {found.group(1) for text in everything if (found := STATUS.match(text))}
    checks = CHECKS | {found.group(1) for text in everything if (found := TAKES_STATUS.match(text))}
    complaints = []
    for path, source in sources.items():
        where = path.relative_to(root)
        for at, line in enumerate(source):
            for before, name, after in calls(line.text, "|".join([DRIVER_CALL, *statuses])):
                if name not in statuses and where.parts[1] not in ("core", "ze") and where.parts not in RAW:
                    complaints.append(f"{where}:{line.number}: {name} is called outside core/ and ze/")
                elif not STATUS.match(line.text) and not is_looked_at(line, before, after, source[at + 1 :], checks):
                    complaints.append(f"{where}:{line.number}: the result of {name} is not checked")
    return complaints


def test_every_driver_call_is_checked_and_in_its_place():
    none_of(violations(ROOT))


@pytest.mark.parametrize(
    ("path", "text", "complaint"),
    [
        ("l0rt/runtime/planted.pyx", "CHECK(ze.zeInit(0))", "outside core/ and ze/"),
        ("l0rt/planted.py", "library.zeInit(0)", "outside core/ and ze/"),
        ("l0rt/cli/planted.pyx", "CHECK(ze.zeInit(0))", "outside core/ and ze/"),
        ("l0rt/core/planted.pyx", "ze.zeInit(0)", "not checked"),
        ("l0rt/core/planted.pxd", "zeInit(0)", "not checked"),
        ("l0rt/core/planted.pyx", "ze[0].zesInit(0)", "not checked"),
        ("l0rt/core/planted.pyx", "r = ze.zeInit(0)", "not checked"),
        (
            "l0rt/core/planted.pyx",
            "def f():\n    r = ze.zeInit(0)\n    r = 0\ndef g(r):\n    return r",
            "not checked",
        ),
        ("l0rt/core/planted.pyx", "cdef int f() except -1:\n    return ze.zeInit(0)", "not checked"),
        ("l0rt/core/planted.pyx", "cdef ze_result_t f() noexcept:\n    return 1 + g(ze.zeInit(0))", "not checked"),
        (
            "l0rt/runtime/planted.pyx",
            "cdef ze_result_t f() noexcept\ndef g():\n    f()",
            "result of f is not checked",
        ),
        ("l0rt/core/planted.pyx", "ze.zelLoaderGetVersions(0)", "not checked"),
        ("l0rt/core/planted.pyx", "CHECK(0); ze.zeInit(0)", "not checked"),
        ("l0rt/core/planted.pyx", "CHECK(0 if f(1) else ze.zeInit(0))", "not checked"),
        ("l0rt/core/planted.pyx", "CHECK(ze.zeInit(0)); return ze.zeFence(h)", "zeFence is not checked"),
    ],
)
def test_it_bites(tree, path, text, complaint):
    plant(tree, path, text)
    assert any("planted" in found and complaint in found for found in violations(tree)), violations(tree)


@pytest.mark.parametrize(
    "text",
    [
        "CHECK(ze.zeInit(0))",
        "ready = CHECK_READY(\n    ze.zeEventQueryStatus(h))",
        "CHECK_ON(self.device, ze.zeInit(0))",
        'DROP(ze.zeEventDestroy(h), b"zeEventDestroy")',
        "<void>ze.zeInit(0)",
        "cdef ze_result_t f() noexcept nogil:\n    return ze.zeInit(0)\ndef g():\n    CHECK(f())",
        "cdef int f(void* self) noexcept nogil:\n    return ze.zeInit(0) if a else 0",
        "cdef ze_result_t f() noexcept nogil:\n    return 0 if a else ze.zeInit(0)",
        "if ze.zeInit(g(0)) != ZE_RESULT_SUCCESS: pass",
        "cdef bint ok(ze_result_t r) noexcept\nx = ok(ze.zeInit(0))",
        "def f():\n    r = ze.zeInit(0)\n    x = 1\n    if r != 0: pass",
        '"""ze.zeInit(0)"""  # ze.zeInit(0)',
    ],
)
def test_what_is_checked_may_stay(tree, text):
    plant(tree, "l0rt/core/planted.pyx", text)
    assert not [found for found in violations(tree) if "planted" in found]
