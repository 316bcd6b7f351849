# SPDX-License-Identifier: Apache-2.0
"""The verdict on a report: whether budgets were met as far as the run's noise allows, and what to do next."""

from statistics import median

from l0rt.bench import report
from l0rt.bench.rows import quartiles

NOISY = 0.10  # half of the rounds lie within so much of their median: above that the machine did other work too
NAMED = 4  # how many rows a sentence names


def noise(record):
    """Return the typical noise of a report: by which part of the median half of the rounds of a row differ from it."""
    strays = []
    for row in record["rows"].values():
        if len(row.get("rounds", ())) > 2 and row["ns"]:
            low, high = quartiles(row["rounds"])
            strays.append((high - low) / 2 / row["ns"])
    return median(strays) if strays else 0.0


def limits(record):
    """Return name -> (whether it was exceeded, by what factor) of everything that has a budget."""
    judged = {}
    for id, row in record["rows"].items():
        if "budget" in row:
            judged[id] = is_exceeded(row), row["ns"] / row["budget"] if row["budget"] else 1.0
    for id, row in [*record["rows"].items(), ("all traces", {"notes": record["summary"]})]:
        for name, note in row.get("notes", {}).items():
            if "limit" in note:
                low, high = sorted((note["value"], note["limit"]))
                judged[f"{id} {name}"] = is_exceeded(note), high / low if low else 1.0
    return judged


def is_exceeded(figure):
    """Whether a row or a note exceeded its budget by more than the run's noise, and did so again when it was measured
    again."""
    return not figure.get("within", True) and "before" in figure


def exceeded(record):
    """Return name -> factor of the budgets that were exceeded, the worst first."""
    factors = {name: factor for name, (is_over, factor) in limits(record).items() if is_over}
    return dict(sorted(factors.items(), key=lambda item: -item[1]))


def named(factors):
    """Return the first of the names, with their factors, and how many more there are."""
    text = ", ".join(f"{name} ({report.digits(factor)} x)" for name, factor in list(factors.items())[:NAMED])
    return f"{text} and {len(factors) - NAMED} more" if len(factors) > NAMED else text


def failed(record):
    """Return the IDs of the rows that failed."""
    return [id for id, row in record["rows"].items() if row.get("failed")]


def interruption(record):
    """Return when a run was interrupted."""
    count = len(record["unmeasured"])
    return f"interrupted with {counted(count, 'row')} to go" if count else "interrupted while rows were measured again"


def counted(count, noun):
    """Return a count of a noun: 1 row, 2 rows."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def sentences(record):
    """Return the last lines of a report: is it good, compared with what, and what to do."""
    return [_judgement(record), _standard(record), _advice(record)]


def _judgement(record):
    count, over, broken = len(limits(record)), exceeded(record), failed(record)
    parts = []
    if over:
        parts.append(
            f"{len(over)} of {counted(count, 'budget')} {'is' if len(over) == 1 else 'are'} exceeded, in two "
            f"measurements and by more than the noise of this run: {named(over)}"
        )
    if broken:
        parts.append(f"{counted(len(broken), 'row')} failed: {', '.join(broken[:NAMED])}")
    if parts:
        # What a busy machine does to a row, twice, looks like a budget that is exceeded.
        word = "Not sure" if noise(record) > NOISY and not broken else "Not good"
        return f"{word}: {'; '.join(parts)}."
    if not count:
        return "Neither good nor bad: none of these rows has a budget."
    return f"Good: none of {counted(count, 'budget')} is exceeded by more than the noise of this run."


def _standard(record):
    head, scales = record["head"], record["scales"]
    driver = "the CPU driver, which is no GPU" if head["device"]["is_software"] else "the bare driver"
    return (
        f"Compared with the same calls on {driver}, and with budgets scaled to this machine, by "
        f"{report.digits(scales['c'])} for C and {report.digits(scales['python'])} for Python; half of all rounds lie "
        f"within {100 * noise(record):.0f} % of their median."
    )


def _advice(record):
    again = dict.fromkeys(name.partition(" ")[0] for name in exceeded(record) if not name.startswith("all traces"))
    if record["interrupted"]:
        text = interruption(record)
        return f"{text[0].upper()}{text[1:]}: run it to its end before you judge."
    if record["effort"] == "smoke":
        return "Run it without --smoke: these rounds are too short for any figure to mean something."
    if failed(record):
        return "See what l0rt doctor says of this driver, and report the rows that failed."
    if noise(record) > NOISY:
        return "Run it again while the machine does nothing else: with this much noise no figure is sure."
    if again:
        ids = " ".join(f"'{id}'" for id in list(again)[:NAMED])
        return f"Measure those again on their own, on an idle machine: l0rt bench {ids}; report what stays."
    return "Nothing is to be done; a report kept with --json FILE can be compared with later ones: l0rt bench compare."
