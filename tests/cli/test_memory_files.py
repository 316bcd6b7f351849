# SPDX-License-Identifier: Apache-2.0
"""Files that are no snapshots, or hostile ones: one line says what is wrong, and nothing of them runs."""

import json
import os
import pickle
import random

import pytest
from l0rt.cli.memory import page, snapshot, summary
from l0rt.cli.memory.history import histories
from l0rt.cli.memory.snapshot import NotASnapshot
from l0rt.cli.memory.stacks import DEEPEST, BadSnapshot, printable

from helpers.cli import complaint, l0rt
from helpers.process import run_python
from helpers.snapshots import BASE, entry, frame, stacks, trained, write, write_distinct
from helpers.snapshots import snapshot as made


class Runs:
    """A pickle of it runs a command when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def refused(path):
    """Return why a file is refused."""
    with pytest.raises((NotASnapshot, BadSnapshot)) as caught:
        histories(snapshot.load(path))
    text = str(caught.value)
    assert text.isprintable(), repr(text)
    assert len(text) < 1000
    return text


def complained(call):
    """Return why something is refused, nothing if it is not; any other exception is a defect."""
    try:
        call()
    except (NotASnapshot, BadSnapshot) as e:
        return str(e)
    return ""


def test_a_snapshot_is_read_as_a_pickle_of_any_protocol_and_as_json(tmp_path):
    value = made(trained(300))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert snapshot.load(write(tmp_path / "a.pickle", value, protocol)) == value
    (tmp_path / "a.json").write_text(json.dumps(value))
    peaks = [histories(snapshot.load(tmp_path / name))[1][0].peak for name in ("a.pickle", "a.json")]
    assert len(set(peaks)) == 1
    segments = snapshot.load(write(tmp_path / "b.pickle", value["segments"]))
    assert segments == {"segments": value["segments"], "device_traces": []}


def test_a_pickle_that_names_a_function_does_not_run_it(tmp_path):
    ran = tmp_path / "ran"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        for value in (Runs(ran), {"segments": [Runs(ran)], "device_traces": []}):
            assert "system, and a snapshot has only plain values" in refused(write(tmp_path / "x", value, protocol))
    assert not ran.exists()


@pytest.mark.parametrize(
    "value", [{1, 2}, len, ValueError("x"), random.Random(1), pickle.Unpickler], ids=lambda value: type(value).__name__
)
def test_no_class_is_made(tmp_path, value):
    """A set of protocol 4 is plain; it is no snapshot all the same."""
    assert "is no snapshot of memory: " in refused(write(tmp_path / "x", value, 2))
    assert "is no snapshot of memory: " in refused(write(tmp_path / "x", value, 4))


def test_a_file_that_was_cut_anywhere_is_refused(tmp_path):
    whole = pickle.dumps(made(trained(40)))
    text = json.dumps(made(trained(40))).encode()
    for data in (whole, text):
        for length in sorted({0, 1, 2, 3, 10, *random.Random(1).sample(range(len(data)), 60), len(data) - 1}):
            (tmp_path / "x").write_bytes(data[:length])
            assert "is no snapshot of memory: it is" in refused(tmp_path / "x")


def test_a_file_with_changed_bytes_is_refused_or_read(tmp_path):
    whole, draw = pickle.dumps(made(trained(40))), random.Random(7)
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(draw.randrange(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        (tmp_path / "x").write_bytes(data)
        assert complained(lambda: every_command(snapshot.load(tmp_path / "x"))).isprintable()


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x04}r\xff\xff\xff\x7f.",  # a memo of 2^31 places
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f",  # bytes of 2^63
        b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f}.",  # a frame of 2^63
        b"\x80\x04\x8b\xff\xff\xff\x7f",  # an int of 2^31 bytes
        b"\x80\x04(l" + b"(" * 100_000 + b".",
        b"[" * 200_000,
        b'{"segments": ' + b'[{"blocks":' * 50_000,
        b"\x80\x04" + b"]" + b"]a" * 0 + b"(" * 10 + b"a.",
        b"GIF89a",
        b"PK\x03\x04",
        b"\xff\xfe{\x00}\x00",
        b"{'segments': []}",
        b'{"segments": [], "device_traces": [[{"size": NaN}]]}',
        b'{"segments": [], "device_traces": [[{"size": 1' + b"0" * 10_000 + b"}]]}",
    ],
    ids=range(14),
)
def test_what_asks_for_much_or_is_something_else_is_refused(tmp_path, data):
    (tmp_path / "x").write_bytes(data)
    assert "no snapshot of memory" in refused(tmp_path / "x") or "does not fit" in refused(tmp_path / "x")


def test_what_cannot_be_read_is_told(tmp_path):
    assert "No such file" in refused(tmp_path / "nothing")
    assert "directory" in refused(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert "no regular file" in refused(tmp_path / "pipe")
    (tmp_path / "x").write_bytes(b"")
    assert "it is empty" in refused(tmp_path / "x")
    assert "it has no 'device_traces'" in refused(write(tmp_path / "x", {"segments": []}))
    assert "it has a int, not a dict" in refused(write(tmp_path / "x", 7))


def small():
    """Return a snapshot with one of everything."""
    trace = [
        entry("segment_alloc", BASE, 4096, 1, 0, stacks(1)[0]),
        entry("alloc", BASE, 100, 2, 0, stacks(1)[0], "weights"),
        entry("oom", 0, 9, 3, device_free=5),
        entry("snapshot", 0, 0, 4),
        entry("free_requested", BASE, 100, 5, 0, [frame("f", 1)]),
        entry("free_completed", BASE, 100, 6),
        entry("alloc", BASE + 512, 30, 7),
    ]
    blocks = [
        {"address": BASE, "size": 512, "requested_size": 0, "state": "inactive", "frames": []},
        {"address": BASE + 512, "size": 512, "requested_size": 30, "state": "active_allocated", "frames": stacks(1)[0]},
        {"address": BASE + 1024, "size": 3072, "requested_size": 9, "state": "active_pending_free", "frames": []},
    ]
    segment = {"device": 0, "address": BASE, "total_size": 4096, "stream": 0, "blocks": blocks, "frames": []}
    notes = [{"device": 0, "time_us": 3, "name": "step", "stage": "START"}]
    return {"segments": [segment], "device_traces": [trace], "external_annotations": notes}


CYCLE = []
CYCLE.append(CYCLE)
LOOP = {}
LOOP["frames"] = LOOP
BAD = (None, True, -1, 1 << 70, -(1 << 70), 1.5, float("nan"), float("inf"), "", "\x1b[31m<b>", b"x", [], {}, (), CYCLE,
       LOOP, [None], ["x"], [CYCLE], "\ud800", 1 << 63)  # fmt: skip


def places(value, path=()):
    """Yield the path of every value of a snapshot."""
    yield path
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def changed(path, bad):
    """Return a snapshot that has a bad value at a path, or lacks it."""
    value = pickle.loads(pickle.dumps(small()))
    at = value
    for key in path[:-1]:
        at = at[key]
    if bad is Ellipsis:
        del at[path[-1]]
    else:
        at[path[-1]] = bad
    return value


def every_command(value):
    """Do what the commands do."""
    value = snapshot._checked(value)
    tree, found = histories(value)
    for history in found:
        for at in ("peak", "end", 1):
            summary.summary(tree, history, at)
        summary.changes((tree, history), (tree, history))
    return page.page("x", tree, found)


def test_a_wrong_value_anywhere_is_refused_or_shown():
    assert "data-1" in every_command(small())
    tried = 0
    for path in list(places(small()))[1:]:
        for bad in (*BAD, ...):
            tried += 1
            told = complained(lambda path=path, bad=bad: every_command(changed(path, bad)))
            assert told.isprintable(), (path, bad)
            assert len(told) < 400
    assert tried > 2000


@pytest.mark.parametrize(
    ("path", "bad", "told"),
    [
        (("device_traces", 0, 1, "size"), float("nan"), "size of entry 1 of device 0 must be a whole number"),
        (("device_traces", 0, 1, "size"), -5, "got -5"),
        (("device_traces", 0, 1, "addr"), 1 << 64, "addr of entry 1 of device 0"),
        (("device_traces", 0, 1, "stream"), "0", "the stream of an entry of device 0 must be a whole number, got '0'"),
        (("device_traces", 0, 1, "frames", 0, "line"), 1 << 40, "the line of a frame must be an int of 32 bits"),
        (("device_traces", 0, 1, "frames", 0), CYCLE, "a frame must be a dict, got list"),
        (("device_traces", 0, 1), 3, "an entry of device 0 must be a dict"),
        (("segments", 0, "blocks", 0, "state"), "free", "the state of a block of device 0 must be one of"),
        (("segments", 0, "device"), 1 << 30, "device of a segment"),
        (("segments", 0, "total_size"), (1 << 53), "total_size of a segment of device 0"),
    ],
)
def test_the_line_names_what_is_wrong(path, bad, told):
    with pytest.raises((BadSnapshot, NotASnapshot), match="device 0|frame|segment") as caught:
        every_command(changed(path, bad))
    assert told in str(caught.value)


def test_stacks_without_end_are_cut_and_lists_that_are_shared_are_read_once():
    deep = [frame(f"f{k}", k) for k in range(5000)]
    shared = [entry("alloc", BASE, 1, 1, 0, deep)] * 50_000
    tree, found = histories({"segments": [], "device_traces": [shared]})
    assert len(tree.parents) == DEEPEST + 1
    assert found[0].entries == 50_000


def test_a_small_file_that_is_millions_of_entries_is_refused():
    trace = [entry("alloc", BASE, 1, 1)] * 1_000_000
    with pytest.raises(BadSnapshot, match="more than 20,000,000 entries"):
        histories({"segments": [], "device_traces": [trace] * 10_000})
    blocks = [{"size": 1, "state": "inactive"}] * 1_000_000
    with pytest.raises(BadSnapshot, match="more than 20,000,000 blocks"):
        histories({"segments": [{"address": 0, "total_size": 1, "blocks": blocks}] * 10_000, "device_traces": []})


def test_ten_million_entries_are_shown(tmp_path, extent):
    count = extent(100_000, 10_000_000)
    trace = [entry("alloc", BASE, 64, 1), entry("free_completed", BASE, 64, 2)] * (count // 2)
    path = write(tmp_path / "x", {"segments": [], "device_traces": [trace]})
    result = l0rt("memory", "report", path, timeout=600.0)
    assert result.returncode == 0, result
    assert f"{count:,} entries" in result.stdout


MEASURED = """
import resource
from l0rt.cli import main
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
resource.setrlimit(resource.RLIMIT_AS, ({limit}, resource.RLIM_INFINITY))
status = main({words})
print("grown", (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10)
raise SystemExit(status)
"""
ENTRY = 1300  # bytes that an entry takes while its file is read, at the most


@pytest.mark.parametrize("command", ["report", "view"])
def test_ten_million_distinct_entries_are_shown_in_bounded_memory_or_refused_in_a_line(command, tmp_path, extent):
    count = extent(20_000, 200_000, 10_000_000)
    path = write_distinct(tmp_path / "x.pickle", count)
    words = ["memory", command, str(path)]
    result = run_python(MEASURED.format(limit="resource.RLIM_INFINITY", words=words), timeout=600)
    assert (result.returncode, result.stderr) == (0, ""), result
    assert f"{count:,} entries" in result.stdout if command == "report" else (tmp_path / "x.html").exists()
    assert int(result.stdout.split("grown ")[1]) < count * ENTRY + (64 << 20)
    (tmp_path / "x.html").unlink(missing_ok=True)
    needed = f"int(open('/proc/self/statm').read().split()[0]) * 4096 + {count * ENTRY // 8}"
    result = run_python(MEASURED.format(limit=needed, words=words), timeout=600)
    assert result.returncode == 2, result
    assert result.stderr.count("\n") == 1, result
    assert "does not fit into this machine's memory: record fewer entries" in result.stderr
    assert not (tmp_path / "x.html").exists()


WITHOUT_MEMORY = """
from l0rt.cli.memory import snapshot
snapshot._available = lambda: 0
snapshot.MARGIN = 1 << 20
try:
    snapshot.load({path!r})
except snapshot.NotASnapshot as e:
    print(e)
snapshot._available = lambda: 1 << 30
print(len(snapshot.load({path!r})["device_traces"][0]))
"""


def test_a_file_that_needs_more_memory_than_there_is_is_told(tmp_path):
    path = write(tmp_path / "x", made(trained(60_000)))
    lines = run_python(WITHOUT_MEMORY.format(path=str(path))).stdout.splitlines()
    assert "does not fit into this machine's memory" in lines[0]
    assert int(lines[1]) >= 60_000


def test_texts_are_shown_in_one_line_without_control_characters():
    assert printable("a\x1b[31m\n\u202eb\ud800é") == "a\\x1b[31m\\n\\u202eb\\ud800é"
    assert len(printable("x" * 10**6)) == 512


def test_the_commands_refuse_in_one_line(tmp_path):
    for name in ("view", "report"):
        assert "No such file" in complaint(l0rt("memory", name, tmp_path / "nothing"))
    good, bad = write(tmp_path / "good", small()), write(tmp_path / "bad\x1b[31m", Runs(tmp_path / "ran"))
    for words in (("view", bad), ("report", bad), ("diff", good, bad), ("diff", bad, good)):
        told = complaint(l0rt("memory", *words))
        assert "only plain values" in told
        assert "\x1b" not in told
    assert not (tmp_path / "ran").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad\x1b[31m", "good"]
    assert "cannot write" in complaint(l0rt("memory", "view", good, "-o", tmp_path / "no/x.html"))
    assert "name another" in complaint(l0rt("memory", "view", good, "-o", good))
    assert "nothing of device 5" in complaint(l0rt("memory", "report", good, "--device", "5"))
    assert "neither peak, end nor" in complaint(l0rt("memory", "report", good, "--at", "now"))
    assert "has no segments and no entries" in complaint(
        l0rt("memory", "report", write(tmp_path / "empty", {"segments": [], "device_traces": []}))
    )
