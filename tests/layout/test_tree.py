# SPDX-License-Identifier: Apache-2.0
"""The copy of the source text that the tests of the rules share."""

from helpers.source import ROOT, plant, restore, stamps

KEPT, CHANGED, GONE = "l0rt/_base/paths.py", "docs/memory.md", "setup.py"


def test_what_a_test_has_changed_is_undone(only_copy):
    before = stamps(only_copy)
    plant(only_copy, CHANGED, "planted")
    plant(only_copy, "docs/planted/planted.md", "planted")
    (only_copy / GONE).unlink()
    restore(only_copy, before)
    assert stamps(only_copy).keys() == before.keys()
    assert all((only_copy / name).read_bytes() == (ROOT / name).read_bytes() for name in (KEPT, CHANGED, GONE))
