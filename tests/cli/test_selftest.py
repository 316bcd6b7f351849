# SPDX-License-Identifier: Apache-2.0
"""`l0rt selftest` answers its questions whatever the driver does, ends in time, and tells nothing private."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from l0rt.selftest import examination, page
from l0rt.selftest.child import ASK
from l0rt.selftest.questions import BY_ID, GROUPS, QUESTIONS, Answer
from l0rt.ze import quirks, tuning

from helpers.cli import l0rt
from helpers.process import run_python
from helpers.rings import RINGS

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": None, "L0RT_CPU_PROFILE": None}
OPENING = 30  # seconds that a busy machine may take to start and end processes
STATES = {"works", "fails", "lacking", "present", "absent", "measured", "untestable"}


def selftest(*words, env=None, seconds=5, timeout=120):
    """Run the self-test; return its exit status, its report, and the seconds that it took."""
    start = time.monotonic()
    result = l0rt("selftest", *words, "--seconds", str(seconds), "--json", "-", env={**CPU, **(env or {})},
                  timeout=timeout)  # fmt: skip
    spent = time.monotonic() - start
    assert "Traceback" not in result.stderr, result
    return result.returncode, json.loads(result.stdout), spent


def states(found, *wanted):
    return sorted(id for id, answer in found["answers"].items() if answer["state"] in wanted)


def test_every_question_is_answered_by_somebody():
    assert len(BY_ID) == len(QUESTIONS)
    assert {question.group for question in QUESTIONS} == set(GROUPS)
    assert {question.id for question in QUESTIONS if not question.untestable} == set(ASK)
    assert sorted(int(id[1:]) for id in BY_ID if id[0] == "T") == list(range(1, 41))
    assert sorted(int(id[1:]) for id in BY_ID if id[0] == "M") == list(range(1, 11))


def test_every_row_of_the_quirks_has_a_question():
    assert {quirk.name for quirk in quirks.QUIRKS} <= {question.name for question in QUESTIONS}


def test_each_question_says_how_it_is_answered_and_why():
    for question in QUESTIONS:
        assert question.text.endswith("?"), question
        assert question.how, question
        assert question.source, question


@pytest.mark.parametrize("devices", [1, 2])
def test_the_plain_cpu_driver_has_no_quirk(devices):
    status, found, _ = selftest("quirks", env={"L0RT_CPU_DEVICES": devices}, seconds=15)
    assert states(found, "present", "fails") == []
    assert (status, found["problems"]) == (0, [])
    assert len(states(found, "absent")) >= 5, found["answers"]


PLANTED = ("racing_maps", "outlasting_waits", "peer_counters", "raw_memory_handles", "unjoined_captures",
           "racing_queries", "single_device_imports", "cached_imports", "unflushed_counters", "no_vm_bind",
           "untyped_mappings", "raw_event_handles", "early_graphs", "listed_symbols", "fatal_enqueues",
           "unordered_lists", "uncounted_signals")  # fmt: skip
CHAOS = {"unordered_lists": {"L0RT_CPU_CHAOS": 1}}  # commands that may pass each other do


def test_every_planted_quirk_is_found(extent):
    assert {*PLANTED, "fast_link"} == {quirk.name for quirk in quirks.QUIRKS}
    for name in PLANTED[: extent(3, len(PLANTED))]:
        env = {"L0RT_CPU_DEVICES": 2, "L0RT_CPU_QUIRKS": name, **CHAOS.get(name, {})}
        for _ in range(3):  # races are looked for for a second, and the machine may be busy
            status, found, _ = selftest(name, env=env, seconds=8)
            (answer,) = found["answers"].values()
            if answer["state"] == "present":
                break
        assert (status, answer["state"], answer["by"]) == (1, "present", "test"), found


def test_planted_quirks_of_a_device_are_found_with_its_latencies_too():
    env = {"L0RT_CPU_PROFILE": "arc-b580,neo-25.18,timing", "L0RT_CPU_DEVICES": 2}
    _, found, _ = selftest("untyped_mappings", "raw_event_handles", "single_device_imports", env=env, seconds=15)
    assert states(found, "present") == ["Q3", "Q4", "Q8"]


TRAPS = {  # what makes each answer "present": a part of the program that is put before the question
    "T3": """
devices.library.loader_version = lambda: "1.28"
ask = ground.driver.ask
def answers(name, *args):
    if name == "zeDriverGetExtensionFunctionAddress":
        args[2]._obj.value = ctypes.cast(refuses, ctypes.c_void_p).value
        return 0
    return ask(name, *args)
refuses = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(lambda *args: 0x78000005)
ground.driver.ask = answers
ground.driver.do = lambda *args: None
""",
    "T16": """
freed = traps_of_memory.memory.caching_allocator_delete
traps_of_memory.memory.caching_allocator_delete = lambda p: freed(p) if p % (1 << 20) else None
""",
    "T36": """
made = ground.driver.list
def few(**options):
    few.count += 1
    if few.count > 500:
        raise child.Refused("zeCommandListCreateImmediate", 0x70000002)
    return made(**options)
few.count, ground.driver.list = 0, few
""",
}


@pytest.mark.parametrize("id", TRAPS)
def test_a_trap_that_is_there_is_told(id):
    code = """
import ctypes, time
from l0rt.selftest import child, traps_of_memory
from l0rt.selftest.ground import Ground
from l0rt.selftest.questions import BY_ID
from l0rt.runtime.streams import devices
ground = Ground(0)
def told(id):
    ground.ends = time.monotonic() + 20
    print(child.answer(ground, BY_ID[id]).state)
"""
    result = run_python(f"{code}\ntold({id!r})\n{TRAPS[id]}\ntold({id!r})", CPU)
    assert (result.returncode, result.stderr) == (0, ""), result
    assert result.stdout.split() == ["untestable" if id == "T3" else "absent", "present"]


def test_it_works_on_the_plain_cpu_driver():
    for seconds in (5, 15, 60):  # a busy machine asks less in its time
        status, found, _ = selftest("C1", "C5", "C9", "T7", "T16", "T24", "C13", "M1", seconds=seconds)
        assert (status, states(found, "present", "fails")) == (0, [])
        if len(states(found, "untestable")) <= 2:
            break
    assert len(states(found, "untestable")) <= 2, found["answers"]


def test_the_json_has_its_form():
    _, found, _ = selftest("M1", "Q3", "T34", seconds=10)
    assert found["report"] == "l0rt selftest"
    assert found["format"] == tuning.FORMAT
    assert found["identity"] == {"vendor_id": 0, "device_id": 0, "build": 0, "kernel_driver": None}
    assert set(found["answers"]) == {"M1", "Q3", "T34"}
    for answer in found["answers"].values():
        assert set(answer) == {"state", "detail", "by", "figures"}
        assert answer["state"] in STATES
        assert answer["by"] in {"test", "rule"}
    assert found["answers"]["T34"]["state"] == "untestable"
    assert {"l0rt", "python", "system", "parameters", "problems", "facts", "error", "interrupted", "provoke", "seconds",
            "spent"} <= set(found)  # fmt: skip


def test_the_page_and_the_json_have_nothing_private(tmp_path):
    file = tmp_path / "report.json"
    env = {**CPU, "USER": "annabel", "HOME": str(tmp_path), "L0RT_CPU_FAIL": "zeMemAllocHost:1:ERROR_UNKNOWN"}
    result = l0rt("selftest", "Q3", "C3", "M1", "--seconds", "8", "--json", file, env=env)
    assert "To paste into a report" in result.stdout, result
    for text in (result.stdout, file.read_text()):
        assert not re.search(rf"\b{re.escape(socket.gethostname())}\b", text)
        assert "annabel" not in text
        assert str(tmp_path) not in text
        assert str(Path.cwd()) not in text
        assert not re.search(r"(?<![\w.:])/(home|tmp|work|root|usr|opt|proc|dev)\b", text)
        assert "uuid" not in text.lower()
        assert not re.search(r"\b[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b", text)  # a PCI address


def test_private_words_are_scrubbed(monkeypatch):
    monkeypatch.setenv("USER", "annabel")
    told = examination.scrubbed(f"annabel at {socket.gethostname()} opened /home/annabel/l0rt/x.so, see https://a.b/c/d")
    assert told == "<name> at <name> opened <path>, see https://a.b/c/d"


def test_it_ends_in_time_under_chaos_and_finds_nothing(extent):
    seconds = extent(7, 60, 120)
    status, found, spent = selftest(env={"L0RT_CPU_CHAOS": 3}, seconds=seconds, timeout=300)
    assert spent < seconds + OPENING
    assert found["spent"] < seconds + 3
    assert (status, states(found, "present", "fails")) == (0, []), found["problems"]


@pytest.mark.parametrize(
    "fault",
    [
        "zeCommandListAppendMemoryCopy:1:hang",
        "zeCommandListAppendMemoryFill:1:ERROR_DEVICE_LOST",
        "zeMemAllocDevice:1:ERROR_OUT_OF_DEVICE_MEMORY",
    ],
)
def test_it_ends_in_time_under_faults(fault):
    status, found, spent = selftest("quirks", "capabilities", env={"L0RT_CPU_FAIL": fault}, seconds=3)
    assert spent < 3 + OPENING
    assert found["spent"] < 6
    assert status in (0, 1)
    assert status == bool(found["problems"] or found["error"])
    assert set(found["answers"]) == {q.id for q in QUESTIONS if q.group in ("quirks", "capabilities")}


def test_a_fault_is_an_answer():
    status, found, _ = selftest("C5", env={"L0RT_CPU_FAIL": "zeCommandListAppendMemoryCopy:2:ERROR_UNKNOWN"}, seconds=8)
    assert (status, found["answers"]["C5"]["state"]) == (1, "fails"), found
    assert "UNKNOWN" in found["answers"]["C5"]["detail"]


def test_intels_driver_without_hardware_answers_little():
    ring = next(ring for ring in RINGS if ring.name == "intel")
    if missing := ring.missing():
        pytest.skip(f"not installed: {', '.join(missing)}")
    status, found, spent = selftest(env={**ring.environment(""), "L0RT_TEST_RING": None}, seconds=6)
    assert spent < 6 + OPENING
    assert (status, found["error"]) == (0, None), found["problems"]
    assert found["answers"]["Q2"] == {**found["answers"]["Q2"], "state": "present", "by": "rule"}
    assert len(states(found, "untestable")) > len(QUESTIONS) / 2
    assert states(found, "works") == []


def broken_library(folder, start):
    """Compile a library that does this when it is opened."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    head = "#include <stdlib.h>\n#include <unistd.h>\n"
    source = f"{head}__attribute__((constructor)) static void start(void) {{ {start} }}"
    path = folder / "driver.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", path], input=source, text=True, check=True)
    return path


@pytest.mark.parametrize(
    ("start", "says"), [("abort();", "ended its process by SIGABRT"), ("sleep(60);", "was not open after")]
)
def test_a_driver_that_does_not_open_is_told(tmp_path, start, says):
    status, found, spent = selftest("Q3", env={"L0RT_DRIVER": broken_library(tmp_path, start)}, seconds=3)
    assert status == 1
    assert says in found["error"]
    assert found["answers"]["Q3"]["state"] == "untestable"
    assert spent < 3 + OPENING


def test_what_ends_a_child_ends_one_question_only(monkeypatch):
    """The child is a real one, but for a question that kills it."""
    code = (
        "import os; import l0rt.selftest.child as child; "
        "child.ASK['Q3'] = lambda ground: os.abort(); child.main(sys.argv[1])"
    )
    popen = subprocess.Popen
    monkeypatch.setattr(
        examination.subprocess, "Popen",
        lambda args, **options: popen([args[0], "-c", args[2].rpartition("; from l0rt")[0] + "; " + code, args[3]],
                                      **options),
    )  # fmt: skip
    monkeypatch.setenv("L0RT_DRIVER", "cpu")
    found = examination.Examination(["Q1", "Q3", "Q7"], 25, False, 0).run().report()
    assert found["answers"]["Q3"]["state"] == "present"
    assert "SIGABRT" in found["answers"]["Q3"]["detail"]
    assert [found["answers"][id]["state"] for id in ("Q1", "Q7")] == ["absent", "absent"]


def test_control_c_ends_it_with_what_is_known(tmp_path):
    args = [sys.executable, "-m", "l0rt", "selftest", "Q1", "programs", "--seconds", "90", "--json", "-"]
    environment = {name: value for name, value in {**os.environ, **CPU}.items() if value is not None}
    child = subprocess.Popen(args, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True)  # fmt: skip
    try:
        for line in child.stderr:
            if line.startswith("Random programs"):
                break
        child.send_signal(signal.SIGINT)
        start = time.monotonic()
        out, complaints = child.communicate(timeout=20)
        assert time.monotonic() - start < 10  # a second on a machine that is not busy
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 130, complaints
    assert "Traceback" not in complaints
    found = json.loads(out)
    assert found["interrupted"] is True
    assert found["answers"]["Q1"]["state"] == "absent"
    assert found["answers"]["C14"] == {"state": "untestable", "detail": "interrupted", "by": "test", "figures": {}}


def test_a_child_does_not_outlive_its_parent(tmp_path):
    args = [sys.executable, "-m", "l0rt", "selftest", "programs", "--seconds", "60"]
    environment = {name: value for name, value in {**os.environ, **CPU}.items() if value is not None}
    parent = subprocess.Popen(args, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    children: list = []
    try:
        until = time.monotonic() + 30
        while not children and time.monotonic() < until:
            children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        parent.kill()
        parent.communicate(timeout=20)
    finally:
        parent.kill()
        parent.wait()
    assert children
    until = time.monotonic() + 20
    while time.monotonic() < until and any(alive(pid) for pid in children):
        time.sleep(0.05)
    assert not any(alive(pid) for pid in children)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def found_of(**answers):
    facts = {"mended": [], "is_software": False, "capabilities": {"vmm": True, "cb_events": True}}
    return {"facts": facts, "error": None, "answers": {id: vars(answer) for id, answer in answers.items()}}


def test_answers_become_parameters():
    events = {f"{what}_{kind}": cost for kind, cost in (("plain_host", 2.0), ("counter_host", 0.1))
              for what in ("record", "query", "wait")}  # fmt: skip
    found = found_of(
        M2=Answer("measured", figures={"create_2MiB_idle": 8.0, "map_2MiB_idle": 90.0}),
        M6=Answer("measured", figures=events),
        Q3=Answer("present"),
        Q4=Answer("present", by="rule"),
    )
    assert page.parameters(found) == {
        "quirks": {"untyped_mappings": True},
        "events": "cb",
        "expandable_segments": True,
        "range_growth_mb": 8,
    }
    found["answers"]["M5"] = vars(Answer("measured", figures={"copy_1": 3.0, "copy_2": 450.0, "copy_32": 453.0}))
    assert page.parameters(found)["stream_pool_size"] == 2
    found["facts"]["compute_queues"] = 4
    assert page.parameters(found)["stream_pool_size"] == 4
    found["answers"]["M5"]["figures"]["copy_32"] = 20.0  # as on i915: an append costs as much
    assert "stream_pool_size" not in page.parameters(found)
    found["answers"]["M2"]["figures"]["map_2MiB_idle"] = 1.0  # no bind is as quick as that
    assert page.parameters(found)["expandable_segments"] is False


def test_what_l0rt_copes_with_is_no_problem():
    answers = {
        "Q3": Answer("present"),  # nobody mends it
        "Q4": Answer("present"),
        "T1": Answer("present"),  # the driver's, and there are fallbacks
        "T7": Answer("present"),  # l0rt's
        "C1": Answer("fails"),
    }
    found = found_of(**answers)
    found["facts"]["mended"] = ["raw_event_handles"]
    assert examination.problems(found) == ["Q3", "T7", "C1"]


def test_the_page_of_the_docs_lists_every_question():
    text = (Path(__file__).parents[2] / "docs/selftest.md").read_text().partition("## The questions")[2]
    rows = [f"| {q.id} | {q.text} | {q.untestable or q.how} | {q.source} |" for q in QUESTIONS]
    assert re.findall(r"^\| [CQTM]\d+ .*$", text, re.MULTILINE) == rows
