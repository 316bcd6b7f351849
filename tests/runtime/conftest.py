# SPDX-License-Identifier: Apache-2.0
"""What the allocator's tests share: an allocator over plain memory that must not leak, and its compiled loops."""

import gc

import pytest

from helpers import build_loops


def pytest_generate_tests(metafunc):
    """Run whatever makes allocators on both ways of growing, or on those that the module names in GROWTH."""
    if "make" in metafunc.fixturenames:
        metafunc.parametrize("make", getattr(metafunc.module, "GROWTH", ("segments", "ranges")), indirect=True)


@pytest.fixture
def emptied():
    """Nothing is cached before, and no limit is left behind."""
    import l0rt.accelerator as acc
    from l0rt import memory

    gc.collect()
    acc.empty_cache()
    yield
    memory.set_memory_limit(None)
    gc.collect()
    acc.empty_cache()


@pytest.fixture
def host():
    """Functions that give memory of the host; they must have got all of it back in the end."""
    import l0rt.accelerator as acc

    from helpers.hostmemory import Host

    made = Host()
    yield made
    gc.collect()
    acc.empty_cache()
    assert not made.live


@pytest.fixture
def make(request):
    """Make allocators over plain memory, without and with virtual memory; it must all be given back in the end."""
    from l0rt.runtime.alloc.allocator import Allocator

    from helpers.plain import PlainMemory

    made = []

    def make(limit=None, **memory):
        if request.param == "ranges":
            memory.setdefault("virtual", 1 << 34)
        memory = PlainMemory(**memory)
        made.append(memory)
        return Allocator(memory, limit=limit)

    make.has_ranges = request.param == "ranges"
    yield make
    gc.collect()            # an exception that a test has looked at holds its frame
    for memory in made:
        counters = memory.counters
        assert counters["used"] == 0
        assert counters["reserves"] == counters["releases"]
        assert counters["physicals"] == 0
        assert counters["ranges"] == 0
        assert counters["records"] == counters["drops"]


@pytest.fixture(scope="session")
def loops():
    """The module of compiled loops, built as a foreign package would be."""
    return build_loops.load("allocator_loops")
