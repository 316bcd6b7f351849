# SPDX-License-Identifier: Apache-2.0
"""What the driver's calls for memory cost in a step of training, on a simulated device: no time passes but on a clock
that is virtual, by what the CPU driver charges for each call and by the step's own work."""

import ctypes
import json
import os
import subprocess
import sys

import l0rt
import l0rt.accelerator as acc
import l0rt.bench.loops as loops
import l0rt.runtime.memory.operations as operations
from l0rt._base.paths import known_interpreter
from l0rt.bench import traces
from l0rt.bench.replays import MODES, driver_calls, environment, program

STEPS = {"gpt_train": 30, "conv_train": 25}  # of the traces: bench/traces/README.md
STEP_NS = 12_000_000  # what a step takes without those calls: a small model's, whose launches are its limit
PASSES = 3


def has_costs(is_software):
    """Does the device have costs that can be counted? What the CPU driver charges, it says in its variables."""
    timing = "timing" in os.environ.get("L0RT_CPU_PROFILE", "").split(",")
    return is_software and (timing or bool(os.environ.get("L0RT_CPU_LATENCY")))


def passes(name, scale, mode):
    """Replay a trace a few times in a process of its own; return for each pass the part of a step that calls took, in
    percent, the most that was reserved over the trace's peak, and the calls."""
    latency = ",".join(filter(None, (os.environ.get("L0RT_CPU_LATENCY"), "virtual")))
    process = subprocess.run(
        [known_interpreter(), "-c", program("steps"), name, str(scale)],
        capture_output=True,
        text=True,
        env=environment({**MODES[mode], "L0RT_CPU_LATENCY": latency}),
        start_new_session=True,
    )
    if process.returncode != 0:
        raise RuntimeError(f"the replaying process ended: {process.stderr.strip()[-300:]}")
    return json.loads(process.stdout)


def replay(trace, steps, charged):
    """Replay a trace on the virtual clock, in so many steps; ``charged`` is the time that the driver's calls took."""
    blocks = loops.Blocks(trace.slot_count)
    cuts = [len(trace) * i // steps for i in range(steps + 1)]
    results: list[dict] = []
    for _ in range(PASSES):
        acc.reset_peak_memory_stats()
        before, calls = charged(None), driver_calls()
        for first, last in zip(cuts, cuts[1:], strict=False):
            part = slice(first, last)
            blocks.replay(trace.ops[part], trace.slots[part], trace.sizes[part], last - first)
            operations.virtual_step(STEP_NS)
        results.append(
            {
                "percent": (charged(None) - before) / (steps * STEP_NS) * 100,
                "reserved": acc.max_memory_reserved() / trace.peak,
                "calls": driver_calls() - calls,
            }
        )
        blocks.free()
    return results


def charges():
    """Return the CPU driver's count of nanoseconds, and let it move the virtual clock."""
    function = ctypes.CDLL(l0rt.cpu_driver_path()).l0rt_cpu_charged
    function.restype, function.argtypes = ctypes.c_uint64, [ctypes.c_char_p]
    operations.virtual_begin(ctypes.cast(function, ctypes.c_void_p).value)
    return function


def serve():
    """Replay what the command line names, and print what was found."""
    name, scale = sys.argv[1], int(sys.argv[2])
    acc.current_device_index()
    print(json.dumps(replay(traces.load(name, scale), STEPS[name], charges())))
