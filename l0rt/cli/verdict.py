# SPDX-License-Identifier: Apache-2.0
"""The verdict on a report: whether budgets were kept as far as the run's noise can tell, and what to do next."""

from statistics import median

from l0rt.cli import report
from l0rt.cli.rows import quartiles

NOISY = 0.10  # half of the rounds lie within so much of their median: above that the machine did other work too
NAMED = 4  # how many rows a sentence names


def noise(found):
    """Return the typical noise of a report: by which part of the median half of the rounds of a row differ from it."""
    strays = []
    for row in found["rows"].values():
        if len(row.get("rounds", ())) > 2 and row["ns"]:
            low, high = quartiles(row["rounds"])
            strays.append((high - low) / 2 / row["ns"])
    return median(strays) if strays else 0.0


def limits(found):
    """Return name -> (whether it was kept, by what factor it was passed) of everything that has a budget."""
    judged = {}
    for id, row in found["rows"].items():
        if "budget" in row:
            judged[id] = row["within"], row["ns"] / row["budget"] if row["budget"] else 1.0
    for id, row in [*found["rows"].items(), ("all traces", {"notes": found["summary"]})]:
        for name, note in row.get("notes", {}).items():
            if "limit" in note:
                low, high = sorted((note["value"], note["limit"]))
                judged[f"{id} {name}"] = note["within"], high / low if low else 1.0
    return judged


def sentences(found):
    """Return the last lines of a report: is it good, compared with what, and what to do."""
    return [_judgement(found), _standard(found), _advice(found)]


def _passed(found):
    passed = {name: factor for name, (within, factor) in limits(found).items() if not within}
    return sorted(passed.items(), key=lambda item: -item[1])


def _failed(found):
    return [id for id, row in found["rows"].items() if row.get("failed")]


def _judgement(found):
    count, passed, failed = len(limits(found)), _passed(found), _failed(found)
    parts = []
    if passed:
        named = ", ".join(f"{name} ({report.digits(factor)} x)" for name, factor in passed[:NAMED])
        more = f" and {len(passed) - NAMED} more" if len(passed) > NAMED else ""
        parts.append(f"{len(passed)} of {count} budgets passed by more than the noise of this run: {named}{more}")
    if failed:
        parts.append(f"{len(failed)} rows failed: {', '.join(failed[:NAMED])}")
    if parts:
        # What a busy machine did to a row looks like a budget that was passed.
        verdict = "Not sure" if noise(found) > NOISY and not failed else "Not good"
        return f"{verdict}: {'; '.join(parts)}."
    if not count:
        return "Neither good nor bad: none of these rows has a budget."
    return f"Good: none of {count} budgets is passed by more than the noise of this run."


def _standard(found):
    head, scales = found["head"], found["scales"]
    driver = "the CPU driver, which is no GPU" if head["device"]["is_software"] else "the bare driver"
    return (
        f"Compared with the same calls on {driver}, and with budgets scaled to this machine, by "
        f"{report.digits(scales['c'])} for C and {report.digits(scales['python'])} for Python; half of all rounds lie "
        f"within {100 * noise(found):.0f} % of their median."
    )


def _advice(found):
    passed = [name.partition(" ")[0] for name, _ in _passed(found) if not name.startswith("all traces")]
    if found["interrupted"]:
        return f"Interrupted with {len(found['unmeasured'])} rows to go: run it to its end before you judge."
    if found["effort"] == "smoke":
        return "Run it without --smoke: these rounds are too short for any figure to mean something."
    if _failed(found):
        return "See what l0rt doctor says of this driver, and report the rows that failed."
    if noise(found) > NOISY:
        return "Run it again while the machine does nothing else: with this much noise no figure is sure."
    if passed:
        again = " ".join(f"'{id}'" for id in dict.fromkeys(passed[:NAMED]))
        return f"Measure those again on their own, on an idle machine: l0rt bench {again}; report what stays."
    return "Nothing is to be done; a report kept with --json FILE can be compared with later ones: l0rt bench compare."
