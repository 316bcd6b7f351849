# SPDX-License-Identifier: Apache-2.0
"""Several accelerators: another device type is made current, and the whole facade works on it."""

import threading

import l0rt
import l0rt.accelerator as acc
import l0rt.xpu as xpu
import pytest
from l0rt.interface import register_interface_for_device, set_accelerator

from helpers import demo
from helpers.process import run_python


@pytest.fixture
def demo_is_current():
    register_interface_for_device("demo", demo.DemoInterface)
    acc.set_accelerator("demo")
    yield
    acc.set_device_index(0)
    acc.set_stream(acc.default_stream(0))
    acc.set_accelerator("xpu")


def test_it_is_the_current_accelerator(demo_is_current):
    assert acc.current_accelerator() == l0rt.device("demo")
    assert l0rt.device(1) == l0rt.device("demo:1") == l0rt.device("demo", 1)
    assert acc.device_count() == demo.DEVICES
    assert acc.is_available()
    assert acc.get_device_name(1) == "a demonstration"
    assert acc.get_device_capability("demo:0") == {"supported_dtypes": {"uint8"}}
    assert acc.can_device_access_peer(0, "demo:1")


def test_devices_are_switched_and_restored(demo_is_current):
    acc.set_device_index("demo:1")
    assert acc.current_device_index() == acc.get_device_index() == 1
    acc.set_device_index(-1)
    with acc.device_index(0), acc.device_index(None):
        assert acc.current_device_index() == 0
    assert acc.current_device_index() == 1
    for wrong, error in (("xpu:0", ValueError), (2, IndexError), (1.5, TypeError)):
        with pytest.raises(error), acc.device_index(wrong):
            pass
    with pytest.raises(ValueError, match="xpu doesn't match the current accelerator demo."):
        acc.current_stream("xpu:0")
    with pytest.raises(IndexError, match=r"must be in \[0, 2\), but got 2."):
        acc.synchronize(2)


def test_streams_and_events_are_its_own(demo_is_current):
    stream, event, seen = l0rt.Stream("demo:1"), l0rt.Event(), []
    assert isinstance(stream, demo.DemoStream)
    assert isinstance(event, demo.DemoEvent)
    assert acc.current_stream() == acc.default_stream()
    go = threading.Event()
    with acc.stream(stream):
        assert (acc.current_device_index(), acc.current_stream()) == (1, stream)
        stream.submit(go.wait)
        stream.submit(lambda: seen.append("first"))
        event.record()
    assert acc.current_device_index() == 0
    assert not event.query()
    acc.current_stream().wait_event(event)
    acc.current_stream().submit(lambda: seen.append("second"))
    go.set()
    acc.synchronize()
    acc.synchronize("demo:1")
    assert seen == ["first", "second"]
    acc.set_stream(stream)
    assert acc.current_stream() == stream == l0rt.Stream(stream_id=stream.stream_id, device_index=1)


def test_its_memory_is_served_by_the_same_allocator(demo_is_current):
    before = acc.memory_allocated(1)
    heap = demo.allocator(1)
    pointer = heap.malloc(1000)
    assert acc.memory_allocated("demo:1") == before + 1024
    assert acc.max_memory_allocated(1) >= before + 1024
    assert acc.memory_reserved(1) >= 1024
    assert acc.memory_stats(1)["allocated_bytes.all.current"] == before + 1024
    assert list(acc.memory_stats(1)) == sorted(acc.memory_stats(1))
    free, total = acc.get_memory_info(1)
    assert free < total == demo.CAPACITY
    heap.free(pointer)
    acc.reset_peak_memory_stats(1)
    assert acc.max_memory_allocated(1) == before
    acc.reset_accumulated_memory_stats(1)
    acc.set_memory_limit(4096, "demo:1")
    with pytest.raises(l0rt.OutOfMemoryError):
        heap.malloc(32 << 20)
    acc.set_memory_limit(None, 1)
    assert acc.mem_get_info(1) == acc.get_memory_info(1)
    acc.empty_cache()
    acc.empty_host_cache()
    assert acc.memory_reserved(1) == 0


def test_its_memory_is_summed_up(demo_is_current):
    assert acc.memory_summary().splitlines() == acc.memory_summary("demo:0").splitlines()
    assert set(acc.memory_stats_as_nested_dict()) >= {"allocated_bytes", "num_ooms"}
    with pytest.raises(NotImplementedError, match="memory_snapshot"):
        acc.memory_snapshot()


def test_its_generators_are_seeded_and_restored(demo_is_current):
    acc.manual_seed_all(3)
    acc.set_rng_state((9).to_bytes(8, "little"), "demo:1")
    assert [int.from_bytes(s, "little") for s in acc.get_rng_state_all()] == [3, 9]
    with acc.fork_rng():
        acc.manual_seed(5)
        assert acc.initial_seed() == 5
    assert acc.initial_seed() == 3
    assert acc.seed() == acc.initial_seed() == 4711


def test_it_opens_lazily_and_once(demo_is_current):
    acc.init()
    acc.current_stream(1)
    assert demo.opened == [True]
    assert demo.lazy.initialized


def test_the_built_in_module_stays_what_it_is(demo_is_current):
    assert isinstance(xpu.Stream(), xpu.Stream)
    assert isinstance(xpu.Event(), l0rt.Event)
    assert isinstance(xpu.current_stream(), xpu.Stream)
    with xpu.device(0):
        assert xpu.current_device() == 0
    assert xpu.memory_allocated() >= 0
    assert isinstance(l0rt.Stream(stream_id=0, device_type="xpu"), xpu.Stream)


def test_a_block_restores_the_accelerator_that_it_changed(demo_is_current):
    guard = acc.device_index(1)
    with guard:
        acc.set_accelerator("xpu")
        with guard if acc.device_count() > 1 else acc.device_index(None):
            acc.set_accelerator("demo")
        assert acc.current_device_index() == 0 or acc.current_accelerator().type == "demo"
    assert demo.DemoInterface.current_device() == 0
    acc.set_accelerator("xpu")
    assert acc.current_device_index() == 0


def test_an_unknown_accelerator_changes_nothing():
    with pytest.raises(NotImplementedError, match="No interface for device nowhere"):
        set_accelerator("nowhere")
    assert acc.current_accelerator() == l0rt.device("xpu")


def test_switching_while_threads_work_confuses_nobody(demo_is_current):
    stop, wrong = threading.Event(), []

    def work():
        try:
            while not stop.is_set():
                stream = acc.current_stream()
                kind = "demo" if isinstance(stream, demo.DemoStream) else "xpu"
                if str(stream.device) not in (f"{kind}:0",):
                    wrong.append(stream)
                with acc.device_index(0), acc.stream(stream):
                    acc.memory_allocated()
        except Exception as failure:
            wrong.append(failure)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        acc.set_accelerator("xpu")
        acc.set_accelerator("demo")
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_process_that_uses_another_accelerator_opens_no_level_zero_driver():
    result = run_python(
        f"""
import sys
sys.path.insert(0, {str(demo.__file__.rpartition("/helpers")[0])!r})
from helpers import demo
import l0rt.accelerator as acc, l0rt.xpu, l0rt.interface as i
i.register_interface_for_device("demo", demo.DemoInterface)
acc.set_accelerator("demo")
with acc.device_index(1), acc.Stream() as stream:
    acc.Event().record(stream)
    acc.synchronize()
    acc.memory_stats()
    acc.manual_seed_all(1)
assert demo.opened and not l0rt.xpu.is_initialized()
""",
        {"L0RT_DRIVER": "/nonexistent/libze.so"},
    )
    assert result.returncode == 0, result
    assert result.stderr == ""
