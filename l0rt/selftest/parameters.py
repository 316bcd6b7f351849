# SPDX-License-Identifier: Apache-2.0
"""Parameters: what of the self-test's answers l0rt takes in place of its defaults, see `l0rt.ze.tuning`."""

from l0rt.selftest.questions import BY_ID
from l0rt.ze import tuning

VM_BIND_LEAST = 3.0  # µs: a GPU whose map takes less has only put the memory on a list
DEAR_MAP = 30.0  # µs: below it, calls are too cheap for sizes to follow from them
CALL = 500.0  # µs: what a call may take for LEAST MiB; one that takes more comes with more memory
LEAST, MOST = 8, 64  # MiB: what ranges grow by and small segments have by default, and what is too much on any card
MOST_SMALL = 32  # MiB: small requests seldom need more together
LEAST_MOVE = 4  # MiB
PIECES = 128  # of a range, as many as it should have
DEAR_SWITCH = 50.0  # µs: what an append to another list than the last may cost more, several times an append


def parameters(outcome):
    """Return what of the answers is a parameter of l0rt's."""
    answers, facts = outcome["answers"], outcome["facts"] or {}
    values: dict = {}
    tested = {id: answer for id, answer in answers.items() if answer["by"] == "test"}
    present = [BY_ID[id].name for id, answer in tested.items() if answer["state"] == "present"]
    if switched := {name: True for name in present if name in tuning.QUIRKS}:
        values["quirks"] = switched
    record = figures_of(answers, "M6")
    costs = {
        kind: sum(record[f"{what}_{name}"] for what in ("record", "query", "wait"))
        for kind, name in (("cb", "counter_host"), ("pool", "plain_host"))
        if f"record_{name}" in record
    }
    if len(costs) == 2 and facts.get("capabilities", {}).get("cb_events"):
        values["events"] = min(costs, key=lambda kind: costs[kind])
    lists = figures_of(answers, "M5")
    if "copy_32" in lists and lists["copy_32"] - lists["copy_1"] > DEAR_SWITCH:
        values["stream_pool_size"] = max(2, facts.get("compute_queues", 1))
    maps = figures_of(answers, "M2")
    if "map_2MiB_idle" in maps and facts.get("capabilities", {}).get("vmm"):
        listed = not facts["is_software"] and maps["map_2MiB_idle"] < VM_BIND_LEAST
        values["expandable_segments"] = not listed and "no_vm_bind" not in present
        if values["expandable_segments"] and maps["map_2MiB_idle"] >= DEAR_MAP:
            values.update(sizes(maps, figures_of(answers, "M3"), figures_of(answers, "M4")))
    return values


def figures_of(answers, id):
    """Return what a question measured; empty where it was not asked."""
    return answers.get(id, {}).get("figures", {})


def sizes(maps, slopes, allocations):
    """Return the sizes, in MiB, by which the calls for memory cost little, from the measurements M2, M3 and M4."""
    values = {}
    of_pieces = PIECES * max(0.0, slopes.get("map_per_piece", 0.0))
    values["range_growth_mb"] = worth(maps["create_2MiB_idle"] + maps["map_2MiB_idle"] + of_pieces, MOST)
    if "allocate_2MiB" in allocations:
        values["small_segment_size_mb"] = worth(allocations["allocate_2MiB"] + allocations["resident_2MiB"], MOST_SMALL)
    if (clearing := clearing_of(maps)) > 0:
        values["range_move_mb"] = power_of_two(maps["unmap_2MiB_idle"] / clearing, LEAST_MOVE, MOST)
    return values


def worth(microseconds, most):
    """Return the size that makes up for a call of so many microseconds."""
    return power_of_two(LEAST * microseconds / CALL, LEAST, most)


def clearing_of(maps):
    """Return the microseconds that a MiB of new memory takes: what is moved in its place is not cleared."""
    sizes = [mib for mib in (2, 16, 128) if f"map_{mib}MiB_idle" in maps]
    small, large = ((maps[f"create_{mib}MiB_idle"] + maps[f"map_{mib}MiB_idle"]) for mib in (sizes[0], sizes[-1]))
    return (large - small) / (sizes[-1] - sizes[0]) if len(sizes) > 1 else 0.0


def power_of_two(value, least, most):
    """Return the power of two from ``least`` to ``most`` that is no less than ``value``, if there is one."""
    size = least
    while size < value and size < most:
        size *= 2
    return size
