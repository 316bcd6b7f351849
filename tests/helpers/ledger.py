# SPDX-License-Identifier: Apache-2.0
"""The CPU driver's ledger: a test that leaves more live objects behind than it found has leaked them.

Caches that live as long as the process are no leaks. What they can give back they give back before each count
(`settle`); what grows once and stays (pool streams' lists) is made by a warm-up before the first count; native events
that nothing uses do not count, nor do those that streams keep, for how many there are depends on how much was in
flight at a time.
"""

import ctypes
import gc
import os
import sys
import threading

import pytest

from helpers.rings import runs_on_a_driver

POOL_STREAMS = 32
POOL_SLOTS = 256  # events that the runtime makes at once
KEPT = 1024  # native events that a device's streams may keep for their next use, a few each
PASSED = pytest.StashKey[bool]()


def library():
    """Return the CPU driver if this process has it, loaded by l0rt or by the loader; None otherwise."""
    path = getattr(sys.modules.get("l0rt"), "cpu_driver_path", lambda: None)()
    try:
        found = path and ctypes.CDLL(os.fspath(path), mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None
    if not found:
        return None
    found.l0rt_cpu_live.restype = ctypes.c_uint64
    found.l0rt_cpu_kind_name.restype = ctypes.c_char_p
    return found


def counted():
    """Return the driver's live objects, kind -> number, those of caches too; None without the CPU driver."""
    driver = library()
    if driver is None:
        return None
    counts = {}
    while name := driver.l0rt_cpu_kind_name(len(counts)):
        counts[name.decode()] = driver.l0rt_cpu_live(len(counts))
    return counts


def live():
    """Return the live objects that nothing keeps for its next use, kind -> number; None without the CPU driver."""
    gc.collect()  # on every driver: a test that counts what is allocated begins without the garbage of others
    settle()
    counts = counted()
    if counts is None:
        return None
    for cache in event_caches():
        in_use = cache["made"] - cache["free"] - cache["retired"]
        counts["event"] += max(in_use - KEPT, 0) - cache["made"]
        counts["event_pool"] -= cache["made"] // POOL_SLOTS
        counts["usm"] -= cache["timed"] // POOL_SLOTS  # a pool of timed events has a clock
        counts["point"] -= cache["counter"]  # a counter-based event keeps the point that it was last signalled at
    counts["point"] = max(counts["point"], 0)
    for kind, made in generator_kernels().items():
        counts[kind] -= made
    return counts


def generator_kernels():
    """Return the modules that stay for random numbers, and their kernels."""
    random = sys.modules.get("l0rt.launch.random")
    return {} if random is None else random.built()


def event_caches():
    """Return what each device has of native events; nothing before the runtime is up."""
    devices = sys.modules.get("l0rt.runtime.streams.devices")
    if devices is None or not devices.lazy.initialized:
        return []
    from l0rt.runtime.streams.event_pool import cache_state

    return [cache_state(index) for index in range(devices.device_count())]


def settle():
    """Let the caches give back what nothing uses any more."""
    devices = sys.modules.get("l0rt.runtime.streams.devices")
    if devices is None or not devices.lazy.initialized:
        return
    import l0rt.accelerator as acc

    for device in range(acc.device_count()):
        acc.synchronize(device)
    settle_callbacks()
    if "l0rt.kernels.image" in sys.modules:
        sys.modules["l0rt.kernels.image"]._sweep()
    acc.empty_cache()
    acc.empty_host_cache()


def settle_callbacks():
    """Let callbacks end whose work is complete: their threads hold what that needs."""
    for thread in threading.enumerate():
        if thread.name == "l0rt callbacks":
            thread.join(10)


def warm_up():
    """Make what is made once: every pool stream's list, and a clock."""
    try:
        import l0rt.accelerator as acc
    except ModuleNotFoundError:
        return
    for device in range(acc.device_count()):
        with acc.device_index(device):
            acc.Event().record()
            if library() is None:
                return
            acc.Event().record(acc.stream_pool.copy_stream())
            with acc.stream_pool.lease(engine="copy") as leased:
                acc.Event().record(leased)
            with acc.stream_pool.lease() as leased, acc.stream_pool.lease() as another:
                acc.Event().record(leased)
                acc.Event().record(another)
            for priority in (-1, 0, 1):
                for _ in range(POOL_STREAMS):
                    acc.Event().record(acc.Stream(priority=priority))
            acc.Event(enable_timing=True).record()
            acc.synchronize()


def settings():
    """Return what was set of l0rt's configuration, path -> text."""
    config = sys.modules.get("l0rt.config")
    return {} if config is None else {path: s.text for path, s in config._NODES.items() if s.text is not None}


def leaks(before, after):
    """Return one line for each kind that has grown."""
    return [f"{kind}: {before.get(kind, 0)} before, {n} after" for kind, n in after.items() if n > before.get(kind, 0)]


@pytest.fixture(scope="session")
def warm():
    warm_up()


@pytest.fixture(autouse=True)
def nothing_leaks(request):
    """Fail the test that leaves live Level Zero objects behind, or a setting that it has changed."""
    if runs_on_a_driver(request.path):
        request.getfixturevalue("warm")
    before, set_before = live(), settings()
    gc.freeze()  # it collected: what is there stays, and the collection after the test need not look at it
    yield
    if settings() != set_before:
        pytest.fail(f"the test left settings: {settings()}, before {set_before}", pytrace=False)
    # A failed test's traceback keeps its objects; and the test that loaded the driver has nothing to compare with.
    if before is None or not request.node.stash.get(PASSED, False):
        return
    request.node.funcargs.clear()  # fixtures are torn down by now; their values are still held here
    if grown := leaks(before, live()):
        pytest.fail("the test leaked\n  " + "\n  ".join(grown), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    if report.when == "call":
        item.stash[PASSED] = report.passed
    return report
