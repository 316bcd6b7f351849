# SPDX-License-Identifier: Apache-2.0
"""docs/memory-texts.md shows what its programs print: messages, tables, logs and reports about memory."""

import re
import tempfile

import pytest

from helpers.process import run_python
from helpers.source import ROOT

PAGE = (ROOT / "docs/memory-texts.md").read_text()
PARTS = re.findall(r"^## ([^\n]*)$.*?^```python\n(.*?)^```\n\n```\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
CPU = {"L0RT_DRIVER": None, "L0RT_CPU_PROFILE": None, "L0RT_CPU_DEVICES": None, "L0RT_CPU_MEMORY": None}
VARIABLE = (
    (r"free [\d.]+ \w+\s\(reported\sby\sLinux\)", "free … (reported by Linux)"),
    (r"\d\d:\d\d:\d\d:\d{6}", "TIME"),
    (r"(?m)^\d+,TIME", "THREAD,TIME"),
    (r'"thread": \d+', '"thread": N'),
    (r'"time_us": \d+', '"time_us": N'),
    (r'"(addr|stream)": [1-9]\d*', r'"\1": N'),
    (r"\b0x[1-9a-f][\da-f]+\b", "0x…"),
    (r"(?m)^process \d+ +", "process N "),
    (r"(?m) +$", ""),  # of a table's rows
    (r"l0rt-texts-[\w.-]+\.\d+\.pickle", "l0rt-texts-node-1.1.pickle"),
)


def steady(text):
    """Return a text without what differs from process to process, and from line to line of wrapped text."""
    for pattern, instead in VARIABLE:
        text = re.sub(pattern, instead, text)
    return text.strip("\n")


def test_each_program_has_its_output():
    assert len(PARTS) == PAGE.count("```python\n") == PAGE.count("\n## ")


@pytest.mark.parametrize(("program", "shown"), [part[1:] for part in PARTS], ids=[part[0] for part in PARTS])
def test_the_page_shows_what_is_printed(program, shown):
    with tempfile.TemporaryDirectory(prefix="l0rt", dir="/tmp") as folder:  # a short name, where no line may break
        result = run_python(program.replace("/tmp/", f"{folder}/"), CPU, fresh=True)
    assert (result.returncode, result.stderr) == (0, ""), result
    found, expected = steady(result.stdout.replace(f"{folder}/", "/tmp/")), steady(shown)
    if "out of memory" in shown:  # lines are filled, and the temporary folder's name and numbers have their lengths
        found, expected = (" ".join(text.split()) for text in (found, expected))
    assert found == expected
