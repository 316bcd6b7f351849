# SPDX-License-Identifier: Apache-2.0
"""The history of memory: what is recorded follows from itself, and comes to what the snapshot shows."""

import gc
import pickle
import random
import threading

import l0rt
import l0rt.accelerator as acc
import pytest
from l0rt import config, memory, profiler

from helpers.histories import Model, check_schema
from helpers.process import run_python

pytestmark = pytest.mark.usefixtures("recorded")

KIB, MIB = 1 << 10, 1 << 20
began = {}


@pytest.fixture
def recorded():
    """Nothing is recorded before and after, nothing is cached, and the configuration stays."""
    gc.collect()
    acc.empty_cache()
    memory.empty_host_cache()
    with config.patch({"alloc_conf": str(memory.get_alloc_conf())}):
        yield
    memory.record_memory_history(None)
    memory.set_memory_limit(None)
    gc.collect()
    acc.empty_cache()


def of_device(segments, device):
    return [segment for segment in segments if segment["device"] == device]


def begin(**arguments):
    """Record, and keep what there was before: other tests may have left something."""
    shot = memory.snapshot()
    began.update(device=shot["segments"], host=shot["host_segments"])
    memory.record_memory_history(**arguments)


def play(shot, device=0):
    """The model of one device's trace, checked against its segments."""
    model = Model(of_device(began["device"], device)).play(shot["device_traces"][device])
    model.check(of_device(shot["segments"], device))
    return model


def new(model, device=0):
    """What the model has allocated since the beginning."""
    return {address: size for address, size in model.allocated.items()
            if address not in Model(of_device(began["device"], device)).allocated}  # fmt: skip


def run_program(seed, steps, streams, pools, most=4 * MIB):
    """Allocate and free at random, on several streams and in pools, with uses by other streams."""
    rng = random.Random(seed)
    held = []
    for _ in range(steps):
        if held and rng.random() < 0.48:
            held.pop(rng.randrange(len(held))).free()
            continue
        pool, stream = rng.choice(pools), rng.choice(streams)
        nbytes = int(2 ** rng.uniform(0, rng.choice((12, 21, 24)))) % most + 1
        if pool is None:
            held.append(l0rt.empty(nbytes, stream=stream))
        else:
            with memory.use_mem_pool(pool):
                held.append(l0rt.empty(nbytes, stream=stream))
        if rng.random() < 0.1:
            held[-1].record_stream(rng.choice(streams))
        if rng.random() < 0.02:
            acc.empty_cache()
    return held


@pytest.mark.parametrize(("conf", "context"), [
    ("", "all"), ("", None), ("expandable_segments:False", "all"), ("segments:torch", None), ("backend:async", None),
])  # fmt: skip
def test_the_trace_comes_to_what_the_snapshot_shows(conf, context, extent):
    memory.set_alloc_conf(conf)
    pools = [None, None, memory.MemPool(), memory.MemPool(no_split=True)]
    streams = [acc.Stream() for _ in range(3)]
    for seed in range(extent(2, 60)):
        begin(context=context, clear_history=True)
        held = run_program(seed, 200, streams, pools)
        shot = memory.snapshot()
        check_schema(shot, acc.device_count())
        model = play(shot)
        assert new(model) == {buffer.ptr: buffer.nbytes for buffer in held}
        assert "snapshot" not in [entry["action"] for entry in shot["device_traces"][0]]  # it is not in itself
        for buffer in held:
            buffer.free()
        acc.synchronize()
        acc.empty_cache()
        shot = memory.snapshot()
        assert not new(play(shot))
        assert [entry["action"] for entry in shot["device_traces"][0]].count("snapshot") == 1
        memory.record_memory_history(None)


def test_the_peak_is_exact():
    begin(context=None)
    acc.reset_peak_memory_stats()
    for buffer in run_program(7, 500, [acc.current_stream()], [None]):
        buffer.free()
    acc.synchronize()
    assert play(memory.snapshot()).peak == memory.memory_stats()["requested_bytes.all.peak"]


def outer(function):
    return function()


def make_one():
    return l0rt.empty(3 * KIB)


def frames_of(entry):
    return [(frame["name"], frame["filename"]) for frame in entry.get("frames", [])]


def test_stacks_name_who_allocates_and_who_frees():
    memory.record_memory_history()
    buffer = outer(make_one)
    address = buffer.ptr

    def drop():
        nonlocal buffer
        buffer = None

    shot = memory.snapshot()
    outer(drop)
    entries = [entry for entry in memory.snapshot()["device_traces"][0] if entry.get("addr") == address]
    alloc, requested, completed = [entry for entry in entries if not entry["action"].startswith("segment")]
    assert frames_of(alloc)[:2] == [("make_one", __file__), ("outer", __file__)]
    assert alloc["frames"][0]["line"] == make_one.__code__.co_firstlineno + 1
    assert frames_of(requested)[:2] == frames_of(completed)[:2] == [("drop", __file__), ("outer", __file__)]
    (block,) = [block for segment in shot["segments"] for block in segment["blocks"] if block["address"] == address]
    assert block["frames"] == alloc["frames"]


@pytest.mark.parametrize(("context", "of_block", "of_alloc", "of_free"), [
    (None, False, False, False), ("state", True, False, False), ("alloc", True, True, False), ("all", True, True, True),
])  # fmt: skip
def test_context_says_which_stacks_are_kept(context, of_block, of_alloc, of_free):
    memory.record_memory_history(context=context)
    buffer = l0rt.empty(3 * KIB)
    address = buffer.ptr
    blocks = [block for segment in memory.snapshot()["segments"] for block in segment["blocks"]]
    (block,) = [block for block in blocks if block["address"] == address]
    assert bool(block["frames"]) == of_block
    buffer.free()
    entries = {entry["action"]: entry for entry in memory.snapshot()["device_traces"][0] if entry["addr"] == address}
    assert bool(frames_of(entries["alloc"])) == of_alloc
    assert bool(frames_of(entries["free_requested"])) == of_free


def test_state_keeps_stacks_and_no_entries():
    memory.record_memory_history("state")
    buffer = make_one()
    shot = memory.snapshot()
    assert shot["device_traces"][0] == []
    (block,) = [block for segment in shot["segments"] for block in segment["blocks"] if block["address"] == buffer.ptr]
    assert block["frames"][0]["name"] == "make_one"
    memory.record_memory_history(None)
    blocks = [block for segment in memory.snapshot()["segments"] for block in segment["blocks"]]
    assert not any(block["frames"] for block in blocks)


def test_a_stack_of_before_is_nobodys():
    memory.record_memory_history("state")
    make_one().free()
    memory.record_memory_history(None)
    buffer = make_one()                     # the same block, most likely
    memory.record_memory_history()
    blocks = {block["address"]: block for segment in memory.snapshot()["segments"] for block in segment["blocks"]}
    assert blocks[buffer.ptr]["frames"] == []


def test_the_ring_keeps_the_last_entries():
    memory.record_memory_history(max_entries=50, context=None)
    for _ in range(1000):
        l0rt.empty(5 * KIB).free()
    last = l0rt.empty(7 * KIB)
    trace = memory.snapshot()["device_traces"][0]
    assert len(trace) == 50
    assert (trace[-1]["action"], trace[-1]["addr"]) == ("alloc", last.ptr)
    Model().play(trace, is_whole=False)
    memory.record_memory_history(max_entries=10, context=None)
    shrunk = memory.snapshot()["device_traces"][0]
    again, before = shrunk[-2], trace[-1]
    assert abs(again.pop("time_us") - before.pop("time_us")) <= 1  # the host's clocks are compared anew
    assert again == before
    assert len(shrunk) == 10
    memory.record_memory_history(max_entries=50_000, context=None)
    for _ in range(15_000):
        l0rt.empty(5 * KIB).free()
    grown = memory.snapshot()["device_traces"][0]
    assert sum(entry["action"] == "alloc" for entry in grown) >= 15_000
    memory.record_memory_history(clear_history=True)
    assert memory.snapshot()["device_traces"][0] == []
    assert [entry["action"] for entry in memory.snapshot()["device_traces"][0]] == ["snapshot"]
    memory.record_memory_history(None)
    assert memory.snapshot()["device_traces"][0] == []


def test_skipped_actions_are_not_kept():
    memory.record_memory_history(skip_actions=["snapshot", "free_completed", "segment_map", "segment_alloc"])
    l0rt.empty(5 * KIB).free()
    actions = {entry["action"] for entry in memory.snapshot()["device_traces"][0]}
    assert actions == {"alloc", "free_requested"}


def test_times_are_of_the_clock_and_ascend():
    import time

    memory.record_memory_history()
    begin = time.time_ns() // 1000
    kept = [l0rt.empty(KIB) for _ in range(100)]
    times = [entry["time_us"] for entry in memory.snapshot()["device_traces"][0]]
    assert times == sorted(times)
    assert begin - 20_000 <= times[0] <= times[-1] <= time.time_ns() // 1000 + 20_000
    assert kept


def test_metadata_and_tags_are_of_the_thread():
    memory.record_memory_history()
    memory.set_memory_metadata("step 1")
    assert memory.get_memory_metadata() == "step 1"
    seen = []

    def other():
        seen.append(memory.get_memory_metadata())
        with memory.tag("cache"):
            seen.append(l0rt.empty(2 * MIB))

    thread = threading.Thread(target=other)
    with memory.tag("weights"):
        mine = l0rt.empty(MIB)
        thread.start()
        thread.join()
        with memory.tag("gradients"):
            inner = l0rt.empty(3 * KIB)
        after = l0rt.empty(5 * KIB)
    memory.set_memory_metadata("")
    plain = l0rt.empty(9 * KIB)
    assert seen[0] == ""
    shot = memory.snapshot()
    found = {entry["addr"]: (entry["user_metadata"], entry.get("category"))
             for entry in shot["device_traces"][0] if entry["action"] == "alloc"}  # fmt: skip
    assert [found[buffer.ptr] for buffer in (mine, seen[1], inner, after, plain)] == [
        ("step 1", "weights"), ("", "cache"), ("step 1", "gradients"), ("step 1", "weights"), ("", None)]  # fmt: skip
    stats = memory.memory_stats()
    assert stats["component_bytes.weights.current"] == MIB + 5 * KIB
    assert stats["component_bytes.gradients.current"] == 3 * KIB
    inner.free()
    after.free()
    stats = memory.memory_stats_as_nested_dict()["component_bytes"]
    assert stats["gradients"] == {"allocated": 3 * KIB, "current": 0, "freed": 3 * KIB, "peak": 3 * KIB}
    assert stats["weights"]["peak"] - stats["weights"]["current"] == 5 * KIB
    check_schema(shot, acc.device_count())


def test_tags_count_without_a_history():
    peak = memory.memory_stats().get("component_bytes.alone.peak", 0)
    with memory.tag("alone"):
        buffers = [l0rt.empty(MIB) for _ in range(4)]
    assert memory.memory_stats()["component_bytes.alone.current"] == 4 * MIB
    for buffer in buffers:
        buffer.free()
    stats = memory.memory_stats()
    assert stats["component_bytes.alone.current"] == 0
    assert stats["component_bytes.alone.peak"] == max(peak, 4 * MIB)
    assert list(stats) == sorted(stats)


def test_tags_of_pinned_memory_are_its_own():
    with memory.tag("staging"):
        pinned, other = (l0rt.empty(size, kind="host") for size in (3 * MIB, 5 * KIB))
    other.free()
    assert "component_bytes.staging.current" not in memory.memory_stats()
    assert memory.host_memory_stats_as_nested_dict()["component_bytes"]["staging"] == {
        "allocated": 3 * MIB + 5 * KIB, "current": 3 * MIB, "freed": 5 * KIB, "peak": 3 * MIB + 5 * KIB}  # fmt: skip
    memory.reset_peak_host_memory_stats()
    memory.reset_accumulated_host_memory_stats()
    stats = memory.host_memory_stats()
    assert list(stats) == sorted(stats)
    assert [stats[f"component_bytes.staging.{kind}"] for kind in ("current", "peak", "allocated", "freed")] == [
        3 * MIB, 3 * MIB, 0, 0]  # fmt: skip
    pinned.free()
    assert memory.host_memory_stats()["component_bytes.staging.current"] == 0


def test_annotations_are_kept():
    memory.record_memory_history()
    with memory.annotate("forward"):
        l0rt.empty(KIB)
    assert [(a["name"], a["stage"]) for a in memory.snapshot()["external_annotations"]] == [
        ("forward", "START"), ("forward", "END")]  # fmt: skip


def notes():
    told = memory.snapshot()
    check_schema(told, acc.device_count())
    return [(a["name"], a["stage"]) for a in told["external_annotations"]]


def test_ranges_of_the_profiler_are_annotations():
    @profiler.range("called")
    def allocate():
        return l0rt.empty(3 * KIB)

    memory.record_memory_history()
    with profiler.range("outer"):
        kept = allocate()
        profiler.mark("a moment is none")
    assert notes() == [("outer", "START"), ("called", "START"), ("called", "END"), ("outer", "END")]
    shot = memory.snapshot()
    times = [a["time_us"] for a in shot["external_annotations"]]
    (entry,) = (e for e in shot["device_traces"][0] if e["action"] == "alloc")
    assert times == sorted(times)
    assert entry["addr"] == kept.ptr
    assert entry["size"] == 3 * KIB


def test_a_range_is_noted_whole_or_by_its_beginning():
    profiler.range_push("before")
    memory.record_memory_history()
    profiler.range_pop()  # its beginning is not in the history
    profiler.range_push("open")
    assert notes() == [("open", "START")]
    memory.record_memory_history(clear_history=True)
    assert profiler.range_pop() == 0
    assert notes() == []
    profiler.range_push("over")
    memory.record_memory_history(None)
    memory.record_memory_history()
    profiler.range_pop()
    with memory.annotate("with"):
        memory.record_memory_history("state")
    assert notes() == [("with", "START"), ("with", "END")]
    memory.record_memory_history(None)
    with profiler.range("nobody looks"), memory.annotate("at this"):
        pass
    assert notes() == []


@pytest.mark.needs_two_devices
def test_a_range_ends_on_the_device_where_it_began():
    memory.record_memory_history()
    profiler.range_push("step")
    with acc.device_index(1):
        l0rt.empty(KIB)
        profiler.range_pop()
        with memory.annotate("other"):
            acc.set_device_index(0)
    told = memory.snapshot()["external_annotations"]
    assert [(a["device"], a["name"], a["stage"]) for a in told] == [
        (0, "step", "START"), (0, "step", "END"), (1, "other", "START"), (1, "other", "END")]  # fmt: skip


def test_ranges_of_threads_that_begin_and_clear_a_recording_are_whole(hasty, extent):
    memory.record_memory_history()
    turns, meeting = extent(30, 1000), threading.Barrier(4)

    def ranges(number):
        random_one = random.Random(number)
        for _ in range(turns):
            meeting.wait(60)
            for _ in range(50):
                with profiler.range(f"thread {number}"):
                    for _ in range(random_one.randrange(3)):
                        profiler.range_push(f"inner {number}")
                        profiler.range_pop()

    threads = [threading.Thread(target=ranges, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(turns):
        meeting.wait(60)
        memory.record_memory_history(clear_history=turn % 3 == 0)
        open_ones = {}
        for name, stage in notes():
            open_ones[name] = open_ones.get(name, 0) + (1 if stage == "START" else -1)
            assert 0 <= open_ones[name] <= 1  # each thread's own are never apart from each other
    for thread in threads:
        thread.join()


def test_ranges_before_the_driver_and_in_a_forked_child_do_no_harm():
    result = run_python("""
import os, l0rt
from l0rt import memory, profiler
memory.record_memory_history()
with profiler.range("early"):
    kept = l0rt.empty(1000)
profiler.range_push("across")
child = os.fork()
if not child:
    profiler.range_pop()
    with profiler.range("child"):
        os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
profiler.range_pop()
print([(a["name"], a["stage"]) for a in memory.snapshot()["external_annotations"]])
""")
    assert result.returncode == 0, result
    assert result.stdout == (
        "[('early', 'START'), ('early', 'END'), ('across', 'START'), ('across', 'END')]\n"
    )


def test_pinned_memory_is_recorded_too():
    begin()
    buffer = l0rt.empty(3 * KIB, kind="host")
    shot = memory.snapshot()
    model = Model(began["host"]).play(shot["host_traces"][0])
    model.check(shot["host_segments"])
    assert model.allocated[buffer.ptr] == 3 * KIB
    assert frames_of(next(e for e in shot["host_traces"][0] if e["action"] == "alloc"))[0][1] == __file__
    buffer.free()
    Model(began["host"]).play(memory.snapshot()["host_traces"][0])
    memory.record_memory_history(clear_history=True, record_pinned_host_memory=False)
    l0rt.empty(3 * KIB, kind="host").free()
    assert memory.snapshot()["host_traces"][0] == []


def test_threads_write_one_history(extent):
    begin()
    steps = extent(300, 5000)

    def work(seed):
        for buffer in run_program(seed, steps, [acc.Stream()], [None], most=256 * KIB):
            buffer.free()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        memory.snapshot()
    for thread in threads:
        thread.join()
    acc.synchronize()
    acc.empty_cache()
    assert not new(play(memory.snapshot()))


def test_a_capture_is_recorded():
    begin()
    graph = acc.Graph()
    with graph:
        buffer = l0rt.empty(3 * KIB)
        buffer.fill(1)
    play(memory.snapshot())


@pytest.mark.needs_two_devices
def test_each_device_has_its_trace():
    begin()
    first, second = l0rt.empty(3 * KIB, device=0), l0rt.empty(5 * MIB, device=1)
    shot = memory.snapshot()
    check_schema(shot, acc.device_count())
    assert new(play(shot, 0)) == {first.ptr: 3 * KIB}
    assert new(play(shot, 1), 1) == {second.ptr: 5 * MIB}
    alone = memory.snapshot(device=1)
    assert alone["device_traces"][0] == []
    assert {segment["device"] for segment in alone["segments"]} == {1}


def test_raw_memory_is_recorded():
    begin()
    address = memory.caching_allocator_alloc(4 * KIB)
    assert address in play(memory.snapshot()).allocated
    memory.caching_allocator_delete(address)
    assert address not in play(memory.snapshot()).allocated


def test_a_file_has_the_snapshot(tmp_path):
    begin()
    buffer = make_one()
    path = tmp_path / "snapshot.pickle"
    memory.dump_snapshot(path)
    with path.open("rb") as file:
        shot = pickle.load(file)
    check_schema(shot, acc.device_count())
    assert buffer.ptr in play(shot).allocated
    assert [found.name for found in tmp_path.iterdir()] == ["snapshot.pickle"]
    (tmp_path / "folder").mkdir()
    for name, error in (("nowhere/snapshot.pickle", FileNotFoundError), ("folder", IsADirectoryError),
                        ("snapshot.pickle/x", NotADirectoryError)):  # fmt: skip
        with pytest.raises(error) as caught:
            memory.dump_snapshot(tmp_path / name)
        assert (caught.value.filename, caught.value.filename2) == (str(tmp_path / name), None)
        with pytest.raises(error, match=f"{name}'$"):
            memory.dump_history(tmp_path / name)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["folder", "snapshot.pickle"]


@pytest.mark.parametrize(("arguments", "error"), [
    ({"enabled": "some"}, "expected state to be 'state', 'all', or None"),
    ({"context": "free"}, "expected context to be"),
    ({"stacks": "c++"}, "expected stacks to be 'python', or 'all'"),
    ({"max_entries": -1}, "max_entries must not be negative"),
    ({"skip_actions": ["allocate"]}, "there is no action 'allocate'"),
])  # fmt: skip
def test_wrong_modes_are_refused(arguments, error):
    with pytest.raises((RuntimeError, ValueError), match=error):
        memory.record_memory_history(**arguments)


def test_wrong_names_are_refused():
    for name in ("", "a.b"):
        with pytest.raises(ValueError, match="a tag must not be empty nor have a dot"), memory.tag(name):
            pass
    with pytest.raises(TypeError), memory.tag(1):
        pass
    with pytest.raises(TypeError):
        memory.set_memory_metadata(None)


def test_a_forked_child_says_why_it_has_none():
    result = run_python("""
import os
import l0rt
from l0rt import memory
memory.record_memory_history()
kept = l0rt.empty(1000)
if os.fork() == 0:
    try:
        memory.snapshot()
    except RuntimeError as error:
        os._exit(0 if "fork" in str(error) else 1)
    os._exit(2)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
""")
    assert result.returncode == 0, result


def test_the_end_of_a_process_that_records_is_silent():
    result = run_python("""
import threading, time
import l0rt
from l0rt import memory
memory.record_memory_history()
kept = [l0rt.empty(1000) for _ in range(100)]
def work():
    while True:
        l0rt.empty(5000)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
""")
    assert (result.returncode, result.stderr) == (0, ""), result


STALE = """
import l0rt
from l0rt import memory
from l0rt.runtime.alloc.stacks import frames_of

def numbers():
    return {n for n in range(1, 100) if frames_of(n, {})}

memory.record_memory_history()
first = [l0rt.empty(512), l0rt.empty(512)]
old = numbers()
memory.record_memory_history(None)      # and a thread may still be about to write one of these
memory.record_memory_history()
second = [l0rt.empty(512) for _ in range(5)] + [l0rt.empty(1024), l0rt.empty(1536)]
new = numbers()
assert len(old) == 2 and len(new) == 3 and not old & new, (old, new)
lines = [e["frames"][0]["line"] for e in memory.snapshot()["device_traces"][0] if e["action"] == "alloc"]
assert len(lines) == 7 and len(set(lines)) == 1, lines
"""


def test_the_number_of_a_stack_that_was_dropped_is_not_used_again():
    result = run_python(STALE)
    assert (result.returncode, result.stderr) == (0, ""), result
