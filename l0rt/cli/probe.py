# SPDX-License-Identifier: Apache-2.0
"""What a child process finds out for `l0rt doctor`, which opens no driver itself: opening one may abort or hang."""

import json
import os
import sys
import warnings

import l0rt
import l0rt.accelerator as acc
import l0rt.ze.table as table
from l0rt import config
from l0rt.errors import L0Error
from l0rt.memory import memory_info
from l0rt.runtime.memory.device import memory_policy
from l0rt.runtime.streams import devices
from l0rt.ze import loader, obstacles, pci

MARK = "l0rt-probe:"  # a driver may write to stdout too


def main(step, driver, root="/"):
    """Run one step in this process, and print what it found."""
    config.set("driver", driver or None)
    print("\n" + MARK + json.dumps(STEPS[step](root)), flush=True)


def gpu(root):
    """What there is of a GPU's software, whether or not it is what will be used."""
    facts = {"count": devices.count_without_opening("gpu")}
    for name, file in (("loader", loader.LOADER), ("intel", obstacles.INTEL_DRIVER), ("npu", obstacles.NPU_DRIVER)):
        try:
            library = loader.Library(file)
            facts[name] = {"path": os.path.realpath(library.real_path()), "version": library.loader_version()}
        except OSError as e:
            facts[name] = {"missing": str(e)}
    if not facts["count"]:
        obstacle = obstacles.first(root)
        facts["why"], facts["code"] = obstacle.text, obstacle.code
    return facts


def driver(root):
    """Open the driver in use; return the library and its devices."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that `auto` took the CPU driver is said in the report
        try:
            devices.lazy.init()
        except (L0Error, ValueError) as e:
            # The reason alone: what else to try, the report says itself.
            return {"error": str(e).rpartition(" device was found: ")[2].partition(". L0RT_DRIVER=cpu")[0]}
    return {
        "library": devices.library.real_path(),
        "loader": devices.library.loader_version(),
        "missing": table.missing(),
        "devices": [device(index, os.path.join(root, "sys")) for index in range(devices.device_count())],
    }


def device(index, sysfs):
    """Return what is known about a device, as plain values."""
    values = devices.properties(index)
    values["uuid"] = values["uuid"].hex()
    values["capabilities"] = devices.capabilities(index)
    values["allocator"] = memory_policy(index)
    values["memory"] = memory_info(index)
    values["build"] = devices.identity(index)["build"]
    values["kernel_driver"] = pci.kernel_driver(values["pci"], sysfs)
    values["bar_size"] = pci.facts(values["pci"], sysfs)["bar_size"]
    values["quirks"] = [[each.name, each.what, each.mend, each.source] for each in devices.mended_quirks(index)]
    return {name: value for name, value in values.items() if isinstance(value, (str, int, float, tuple, list, dict))}


def trial(_):
    """Put every device to work once: allocate, fill, copy back, look."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        devices.lazy.init()
    return {"devices": [work(index) for index in range(devices.device_count())]}


def work(index):
    """Return None if the device computes, else what went wrong."""
    back = bytearray(4096)
    try:
        with acc.device_index(index):
            buffer = l0rt.empty(len(back)).fill(7)
            buffer.copy_to(back)
            acc.synchronize()
    except (L0Error, RuntimeError, ValueError) as e:
        return f"{type(e).__name__}: {e}"
    return None if back == bytes([7]) * len(back) else "a fill and a copy brought back the wrong bytes"


STEPS = {"gpu": gpu, "driver": driver, "trial": trial}

if __name__ == "__main__":
    main(*sys.argv[1:])
