# SPDX-License-Identifier: Apache-2.0
"""Every public name, called with hostile objects from everywhere that code can run: see `helpers.hostile`.

The whole check makes 20,000 calls with seeds that stay; a soak (L0RT_TEST_SOAK=1) a million with fresh seeds, where
KeyboardInterrupt comes at any byte code too: that is a matter of time, so what it finds does not repeat.
"""

import os
import random
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from helpers.door import GUARD_SIGNATURES, SIGNATURES
from helpers.hostile_door import Call, HostileDoor
from helpers.process import run

TESTS = Path(__file__).parents[1]
CALLS = 1000  # of one process
PATIENCE = 60  # seconds without progress that are a hang
BASE = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "2", "L0RT_CPU_MEMORY": "64MiB", "PYTHONPATH": str(TESTS)}
# What the processes run under, and where their calls may come from.
SETTINGS = {
    "plain": ("", {}),
    "signals": ("signals", {}),
    "threads": ("threads", {}),
    "forks": ("forks=10", {}),
    "everything": ("signals,threads,forks=5,exit", {}),
    "chaos": ("threads,signals", {"L0RT_CPU_CHAOS": "{seed}"}),
    "no caching": ("signals,threads", {"L0RT_NO_MEMORY_CACHING": "1"}),
    "sanitizer": ("signals,forks=3", {"L0RT_SANITIZE": "stream"}),
    "without virtual memory": ("signals,threads", {"L0RT_DISABLE": "vmm,free_ext,cb_events"}),
    "old driver": ("signals,forks=3", {"L0RT_CPU_PROFILE": "neo-22.43"}),
    "little": ("threads,exit", {"L0RT_CPU_MEMORY": "8MiB", "L0RT_ALLOC_CONF": "expandable_segments:False"}),
    "pools": ("signals", {"L0RT_EVENTS": "pool", "L0RT_LAZY_INIT": "0", "L0RT_STREAM_POOL_SIZE": "2"}),
    "configured": ("threads", {"L0RT_ALLOC_CONF": "max_split_size_mb:20,garbage_collection_threshold:0.3"}),
    "strict": ("signals", {"L0RT_CPU_STRICT": "1"}),
    "faults": ("", {"L0RT_CPU_FAIL": "{fault}"}),
    "table": ("table,threads,signals,forks=3", {}),
    "hangs": ("hangs", {"L0RT_CPU_FAIL": "{hang}"}),
}
RESULTS = ("ERROR_OUT_OF_DEVICE_MEMORY", "ERROR_OUT_OF_HOST_MEMORY", "ERROR_UNKNOWN", "ERROR_DEVICE_LOST", "late_oom")
FUNCTIONS = (
    "zeMemAllocDevice", "zeMemAllocHost", "zeMemAllocShared", "zeMemFree", "zeVirtualMemMap", "zePhysicalMemCreate",
    "zeCommandListAppendMemoryCopy", "zeCommandListAppendMemoryFill", "zeCommandListAppendSignalEvent",
    "zeEventCreate", "zeCommandListCreateImmediate", "zeEventHostSynchronize",
)  # fmt: skip


def fault(choice):
    """Return a rule of two faults for L0RT_CPU_FAIL."""
    rules = []
    for name in choice.sample(FUNCTIONS, 2):
        result = choice.choice(RESULTS if "Alloc" in name else RESULTS[:-1])
        rules.append(f"{name}:{choice.randrange(2, 30)}:{result}")
    return ",".join(rules)


def hang(choice):
    """Return a rule for L0RT_CPU_FAIL by which a command never completes."""
    function = choice.choice([name for name in FUNCTIONS if name.startswith("zeCommandListAppend")])
    return f"{function}:{choice.randrange(1, 60)}:hang"


def complaint(name, seed, calls, log, interrupts):
    """Run one program; return what is wrong, with the command that does it again."""
    contexts, env = SETTINGS[name]
    if interrupts:
        contexts = ",".join(filter(None, [contexts, "interrupts"]))
    choice = random.Random(seed)
    filled = {key: value.format(seed=seed, fault=fault(choice), hang=hang(choice)) for key, value in env.items()}
    command = ["-m", "helpers.hostile", str(seed), str(calls), "--contexts", contexts]
    watching = ["--log", log, "--patience", str(PATIENCE)]
    result = run([sys.executable, *command, *watching], {**BASE, **filled}, timeout=PATIENCE * 3)
    if result.returncode == 0 and not result.stderr:
        return None
    words = [f"{key}={shlex.quote(value)}" for key, value in {**BASE, **filled}.items()]
    again = " ".join([*words, "python", *map(shlex.quote, command)])
    last = log.read_text(errors="replace").splitlines()[-12:] if log.exists() else []
    return "\n".join([f"again: {again}", "the last calls:", *last, str(result)])


@pytest.mark.parametrize("name", SETTINGS)
def test_nothing_that_anybody_calls_crashes_hangs_or_corrupts(name, tmp_path, extent, soak):
    total, calls = extent(3_000, 20_000, 1_000_000), extent(200, CALLS)
    seeds = range(-(-total // calls // len(SETTINGS)))
    first = random.SystemRandom().randrange(1 << 32) if soak else 1000 * list(SETTINGS).index(name)

    def one(number):
        return complaint(name, first + number, calls, tmp_path / f"{number}.log", soak)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [text for text in pool.map(one, seeds) if text]
    assert not wrong, "\n\n".join(wrong[:3])


def walk():
    """The calls of the table without a program: what is called is known before anything is."""
    return Call(HostileDoor(SimpleNamespace(rng=random.Random(0))), 0)


def test_every_function_of_the_c_table_is_called():
    assert sorted(walk().of_table()) == sorted(name for name, *_ in SIGNATURES)


@pytest.mark.parametrize("type", ["xpu", "cpu"])
def test_every_function_of_a_guard_table_is_called(type):
    assert sorted(walk().of_guards(type)) == sorted(name for name, *_ in GUARD_SIGNATURES)


def test_every_function_of_the_tables_does_what_it_should_between_hostile_calls(tmp_path):
    """The program itself tells of functions of which no call has succeeded."""
    command = ["-m", "helpers.hostile", "1", "2500", "--contexts", "table", "--log", tmp_path / "log"]
    result = run([sys.executable, *command], BASE, timeout=PATIENCE * 3)
    assert (result.returncode, result.stderr) == (0, ""), str(result)
