# SPDX-License-Identifier: Apache-2.0
"""The wheel of this source tree."""

import sys

import pytest

from helpers.process import run
from helpers.source import ROOT


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The wheel of this source tree, of what was compiled when it was installed."""
    folder = tmp_path_factory.mktemp("wheel")
    make = [sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "-w", folder, "."]
    result = run(make, cwd=ROOT, timeout=900)
    assert result.returncode == 0, str(result)
    (made,) = folder.glob("l0rt-*.whl")
    return made
