"""Only core/ and ze/ call the driver, and every result is checked where it comes back."""

import re

import pytest
from helpers.source import DRIVER_CALL, PYTHON, ROOT, calls, files, lines, plant

CHECKED = re.compile(r"\b(CHECK|CHECK_READY|CHECK_ON|DROP)\s*\((\s*[\w.]+\s*,)*$|<\s*void\s*>$")
PROBED = re.compile(r"\br\s*=$")  # ze/ asks what a driver can do, and looks at the answer itself


def violations(root):
    complaints = []
    for path in files(root, *PYTHON):
        where = path.relative_to(root)
        floor = where.parts[1]
        for line in lines(path.read_text()):
            for before, name in calls(line.text, DRIVER_CALL):
                if floor not in ("core", "ze"):
                    complaints.append(f"{where}:{line.number}: {name} is called outside core/ and ze/")
                elif not (CHECKED.search(before) or (floor == "ze" and PROBED.search(before))):
                    complaints.append(f"{where}:{line.number}: the result of {name} is not checked")
    return complaints


def test_every_driver_call_is_checked_and_in_its_place():
    assert violations(ROOT) == []


@pytest.mark.parametrize(
    ("path", "text", "complaint"),
    [
        ("l0rt/runtime/planted.pyx", "CHECK(ze.zeInit(0))", "outside core/ and ze/"),
        ("l0rt/planted.py", "library.zeInit(0)", "outside core/ and ze/"),
        ("l0rt/core/planted.pyx", "ze.zeInit(0)", "not checked"),
        ("l0rt/core/planted.pxd", "zeInit(0)", "not checked"),
        ("l0rt/core/planted.pyx", "ze[0].zesInit(0)", "not checked"),
        ("l0rt/core/planted.pyx", "r = ze.zeInit(0)", "not checked"),
        ("l0rt/ze/planted.pyx", "x = ze.zeInit(0)", "not checked"),
        ("l0rt/core/planted.pyx", "CHECK(0); ze.zeInit(0)", "not checked"),
        ("l0rt/core/planted.pyx", "CHECK(0 if f(1) else ze.zeInit(0))", "not checked"),
        ("l0rt/core/planted.pyx", "CHECK(ze.zeInit(0)); return ze.zeFence(h)", "zeFence is not checked"),
    ],
)
def test_it_bites(house, path, text, complaint):
    plant(house, path, text)
    assert any("planted" in found and complaint in found for found in violations(house)), violations(house)


@pytest.mark.parametrize(
    "text",
    [
        "CHECK(ze.zeInit(0))",
        "ready = CHECK_READY(\n    ze.zeEventQueryStatus(h))",
        "CHECK_ON(self.device, ze.zeInit(0))",
        'DROP(ze.zeEventDestroy(h), b"zeEventDestroy")',
        "<void>ze.zeInit(0)",
        '"""ze.zeInit(0)"""  # ze.zeInit(0)',
    ],
)
def test_what_is_checked_may_stay(house, text):
    plant(house, "l0rt/core/planted.pyx", text)
    assert not [found for found in violations(house) if "planted" in found]
