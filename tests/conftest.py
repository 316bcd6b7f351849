# SPDX-License-Identifier: Apache-2.0
"""What every test stands on: the CPU driver unless told otherwise, the ledger, markers, and the rings' summary."""

import os
import random
import shutil
import signal
import sys
import tempfile

import pytest

from helpers import covering, extents, once, process, rings
from helpers.ci import skip_unless_ci
from helpers.ledger import nothing_leaks, pytest_runtest_makereport, warm  # noqa: F401

FREE = ("L0RT_TEST_", "L0RT_CACHE_DIR")
PLAIN = not any(name.startswith(("L0RT_", "ZE_")) and not name.startswith(FREE) for name in os.environ)
if not os.environ.get("L0RT_DRIVER"):
    os.environ["L0RT_DRIVER"] = "cpu"
    os.environ.setdefault("L0RT_CPU_DEVICES", "2")
NOTES = pytest.StashKey[str]()  # the library of driver_notes.py
_folders = []  # removed at the end
if not os.environ.get("L0RT_CACHE_DIR"):  # what tests compile is not kept in the user's folder
    os.environ["L0RT_CACHE_DIR"] = tempfile.mkdtemp(prefix="l0rt-cache-")
    _folders.append(os.environ["L0RT_CACHE_DIR"])
if not os.environ.get(once.VARIABLE):
    os.environ[once.VARIABLE] = tempfile.mkdtemp(prefix="l0rt-shared-")
    _folders.append(os.environ[once.VARIABLE])
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):  # the tests' hundreds of Pythons share what one has compiled
    os.environ["PYTHONPYCACHEPREFIX"] = tempfile.mkdtemp(prefix="l0rt-bytecode-")
    _folders.append(os.environ["PYTHONPYCACHEPREFIX"])


@pytest.fixture
def default_hangup():
    """What the test starts is ended by SIGHUP, also under nohup: being ignored is inherited, a handler is not."""
    before = signal.signal(signal.SIGHUP, lambda *_: None)
    yield
    signal.signal(signal.SIGHUP, before)


def pytest_addoption(parser):
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run the tests in a random order; 0: a new one")


def pytest_report_header(config):
    return f"in the order of --shuffle={config.option.shuffle}" if config.option.shuffle else None


def runs_everything(config):
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not config.option.collectonly


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Run everything on every core; what somebody names runs without the seconds that further processes take."""
    option = config.option
    if option.shuffle == 0:
        option.shuffle = random.randrange(1, 1 << 32)
    worker = hasattr(config, "workerinput")
    distributes = config.pluginmanager.hasplugin("xdist") and option.numprocesses is None
    if runs_everything(config) and distributes and not worker:
        # One more than there are processors: many tests wait, for a hang to be noticed or for a process to end.
        option.numprocesses, option.dist = os.cpu_count() + 1, "worksteal"
    if (runs_everything(config) or "CI" in os.environ) and config.pluginmanager.hasplugin("rerunfailures"):
        run_failures_again(option)


def run_failures_again(option):
    """A few failures of thousands of tests are tried twice more, and reported whole: some bounds are of time, and
    others have the processors, too. What fails again is a failure; so is what follows the sixth attempt of a run."""
    if option.reruns is None:
        option.reruns, option.reruns_delay, option.max_suite_reruns = 2, 5, 6
        option.rerun_show_tracebacks = True


def pytest_configure(config):
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's job in the background: tests send it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "long: runs short unless L0RT_TEST_ALL=1 or L0RT_TEST_SOAK=1 is set")
    config.addinivalue_line(
        "markers", "checks_data: looks at data that a device computed; needs a driver that executes"
    )
    config.addinivalue_line("markers", "needs_two_devices: uses two devices")
    config.addinivalue_line("markers", "needs_cxx: compiles C++, which README's packages do not bring")
    config.addinivalue_line("markers", "shares_events: sends an event to a process; needs a driver that can")
    config.addinivalue_line("markers", "survives_faults: needs a driver whose device goes on after a kernel's fault")
    config.addinivalue_line("markers", "takes_minutes: begins before the others, so that it is not the last")
    note_calls(config)
    if "XE_DEVICE_FAILURES" in os.environ:
        from helpers import xe_device

        config.pluginmanager.register(xe_device.Failures())


def note_calls(config):
    """Note what the tests ask of the CPU driver without settings: when everything runs, and for `make rings`."""
    file = os.environ.pop("L0RT_TEST_NOTES", None)
    library = getattr(config, "workerinput", {}).get("notes")
    if file or library or (PLAIN and runs_everything(config)):
        from helpers import driver_notes

        if library is None:
            _folders.append(tempfile.mkdtemp(prefix="l0rt-notes-"))
            library = driver_notes.build(_folders[-1])
        config.stash[NOTES] = library
        config.pluginmanager.register(driver_notes.Noting(library, file))


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_handlecrashitem(crashitem, sched):
    """The test of a worker that crashed is not tried again."""
    if sched.config.option.reruns:
        sched.config.failures_db.set_test_reruns(crashitem, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """A worker of pytest-xdist begins."""
    node.workerinput["notes"] = node.config.stash.get(NOTES, None)


def pytest_collection_modifyitems(config, items):
    for item in items:
        if "extent" in item.fixturenames:
            item.add_marker(pytest.mark.long)
    if part := os.environ.get("L0RT_TEST_PART"):
        covering.select(int(part), config, items)
    if config.option.shuffle:
        random.Random(config.option.shuffle).shuffle(items)
    items.sort(key=lambda item: item.get_closest_marker("takes_minutes") is None)


def pytest_sessionfinish():
    process.kill_all()
    for folder in _folders:
        shutil.rmtree(folder, ignore_errors=True)


def pytest_exception_interact(report):
    """An assertion's message has no more than 240 characters of what a process printed."""
    if process.ended:
        report.sections.append(("the last process that ended", str(process.ended[-1])[-20_000:]))


def pytest_runtest_setup(item):
    process.ended.clear()
    if item.get_closest_marker("checks_data") and os.environ.get("L0RT_TEST_NO_DATA") == "1":
        pytest.skip("this driver executes nothing, so there is no data to check")
    if item.get_closest_marker("survives_faults") and "XE_DEVICE" in os.environ:
        pytest.skip("a kernel's fault loses the device")
    if item.get_closest_marker("needs_cxx") and shutil.which("c++") is None:
        skip_unless_ci("needs a C++ compiler: apt install g++")
    if item.get_closest_marker("needs_two_devices"):
        import l0rt.accelerator

        if l0rt.accelerator.device_count() < 2:
            pytest.skip("needs two devices")
    if item.get_closest_marker("shares_events"):
        from l0rt.runtime.streams import devices

        if any("event_ipc" in quirk.without for quirk in devices.mended_quirks(0)):
            pytest.skip("this driver's handles of events mean something else in another process")


@pytest.fixture
def soak():
    """Whether long checks run without end in sight: `make soak`."""
    return extents.SOAK


@pytest.fixture
def extent(request):
    """Choose how much of a long check runs: extent(short, whole, soak); see helpers/extents.py."""
    return extents.Extent(request.node)


@pytest.fixture
def hasty():
    """Threads take turns every few calls: at Python's usual pace, each of the short ones would run by itself."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(2e-5)
    yield
    sys.setswitchinterval(before)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter):
    yield
    if not os.environ.get("L0RT_TEST_RING"):
        for line in rings.summary(terminalreporter.stats) + extents.summary(terminalreporter.stats):
            terminalreporter.write_line(line)
