# SPDX-License-Identifier: Apache-2.0
"""Hostile snapshots take time in proportion to their bytes; what they cannot have is refused in a line."""

import os
import random
import time

import pytest
from l0rt.cli.memory import snapshot
from l0rt.cli.memory.history import MOST_DEVICES, History, histories
from l0rt.cli.memory.ranges import Starts
from l0rt.cli.memory.snapshot import NotASnapshot
from l0rt.cli.memory.stacks import BadSnapshot

from helpers.hostile_snapshots import BASE, growth, work
from helpers.process import run_python
from helpers.snapshots import entry, write

MOST = 2.5  # times as fast as the bytes: with the square it is 8, and a constant share makes it less than 1


def test_the_time_of_a_hostile_file_grows_as_its_bytes(tmp_path, extent):
    """Each seed is a file of some 32 and one of 256 KiB, of which two things grow: see `helpers.hostile_snapshots`."""
    wrong = {seed: found for seed in range(extent(12, 60, 400)) if (found := growth(seed, tmp_path)) > MOST}
    wrong = {seed: found for seed in wrong if (found := growth(seed, tmp_path)) > MOST}  # both times
    assert wrong == {}


def test_a_planted_square_is_found(tmp_path, monkeypatch):
    """Each free of memory that nobody allocated has a copy of its entry, which many can share."""
    add = History._add

    def copying(self, born, row, *values):
        return add(self, born, {**row, "frames": None}, *values)

    monkeypatch.setattr(History, "_add", copying)
    assert any(growth(seed, tmp_path) > MOST for seed in range(31))


@pytest.mark.parametrize("opcode", [b"}", b"\x8f"], ids=["dict", "set"])
def test_numbers_that_collide_as_keys_are_refused_in_bounded_time(tmp_path, opcode):
    """All are multiples of what Python's hash of a number is a remainder by."""
    numbers = b"".join(b"\x8a\x0a" + (k * ((1 << 61) - 1)).to_bytes(10, "little") + b"N" * (opcode == b"}")
                       for k in range(1, 60_000))  # fmt: skip
    ends = {b"}": b"u", b"\x8f": b"\x90"}[opcode]
    path = tmp_path / "colliding.pickle"
    start = b"\x80\x04}(\x8c\x08segments]\x8c\x0ddevice_traces]\x8c\x01x"
    path.write_bytes(start + opcode + b"(" + numbers + ends + b"u.")
    before, own = os.times().children_user, time.process_time()
    with pytest.raises(NotASnapshot, match="more time to read than a file of its size may: its keys collide"):
        snapshot.load(path)
    assert os.times().children_user - before < 5
    assert time.process_time() - own < 1


def test_a_large_pickle_is_read_from_its_start(tmp_path):
    value = {"segments": [], "device_traces": [[entry("alloc", BASE + k, 1, k) for k in range(5_000)]]}
    path = write(tmp_path / "large.pickle", value)
    assert snapshot.load(path) == value


def test_annotations_of_many_devices_are_looked_at_once():
    row = {"device": 0, "name": "x", "stage": "START", "time_us": 1}
    traces = [[entry("alloc", BASE, 1, 1)]] * 100
    value = {"segments": [], "device_traces": traces, "external_annotations": [row] * 1000}
    assert [len(history.annotations) for history in histories(value)[1]] == [1000, *[0] * 99]


@pytest.mark.parametrize("value", [
    {"segments": [], "device_traces": [[entry("alloc", BASE, 1, 1)]] * (MOST_DEVICES + 1)},
    {"segments": [{"device": MOST_DEVICES, "address": BASE, "total_size": 1, "blocks": []}], "device_traces": []},
    {"segments": [], "device_traces": [[]] * 65_535},
])  # fmt: skip
def test_a_machine_has_128_devices_at_most(value):
    with pytest.raises(BadSnapshot, match=rf"more than {MOST_DEVICES} devices|to below {MOST_DEVICES}, got"):
        histories(value)


def test_lists_that_are_in_a_file_again_and_again_are_refused(tmp_path):
    trace = [entry("alloc", BASE, 1, 1)] * 10_000
    blocks = [{"size": 1, "state": "inactive"}] * 10_000
    segment = {"device": 0, "address": BASE, "total_size": 1, "blocks": blocks}
    for value in ({"segments": [], "device_traces": [trace] * 100},
                  {"segments": [segment] * 1000, "device_traces": []}):  # fmt: skip
        path = write(tmp_path / "x", value)
        with pytest.raises(NotASnapshot, match=r"has [\d,]+ bytes, and lists of 1[\d,]+ entries: the same ones again"):
            snapshot.load(path)


@pytest.mark.parametrize("key", ["size", "addr", "time_us", "stream", "device_free"])
@pytest.mark.parametrize("bits", [65, 20_000, 1_000_000])
def test_a_whole_number_of_thousands_of_digits_is_refused(tmp_path, key, bits):
    """Python writes none of more than 4,300 digits."""
    value = {"segments": [], "device_traces": [[{**entry("oom" if key == "device_free" else "alloc", BASE, 1, 1),
                                                 key: 1 << bits}]]}  # fmt: skip
    said = work(write(tmp_path / "x", value))
    assert f"got one of {bits + 1} bits" in said if bits > 256 else "got 36893488147419103232" in said
    assert said.isprintable()


def test_as_many_failures_as_there_are_entries_are_some_lines(tmp_path):
    trace = [{**entry("oom", 0, 9, 3), "device_free": 5}] * 5000
    path = write(tmp_path / "x", {"segments": [], "device_traces": [trace]})
    result = run_python(f"from l0rt.cli import main; raise SystemExit(main(['memory', 'report', {str(path)!r}]))")
    assert (result.returncode, result.stderr) == (0, ""), result
    assert result.stdout.count("out of memory at entry") == 20
    assert "and 4,980 times more" in result.stdout


def test_files_are_read_without_proc(tmp_path):
    path = write(tmp_path / "x", {"segments": [], "device_traces": [[entry("alloc", BASE, 7, 1)]]})
    large = tmp_path / "large"
    large.write_bytes(b"\x80\x04}r\xff\xff\xff\x7f.")  # a memo of 2^31 places
    code = f"""
import builtins, resource
from l0rt.cli.memory import snapshot
def none(path, *args, real=open, **kwargs):
    if str(path).startswith("/proc"):
        raise FileNotFoundError(2, "No such file or directory", path)
    return real(path, *args, **kwargs)
builtins.open = none
print(len(snapshot.load({str(path)!r})["device_traces"]), resource.getrlimit(resource.RLIMIT_AS)[0])
snapshot._available = lambda: 0
try:
    snapshot.load({str(large)!r})
except snapshot.NotASnapshot as e:
    print(e)
"""
    first, second = run_python(code).stdout.splitlines()
    assert first == "1 -1"
    assert "does not fit into this machine's memory" in second or "damaged pickle" in second


def test_segments_of_any_number_are_kept_in_order():
    """Against a sorted list, at every size around that of a part."""
    draw, starts, plain = random.Random(3), Starts(), []
    Starts.PART, before = 4, Starts.PART
    try:
        for step in range(4000):
            if plain and draw.random() < (0.3 if step < 2000 else 0.7):
                gone = draw.choice(plain)
                plain.remove(gone)
                starts.remove(gone)
            else:
                new = draw.randrange(1 << 20)
                if new not in plain:
                    plain.append(new)
                    starts.add(new)
            for at in (0, 5, draw.randrange(1 << 20), draw.choice(plain or [7])):
                assert starts.at_or_before(at) == max((p for p in plain if p <= at), default=None)
                assert starts.behind(at) == min((p for p in plain if p > at), default=None)
            assert starts.count == len(plain)
    finally:
        Starts.PART = before
