# SPDX-License-Identifier: Apache-2.0
"""What Linux knows of a device by its PCI address: the kernel's driver, render node, memory windows."""

import os

_PREFETCHABLE = 0x2000
_MEMORY = 0x200


def facts(address, sysfs="/sys"):
    """Return what is known of the device at ``address``, None for what is not.

    ``kernel_driver``, ``render_node`` and ``card_node`` are names; ``bar_size`` is the window through which the host
    reaches the device's memory, in bytes: as large as that memory where the BAR is resizable and was resized.
    """
    unknown = {"kernel_driver": None, "render_node": None, "card_node": None, "bar_size": None}
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
    }


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
