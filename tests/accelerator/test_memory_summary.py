# SPDX-License-Identifier: Apache-2.0
"""The table of an allocator's statistics: torch's, number by number."""

import json
import random
from importlib.util import find_spec

import l0rt
import pytest
from l0rt import memory
from l0rt.memory.stats import table

from helpers import memory_keys
from helpers.process import run_python


def statistics(seed):
    """Return statistics of any size, whose parts add up."""
    rng, stats = random.Random(seed), dict.fromkeys(sorted(memory_keys.keys((0, 1))), 0)
    for kind in memory_keys.KINDS:
        for family in memory_keys.BY_POOL:
            small, large = (int(2 ** rng.uniform(-8, 50)) for _ in range(2))
            parts = {"small_pool": small, "large_pool": large, "all": small + large}
            stats.update({f"{family}.{pool}.{kind}": value for pool, value in parts.items()})
        stats.update({f"{name}.{kind}": int(2 ** rng.uniform(-8, 50)) for name in memory_keys.WHOLE})
    return stats


def rows(text):
    """Return the lines without the two that name the program and its device."""
    lines = text.splitlines()
    return lines[:1] + lines[4:]


def row(text, name):
    return [cell.strip() for cell in next(line for line in text.splitlines() if name in line).split("|")[2:6]]


@pytest.fixture
def torch():
    if find_spec("torch") is None:
        pytest.skip("needs torch beside l0rt: the extra `torch`")


@pytest.mark.parametrize("abbreviated", [False, True])
@pytest.mark.usefixtures("torch")
def test_the_numbers_and_units_are_torchs(abbreviated):
    cases = [statistics(seed) for seed in range(8)]
    code = f"""
import json
import torch.cuda.memory as theirs
theirs._get_device_index = lambda device, optional=False: 0
for stats in json.loads({json.dumps(json.dumps(cases))}):
    theirs.memory_stats = lambda device=None: stats
    print(json.dumps(theirs.memory_summary(0, {abbreviated})))
"""
    result = run_python(code, timeout=120)
    assert result.returncode == 0, result
    for stats, line in zip(cases, result.stdout.splitlines(), strict=True):
        assert rows(table(stats, 0, abbreviated)) == rows(json.loads(line))


def test_a_pools_row_is_in_the_unit_of_all():
    """512 bytes beside 3 GiB are 0 MiB, not 512 B, which look like more."""
    stats = dict.fromkeys(memory_keys.keys(), 0)
    for pool, value in (("all", (3 << 30) + 512), ("large_pool", 3 << 30), ("small_pool", 512)):
        stats[f"allocated_bytes.{pool}.current"] = value
        stats[f"allocation.{pool}.peak"] = value
    text = table(stats, 0)
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if "Allocated memory" in line)
    assert [line.split("|")[2].strip() for line in lines[start : start + 3]] == ["3072 MiB", "3072 MiB", "0 MiB"]
    assert row(text, "Allocated memory")[1:] == ["0 B"] * 3
    start = next(i for i, line in enumerate(lines) if "| Allocations " in line)
    assert [line.split("|")[3].strip() for line in lines[start : start + 3]] == ["3221 M", "3221 M", "0 M"]


def test_the_device_is_named():
    l0rt.empty(1).free()
    assert "device ID 0 " in memory.memory_summary(0)
    assert {len(line) for line in memory.memory_summary("xpu:0").splitlines()} == {77}


def test_tags_have_rows_of_their_own_with_the_most_bytes_first():
    stats = dict.fromkeys(memory_keys.keys(), 0)
    plain = table(stats, 0).splitlines()
    tags = {"weights": (3 << 30, 4 << 30, 5 << 30, 2 << 30), "a\nb": (512, 1024, 1024, 512),
            "activations of the first layer": (7 << 20, 9 << 20, 9 << 20, 2 << 20)}  # fmt: skip
    for tag, values in tags.items():
        stats.update({f"component_bytes.{tag}.{kind}": n for kind, n in zip(memory_keys.KINDS, values, strict=True)})
    for abbreviated in (False, True):
        lines = table(stats, 0, abbreviated).splitlines()
        assert lines[-4:] == [
            "| Tag: weights          |   3072 MiB |   4096 MiB |   5120 MiB |   2048 MiB |",
            "| Tag: activati…t layer |   7168 KiB |   9216 KiB |   9216 KiB |   2048 KiB |",
            "| Tag: a?b              |    512 B   |   1024 B   |   1024 B   |    512 B   |",
            plain[-1],
        ]
        assert lines[-5] == plain[2]
    lines = table(stats, 0).splitlines()
    assert lines[: len(plain) - 1] == plain[:-1]


def test_the_summary_of_a_device_shows_its_tags():
    with memory.tag("summed"):
        kept = l0rt.empty(3 << 20)
    assert row(memory.memory_summary(), "Tag: summed")[:2] == ["3072 KiB", "3072 KiB"]
    kept.free()
    assert row(memory.memory_summary(), "Tag: summed")[:2] == ["0 B", "3072 KiB"]
