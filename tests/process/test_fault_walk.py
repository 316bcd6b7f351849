# SPDX-License-Identifier: Apache-2.0
"""Every result that the CPU driver can be told to give, for every driver call that l0rt makes: the right exception,
nothing leaked, and a process that goes on working."""

import json
import os
import re
import subprocess
import sys

import l0rt
import pytest
from l0rt.errors import CLASS_OF_RESULT
from l0rt.ze import table

from helpers.source import ROOT

FAULTS = ROOT / "l0rt/cpu_driver/simulate/fault.c"
PARTS = 8  # of the functions: a soak's take minutes each

# What must happen before some functions are called at all: rules before the fault, capabilities off.
SETUP = {
    "zeInit": ("", "init_drivers"),
    "zeDriverGet": ("", "init_drivers"),
    "zeCommandListAppendBarrier": ("", "inorder"),
    "zeMemAllocDevice": ("", "vmm"),
    "zeContextMakeMemoryResident": ("", "vmm"),
    "zeDriverGetLastErrorDescription": ("zeMemAllocHost:1:ERROR_UNKNOWN,", ""),
}
# Called by none of the work here: for foreign pointers and lists, in waits of seconds, for another process, never
# yet, and by the loader.
ELSEWHERE = {
    "zeMemGetAllocProperties", "zeMemGetAddressRange", "zeContextGetStatus", "zeDeviceGetStatus",
    "zeDeviceGetGlobalTimestamps", "zelLoaderTranslateHandle", "zeCommandListGetContextHandle",
    "zeCommandListGetDeviceHandle", "zeCommandListGetOrdinal", "zeCommandListIsImmediate",
    "zeModuleBuildLogGetString",  # of modules that do not build
    "zeCommandQueueSynchronize",  # of graphs of which a part was refused
    "zeEventPoolGetIpcHandle", "zeEventPoolOpenIpcHandle", "zeEventPoolCloseIpcHandle", "zeEventPoolPutIpcHandle",
    "zeMemGetIpcHandle", "zeMemGetIpcHandleWithProperties", "zeMemPutIpcHandle", "zeMemOpenIpcHandle",
    "zeMemCloseIpcHandle",  # test_ipc.py
    "zeEventHostSignal",  # in the place of a process that ended: test_ipc_events.py
}  # fmt: skip
# Without these the library is no driver: it is not asked again.
INITIAL = {"zeInit"}
# There is another way, or only a hint is lost.
GOES_ON = {
    "zeInitDrivers",  # zeInit
    "zeDriverGetExtensionFunctionAddress", "zeDriverGetLastErrorDescription", "zeDevicePciGetPropertiesExt",  # a text
    "zeContextMakeMemoryResident",  # a driver that cannot is trusted
    "zeCommandListCreateImmediate", "zeCommandListHostSynchronize", "zeEventPoolCreate", "zeVirtualMemReserve",
    "zeVirtualMemMap", "zePhysicalMemCreate",  # found out by trying: there are fallbacks
    "zeMemAllocDevice", "zeMemAllocHost", "zeMemAllocShared",  # once more, when the cache is empty
    "zeEventHostReset",  # another event
    "zeEventHostSynchronize", "zeEventQueryStatus",  # once more
    "zeCommandListAppendSignalEvent", "zeCommandListAppendBarrier",  # behind the last use of a block: once more
}  # fmt: skip
# An answer like any other: nothing is wrong.
ANSWERS = {
    ("zeDeviceGetSubDevices", "ERROR_UNSUPPORTED_FEATURE"),  # a device of one tile
    ("zeCommandListAppendMemoryCopyRegion", "ERROR_UNSUPPORTED_FEATURE"),  # the rows are copied one by one
    ("zeCommandListAppendMemoryCopyRegion", "ERROR_UNINITIALIZED"),
    ("zeDeviceSynchronize", "ERROR_UNSUPPORTED_FEATURE"),  # l0rt's own streams are waited for
    ("zeDeviceSynchronize", "ERROR_UNINITIALIZED"),
}
# Answered while the driver records a graph, these mean that it cannot: the graph is command lists then.
NOT_RECORDED = {"ERROR_UNSUPPORTED_FEATURE", "ERROR_GRAPH_CAPTURE_UNSUPPORTED", "ERROR_UNINITIALIZED"}
RECORDING = (
    "zeCommandListAppend", "zeCommandListBeginGraph", "zeCommandListEndGraph", "zeCommandListCreateImmediate",
    "zeGraphInstantiate", "zeKernelSet", "zeEventPoolCreate", "zeEventCreate",
)  # fmt: skip
# What the driver does not destroy stays, and what holds it.
GIVEN_UP = {
    "zeMemFree": {"usm"},
    "zeMemFreeExt": {"usm"},
    "zeEventDestroy": {"event", "event_pool", "context"},
    "zeEventPoolDestroy": {"event_pool", "context"},
    "zeContextDestroy": {"context"},
    "zeVirtualMemFree": {"reservation", "context"},
    "zeVirtualMemUnmap": {"reservation", "physical", "context"},
    "zePhysicalMemDestroy": {"physical", "context"},
    "zeCommandListDestroy": {"list", "context"},
    "zeCommandQueueDestroy": {"queue", "context"},
    "zeFenceDestroy": {"fence", "queue", "context"},
    "zeExecutableGraphDestroyExt": {"executable_graph", "graph", "list", "point", "context"},
    "zeGraphDestroyExt": {"graph", "context"},
    "zeModuleDestroy": {"module", "context"},
    "zeImageDestroy": {"image", "usm", "context"},
    "zeSamplerDestroy": {"sampler", "context"},
    "zeModuleBuildLogDestroy": {"build_log", "context"},
    "zeKernelDestroy": {"kernel", "module", "context"},
}
LOST = {"ERROR_DEVICE_LOST", "ERROR_DEVICE_REQUIRES_RESET"}


def results():
    found = re.findall(r"RESULT\((\w+)\)", FAULTS.read_text())
    return [name for name in found if name != "name"]


def names():
    return [name for name, _, _ in table.entry_points() if name not in ELSEWHERE]


@pytest.fixture(scope="module")
def walk():
    if not FAULTS.exists():
        pytest.skip("needs the source tree")
    changed = {**os.environ, "L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "2", "PYTHONPATH": str(ROOT / "tests")}
    for name in ("L0RT_CPU_FAIL", "L0RT_CPU_PROFILE", "L0RT_DISABLE"):
        changed.pop(name, None)
    command = [sys.executable, "-m", "helpers.fault_walk"]
    with subprocess.Popen(
        command, cwd="/", env=changed, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:

        def ask(rule, disable="", **rest):
            server.stdin.write(json.dumps({"rule": rule, "disable": disable, **rest}) + "\n")
            server.stdin.flush()
            return json.loads(server.stdout.readline())

        ask.live = {disable: ask("", disable)["live"] for disable in ("", "init_drivers", "inorder", "vmm")}
        yield ask
        server.stdin.close()


def complaints(walk, name, nth, result):
    """Return what is wrong after this fault; None if there was no such call."""
    before, disable = SETUP.get(name, ("", ""))
    got = walk(f"{before}{name}:{nth}:{result}", disable)
    if got["status"] != 0:
        return [f"the process ended with status {got['status']}"]
    if got["happened"] <= bool(before):
        return None
    wrong = []
    allowed = {CLASS_OF_RESULT.get(result, l0rt.L0Error).__name__}
    if name in INITIAL:
        allowed.add("DriverNotFoundError")
    if before:
        allowed = {"L0Error"}
    raised = [error for errors in got["rounds"] for error in errors]
    if "L0Error" in allowed and name.endswith("Synchronize"):
        allowed.add("KernelFaultError")  # a wait behind launches
    wrong += [f"{e['part']} raised {e['tree'][0]}: {e['text']}" for e in raised if e["tree"][0] not in allowed]
    wrong += [f"{e['part']} raised without a code: {e['text']}" for e in raised if e["code"] is None]
    only_later = result == "NOT_READY" and name.endswith("Synchronize")
    silent = only_later or name in GOES_ON or (name, result) in ANSWERS
    silent = silent or (result in NOT_RECORDED and name.startswith(RECORDING))
    if not raised and not got["warned"] and not silent:
        wrong.append("nobody heard of it")
    if got["rounds"][-1] and result not in LOST and name not in INITIAL:
        wrong.append(f"it still fails: {got['rounds'][-1][0]['text']}")
    if got["live"] is not None and result not in LOST:
        counts = walk.live[disable]
        grown = {kind: n for kind, n in got["live"].items() if n > counts[kind] and kind not in GIVEN_UP.get(name, ())}
        wrong += [f"{n - counts[kind]} of kind {kind} leaked" for kind, n in grown.items()]
    return wrong


def faults(calls, part):
    """The faults of a part of the functions, each at its first call, or at its first and third, or at its first,
    second and third call (each of two devices is probed before the rest). Three calls have every result, others one."""
    every = results()
    share = 1 if calls == 3 else len(every)
    for i, name in list(enumerate(names()))[part::PARTS]:
        for k, result in enumerate(every):
            if (k - i) % share == 0:
                for nth in {1: (1,), 2: (1, 3), 3: (1, 2, 3)}[calls]:
                    yield name, nth, result


@pytest.mark.parametrize("part", range(PARTS))
def test_every_result_of_every_call_is_heard_and_survived(part, walk, extent):
    if part % 2:
        extent.skip_unless_whole()
    wrong, happened = [], set()
    for name, nth, result in faults(extent(1, 2, 3), part):
        found = complaints(walk, name, nth, result)
        if found is not None:
            happened.add(name)
            wrong += [f"{name}:{nth}:{result}: {text}" for text in found]
    assert happened == set(names()[part::PARTS]), "each call was reached"
    assert not wrong, "\n".join(wrong)


def test_memory_that_the_driver_does_not_take_back_is_warned_of(walk):
    for name in ("zeMemFree", "zeVirtualMemFree", "zeVirtualMemUnmap", "zePhysicalMemDestroy"):
        for nth in (2, 3):  # of a probe, and of the work
            got = walk(f"{name}:{nth}:ERROR_UNKNOWN")
            assert got["warned"] == [f"{name} failed with ERROR_UNKNOWN; the object is given up"]
            assert not any(got["rounds"])


def test_a_device_that_is_lost_on_the_way_of_freeing_is_known_to_be_lost(walk):
    for call in ("zeMemFree:2", "zeVirtualMemUnmap:3"):
        raised = walk(f"{call}:ERROR_DEVICE_LOST")["rounds"][-1]
        assert {(error["tree"][0], error["code"][0]) for error in raised} == {("DeviceLostError", "ERROR_DEVICE_LOST")}


def test_a_mark_that_fails_twice_behind_the_last_use_of_a_block_is_warned_of(walk):
    twice = "zeCommandListAppendSignalEvent:{}:ERROR_UNKNOWN,zeCommandListAppendSignalEvent:{}:ERROR_UNKNOWN"
    outcomes = [walk(twice.format(n, n + 1), work=["last_uses"]) for n in (1, 2, 3)]
    warned = [len(got["warned"]) for got in outcomes if not got["rounds"][0]]
    assert 1 in warned
    assert max(warned) == 1  # none where the two belong to two marks, each of which succeeds when tried again
    assert all(got["rounds"][-1] == [] for got in outcomes)


def test_a_start_that_fails_for_the_moment_can_be_repeated(walk):
    got = walk("zeContextCreate:1:ERROR_OUT_OF_HOST_MEMORY,zeDeviceGet:1:ERROR_UNINITIALIZED")
    first = [(error["tree"][0], error["code"][0]) for error in got["rounds"][0]]
    assert first == [("DriverNotFoundError", "ERROR_UNINITIALIZED"), ("OutOfMemoryError", "ERROR_OUT_OF_HOST_MEMORY")]
    assert not any(got["rounds"][1:])


def test_a_library_that_is_no_driver_is_not_asked_again(walk):
    got = walk("zeInitDrivers:1:ERROR_UNINITIALIZED,zeInit:1:ERROR_UNINITIALIZED")
    for raised in got["rounds"]:
        assert {(error["tree"][0], error["code"][0]) for error in raised[:4]} == {
            ("DriverNotFoundError", "ERROR_UNINITIALIZED")
        }


STAGED = {  # a call that a staged copy makes: how many of them are made to fail, one at a time
    "zeCommandListAppendMemoryCopy": 16,
    "zeCommandListAppendMemoryCopyRegion": 2,
    "zeCommandListAppendBarrier": 8,
    "zeEventHostSynchronize": 6,
    "zeMemAllocHost": 4,
    "zeEventPoolCreate": 6,
}


@pytest.mark.parametrize("disable", ["", "inorder"])
def test_a_staged_copy_that_fails_half_way_leaves_no_chunk_behind_and_the_next_one_is_right(disable, walk, extent):
    rest = {"profile": "arc-a770-xe", "work": ["staged_copies"]}  # the plain CPU driver's chunks are large
    clean = walk("", disable, **rest)
    assert not any(clean["rounds"])
    failed, wrong = set(), []
    results = ("ERROR_UNKNOWN", "ERROR_OUT_OF_DEVICE_MEMORY", "ERROR_OUT_OF_HOST_MEMORY")[: extent(1, 1, 3)]
    step = extent(5, 1)
    for name, most in STAGED.items():
        for nth in range(1, most + 1, step):
            for result in results:
                got, rule = walk(f"{name}:{nth}:{result}", disable, **rest), f"{name}:{nth}:{result}"
                if got["status"] != 0:
                    wrong.append(f"{rule}: the process ended with status {got['status']}")
                    continue
                if not got["happened"]:
                    continue
                raised = [error for errors in got["rounds"] for error in errors]
                allowed = CLASS_OF_RESULT.get(result, l0rt.L0Error).__name__
                wrong += [f"{rule}: {e['tree'][0]}: {e['text']}" for e in raised if e["tree"][0] != allowed]
                wrong += [f"{rule}: it still fails" for errors in got["rounds"][1:] if errors]
                grown = {kind: n for kind, n in got["live"].items() if n > clean["live"][kind]}
                wrong += [f"{rule}: leaked {grown}"] if grown else []
                failed |= {name} if raised else set()
    assert not wrong, "\n".join(wrong)
    assert "zeCommandListAppendMemoryCopy" in failed
    assert ("zeCommandListAppendBarrier" in failed) == (disable == "inorder")


COUNTED = (1 << 32) - 1  # a rule for the call of this number counts calls, and no call fails
RULES = 30  # at a time: the variable takes 2000 characters
SLEEPING = ("ERROR_UNKNOWN", "ERROR_OUT_OF_DEVICE_MEMORY", "ERROR_DEVICE_LOST")


def called_asleep(walk, disable):
    """Return function -> (the calls before a sleep with a backup, those before the wake-up, those until it is over)."""
    found, every = {}, [name for name, _, _ in table.entry_points() if not name.startswith("zel")]
    for start in range(0, len(every), RULES):
        rules = ",".join(f"{name}:{COUNTED}:ERROR_UNKNOWN" for name in every[start : start + RULES])
        got = walk(rules, disable, work=["sleeping"], rounds=1)
        assert got["rounds"] == [[]], got
        counts = got["returned"][0]
        found |= {name: [one[name] for one in counts] for name in counts[0] if counts[0][name] < counts[2][name]}
    return found


def fell_inside(got):
    """Return whether a call failed while a pool fell asleep or woke."""
    counts = got["returned"][0]
    return got["happened"] and bool(counts) and counts[0]["faults"] < counts[-1]["faults"]


@pytest.mark.parametrize("disable", ["", "inorder"])
def test_each_call_of_a_sleep_and_of_a_wake_up_fails_once_and_all_is_right_afterwards(disable, walk, extent):
    """Bytes, addresses and memory are asserted after each attempt, in `sleeping`. The driver counts the calls."""
    called = called_asleep(walk, disable)
    assert {"zeCommandListAppendMemoryCopy", "zeVirtualMemMap", "zeVirtualMemUnmap", "zePhysicalMemCreate",
            "zePhysicalMemDestroy", "zeMemAllocHost"} <= set(called)  # fmt: skip
    clean, inside, raising, wrong = walk("", disable, work=["sleeping"], rounds=2), set(), set(), []
    assert clean["rounds"] == [[], []]
    every = extent(0, 1, 3)  # results of each call; or a call or two of every second function, and of the others
    for k, (name, (first, woken, last)) in enumerate(sorted(called.items())):
        calls = range(first + 1, last + 1) if every else sorted({first + 1, min(woken + 1, last)})
        for nth in calls if every or k % 2 == (disable == "") else ():
            for result in SLEEPING if every == len(SLEEPING) else SLEEPING[(nth + k) % len(SLEEPING) :][:1]:
                rule = f"{name}:{nth}:{result}"
                got = walk(rule, disable, work=["sleeping"], rounds=2)
                if got["status"] != 0:
                    wrong.append(f"{rule}: the process ended with status {got['status']}")
                    continue
                inside |= {name} if fell_inside(got) else set()
                raised = [error for errors in got["rounds"] for error in errors]
                raising |= {name} if raised else set()
                allowed = CLASS_OF_RESULT.get(result, l0rt.L0Error).__name__
                wrong += [f"{rule}: {e['tree'][0]}: {e['text']}" for e in raised if e["tree"][0] != allowed]
                if result in LOST:
                    continue
                wrong += [f"{rule}: it still fails: {raised}"] if all(got["rounds"]) else []  # or in the last
                known = GIVEN_UP.get(name, ())
                grown = {kind: n for kind, n in got["live"].items() if n > clean["live"][kind] and kind not in known}
                wrong += [f"{rule}: leaked {grown}"] if grown else []
    assert not wrong, "\n".join(wrong)
    reached = set(called) if every else set(sorted(called)[disable == "" :: 2])
    timed = ("QueryStatus",) if every else ("QueryStatus", "Synchronize")  # how often it is waited depends on time
    reached -= {name for name in called if name.endswith(timed)}
    for name in sorted(reached - ELSEWHERE - inside):  # of some functions, the calls before the sleep depend on time
        first, _, last = called[name]
        tries = 3 * [f"{name}:{nth}:ERROR_UNKNOWN" for nth in range(max(first - 1, 1), last + 3)]
        if any(fell_inside(walk(rule, disable, work=["sleeping"], rounds=2)) for rule in tries):
            inside.add(name)
    assert inside >= reached - ELSEWHERE, "each failed while a pool fell asleep or woke"
    assert raising
