"""The code in the docs runs: all blocks of a page in one process, in their order."""

import re

import pytest

from helpers.process import run_python
from helpers.reference import page
from helpers.source import ROOT

PAGES = [file for file in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))) if "```python\n" in file.read_text()]


def code(file):
    """Return the page's Python, at the lines where the page has it."""
    text = file.read_text()
    lines = [""] * len(text.splitlines())
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        start = text[: block.start(1)].count("\n")
        for number, line in enumerate(block.group(1).splitlines(), start):
            lines[number] = line
    return "\n".join(lines)


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.name)
def test_every_code_block_runs(file):
    result = run_python(code(file), {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": None}, timeout=120)
    assert (result.returncode, result.stderr) == (0, ""), result


def test_the_start_page_is_among_them():
    assert {"start.md", "settings.md", "README.md"} <= {file.name for file in PAGES}


def test_the_reference_says_what_the_docstrings_say():
    assert (ROOT / "docs/reference.md").read_text() == page(), (
        "a docstring changed: python tests/helpers/reference.py > docs/reference.md"
    )
