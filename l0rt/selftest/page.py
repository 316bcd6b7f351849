# SPDX-License-Identifier: Apache-2.0
"""What the self-test found: a page to read, a JSON to keep, a block to paste."""

import platform
import re

from rich.table import Table
from rich.text import Text

import l0rt
from l0rt.bench import report
from l0rt.selftest.examination import problems
from l0rt.selftest.parameters import parameters
from l0rt.selftest.questions import BAD, BY_ID, GROUPS
from l0rt.ze import tuning

STYLES = {"works": "green", "absent": "green", "fails": "bold red", "present": "bold red", "lacking": "yellow"}
NAME = "l0rt selftest"


def document(record):
    """Return the report as JSON keeps it: format, identity and parameters are what L0RT_TUNING reads."""
    facts = record["facts"] or {}
    return {
        "report": NAME,
        "format": tuning.FORMAT,
        "l0rt": l0rt.__version__,
        "python": platform.python_version(),
        "system": system(),
        "identity": {name: facts.get(name) for name in tuning.IDENTITY},
        "parameters": parameters(record),
        "problems": problems(record),
        **record,
    }


def system():
    """Return the kernel's name and version, without what its builder added."""
    return f"{platform.system()} {''.join(re.findall(r'^[0-9.]+', platform.release()))}"


def show(record, out):
    """Print the page."""
    report.put(out, report.facts(head(record)))
    for group, title in GROUPS.items():
        ids = [id for id in record["answers"] if BY_ID[id].group == group]
        if ids:
            report.put(out)
            show_group(out, title, ids, record)
    show_rates(out, record["answers"].get("M8", {}).get("figures", {}))
    show_maps(out, record["answers"].get("M2", {}).get("figures", {}))
    report.put(out)
    for sentence, style in summary(record):
        report.put(out, Text(sentence, style=style))
    report.put(out)
    report.put(out, Text("To paste into a report (nothing in it tells who or where you are):", style="bold"))
    report.put(out)
    report.put_lines(out, block(record))


def head(record):
    """Return what was tested, as (label, text)."""
    facts = record["facts"]
    pairs = [("l0rt", f"{l0rt.__version__}, Python {platform.python_version()}, {system()}")]
    if facts is None:
        return pairs
    numbers = f"{facts['vendor_id']:#06x}:{facts['device_id']:#06x}"
    loader = f", loader {facts['loader']}" if facts["loader"] else ""
    bar = report.size_text(facts["bar_size"]) if facts["bar_size"] else "not reported"
    kernel, build = facts["kernel_driver"] or "not reported", facts["build"] or "not reported"
    return [
        *pairs,
        ("device", facts["name"] + (f" *** {facts['caveat']} ***" if facts["caveat"] else "")),
        ("", f"{facts['architecture'] or 'architecture not known'}, {numbers}, {count_text(facts['devices'])} in all"),
        ("driver", f"version {facts['driver_version']}, API {facts['api_version']}{loader}"),
        ("kernel", f"driver {kernel}, build {build}, BAR {bar}"),
        ("memory", f"{report.size_text(facts['total_memory'])}; the test uses at most "
         f"{report.size_text(facts['budget'])}, an eighth of what is free"),
        ("time", f"{record['spent']:.0f} of {record['seconds']:.0f} s"
         + (", dangerous questions included" if record["provoke"] else "")),
    ]  # fmt: skip


def count_text(count):
    """Return a number of devices in words."""
    return f"{count} device" + ("s" if count != 1 else "")


def show_group(out, title, ids, record):
    """Print a group's answers: what was found, then what could not be asked."""
    report.put(out, Text(title, style="bold"))
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    unasked: dict = {}
    for id in ids:
        answer, question = record["answers"][id], BY_ID[id]
        if answer["state"] == "untestable":
            unasked.setdefault(answer["detail"], []).append(id)
            continue
        grid.add_row(Text(id), state_text(id, answer, record), question_text(question, answer))
    if grid.row_count:
        report.put(out, grid)
    for why, those in unasked.items():
        report.put_lines(out, [f"untestable: {', '.join(those)}: {why}"])


def state_text(id, answer, record):
    """Return an answer's word, in the colour that it deserves."""
    word = answer["state"] + (" by rule" if answer["by"] == "rule" else "")
    style = STYLES.get(answer["state"], "")
    if answer["state"] in BAD and id not in problems(record):
        word, style = f"{word}, coped with", "yellow"
    return Text(word, style=style)


def question_text(question, answer):
    """Return the question, and below it what was found."""
    name = f"{question.name}: " if question.name else ""
    has_detail = answer["detail"] and (question.id[0] in "CM" or answer["state"] in BAD or answer["by"] == "rule")
    return Text.assemble(f"{name}{question.text}", (f"\n  {answer['detail']}" if has_detail else "", "dim"))


def show_rates(out, figures):
    """Print the rates of copies, a line for each size."""
    rates = [name.rpartition("_") for name in figures if re.fullmatch(r".*(h2d|d2h|d2d).*_\d+", name)]
    ways = list(dict.fromkeys(way for way, _, _ in rates if "offload" not in way))
    if not ways:
        return
    table = report.table("copies, GB/s", *(way.replace("pinned_", "").replace("_", " ") for way in ways))
    for nbytes in sorted({int(text) for way, _, text in rates if way == ways[0]}):
        row = (figures.get(f"{way}_{nbytes}") for way in ways)
        table.add_row(size(nbytes), *("" if rate is None else f"{rate:.3g}" for rate in row))
    report.put(out)
    report.put(out, table)


def show_maps(out, figures):
    """Print what virtual memory costs, a line for each size."""
    names = ("create", "map", "unmap", "destroy")
    rows = [(mib, state) for mib in (2, 16, 128) for state in ("idle", "busy") if f"map_{mib}MiB_{state}" in figures]
    if not rows:
        return
    table = report.table("virtual memory, µs", *names)
    for mib, state in rows:
        table.add_row(f"{mib} MiB, {state}", *(f"{figures[f'{name}_{mib}MiB_{state}']:.3g}" for name in names))
    report.put(out)
    report.put(out, table)


def size(nbytes):
    """Return a round size."""
    for unit, power in (("MiB", 20), ("KiB", 10)):
        if nbytes >= 1 << power:
            return f"{nbytes >> power} {unit}"
    return f"{nbytes} B"


def summary(record):
    """Return sentences with their style: what is wrong, and what to do."""
    if record["error"]:
        return [(f"The device could not be opened: {record['error']}.", "bold red")]
    answers, wrong = record["answers"], problems(record)
    sentences = []
    for id in wrong:
        question = BY_ID[id]
        what = f"{question.name}, which l0rt does not mend here" if question.name else question.text.rstrip("?")
        advice = f"; L0RT_QUIRKS={question.name}=1 does" if question.name in tuning.QUIRKS else ""
        sentences.append((f"{id} {answers[id]['state']}: {what}{advice}.", "red"))
    tested = [answer for answer in answers.values() if answer["state"] != "untestable"]
    if record["interrupted"]:
        sentences.append(("Interrupted: what is not above was not asked.", "yellow"))
    if wrong:
        sentences.append((f"{len(wrong)} of {len(tested)} answers are bad.", "bold red"))
    elif tested:
        ruled = sum(answer["by"] == "rule" for answer in tested)
        rules = f", {ruled} of them by rule" if ruled else ""
        sentences.append((f"{len(tested)} questions answered{rules}; nothing is wrong that l0rt does not cope with.",
                          "bold green"))  # fmt: skip
    else:
        sentences.append(("Nothing could be asked.", "bold yellow"))
    return sentences


def block(record):
    """Return the lines to paste."""
    facts, answers = record["facts"] or {}, record["answers"]
    lines = [f"--- {NAME} {l0rt.__version__}, format {tuning.FORMAT}, {system()} ---"]
    if facts:
        names = ("name", "vendor_id", "device_id", "architecture", "kernel_driver", "build", "driver_version",
                 "api_version", "loader", "bar_size", "total_memory", "timestamp_bits", "timer_hz")  # fmt: skip
        lines.append("device: " + ", ".join(f"{name}={facts[name]}" for name in names if facts[name] is not None))
        lines.append("lacks: " + (" ".join(n for n, there in facts["capabilities"].items() if not there) or "-"))
        lines.append("mended: " + (" ".join(facts["mended"]) or "-"))
    states: dict = {}
    for id, answer in answers.items():
        word = answer["state"] + (" by rule" if answer["by"] == "rule" else "")
        states.setdefault(word, []).append(id)
    lines += [f"{word}: {' '.join(ids)}" for word, ids in sorted(states.items())]
    lines += [f"{id}: {answers[id]['detail']}" for id in answers if answers[id]["state"] in BAD]
    for id, answer in answers.items():
        if id[0] == "M" and answer["figures"]:
            lines.append(f"{id}: " + " ".join(f"{name}={value}" for name, value in answer["figures"].items()))
    lines.append(f"--- {record['spent']} s ---")
    return lines
