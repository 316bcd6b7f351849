# SPDX-License-Identifier: Apache-2.0
"""What Linux's drivers tell of the memory that processes have on a device: fdinfo of open files of DRM.

The keys are those of Documentation/gpu/drm-usage-stats.rst. A *region* is a kind of memory: ``vram0`` of xe and
``local0`` of i915 are the device's own, ``gtt`` and ``system`` are the host's.
"""

import os

ROOT = "/proc"
_UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_OWN = ("vram", "local")  # beginnings of regions that are the device's own memory
_KINDS = ("total", "resident", "memory")  # the last is an older word for resident


def parse(text):
    """Return what the fdinfo of a file tells: ``pdev`` and ``client``, and by ``total`` and ``resident`` dicts of bytes
    by region; None for a file that is not of DRM."""
    names: dict[str, str | None] = {"pdev": None, "client": None}
    sizes: dict[str, dict[str, int]] = {"total": {}, "resident": {}}
    is_drm = False
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if not colon or not key.startswith("drm-"):
            continue
        is_drm, name, value = True, key[4:], value.strip()
        kind, dash, region = name.partition("-")
        if name == "pdev":
            names["pdev"] = value
        elif name == "client-id":
            names["client"] = value
        elif dash and kind in _KINDS and not region.startswith("cycles-"):  # "drm-total-cycles-rcs" is a time
            nbytes = _bytes(value)
            if nbytes is not None:
                sizes["resident" if kind == "memory" else kind].setdefault(region, nbytes)
    return {**names, **sizes} if is_drm else None


def _bytes(value):
    number, _, unit = value.partition(" ")
    if number.isascii() and number.isdigit() and len(number) < 20 and unit in _UNITS:
        return int(number) * _UNITS[unit]
    return None


def clients(address, pid="self"):
    """Return what each client of the device at a PCI address tells, once each, however many files a process has of it.

    ``pid`` is a process, or None for all whose files may be read.
    """
    found = {}
    if not address:
        return []
    for process in [pid] if pid is not None else _names(ROOT):
        if process != "self" and not process.isdigit():
            continue
        folder = os.path.join(ROOT, process)
        for name in _names(os.path.join(folder, "fd")):
            told = _told(folder, name)
            if told is not None and told["pdev"] == address:
                found[told["client"] or (process, name)] = told
    return list(found.values())


def _told(folder, name):
    """What is told of an open file; None where it is not of DRM, or closed by now, or another user's."""
    try:
        if not os.readlink(os.path.join(folder, "fd", name)).startswith("/dev/dri/"):
            return None
        with open(os.path.join(folder, "fdinfo", name), errors="replace") as file:
            return parse(file.read(1 << 16))
    except OSError:
        return None


def _names(folder):
    try:
        return os.listdir(folder)
    except OSError:
        return []


def host_bytes(address):
    """Return how many bytes of the host's memory the clients of this process have on a device; None: it is not told."""
    regions = [told["total"] or told["resident"] for told in clients(address)]
    if not any(regions):
        return None
    return sum(nbytes for told in regions for region, nbytes in told.items() if not region.startswith(_OWN))


def used_bytes(address):
    """Return how many bytes of a device's memory all processes have whose files may be read; None: it is not told.

    Of a device without memory of its own, that is host memory.
    """
    regions = [told["resident"] or told["total"] for told in clients(address, None)]
    if not any(regions):
        return None
    has_own = any(region.startswith(_OWN) for told in regions for region in told)
    return sum(
        nbytes for told in regions for region, nbytes in told.items() if region.startswith(_OWN) or not has_own
    )  # fmt: skip
