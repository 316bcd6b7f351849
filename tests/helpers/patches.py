# SPDX-License-Identifier: Apache-2.0
"""Lines of l0rt itself that are changed, each with the test that must find it out.

PATCHES are those that keep it out of a known trap; WALKS are for long random walks, of which CI runs a part, and for
the sanitizers.

A copy of the source tree is built with one change at a time, and the copy's tests run on that build.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

import pytest

from helpers import races
from helpers.process import run
from helpers.rings import LOADER, installed
from helpers.source import ROOT

COPIED = ("l0rt", "include", "tests", "bench/traces", "setup.py", "pyproject.toml", "README.md", "LICENSE")
DRIVER_TESTS = "tests/cpu_driver"
RACES = "process/test_races.py"


@dataclass(frozen=True)
class Patch:
    trap: int | str
    file: str
    old: str  # stands in the file once
    new: str
    test: str  # a file below tests/, or a program of the CPU driver's tests
    which: str = ""  # of its tests, as pytest's -k; of RACES: which program
    needs: str = ""  # a library without which the test is skipped
    flavour: str = "plain"  # of the CPU driver's tests: a sanitizer

    def __str__(self):
        return f"{self.trap}-{self.file.rpartition('/')[2]}"

    def complaint(self):
        """Return what is wrong with this row; None if the line is where it should be."""
        count = (ROOT / self.file).read_text().count(self.old)
        return None if count == 1 and self.old != self.new else f"{self}: {count} times in {self.file}: {self.old}"

    def skip_unless_possible(self):
        if self.needs and not installed(self.needs):
            pytest.skip(f"{self.needs} is not installed")


class Tree:
    """A copy of the source tree, in which what is built is built again only where it was changed."""

    def __init__(self, folder):
        self.root = folder
        ignore = shutil.ignore_patterns("__pycache__")
        made = subprocess.check_output([sys.executable, "-c", "import setup; print(setup.BUILD)"], cwd=ROOT, text=True)
        for name in (*COPIED, made.strip()):
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, ignore=ignore)
            elif (ROOT / name).exists():
                shutil.copy2(ROOT / name, folder / name)
        self.made = folder / made.strip()

    def build(self):
        """Build what has changed; return the folder that has the package."""
        done = run([sys.executable, "setup.py", "-q", "build"], cwd=self.root, timeout=1800)
        assert done.returncode == 0, done
        return next(self.made.glob("lib*"))

    def outcome(self, patch):
        """Return whether the test fails where the lines are changed as ``patch`` says, and what it says."""
        file = self.root / patch.file
        text = file.read_text()
        assert text.count(patch.old) == 1, patch
        file.write_text(text.replace(patch.old, patch.new))
        try:
            if patch.test.startswith(DRIVER_TESTS):
                return self.of_driver(patch)
            return self.of_races(patch) if patch.test == RACES else self.of_package(patch)
        finally:
            file.write_text(text)

    def of_driver(self, patch):
        """Run a program that is linked with the CPU driver."""
        folder, name = (self.root / patch.test).parent, patch.test.rpartition("/")[2].removesuffix(".c")
        program = f"build/{patch.flavour}/{name}"
        made = run(["make", "-C", folder, f"FLAVOUR={patch.flavour}", program], {"MAKEFLAGS": None}, timeout=1800)
        assert made.returncode == 0, made
        result = run([folder / program], {"TSAN_OPTIONS": f"suppressions={folder / 'tsan.supp'}"}, timeout=120)
        return result.returncode != 0 and not result.timed_out, result

    def of_races(self, patch):
        """Run a program of test_races.py five times: a race that only some runs report would prove little."""
        folder = races.build(self.root / "tsan", self.root)
        for _ in range(5):
            result = races.check(folder, patch.which)
            if "WARNING: ThreadSanitizer: data race" not in result.stderr:
                return False, result
        return True, result

    def of_package(self, patch):
        """Run tests of the package."""
        return failure(self.root, patch.test, patch.which, {"BREAK_PATH": self.build()})


def failure(root, file, which, env):
    """Return whether one of the tests fails, or ends its pytest by a crash; and what that says. To hang is neither."""
    tests = root / "tests"
    program = os.path.join(os.path.dirname(sys.executable), "pytest")
    config = ["-c", root / "pyproject.toml", "--rootdir", root]
    short = {"L0RT_TEST_ALL": None, "L0RT_TEST_SOAK": None, "CI": "true"}  # one failure is enough, and CI finds it
    command = [program, "-q", "-x", "--reruns=0", "-p", "no:cacheprovider", *config, "-k", which, tests / file]
    result = run(command, {**short, "PYTHONPATH": env.get("BREAK_PATH"), **env}, timeout=600)
    return "1 failed" in result.stdout or (result.returncode < 0 and not result.timed_out), result


PATCHES = (
    Patch(1, "l0rt/core/driver.pyx", "if ze.zelLoaderTranslateHandle == NULL:", "if False:",
          "process/test_drivers.py", "optional_function and zelLoaderTranslateHandle"),
    Patch(3, "l0rt/core/driver.pyx", "CHECK(ze.zelLoaderTranslateHandle(ZEL_HANDLE_DRIVER, self._h, &own))",
          "own = self._h", "process/test_drivers.py", "two_drivers", needs=LOADER),
    Patch(6, "l0rt/runtime/current/event.pyx", "if not (self.query() and end.query()):", "if False:",
          "process/test_held_up.py", "time_of_an_event"),
    Patch(8, "l0rt/runtime/streams/event_pool.pyx",
          "        if slot_is_over(slot, True):\n            if slot_clear",
          "        if True:\n            if slot_clear",
          "process/test_held_up.py", "event_that_was_dropped and pool"),
    Patch(10, "l0rt/runtime/current/event.pyx",
          "    if slot == NULL:\n        return 0\n    slot_retain(slot)",
          '    if slot == NULL:\n        raise RuntimeError("not recorded")\n    slot_retain(slot)',
          "runtime/test_events.py", "never_recorded"),
    Patch(11, "l0rt/core/memory.pyx",
          "if r == ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY or r == ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY or", "if",
          "runtime/test_traps.py", "trap_11 and Resident"),
    Patch(11, "l0rt/runtime/memory/operations.pyx",
          "code == ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY or code == ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY",
          "code == ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", "runtime/test_traps.py", "trap_11 and HOST_MEMORY"),
    Patch(12, "l0rt/runtime/alloc/heap.pyx", "if nbytes > <size_t>1 << 62:", "if False:",
          "runtime/test_traps.py", "trap_12"),
    Patch(15, "l0rt/runtime/alloc/expandable_segment.pyx",
          "heap.ops.physical_mem_destroy(heap.self, physical.physical, physical.count * heap.granule)", "pass",
          "runtime/test_traps.py", "trap_15 and zeVirtualMemMap"),
    Patch(16, "l0rt/runtime/alloc/heap.pyx", "if block.ptr != ptr: ", "if False: ",
          "runtime/test_traps.py", "trap_16"),
    Patch(19, "l0rt/runtime/memory/operations.pyx", "DROP_LATER(result, call)", "DROP(result, call)",
          "runtime/test_traps.py", "trap_19"),
    Patch(20, "l0rt/runtime/alloc/stats.pyx", "return slack // busy + (slack % busy if is_eager else 0)",
          "return slack", "runtime/test_allocator_model.py", "peaks_follow"),
    Patch(21, "l0rt/runtime/lazy.pyx", "    _forked = True\n", "    _forked = False\n",
          "process/test_lifecycle.py", "fork_after_use"),
    Patch(22, "l0rt/runtime/lazy.pyx", "drained = [closer() for phase, closer in ordered if phase == DRAIN]",
          "drained = []", "process/test_callbacks.py", "run_at_exit"),
    Patch(22, "l0rt/runtime/lazy.pyx", "key=lambda entry: entry[0])", "key=lambda entry: -entry[0])",
          "process/test_lifecycle.py", "before_those_that_it_uses"),
    Patch(22, "l0rt/runtime/lazy.pyx", "and False not in drained:", "and True:",
          "process/test_lifecycle.py", "that_a_hung_device_uses"),
    Patch(22, "l0rt/runtime/lazy.pyx", "if threading.active_count() == 1 and", "if",
          "process/test_lifecycle.py", "that_a_daemon_thread_may_use"),
    Patch(22, "l0rt/runtime/lazy.pyx", "(<LazyInit>lazy).state = CLOSED", "pass",
          "process/test_lifecycle.py", "use_after_shutdown"),
    Patch(22, "l0rt/runtime/streams/wait.pyx", "while not table.alive and not table.forked:", "while False:",
          "process/test_lifecycle.py", "hung_device_and_a_daemon_thread"),
    Patch(24, "l0rt/runtime/streams/wait.pyx", "        PyErr_CheckSignals()\n", "        pass\n",
          "process/test_lifecycle.py", "control_c"),
    Patch(25, "l0rt/runtime/memory/transfer.pyx", "with nogil:\n        queue_fill(", "if True:\n        queue_fill(",
          "process/test_traps.py", "append_that_blocks and Fill"),
    Patch(27, "l0rt/runtime/streams/copy.pyx", "if pattern_size <= piece:", "if True:",
          "process/test_traps.py", "short_patterns"),
    Patch(28, "l0rt/runtime/streams/copy.pyx", "cdef ze_result_t r\n    if dst == src:",
          "cdef ze_result_t r\n    if False:", "runtime/test_traps.py", "trap_28"),
    Patch(29, "l0rt/runtime/streams/handle.py", "if len(rest) != own.size:", "if False:",
          "runtime/test_held_streams.py", "shared_events_are_recorded"),
    Patch(29, "l0rt/cpu_driver/memory/share.c", "return seals >= 0 && (seals & SEALS) == SEALS &&",
          "return seals >= 0 &&", f"{DRIVER_TESTS}/test_shared.c"),
    Patch(30, "l0rt/ze/affinity.py", 'if hierarchy != "COMPOSITE":', 'if hierarchy == "FLAT":',
          "core/test_facts.py", "mask_and_hierarchy"),
    Patch(31, "l0rt/core/sysman.pyx", "free < size else None", "free <= size else None",
          "core/test_facts.py", "all_memory_free"),
    Patch(32, "l0rt/core/sysman.pyx", 'if legacy == "1":', "if False:", "core/test_facts.py", "zesinit"),
    Patch(33, "l0rt/runtime/alloc/heap.pyx",
          "            ranges_release(heap, arena, UINT64_MAX)\n            ranges_trim(heap, arena)\n",
          "            ranges_release(heap, arena, UINT64_MAX)\n", "runtime/test_traps.py", "trap_33"),
    Patch(34, "l0rt/runtime/streams/event_pool.pyx",
          "        mutex_lock(&cache.lock)\n        slot = cache.free\n        if slot != NULL:\n"
          "            cache.free = slot.next\n        mutex_unlock(&cache.lock)\n",
          "        slot = cache.free\n        if slot != NULL:\n            cache.free = slot.next\n",
          RACES, "events"),
    Patch(35, "l0rt/cpu_driver/lists/launch.c", "launch->arguments[i] = values + kernel->places[i];",
          "launch->arguments[i] = (char *)kernel->values + kernel->places[i];", f"{DRIVER_TESTS}/test_launches.c"),
    Patch(37, "l0rt/runtime/streams/devices.pyx", "        if old != new:\n", "        if False:\n",
          "process/test_workers.py", "variable_that_changes"),
    Patch(38, "l0rt/core/memory.pyx", "r = ze.zeContextMakeMemoryResident(context, device, out[0], nbytes)",
          "r = ZE_RESULT_SUCCESS", "runtime/test_traps.py", "trap_38"),
)  # fmt: skip

WALKS = (
    Patch("walk", "l0rt/runtime/streams/capture.pyx", "= slot.branch, <uint32_t>slot.seq", "= slot.branch, 0",
          "graphs/test_programs.py", "replays_equal"),
    Patch("walk", "l0rt/graphs/executable.pyx", "if set.now == self.recording.now:", "if True:",
          "graphs/test_update.py", "random_changes"),
    Patch("walk", "l0rt/runtime/streams/queue.pyx", "    return wait_untold(stream, count, slots)", "    return 0",
          "runtime/test_random_programs.py", "test_programs_equal"),
    Patch("walk", "l0rt/runtime/alloc/deferred_free.pyx", "elif stream != block_order(block):", "elif False:",
          "runtime/test_stream_order.py", "chaos_finds_no_reuse"),
    Patch("walk", "l0rt/runtime/alloc/deferred_free.pyx", "elif stream != block_order(block):", "elif False:",
          "runtime/test_allocator_machine.py"),
    Patch("walk", "l0rt/runtime/memory/transfer.pyx",
          "            turn ^= 1\n    finally:\n        chunk_close(&chunks[0])\n        chunk_close(&chunks[1])\n",
          "            turn ^= 1\n        chunk_close(&chunks[1])\n    finally:\n        chunk_close(&chunks[0])\n",
          "process/test_fault_walk.py", "staged_copy"),
    Patch("walk", "l0rt/cpu_driver/spirv/ir/cheapen.c", "bits != 0 && (bits & (bits - 1)) == 0", "bits != 0",
          f"{DRIVER_TESTS}/test_spirv_random.c"),
    Patch("walk", "l0rt/cpu_driver/spirv/run/mathematics.c",
          "sin(M_PI * (0.5 - r)) : -cos", "sin(M_PI * (0.5 - r)) : cos",
          f"{DRIVER_TESTS}/test_spirv_accuracy.c"),
    Patch("walk", "l0rt/cpu_driver/spirv/decode/module.c",
          "if (id >= m->bound) REFUSE", "if (id > m->bound << 4) REFUSE",
          f"{DRIVER_TESTS}/test_spirv_damage.c"),
    Patch("asan", "l0rt/cpu_driver/modules/kernel.c",
          "memcpy(kernel->values + kernel->places[index], value, argument->size);",
          "memcpy(kernel->values + kernel->places[index], value, argument->size + 1);",
          f"{DRIVER_TESTS}/test_launches.c", flavour="asan"),
    Patch("asan", "l0rt/cpu_driver/modules/kernel.c",
          "  CPU_REFUSE_IF(size != argument->size && !is_widened(argument, size, value), "
          "ERROR_INVALID_KERNEL_ARGUMENT_SIZE);\n"
          "  if (value == NULL) memset(kernel->values + kernel->places[index], 0, argument->size);\n",
          "  if (value == NULL) memset(kernel->values + kernel->places[index], 0, size);\n",
          f"{DRIVER_TESTS}/test_fuzz.c", flavour="asan"),
    Patch("tsan", "l0rt/cpu_driver/base/object.c",
          "  pthread_mutex_lock(&lock);\n  if (free_count++ == 0) {", "  if (free_count++ == 0) {",
          f"{DRIVER_TESTS}/test_threads.c", flavour="tsan"),
)  # fmt: skip
