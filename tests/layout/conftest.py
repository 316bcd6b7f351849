# SPDX-License-Identifier: Apache-2.0
import pytest

from helpers.source import copy_of_tree


@pytest.fixture
def tree(tmp_path):
    """A copy of the source text, to plant violations in."""
    return copy_of_tree(tmp_path / "tree")
