# SPDX-License-Identifier: Apache-2.0
"""Ray with four devices: an actor each, Buffers by value, and an actor that is killed."""

import pytest

from helpers import scaled
from helpers.process import run_python


@pytest.fixture(autouse=True)
def _ray():
    scaled.need("ray", "ray")


@pytest.fixture
def home(tmp_path):
    """Where Ray keeps what it writes: its token in the home folder, and its sockets, whose paths must be short."""
    return {"HOME": tmp_path, "RAY_TMPDIR": "/tmp"}


@pytest.mark.parametrize("number", [0, 1], ids=["plain", "a-killed-actor"])
def test_a_command_of_the_page_learns_what_one_process_learns(number, tmp_path, home, extent):
    if number == 0:
        extent.skip_unless_whole()  # the other one learns the same, and starts Ray as slowly
    command, output = scaled.commands("with_ray.py")[number]
    assert ("--kill" in command) == bool(number)
    result = scaled.follow(command, tmp_path, timeout=400, **home)
    printed = [line for line in result.stdout.splitlines() if "(raylet)" not in line]
    assert (result.returncode, printed) == (0, output.splitlines()), result
    assert ("worker died or was killed" in result.stdout + result.stderr) == bool(number), result


PROGRAM = """
import os, pickle, signal
import numpy as np
import l0rt, l0rt.accelerator as acc
import ray
from l0rt.interop.ray import RESOURCE, claim, init, resources

refused = []
def refuse(function):
    try:
        function()
    except (RuntimeError, ValueError) as error:
        refused.append(str(error).splitlines()[-1])

assert resources() == {RESOURCE: 4}
refuse(claim)
refuse(lambda: init(address="auto"))
init(num_cpus=2, object_store_memory=100 << 20, log_to_driver=False, logging_level="ERROR")
refuse(claim)
assert ray.cluster_resources()[RESOURCE] == 4

@ray.remote(resources={RESOURCE: 1}, num_cpus=0, max_restarts=-1, max_task_retries=-1)
class Holder:
    def __init__(self, number):
        self.index = claim(memory_limit="64MiB", pool_size="2MiB")
        self.number = number
        self.mine = l0rt.empty(100_000).fill(number)

    def place(self):
        assert acc.device_count() == 1 and claim() == self.index and l0rt.memory.get_memory_limit() == 64 << 20
        return self.index, os.environ["ZE_AFFINITY_MASK"], os.getpid()

    def give(self):
        return {"device": self.mine, "host": l0rt.empty(10, kind="host").fill(self.number)}

    def take(self, found, number):
        assert str(found["device"].device) == "xpu:0" and found["host"].kind == "host"
        return set(found["device"].numpy()) == {number} == set(found["host"].numpy())

holders = [Holder.remote(number) for number in range(4)]
def places():
    found = ray.get([holder.place.remote() for holder in holders], timeout=100)
    assert sorted(index for index, _, _ in found) == [0, 1, 2, 3], found
    assert all(mask == str(index) for index, mask, _ in found)
    return [pid for _, _, pid in found]

before = places()
given = [holder.give.remote() for holder in holders]
assert all(ray.get([holders[(i + 1) % 4].take.remote(x, i) for i, x in enumerate(given)], timeout=100))
assert [int(x["device"].numpy()[0]) for x in ray.get(given)] == [0, 1, 2, 3]
for pid in before[1:3]:                                     # two at a time: no clash, and the rest stays
    os.kill(pid, signal.SIGKILL)
after = places()
assert after[0] == before[0] and after[3] == before[3] and not set(after[1:3]) & set(before)
ray.kill(holders.pop())                                     # its device is free for another

@ray.remote(resources={RESOURCE: 1}, num_cpus=0, max_calls=1)
def task():
    return claim()

@ray.remote(num_cpus=0)
def without():
    return claim()

known = {index for index, _, _ in ray.get([holder.place.remote() for holder in holders])}
assert {ray.get(task.remote(), timeout=100) for _ in range(2)} == {0, 1, 2, 3} - known
refuse(lambda: ray.get(without.remote(), timeout=100))
ray.shutdown()
print(*refused, sep="\\n")
"""


def test_each_actor_has_a_device_that_no_other_has_also_after_kills(home):
    result = run_python(PROGRAM, {**scaled.DEVICES, **home}, timeout=400)
    assert result.returncode == 0, result
    told = [line for line in result.stdout.splitlines() if line and "(raylet)" not in line]
    assert told == [
        "claim a device in an actor or a task of Ray's",
        "init starts a cluster; connect to one with ray.init(address=...)",
        "claim a device in an actor or a task of Ray's",
        "RuntimeError: an actor or task takes one 'l0rt_device', with resources={'l0rt_device': 1}; it has 0",
    ], result
