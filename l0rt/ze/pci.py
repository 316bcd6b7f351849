# SPDX-License-Identifier: Apache-2.0
"""What Linux knows of a device by its PCI address: the kernel's driver, render node, memory windows."""

import os
import re

_PREFETCHABLE = 0x2000
_MEMORY = 0x200
_TEMPERATURES = {"pkg": "gpu", "vram": "memory"}  # xe's labels


def facts(address, sysfs="/sys"):
    """Return what is known of the device at ``address``, None for what is not.

    ``kernel_driver``, ``render_node`` and ``card_node`` are names; ``bar_size`` is the window through which the host
    reaches the device's memory, in bytes: as large as that memory where the BAR is resizable and was resized.
    ``numa_node`` is the node of the machine that is near the device.
    """
    unknown = {"kernel_driver": None, "render_node": None, "card_node": None, "bar_size": None, "numa_node": None}
    if not address:
        return unknown
    folder = os.path.join(sysfs, "bus/pci/devices", address)
    driver = os.path.join(folder, "driver")
    try:
        nodes = sorted(os.listdir(os.path.join(folder, "drm")))
    except OSError:
        nodes = []
    return {
        "kernel_driver": os.path.basename(os.path.realpath(driver)) if os.path.exists(driver) else None,
        "render_node": _node(nodes, "renderD"),
        "card_node": _node(nodes, "card"),
        "bar_size": _largest_window(os.path.join(folder, "resource")),
        "numa_node": _number(os.path.join(folder, "numa_node")),  # -1 where it is near none
    }


def memory_nodes(sysfs="/sys"):
    """Return the numbers of the machine's nodes that have memory: ``(0,)`` where Linux does not tell of nodes."""
    found: list[int] = []
    for part in (_text(os.path.join(sysfs, "devices/system/node/has_memory")) or "").split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            found += range(int(first), int(last or first) + 1)
    return tuple(found) or (0,)


def kernel_driver(address, sysfs="/sys"):
    """Return the kernel driver of the device at ``address``, None if it is not known.

    ``i915-prelim`` is Intel's out-of-tree i915, which has VM_BIND: it has files that the one in Linux has not.
    """
    found = facts(address, sysfs)
    card = os.path.basename(found["card_node"] or "")
    if found["kernel_driver"] == "i915" and card:
        folder = os.path.join(sysfs, "bus/pci/devices", address, "drm", card)
        if any(name.startswith("prelim_") for name in os.listdir(folder)):
            return "i915-prelim"
    return found["kernel_driver"]


def sensors(address, sysfs="/sys"):
    """Return what the kernel's driver of the device at ``address`` measures; that needs no system management.

    ``temperatures`` is a dict of degrees Celsius by ``gpu``, ``memory`` and ``card``; ``energy`` is in microjoules
    since some time, ``clock`` in MHz; None for what is not there. The files are those of Linux's i915 and xe:
    Documentation/ABI/testing/sysfs-driver-intel-i915-hwmon and sysfs-driver-intel-xe-hwmon.
    """
    warm: dict[str, float] = {}
    energies, clocks = [], []
    folder = os.path.join(sysfs, "bus/pci/devices", address or "none")
    for hwmon in _names(os.path.join(folder, "hwmon")):
        place = os.path.join(folder, "hwmon", hwmon)
        energies.append(_number(os.path.join(place, "energy1_input")))
        for name in _names(place):
            value = _number(os.path.join(place, name)) if re.fullmatch(r"temp\d+_input", name) else None
            if value is not None:
                kind = _TEMPERATURES.get(_text(os.path.join(place, name.replace("_input", "_label"))), "card")
                warm[kind] = max(value / 1000, warm.get(kind, 0))
    for name in _names(os.path.join(folder, "drm")):
        clocks.append(_number(os.path.join(folder, "drm", name, "gt_act_freq_mhz")))
    for tile in (name for name in _names(folder) if name.startswith("tile")):
        gts = (name for name in _names(os.path.join(folder, tile)) if name.startswith("gt"))
        clocks += [_number(os.path.join(folder, tile, gt, "freq0/act_freq")) for gt in gts]
    return {
        "temperatures": warm or None,
        "energy": next((energy for energy in energies if energy is not None), None),
        "clock": max((clock for clock in clocks if clock is not None), default=None),
    }


def _names(folder):
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _text(path):
    """A file's only line; None where it cannot be read, as a sensor of a device that sleeps."""
    try:
        with open(path) as file:
            return file.read(64).strip()
    except (OSError, UnicodeDecodeError):
        return None


def _number(path):
    text = _text(path)
    return int(text) if text and text.isascii() and text.isdigit() else None


def _node(names, kind):
    return next((f"/dev/dri/{name}" for name in names if name.startswith(kind)), None)


def _largest_window(resource):
    """The largest prefetchable memory window in sysfs's table of (first, last, flags); None without one."""
    try:
        with open(resource) as lines:
            rows = [[int(word, 16) for word in line.split()] for line in lines]
    except (OSError, ValueError):
        return None
    wanted = _PREFETCHABLE | _MEMORY
    sizes = [last - first + 1 for first, last, flags in rows if flags & wanted == wanted and last > first]
    return max(sizes, default=None)
