# SPDX-License-Identifier: Apache-2.0
"""`l0rt bench --plot`: a report as a picture, each row's time next to the bare driver's and to its budget."""

import importlib.util
import os
from typing import Any

from l0rt.bench import report
from l0rt.bench.rows import quartiles
from l0rt.bench.verdict import is_exceeded

SUFFIXES = (".png", ".svg")
MISSING = "--plot needs matplotlib: python -m pip install matplotlib"
OURS, DRIVER, LIMIT, EXCEEDED, GUIDE = "#1f5fa8", "#8a8a8a", "#2b2b2b", "#c62828", "#dddddd"
WIDTH_INCHES, HEAD_INCHES, FOOT_INCHES, ROW_INCHES, TITLE_INCHES = 10.5, 0.95, 0.35, 0.2, 0.42
LEFT, RIGHT = 0.29, 0.96  # of the figure's width: where times are drawn
PIXELS_PER_INCH = 144


class CannotPlot(Exception):
    """No picture can be drawn; the text says why."""


def check(path):
    """Find out before measuring for minutes whether a picture can be drawn."""
    if os.path.splitext(path)[1] not in SUFFIXES:
        raise CannotPlot(f"--plot takes a file whose name ends in {' or '.join(SUFFIXES)}, not {path!r}")
    if importlib.util.find_spec("matplotlib") is None:
        raise CannotPlot(MISSING)


def draw(record, path):
    """Draw a report into a file, .png or .svg."""
    # Here, not above: matplotlib is optional, and loading it takes longer than everything else of `l0rt`.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    suites = _suites(record)
    if not suites:
        raise CannotPlot("nothing was measured that could be drawn")
    height = HEAD_INCHES + FOOT_INCHES + sum(map(_panel_inches, suites.values()))
    figure = Figure(figsize=(WIDTH_INCHES, height), facecolor="white")
    FigureCanvasAgg(figure)
    axes: list = []
    top = height - HEAD_INCHES
    for suite, rows in suites.items():
        bottom = top - _panel_inches(rows)
        size = (LEFT, bottom / height, RIGHT - LEFT, (top - bottom - TITLE_INCHES) / height)
        axes.append(figure.add_axes(size, sharex=axes[0] if axes else None))
        _draw_suite(axes[-1], suite, rows)
        top = bottom
    _label_times(axes)
    times: dict[str, Any] = {"marker": "o", "linewidth": 2, "markersize": 5}
    marks = [
        Line2D([], [], color=OURS, label="l0rt: median, middle half of the rounds", **times),
        Line2D([], [], color=DRIVER, marker="D", linestyle="", markersize=4.5, label="the bare driver, same calls"),
        Line2D([], [], color=LIMIT, marker="|", linestyle="", markersize=10, markeredgewidth=1.6, label="budget"),
        Line2D([], [], color=EXCEEDED, label="budget exceeded, measured twice", **times),
    ]
    inch = 1 / height
    left, top = 0.03, 1 - 0.1 * inch
    head = record["head"]
    device = head["device"]["name"] + (f" ({head['caveat']})" if head["caveat"] else "")
    figure.text(left, top, "Time of one operation", va="top", fontsize=13, weight="bold")
    figure.text(
        left,
        top - 0.28 * inch,
        f"{device}, {head['machine']['cpu']}, l0rt {head['l0rt']}, {head['date'][:10]}, {record['effort']}",
        va="top",
        fontsize=8.5,
        color="#555555",
    )
    figure.legend(
        handles=marks,
        loc="upper left",
        bbox_to_anchor=(left - 0.008, top - 0.44 * inch),
        ncols=len(marks),
        frameon=False,
        fontsize=8.5,
        handletextpad=0.5,
        columnspacing=1.6,
    )
    figure.savefig(path, dpi=PIXELS_PER_INCH)


def _suites(record):
    """Return suite -> rows, of those that were measured."""
    suites: dict[str, list] = {}
    for id, row in record["rows"].items():
        if row.get("ns"):
            suites.setdefault(row["suite"], []).append((id, row))
    return suites


def _panel_inches(rows):
    return TITLE_INCHES + ROW_INCHES * (len(rows) + 0.5)


def _draw_suite(axis, suite, rows):
    for place, (_, row) in enumerate(rows):
        color = EXCEEDED if is_exceeded(row) else OURS
        low, high = quartiles(row["rounds"])
        raw = row.get("raw", {}).get("ns")
        if raw:
            axis.plot([raw, row["ns"]], [place, place], color=GUIDE, linewidth=1.2, zorder=1)
            axis.plot(raw, place, marker="D", color=DRIVER, markersize=4.5, zorder=2)
        if "budget" in row:
            axis.plot(row["budget"], place, marker="|", color=LIMIT, markersize=10, markeredgewidth=1.6, zorder=3)
        axis.plot([low, high], [place, place], color=color, linewidth=2, solid_capstyle="butt", zorder=4)
        axis.plot(row["ns"], place, marker="o", color=color, markersize=5, zorder=5)
        if color == EXCEEDED:
            axis.annotate(
                f"{row['ns'] / row['budget']:.2f} x", (max(high, raw or 0), place), xytext=(7, 0),
                textcoords="offset points", va="center", fontsize=7.5, color=EXCEEDED,
            )  # fmt: skip
    axis.set_xscale("log")
    axis.set_yticks(range(len(rows)), [id for id, _ in rows], fontsize=8, family="monospace")
    axis.set_ylim(len(rows) - 0.25, -0.75)
    axis.text(
        -0.008, 1, suite, transform=axis.transAxes, ha="right", va="bottom", fontsize=10, weight="bold"
    )
    axis.tick_params(axis="both", length=0)
    axis.grid(axis="x", which="major", color="#e6e6e6", linewidth=0.8)
    axis.grid(axis="y", color="#f3f3f3", linewidth=0.8)
    axis.set_axisbelow(True)
    for side in ("top", "right", "left", "bottom"):
        axis.spines[side].set_visible(False)


def _label_times(axes):
    """Label the axis that all share, above and below: 1 ns, 10 ns, 100 ns, 1 µs, and so on."""
    low, high = axes[0].get_xlim()
    ticks = [10.0**power for power in range(-2, 13) if low <= 10.0**power <= high]
    for axis in axes:
        axis.set_xticks(ticks, [_short(tick) for tick in ticks], fontsize=8.5)
        axis.minorticks_off()
        axis.tick_params(axis="x", labeltop=axis is axes[0], labelbottom=axis is axes[-1])


def _short(ns):
    """Return a power of ten as a time without needless digits."""
    text, unit = report.time_text(ns).split()
    return f"{float(text.replace(',', '')):g} {unit}"
