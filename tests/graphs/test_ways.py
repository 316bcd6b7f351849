# SPDX-License-Identifier: Apache-2.0
"""The tests of graphs, again where the driver lacks what graphs use."""

import sys
from pathlib import Path

import pytest

from helpers.process import run

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.mark.parametrize("disable", ["graph", "graph_forks", "graph,mutable_lists", "inorder"])
def test_the_same_tests_pass_without(disable, tmp_path):
    files = sorted(path for path in HERE.glob("test_*.py") if path != Path(__file__))
    args = [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "--rootdir", ROOT, "-q", "-n", "0"]
    result = run([*args, "-p", "no:cacheprovider", *files], {"L0RT_DISABLE": disable}, tmp_path, 600)
    assert result.returncode == 0, result
