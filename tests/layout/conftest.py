import pytest

from helpers.source import copy_of_house


@pytest.fixture
def house(tmp_path):
    """A copy of the source text, to plant violations in."""
    return copy_of_house(tmp_path / "house")
