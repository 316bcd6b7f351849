# SPDX-License-Identifier: Apache-2.0
"""Tuning: what `l0rt selftest` measured on a machine, read back as that machine's parameters.

A file is for one kind of device, one build of its driver and one kernel driver; anything else is refused.
"""

from l0rt._base.paths import read_file
from l0rt.ze import quirks as table

FORMAT = 1  # of the self-test's JSON
MOST_BYTES = 1 << 20
IDENTITY = ("vendor_id", "device_id", "build", "kernel_driver")
EVENTS = ("pool", "cb")
SIZES = {"small_segment_size_mb": (2, 1 << 10), "range_growth_mb": (1, 1 << 20), "range_move_mb": (1, 1 << 20)}
STREAMS = (1, 32)
PARAMETERS = ("events", "expandable_segments", "stream_pool_size", *SIZES, "quirks")
QUIRKS = tuple(quirk.name for quirk in table.QUIRKS)


class Tuning:
    """The parameters of a file: ``identity`` of the device, ``settings`` that it has defaults for, ``quirks``."""

    def __init__(self, path, identity, settings, quirks):
        self.path, self.identity, self.settings, self.quirks = path, identity, settings, quirks


def load(path):
    """Read a file that `l0rt selftest --json` wrote; ValueError says what is wrong with it."""
    import json  # an eighth of the import of l0rt, which most programs would pay for nothing

    try:
        found = json.loads(read_file(path, MOST_BYTES).decode())
    except OSError as e:
        raise _wrong(path, f"it cannot be read: {e.strerror or e}") from None
    except (ValueError, RecursionError) as e:
        raise _wrong(path, f"it is no JSON: {e}") from None
    if not isinstance(found, dict) or found.get("report") != "l0rt selftest":
        raise _wrong(path, "it is no report of l0rt selftest")
    if found.get("format") != FORMAT:
        raise _wrong(path, f"its format is {found.get('format')!r}, and this l0rt reads {FORMAT}: run the test anew")
    identity, parameters = found.get("identity"), found.get("parameters")
    if not isinstance(identity, dict) or any(name not in identity for name in IDENTITY):
        raise _wrong(path, f"it does not say which device it is of: expected {', '.join(IDENTITY)}")
    if not isinstance(parameters, dict):
        raise _wrong(path, "it has no parameters")
    settings, quirks = _parameters(path, parameters)
    return Tuning(path, {name: identity[name] for name in IDENTITY}, settings, quirks)


def _parameters(path, parameters):
    """Return the settings and the quirks' switches that a file has, each checked."""
    unknown = sorted(set(parameters) - set(PARAMETERS))
    if unknown:
        raise _wrong(path, f"it has a parameter {unknown[0]!r}: expected {', '.join(PARAMETERS)}")
    settings: dict = {}
    pairs: dict = {}
    if (events := parameters.get("events")) is not None:
        if events not in EVENTS:
            raise _wrong(path, f"events is {events!r}: expected {' or '.join(EVENTS)}")
        settings["events"] = events
    if (ranges := parameters.get("expandable_segments")) is not None:
        if not isinstance(ranges, bool):
            raise _wrong(path, f"expandable_segments is {ranges!r}: expected true or false")
        pairs["expandable_segments"] = ranges
    if (streams := _number(path, parameters, "stream_pool_size", *STREAMS)) is not None:
        settings["stream_pool_size"] = str(streams)
    for name, limits in SIZES.items():
        if (size := _number(path, parameters, name, *limits)) is not None:
            pairs[name] = size
    if pairs:
        settings["alloc_conf"] = ",".join(f"{key}:{value}" for key, value in pairs.items())
    quirks = parameters.get("quirks", {})
    if not isinstance(quirks, dict):
        raise _wrong(path, f"quirks is {quirks!r}: expected names with true or false")
    for name, there in quirks.items():
        if name not in QUIRKS or not isinstance(there, bool):
            raise _wrong(path, f"quirks has {name!r}: {there!r}: expected true or false for {', '.join(QUIRKS)}")
    return settings, quirks


def _number(path, parameters, name, low, high):
    value = parameters.get(name)
    if value is not None and (type(value) is not int or not low <= value <= high):
        raise _wrong(path, f"{name} is {value!r}: expected a whole number from {low} to {high}")
    return value


def check(tuning, identity):
    """ValueError if a device is another one than that of the file."""
    for name, text in zip(IDENTITY, ("vendor", "device", "build of the driver", "kernel driver"), strict=True):
        measured, here = tuning.identity[name], identity[name]
        if measured != here:
            raise _wrong(
                tuning.path,
                f"it was measured with {text} {_shown(name, measured)}, and this is {_shown(name, here)}: "
                "run l0rt selftest here, or choose the devices with ZE_AFFINITY_MASK",
            )


def _shown(name, value):
    return f"{value:#06x}" if name.endswith("_id") and isinstance(value, int) else str(value)


def _wrong(path, why):
    return ValueError(f"L0RT_TUNING={path!r} is not valid: {why}")
