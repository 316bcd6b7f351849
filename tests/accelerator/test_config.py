# SPDX-License-Identifier: Apache-2.0
"""Settings: a tree in which "none" inherits, and the page that lists every node."""

import contextlib
import os
import re

import l0rt
import pytest
from l0rt import config, memory
from l0rt.interface import DeviceInterface, register_interface_for_device

from helpers.process import run_python
from helpers.source import ROOT

PAGE = (ROOT / "docs/settings.md").read_text()
ROWS = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.splitlines() if line.startswith("| `")]


@pytest.fixture(autouse=True)
def settings_come_back():
    before = {path: setting.text for path, setting in config._SETTINGS.items()}
    yield
    for path, text in before.items():
        config._SETTINGS[path].text = text


def test_none_inherits_by_looking_up():
    leaf = "xpu.matmul.fp32_precision"
    assert config.effective(leaf) == "none"
    config.set("fp32_precision", "tf32")
    assert (config.get(leaf), config.effective(leaf)) == ("none", "tf32")
    config.set("xpu.fp32_precision", "bf16")
    assert (config.get(leaf), config.effective(leaf)) == ("none", "bf16")
    assert config.effective("fp32_precision") == "tf32"
    config.set("xpu.fp32_precision", "none")
    assert config.effective(leaf) == "tf32"


def test_what_was_set_stays_whatever_happens_above():
    config.set("xpu.conv.fp32_precision", "ieee")
    for above in ("tf32", "bf16", "none"):
        config.set("xpu.fp32_precision", above)
        assert config.get("xpu.conv.fp32_precision") == config.effective("xpu.conv.fp32_precision") == "ieee"
    config.set("xpu.conv.fp32_precision", None)
    config.set("fp32_precision", "tf32")
    assert config.effective("xpu.conv.fp32_precision") == "tf32"


def test_a_device_types_allocator_inherits_from_every_types():
    config.set("allocator.max_split_size_mb", 64)
    assert config.effective("xpu.allocator.max_split_size_mb") == 64
    config.set("xpu.allocator.max_split_size_mb", "128")
    assert config.effective("xpu.allocator.max_split_size_mb") == 128
    assert config.effective("allocator.max_split_size_mb") == 64


def test_single_gives_one_value_or_says_why_there_is_none():
    assert config.single("fp32_precision") == "none"
    config.set("fp32_precision", "tf32")
    assert config.single("fp32_precision") == config.single("xpu.fp32_precision") == "tf32"
    config.set("xpu.conv.fp32_precision", "ieee")
    for name in ("fp32_precision", "xpu.fp32_precision"):
        with pytest.raises(RuntimeError, match=r"no single value: .*xpu.conv.fp32_precision = ieee.*docs/settings.md"):
            config.single(name)
    assert config.single("xpu.conv.fp32_precision") == "ieee"
    assert config.single("xpu.matmul.fp32_precision") == "tf32"
    assert (ROOT / config.PAGE).exists()


def test_patch_restores_on_any_exit_and_sets_all_or_nothing():
    config.set("fp32_precision", "tf32")
    with contextlib.suppress(KeyError), config.patch({"fp32_precision": "ieee", "xpu.wait_policy": "spin"}):
        assert config.effective("xpu.rnn.fp32_precision") == "ieee"
        raise KeyError
    assert (config.get("fp32_precision"), config.get("xpu.wait_policy")) == ("tf32", "none")
    wrong = config.patch({"fp32_precision": "ieee", "wait_policy": "x"})
    with pytest.raises(ValueError, match="expected one of"), wrong:
        pass
    assert config.get("fp32_precision") == "tf32"


@pytest.mark.parametrize(
    ("path", "value", "error"),
    [
        ("fp32_precision", "fp8", ValueError),
        ("fp32_precision", "TF32", ValueError),
        ("xpu.allocator.max_split_size_mb", 19, ValueError),
        ("allocator.garbage_collection_threshold", 1.5, ValueError),
        ("allocator.garbage_collection_threshold", "nan", ValueError),
        ("fp32_precision", True, TypeError),
        ("fp32_precision", ["tf32"], TypeError),
    ],
)
def test_a_wrong_value_is_refused_and_changes_nothing(path, value, error):
    with pytest.raises(error, match=path):
        config.set(path, value)
    assert config.get(path) == "none"


@pytest.mark.parametrize("path", ["xpu.matmul", "fp32precision", "xpu..fp32_precision", "a.fp32_precision", None, ""])
@pytest.mark.parametrize("ask", [config.get, config.effective, config.single, lambda path: config.set(path, "none")])
def test_an_unknown_path_lists_the_right_ones(path, ask):
    with pytest.raises(ValueError, match=r"no setting .*; the settings are .*xpu.matmul.fp32_precision"):
        ask(path)


def test_a_slip_of_the_pen_is_guessed():
    with pytest.raises(ValueError, match="did you mean 'xpu.matmul.fp32_precision'"):
        config.get("xpu.matmull.fp32_precision")


def test_explain_tells_what_holds_and_why():
    config.set("fp32_precision", "tf32")
    lines = config.explain().splitlines()
    assert "fp32_precision = tf32 (set)" in lines
    assert "xpu.rnn.fp32_precision = tf32 (from fp32_precision)" in lines
    assert "xpu.wait_policy = none (default)" in lines
    assert len(lines) == len(ROWS)


def test_the_page_lists_every_node_with_its_values_default_and_variable():
    listed = {row[0].strip("`"): row for row in ROWS}
    assert set(listed) == set(config._SETTINGS)
    for path, row in listed.items():
        setting = config._SETTINGS[path]
        assert row[2].strip("`") == (setting.default or "nothing"), path
        assert row[3].strip("`") == (setting.env or ""), path
        words = re.findall(r"`([a-z]\w*)`", row[1])
        for word in words:
            setting.parse(word)
        try:
            setting.parse("\0")
        except ValueError as allowed:
            told = set(re.findall(r"[a-z]\w*", str(allowed)[7:])) if str(allowed).startswith("one of ") else None
            assert told in (None, set(words)), path


def test_what_the_process_has_read_does_not_change():
    code = """
from l0rt import config
import l0rt.xpu
config.set("driver", "cpu")
l0rt.xpu.init()
config.set("driver", "cpu")
try:
    config.set("driver", "gpu")
except RuntimeError as e:
    assert "cannot change any more" in str(e)
else:
    raise AssertionError
assert config.get("driver") == "cpu"
"""
    result = run_python(code, {"L0RT_DRIVER": None})
    assert result.returncode == 0, result


@pytest.mark.skipif("L0RT_STREAM_POOL_SIZE" in os.environ, reason="this ring sets it")
def test_a_wrong_variable_is_named(monkeypatch):
    monkeypatch.setenv("L0RT_STREAM_POOL_SIZE", "33")
    with pytest.raises(ValueError, match="L0RT_STREAM_POOL_SIZE='33' is not valid: expected a whole number"):
        config.get("stream_pool_size")
    monkeypatch.setenv("L0RT_STREAM_POOL_SIZE", "")
    assert config.get("stream_pool_size") == 32


def test_the_allocators_take_their_nodes_and_else_the_one_text():
    config.set("alloc_conf", "max_split_size_mb:64,segments:torch")
    config.set("allocator.max_split_size_mb", 128)
    conf = memory.get_alloc_conf()
    assert (conf.max_split_size_mb, conf.segments) == (128, "torch")
    steps = "[256:1,>:8]"
    with config.patch({"xpu.allocator.max_split_size_mb": 256, "xpu.allocator.roundup_power2_divisions": steps}):
        assert memory.get_alloc_conf().max_split_size_mb == 256
        assert memory.get_alloc_conf().roundup_power2_divisions == (1,) * 9 + (8,) * 7
    assert memory.get_alloc_conf() == conf


def test_a_node_of_the_allocator_reaches_an_allocator_that_works_already():
    l0rt.empty(1).free()
    with config.patch({"xpu.allocator.max_split_size_mb": 96, "allocator.expandable_segments": False}):
        assert memory.get_alloc_conf().expandable_segments is False
        assert memory.memory_stats()["max_split_size"] == 96 << 20
    assert memory.memory_stats()["max_split_size"] != 96 << 20


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("segments", "big", "none, or fit or torch"),
        ("expandable_segments", "yes", "none, or True or False"),
        ("max_split_size_mb", "200,segments:torch", "none, or a whole number from 20 on"),
        ("roundup_power2_divisions", "[256:3]", "none, or a power of two, or a list"),
        ("garbage_collection_threshold", 1.0, "none, or a number above 0 and below 1"),
        ("pinned_max_cached_size_mb", "", "none, or a whole number from 1 on"),
    ],
)
def test_a_node_of_the_allocator_says_what_it_takes(key, value, allowed):
    with pytest.raises(ValueError, match=f"xpu.allocator.{key}=.* is not valid: expected {allowed}"):
        config.set(f"xpu.allocator.{key}", value)


def test_every_registered_type_has_a_tree_of_its_own():
    with pytest.raises(ValueError, match="no setting 'kettle.matmul.fp32_precision'"):
        config.get("kettle.matmul.fp32_precision")
    register_interface_for_device("kettle", DeviceInterface)
    for path in [path for path in config._SETTINGS if path.startswith("xpu.")]:
        assert config.effective(path.replace("xpu.", "kettle.")) == "none"
    with config.patch({"fp32_precision": "tf32", "kettle.conv.fp32_precision": "ieee", "kettle.wait_policy": "spin"}):
        assert config.effective("kettle.matmul.fp32_precision") == "tf32"
        assert config.effective("kettle.conv.fp32_precision") == "ieee"
        assert config.effective("xpu.conv.fp32_precision") == "tf32"
        assert config.effective("kettle.event.wait_policy") == "spin"
        assert config.effective("xpu.event.wait_policy") == "none"
        assert "kettle.conv.fp32_precision = ieee (set)" in config.explain()
        with pytest.raises(RuntimeError, match="no single value"):
            config.single("kettle.fp32_precision")
    with config.patch({"allocator.max_split_size_mb": 64}):
        assert config.effective("kettle.allocator.max_split_size_mb") == 64
    with pytest.raises(ValueError, match="is a setting's name"):
        register_interface_for_device("allocator", DeviceInterface)


@pytest.mark.parametrize("of_type", ["xpu", "kettle"])
def test_a_device_has_nodes_of_its_own(of_type):
    config.add_device_type("kettle")
    one, all_ = f"{of_type}:1", of_type
    assert config.get(f"{one}.wait_policy") == config.effective(f"{one}.stream.wait_policy") == "none"
    with config.patch({"wait_policy": "yield", f"{all_}.stream.wait_policy": "block"}):
        assert config.effective(f"{one}.stream.wait_policy") == "block"
        assert config.effective(f"{one}.event.wait_policy") == "yield"
        with config.patch({f"{one}.wait_policy": "spin"}):
            assert config.single(f"{one}.wait_policy") == "spin"
            assert config.effective(f"{one}.stream.wait_policy") == "spin"
            assert config.effective(f"{one}.event.wait_policy") == "spin"
            assert config.effective(f"{all_}.stream.wait_policy") == "block"
            assert config.effective(f"{of_type}:2.event.wait_policy") == "yield"
            assert f"{one}.wait_policy = spin (set)" in config.explain()
            with pytest.raises(RuntimeError, match=f"no single value: .*{one}.wait_policy = spin"):
                config.single("wait_policy")
        with pytest.raises(RuntimeError, match="no single value"):
            config.single(f"{one}.wait_policy")
    assert f"{one}.wait_policy" not in config.explain()
    for wrong in ("01", "-1", "", "x", "1:1", "123456", "1\n"):
        with pytest.raises(ValueError, match="no setting"):
            config.get(f"{of_type}:{wrong}.wait_policy")
    for wrong in ("driver", "allocator.pinned_cache_limit_mb", "allocator.fill_uninitialized", "nonsense"):
        with pytest.raises(ValueError, match="no setting"):
            config.set(f"{one}.{wrong}", "1")
    with pytest.raises(ValueError, match="expected one of block"):
        config.set(f"{one}.wait_policy", "sleep")


def test_the_settings_of_a_device_are_read(tmp_path):
    result = run_python(
        """
import l0rt, l0rt.accelerator as acc
from l0rt import config, memory
MIB = 1 << 20
config.set("xpu:1.allocator.per_process_memory_fraction", 0.25)
config.set("xpu:1.allocator.segments", "torch")
total = memory.mem_get_info(0)[1]
assert memory.get_memory_limit(0) is None
assert memory.get_memory_limit(1) == total // 4
kept = [l0rt.empty(3 * MIB, device=index) for index in range(2)]
print([memory.memory_reserved(index) // MIB for index in range(2)])
config.set("xpu:1.allocator.per_process_memory_fraction", None)
assert memory.get_memory_limit(1) is None
""",
        {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "2", "L0RT_ALLOC_CONF": None, "L0RT_CPU_PROFILE": None},
    )
    assert result.returncode == 0, result
    plain, torchs = eval(result.stdout.splitlines()[-1])
    assert plain < torchs == 20


@pytest.mark.parametrize("spinning", [0, 1])
def test_a_device_waits_by_its_own_policy(spinning):
    result = run_python(
        f"""
import os, time
import l0rt, l0rt.accelerator as acc
from l0rt import config
config.set("xpu.wait_policy", "block")
config.set("xpu:{spinning}.wait_policy", "spin")
waits = []
for index in (0, 1):
    stream = l0rt.Stream(index)
    l0rt.empty(64, device=index, stream=stream).fill(1, stream=stream)
    event = stream.record_event()
    waits.append((stream.synchronize, event.synchronize, lambda timeout, e=event: acc.wait_all(e, timeout=timeout),
                  lambda timeout, e=event, s=stream: acc.wait_any(e, s, timeout=timeout)))
for _ in range(10):  # others may have the processors for a while
    used = [[], []]
    for index in (0, 1):
        for wait in waits[index]:
            begun = time.process_time()
            wait(timeout=0.2)
            used[index].append(time.process_time() - begun)
    print(used[{spinning}], used[1 - {spinning}], flush=True)
    if min(used[{spinning}]) > 2 * max(used[1 - {spinning}]):
        os._exit(0)
os._exit(1)
""",
        {
            "L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "2", "L0RT_CPU_PROFILE": None,
            "L0RT_CPU_FAIL": "zeCommandListAppendMemoryFill:1:hang,zeCommandListAppendMemoryFill:2:hang",
        },
    )  # fmt: skip
    assert result.returncode == 0, result
