"""What every test stands on: the CPU driver unless told otherwise, the ledger, markers, and the rings' summary."""

import os
import sys

import pytest

from helpers import rings
from helpers.ledger import nothing_leaks, pytest_runtest_makereport, warm  # noqa: F401

if not os.environ.get("L0RT_DRIVER"):
    os.environ["L0RT_DRIVER"] = "cpu"
    os.environ.setdefault("L0RT_CPU_DEVICES", "2")


def pytest_configure(config):
    config.stash[rings.OUTCOMES] = {}
    config.addinivalue_line(
        "markers", "checks_data: looks at data that a device computed; needs a driver that executes"
    )
    config.addinivalue_line("markers", "needs_two_devices: uses two devices")


def pytest_runtest_setup(item):
    if item.get_closest_marker("checks_data") and os.environ.get("L0RT_TEST_NO_DATA") == "1":
        pytest.skip("this driver executes nothing, so there is no data to check")
    if item.get_closest_marker("needs_two_devices"):
        import l0rt.accelerator

        if l0rt.accelerator.device_count() < 2:
            pytest.skip("needs two devices")


@pytest.fixture
def soak():
    """Whether long checks run at full length."""
    return os.environ.get("L0RT_TEST_SOAK") == "1"


@pytest.fixture
def hasty():
    """Threads take turns every few calls: at Python's usual pace, each of the short ones would run by itself."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(2e-5)
    yield
    sys.setswitchinterval(before)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter, config):
    yield
    if not os.environ.get("L0RT_TEST_RING"):
        for line in rings.summary(terminalreporter.stats, config.stash[rings.OUTCOMES]):
            terminalreporter.write_line(line)
