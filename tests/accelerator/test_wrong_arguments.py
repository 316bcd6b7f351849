# SPDX-License-Identifier: Apache-2.0
"""Whatever a public function is given, the answer is a result or an error that says what is wrong."""

import inspect

import l0rt
import l0rt.accelerator as acc
import l0rt.xpu as xpu
import numpy as np
import pytest
from l0rt import config, interface, memory, philox, sanitizer
from l0rt.interface import get_interface_for_device

MODULES = {"accelerator": acc, "xpu": xpu, "memory": memory, "config": config, "interface": interface}
TAKES_ADDRESSES = {"register_guard_impl", "get_stream_from_external"}  # what is there is the caller's word
ODD = [
    None, -1, -2, 2, 127, 1 << 31, 1 << 63, 1 << 70, -(1 << 70), 1.5, float("nan"), "", "x", "xpu:99", "xpu:-1", "cpu",
    "cpu:0", b"ab", [], {}, (1, 2), object(), object, {"a": 1}, {1: 2},
]  # fmt: skip
CLEAR = (TypeError, ValueError, IndexError, RuntimeError, NotImplementedError, OSError)
# Python's own words for what a function's body could not do with its argument.
VAGUE = ("an integer is required", "has no attribute", "is not iterable", "unsupported operand", "subscriptable",
         "not supported between", "has no len", "cannot unpack", "unhashable")  # fmt: skip


def functions():
    for module, place in MODULES.items():
        names = place.__all__ if hasattr(place, "__all__") else ["get", "effective", "set", "single", "patch"]
        for name in names:
            if callable(getattr(place, name)) and name not in TAKES_ADDRESSES:
                yield f"{module}.{name}", getattr(place, name)


def use(result):
    """Enter what is a block, which may be where it looks at what it was given."""
    if hasattr(result, "__enter__") and not isinstance(result, type):
        with result:
            pass


FUNCTIONS = dict(functions())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_odd_argument_gives_a_result_or_a_clear_error(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    function = FUNCTIONS[name]
    try:
        found = inspect.signature(function).parameters.values()
    except ValueError:
        pytest.skip("takes nothing, or says not what")
    places = [p for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = sum(p.default is p.empty for p in places)
    before = {path: setting.text for path, setting in config._SETTINGS.items()}
    complaints = []
    for place in range(len(places)):
        for value in ODD:
            given = [0] * place + [value] + [0] * (required - place - 1)
            try:
                result = function(*given)
                if name.endswith("push_stats_scope"):
                    memory.pop_stats_scope()
                use(result)
                if name.endswith("attach_oom_observer"):
                    result()  # detaches it again
                if name.endswith("caching_allocator_alloc"):
                    memory.caching_allocator_delete(result)
            except CLEAR as error:
                if any(words in str(error) for words in VAGUE):
                    complaints.append(f"{given!r}: {error}")
            except Exception as error:
                complaints.append(f"{given!r}: {type(error).__name__}: {error}")
            finally:
                acc.set_accelerator("xpu")
                acc.set_device_index(0)
                acc.set_stream(acc.default_stream(0))
                memory.enable_oom_snapshot(None)
                acc.set_sync_debug_mode(0)
                memory.set_memory_limit(None)
                memory.record_memory_history(None)
                for path, text in before.items():
                    config._SETTINGS[path].text = text
    assert complaints == []


def test_what_is_closed_says_so():
    buffer = l0rt.empty(64)
    buffer.free()
    for use_of in (buffer.fill, buffer.copy_to, buffer.copy_from):
        with pytest.raises((RuntimeError, ValueError), match=r"freed|free"):
            use_of(bytearray(64) if use_of != buffer.fill else 0)


@pytest.mark.parametrize("wrong", [None, 0, "xpu", object])
def test_a_guard_of_the_registry_wants_an_interface(wrong):
    with pytest.raises(TypeError, match="expected a DeviceInterface"):
        interface.DeviceGuard(wrong, 0)


def test_a_guard_of_the_registry_wants_an_index():
    with pytest.raises(TypeError, match="an index must be an int, got str"):
        interface.DeviceGuard(get_interface_for_device("xpu"), "xpu:1")


def test_a_guard_of_the_registry_is_left_only_after_it_was_entered():
    with pytest.raises(RuntimeError, match="not inside the guard"):
        interface.DeviceGuard(get_interface_for_device("xpu"), 0).__exit__(None, None, None)


@pytest.mark.parametrize("generator", [0, "xpu", object(), ()])
def test_random_numbers_want_a_generator(generator):
    with pytest.raises(TypeError, match="generator must be a Generator"):
        l0rt.empty(64).uniform_(generator=generator)


@pytest.mark.parametrize("number", [-1, 1 << 30, 1 << 63, -(1 << 70)])
def test_a_stream_that_there_is_not_is_told_by_its_number(number):
    with pytest.raises(ValueError, match=f"device 0 has no stream with the id {number}"):
        l0rt.Stream(stream_id=number, device_index=0)


@pytest.mark.parametrize("saved", [None, {}, (), (1, 2), "abc", [1, 2, 3]])
def test_a_generator_is_set_to_what_was_pickled(saved):
    with pytest.raises(TypeError, match="pickled Generator"):
        l0rt.Generator().__setstate__(saved)


@pytest.mark.parametrize("key", [None, 1, (1,), (1, 2, 3), "ab", (1.5, 2)])
def test_a_key_of_random_numbers_is_two_whole_numbers(key):
    with pytest.raises(TypeError, match="two whole numbers"):
        philox.philox4x32([[0, 0, 0, 0]], key)


def test_words_of_random_numbers_are_in_range_and_have_a_size():
    for counter, key in (([[1 << 32, 0, 0, 0]], (0, 0)), ([[0, 0, 0, 0]], (1 << 32, 0)), ([[0, 0, 0, 0]], (0, -1))):
        with pytest.raises(ValueError, match="must be from 0 to"):
            philox.philox4x32(counter, key)
    for seed in (-1, 1 << 64):
        with pytest.raises(ValueError, match="seed of a stream"):
            philox.words(seed, 0, 4)
    with pytest.raises(TypeError, match="is not supported here"):
        l0rt.empty(64).normal_(dtype="V0")
    assert philox.normal(0, 0, 4, mean=1e38, std=1e39, dtype="float32").dtype == "float32"  # and no warning


@pytest.mark.parametrize("memory", [None, "x", object()])
def test_the_sanitizer_is_told_of_buffers(memory):
    with pytest.raises(TypeError, match="takes a Buffer"):
        sanitizer.host_access(memory)


@pytest.mark.parametrize("index", [-1, -2])
def test_an_event_has_no_negative_device(index):
    with pytest.raises(IndexError, match="out of range"):
        l0rt.Event(index)


@pytest.mark.parametrize("index", [-1, -2, 1 << 30])
def test_memory_of_a_device_that_there_is_not_is_refused(index):
    array = np.zeros(8, "u1")
    for call in (
        lambda: l0rt.empty(64, device=index),
        lambda: l0rt.empty(64, device=index, kind="host"),
        lambda: l0rt.from_numpy(array, device=index),
        lambda: l0rt.pinned(64, device=index),
        lambda: l0rt.memory.caching_allocator_alloc(64, index),
        lambda: interface.get_allocator("xpu", index),
    ):
        with pytest.raises(IndexError, match="The device index is out of range"):
            call()


def test_a_report_of_what_is_stuck_takes_any_name_of_a_device():
    acc.synchronize()
    assert acc.stuck_report("xpu:0") == acc.stuck_report(0) == ""
    for wrong in (-1, 1 << 31, "xpu:99"):
        with pytest.raises(IndexError):
            acc.stuck_report(wrong)
