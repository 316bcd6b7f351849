# SPDX-License-Identifier: Apache-2.0
"""Many processes that each use the device, by every way to start them; and what they inherit of random numbers."""

import sys

import pytest

from helpers.process import run, run_python
from helpers.torch_script import SCRIPT

WORKERS = """
import multiprocessing, sys

def work(number):
    import numpy as np
    import l0rt, l0rt.accelerator as acc
    with acc.device_index(number % acc.device_count()), acc.Stream():
        buffer, read = l0rt.empty(4096), np.empty(4096, "u1")
        buffer.fill(number).copy_to(read)
        acc.synchronize()
    sys.exit(0 if (read == number).all() else 3)

if __name__ == "__main__":
    method, count = sys.argv[1], int(sys.argv[2])
    import l0rt.accelerator as acc
    assert acc.is_available() and acc.device_count() == 2
    context = multiprocessing.get_context(method)
    processes = [context.Process(target=work, args=(number,)) for number in range(count)]
    for first in range(0, count, 4):
        for process in processes[first : first + 4]:
            process.start()
        for process in processes[first : first + 4]:
            process.join()
    assert [process.exitcode for process in processes] == [0] * count, [process.exitcode for process in processes]
    acc.current_stream().synchronize()
    print("done")
"""


@pytest.mark.parametrize(("method", "count"), [("fork", 20), ("spawn", 15), ("forkserver", 15)])
def test_fifty_processes_use_the_device_and_exit_silently(method, count, tmp_path, extent):
    script = tmp_path / "workers.py"
    script.write_text(WORKERS)
    env = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2}
    result = run([sys.executable, script, method, str(extent(min(count, 5), count, 50))], env, timeout=300)
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", ""), result


SEEDS = """
import os, sys
import l0rt.accelerator as acc

def child(ask):
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, str(ask()).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        return pipe.read()

"""


def test_forked_workers_inherit_what_was_seeded_and_else_have_their_own_entropy():
    code = SEEDS + """
print(*[child(acc.initial_seed) for _ in range(3)])
acc.manual_seed_all(7)
print(*[child(acc.initial_seed) for _ in range(2)])
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu"})
    assert result.returncode == 0, result
    fresh, seeded = (line.split() for line in result.stdout.splitlines())
    assert len(set(fresh)) == 3
    assert seeded == ["7", "7"]


def test_a_generator_works_in_a_forked_child_of_a_parent_that_opened_the_driver():
    code = SEEDS + """
import l0rt
acc.init()
generator = l0rt.Generator().manual_seed(5)
generator.philox_engine_inputs(8)
assert child(generator.get_offset) == "8"
def refused():
    try:
        acc.get_rng_state()
    except RuntimeError as e:
        return "Cannot re-initialize XPU in forked subprocess" in str(e)
assert child(refused) == "True"
assert acc.initial_seed() == acc.initial_seed()
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu"})
    assert result.returncode == 0, result


def test_a_worker_refuses_devices_that_are_not_there():
    code = SEEDS + """
from l0rt.interface import get_interface_for_device
Worker = get_interface_for_device("xpu").Worker
def refused():
    told = []
    for call in (Worker.set_device, Worker.get_device_properties):
        for device in (2, 9, -1, "xpu:2"):
            try:
                told.append(call(device))
            except IndexError as error:
                assert "must be in [0, 2)" in str(error)
    for device in (None, "xpu"):
        try:
            told.append(Worker.set_device(device))
        except ValueError as error:
            assert "a specified index or an integer" in str(error)
    return told, Worker.current_device()
assert refused() == ([], 0)
Worker.get_device_properties()
assert child(refused) == "([], 0)"
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2})
    assert result.returncode == 0, result


def test_a_worker_reads_cached_properties_without_opening_the_driver():
    code = SEEDS + """
from l0rt.interface import get_interface_for_device
Worker = get_interface_for_device("xpu").Worker
name = Worker.get_device_properties("xpu:1").name      # opens the driver here
def ask():
    Worker.set_device("xpu:1")
    properties = Worker.get_device_properties()
    return Worker.current_device(), properties.index, properties.name == name
assert child(ask) == "(1, 1, True)"
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2})
    assert result.returncode == 0, result


def test_a_variable_that_changes_after_the_driver_is_open_is_told_once():
    code = """
import os, warnings
import l0rt.accelerator as acc
warnings.simplefilter("always")
acc.init()
with warnings.catch_warnings(record=True) as told:
    assert acc.device_count() == 2 and told == []
    os.environ["L0RT_CPU_DEVICES"] = "1"
    os.environ["ZE_AFFINITY_MASK"] = "0"
    assert acc.device_count() == 2 and acc.device_count() == 2
assert len(told) == 2, told
assert {str(w.message).split()[0] for w in told} == {"L0RT_CPU_DEVICES", "ZE_AFFINITY_MASK"}
assert all("has no effect any more" in str(w.message) and w.category is RuntimeWarning for w in told)
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2, "ZE_AFFINITY_MASK": None})
    assert result.returncode == 0, result


def test_a_script_written_for_torch_runs_with_its_import_changed():
    code = SCRIPT.replace("import torch\n", "import l0rt as torch\n", 1)
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2})
    assert (result.returncode, result.stdout, result.stderr) == (0, "xpu None 2\n", ""), result
