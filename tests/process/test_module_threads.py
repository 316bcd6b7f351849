# SPDX-License-Identifier: Apache-2.0
"""Threads that make, launch, close and drop modules: see `helpers.module_programs`."""

import pytest

from helpers.extents import HANG_LIMIT
from helpers.process import run_python
from helpers.rings import TESTS

PROGRAMS = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from helpers.ledger import leaks, live, warm_up
from helpers.module_programs import wrong_modules
sys.setswitchinterval(1e-6)
"""
FREED_IS_FILLED = {"MALLOC_PERTURB_": "85"}  # by glibc: who reads freed memory finds no pointers in it
WAYS = {
    "plain": {},
    "chaos": {"L0RT_CPU_CHAOS": "5"},
    "without in-order lists": {"L0RT_DISABLE": "inorder,list_sync", "L0RT_CPU_CHAOS": "6"},
}


@pytest.mark.parametrize("way", WAYS)
def test_modules_of_several_threads_end_once_and_work_until_then(way, extent):
    first = 1000 * list(WAYS).index(way)
    seeds = range(first, first + extent(4, 40, 400))
    code = f"""{PROGRAMS}
warm_up()
wrong_modules(0)
before = live()
print([wrong for seed in {seeds!r} for wrong in wrong_modules(seed)], leaks(before, live()))
"""
    result = run_python(code, {**FREED_IS_FILLED, "L0RT_DRIVER": "cpu", **WAYS[way]}, timeout=HANG_LIMIT)
    assert (result.returncode, result.stdout, result.stderr) == (0, "[] []\n", ""), result


def test_a_closed_module_is_dropped_while_another_thread_destroys_it(extent):
    """Its launches have ended: another thread's next call destroys it, and gives up the GIL for each kernel."""
    code = f"""{PROGRAMS}
import threading, time, l0rt, l0rt.accelerator as acc
from helpers.module_programs import CODE, Flag
x, stream, flag = l0rt.empty(64), acc.Stream(), Flag()
waiting = l0rt.Module(CODE)
for _ in range({extent(12, 100, 1000)}):
    flag.word[0] = 0
    waiting["wait_until"].launch(flag.memory, 1, groups=1, group_size=1, stream=stream)
    made = [l0rt.Module(CODE) for _ in range(30)]
    for module in made:
        kernels = [module[name] for name in module]
        module["store"].launch(x, 1, groups=1, group_size=1, stream=stream)
        module.close()
    del module, kernels
    flag.open()
    stream.synchronize()
    barrier = threading.Barrier(2)
    def destroy():
        barrier.wait()
        l0rt.Module(CODE)
    def drop():
        barrier.wait()
        while made:
            made.pop(0)  # the other one begins with the last
            time.sleep(0)  # gives up the GIL
    threads = [threading.Thread(target=destroy), threading.Thread(target=drop)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
print("done")
"""
    result = run_python(code, {**FREED_IS_FILLED, "L0RT_DRIVER": "cpu"}, timeout=HANG_LIMIT)
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", ""), result


@pytest.mark.parametrize("chaos", [3, 4])
def test_threads_share_a_kernel_under_chaos(chaos, extent):
    """Each launch has the arguments of its thread, whatever the engines do in which order."""
    code = f"""{PROGRAMS}
import threading, l0rt, l0rt.accelerator as acc, numpy as np
from helpers.module_programs import CODE
kernel, wrong, ITEMS = l0rt.Module(CODE)["store"], [], 64
def work(me):
    stream, x, out = acc.Stream(), l0rt.empty(4 * ITEMS), np.empty(ITEMS, np.int32)
    stream.wait_stream(acc.current_stream())
    for first in range(0, {extent(250, 2_500, 12_500)}, ITEMS):
        for i in range(ITEMS):
            kernel.launch(x[4 * i : 4 * i + 4], 100_000 * me + first + i, groups=1, group_size=1, stream=stream)
        x.copy_to(out, stream=stream)
        if (out != 100_000 * me + first + np.arange(ITEMS)).any():
            wrong.append((me, first, out.tolist()))
    x.record_stream(stream)
threads = [threading.Thread(target=work, args=(me,)) for me in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(wrong)
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_CHAOS": chaos}, timeout=HANG_LIMIT)
    assert (result.returncode, result.stdout, result.stderr) == (0, "[]\n", ""), result
