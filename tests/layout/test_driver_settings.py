# SPDX-License-Identifier: Apache-2.0
"""The CPU driver's settings are one table in its source and one on its page, and both have the same."""

import re

from helpers.source import ROOT, plant

PAGE, KNOBS = "docs/cpu-driver.md", "l0rt/cpu_driver/base/settings.c"
DEFAULTS = {
    "devices": "L0RT_CPU_DEVICES",
    "timestamp_bits": "L0RT_CPU_TIMESTAMP_BITS",
    "timestamp_hz": "L0RT_CPU_TIMESTAMP_HZ",
}


def on_page(root):
    """Return name -> (values, default) of the table."""
    rows = re.findall(r"^\| `(L0RT_CPU_\w+)` \| (.*?) \| (.*?) \|", (root / PAGE).read_text(), re.MULTILINE)
    return {name: (values, default) for name, values, default in rows}


def in_source(root):
    """Return name -> what a wrong value is told."""
    rows = re.findall(r'\{"(L0RT_CPU_\w+)", \w+,\s*((?:"[^"]*"\s*)+)\}', (root / KNOBS).read_text())
    return {name: "".join(re.findall(r'"([^"]*)"', text)) for name, text in rows}


def defaults(root):
    """Return name -> the number that stands for no value."""
    text = (root / KNOBS).read_text()
    return {name: re.search(rf"\.{field} = (\d+)", text).group(1) for field, name in DEFAULTS.items()}


def test_both_tables_have_the_same():
    assert len(in_source(ROOT)) >= 8
    assert list(on_page(ROOT)) == list(in_source(ROOT))


def test_defaults_and_limits_agree():
    page, source = on_page(ROOT), in_source(ROOT)
    assert {name: page[name][1] for name in DEFAULTS.values()} == defaults(ROOT)
    for name in DEFAULTS.values():
        assert re.findall(r"\d+", page[name][0]) == re.findall(r"\d+", source[name])


def test_only_the_table_reads_the_environment():
    readers = [p.name for p in (ROOT / "l0rt/cpu_driver").rglob("*.c") if re.search(r"\bgetenv\b", p.read_text())]
    assert readers == ["settings.c"]


def test_every_result_can_be_asked_for():
    named = re.findall(r"^  ZE_RESULT_(\w+) =", (ROOT / "include/l0rt/ze_base.h").read_text(), re.MULTILINE)
    faults = re.findall(r"^    RESULT\((\w+)\)", (ROOT / "l0rt/cpu_driver/simulate/fault.c").read_text(), re.MULTILINE)
    assert faults == [name for name in named if name != "SUCCESS"]


def test_it_bites(tree):
    text = (tree / KNOBS).read_text()
    plant(
        tree, KNOBS, text.replace('"L0RT_CPU_STRICT"', '"L0RT_CPU_STRICTER"').replace(".devices = 1", ".devices = 2")
    )
    assert list(on_page(tree)) != list(in_source(tree))
    assert defaults(tree)["L0RT_CPU_DEVICES"] == "2"
