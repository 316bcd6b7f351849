# SPDX-License-Identifier: Apache-2.0
"""What the tests of graphs share: the kernels, and a buffer of zeros."""

import l0rt
import l0rt.accelerator as acc
import pytest

from helpers.graph_programs import BUFFER, KERNELS


@pytest.fixture(scope="session")
def kernels():
    """A module with the tests' kernels, which is there for all of them."""
    module = l0rt.Module(KERNELS)
    kept = [module[name] for name in module]
    yield module
    del kept
    module.close()


@pytest.fixture
def buffer():
    made = l0rt.empty(BUFFER).fill(0)
    acc.synchronize()
    return made
