# SPDX-License-Identifier: Apache-2.0
"""Obstacles: what stands between this process and an Intel GPU, and what to do about it.

Everything is looked for below a root folder, so that another machine's files, or those of a test, can be examined.
docs/doctor.md lists the codes.
"""

import ctypes
import grp
import os
import pwd
import resource

from l0rt._base.integers import size_text
from l0rt._base.paths import read_file
from l0rt.ze import affinity, loader, pci, quirks
from l0rt.ze.packages import advice

INTEL_DRIVER = "libze_intel_gpu.so.1"
NPU_DRIVER = "libze_intel_npu.so.1"
COMPILERS = ("libigc.so.2", "libigc.so.1")  # of Intel's driver from the end of 2024 on, and before
SMALL_BAR = 256 << 20  # bytes: what a discrete GPU shows of its memory where the BAR is not resized
NO_SUCH_FILE = "cannot open shared object file: No such file"
CGROUPS = ("/docker", "/kubepods", "/lxc", "libpod", "/containerd")
INTEGRATED = "0000:00:02.0"  # where Intel's integrated GPUs are


class Obstacle:
    """What is missing or wrong; ``code`` names it to scripts, ``text`` says it and what to do, without a full stop."""

    def __init__(self, code, text):
        self.code = code
        self.text = text


def first(root="/"):
    """Return the first obstacle between this process and a GPU whose driver did not start."""
    return (
        _library(loader.LOADER, "loader", "the Level Zero loader", root)
        or _library(
            INTEL_DRIVER,
            "driver",
            "the loader is there, but Intel's Level Zero driver",
            root,
        )
        or _no_node(root)
        or _no_access(root)
        or _hidden(root)
        or no_compiler(root)
        or _no_start(root)
    )


def why_no_gpu(root="/"):
    """Return one sentence that names the first thing missing between this process and an Intel GPU, and the mend."""
    return first(root).text


def _library(file, code, what, root):
    """What is wrong with a library; None if it can be loaded."""
    try:
        ctypes.CDLL(file)
    except OSError as e:
        if NO_SUCH_FILE in str(e) and str(e).startswith(file):
            state = "is not" if what.startswith("the loader is there") else "is not installed"
            return Obstacle(f"no_{code}", f"{what} ({file}) {state}: {advice(code, root)}")
        again = f"install it anew; {advice(code, root)}"
        return Obstacle(f"broken_{code}", f"{what} ({file}) cannot be loaded ({e}): {again}")
    return None


def no_compiler(root="/"):
    """Return that Intel's compiler is not installed, None if it is, or if the dynamic linker's list cannot be read.

    It is looked for, not loaded: loaded before the driver's, it would bind to other libraries' functions than with it.
    """
    listed = _bytes(os.path.join(root, "etc/ld.so.cache"))
    folders = [*os.environ.get("LD_LIBRARY_PATH", "").split(":"), os.path.dirname(loader.real_path(loader.LOADER))]
    if listed is None or any(
        name.encode() in listed or any(os.path.isfile(os.path.join(folder, name)) for folder in folders if folder)
        for name in COMPILERS
    ):
        return None
    return Obstacle(
        "no_compiler",
        f"Intel's driver is there, but its compiler ({COMPILERS[0]}) is not: without it there are no kernels, and on "
        "Battlemage, Lunar Lake and newer GPUs the driver ends the process at its start; "
        + advice("compiler", root),
    )


def ends_process(root="/"):
    """Return why the start of Intel's driver will end this process, an Obstacle; None if nothing is known to."""
    folders = [os.path.join(root, "sys/bus/pci/devices", address) for _, address in nodes(root)]
    ids = [_text(os.path.join(folder, "device")) for folder in folders]
    newer = any(quirks.architecture(quirks.INTEL, int(number, 16)) in quirks.NEWER for number in ids if number)
    return no_compiler(root) if newer else None


def nodes(root="/"):
    """Return the render nodes of Intel GPUs as the kernel tells of them, ``(path below root, PCI address)``."""
    found = []
    for name in _names(root, "sys/class/drm"):
        folder = os.path.join(root, "sys/class/drm", name, "device")
        if name.startswith("renderD") and _text(os.path.join(folder, "vendor")) == "0x8086":
            found.append((os.path.join(root, "dev/dri", name), os.path.basename(os.path.realpath(folder))))
    return found


def gpu_nodes(root="/"):
    """Return the paths of the render nodes of Intel GPUs, whether or not they may be opened."""
    return [path for path, _ in nodes(root)]


def container(root="/"):
    """Return what shows that this process is in a container: a file; None if nothing does."""
    for name in (".dockerenv", "run/.containerenv"):
        if os.path.exists(os.path.join(root, name)):
            return f"/{name}"
    for name in ("proc/1/cgroup", "proc/self/cgroup"):
        if any(word in (_text(os.path.join(root, name)) or "") for word in CGROUPS):
            return f"/{name}"
    return None


def is_wsl(root="/"):
    """Whether this is the Windows Subsystem for Linux with the host's GPUs."""
    return os.path.exists(os.path.join(root, "dev/dxg"))


def driverless(root="/"):
    """Return ``(PCI address, device id)`` of Intel's display devices that no kernel driver has taken."""
    found = []
    for address in _names(root, "sys/bus/pci/devices"):
        folder = os.path.join(root, "sys/bus/pci/devices", address)
        is_display = (_text(os.path.join(folder, "class")) or "").startswith("0x03")
        is_intel = _text(os.path.join(folder, "vendor")) == "0x8086"
        if is_display and is_intel and not os.path.exists(os.path.join(folder, "driver")):
            found.append((address, _text(os.path.join(folder, "device")) or "unknown"))
    return found


def _no_node(root):
    if nodes(root):
        return None
    if is_wsl(root):
        return Obstacle(
            "wsl_no_gpu",
            "this is WSL: the Windows host offers no Intel GPU to it (update the Windows graphics driver, then "
            "wsl --update)",
        )
    sign = container(root)
    idle = driverless(root)
    if idle:
        # https://github.com/intel/compute-runtime/issues/610; Linux 6.11 has Battlemage behind xe.force_probe
        listed = ", ".join(f"{address} (device {device})" for address, device in idle)
        return Obstacle(
            "no_kernel_driver",
            f"no kernel driver has taken Intel's GPU at {listed}: load i915 or xe (modprobe), or use a newer Linux "
            "(Alchemist needs 6.2, Battlemage one after 6.11)",
        )
    if sign:
        return Obstacle(
            "container_no_gpu",
            f"this container ({sign}) has no render node: if the host has one in /dev/dri, start the container with "
            "--device /dev/dri --group-add $(stat -c %g /dev/dri/renderD128)",
        )
    return Obstacle(
        "no_gpu", "there is no Intel GPU with a render node (/dev/dri/renderD*) on this machine or in this container"
    )


def _no_access(root):
    """No node may be opened: why the first may not, and of the others that they may not either."""
    paths = gpu_nodes(root)
    absent = [path for path in paths if not os.path.exists(path)]
    if len(absent) == len(paths):
        where = f"this container ({sign})" if (sign := container(root)) else "this process's /dev"
        return Obstacle(
            "node_not_handed",
            f"the kernel has {_listed(absent)}, but {where} has not: start the container with --device /dev/dri",
        )
    if any(is_open_to_user(path) for path in paths):
        return None
    there = [path for path in paths if path not in absent]
    gid = os.stat(there[0]).st_gid
    group = group_name(gid)
    if is_member(gid) and gid not in (os.getegid(), *os.getgroups()):
        return Obstacle(
            "login_again",
            f"no access to {_listed(there)}: the user is in the group {group}, but this process began before that: log "
            f"out and in again, or newgrp {group}",
        )
    if sign := container(root):
        return Obstacle(
            "container_no_permission",
            f"no access to {_listed(there)} in this container ({sign}): start it with --device /dev/dri "
            f"--group-add {gid}",
        )
    return Obstacle(
        "no_permission",
        f"no access to {_listed(there)}: add the user to the group {group} (usermod -aG {group} $USER), log in again",
    )


def hidden_by_mask(there=""):
    """Return that ZE_AFFINITY_MASK hides every device, of a driver that has none; None if there is no mask."""
    mask, _ = affinity.environment()
    if mask is None:
        return None
    return f"ZE_AFFINITY_MASK={mask} hides every device{there}: unset it, or name devices that are there, from 0 on"


def address_space():
    """Return how much of its limit of addresses this process has in use, as a text; None without a limit."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    told = (_text("/proc/self/statm") or "").split()
    used = f": {size_text(int(told[0]) * resource.getpagesize())} are in use" if told else ""
    return f"the process may have only {size_text(limit)} of addresses (ulimit -v){used}"


def _hidden(root):
    """The mask names no device of this machine."""
    paths = gpu_nodes(root)
    try:
        entries = affinity.parse(affinity.environment()[0])
    except ValueError as e:
        return Obstacle("affinity_mask", str(e))
    if entries is None or any(device < len(paths) for device, _ in entries):
        return None
    return Obstacle("affinity_mask", hidden_by_mask(f" ({_listed(paths)})"))


def _no_start(root):
    found = [(path, address) for path, address in nodes(root) if is_open_to_user(path)]
    for path, address in found:
        bar = bar_of(address, root)
        if address != INTEGRATED and bar is not None and bar <= SMALL_BAR:
            return Obstacle(
                "small_bar_no_start",
                f"{path} is there, but the driver did not start on it, and its window to the host is "
                f"{bar >> 20} MiB: enable resizable BAR (and Above 4G Decoding) in the firmware's setup; xe does not "
                "run discrete GPUs without it",
            )
    return Obstacle(
        "no_start",
        f"{found[0][0]} is there, but the driver did not start on it: it may be older than the GPU (install a newer "
        "one), or the kernel's driver has failed (dmesg)",
    )


def bar_of(address, root="/"):
    """Return how much of a device's memory the host sees at once, in bytes; None if it is not known."""
    return pci.facts(address, os.path.join(root, "sys"))["bar_size"]


def is_open_to_user(path):
    """Whether this user may open a node."""
    return os.access(path, os.R_OK | os.W_OK)


def group_name(gid):
    """Return the name of a group, its number if it has none here."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def is_member(gid):
    """Whether the user, as the system's lists have it, belongs to a group; the process may have begun before."""
    try:
        user = pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    try:
        return user.pw_gid == gid or user.pw_name in grp.getgrgid(gid).gr_mem
    except KeyError:
        return user.pw_gid == gid


def _listed(paths):
    return paths[0] if len(paths) == 1 else f"{', '.join(paths[:-1])} and {paths[-1]}"


def _names(root, folder):
    try:
        return sorted(os.listdir(os.path.join(root, folder)))
    except OSError:
        return []


def _text(path):
    content = _bytes(path, 1 << 16)
    return None if content is None else content.decode("utf-8", "replace").strip()


def _bytes(path, most=1 << 26):
    try:
        return read_file(path, most)
    except OSError:
        return None
