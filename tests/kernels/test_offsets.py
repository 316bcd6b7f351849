# SPDX-License-Identifier: Apache-2.0
"""Launches whose global ids begin elsewhere, sizes that groups do not divide, and many arguments; also in graphs."""

import itertools
import os
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest

PATH = Path(__file__).with_name("offsets.spv")
BOX = (13, 7, 3)


@pytest.fixture(scope="module")
def module():
    made = l0rt.Module(PATH)
    kept = [made[name] for name in made]  # so that no test makes one that stays
    yield made
    del kept
    made.close()


def marked(launch):
    """Return how often each work-item of `BOX` ran, and the sizes of their groups, along z, y and x."""
    out, sizes = l0rt.empty(4 * np.prod(BOX)).fill(0), l0rt.empty(4 * np.prod(BOX)).fill(0)
    launch(out, sizes)
    acc.synchronize()
    return out.numpy("u4", BOX[::-1]), sizes.numpy("u4", BOX[::-1])


def expected(size, offset):
    found = np.zeros(BOX[::-1], "u4")
    found[tuple(slice(begin, begin + count) for begin, count in zip(offset[::-1], size[::-1], strict=True))] = 1
    return found


def check(array, wanted):
    if os.environ.get("L0RT_TEST_NO_DATA") != "1":
        np.testing.assert_array_equal(array, wanted)


@pytest.mark.parametrize("offset", [(0, 0, 0), (1, 0, 0), (5, 2, 1), (12, 6, 2)])
def test_global_ids_begin_at_the_offset(module, offset):
    size = tuple(most - begin for most, begin in zip(BOX, offset, strict=True))
    for sizes in ({"global_size": size}, {"groups": size, "group_size": 1}):
        given = {"global_offset": offset, **sizes}
        out, _ = marked(lambda *args, given=given: module["mark"].launch(*args, *BOX[:2], **given))
        check(out, expected(size, offset))


@pytest.mark.parametrize("offset", [None, (1, 2, 1)])
@pytest.mark.parametrize("group", [(4, 1, 1), (5, 3, 2), (1, 2, 1), (8, 8, 2), (12, 4, 1)])
def test_groups_that_do_not_divide_the_size_cover_it_once(module, group, offset):
    begin = offset or (0, 0, 0)
    size = tuple(most - first for most, first in zip(BOX, begin, strict=True))
    out, sizes = marked(lambda *args: module["mark"].launch(
        *args, *BOX[:2], global_size=size, group_size=group, global_offset=offset))  # fmt: skip
    wanted = expected(size, begin)
    check(out, wanted)
    whole, rest = divmod(size[0], group[0])
    along = np.array([0] * begin[0] + [group[0]] * (whole * group[0]) + [rest] * rest, "u4")
    check(sizes, wanted * along)


@pytest.mark.checks_data
def test_each_smaller_group_has_its_own_local_memory(module):
    x, out = np.arange(1000, dtype="u4"), l0rt.empty(4000).fill(0)
    module["sums"].launch(out, l0rt.from_numpy(x), l0rt.LocalMemory(4 * 64), global_size=1000, group_size=64)
    np.testing.assert_array_equal(out.numpy("u4")[::64], np.add.reduceat(x, range(0, 1000, 64)))


@pytest.mark.parametrize("name", ["groups", "items", "group", "offset"])
def test_a_kernel_that_would_see_the_parts_is_refused(module, name):
    out = l0rt.empty(400)
    why = rf"{name}\(\): global_size must be a multiple of group_size, for the kernel counts .*got \[100, 1, 1\] and"
    with pytest.raises(ValueError, match=why):
        module[name].launch(out, global_size=100, group_size=64)
    module[name].launch(out, global_size=100, group_size=50)
    acc.synchronize()


@pytest.mark.checks_data
def test_what_a_kernel_asks_of_its_ids_is_the_drivers_with_an_offset(module):
    out = l0rt.empty(400).fill(0)
    for name, value in (("groups", 2), ("items", 50), ("offset", 30)):
        module[name].launch(out, groups=2, group_size=25, global_offset=30)
        assert out.numpy("u4")[30:80].tolist() == [value] * 50


def test_other_sizes_that_cannot_be_divided_are_refused(module):
    out = l0rt.empty(400)
    with pytest.raises(ValueError, match=r"a multiple of group_size, for the kernel requires its group size"):
        module["fours"].launch(out, global_size=6)
    with pytest.raises(ValueError, match="for the groups of a cooperative launch run together"):
        module["mark"].launch(out, out, 1, 1, global_size=6, group_size=4, cooperative=True)
    native = l0rt.Module(module.native_binary())
    with pytest.raises(ValueError, match="or it is native code"):
        native["mark"].launch(out, out, np.uint32(1), np.uint32(1), global_size=6, group_size=4)
    native["mark"].launch(out, out, np.uint32(1), np.uint32(1), global_size=6, group_size=3, global_offset=7)
    acc.synchronize()


@pytest.mark.parametrize(
    ("offset", "error", "why"),
    [
        (-1, ValueError, r"global_offset must be 0 to 2\*\*32 - 1, got -1"),
        (1 << 32, ValueError, r"got 4294967296"),
        ((0, 0, 0, 0), ValueError, "global_offset must have 1 to 3 sizes, got 4"),
        (1.5, TypeError, "global_offset must be an int or a tuple of ints, got float"),
        ((1 << 32) - 4, ValueError, r"mark\(\): global ids must be below 2\*\*32, got \[5, 1, 1\] work-items from \["),
    ],
)
def test_offsets_that_are_none(module, offset, error, why):
    with pytest.raises(error, match=why):
        module["mark"].launch(None, None, 1, 1, global_size=5, group_size=1, global_offset=offset)


@pytest.mark.checks_data
def test_an_offset_ends_with_its_launch(module):
    out = l0rt.empty(400).fill(0)
    for begin in (50, 0, 50, 0):
        module["fours"].launch(out.fill(0), groups=2, global_offset=begin)
        assert out.numpy("u4").nonzero()[0].tolist() == list(range(begin, begin + 8))
        module["fours"][1, 4](out.fill(0))
        assert out.numpy("u4").nonzero()[0].tolist() == [0, 1, 2, 3]


# Graphs.


def test_a_graph_replays_offsets_and_parts(module):
    out, sizes = l0rt.empty(4 * np.prod(BOX)).fill(0), l0rt.empty(4 * np.prod(BOX)).fill(0)
    acc.synchronize()
    graph = acc.Graph()
    with acc.Stream(), graph:
        module["mark"].launch(out, sizes, *BOX[:2], global_size=(6, 5), group_size=(4, 2), global_offset=(7, 2, 1))
    assert [node.global_offset for node in graph.nodes] == [(7, 2, 1), (11, 2, 1), (7, 6, 1), (11, 6, 1)]
    assert [node.group_size for node in graph.nodes] == [(4, 2, 1), (2, 2, 1), (4, 1, 1), (2, 1, 1)]
    for turn in (1, 2):
        graph.replay()
        acc.synchronize()
        check(out.numpy("u4", BOX[::-1]), turn * expected((6, 5, 1), (7, 2, 1)))
    graph.nodes[1].update(args={0: None, 1: None, 2: 1, 3: 1}, groups=(1, 2))
    graph.nodes[1].update(args={0: out, 1: sizes, 2: BOX[0], 3: BOX[1]})
    graph.replay()
    acc.synchronize()
    check(out.numpy("u4", BOX[::-1]), 3 * expected((6, 5, 1), (7, 2, 1)))
    graph.reset()


# Many arguments.


@pytest.mark.parametrize("captured", [False, True])
def test_a_kernel_takes_as_many_arguments_as_the_device(module, captured):
    kernel, to = module["many"], l0rt.empty(4 * 191).fill(0)
    acc.synchronize()
    values = list(range(7, 197))
    assert len(kernel.arguments) == 192
    if captured:
        graph = acc.Graph()
        with acc.Stream(), graph:
            kernel.launch(to, 1000, *values, groups=1, group_size=1)
        assert graph.nodes[0].arguments == (to.ptr, 1000, *values)
        graph.nodes[0].update(args={1: 1001, 191: 5, 150: 6})
        values[189], values[148] = 5, 6
        graph.replay()
    else:
        kernel[1, 1](to, 1001, *values)
    acc.synchronize()
    check(to.numpy("u4"), [*values, 1001])
    for short in (0, 190, 193):
        with pytest.raises(TypeError, match=rf"many\(\) takes 192 arguments, got {short}"):
            kernel[1, 1](*[to] * short)
    with pytest.raises(TypeError, match=r"many\(\) argument 191 \(a199\) must be an int of 4 bytes, got str"):
        kernel[1, 1](to, 1001, *values[:-1], "5")
    assert kernel.max_cooperative_groups(1) >= 1
    assert kernel.max_cooperative_groups(1, to, 1, *values) >= 1
    if captured:
        graph.reset()


@pytest.mark.checks_data
def test_null_pointers_behind_the_128th_argument(module):
    """Of every argument it is known whether it is a pointer."""
    kernel = module["many"]
    for at in itertools.chain(range(2, 192, 21), (127, 128, 191)):
        to = l0rt.empty(4 * 191).fill(255)
        kernel[1, 1](to, *[0 if i == at else i for i in range(1, 192)])
        assert to.numpy("u4")[at - 2] == 0
