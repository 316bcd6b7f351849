# SPDX-License-Identifier: Apache-2.0
"""How much of a long check runs.

short: whenever somebody runs pytest; CI: with CI=true, as the machines that run CI set it; whole: with L0RT_TEST_ALL=1,
which is `make test-all`; soak: with L0RT_TEST_SOAK=1, which is `make soak`.
"""

import math
import os

import pytest

SOAK = os.environ.get("L0RT_TEST_SOAK") == "1"
WHOLE = SOAK or os.environ.get("L0RT_TEST_ALL") == "1"
CI = not WHOLE and os.environ.get("CI") == "true"
HANG_LIMIT = float(os.environ.get("L0RT_TEST_HANG_LIMIT") or 900)  # seconds that the longest part of a test may take


class Extent:
    """What a test asks how much of it runs. Its report tells what is left out, for pytest's last lines."""

    def __init__(self, item):
        self.item = item

    def note(self, text):
        self.item.user_properties.append(("shortened", text))

    def __call__(self, short, whole, soak=None):
        """Return one of three numbers; in CI the geometric mean of the first two. Without a third it is the second."""
        if SOAK:
            return whole if soak is None else soak
        if WHOLE:
            return whole
        chosen = round(math.sqrt(short * whole)) if CI and short else short
        if chosen != whole:
            self.note(f"{chosen} of {whole}")
        return chosen

    def skip_unless_whole(self, ci=True):
        """Skip the test when it runs short; with ``ci=False``, because it takes minutes, in CI too."""
        if not (WHOLE or (ci and CI)):
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
