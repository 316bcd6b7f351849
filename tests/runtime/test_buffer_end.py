# SPDX-License-Identifier: Apache-2.0
"""How a buffer ends: dropped while an exception is on its way, by a finaliser, by a callback, by another thread."""

import gc
import pickle
import threading
import weakref
from contextlib import contextmanager

import l0rt
import l0rt.accelerator as acc
import pytest
from l0rt.runtime.streams import hooks
from l0rt.xpu import gpu_trace

KINDS = ["device", "host", "shared"]


@contextmanager
def watched(name, callback):
    """Call ``callback`` without arguments at every ``name``."""

    def call(*values):
        callback()

    hooks.add(name, call)
    try:
        yield
    finally:
        hooks.remove(name, call)


def refusals(function, told):
    """Return a callback that calls ``function`` and notes how it was refused; None: it was not."""

    def call():
        try:
            function()
            told.append(None)
        except (ValueError, BufferError) as error:
            told.append(str(error))

    return call


@pytest.mark.parametrize("is_watched", [False, True])
@pytest.mark.parametrize("kind", ["device", "host", "shared"])
def test_an_exception_goes_on_past_the_end_of_a_buffer(kind, is_watched):
    def used():
        buffer = l0rt.empty(4096, kind=kind)
        buffer.record_stream(acc.Stream())
        return buffer

    seen = []
    if is_watched:
        gpu_trace.register_callback_for_memory_deallocation(seen.append)
    for make in (lambda: l0rt.empty(4096, kind=kind), used):
        with pytest.raises(ZeroDivisionError):
            [make(), 1 // 0]        # what is in the list ends while the error is on its way
    if is_watched:
        hooks.remove("memory_deallocation", seen.append)
    assert len(seen) == 2 * is_watched


def test_weak_references_see_the_end_of_a_buffer():
    seen = []
    buffer = l0rt.empty(4096)
    reference = weakref.ref(buffer, seen.append)
    del buffer
    assert reference() is None
    assert seen == [reference]


def test_a_buffer_that_was_never_allocated_says_so():
    buffer = l0rt.Buffer.__new__(l0rt.Buffer)
    assert repr(buffer) == "<l0rt.Buffer never allocated>"
    for name in ("ptr", "device"):
        with pytest.raises(ValueError, match="never allocated"):
            getattr(buffer, name)


def test_finalisers_allocate_copy_and_free_whenever_they_run():
    """A garbage collection may start inside any call; what it finalises uses the same streams and allocators."""

    class Careless:
        def __init__(self):
            self.itself = self
            self.buffer = l0rt.empty(3 << 20)
            self.buffer.record_stream(acc.Stream())

        def __del__(self):
            l0rt.empty(5 << 20).fill(1, stream=acc.Stream())
            l0rt.Event().record()
            self.buffer.copy_from(bytes(3 << 20))
            self.buffer.free()

    threshold = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for i in range(60):
            Careless()
            l0rt.empty((i + 1) << 20).fill(0, stream=acc.Stream())
            l0rt.empty(1 << 20, kind="host")
    finally:
        gc.set_threshold(*threshold)
    acc.synchronize()


@pytest.mark.parametrize("kind", KINDS)
def test_a_callback_of_the_free_finds_the_buffer_freed(kind):
    buffer, told = l0rt.empty(4096, kind=kind), []
    with watched("memory_deallocation", refusals(buffer.free, told)):
        buffer.free()
    assert told == ["the buffer was freed"]
    first, second = l0rt.empty(4096, kind=kind), l0rt.empty(4096, kind=kind)
    assert first.ptr != second.ptr


@pytest.mark.parametrize("name", ["memory_use", "memory_deallocation"])
def test_a_callback_of_a_free_for_a_stream_finds_the_buffer_freed(name):
    buffer, told = l0rt.empty(4096), []
    with watched(name, refusals(buffer.free, told)):
        buffer.free(stream=acc.Stream())
    assert told == ["the buffer was freed"]
    first, second = l0rt.empty(4096), l0rt.empty(4096)
    assert first.ptr != second.ptr


@pytest.mark.parametrize("kind", KINDS)
def test_callbacks_of_the_end_of_a_buffer_do_not_see_it_and_may_allocate(kind):
    before, seen = acc.memory_allocated(), []
    buffer = l0rt.empty(4096, kind=kind)
    reference = weakref.ref(buffer)

    def look():
        seen.append(reference())
        if len(seen) < 5:
            l0rt.empty(4096).fill(1)

    with watched("memory_deallocation", look):
        del buffer
    assert seen == [None] * 5
    assert acc.memory_allocated() == before


@pytest.mark.parametrize("kind", ["host", "shared"])
def test_who_is_told_of_a_view_cannot_free_what_it_looks_at(kind):
    buffer, told = l0rt.empty(4096, kind=kind), []
    with watched("host_access", refusals(buffer.free, told)):
        view = memoryview(buffer)
    assert len(told) == 1
    assert "in use by a memoryview" in told[0]
    view[0] = 7
    view.release()
    buffer.free()


CALLS = {
    "fill": lambda x, s: x.fill(1, stream=s),
    "copy_from a buffer": lambda x, s: x.copy_from(l0rt.empty(x.nbytes), stream=s),
    "copy_to a buffer": lambda x, s: x.copy_to(l0rt.empty(x.nbytes, kind="host"), stream=s),
    "copy_from bytes": lambda x, s: x.copy_from(bytes(x.nbytes), stream=s),
    "copy_from pinned memory": lambda x, s: x.copy_from(memoryview(l0rt.empty(x.nbytes, kind="host")), stream=s),
    "copy_to an array": lambda x, s: x.copy_to(bytearray(x.nbytes), stream=s),
    "randint_": lambda x, s: x.randint_(0, 9, stream=s),
    "record_stream": lambda x, s: x.record_stream(s),
    "record_use": lambda x, s: x.record_use(s),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", CALLS)
def test_a_callback_cannot_free_what_a_call_works_on(call, kind):
    buffer, told, stream = l0rt.empty(4096, kind=kind), [], acc.Stream()
    for name in ("memory_use", "copy", "fill", "event_record"):
        with watched(name, refusals(buffer.free, told)):
            CALLS[call](buffer, stream)
    assert told or kind == "shared"     # nobody is told of its use: the driver waits for who uses it
    assert all("a call that has not returned" in text for text in told)
    assert buffer.ptr
    buffer.free()


def test_arguments_that_free_the_buffer_find_it_freed():
    """What runs code of others comes before the memory is looked at."""

    class Number:
        def __index__(self):
            buffer.free()
            return 3

    class Numbers:
        def philox_engine_inputs(self, count):
            buffer.free()
            return 1, 0

    class Exporter:
        def __init__(self, nbytes):
            self.nbytes = nbytes

        def __buffer__(self, flags):    # asked from Python 3.12 on
            buffer.free()
            return memoryview(bytearray(self.nbytes))

    for call in (
        lambda x: x.fill(Number()),
        lambda x: x.randint_(0, 9, generator=Numbers()),
        lambda x: x.copy_from(Exporter(64)),
        lambda x: x.copy_to(Exporter(64)),
        lambda x: x.fill(pattern=Exporter(16)),
    ):
        buffer = l0rt.empty(64)
        with pytest.raises((ValueError, TypeError), match="was freed|the buffer protocol, not Exporter"):
            call(buffer)


def test_a_failed_free_for_a_stream_leaves_the_buffer_as_it_was():
    buffer = l0rt.empty(4096)
    with pytest.raises(TypeError):
        buffer.free(stream=3)
    buffer.fill(1)
    buffer.free()


@pytest.mark.parametrize("kind", KINDS)
def test_threads_free_what_others_work_on(kind, hasty):
    """Each round ends with the memory given back once, whoever came first."""
    acc.synchronize()
    before, streams, unexpected, rounds = acc.memory_allocated(), [acc.Stream(), acc.Stream()], [], 300
    place, gate = [None], threading.Barrier(3)

    def attempt(function, buffer):
        try:
            function(buffer)
        except (ValueError, BufferError) as error:
            if "was freed" not in str(error) and "in use by" not in str(error):
                unexpected.append(error)

    def work(calls):
        for i in range(rounds):
            gate.wait()
            attempt(calls[i % len(calls)], place[0])
            gate.wait()

    uses = [lambda x, call=call: call(x, streams[0]) for call in CALLS.values()]
    frees = [lambda x: x.free(), lambda x: x.free(stream=streams[1]), lambda x: (x.record_use(streams[1]), x.free())]
    threads = [threading.Thread(target=work, args=(calls,)) for calls in (uses, frees)]
    for thread in threads:
        thread.start()
    for _ in range(rounds):
        place[0] = l0rt.empty(4096, kind=kind)
        gate.wait()
        gate.wait()
        place[0] = None
    for thread in threads:
        thread.join()
    assert unexpected == []
    acc.synchronize()
    acc.empty_cache()
    assert acc.memory_allocated() == before
    held = [l0rt.empty(4096, kind=kind) for _ in range(64)]
    assert len({buffer.ptr for buffer in held}) == 64


def test_memory_that_frees_the_buffer_while_it_is_asked_finds_it_freed():
    """A view of a buffer tells callbacks, inside the call that wants the view."""
    host = pickle.PickleBuffer(l0rt.empty(4096, kind="host"))
    for options in ({}, {"kind": "shared"}, {"device": "cpu"}):
        for name in ("copy_from", "copy_to"):
            buffer = l0rt.empty(4096, **options)
            with watched("host_access", buffer.free), pytest.raises(ValueError, match="was freed"):
                getattr(buffer, name)(host)


def test_a_stream_of_another_type_that_frees_the_buffer_does_not_free_it_twice():
    class Stream:
        stream_id, device_type = 0, "cpu"

        @property
        def device_index(self):
            buffer.free()
            return 0

    for call in (lambda x: x.free(stream=Stream()), lambda x: x.copy_from(bytes(64), stream=Stream()),
                 lambda x: x.record_stream(Stream()), lambda x: x.fill(1, stream=Stream())):  # fmt: skip
        buffer = l0rt.empty(64, device="cpu")
        with pytest.raises((ValueError, BufferError), match="was freed|has not returned"):
            call(buffer)
