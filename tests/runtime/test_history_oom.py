# SPDX-License-Identifier: Apache-2.0
"""Out of memory, explained: the error's text, the snapshot that is written then, a real program up to a limit; logs."""

import csv
import json
import pickle

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt import memory
from l0rt.errors import OutOfMemoryError
from l0rt.runtime.memory.explanation import explain

from helpers.histories import Model, check_schema
from helpers.process import run_python
from helpers.source import ROOT

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
NUMBERS = {"requested": 256 * MIB, "free": 15 * GIB, "total": 16 * GIB, "allocated": 0, "pending": 0, "cached": 0,
           "largest": 0, "private": 0, "limit": None, "is_async": False, "is_expandable": True}  # fmt: skip


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
     ["largest free block has 128.00 MiB, fragmentation 75 %", "empty_cache", "expandable_segments:True",
      "Enough is cached, but"], ["raise the limit"]),
    ({"free": MIB, "allocated": 4 * GIB}, ["in use by other programs"], ["empty_cache"]),
    ({"pending": MIB, "is_async": True}, ["backend:async"], []),
    ({"pending": MIB}, ["synchronize the streams"], ["backend:async"]),
])  # fmt: skip
def test_the_advice_fits_the_numbers(numbers, said, unsaid):
    text = explain({**NUMBERS, **numbers})
    assert all(words in text for words in said), text
    assert not any(words in text for words in unsaid), text


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
    entry = memory.snapshot()["device_traces"][0][-2]
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
    assert f"A snapshot of memory is in {tmp_path}/oom.1.pickle." in text
    with (tmp_path / "oom.1.pickle").open("rb") as file:
        shot = pickle.load(file)
    check_schema(shot, acc.device_count())
    model = Model(began).play(shot["device_traces"][0])
    assert model.peak - before == peak == memory.memory_stats()["requested_bytes.all.peak"] - before
    assert [entry["action"] for entry in shot["device_traces"][0][-2:]] == ["oom", "snapshot"]


def test_files_are_numbered_bounded_and_never_replaced(tmp_path):
    (tmp_path / "oom.2.pickle").write_text("mine")
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
    assert names == sorted(f"oom.{number}.pickle" for number in range(1, 12))
    assert (tmp_path / "oom.2.pickle").read_text() == "mine"
    assert "oom.3.pickle" in texts[1]
    assert "snapshot" not in texts[-1]
    with (tmp_path / "oom.1.pickle").open("rb") as file:
        assert len(pickle.load(file)["device_traces"][0]) == 20


def test_a_file_that_cannot_be_written_hides_no_error(tmp_path):
    memory.enable_oom_snapshot(tmp_path / "gone" / "oom.pickle")
    memory.set_memory_limit(8 * MIB)
    with pytest.raises(OutOfMemoryError, match="No snapshot of memory could be written"):
        l0rt.empty(64 * MIB)


def test_the_variable_does_the_same(tmp_path):
    result = run_python("""
import l0rt
from l0rt import memory
memory.set_memory_limit(8 << 20)
try:
    l0rt.empty(64 << 20)
except MemoryError as error:
    print("oom.1.pickle" in str(error))
""", {"L0RT_OOM_SNAPSHOT": tmp_path / "oom.pickle"})
    assert (result.returncode, result.stdout, result.stderr) == (0, "True\n", ""), result
    assert [path.name for path in tmp_path.iterdir()] == ["oom.1.pickle"]


def test_wrong_arguments_are_refused(tmp_path):
    for arguments in ({"path": ""}, {"path": "x", "max_entries": 0}, {"path": "x", "max_entries": -1}):
        with pytest.raises(ValueError, match="needs the name of a file|must be positive"):
            memory.enable_oom_snapshot(**arguments)
    with pytest.raises(ValueError, match="the format of a log must be one of json, csv, chrome"):
        memory.dump_history(tmp_path / "x", "xml")
    with pytest.raises(ValueError, match="needs the name of a file"):
        memory.dump_history("")


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
    trace = json.loads((tmp_path / "chrome").read_text())["traceEvents"]
    counted = [event["args"]["bytes"] for event in trace if event["ph"] == "C" and event["name"].endswith("xpu:0")]
    assert counted == [3 * KIB, 10 * KIB, 3 * KIB]
    assert [event["ph"] for event in trace if event["name"] == "part"] == ["B", "E"]
