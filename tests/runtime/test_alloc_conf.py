# SPDX-License-Identifier: Apache-2.0
"""The allocators' configuration: every text means what torch's grammar says, or gets a message that helps."""

import pytest
from l0rt import config, memory
from l0rt.config import alloc_options
from l0rt.errors import OutOfMemoryError

from helpers.process import run_python
from helpers.source import ROOT

GROWTH = ("segments",)
KIB, MIB = 1 << 10, 1 << 20


def tuned(make, limit=None, uncached=False, **values):
    allocator = make(limit=limit)
    allocator.tune(alloc_options.make(**values), uncached=uncached)
    return allocator


@pytest.mark.parametrize("text", [
    "", "max_split_size_mb:200", " max_split_size_mb : 200 , expandable_segments:False ", "segments:torch",
    "roundup_power2_divisions:4", "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
    "garbage_collection_threshold:0.8,per_process_memory_fraction:0.5", "backend:async,fill_uninitialized:0xA5",
    "roundup_power2_divisions:[64:8]", "roundup_power2_divisions:[64:8,256:0,1024:128]",
])  # fmt: skip
def test_a_configuration_can_be_written_down_again(text):
    conf = alloc_options.parse(text)
    assert alloc_options.parse(str(conf)) == conf


def test_a_byte_is_written_in_either_way():
    for value in (0, 255, "0", "255", "0xff", "0X0A"):
        assert alloc_options.make(fill_uninitialized=value).fill_uninitialized == int(str(value), 0)
    assert alloc_options.make(fill_uninitialized=None).fill_uninitialized is None
    for value in (True, 256, -1, "", "x", 1.5):
        with pytest.raises(ValueError, match="fill_uninitialized is a byte"):
            alloc_options.make(fill_uninitialized=value)


@pytest.mark.parametrize(("entries", "steps"), [
    ("[256:1,512:2,1024:4,>:8]", (1,) * 9 + (2, 4) + (8,) * 5),
    ("[64:8]", (8,) * 7 + (0,) * 9),
    ("[64:8,256:4]", (8,) * 7 + (0, 4) + (0,) * 7),
    ("[64:8,256:4,>:2]", (8,) * 7 + (0, 4) + (2,) * 7),
    ("[256:0,>:8]", (0,) * 9 + (8,) * 7),
    ("[>:8]", (0,) + (8,) * 15),
    ("[65536:4]", (4,) * 16),
    ("[16384:2,131072:4]", (2,) * 15 + (4,)),
])  # fmt: skip
def test_intervals_that_no_entry_names_are_as_in_torch(entries, steps):
    assert alloc_options.parse(f"roundup_power2_divisions:{entries}").roundup_power2_divisions == steps


def test_intervals_are_given_as_a_dict_or_each_by_itself():
    steps = (8,) * 7 + (0, 4) + (0,) * 7
    for value in ({64: 8, 256: 4}, {"64": "8", "256": "4"}, steps):
        assert alloc_options.make(roundup_power2_divisions=value).roundup_power2_divisions == steps
    assert alloc_options.value("roundup_power2_divisions", "[64:8,256:4]") == steps


DIVISIONS = "a power of two up to 128, or 0"


@pytest.mark.parametrize(("value", "words"), [
    ({256: 1.5}, ["entry 256:1.5 ", DIVISIONS]),
    ({256: True}, ["entry 256:True ", DIVISIONS]),
    ({256.0: 1}, ["entry 256.0:1 ", "powers of two that ascend"]),
    ({512: 1, 256: 2}, ["entry 256:2 ", "512"]),
    ({}, ["not {}"]),
    ((3,) * 16, ["entry 0 of 16 ", DIVISIONS]),
    ((1,) * 15 + (256,), ["entry 15 of 16 ", DIVISIONS]),
    ((1,) * 15, ["not (1, 1"]),
    (1.5, ["not 1.5"]),
    (256, ["not 256"]),
    ("2_5", ["not '2_5'"]),
])  # fmt: skip
def test_intervals_that_are_none_are_refused_as_values_too(value, words):
    with pytest.raises(ValueError, match="roundup_power2_divisions") as error:
        alloc_options.make(roundup_power2_divisions=value)
    for word in ("a power of two, or a list such as", *words):
        assert word in str(error.value)


LIST = ("roundup_power2_divisions", "a power of two, or a list such as", "ascend")


@pytest.mark.parametrize(("text", "words"), [
    ("bogus:1", ["unknown key 'bogus' at position 0", "max_split_size_mb"]),
    ("max_split_size:1", ["did you mean max_split_size_mb?"]),
    ("max_split_size_mb", ["position 17", "max_split_size_mb is followed by ':'", "the end", "from 20 on"]),
    ("max_split_size_mb:200 300", ["position 22", "max_split_size_mb", "','", "'300'", "from 20 on"]),
    ("max_split_size_mb:200,", ["position 22", "max_split_size_mb", "the last comma", "the keys are backend"]),
    ("max_split_size_mb:[20:1]", ["position 18", "max_split_size_mb", "from 20 on, not [20:1]"]),
    ("per_process_memory_fraction:0", ["position 28", "above 0 and up to 1, not '0'"]),
    ("max_split_size_mb:", ["position 18", "max_split_size_mb has no value", "a whole number from 20 on"]),
    (":abc", ["position 0", "a key is expected"]),
    ("segments:fit,expandable_segments:true", ["position 33", "True or False", "'true'"]),
    ("max_split_size_mb:10", ["position 18", "a whole number from 20 on, not '10'"]),
    ("large_segment_size_mb:10", ["from 11 on"]),
    ("garbage_collection_threshold:1", ["position 29", "above 0 and below 1"]),
    ("garbage_collection_threshold:nan", ["above 0 and below 1"]),
    ("expandable_segments:True,", ["after the last comma"]),
    ("expandable_segments:True;max_split_size_mb:20", ["position 20"]),
    ("segments:fit,segments:fit", ["position 13", "segments", "given twice", "once"]),
    ("backend:cudaMallocAsync", ["position 8", "native or async", "async is the nearest"]),
    ("fill_uninitialized:256", ["position 19", "a byte, 0 to 255 or 0x00 to 0xFF, not '256'"]),
    ("fill_uninitialized:010", ["a byte"]),
    ("fill_uninitialized:-1", ["a byte"]),
    ("roundup_power2_divisions:3", ["power of two"]),
    ("roundup_power2_divisions:[256:3]", ["[256:1,512:2,1024:4,>:8]"]),
    ("roundup_power2_divisions:[256", [*LIST, "position 29", "followed by ':'"]),
    ("roundup_power2_divisions:[256:", [*LIST, "position 30", "256", "the end"]),
    ("roundup_power2_divisions:[256:]", [*LIST, "position 30", "256", "']'"]),
    ("roundup_power2_divisions:[256:1", [*LIST, "position 31", "goes on with ',' or ends with ']'"]),
    ("roundup_power2_divisions:[256:1 2", [*LIST, "position 32", "goes on with ',' or ends with ']'"]),
    ("roundup_power2_divisions:[]", [*LIST, "position 26", "an entry is expected", "']'"]),
    ("roundup_power2_divisions:[256:1,]", [*LIST, "position 32", "an entry is expected", "']'"]),
    ("roundup_power2_divisions:[:1]", [*LIST, "position 26", "an entry is expected", "':'"]),
    ("roundup_power2_divisions:[>:8,256:1]", [*LIST, "position 30", "entry 256:1 ", "after >"]),
    ("roundup_power2_divisions:[512:1,256:2]", [*LIST, "position 32", "entry 256:2 ", "after 512"]),
    ("roundup_power2_divisions:[256:1,256:2]", [*LIST, "position 32", "entry 256:2 ", "after 256"]),
    ("roundup_power2_divisions:[1:2,>:8,>:4]", [*LIST, "position 34", "entry >:4 ", "after >"]),
    ("roundup_power2_divisions:[32768:2,65536:4]", [*LIST, "position 34", "entry 65536:4 ", "32768 and more are one"]),
    ("roundup_power2_divisions:[32768:2,>:4]", [*LIST, "position 34", "entry >:4 ", "32768 and more are one"]),
    ("roundup_power2_divisions:[256:1,300:2]", [*LIST, "position 32", "entry 300:2 "]),
    ("roundup_power2_divisions:[256:1,512:256]", [*LIST, "position 32", "entry 512:256 ", DIVISIONS]),
    ("roundup_power2_divisions:256", [*LIST, "position 25", "not '256'"]),
])  # fmt: skip
def test_a_malformed_text_says_what_is_wrong_and_what_is_allowed(text, words, monkeypatch):
    with pytest.raises(ValueError, match="position|unknown key") as error:
        alloc_options.parse(text)
    for word in words:
        assert word in str(error.value)
    monkeypatch.setenv("L0RT_ALLOC_CONF", text)
    with pytest.raises(ValueError, match="^L0RT_ALLOC_CONF=") as error:
        config.get("alloc_conf")
    assert words[0] in str(error.value)


@pytest.mark.parametrize("key", [
    "release_lock_on_cudamalloc", "pinned_use_cuda_host_register", "pinned_num_register_threads",
    "pinned_reserve_segment_size_mb", "graph_capture_record_stream_reuse", "pinned_free_catch_all",
    "throw_on_cudamalloc_oom", "pinned_max_round_threshold_mb", "expandable_segments_reserve",
])  # fmt: skip
def test_a_key_that_only_torch_has_says_so(key):
    words = f"unknown key '{key}'.* torch's .* no meaning here; the keys are"
    for refused in (lambda: alloc_options.parse(f"segments:fit,{key}:1"), lambda: alloc_options.make(**{key: 1})):
        with pytest.raises(ValueError, match=words) as error:
            refused()
        assert "did you mean" not in str(error.value)
    assert f"`{key}`" in (ROOT / "docs/memory.md").read_text()


def test_keys_are_checked_too():
    with pytest.raises(ValueError, match="max_split_size_mb is a whole number from 20 on, not 3"):
        alloc_options.make(max_split_size_mb=3)
    with pytest.raises(ValueError, match="per_process_memory_fraction is a number above 0 and up to 1, not 0"):
        alloc_options.make(per_process_memory_fraction=0)
    with pytest.raises(ValueError, match="backend is native or async, not .*async is the nearest"):
        alloc_options.make(backend="cudaMallocAsync")
    with pytest.raises(ValueError, match=r"did you mean expandable_segments\?"):
        alloc_options.make(expandable_segment=True)
    with pytest.raises(TypeError, match="one of the two"):
        memory.set_alloc_conf("segments:fit", segments="fit")


def test_a_configuration_that_is_refused_changes_nothing():
    before = memory.get_alloc_conf()
    with pytest.raises(ValueError, match="from 20 on"):
        memory.set_alloc_conf(max_split_size_mb=1)
    assert memory.get_alloc_conf() == before


@pytest.mark.parametrize(("nbytes", "size"), [(1200, 1536), (1024, 1024), (100 * KIB, 112 * KIB), (512, 512),
                                              (MIB + 1, MIB + 256 * KIB), (3 * MIB, 3 * MIB), (5 * MIB, 5 * MIB)])
def test_sizes_are_rounded_to_steps(make, nbytes, size):
    allocator = tuned(make, roundup_power2_divisions=4)
    for _ in range(2):                              # from new memory, and from the cache
        address = allocator.malloc(nbytes, 1)
        assert allocator.find(address)[1] == size
        allocator.free(address)


def test_an_oversize_segment_is_not_split(make):
    allocator = tuned(make, max_split_size_mb=32)
    big = allocator.malloc(40 * MIB, 1)
    stats = allocator.stats()
    assert (stats["oversize_allocations.current"], stats["oversize_segments.current"]) == (1, 1)
    assert stats["max_split_size"] == 32 * MIB
    allocator.free(big)
    allocator.memory.hold()                         # so that nothing is given back before growing
    small = allocator.malloc(4 * MIB, 1)            # not out of the 40 MiB
    assert allocator.reserved_bytes == 44 * MIB
    again = allocator.malloc(33 * MIB, 1)           # but this takes it, all of it
    assert again == big
    assert allocator.find(again)[1] == 40 * MIB
    stats = allocator.stats()
    assert stats["oversize_allocations.peak"] == 1
    assert stats["oversize_allocations.allocated"] == 2
    allocator.memory.hold(False)
    allocator.free(small)
    allocator.free(again)
    allocator.empty_cache()
    assert allocator.stats()["oversize_segments.current"] == 0
    assert allocator.stats()["oversize_allocations.freed"] == 2


def test_an_oversize_segment_is_not_wasted_on_much_less(make):
    allocator = tuned(make, max_split_size_mb=32, max_non_split_rounding_mb=24)
    big = allocator.malloc(90 * MIB, 1)
    allocator.free(big)
    allocator.memory.hold()
    other = allocator.malloc(66 * MIB, 1)           # 24 MiB too many
    assert other != big
    fitting = allocator.malloc(67 * MIB, 1)
    assert fitting == big
    allocator.memory.hold(False)
    allocator.free(other)
    allocator.free(fitting)


def test_an_oversize_block_that_others_use_is_counted_once(make):
    allocator = tuned(make, max_split_size_mb=20)
    address = allocator.malloc(24 * MIB, 1)
    allocator.record_stream(address, 2)
    allocator.free(address)
    assert allocator.stats()["oversize_allocations.current"] == 0
    allocator.free(allocator.malloc(24 * MIB, 1))
    stats = allocator.stats()
    assert stats["oversize_allocations.allocated"] == stats["oversize_allocations.freed"] == 2


def test_garbage_is_collected_above_the_threshold(make):
    allocator = tuned(make, limit=100 * MIB, garbage_collection_threshold=0.5)
    for stream in (1, 2, 3, 4):
        allocator.free(allocator.malloc(10 * MIB, stream))
    kept = allocator.malloc(15 * MIB, 5)            # 40 + 15 is more than 50: the oldest goes
    assert allocator.reserved_bytes <= 50 * MIB
    assert [block["stream"] for block in allocator.snapshot() if block["state"] != "live"] == [4, 3, 2]
    assert allocator.stats()["num_alloc_retries"] == 0
    allocator.free(kept)


def test_torchs_segments(make):
    allocator = tuned(make, segments="torch")
    first = allocator.malloc(3 * MIB, 1)
    assert allocator.reserved_bytes == 20 * MIB
    second = allocator.malloc(11 * MIB, 1)
    assert allocator.reserved_bytes == 20 * MIB
    third = allocator.malloc(13 * MIB + 1, 1)
    assert allocator.reserved_bytes == 34 * MIB
    for address in (first, second, third):
        allocator.free(address)
    allocator.malloc(30 * MIB, 1)                   # and what is free is kept
    assert allocator.reserved_bytes == 64 * MIB


@pytest.mark.parametrize("nbytes", [5 * MIB, 19 * MIB + 512, 20 * MIB, 21 * MIB])
def test_torchs_segments_are_no_larger_than_what_may_be_split(make, nbytes):
    allocator = tuned(make, segments="torch", max_split_size_mb=20)
    address = allocator.malloc(nbytes, 1)
    assert allocator.find(address)[1] < nbytes + 2 * MIB
    allocator.free(address)


def test_torchs_blocks_are_exact_and_merged_at_once(make):
    allocator = tuned(make, segments="torch")
    allocator.free(allocator.malloc(72 * KIB, 1))
    small, large = allocator.malloc(64 * KIB, 1), allocator.malloc(3 * MIB, 1)
    assert allocator.find(small)[1] == 64 * KIB
    allocator.free(large)
    assert [block["state"] for block in allocator.snapshot() if block["pool"] == "large"] == ["binned"]
    allocator.free(small)


def test_an_uncached_allocation_is_given_back_at_once(make):
    allocator = tuned(make, uncached=True)
    addresses = [allocator.malloc(nbytes, 1) for nbytes in (1, 512, MIB, 5 * MIB)]
    assert allocator.memory.counters["reserves"] == 4
    assert allocator.find(addresses[3] + 100)[0] == addresses[3]
    for count, address in enumerate(addresses, 1):
        allocator.free(address)
        assert allocator.memory.counters["releases"] == count
    assert allocator.reserved_bytes == allocator.allocated_bytes == 0
    used = allocator.malloc(MIB, 1)
    allocator.record_stream(used, 2)
    allocator.free(used)
    with pytest.raises(ValueError, match="freed already|not the address"):
        allocator.free(used)
    allocator.free(allocator.malloc(MIB, 1))
    assert allocator.reserved_bytes == 0


def test_an_uncached_allocation_waits_for_memory(make):
    allocator = tuned(make, limit=8 * MIB, uncached=True)
    first = allocator.malloc(6 * MIB, 1)
    with pytest.raises(OutOfMemoryError):
        allocator.malloc(6 * MIB, 1)
    allocator.free(first)
    allocator.free(allocator.malloc(6 * MIB, 1))


def test_above_the_bound_what_has_been_free_for_longest_goes_first(make):
    allocator = make()
    allocator.tune(alloc_options.make(), cached_most=12 * MIB)
    sizes = (4 * MIB, 5 * MIB, 6 * MIB)
    addresses = [allocator.malloc(size) for size in sizes]
    for order in (2, 0, 1):
        allocator.free(addresses[order])
    assert allocator.reserved_bytes == 9 * MIB             # not the 6 MiB, which were free first
    reserved = allocator.reserved_bytes
    again = [allocator.malloc(4 * MIB), allocator.malloc(5 * MIB)]
    assert sorted(again) == sorted(addresses[:2])
    assert allocator.reserved_bytes == reserved


def assert_runs(code, **env):
    result = run_python(code, {"L0RT_DRIVER": "cpu", **env})
    assert result.returncode == 0, result


UNCACHED = """
import l0rt, l0rt.accelerator as acc, gc
for kind, stats, held, given in (
    ("device", acc.memory_stats, "reserved_bytes.all.current", "num_device_free"),
    ("host", l0rt.memory.host_memory_stats, "allocated_bytes.current", "num_host_free"),
):
    for n in (1, 4096, 3 << 20):
        a = l0rt.empty(n, kind=kind); p = a.ptr; a.free()
        assert stats()[held] == 0, (kind, n)
    assert stats()[given] == 3, stats()
b = l0rt.empty(1000); s = acc.Stream()
with s: b.fill(1)
b.record_stream(s); del b; acc.synchronize(); l0rt.empty(5).free()
assert acc.memory_reserved() == 0
"""


def test_without_caching_every_path_is_the_drivers_own():
    assert_runs(UNCACHED, L0RT_NO_MEMORY_CACHING="1")


CONFIGURED = """
import l0rt, l0rt.accelerator as acc
from l0rt import memory
a = l0rt.empty(3 << 20)
assert acc.memory_reserved() == 20 << 20, acc.memory_reserved()
total = memory.memory_info()["total"]
assert memory.get_memory_limit() == total // 2
memory.set_alloc_conf(max_split_size_mb=64, segments="fit")
assert acc.memory_stats()["max_split_size"] == 64 << 20
a.free(); acc.empty_cache()
a = l0rt.empty(3 << 20)
assert acc.memory_reserved() <= 8 << 20     # what a range grows by where mappings are dear
"""


def test_the_environment_configures_the_device_allocator():
    assert_runs(CONFIGURED, L0RT_ALLOC_CONF="segments:torch,per_process_memory_fraction:0.5")
