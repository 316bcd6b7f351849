# SPDX-License-Identifier: Apache-2.0
"""`l0rt.memory.openmetrics` is OpenMetrics 1.0, and its figures are those of the statistics."""

import re

import l0rt
import l0rt.accelerator as acc
from l0rt import memory

from helpers.process import run_python

MIB = 1 << 20
NAME = r"[a-zA-Z_][a-zA-Z0-9_]*"
LABEL = rf'{NAME}="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\d+)")


def read(text):
    """Return the samples, (name, labels) -> value, of a text that keeps to the format."""
    *lines, end, last = text.split("\n")
    assert (end, last) == ("# EOF", "")
    found, kinds, helped = {}, {}, {}
    for line in lines:
        if line.startswith("# "):
            _, what, name, rest = line.split(" ", 3)
            if what == "TYPE":
                assert name not in kinds, "a family is in one piece"
                assert rest in ("gauge", "counter")
                kinds[name] = rest
                family = name
            assert name == family
            helped[name] = helped.get(name, 0) + (what == "HELP")
            assert what != "UNIT" or name.endswith(f"_{rest}")
            continue
        name, labels, value = SAMPLE.fullmatch(line).groups()
        assert name == family + ("_total" if kinds[family] == "counter" else ""), line
        assert (name, labels) not in found
        found[name, labels] = int(value)
    assert set(helped.values()) <= {1}
    assert helped.keys() == kinds.keys()
    return found


def test_the_figures_are_those_of_the_statistics():
    pool = memory.MemPool()
    with memory.tag('a "tag"\n\\ of it'), memory.use_mem_pool(pool):
        kept = l0rt.empty(3 * MIB)
    pinned = l0rt.empty(5 * MIB, kind="host")
    acc.reset_peak_memory_stats()
    found, stats, host = read(memory.openmetrics()), memory.memory_stats(0), memory.host_memory_stats()
    device = 'device="xpu:0"'
    for name, key in (("allocated", "allocated_bytes"), ("reserved", "reserved_bytes"), ("active", "active_bytes")):
        assert found[f"l0rt_memory_{name}_bytes", device] == stats[f"{key}.all.current"]
        assert found[f"l0rt_memory_{name}_peak_bytes", device] == stats[f"{key}.all.peak"]
    assert found["l0rt_memory_out_of_memory_total", device] == stats["num_ooms"]
    assert found["l0rt_memory_blocks", device] == stats["allocation.all.current"]
    assert found["l0rt_memory_tag_bytes", device + r',tag="a \"tag\"\n\\ of it"'] == 3 * MIB
    name = f"reserved_bytes_by_private_pools.{pool.id[0]}_{pool.id[1]}.all.current"
    assert found["l0rt_memory_pool_reserved_bytes", f'{device},pool="{pool.id[0]}.{pool.id[1]}"'] == stats[name]
    assert found["l0rt_host_memory_allocated_bytes", None] == host["active_bytes.current"] >= 5 * MIB
    assert found["l0rt_host_memory_reserved_bytes", None] == host["allocated_bytes.current"]
    assert kept
    assert pinned


def test_there_are_no_figures_before_the_first_allocation():
    program = "from l0rt import memory; print(repr(memory.openmetrics()))"
    assert run_python(program, {"L0RT_DRIVER": "cpu"}).stdout == "'# EOF\\n'\n"
