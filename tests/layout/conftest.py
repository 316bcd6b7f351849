# SPDX-License-Identifier: Apache-2.0
import pytest

from helpers.source import copy_of_tree, restore, stamps


@pytest.fixture(scope="session")
def only_copy(tmp_path_factory):
    return copy_of_tree(tmp_path_factory.mktemp("source") / "tree")


@pytest.fixture
def tree(only_copy):
    """A copy of the source text, to plant violations in; what a test has changed there is undone."""
    before = stamps(only_copy)
    yield only_copy
    restore(only_copy, before)
