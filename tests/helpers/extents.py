# SPDX-License-Identifier: Apache-2.0
"""How much of a long check runs.

short: whenever somebody runs pytest; whole: with L0RT_TEST_ALL=1, which is `make test-all` and CI; soak: with
L0RT_TEST_SOAK=1, which is `make soak`.
"""

import os

import pytest

SOAK = os.environ.get("L0RT_TEST_SOAK") == "1"
WHOLE = SOAK or os.environ.get("L0RT_TEST_ALL") == "1"
HANG_LIMIT = float(os.environ.get("L0RT_TEST_HANG_LIMIT") or 900)  # seconds that the longest part of a test may take


class Extent:
    """What a test asks how much of it runs. Its report tells what is left out, for pytest's last lines."""

    def __init__(self, item):
        self.item = item

    def note(self, text):
        self.item.user_properties.append(("shortened", text))

    def __call__(self, short, whole, soak=None):
        """Return one of three numbers. The third is by default the second."""
        if SOAK:
            return whole if soak is None else soak
        if not WHOLE and short != whole:
            self.note(f"{short} of {whole}")
        return whole if WHOLE else short

    def skip_unless_whole(self):
        """Skip the test when it runs short."""
        if not WHOLE:
            self.note("left out")
            pytest.skip("takes minutes: make test-all")


def noted(stats, key):
    """Return what the reports tell under ``key``: (test, what), in the tests' order."""
    found = set()
    for report in (report for kind in ("passed", "failed", "skipped") for report in stats.get(kind, [])):
        properties = getattr(report, "user_properties", ())  # a whole file that is skipped has none
        found |= {(report.nodeid.partition("[")[0], what) for name, what in properties if name == key}
    return sorted(found)


def summary(stats):
    """Return a line for each test that ran short."""
    lines = [f"  {test}: {what}" for test, what in noted(stats, "shortened")]
    return ["short, whole with `make test-all`:", *lines] if lines else []
