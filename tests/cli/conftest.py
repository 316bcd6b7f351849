# SPDX-License-Identifier: Apache-2.0
"""A machine that the doctor examines."""

import pytest

from helpers.doctor import empty_machine


@pytest.fixture
def machine():
    with empty_machine() as made:
        yield made
