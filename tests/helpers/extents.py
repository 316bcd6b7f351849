# SPDX-License-Identifier: Apache-2.0
"""How much of a long check runs.

short: whenever somebody runs pytest; whole: with L0RT_TEST_ALL=1, which is `make test-all` and CI; soak: with
L0RT_TEST_SOAK=1, which is `make soak`.
"""

import os

import pytest

SHORTENED = pytest.StashKey[dict]()
SOAK = os.environ.get("L0RT_TEST_SOAK") == "1"
WHOLE = SOAK or os.environ.get("L0RT_TEST_ALL") == "1"


class Extent:
    """What a test asks how much of it runs. It notes what is left out, for the last lines of pytest's output."""

    def __init__(self, item, shortened):
        self.name = item.nodeid.partition("[")[0]
        self.shortened = shortened

    def __call__(self, short, whole, soak=None):
        """Return one of three numbers. The third is by default the second."""
        if SOAK:
            return whole if soak is None else soak
        if not WHOLE and short != whole:
            self.shortened[self.name] = f"{short} of {whole}"
        return whole if WHOLE else short

    def skip_unless_whole(self):
        """Skip the test when it runs short."""
        if not WHOLE:
            self.shortened[self.name] = "left out"
            pytest.skip("takes minutes: make test-all")


def summary(shortened):
    """Return a line for each test that ran short."""
    if not shortened:
        return []
    return ["short, whole with `make test-all`:", *(f"  {name}: {text}" for name, text in sorted(shortened.items()))]
