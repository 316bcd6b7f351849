# SPDX-License-Identifier: Apache-2.0
"""The lab: the device that the bench measures on, opened once, and the bare driver's objects next to it."""

import warnings
from functools import cached_property

import l0rt.accelerator as acc
import l0rt.bench.loops as loops
from l0rt.runtime.memory.device import memory_policy
from l0rt.runtime.streams import devices


class Lab:
    """The current device, its properties, and a list and events of its driver's own."""

    EVENTS = 1024

    def __init__(self):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="no GPU", category=UserWarning)  # a report's head says so
            self.index = acc.current_device_index()
        self.properties = devices.properties(self.index)
        self.capabilities = devices.capabilities(self.index)
        self.memory_kind = memory_policy(self.index)["kind"]
        self.context, self.device = loops.core_objects(self.index)

    @cached_property
    def list(self):
        return loops.open_list(self.context, self.device)

    @cached_property
    def events(self):
        return loops.open_events(self.context, self.EVENTS)

    @property
    def memory(self):
        """The bytes of the device's memory."""
        return self.properties["total_memory"]

    def close(self):
        """Destroy what was opened on the bare driver."""
        for name in ("list", "events"):
            if name in self.__dict__:
                self.__dict__.pop(name).close()


class Gated:
    """A stream that takes commands and executes none while it is shut: the host's time is measured alone then, without
    the wake-up of the device that a command may cost. It is open while others measure, whose engine it may share."""

    def __init__(self, lab, stream):
        self.stream = stream
        self.gate = loops.Gate(lab.context)

    def __enter__(self):
        self.stream.__enter__()
        return self

    def shut(self):
        """Hold up what comes next."""
        self.gate.shut(self.stream.native_handle)

    def open(self):
        """Let it go on, and wait."""
        self.gate.open()
        self.stream.synchronize()

    def around(self, loop):
        """Return a loop that is held up, and executed after it, which is not timed."""

        def held_up(n):
            self.shut()
            try:
                return loop(n)
            finally:
                self.open()

        return held_up

    def __exit__(self, *error):
        self.open()
        self.stream.__exit__(*error)
