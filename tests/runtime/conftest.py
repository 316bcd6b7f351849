"""What the allocator's tests share: an allocator over plain memory that must not leak, and its compiled loops."""

import gc
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))


@pytest.fixture
def make():
    """Make allocators over plain memory; afterwards everything must have been given back."""
    from l0rt.runtime.allocator import Allocator
    from l0rt.runtime.plainmemory import PlainMemory

    made = []

    def make(limit=None, **memory):
        memory = PlainMemory(**memory)
        made.append(memory)
        return Allocator(memory, limit=limit)

    yield make
    gc.collect()            # an exception that a test has looked at holds its frame
    for memory in made:
        counters = memory.counters
        assert counters["used"] == 0
        assert counters["reserves"] == counters["releases"]
        assert counters["records"] == counters["drops"]


@pytest.fixture(scope="session")
def loops(tmp_path_factory):
    """The module of compiled loops, built as a foreign package would be."""
    import build_loops

    return build_loops.build(tmp_path_factory.mktemp("loops"))
