# SPDX-License-Identifier: Apache-2.0
"""Out of memory, explained: the error's text, the snapshot that is written then, a real program up to a limit; logs."""

import contextlib
import csv
import json
import os
import pickle
import random
import re
import threading

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt import config, memory
from l0rt._base.integers import size_text
from l0rt.errors import OutOfMemoryError
from l0rt.runtime.memory.explanation import cause, device_text, explain

from helpers.histories import Model, check_schema
from helpers.process import run_python
from helpers.source import ROOT

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
NUMBERS = {"requested": 256 * MIB, "free": 15 * GIB, "total": 16 * GIB, "allocated": 0, "asleep": 0,
           "pending": 0, "cached": 0, "releasable": 0, "largest": 0, "private": 0, "limit": None,
           "pool_limit": None, "pool_left": 1 << 62,
           "adaptors": [], "users": [], "is_async": False, "is_expandable": True, "allocator": None,
           "address_space": None}  # fmt: skip
POOL = {"pool_limit": 512 * MIB, "pool_left": 112 * MIB, "allocated": 400 * MIB}


@pytest.fixture(autouse=True)
def recorded(emptied):
    yield
    memory.enable_oom_snapshot(None)
    memory.record_memory_history(None)


@pytest.mark.parametrize(("numbers", "said", "unsaid"), [
    ({}, ["allocate less"], ["empty_cache", "limit", "fragmentation"]),
    ({"requested": 17 * GIB}, ["larger than the device's memory"], ["raise the limit"]),
    ({"limit": 128 * MIB}, ["larger than the limit", "raise the limit"], ["empty_cache"]),
    ({"limit": 512 * MIB, "allocated": 400 * MIB, "free": 15 * GIB},
     ["the limit leaves too little", "free buffers", "raise the limit"], ["empty_cache", "other programs"]),
    ({"free": MIB, "allocated": 14 * GIB, "cached": 512 * MIB, "largest": 128 * MIB, "is_expandable": False},
     ["largest free block has 128.00 MiB, fragmentation 75 %", "expandable_segments:True", "Enough is cached, but"],
     ["raise the limit", "empty_cache"]),
    ({"free": MIB, "allocated": 14 * GIB, "cached": 512 * MIB, "largest": 128 * MIB, "releasable": 384 * MIB},
     ["use `empty_cache` to release all unoccupied cached memory: 384.00 MiB."], ["empty_host_cache"]),
    ({"free": MIB, "cached": 512 * MIB, "releasable": MIB, "is_host": True},
     ["use `empty_host_cache` to release all unoccupied cached memory: 1.00 MiB."], ["`empty_cache`", "programs"]),
    ({"requested": 17 * GIB, "is_host": True}, ["larger than the machine's memory"], ["empty_host_cache"]),
    ({**POOL}, ["The device has enough free memory, but the pool's limit leaves too little", "raise the pool's limit"],
     ["raise the limit"]),
    ({**POOL, "free": MIB}, ["The pool's limit leaves too little"], ["enough free memory"]),
    ({**POOL, "requested": 600 * MIB}, ["larger than the pool's limit", "raise the pool's limit"], ["raise the limit"]),
    ({**POOL, "limit": 600 * MIB}, ["raise the pool's limit", "raise the limit"], []),
    ({**POOL, "limit": 800 * MIB}, ["raise the pool's limit"], ["raise the limit"]),
    ({"adaptors": [("LimitingAdaptor", 128 * MIB, 0)]},
     ["larger than the limit of the LimitingAdaptor", "raise the limit of the LimitingAdaptor"], ["pool's"]),
    ({"adaptors": [("LimitingAdaptor", 512 * MIB, 400 * MIB)]}, ["has handed out 400.00 MiB, and its limit leaves"],
     ["larger than"]),
    ({"adaptors": [("LimitingAdaptor", 512 * MIB, 0)], "free": 0}, [], ["LimitingAdaptor"]),
    ({"users": [(7, 3 * GIB), (8, 4 * GIB), (9, 1)], "free": MIB},
     ["Process 8 has 4.00 GiB memory in use. Process 7 has 3.00 GiB memory in use."], ["Process 9", "other programs"]),
    ({"free": MIB, "allocated": 4 * GIB}, ["in use by other programs"], ["empty_cache"]),
    ({"pending": MIB, "is_async": True}, ["backend:async"], []),
    ({"pending": MIB}, ["synchronize the streams"], ["backend:async"]),
    ({}, ["The device has enough free memory, but the driver did not give it."], ["too little free"]),
    ({"free": MIB}, ["The device has too little free memory."], ["enough free memory"]),
    ({"allocator": "The pool's own allocator"}, ["The pool's own allocator has no memory to give."], ["driver"]),
    ({"allocator": "The pool's own allocator", **POOL}, ["the pool's limit leaves too little"], ["own allocator"]),
    ({"address_space": "the process may (ulimit -v)"},
     ["The device has enough free memory, but the process may (ulimit -v)."], []),
    ({"address_space": "the process may (ulimit -v)", "free": MIB}, ["too little free memory"], ["ulimit"]),
])  # fmt: skip
def test_the_advice_fits_the_numbers(numbers, said, unsaid):
    n = {**NUMBERS, **numbers}
    text = f"{cause(n)} {explain(n)}"
    assert all(words in text for words in said), text
    assert not any(words in text for words in unsaid), text
    if not n.get("is_host"):  # first why, then the figures
        figures = {"index": 0, "source": "reported by the driver", "is_trusted": True}
        assert f"Tried to allocate {size_text(n['requested'])}. {cause(n)} GPU 0 has" in device_text({**n, **figures})


def test_an_allocator_of_a_pool_that_has_no_memory_is_the_cause():
    pool = memory.MemPool(memory.PluggableAllocator(lambda *_: 0, lambda *_: None))
    with memory.use_mem_pool(pool), pytest.raises(OutOfMemoryError) as error:
        l0rt.empty(MIB)
    assert "Tried to allocate 1.00 MiB. The pool's own allocator has no memory to give. GPU 0 has" in str(error.value)


def test_a_limit_of_the_address_space_is_the_cause():
    """Once the driver runs, and before."""
    code = '''
import resource
import l0rt
l0rt.accelerator.init()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), resource.RLIM_INFINITY))
try:
    l0rt.empty(64 << 20)
except l0rt.OutOfMemoryError as error:
    print(error)
'''
    result = run_python(code, {"L0RT_DRIVER": "cpu"}, fresh=True)
    expected = r"Tried to allocate 64.00 MiB. The device has enough free memory, but the process may have only "
    expected += r"[\d.]+ [MG]iB of addresses \(ulimit -v\): [\d.]+ [MG]iB are in use. GPU 0 has a total"
    assert re.search(expected, result.stdout), result
    result = run_python(code.replace("l0rt.accelerator.init()", ""), {"L0RT_DRIVER": "cpu"}, fresh=True)
    expected = r"DriverNotFoundError: The driver did not start: the process may have only [\d.]+ [MG]iB of addresses "
    assert re.search(expected + r"\(ulimit -v\): [\d.]+ [MG]iB are in use", result.stderr), result


def weights():
    return l0rt.empty(24 * MIB)


def test_the_error_names_the_places_that_have_allocated_most():
    memory.record_memory_history()
    kept = [weights(), weights(), l0rt.empty(4 * MIB)]
    memory.set_memory_limit(memory.memory_reserved() + 8 * MIB)
    with pytest.raises(OutOfMemoryError) as error:
        l0rt.empty(24 * MIB)  # more than any rest of a segment
    text = str(error.value)
    line = weights.__code__.co_firstlineno + 1
    assert f"Most is allocated by: 48.00 MiB in 2 at {__file__}:{line} (weights); 4.00 MiB in 1 at" in text
    assert "The device has enough free memory, but the limit leaves too little." in text
    entry = memory.snapshot()["device_traces"][0][-1]
    assert (entry["action"], entry["size"]) == ("oom", 24 * MIB)
    assert entry["device_free"] > 0
    assert entry["frames"][0]["filename"] == __file__
    assert kept


def test_no_sites_without_stacks():
    memory.set_memory_limit(8 * MIB)
    with pytest.raises(OutOfMemoryError) as error:
        l0rt.empty(64 * MIB)
    assert "Most is allocated by" not in str(error.value)
    assert "The request is larger than the limit." in str(error.value)


# The first eight calls are those of the opening; then the driver fails to tell how much memory is free.
SILENT = """
import l0rt
from l0rt import memory
memory.set_memory_limit(8 << 20)
try:
    l0rt.empty(64 << 20)
except l0rt.OutOfMemoryError as error:
    assert "({told})" in str(error), error
    print("explained")
assert {trust} is None or memory.memory_info()["trust"] is {trust}
"""


@pytest.mark.parametrize(("calls", "told", "trust"), [
    ((9,), "reported by the driver", True),
    (range(9, 40), "at most: total less what this process has reserved", False),
])  # fmt: skip
def test_a_driver_that_fails_to_tell_what_is_free_hides_no_error(calls, told, trust):
    failures = ",".join(f"zeDeviceGetProperties:{nth}:ERROR_UNKNOWN" for nth in calls)
    result = run_python(SILENT.format(told=told, trust=trust), {
        "L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None, "L0RT_CPU_DEVICES": None,
        "L0RT_CPU_FAIL": failures})  # fmt: skip
    assert (result.returncode, result.stdout, result.stderr) == (0, "explained\n", ""), result


def failed(nbytes, **arguments):
    with pytest.raises(OutOfMemoryError) as error:
        l0rt.empty(nbytes, **arguments)
    return str(error.value)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("conf", ["", "expandable_segments:False"])
def test_what_is_releasable_is_what_empty_cache_gives_back(seed, conf):
    """At random, in and out of private pools, whose cache no step before out of memory takes."""
    rng = random.Random(seed)
    with config.patch({"alloc_conf": conf or str(memory.get_alloc_conf())}):
        pools = [memory.MemPool(), memory.MemPool(), None, None]
        streams = [acc.current_stream(), acc.Stream()]
        held = []
        for _ in range(300):
            if held and rng.random() < 0.5:
                held.pop(rng.randrange(len(held))).free()
                continue
            pool, nbytes, stream = rng.choice(pools), int(2 ** rng.uniform(9, 23)), rng.choice(streams)
            with memory.use_mem_pool(pool) if pool else contextlib.nullcontext():
                held.append(l0rt.empty(nbytes, stream=stream))
        memory.set_memory_limit(memory.memory_reserved() + MIB)
        text = failed(GIB)
        told = re.search(r"releasable ([\d.]+ \w+)", text)
        reserved = memory.memory_reserved()
        acc.synchronize()
        memory.empty_cache()
        for pool in pools[:2]:
            pool.empty_cache()
        given = reserved - memory.memory_reserved()
        assert (told.group(1) if told else "0 bytes") == size_text(given), text
        assert ("`empty_cache`" in text) == (given > 0)


def test_a_pools_limit_and_an_adaptors_are_reasons():
    with memory.use_mem_pool(memory.MemPool(limit=8 * MIB)):
        text = failed(64 * MIB)
    assert "of its pool 8.00 MiB" in text
    assert "The request is larger than the pool's limit. GPU 0 has" in text
    assert text.endswith("To try: raise the pool's limit.")
    adaptor = memory.LimitingAdaptor(memory.StatisticsAdaptor(None), 8 * MIB)
    with memory.use_mem_pool(memory.MemPool(memory.StatisticsAdaptor(adaptor))):
        text = failed(64 * MIB)
        assert "limit none, of its LimitingAdaptor 8.00 MiB" in text
        assert "The request is larger than the limit of the LimitingAdaptor that the memory comes through." in text
        kept = l0rt.empty(5 * MIB)
        text = failed(6 * MIB)
        handed_out = r"LimitingAdaptor that the memory comes through has handed out 5\.0\d MiB, and its limit"
        assert re.search(handed_out, text), text  # what aligns a segment comes on top, where the driver does not
        assert "raise the limit of the LimitingAdaptor" in text
        kept.free()


def name_of(number):
    ranks = [f"rank{os.environ[name]}-" for name in RANKS if os.environ.get(name, "").isdecimal()]
    return f"oom-{os.uname().nodename}-{ranks[0] if ranks else ''}{os.getpid()}.{number}.pickle"


def oom_entries(trace="device_traces"):
    return [entry["size"] for entry in memory.snapshot()[trace][0] if entry["action"] == "oom"]


def test_memory_that_the_host_shares_runs_out_with_all_figures(tmp_path):
    memory.enable_oom_snapshot(tmp_path / "oom.pickle")
    kept, before = weights(), memory.memory_stats()["num_ooms"]
    text = failed(1 << 50, kind="shared")
    begin = "Tried to allocate 1048576.00 GiB that the host shares. The request is larger than the device's memory."
    assert f"{begin} The driver answered" in text
    assert "GPU 0 has a total capacity of" in text
    for words in ("requested 1048576.00 GiB", "allocated 24.00 MiB", "limit none", "The driver answered ERROR_",
                  "larger than the device's memory", "in 1 at", "A snapshot of memory is in"):  # fmt: skip
        assert words in text, text
    assert memory.memory_stats()["num_ooms"] == before + 1
    assert oom_entries() == [1 << 50]
    assert [path.name for path in tmp_path.iterdir()] == [name_of(1)]
    assert kept


def test_pinned_memory_runs_out_with_all_figures():
    memory.empty_host_cache()
    memory.record_memory_history()
    kept = [l0rt.empty(3 * MIB, kind="host") for _ in range(2)]
    before = memory.host_memory_stats()["num_ooms"]
    text = failed(1 << 50, kind="host")
    line = test_pinned_memory_runs_out_with_all_figures.__code__.co_firstlineno + 3
    for words in ("pinned host memory ran out. The request is larger than the machine's memory. In figures",
                  ": requested 1048576.00 GiB, free", "(reported by Linux)", "limit none",
                  f"Most is allocated by: 6.00 MiB in 2 at {__file__}:{line}"):  # fmt: skip
        assert words in text, text
    assert "empty_host_cache" not in text  # nothing is cached
    assert memory.host_memory_stats()["num_ooms"] == before + 1
    assert oom_entries("host_traces") == [1 << 50]
    assert kept


def test_a_pool_that_cannot_wake_tells_the_figures(tmp_path):
    pool = memory.MemPool()
    with memory.use_mem_pool(pool):
        inside = l0rt.empty(24 * MIB)
    try:
        pool.sleep()
    except NotImplementedError:
        assert all(not segment["is_expandable"] for segment in pool.snapshot())
        return
    memory.enable_oom_snapshot(tmp_path / "oom.pickle")
    outside = weights()
    memory.set_memory_limit(memory.memory_reserved() + MIB)
    with pytest.raises(MemoryError) as error:
        pool.wake()
    text = str(error.value)
    for words in ("to wake the pool; it stays asleep. The device has enough free memory, but the limit leaves",
                  "GPU 0 has a total capacity of", "requested 24.00 MiB",
                  "allocated 48.00 MiB (in pools that sleep 24.00 MiB)", "cached 0 bytes",
                  "the limit leaves too little", "raise the limit",
                  "A snapshot of memory is in"):  # fmt: skip
        assert words in text, text
    assert oom_entries() == [24 * MIB]
    memory.set_memory_limit(None)
    pool.wake()
    inside.fill(1)
    assert outside


def replay(trace):
    """Allocate and free as a training run did, until memory runs out: the peak of requested bytes, and the error."""
    held, now, peak = {}, 0, 0
    try:
        for frees, number, size in trace.tolist():
            if frees:
                now -= held.pop(number).nbytes
            else:
                held[number] = l0rt.empty(size)
                now += size
                peak = max(peak, now)
    except OutOfMemoryError as error:
        return peak, str(error)
    return peak, ""


def test_a_snapshot_is_written_when_a_real_program_runs_out(tmp_path, extent):
    with np.load(ROOT / "bench" / "traces" / "gpt_train.npz") as file:
        trace = file["trace"]
    trace = trace[: extent(6000, len(trace))]
    signed = np.where(trace["op"] == 0, 1, -1) * trace["size"].astype(np.int64)
    highest = int(signed.cumsum().max())
    memory.enable_oom_snapshot(tmp_path / "oom.pickle")
    memory.set_memory_limit(memory.memory_reserved() + highest * 7 // 10)
    began = [segment for segment in memory.snapshot()["segments"] if segment["device"] == 0]
    before = memory.memory_stats().get("requested_bytes.all.current", 0)
    acc.reset_peak_memory_stats()
    memory.record_memory_history(clear_history=True)
    peak, text = replay(trace[["op", "id", "size"]])
    assert f"A snapshot of memory is in {tmp_path}/{name_of(1)}." in text
    with (tmp_path / name_of(1)).open("rb") as file:
        shot = pickle.load(file)
    check_schema(shot, acc.device_count())
    model = Model(began).play(shot["device_traces"][0])
    assert model.peak - before == peak == memory.memory_stats()["requested_bytes.all.peak"] - before
    assert shot["device_traces"][0][-1]["action"] == "oom"


def test_files_are_numbered_bounded_and_never_replaced(tmp_path):
    (tmp_path / name_of(2)).write_text("mine")
    memory.enable_oom_snapshot(tmp_path / "oom.pickle", max_entries=20)
    for _ in range(100):
        l0rt.empty(5 * KIB).free()
    memory.set_memory_limit(8 * MIB)
    texts = []
    for _ in range(12):
        with pytest.raises(OutOfMemoryError) as error:
            l0rt.empty(64 * MIB)
        texts.append(str(error.value))
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted(name_of(number) for number in range(1, 12))
    assert (tmp_path / name_of(2)).read_text() == "mine"
    assert name_of(3) in texts[1]
    assert "snapshot" not in texts[-1]
    with (tmp_path / name_of(1)).open("rb") as file:
        assert len(pickle.load(file)["device_traces"][0]) == 20


def at_once(count, function):
    """Call a function on several threads at the same time; return what it returns or raises."""
    barrier, found = threading.Barrier(count), []

    def run():
        barrier.wait()
        try:
            found.append(function())
        except Exception as error:
            found.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_threads_that_fail_at_once_write_a_file_each(tmp_path, monkeypatch):
    def none(*_, **__):
        raise OSError("this file system has no hard links")

    monkeypatch.setattr(os, "link", none)
    memory.enable_oom_snapshot(tmp_path / "oom.pickle")
    memory.set_memory_limit(8 * MIB)
    texts = at_once(13, lambda: failed(64 * MIB))
    named = sorted(name for text in texts for name in re.findall(r"oom-[\w.-]+\.\d+\.pickle", text))
    assert named == sorted(name_of(number) for number in range(1, 11)), texts
    assert sorted(path.name for path in tmp_path.iterdir()) == named
    for path in tmp_path.iterdir():
        actions = [entry["action"] for entry in pickle.loads(path.read_bytes())["device_traces"][0]]
        assert "oom" in actions
        assert actions[-1] in ("oom", "snapshot")  # another thread's


@pytest.mark.parametrize("write", [memory.dump_snapshot, memory.dump_history])
def test_threads_may_write_one_file(tmp_path, write):
    memory.record_memory_history()
    l0rt.empty(5 * KIB).free()
    assert at_once(6, lambda: [write(tmp_path / "x") for _ in range(5)]) == [[None] * 5] * 6
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_file_that_cannot_be_written_hides_no_error(tmp_path):
    memory.enable_oom_snapshot(tmp_path / "gone" / "oom.pickle")
    memory.set_memory_limit(8 * MIB)
    with pytest.raises(OutOfMemoryError, match="No snapshot of memory could be written"):
        l0rt.empty(64 * MIB)


RANKS = dict.fromkeys(("RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"))


@pytest.mark.parametrize(
    ("name", "rank", "shown"),
    [("RANK", None, None), ("RANK", "x", None), ("RANK", "", None), *((name, "3", "3") for name in RANKS)],
)
def test_the_variable_does_the_same_and_a_name_has_the_rank(tmp_path, name, rank, shown):
    result = run_python("""
import l0rt
from l0rt import memory
memory.set_memory_limit(8 << 20)
try:
    l0rt.empty(64 << 20)
except MemoryError as error:
    print(str(error).rpartition("/")[2])
""", {"L0RT_OOM_SNAPSHOT": tmp_path / "oom.pickle", **RANKS, name: rank})
    assert (result.returncode, result.stderr) == (0, ""), result
    (path,) = tmp_path.iterdir()
    assert result.stdout == f"{path.name}.\n"
    process = rf"-rank{shown}-\d+" if shown else r"-\d+"
    assert re.fullmatch(rf"oom-{re.escape(os.uname().nodename)}{process}\.1\.pickle", path.name)


def test_wrong_arguments_are_refused(tmp_path):
    for arguments in ({"path": ""}, {"path": "x", "max_entries": 0}, {"path": "x", "max_entries": -1}):
        with pytest.raises(ValueError, match="needs the name of a file|must be positive"):
            memory.enable_oom_snapshot(**arguments)
    with pytest.raises(ValueError, match="the format of a log must be one of json, csv, chrome"):
        memory.dump_history(tmp_path / "x", "xml")
    with pytest.raises(ValueError, match="needs the name of a file"):
        memory.dump_history("")


def test_logs_have_the_threads(tmp_path):
    memory.record_memory_history()
    ids = at_once(3, lambda: (l0rt.empty(3 * KIB).free(), threading.get_native_id())[1])
    memory.dump_history(tmp_path / "x.csv", "csv")
    with (tmp_path / "x.csv").open(newline="") as file:
        rows = [(int(row["Thread"]), row["Action"]) for row in csv.DictReader(file)]
    assert sorted(rows) == sorted((number, action) for number in ids for action in ("allocate", "free"))


def test_logs_have_the_entries(tmp_path):
    memory.record_memory_history()
    with memory.annotate("part"):
        kept = l0rt.empty(3 * KIB)
        l0rt.empty(5 * KIB, kind="host").free()
        l0rt.empty(7 * KIB).free()
    for format in ("json", "csv", "chrome"):
        memory.dump_history(tmp_path / format, format)
    entries = [json.loads(line) for line in (tmp_path / "json").read_text().splitlines()]
    assert {(e["device"], e["size"]) for e in entries if e["action"] == "alloc"} == {
        (0, 3 * KIB), (-1, 5 * KIB), (0, 7 * KIB)}  # fmt: skip
    with (tmp_path / "csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["Thread", "Time", "Action", "Pointer", "Size", "Stream"]
    assert [(row["Action"], int(row["Size"])) for row in rows] == [
        ("allocate", 3 * KIB), ("allocate", 5 * KIB), ("free", 5 * KIB), ("allocate", 7 * KIB),
        ("free", 7 * KIB)]  # fmt: skip
    assert int(rows[0]["Pointer"], 16) == kept.ptr
    assert {int(row["Thread"]) for row in rows} == {threading.get_native_id()}
    assert {entry["thread"] for entry in entries} == {threading.get_native_id()}
    trace = json.loads((tmp_path / "chrome").read_text())["traceEvents"]
    counted = [event["args"]["bytes"] for event in trace if event["ph"] == "C" and event["name"].endswith("xpu:0")]
    assert counted == [3 * KIB, 10 * KIB, 3 * KIB]
    assert [event["ph"] for event in trace if event["name"] == "part"] == ["b", "e"]


def test_ranges_that_overlap_are_pairs_in_a_log_for_chrome(tmp_path):
    memory.record_memory_history()
    one, two = (memory.annotate(name) for name in ("one", "two"))
    left = memory.annotate("left")
    for enter in (one, two, left):
        enter.__enter__()
    with memory.annotate("two"):
        one.__exit__(None, None, None)
    two.__exit__(None, None, None)
    memory.dump_history(tmp_path / "x", "chrome")
    told = [event for event in json.loads((tmp_path / "x").read_text())["traceEvents"] if event["ph"] in "be"]
    left.__exit__(None, None, None)
    numbers = {}
    for event in told:
        numbers.setdefault((event["name"], event["id"]), []).append(event["ph"])
    assert sorted((name, *phases) for (name, _), phases in numbers.items()) == [
        ("left", "b"), ("one", "b", "e"), ("two", "b", "e"), ("two", "b", "e")]  # fmt: skip
    assert len({number for _, number in numbers}) == 4
