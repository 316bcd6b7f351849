# SPDX-License-Identifier: Apache-2.0
"""Entries of the history of memory: whose frames they have, and annotations."""

import gc

import l0rt
import l0rt.accelerator as acc
import pytest
from l0rt import config, memory

pytestmark = pytest.mark.usefixtures("recorded")

KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture
def recorded():
    """Nothing is recorded before and after, nothing is cached, and the configuration stays."""
    gc.collect()
    acc.empty_cache()
    memory.empty_host_cache()
    with config.patch({"alloc_conf": str(memory.get_alloc_conf())}):
        yield
    memory.record_memory_history(None)
    gc.collect()
    acc.empty_cache()


def empties_it(how):
    """What empties the cache: its name is in the frames of what it has given back."""
    how()


@pytest.mark.parametrize("segments", ["fit", "torch"])
@pytest.mark.parametrize("way", ["all", "device", "stream", "pool", "pool's own", "host"])
def test_what_goes_back_has_the_frames_of_who_emptied_the_cache(segments, way):
    memory.set_alloc_conf(segments=segments)
    pool, stream = memory.MemPool(), acc.Stream()
    hows = {
        "all": acc.empty_cache, "device": lambda: memory.empty_cache(0),
        "stream": lambda: memory.empty_cache(stream=stream),
        "pool": lambda: memory.empty_cache(pool=pool), "pool's own": pool.empty_cache, "host": memory.empty_host_cache,
    }  # fmt: skip
    memory.record_memory_history(clear_history=True)
    with memory.use_mem_pool(pool if way.startswith("pool") else memory.MemPool()):
        l0rt.empty(30 * MIB, stream=stream).free()
    l0rt.empty(30 * MIB, stream=stream).free()
    l0rt.empty(3 * MIB, kind="host").free()
    acc.synchronize()
    empties_it(hows[way])
    shot = memory.snapshot()
    gone = [entry for entry in shot["host_traces" if way == "host" else "device_traces"][0]
            if entry["action"] in ("segment_free", "segment_unmap")]  # fmt: skip
    assert any("empties_it" in [frame["name"] for frame in entry.get("frames", ())] for entry in gone)


def test_an_annotation_is_an_entry_of_its_own():
    buffer = l0rt.empty(100)
    memory.annotate_memory(buffer, "unseen")
    memory.record_memory_history(clear_history=True)
    memory.set_memory_metadata("about the thread")
    kept = l0rt.empty(5 * KIB)
    memory.annotate_memory(kept, "first")
    memory.annotate_memory(kept.ptr + 7, {"layer": 3, "of": ["x", None]})
    memory.set_memory_metadata("")
    kept.free()
    with pytest.raises(l0rt.InvalidArgumentError, match="in no allocation of l0rt"):
        memory.annotate_memory(64, "nothing")
    entries = memory.snapshot()["device_traces"][0]
    told = [(e["action"], e["addr"], e["size"], e["user_metadata"]) for e in entries if e["size"] == 5 * KIB]
    address = told[0][1]
    assert told[:3] == [
        ("alloc", address, 5 * KIB, "about the thread"), ("annotate", address, 5 * KIB, "first"),
        ("annotate", address, 5 * KIB, '{"layer":3,"of":["x",null]}'),
    ]  # fmt: skip
    assert [action for action, *_ in told[3:]] == ["free_requested", "free_completed"]
    frames = next(e["frames"] for e in entries if e["action"] == "annotate")
    assert "test_an_annotation_is_an_entry_of_its_own" in [frame["name"] for frame in frames]
    for wrong in (None, 3, b"x", ["x"]):
        with pytest.raises(TypeError, match="metadata must be a str or a dict"):
            memory.annotate_memory(buffer, wrong)
    memory.record_memory_history(clear_history=True, skip_actions=["annotate"])
    memory.annotate_memory(buffer, "skipped")
    assert memory.snapshot()["device_traces"][0] == []


def test_metadata_may_be_a_dict():
    memory.set_memory_metadata({"a": 1, "b": "ü"})
    assert memory.get_memory_metadata() == '{"a":1,"b":"\\u00fc"}'
    memory.set_memory_metadata(memory.get_memory_metadata())
    assert memory.get_memory_metadata() == '{"a":1,"b":"\\u00fc"}'
    memory.set_memory_metadata("")
    with pytest.raises(TypeError, match="not JSON serializable"):
        memory.set_memory_metadata({"x": object()})
    with pytest.raises(TypeError, match="metadata must be a str or a dict"):
        memory.set_memory_metadata(3)
