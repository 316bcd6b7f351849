"""What Linux knows of a device by its PCI address: the kernel's driver, render node, memory windows."""

import os
from glob import glob
from pathlib import Path

_PREFETCHABLE = 0x2000
_MEMORY = 0x200


def facts(address, sysfs="/sys"):
    """Return ``{"kernel_driver", "render_node", "bar_size"}`` of the device at ``address``; None for what is unknown.

    ``bar_size`` is the window through which the host reaches the device's memory, in bytes: as large as that memory
    where the BAR is resizable and was resized.
    """
    unknown = {"kernel_driver": None, "render_node": None, "bar_size": None}
    if not address:
        return unknown
    folder = Path(sysfs, "bus/pci/devices", address)
    nodes = sorted(glob(f"{folder}/drm/renderD*"))
    driver = folder / "driver"
    return {
        "kernel_driver": os.path.basename(os.path.realpath(driver)) if driver.exists() else None,
        "render_node": f"/dev/dri/{os.path.basename(nodes[0])}" if nodes else None,
        "bar_size": _largest_window(folder / "resource"),
    }


def _largest_window(resource):
    """The largest prefetchable memory window in sysfs's table of (first, last, flags); None without one."""
    try:
        rows = [[int(word, 16) for word in line.split()] for line in resource.read_text().splitlines()]
    except (OSError, ValueError):
        return None
    wanted = _PREFETCHABLE | _MEMORY
    sizes = [last - first + 1 for first, last, flags in rows if flags & wanted == wanted and last > first]
    return max(sizes, default=None)
