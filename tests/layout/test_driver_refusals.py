# SPDX-License-Identifier: Apache-2.0
"""Every error that the CPU driver returns has a text: no result of an error stands in its source without one."""

import re

from helpers.source import ROOT, plant

DRIVER = "l0rt/cpu_driver"
ENGINE = {"loader", "spirv"}  # folders without entry points
# Where a text is set in other words before: the line that returns the error, and why it needs none of its own.
DESCRIBED = {
    "kernel.c": "the text of the build",
    "module.c": "the text of the build log",
    "usm.c": "which of two, for cpu_refuse",
    "failure.c": "the table of texts, and failed launches",
    "import.c": "which of two an import is",
}


def sources(root):
    return [path for path in sorted((root / DRIVER).rglob("*.c")) if not ENGINE.intersection(path.parts)]


def bare(root=ROOT):
    """Return {file: lines} of errors that are returned without a text."""
    found = {}
    for path in sources(root):
        lines = [line.strip() for line in path.read_text().splitlines() if "ZE_RESULT_ERROR_" in line]
        if lines:
            found[path.name] = lines
    return found


def wordless(root=ROOT):
    """Return the results that calls are refused with, and that the table of texts lacks."""
    text = "\n".join(path.read_text() for path in sources(root))
    used = set(re.findall(r"CPU_REFUSE(?:_IF|D)\((?:[^;]*?, )??(ERROR_\w+)(?:,|\))", text))
    worded = set(re.findall(r"\{ZE_RESULT_(ERROR_\w+), \"", text))
    return used - worded


def test_no_error_is_returned_without_a_text():
    found = bare()
    assert found.keys() == DESCRIBED.keys(), found
    assert [len(found[name]) for name in ("kernel.c", "module.c", "usm.c")] == [2, 1, 1]


def test_each_result_has_words():
    # Each use of these says itself what happened.
    assert wordless() == {"ERROR_UNKNOWN"}


def test_it_bites(tree):
    text = (tree / DRIVER / "sync/fence.c").read_text()
    refused = "CPU_REFUSE_IF(fence == NULL, ERROR_INVALID_NULL_HANDLE);"
    assert refused in text
    text = text.replace(refused, "if (fence == NULL) return ZE_RESULT_ERROR_UNKNOWN;", 1)
    plant(tree, f"{DRIVER}/sync/fence.c", text)
    plant(tree, f"{DRIVER}/base/planted.c", "  CPU_REFUSE_IF(a == NULL, ERROR_DEVICE_REQUIRES_RESET);\n")
    assert "fence.c" in bare(tree)
    assert "ERROR_DEVICE_REQUIRES_RESET" in wordless(tree)
