"""How a buffer ends: dropped while an exception is on its way, by a finaliser, freed behind its back, or never made."""

import gc
import warnings
import weakref

import l0rt
import l0rt.accelerator as acc
import pytest
from l0rt.runtime import watch
from l0rt.xpu import gpu_trace

from helpers.door import Door


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
        watch.remove("memory_deallocation", seen.append)
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


def test_a_buffer_whose_memory_was_freed_by_its_address_says_so():
    freed, dropped = l0rt.empty(3 << 20), l0rt.empty(3 << 20)
    for buffer in (freed, dropped):
        Door().free(buffer.ptr)
    with pytest.warns(ResourceWarning, match="freed already, by its address"):
        freed.free()
    del buffer
    with pytest.warns(ResourceWarning, match="freed already, by its address"):
        del dropped


def test_the_same_where_warnings_are_errors(monkeypatch):
    told = []
    monkeypatch.setattr("sys.unraisablehook", lambda failure: told.append(str(failure.exc_value)))
    buffer = l0rt.empty(3 << 20)
    Door().free(buffer.ptr)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del buffer
    assert len(told) == 1
    assert "freed already" in told[0]
