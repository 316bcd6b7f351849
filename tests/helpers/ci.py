# SPDX-License-Identifier: Apache-2.0
"""What may be missing on somebody's machine, and may not in CI."""

import os

import pytest


def skip_unless_ci(reason):
    """Skip with this reason; with CI=true, fail with it."""
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
