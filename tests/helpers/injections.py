# SPDX-License-Identifier: Apache-2.0
"""Exceptions of signal handlers at every point of a program where Python may run one.

CPython runs handlers where a function of Python begins, and where a loop turns, but not, for one, between the body of a
``with`` and its end. Compiled code has no such points, but calls Python's: the tracer sees each of these calls. Those
that an event loop makes are asked for by name, since the loop may also lose a call that it has taken.
"""

import asyncio
import gc
import sys


class Stop(Exception):
    """What the handler raises. An event loop tells its exception handler, and goes on."""


class Interrupt(KeyboardInterrupt):
    """As Stop. An event loop lets it pass."""


class Injector:
    """Raises in the call of Python's code that has the number ``at``; ``raised`` is what it has raised."""

    def __init__(self, at, kind=Stop):
        self.at, self.kind, self.points, self.raised = at, kind, 0, None

    def trace(self, frame, event, arg):
        if event == "call" and self.raised is None:
            self.point()

    def point(self):
        self.points += 1
        if self.points > self.at and self.raised is None:
            self.raised = self.kind(f"at point {self.at}")
            raise self.raised

    def run(self, program):
        """Return what the program returns or raises; what arrives of the injected exception is that itself."""
        before, at_collections = sys.gettrace(), gc.callbacks[:]
        gc.callbacks.clear()  # they lose the exception, and are not the program's: Hypothesis has one
        sys.settrace(self.trace)
        try:
            return program()
        except BaseException as error:
            return error.with_traceback(None)  # whose frames keep the program's objects
        finally:
            sys.settrace(before)
            gc.callbacks[:] = at_collections


def wrong_programs(programs, most):
    """Run each program with an exception at each point, ``most`` points at the most, and return what is wrong.

    A program returns what it should, or the injected exception arrives as it is. Then it works again.
    """
    wrong = {}
    for name, program in programs.items():
        expected = program()
        for at in range(most):
            injector = Injector(at)
            found = injector.run(program)
            if injector.raised is None:
                break
            if found is not injector.raised:
                wrong[name, at] = f"{found!r} instead of {injector.raised!r}"
            elif (again := program()) != expected:
                wrong[name, at] = f"afterwards {again!r} instead of {expected!r}"
    return wrong


class Loop(asyncio.SelectorEventLoop):
    """An event loop in which an exception may come wherever the loop takes, has taken or makes a call of l0rt's."""

    def __init__(self, injector):
        super().__init__()
        self.injector = injector
        self.set_exception_handler(lambda loop, context: None)

    def of_l0rt(self, callback):
        return type(getattr(callback, "__self__", None)).__module__.startswith("l0rt")

    def made(self, callback):
        def call(*args):
            self.injector.point()
            callback(*args)
            self.injector.point()

        return call

    def call_soon(self, callback, *args, context=None):
        if not self.of_l0rt(callback):
            return super().call_soon(callback, *args, context=context)
        self.injector.point()
        handle = super().call_soon(self.made(callback), *args, context=context)
        self.injector.point()
        return handle

    def call_later(self, delay, callback, *args, context=None):
        if not self.of_l0rt(callback):
            return super().call_later(delay, callback, *args, context=context)
        self.injector.point()
        handle = super().call_later(delay, self.made(callback), *args, context=context)
        self.injector.point()
        return handle
