# SPDX-License-Identifier: Apache-2.0
"""The stream sanitizer finds 28 planted races, and nothing in the same programs with what was left out."""

from pathlib import Path

import pytest
from l0rt.sanitizer import Sanitizer

from helpers.process import run_python

# Each is a program; the lines marked with #! are what orders it.
PLANTED = {
    "missing wait": """
x.fill(1, stream=a)
b.wait_stream(a) #!
y.copy_from(x, stream=b)
""",
    "missing wait before a write": """
y.copy_from(x, stream=a)
b.wait_event(a.record_event()) #!
x.fill(1, stream=b)
""",
    "two writers": """
x.fill(1, stream=a)
b.wait_event(a.record_event()) #!
x.fill(2, stream=b)
""",
    "wrong event": """
e = a.record_event()
x.fill(1, stream=a)
e = a.record_event() #!
b.wait_event(e)
y.copy_from(x, stream=b)
""",
    "event of another stream": """
x.fill(1, stream=a)
e, f = a.record_event(), c.record_event()
f = e #!
b.wait_event(f)
y.copy_from(x, stream=b)
""",
    "waited for before it was recorded": """
e = l0rt.Event()
b.wait_event(e)
x.fill(1, stream=a)
e.record(a)
b.wait_event(e) #!
y.copy_from(x, stream=b)
""",
    "the wrong stream waits": """
x.fill(1, stream=a)
c.wait_stream(a)
b.wait_stream(c) #!
y.copy_from(x, stream=b)
""",
    "recorded anew too late for who waited": """
e = l0rt.Event()
e.record(a)
b.wait_event(e)
x.fill(1, stream=a)
e.record(a)
e.wait(b) #!
y.copy_from(x, stream=b)
""",
    "work behind the awaited point": """
x.fill(1, stream=a)
b.wait_stream(a)
x.fill(2, stream=a)
b.wait_stream(a) #!
y.copy_from(x, stream=b)
""",
    "a chain with a gap": """
x.fill(1, stream=a)
b.wait_stream(a)
y.copy_from(x, stream=b)
c.wait_stream(b) #!
z.copy_from(y, stream=c)
""",
    "a reader forgotten": """
y.copy_from(x, stream=a)
z.copy_from(x, stream=b)
c.wait_stream(a)
c.wait_stream(b) #!
x.fill(1, stream=c)
""",
    "synchronised with the wrong stream": """
x.fill(1, stream=a)
b.synchronize()
a.synchronize() #!
y.copy_from(x, stream=b)
""",
    "synchronised with an earlier event": """
e = a.record_event()
x.fill(1, stream=a)
e = a.record_event() #!
e.synchronize()
y.copy_from(x, stream=b)
""",
    "host read too soon": """
h.copy_from(x, non_blocking=True, stream=a)
a.synchronize() #!
bytes(memoryview(h)[:1])
""",
    "early reuse of pinned memory": """
x.copy_from(h, non_blocking=True, stream=a)
a.record_event().synchronize() #!
h.copy_from(bytes(4096))
""",
    "pinned memory filled again by another stream": """
x.copy_from(h, non_blocking=True, stream=a)
b.wait_stream(a) #!
h.fill(1, stream=b)
""",
    "announced host write": """
np_view = np.frombuffer(h, "u1")
x.copy_from(h, non_blocking=True, stream=a)
acc.synchronize() #!
sanitizer.host_access(h)
np_view[:] = 1
""",
    "the current stream is not the one that was meant": """
x.fill(1, stream=a)
with b:
    acc.current_stream().wait_stream(a) #!
    y.copy_from(x)
""",
    "two streams of one program order, a third of none": """
x.fill(1, stream=a)
b.wait_stream(a)
c.wait_stream(a) #!
y.copy_from(x, stream=b)
z.copy_from(x, stream=c)
""",
    "across devices": """
if acc.device_count() > 1:
    d = acc.Stream(1)
    r = l0rt.empty(4096, stream=d)
    x.fill(1, stream=a)
    d.wait_stream(a) #!
    r.copy_from(x, stream=d)
""",
    "a replay that waits for nobody": """
with acc.graph(g, stream=a):
    y.copy_from(x)
x.fill(1, stream=b)
with a:
    a.wait_stream(b) #!
    g.replay()
""",
    "a launch of a replay, which was none when it was captured": """
with acc.graph(g, stream=a):
    add[1, 1](x, y, y, 1)
x.fill(1, stream=b)
acc.synchronize()
with c:
    g.replay()
b.wait_stream(c) #!
z.copy_from(x, stream=b)
""",
    "two streams of a graph": """
with acc.graph(g, stream=a):
    b.wait_stream(a)
    x.fill(1, stream=a)
    b.wait_stream(a) #!
    add[1, 1, b](y, x, z, 1)
    a.wait_stream(b)
with c:
    for _ in range(2):
        g.replay()
""",
    "memory that a graph has freed": """
with acc.graph(g, stream=a):
    t = l0rt.empty(4096)
    b.wait_stream(a)
    t.fill(1)
    b.wait_stream(a) #!
    y.copy_from(t, stream=b)
    a.wait_stream(b)
    del t
g.replay()
""",
    "rows of a graph": """
with acc.graph(g, stream=a):
    l0rt.memcpy2d(x.ptr, 64, y.ptr, 64, 16, 8, non_blocking=True)
with a:
    g.replay()
x[16:64].fill(1, stream=b)
b.wait_stream(a) #!
x[64:65].fill(1, stream=b)
""",
    "an argument that was changed": """
with acc.graph(g, stream=a):
    add[1, 1](x, y, y, 1)
g.nodes[0].update(args={0: z})
x.fill(1, stream=b)
h.copy_from(z, non_blocking=True, stream=b)
a.wait_stream(b) #!
with a:
    g.replay()
""",
    "random numbers of a graph": """
with acc.graph(g, stream=a):
    x.uniform_()
with a:
    g.replay()
acc.current_stream().wait_stream(a) #!
y.copy_from(x)
""",
    "synchronised with the replay before": """
with acc.graph(g, stream=a):
    h.copy_from(x, non_blocking=True)
with a:
    g.replay()
    e = a.record_event()
    g.replay()
    e = a.record_event() #!
e.synchronize()
bytes(memoryview(h)[:1])
""",
}
KERNELS = str(Path(__file__).parents[1] / "kernels" / "basic.spv")
BEGIN = f"KERNELS = {KERNELS!r}" + """
import warnings
import l0rt, l0rt.accelerator as acc, numpy as np
from l0rt import sanitizer
add, g = l0rt.Module(KERNELS)["vector_add"], acc.Graph()
warnings.simplefilter("ignore", sanitizer.StreamRaceWarning)
a, b, c = (acc.Stream() for _ in range(3))
x, y, z = (l0rt.empty(4096) for _ in range(3))
h = l0rt.empty(4096, kind="host")
for buffer in (x, y, z, h):
    buffer.fill(0)
acc.synchronize()
assert not sanitizer.races
"""
END = """
print(len(sanitizer.races), flush=True)
for old, new in sanitizer.races:
    assert "<string>" in str(old) and "<string>" in str(new), (str(old), str(new))
import os; os._exit(0)
"""


def races(program):
    result = run_python(BEGIN + program + END, {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2, "L0RT_SANITIZE": "stream"})
    assert (result.returncode, result.stderr) == (0, ""), result
    return int(result.stdout.split()[-1])


def test_there_are_twenty_eight():
    assert len(PLANTED) >= 28


@pytest.mark.parametrize("ordered", ["", "announced", "waited for", "synchronised"])
def test_memory_that_is_freed_early(ordered):
    """Memory of stream 1 is used on stream 2, by raw address and not through its Buffer, and freed."""
    found = []
    sanitizer = Sanitizer(lambda old, new: found.append((old.stream, new.what)))
    sanitizer.on_memory_allocation(0x1000, 64, 1)
    sanitizer.on_event_record(7, 1)
    sanitizer.on_event_wait(7, 2)
    sanitizer.on_copy(2, 0x2000, 0x1000, 64)
    if ordered == "announced":
        sanitizer.on_memory_use(0x1000, 2)
    elif ordered == "waited for":
        sanitizer.on_stream_wait(1, 2)
    elif ordered == "synchronised":
        sanitizer.on_stream_synchronization(2)
    sanitizer.on_memory_deallocation(0x1000)
    assert found == ([] if ordered else [(2, "free")])
    sanitizer.on_memory_allocation(0x1000, 64, 3)  # the same address is other memory now
    sanitizer.on_fill(3, 0x1000, 64)
    assert len(found) == (not ordered)


def test_a_sanitizer_may_start_between_any_two_of_its_calls():
    told = [
        lambda s: s.on_memory_allocation(0x1000, 64, 1),
        lambda s: s.on_kernel_launch(1, None),
        lambda s: s.on_kernel_access(1, 0x1000, 64, 3),
        lambda s: s.on_event_record(7, 1),
        lambda s: s.on_event_wait(7, 2),
        lambda s: s.on_memory_use(0x1000, 2),
        lambda s: s.on_copy(2, 0x2000, 0x1000, 64),
        lambda s: s.on_event_synchronization(7),
        lambda s: s.on_stream_wait(3, 2),
        lambda s: s.on_fill(3, 0x1000, 64),
        lambda s: s.on_stream_synchronization(3),
        lambda s: s.on_host_access(0x1000, 64, True),
        lambda s: s.on_memory_deallocation(0x1000),
    ]
    for begin in range(len(told)):
        found = []
        sanitizer = Sanitizer(lambda old, new, found=found: found.append((old, new)))
        for call in told[begin:]:
            call(sanitizer)
        assert found == []
        assert sanitizer.find(0x1000) is None


def test_only_bytes_that_overlap_race():
    found = []
    sanitizer = Sanitizer(lambda old, new: found.append(new.low))
    sanitizer.on_memory_allocation(0x1000, 64, 1)
    sanitizer.on_fill(1, 0x1000, 32)
    sanitizer.on_fill(2, 0x1020, 32)
    assert found == []
    sanitizer.on_fill(3, 0x101F, 1)
    assert found == [0x101F]
    for _ in range(100):
        sanitizer.on_fill(1, 0x1000, 32)
    assert len(sanitizer.find(0x1000).accesses) < 10
    assert sanitizer.find(0x1040) is None
    assert sanitizer.find(0xFFF) is None


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_race_is_found_and_the_right_program_is_not(name):
    lines = PLANTED[name].splitlines()
    assert any("#!" in line for line in lines)
    assert races("\n".join(line for line in lines if "#!" not in line)) == 1
    assert races("\n".join(lines)) == 0


def test_a_report_names_both_accesses_with_their_places():
    code = BEGIN.replace("ignore", "always") + "x.fill(1, stream=a)\ny.copy_from(x, stream=b)\nimport os; os._exit(0)"
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_SANITIZE": "stream"})
    assert "StreamRaceWarning: nothing orders these two accesses to the same memory" in result.stderr
    lines = len(BEGIN.splitlines())
    assert "fill by <l0rt.Stream device=xpu:0 stream_id=" in result.stderr
    assert f'File "<string>", line {lines + 1}' in result.stderr
    assert "copy from by <l0rt.Stream device=xpu:0 stream_id=" in result.stderr
    assert f'File "<string>", line {lines + 2}' in result.stderr


def test_random_programs_have_no_races_and_without_their_waits_they_do():
    from helpers.rings import TESTS

    code = f"""
import sys, warnings
sys.path.insert(0, {str(TESTS)!r})
from l0rt import sanitizer
warnings.simplefilter("error", RuntimeWarning)
warnings.simplefilter("ignore", sanitizer.StreamRaceWarning)
from l0rt.selftest.programs import wrong_buffers
for seed in range(20):
    wrong_buffers(seed, devices=1 + seed % 2)
    if sanitizer.races: print(*map(str, sanitizer.races[0]))
print(len(sanitizer.races), [bool(wrong_buffers(1, forgetful=True)) or bool(sanitizer.races)])
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2, "L0RT_SANITIZE": "stream"}, timeout=300)
    assert (result.returncode, result.stdout, result.stderr) == (0, "0 [True]\n", "")


LAUNCHES = f"""
import l0rt, l0rt.accelerator as acc
kernel = l0rt.Module({KERNELS!r})["vector_add"]
p, q, x = l0rt.empty(64), l0rt.empty(64), l0rt.empty(64)
a, b = acc.Stream(), acc.Stream()
acc.synchronize()
"""


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ("(p, x, x, 1)", "(q, x, x, 1)", []),  # both read x
        ("(p, x, x, 1)", "(x, q, q, 1)", ["kernel, read", "kernel, write"]),
        ("(x, p, p, 1)", "(q, x, x, 1)", ["kernel, write", "kernel, read"]),
        ("(p, x, x, 1)", "(p, x, x, 1)", ["kernel, write"]),
    ],
)
def test_kernels_of_two_streams_race_if_one_writes_what_the_other_uses(first, second, told):
    code = f"{LAUNCHES}\nkernel[1, 1, a]{first}\nkernel[1, 1, b]{second}\nacc.synchronize()"
    result = run_python(code, {"L0RT_SANITIZE": "stream"})
    assert [each for each in told if each not in result.stderr] == [], result
    assert bool(told) == ("StreamRaceWarning" in result.stderr), result


def test_what_orders_replays_by_itself_is_known():
    """Replays of one graph, its end, and its callbacks."""
    program = """
import time
seen = []
with acc.graph(g, stream=a):
    add[1, 1](x, y, y, 1)
    h.copy_from(x, non_blocking=True)
    a.add_callback(lambda: seen.append(bytes(memoryview(h)[:1])))
for stream in (a, b, c):
    with stream:
        g.replay()
g.reset()
while len(seen) < 3:
    time.sleep(0.01)
x.free()
"""
    assert races(program) == 0


def test_random_graphs_have_no_races_and_without_their_waits_they_do():
    from helpers.rings import TESTS

    code = f"""
import sys, warnings
sys.path.insert(0, {str(TESTS)!r})
import l0rt
from l0rt import sanitizer
from helpers import graph_programs as programs
warnings.simplefilter("ignore", sanitizer.StreamRaceWarning)
add = l0rt.Module({KERNELS!r})["vector_add"]
wrong = [(seed, programs.wrong_replays(seed, add), list(map(str, sum(sanitizer.races, ())))) for seed in range(9)]
print([each for each in wrong if each[1] or each[2]])

class Forgetful(l0rt.Stream):
    "Joins a capture, and waits for nothing more."
    joined = False
    def wait_event(self, event):
        if not self.joined:
            super().wait_event(event)
        self.joined = True

programs.Program.make_streams = lambda self: [Forgetful() for _ in range(self.streams)]
programs.wrong_replays(1, add)
print(any("in a replay of a graph" in access.what for race in sanitizer.races for access in race), flush=True)
import os; os._exit(0)
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2, "L0RT_SANITIZE": "stream"}, timeout=300)
    assert (result.returncode, result.stdout, result.stderr) == (0, "[]\nTrue\n", "")
