# SPDX-License-Identifier: Apache-2.0
"""Replays of a real trace, each trace in a process of its own: what is configured holds for the whole process."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import l0rt.accelerator as acc
import l0rt.bench.loops as loops
from l0rt import config, memory
from l0rt._base.paths import known_interpreter
from l0rt.bench import traces
from l0rt.errors import OutOfMemoryError

STEPS = 512  # the smallest limit is found in steps of 1/512 of the peak, up to twice the peak
TIGHT = 1.1  # a limit that an allocator has to work for: so many times the peak

# How memory comes: by name, the changes to the environment.
MODES = {
    "": {},  # as configured; by default from virtual memory where the driver has it
    "novm": {"L0RT_DISABLE": "vmm"},
    "torch": {"L0RT_ALLOC_CONF": "segments:torch"},
}


class Replays:
    """A trace, replayed in this process. Times are nanoseconds for ``n`` operations."""

    def __init__(self, name, scale):
        acc.current_device_index()
        self.trace = traces.load(name, scale)
        self.blocks = loops.Blocks(self.trace.slot_count)
        self.calls = {"first": 0, "again": 0}
        self.peak = 0

    def first(self, n):
        """From an empty cache."""
        self._empty()
        acc.reset_peak_memory_stats()
        return self._replay("first", n)

    def again(self, n):
        """Right after another."""
        return self._replay("again", n)

    def limited(self, n):
        """From an empty cache, with 1.1 times the trace's peak as the limit; None if that is too little."""
        return self._fitted(int(TIGHT * self.trace.peak), n)

    def facts(self):
        """What is known after replays: shares of the trace's peak, and driver calls."""
        return {"held": self.peak / self.trace.peak, "smallest": self._smallest(), "calls": self.calls}

    def _smallest(self):
        low, high = STEPS - 1, 2 * STEPS  # the first is too little; the second is tried last
        while high - low > 1:
            middle = (low + high) // 2
            fits = self._fitted(self.trace.peak * middle // STEPS, len(self.trace)) is not None
            low, high = (low, middle) if fits else (middle, high)
        return high / STEPS if high < 2 * STEPS else None

    def _fitted(self, limit, n):
        self._empty()
        memory.set_memory_limit(limit)
        try:
            return self._replay("limited", n)
        except OutOfMemoryError:
            return None
        finally:
            memory.set_memory_limit(None)

    def _empty(self):
        self.blocks.free()
        acc.empty_cache()

    def _replay(self, name, n):
        before = driver_calls()
        try:
            return self.blocks.replay(self.trace.ops, self.trace.slots, self.trace.sizes, n)
        finally:
            self.calls[name] = driver_calls() - before
            self.peak = max(self.peak, acc.max_memory_reserved()) if name != "limited" else self.peak
            self.blocks.free()


def driver_calls():
    """Return how often memory was taken from the driver or given back."""
    stats = acc.memory_stats()
    return stats.get("num_device_alloc", 0) + stats.get("num_device_free", 0)  # nothing before the first allocation


@contextmanager
def elsewhere(name, scale, mode=""):
    """Start a process that replays; give a function that has it do what a method of Replays does."""
    command = [known_interpreter(), "-c", program("replays"), name, str(scale)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(MODES[mode]),
        start_new_session=True,  # Ctrl-C ends the bench, which ends this child
    ) as child:
        questions, answers, complaints = child.stdin, child.stdout, child.stderr
        assert questions is not None
        assert answers is not None
        assert complaints is not None

        def ask(method, *arguments):
            try:
                questions.write(json.dumps([method, *arguments]) + "\n")
                questions.flush()
                answer = answers.readline()
            except BrokenPipeError:
                answer = ""
            if not answer:
                raise RuntimeError(f"the replaying process ended: {complaints.read().strip()[-300:]}")
            return json.loads(answer)

        try:
            yield ask
        except BaseException:
            child.kill()
            raise
        finally:
            child.communicate()


def environment(changes):
    """Return this process's environment with the driver that it uses and with ``changes``."""
    variables = {**os.environ, "L0RT_DRIVER": config.get("driver"), **changes}
    if "L0RT_DISABLE" in changes and os.environ.get("L0RT_DISABLE"):
        variables["L0RT_DISABLE"] = f"{os.environ['L0RT_DISABLE']},{changes['L0RT_DISABLE']}"
    return variables


def program(module):
    """Return what has a child serve, which imports what its parent did, whatever lies in the working folder."""
    return f"import sys; sys.path[:] = {sys.path}; from l0rt.bench.{module} import serve; serve()"


def serve():
    """Do what is asked on stdin, one line of JSON each, and answer on stdout."""
    replays = Replays(sys.argv[1], int(sys.argv[2]))
    for line in sys.stdin:
        method, *arguments = json.loads(line)
        print(json.dumps(getattr(replays, method)(*arguments)), flush=True)
