# SPDX-License-Identifier: Apache-2.0
"""Specialised dispatch: the right variant for each launch, built when it is needed, and what is refused."""

import gc
import pickle
import weakref
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt import config
from l0rt.kernels import compiler, specialized

from helpers import compilers
from helpers.compilers import StandIn, forget

HERE = Path(__file__).parent
BASIC = HERE / "basic.spv"
STORE = "kernel void store(global float *to, uint n) { for (uint i = 0; i < n; i++) to[i] = VALUE; }\n"
ADD = "kernel void add() {}\n"  # what the stand-in compiles, to add.spv


@pytest.fixture(params=["ocloc", "zig"])
def kind(request):
    if request.param not in compilers.INSTALLED:
        pytest.skip(f"{request.param} is not installed: {compiler.COMPILERS[request.param].PACKAGE}")
    with config.patch({"compiler": request.param}):
        yield request.param


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """A compiler that takes no time and counts, and an empty cache."""
    made = StandIn(tmp_path / "builds")
    monkeypatch.setattr(compiler, "COMPILERS", {"ocloc": made})
    monkeypatch.setenv("L0RT_CACHE_DIR", str(tmp_path / "cache"))
    forget()
    yield made
    forget()


@pytest.fixture
def modules(monkeypatch):
    """The arguments of every build of SPIR-V, in order."""
    built, module = [], specialized.Module
    monkeypatch.setattr(specialized, "Module", lambda *args: built.append(args[1:]) or module(*args))
    return built


def constants_of(module):
    """Return what the kernel ``constants`` writes: the constants 1 and 2."""
    out = l0rt.empty(8).fill(0)
    module["constants"][1, 1](out)
    acc.synchronize()
    return out.numpy("f4", 2).tolist()


def by_flag(*specialize_on, source=BASIC, **options):
    """Make a module of basic.spv; a predicate is a function of what ``flag["now"]`` is."""
    flag = {"now": None}
    entries = [(lambda *args, want=want: flag["now"] == want, facts) for want, facts in specialize_on]
    return l0rt.specialize(source, entries, **options), flag


def never(*args):
    return False


def always(*args):
    return True


# The right variant.


@pytest.mark.checks_data
def test_macros_and_constants_of_a_source_are_facts(kind):
    source = "float __attribute__((overloadable)) __spirv_SpecConstant(int id, float value);\n" + STORE
    entries = [
        (lambda to, n: n == 1, {"VALUE": 7}),
        (lambda to, n: n == 2, {"VALUE": "__spirv_SpecConstant(3, 0.5f)", 3: 2.5}),
        (lambda to, n: n == 3, {"VALUE": np.float32(0.1), "options": "-cl-fast-relaxed-math"}),
        (lambda to, n: n == 4, {"options": "-DVALUE=-4"}),
        (lambda to, n: n == 5, {"VALUE": -3}),
        (lambda to, n: n == 6, {"VALUE": True, "ONE": 2}),
        (lambda to, n: n == 7, {"VALUE": "(1 + 2) * 4"}),
    ]
    with l0rt.specialize(source, entries, "-D ONE=1") as module:
        with pytest.raises(l0rt.ModuleBuildError, match=r"^<source> does not compile(.|\n)*VALUE"):
            module["store"][1, 1](l0rt.empty(4), 0)  # the generic one: nothing says what VALUE is
        for n, value in enumerate([7, 2.5, np.float32(0.1), -4, -3, 1, 12], 1):
            to = l0rt.empty(4 * n).fill(0)
            module["store"][1, 1](to, n)
            assert to.numpy("f4", n).tolist() == [value] * n
        assert module.cache_info().builds == 7


@pytest.mark.checks_data
def test_constants_of_spirv_are_facts_without_a_compiler(monkeypatch):
    monkeypatch.setattr(compiler, "COMPILERS", {})
    code = BASIC.read_bytes()
    facts = (1, {1: 20}), (2, {2: 1.5}), (3, {1: -5, 2: np.float32(4)})
    for source in (BASIC, code, bytearray(code), memoryview(code)):
        module, flag = by_flag(*facts, source=source, constants={1: 30})
        found = {}
        for flag["now"] in (3, 2, 1, None, 1, 2, 3):
            found[flag["now"]] = constants_of(module)
        assert found == {1: [20, 0.5], 2: [30, 1.5], 3: [-5, 4], None: [30, 0.5]}
        assert module.cache_info() == (3, 4, 4, ((1, 1, 1), (1, 1, 1), (1, 1, 1), (0, 1, 1)))
        module.close()


@pytest.mark.checks_data
def test_the_first_predicate_that_matches_wins():
    asked = []

    def says(name, answer):
        return lambda *args: asked.append(name) or answer

    entries = [(says("a", False), {1: 1}), (says("b", np.True_), {1: 2}), (says("c", True), {1: 3})]
    with l0rt.specialize(BASIC, entries) as module:
        assert constants_of(module)[0] == 2
        assert asked == ["a", "b"]
        assert module.cache_info().builds == 1


def test_predicates_get_the_arguments_of_the_launch():
    seen = []
    with l0rt.specialize(BASIC, [(lambda *args: seen.append(args) or False, {})]) as module:
        to, stream = l0rt.empty(4), acc.Stream()
        module["store"][1, 1](to, 5)
        stream.wait_stream(acc.current_stream())
        module["store"].launch(to, 6, global_size=1, stream=stream)
        assert module["store"].select(to, 7).name == "store"
        assert [args[1] for args in seen] == [5, 6, 7]
        assert all(args[0] is to for args in seen)
        acc.synchronize()


def test_nothing_to_specialize_on_is_the_generic_variant():
    with l0rt.specialize(BASIC, []) as module:
        module["store"][1, 1](l0rt.empty(4), 1)
        assert module.cache_info() == (0, 1, 1, ((0, 1, 1),))
        acc.synchronize()


# Built once.


def test_a_variant_is_built_at_its_first_launch_and_once(modules):
    module, flag = by_flag((1, {1: 20}), (2, {1: 30}))
    to = l0rt.empty(4)
    store = module["store"]
    assert modules == []
    for _ in range(3):
        for flag["now"] in (2, None, 2):
            store[1, 1](to, 1)
            store.launch(to, 1, groups=1, group_size=1)
            store.select(to, 1)
    assert [constants for _, _, constants in modules] == [{1: 30}, None]
    assert module.cache_info() == (16, 2, 2, ((0, 0, 0), (11, 1, 1), (5, 1, 1)))
    acc.synchronize()
    module.close()


def test_prebuild_builds_all(modules):
    module, flag = by_flag((1, {1: 20}), (2, {1: 30}))
    assert module.prebuild() is module
    assert module.prebuild("xpu:0") is module
    assert [constants for _, _, constants in modules] == [{1: 20}, {1: 30}, None]
    for flag["now"] in (1, 2, None):
        module["store"][1, 1](l0rt.empty(4), 1)
    assert module.cache_info() == (3, 0, 3, ((1, 0, 1), (1, 0, 1), (1, 0, 1)))
    acc.synchronize()
    module.close()


def test_variants_of_a_source_are_compiled_once_for_all_modules(stand_in):
    for builds in (2, 2):
        with l0rt.specialize(ADD, [(always, {"N": 1})]) as module:
            assert "add" in module.prebuild()
        assert stand_in.builds == builds


@pytest.mark.needs_two_devices
def test_each_device_has_its_own(modules):
    module, flag = by_flag((1, {1: 20}))
    assert module.device is None
    flag["now"] = 1
    for index in (0, 1):
        with acc.device_index(index):
            to, stream = l0rt.empty(4), acc.Stream()
            module["store"][1, 1](to, 1)
            assert module["store"].select(to, 1).device.index == index
        module["store"][1, 1, stream](to, 1)
        module["store"].launch(to, 1, groups=1, stream=stream)
        assert module["store"].select(to, 1, device=index).device.index == index
        acc.synchronize(index)
    assert [index for index, _, _ in modules] == [0, 1]
    module.prebuild(1)
    assert [index for index, _, _ in modules] == [0, 1, 1]
    assert module.cache_info().variants == ((4, 2, 2), (0, 0, 1))
    module.close()


@pytest.mark.needs_two_devices
def test_a_module_for_one_device_stays_there():
    with l0rt.specialize(BASIC, [], device="xpu:1") as module:
        assert module.device == l0rt.device("xpu", 1)
        assert module["store"].select().device.index == 1
        for call in (lambda: module.prebuild(0), lambda: module["store"].select(device=0)):
            with pytest.raises(ValueError, match="the module is for xpu:1, got 0"):
                call()
        for call in (
            lambda stream: module["store"][1, 1, stream](None, 1),
            lambda stream: module["store"].launch(None, 1, groups=1, stream=stream),
        ):
            with pytest.raises(ValueError, match="stream"):
                call(acc.Stream(0))
        with acc.device_index(0):
            assert module.prebuild() is module
        assert module.cache_info().builds == 1
    with pytest.raises(IndexError):
        l0rt.specialize(BASIC, [], device=99)


# What predicates and builds may do.


def test_what_a_predicate_raises_reaches_the_launch_and_nothing_is_built(modules):
    class Odd(Exception):
        pass

    def raises(*args):
        raise Odd

    with l0rt.specialize(BASIC, [(raises, {})]) as module:
        for call in (
            lambda: module["store"][1, 1](l0rt.empty(4), 1),
            lambda: module["store"].launch(l0rt.empty(4), 1, groups=1),
            lambda: module["store"].select(),
        ):
            with pytest.raises(Odd):
                call()
        assert modules == []
        assert module.cache_info()[:3] == (0, 0, 0)


@pytest.mark.parametrize("value", [None, 1, 0, "yes", [], np.int32(1), np.ones(2, bool)])
def test_a_predicate_returns_a_bool(value):
    told = rf"the predicate of specialize_on\[1\] must return a bool, got {type(value).__name__}"
    with l0rt.specialize(BASIC, [(never, {}), (lambda *args: value, {})]) as module:
        for call in (
            lambda: module["store"][1, 1](l0rt.empty(4), 1),
            lambda: module["store"].launch(l0rt.empty(4), 1, groups=1),
        ):
            with pytest.raises(TypeError, match=told):
                call()


@pytest.mark.checks_data
def test_a_predicate_may_launch_and_one_without_end_is_a_recursion_error():
    with l0rt.specialize(BASIC, [(lambda to, value: launch(to, value), {1: 5})]) as module:

        def launch(to, value):
            if value != 0:
                module["store"][1, 1](to, value - 1)
            return value == 3

        to = l0rt.empty(4).fill(0)
        module["store"][1, 1](to, 3)
        assert to.numpy("i4", 1) == 3
        assert module.cache_info().builds == 2
        with pytest.raises(RecursionError):
            module["store"][1, 1](to, -1)
        module["store"][1, 1](to, 3)
        acc.synchronize()


# The end.


def test_a_closed_module_launches_nothing(modules):
    module, flag = by_flag((1, {1: 1}))
    store, to = module["store"], l0rt.empty(4)
    bound = store[1, 1]
    bound(to, 1)
    acc.synchronize()
    module.close()
    module.close()
    assert module.closed
    assert repr(module) == "<l0rt.SpecializedModule closed>"
    for flag["now"] in (None, 1):
        for call in (
            lambda: bound(to, 1),
            lambda: store[1, 1](to, 1),
            lambda: store.launch(to, 1, groups=1),
            lambda: module["store"],
            module.prebuild,
            lambda: module.kernels,
            module.__enter__,
        ):
            with pytest.raises(ValueError, match="the module was closed"):
                call()
    assert len(modules) == 1


def test_a_kernel_keeps_what_it_needs_and_nothing_is_a_cycle():
    module, _ = by_flag()
    there = weakref.ref(module)
    store, to = module["store"], l0rt.empty(4)
    gc.disable()
    try:
        store[1, 1](to, 1)
        del module
        assert there() is None
        store[1, 1](to, 2)
        acc.synchronize()
    finally:
        gc.enable()


# What is refused.


def test_it_is_a_module(modules):
    with l0rt.specialize(BASIC, [(never, {1: 1})]) as module:
        assert repr(module) == "<l0rt.SpecializedModule: 0 built of 2 variants for each device>"
        assert "store" in module
        assert "none" not in module
        assert 3 not in module
        assert set(module) == set(module.kernels)
        assert len(module) == len(module.kernels)
        assert module["store"] is module["store"]
        assert repr(module["store"]) == "<l0rt.SpecializedKernel store>"
        assert len(modules) == 1
        with pytest.raises(TypeError, match="a kernel's name must be a str, got int"):
            module[3]
        with pytest.raises(KeyError, match="the module has no kernel 'none': it has"):
            module["none"][1, 1]()
        with pytest.raises(TypeError, match=r"a launch needs its sizes: store\[groups, group_size\]"):
            module["store"](1)
        for thing in (module, module["store"]):
            with pytest.raises(TypeError, match="cannot be pickled"):
                pickle.dumps(thing)
        with pytest.raises(TypeError, match=r"module\[name\]"):
            l0rt.kernels.SpecializedKernel()
        to = l0rt.empty(4)
        with pytest.raises(TypeError, match=r"store\(\) takes 2 arguments, got 1"):
            module["store"][1, 1](to)
        with pytest.raises(TypeError, match=r"a launch takes kernel\[groups, group_size\]"):
            module["store"][1](to, 1)
        with pytest.raises(TypeError, match="a stream must be a Stream, got int"):
            module["store"][1, 1, 7](to, 1)
        with pytest.raises(ValueError, match="groups= or global_size="):
            module["store"].launch(to, 1)


@pytest.mark.parametrize(
    ("args", "error", "why"),
    [
        ((BASIC, None), TypeError, r"specialize_on must be a list of \(predicate, facts\), got NoneType"),
        ((BASIC, {}), TypeError, "got dict"),
        ((BASIC, "ab"), TypeError, "got str"),
        ((BASIC, [never]), TypeError, r"specialize_on\[0\] must be \(predicate, facts\), got function"),
        ((BASIC, [(never,)]), TypeError, r"specialize_on\[0\] must be \(predicate, facts\)"),
        ((BASIC, [(never, {}), (1, {})]), TypeError, r"predicate of specialize_on\[1\] must be callable, got int"),
        ((BASIC, [(never, [1])]), TypeError, r"facts of specialize_on\[0\] must be a dict, got list"),
        ((BASIC, [(never, {"N": 1})]), ValueError, "'N' is a macro, and SPIR-V has none any more"),
        ((BASIC, [(never, {99: 1})]), ValueError, r"no specialisation constant 99: it has \[1, 2"),
        ((BASIC, [(never, {1.5: 1})]), TypeError, "a key that is no macro's name must be an int, got float"),
        ((BASIC, [(never, {True: 1})]), TypeError, "must be an int, got bool"),
        ((BASIC, [(never, {"options": 1})]), TypeError, "options must be a str, got int"),
        ((BASIC, [], 3), TypeError, "options must be a str, got int"),
        ((ADD, [(never, {"A B": 1})]), ValueError, "a macro's name must be one of C, got 'A B'"),
        ((ADD, [(never, {"N": [1]})]), TypeError, "N, unless it is a str or a float, must be an int, got list"),
        ((ADD, [(never, {"N": float("nan")})]), ValueError, "N must be finite or a text .*, got nan"),
        ((ADD, [(never, {"options": "-o x"})]), ValueError, "'-o' is none"),
        ((ADD, [(never, {"options": "'"})]), ValueError, "No closing quotation"),
        (("", []), ValueError, "source is empty"),
        ((None, []), TypeError, "source must be a str or bytes, got NoneType"),
        ((str(BASIC), []), ValueError, "for a file give"),
        ((HERE / "none.cl", []), FileNotFoundError, "none.cl"),
        ((b"\x7fELF\2\1\1" + bytes(64), []), ValueError, "a native binary cannot be specialised"),
        ((BASIC.read_bytes()[:90], []), l0rt.ModuleBuildError, "word"),
    ],
)
def test_what_makes_no_module(args, error, why):
    with pytest.raises(error, match=why):
        l0rt.specialize(*args)


def test_further_things_that_make_no_module():
    for options in ({"include_dirs": ["."]}, {"headers": {"a.h": ""}}):
        with pytest.raises(ValueError, match="SPIR-V takes no include_dirs and no headers"):
            l0rt.specialize(BASIC, [], **options)
    with pytest.raises(TypeError, match="constants must be a dict of SpecId to value, got list"):
        l0rt.specialize(BASIC, [], constants=[1])
    with pytest.raises(FileNotFoundError, match="'/no/such' is no folder"):
        l0rt.specialize(ADD, [], include_dirs=["/no/such"])
    with pytest.raises(TypeError, match="headers must be a dict"):
        l0rt.specialize(ADD, [], headers=["a.h"])


def test_a_value_that_does_not_fit_is_told_by_its_launch():
    module, flag = by_flag((1, {1: 1 << 40}))
    flag["now"] = 1
    for _ in range(2):
        with pytest.raises(ValueError, match=f"constant 1 must be from {-(1 << 31)}"):
            module["store"][1, 1](l0rt.empty(4), 1)
    assert module.cache_info().builds == 0


@pytest.mark.checks_data
def test_facts_and_sources_that_change_afterwards_change_nothing():
    facts, code = {1: 4}, bytearray(BASIC.read_bytes())
    with l0rt.specialize(code, [(always, facts)]) as module:
        facts[1] = 5
        code[:] = bytes(len(code))
        assert constants_of(module)[0] == 4


@pytest.mark.checks_data
def test_files_and_headers(kind, tmp_path):
    (tmp_path / "k.cl").write_text(f'#include "beside.h"\n#include <value.h>\n{STORE}')
    (tmp_path / "beside.h").write_text("")
    with l0rt.specialize(
        tmp_path / "k.cl", [(lambda to, n: n == 1, {"M": 3})], headers={"value.h": "#define VALUE 2 + M\n"}
    ) as module:
        to = l0rt.empty(4).fill(0)
        module["store"][1, 1](to, 1)
        assert to.numpy("f4", 1) == 5
        with pytest.raises(l0rt.ModuleBuildError, match=f"^{tmp_path}/k.cl does not compile"):
            module.prebuild()
