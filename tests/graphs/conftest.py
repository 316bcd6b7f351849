# SPDX-License-Identifier: Apache-2.0
"""What the tests of graphs share: the kernels."""

import l0rt
import pytest

from helpers.graph_programs import KERNELS


@pytest.fixture(scope="session")
def kernels():
    """A module with the tests' kernels, which is there for all of them."""
    module = l0rt.Module(KERNELS)
    kept = [module[name] for name in module]
    yield module
    del kept
    module.close()
