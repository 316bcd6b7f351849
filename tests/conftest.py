# SPDX-License-Identifier: Apache-2.0
"""What every test stands on: the CPU driver unless told otherwise, the ledger, markers, and the rings' summary."""

import os
import signal
import sys

import pytest

from helpers import extents, process, rings
from helpers.ledger import nothing_leaks, pytest_runtest_makereport, warm  # noqa: F401

if not os.environ.get("L0RT_DRIVER"):
    os.environ["L0RT_DRIVER"] = "cpu"
    os.environ.setdefault("L0RT_CPU_DEVICES", "2")


def pytest_configure(config):
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's job in the background: tests send it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[rings.OUTCOMES], config.stash[rings.RUNNING] = {}, {}
    config.stash[extents.SHORTENED] = {}
    config.addinivalue_line("markers", "long: runs short unless L0RT_TEST_ALL=1 or L0RT_TEST_SOAK=1 is set")
    config.addinivalue_line(
        "markers", "checks_data: looks at data that a device computed; needs a driver that executes"
    )
    config.addinivalue_line("markers", "needs_two_devices: uses two devices")
    config.addinivalue_line("markers", "keeps_every_core_busy: runs behind the others, when no ring runs beside it")


def pytest_collection_modifyitems(config, items):
    for item in items:
        if "extent" in item.fixturenames:
            item.add_marker(pytest.mark.long)
    if part := os.environ.get("L0RT_TEST_PART"):  # "2/5": the second fifth
        number, parts = map(int, part.split("/"))
        config.hook.pytest_deselected(items=[item for i, item in enumerate(items) if i % parts != number - 1])
        items[:] = items[number - 1 :: parts]


def rings_of(items):
    return [item.callspec.params["ring"] for item in items if item.originalname == "test_the_same_tests_pass_on_ring"]


def turn(item):
    """Return when a test runs: rings last, for they run beside the others; before them what keeps every core busy."""
    return 2 if rings_of([item]) else int(item.get_closest_marker("keeps_every_core_busy") is not None)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session):
    chosen = rings_of(session.items)
    if chosen and not session.config.option.collectonly:
        session.items.sort(key=turn)
        rings.start(session.config, chosen, session.config._tmp_path_factory.mktemp("rings"))


def pytest_sessionfinish(session):
    for future in session.config.stash[rings.RUNNING].values():
        future.cancel()
    process.kill_all()


def pytest_runtest_setup(item):
    if item.get_closest_marker("checks_data") and os.environ.get("L0RT_TEST_NO_DATA") == "1":
        pytest.skip("this driver executes nothing, so there is no data to check")
    if item.get_closest_marker("needs_two_devices"):
        import l0rt.accelerator

        if l0rt.accelerator.device_count() < 2:
            pytest.skip("needs two devices")


@pytest.fixture
def soak():
    """Whether long checks run without end in sight: `make soak`."""
    return extents.SOAK


@pytest.fixture
def extent(request):
    """Choose how much of a long check runs: extent(short, whole, soak); see helpers/extents.py."""
    return extents.Extent(request.node, request.config.stash[extents.SHORTENED])


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
        for line in extents.summary(config.stash[extents.SHORTENED]):
            terminalreporter.write_line(line)
