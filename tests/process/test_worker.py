# SPDX-License-Identifier: Apache-2.0
"""One process a device: devices are claimed without a clash and are free again with their process, however it ends."""

import os
import random
import signal
import subprocess
import sys
import uuid

import pytest

from helpers.process import run_python

FOUR = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "4"}


@pytest.mark.parametrize(
    ("mask", "hierarchy", "shown"),
    [
        (None, None, ["0", "1", "2", "3"]),
        ("2", None, ["2"]),
        ("3,1,3", None, ["1", "3"]),
        ("1,7", None, ["1"]),
        ("0", "FLAT", ["0"]),
    ],
)
def test_masks_are_those_of_the_devices_that_the_process_may_use(mask, hierarchy, shown):
    """A process with each of them sees that one device, and the number that is counted before follows the mask."""
    result = run_python(
        """
import os
import l0rt, l0rt.accelerator as acc
from l0rt.interop import worker
print(worker.masks(), acc.device_count())
index = worker.claim("scope", devices=[-1 + len(worker.masks())])
print(index, os.environ["ZE_AFFINITY_MASK"], acc.device_count(), worker.claimed())
x = l0rt.empty(1)
print(acc.device_count(), worker.claim("scope"), worker.masks())
""",
        {**FOUR, "ZE_AFFINITY_MASK": mask, "ZE_FLAT_DEVICE_HIERARCHY": hierarchy},
    )
    last = len(shown) - 1
    assert (result.returncode, result.stderr) == (0, ""), result
    assert result.stdout.splitlines() == [
        f"{shown} {len(shown)}",
        f"{last} {shown[-1]} 1 {last}",
        f"1 {last} {shown[-1:]}",
    ]


HOLDER = """
import sys
from l0rt.interop import worker
try:
    print(worker.claim(sys.argv[1], timeout=float(sys.argv[2])), flush=True)
except TimeoutError as none_free:
    print(none_free, flush=True)
    sys.exit(7)
sys.stdin.read()
"""


class Holder:
    """A process that claims a device and keeps it until it is told to end, or killed."""

    def __init__(self, scope, folder, timeout):
        self.child = subprocess.Popen(
            [sys.executable, "-c", HOLDER, scope, str(timeout)],
            env={**os.environ, **FOUR},
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.line = None

    def claimed(self):
        """Return the device; waits for it."""
        self.line = self.line or self.child.stdout.readline().strip()
        return self.line

    def end(self, kill=True):
        if kill:
            self.child.send_signal(signal.SIGKILL)
        self.child.communicate(timeout=60)


def test_processes_that_are_killed_at_random_never_have_one_device_together(tmp_path, extent):
    scope, rng, living = str(uuid.uuid4()), random.Random(5), []
    try:
        for _ in range(extent(2, 20)):
            new = [Holder(scope, tmp_path, 60) for _ in range(4 - len(living))]
            living += new
            assert sorted(holder.claimed() for holder in living) == ["0", "1", "2", "3"]
            for holder in rng.sample(living, rng.randrange(1, 4)):
                living.remove(holder)
                holder.end(kill=rng.random() < 0.7)
    finally:
        for holder in living:
            holder.end()


def test_a_fifth_process_waits_for_a_device_and_another_scope_does_not(tmp_path):
    scope = str(uuid.uuid4())
    holders = [Holder(scope, tmp_path, 0) for _ in range(4)]
    try:
        assert {holder.claimed() for holder in holders} == {"0", "1", "2", "3"}
        late, other = Holder(scope, tmp_path, 0), Holder(scope + "x", tmp_path, 0)
        holders += [late, other]
        assert late.claimed().startswith(f"the devices [0, 1, 2, 3] of '{scope}' are all claimed")
        assert other.claimed() == "0"
        waiting = Holder(scope, tmp_path, 60)
        holders.append(waiting)
        free = holders.pop(2)
        free.end()
        assert waiting.claimed() == free.claimed()
    finally:
        for holder in holders:
            holder.end()


def test_claims_are_refused_when_they_come_too_late_or_make_no_sense():
    result = run_python(
        """
import os, signal
import l0rt, l0rt.accelerator as acc
from l0rt.interop import worker
refused = []
def refuse(*args, **kwargs):
    try:
        print(worker.claim(*args, **kwargs))
    except (TypeError, ValueError, RuntimeError) as error:
        refused.append(f"{type(error).__name__}: {error}")
refuse(None)
refuse("a", timeout="1")
refuse("a", devices=[4])
refuse("a", devices=[-1])
refuse("a", devices=["0"])
refuse("a", devices=[])
child = os.fork()
if child == 0:
    worker.claim("a", devices=[1])
    os._exit(worker.claimed())
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
assert worker.claimed() is None and worker.claim("a", devices=[1]) == 1
ends = os.pipe()
if (child := os.fork()) == 0:                  # the parent's claim is not its own
    os._exit(worker.claimed() is None and worker.claim("b") == 0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
refuse("b")
l0rt.empty(1).free()
assert worker.claim("a") == 1                   # still the same
for wrong in (-1, 0.0, 1.5, float("nan"), "1 GiB", True, [], "", 2.0):
    try:
        worker.limit_memory(wrong)
    except (TypeError, ValueError):
        continue
    raise AssertionError(wrong)
assert worker.limit_memory() == 16 << 30
assert worker.limit_memory("64MiB", 0.5) == 64 << 20 == l0rt.memory.get_memory_limit()
assert 32 << 20 <= acc.memory_reserved() <= 64 << 20 and acc.memory_allocated() == 0
print(*refused, sep="\\n")
""",
        FOUR,
    )
    assert (result.returncode, result.stderr) == (0, ""), result
    assert result.stdout.splitlines() == [
        "TypeError: scope must be a str, got NoneType",
        "TypeError: timeout must be a number, got str",
        "ValueError: there is no device 4: this process may use 4",
        "ValueError: there is no device -1: this process may use 4",
        "TypeError: a device must be an int, got str",
        "RuntimeError: there is no device to claim: `l0rt doctor` says what is missing",
        "RuntimeError: this process has claimed a device in the scope 'a'",
    ]


def test_a_process_that_has_opened_the_driver_cannot_claim():
    result = run_python(
        """
import l0rt
from l0rt.interop import worker
x = l0rt.empty(1)
try:
    worker.claim("a")
except RuntimeError as late:
    print(late)
""",
        FOUR,
    )
    assert result.stdout.startswith("claim a device before this process uses one: its driver is open"), result
