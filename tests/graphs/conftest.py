# SPDX-License-Identifier: Apache-2.0
"""What the tests of graphs share: the kernels, and a buffer of zeros."""

import ctypes

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


@pytest.fixture
def walkers():
    """How many kernels the simulated kernel device has run."""
    device = ctypes.CDLL(None)
    if not hasattr(device, "xe_device_counter"):
        pytest.skip("no simulated kernel device counts kernels here")
    device.xe_device_counter_name.restype = ctypes.c_char_p
    device.xe_device_counter.restype = ctypes.c_ulonglong
    number = next(i for i in range(64) if device.xe_device_counter_name(i) == b"gpu_walker")
    return lambda: device.xe_device_counter(number)
