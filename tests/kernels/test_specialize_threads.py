# SPDX-License-Identifier: Apache-2.0
"""Specialised dispatch and threads: who builds a variant, who waits for it, and who gets its error."""

import signal
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import pytest
from l0rt.kernels import cache, compiler, specialized

from helpers.compilers import StandIn, forget
from helpers.process import run_python

BASIC = Path(__file__).with_name("basic.spv")
ADD = "kernel void add() {}\n"  # what the stand-in compiles, to add.spv


def always(*args):
    return True


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """A compiler that takes no time and counts, and an empty cache."""
    made = StandIn(tmp_path / "builds")
    monkeypatch.setattr(compiler, "COMPILERS", {"ocloc": made})
    monkeypatch.setenv("L0RT_CACHE_DIR", str(tmp_path / "cache"))
    forget()
    yield made
    forget()


def test_threads_that_need_the_same_variant_build_it_once(stand_in):
    inside, go = threading.Event(), threading.Event()
    stand_in.before = lambda: (inside.set(), go.wait())
    with l0rt.specialize(ADD, [(always, {"N": 1})]) as module, ThreadPoolExecutor(4) as pool:
        kernels = [pool.submit(module["add"].select)]
        inside.wait()
        kernels += [pool.submit(module["add"].select) for _ in range(3)]
        go.set()
        assert len({id(kernel.result()) for kernel in kernels}) == 1
        assert (stand_in.builds, module.cache_info().builds) == (1, 1)
        del kernels


def test_other_variants_need_not_wait(stand_in, monkeypatch):
    """Whatever their keys: here they begin alike."""
    digest = cache.digest
    monkeypatch.setattr(cache, "digest", lambda *parts: "00" + digest(*parts)[2:])
    inside, go = threading.Event(), threading.Event()

    def before():
        if not inside.is_set():
            inside.set()
            go.wait()

    stand_in.before = before
    with l0rt.specialize(ADD, [(lambda *args: bool(args), {"N": 1})]) as module, ThreadPoolExecutor(1) as pool:
        waits = pool.submit(module["add"].select, 1)
        inside.wait()
        other = threading.Thread(target=module["add"].select, daemon=True)
        other.start()
        other.join(60)
        waited, built = other.is_alive(), waits.done()
        go.set()
        waits.result()
    assert (waited, built) == (False, False)


def test_an_error_reaches_all_who_wait_and_may_be_tried_again(stand_in, hasty):
    inside, go = threading.Event(), threading.Event()

    def before():
        inside.set()
        go.wait()
        raise l0rt.ModuleBuildError("no luck", None, "its log")

    stand_in.before = before
    module = l0rt.specialize(ADD, [(always, {"N": 1})])
    arrived = threading.Semaphore(0)
    wait, waiters = specialized.Built._wait, 3

    def counted(self, key, other):
        arrived.release()
        return wait(self, key, other)

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(4) as pool:
        patch.setattr(specialized.Built, "_wait", counted)
        results = [pool.submit(module["add"].select)]
        inside.wait()
        results += [pool.submit(module["add"].select) for _ in range(waiters)]
        for _ in range(waiters):
            arrived.acquire()
        go.set()
        errors = [result.exception() for result in results]
    assert [str(error) for error in errors] == ["the variant N=1 (specialize_on[0]): no luck"] * 4
    assert {error.log for error in errors} == {"its log"}
    assert (stand_in.builds, module.cache_info().builds) == (1, 0)
    stand_in.before = lambda: None
    assert module["add"].select().name == "add"
    assert module.cache_info().builds == 1
    module.close()


def test_eight_threads_launch_all_variants_at_once(hasty):
    entries = [(lambda to, value, want=want: value % 4 == want, {1: want}) for want in range(3)]
    with l0rt.specialize(BASIC, entries) as module:
        start = threading.Barrier(8)

        def work(me):
            to = l0rt.empty(4)
            start.wait()
            for i in range(200):
                module["store"][1, 1](to, i)
            acc.synchronize()
            return to

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        info = module.cache_info()
        assert info.hits + info.misses == 8 * 200
        assert [one.hits + one.misses for one in info.variants] == [8 * 50] * 4
        assert info.builds == 4


def test_who_waits_may_be_interrupted_and_who_builds_too(stand_in):
    """Ctrl-C ends the wait or the build of the main thread. Others do not get it: they build themselves."""
    inside, go = threading.Event(), threading.Event()
    main = threading.main_thread().ident

    def before():
        if threading.get_ident() == main:
            inside.set()
            go.wait()
            raise KeyboardInterrupt

    stand_in.before = before
    wait = specialized.Built._wait
    with l0rt.specialize(ADD, []) as module, pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(1) as pool:
        patch.setattr(specialized.Built, "_wait", lambda *args: (go.set(), wait(*args)))
        waits = pool.submit(lambda: (inside.wait(), module["add"].select().name))
        with pytest.raises(KeyboardInterrupt):
            module["add"].select()
        assert waits.result()[1] == "add"
        assert module.cache_info().builds == 1


def test_ctrl_c_ends_a_wait(stand_in):
    inside, go = threading.Event(), threading.Event()
    stand_in.before = lambda: (inside.set(), go.wait())
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    wait = specialized.Built._wait
    try:
        with l0rt.specialize(ADD, []) as module, pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(1) as pool:
            patch.setattr(specialized.Built, "_wait", lambda *args: (signal.raise_signal(signal.SIGINT), wait(*args)))
            builds = pool.submit(module["add"].select)
            inside.wait()
            with pytest.raises(KeyboardInterrupt):
                module["add"].select()
            go.set()
            assert builds.result().name == "add"
            del builds
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_runs_during_a_build_cannot_wait_for_it(stand_in):
    with l0rt.specialize(ADD, []) as module:
        stand_in.log = "careful"
        kernel = module["add"]

        def tell(*args):
            kernel.select()

        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = tell
            with pytest.raises(RuntimeError, match="variant 0 is being built by this thread"):
                kernel.select()
        with pytest.warns(l0rt.ModuleBuildWarning) as caught:
            kernel.select()
        assert caught[0].filename == __file__


def test_a_module_that_is_closed_while_it_is_built(stand_in):
    inside, go = threading.Event(), threading.Event()
    stand_in.before = lambda: (inside.set(), go.wait())
    module = l0rt.specialize(ADD, [])
    with ThreadPoolExecutor(1) as pool:
        builds = pool.submit(module["add"].select)
        inside.wait()
        module.close()
        go.set()
        with pytest.raises(ValueError, match="the module was closed"):
            builds.result()


def test_a_forked_child_gets_the_error_of_every_child():
    code = f"""
import os, pathlib, threading, l0rt
from l0rt.kernels import specialized
module = l0rt.specialize(pathlib.Path({str(BASIC)!r}), [])
inside, go = threading.Event(), threading.Event()
made = specialized.Module
specialized.Module = lambda *args: (inside.set(), go.wait(), made(*args))[2]
thread = threading.Thread(target=module["store"].select)
thread.start()
inside.wait()                       # the child has no thread that would end this build
child = os.fork()
if child == 0:
    specialized.Module = made
    try:
        module["store"].select()
    except RuntimeError as error:
        os._exit(3 if "fork" in str(error) else 4)
    os._exit(5)
go.set()
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), module.cache_info().builds)
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu"})
    assert (result.returncode, result.stdout) == (0, "3 1\n"), result
