# SPDX-License-Identifier: Apache-2.0
"""`l0rt doctor`: which driver and devices are there, which is used, and if no GPU is seen, why and what to do.

The examination itself opens no driver: child processes do, one for each question, and what ends one of them becomes a
line of the report.
"""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

from rich.text import Text

import l0rt
from l0rt import config
from l0rt._base.paths import known_interpreter, read_file
from l0rt.bench import report
from l0rt.cli import advice
from l0rt.cli.probe import MARK
from l0rt.ze import obstacles, pci, versions

PREFIXES = ("L0RT_", "ZE_", "ZEL_", "ZES_", "ZEX_", "NEO", "ONEAPI_DEVICE_SELECTOR", *report.SIMULATION)
PATIENCE = 60.0  # seconds for a child's answer: a kernel cache that is filled for the first time takes some
LIBRARY_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")
VENDORS = {"0x8086": "Intel", "0x10de": "NVIDIA", "0x1002": "AMD"}

# What l0rt does where a driver cannot do the thing itself.
FALLBACKS = {
    "inorder": "barriers keep the order of each stream",
    "list_sync": "a wait for a stream is a wait for an event at its end",
    "relaxed": "one allocation is no larger than the driver's plain limit",
    "free_ext": "memory is freed once nothing uses it",
    "usable_mem": "free memory comes from other sources, or from l0rt's own accounting",
    "global_ts": "Event.host_time raises UnsupportedError",
    "device_status": "a lost device shows only when a call fails",
    "device_sync": "acc.synchronize leaves out queues that were made beside l0rt and never adopted",
    "init_drivers": "initialised by zeInit",
    "vmm": "memory comes in whole segments, which do not grow",
    "cb_events": "events come from pools",
    "cb_pool": "events are reset before they are recorded anew",
    "event_ipc": "an event cannot be shared with another process",
    "memory_ipc": "memory is copied through host memory to other processes: ipc_handle raises UnsupportedError",
    "range_ipc": "only memory of ordinary segments is shared with other processes",
    "copy_offload": "copies from and to host memory run where their stream's kernels do",
    "graph": "a graph is replayed as command lists of l0rt's own",
    "graph_forks": "a graph of several streams is replayed as command lists of l0rt's own",
    "global_offset": "launches take no global_offset=, and only sizes that their groups divide",
    "mutable_lists": "an update of a node of a graph records the node's command list anew",
    "memmap": "l0rt.memory.register raises UnsupportedError; copies of such memory go through pinned memory",
}


def examine(root="/"):
    """Return everything found, as plain values; ``usable`` is whether some device works.

    The kernel's and the container's files are looked for below ``root``.
    """
    setting, complaint = chosen_driver()
    findings = {
        **report.machine(),
        "kernel": text_of(root, "proc/sys/kernel/osrelease") or os.uname().release,
        "environment": environment(),
        "settings": complaint or config.explain().splitlines(),
        "complaint": complaint,
        "nodes": [node(path, root) for path in sorted(Path(root, "sys/class/drm").glob("renderD*"))],
        "container": obstacles.container(root),
        "wsl": obstacles.is_wsl(root),
        "ptrace_scope": integer(text_of(root, "proc/sys/kernel/yama/ptrace_scope")),
        "cpu_driver": {"path": l0rt.cpu_driver_path(), "there": os.path.exists(l0rt.cpu_driver_path())},
        "gpu": libraries(ask("gpu", "", root)),
        "setting": setting,
        "driver": {"error": complaint} if complaint else ask("driver", setting, root),
        "simulated": report.simulated(),
    }
    findings["trial"] = ask("trial", setting, root) if findings["driver"].get("devices") else {}
    findings["usable"] = usable(findings)
    findings["status"] = advice.status(findings)
    rows = versions.known(advice.facts(findings))
    names = ("code", "component", "what", "remedy", "source")
    findings["known"] = [{name: getattr(row, name) for name in names} for row in rows]
    findings["advice"] = advice.advise(findings)
    return findings


def text_of(root, path):
    """Return the only line of a file, None if it cannot be read."""
    try:
        return read_file(os.path.join(root, path), 1 << 16).decode().strip()
    except (OSError, UnicodeDecodeError):
        return None


def integer(text):
    """Return a whole number, None for another text."""
    return int(text) if text and text.isascii() and text.isdigit() else None


def libraries(gpu):
    """Add the versions of files and packages to the facts of the GPU's libraries: loaders report theirs only while they
    have a driver."""
    for name in ("loader", "intel"):
        library = gpu.get(name)
        if library and "path" in library:
            version = re.search(r"\.so\.([\d.]+)$", library["path"])
            library["file_version"] = version.group(1) if version else None
            library["package"] = package(library["path"])
    intel = gpu.get("intel")
    if intel and "path" in intel:
        build = versions.build_of_file(intel["path"])
        intel["build"], intel["release"] = build, versions.release(build)
    mine = (gpu.get("loader") or {}).get("path")
    if mine:
        own = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if os.path.isabs(folder)]
        gpu["other_loaders"] = [
            {"path": str(path), "version": path.name.partition(".so.")[2]}
            for folder in (*dict.fromkeys(own), *LIBRARY_FOLDERS)
            for path in sorted(Path(folder).glob("libze_loader.so.*.*"))
            if not path.is_symlink() and os.path.realpath(path) != mine
        ]
    return gpu


def package(path):
    """Return the distribution's package that a file belongs to, with its version; None if no package lists it."""
    for tool, words in (("dpkg-query", ["-S"]), ("rpm", ["-qf"])):
        owner = output_of(tool, [*words, path])
        if owner and tool == "rpm":
            return owner
        if owner:
            name = owner.partition(": ")[0].split(",")[0]
            return f"{name} {output_of(tool, ['-W', '-f', '${Version}', name]) or ''}".strip()
    return None


def output_of(tool, words):
    """Return the only line that a program prints; None if it is not there, fails or prints none."""
    try:
        process = subprocess.run([tool, *words], capture_output=True, text=True, errors="replace", timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (process.stdout.strip() or None) if process.returncode == 0 else None


def chosen_driver():
    """Return the value of `L0RT_DRIVER` in force, and what is wrong with the settings, if anything is."""
    try:
        config.explain()
        return config.get("driver"), None
    except ValueError as e:
        return os.environ.get("L0RT_DRIVER") or "auto", str(e)


def environment():
    """Return the variables that l0rt, the loader or Intel's driver look at."""
    return {name: value for name, value in sorted(os.environ.items()) if name.startswith(PREFIXES)}


def node(path, root="/"):
    """Return what the kernel says about a render node, and whether this user may open it."""
    device = Path(root, "dev/dri", path.name)
    entry = {"path": str(device), "there": device.exists(), "usable": obstacles.is_open_to_user(device)}
    try:
        vendor = (path / "device/vendor").read_text().strip()
        entry["vendor"] = VENDORS.get(vendor, vendor)
        entry["pci"] = (path / "device").resolve().name
        entry["device_id"] = int((path / "device/device").read_text(), 16)
    except (OSError, ValueError):
        entry.setdefault("device_id", 0)
    entry["integrated"] = entry.get("pci") == obstacles.INTEGRATED
    if entry.get("pci"):
        linux = pci.facts(entry["pci"], os.path.join(root, "sys"))
        entry["kernel_driver"], entry["bar_size"] = linux["kernel_driver"], linux["bar_size"]
    if entry["there"]:
        status = device.stat()
        entry["mode"] = stat.filemode(status.st_mode)
        entry["group"] = obstacles.group_name(status.st_gid)
        entry["member"] = obstacles.is_member(status.st_gid)
    return entry


def ask(step, driver, root="/"):
    """Let a child process take one step of `l0rt.cli.probe`; return its answer, or ``{"error": what became of it}``."""
    # -c puts the working directory first, which may hold another l0rt: a clone that was not built, say
    code = f"import sys; sys.path[:] = {sys.path}; from l0rt.cli.probe import main; main(*sys.argv[1:])"
    try:
        child = subprocess.run(
            [known_interpreter(), "-c", code, step, driver, os.fspath(root)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"the driver did not answer within {PATIENCE:.0f} seconds"}
    answers = [line.removeprefix(MARK) for line in child.stdout.splitlines() if line.startswith(MARK)]
    answer = json.loads(answers[-1]) if answers else {}
    if child.returncode:
        when = "when the process ended" if answers else "while it was opened and used"
        end = f"{report.end_text(child.returncode)} {when}{last(child.stderr)}"
        answer["crash" if answers else "error"] = f"the driver {end}"
    return answer


def last(text):
    """Return the last line of a text for the end of a sentence."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f": {lines[-1]}" if lines else ""


def usable(findings):
    """Whether at least one device does its work; a driver without hardware can only be believed."""
    states = findings["trial"].get("devices", [])
    return bool(states) and (findings["simulated"] or None in states)


def show(findings, out):
    """Print the findings."""
    machine, gpu = findings["machine"], findings["gpu"]
    pairs = [
        ("l0rt", f"{findings['l0rt']}, Python {findings['python']}"),
        ("machine", f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}"),
        ("driver", used(findings)),
        ("GPU loader", library_text(gpu.get("loader"), gpu)),
        ("GPU driver", library_text(gpu.get("intel"), gpu)),
        ("CPU driver", findings["cpu_driver"]["path"] + ("" if findings["cpu_driver"]["there"] else " (missing)")),
    ]
    pairs += [("node", node_text(each)) for each in findings["nodes"]] or [("node", "no /dev/dri/renderD*")]
    if findings["container"]:
        pairs.append(("container", f"{findings['container']} shows that this is one"))
    if findings["wsl"]:
        pairs.append(("WSL", "/dev/dxg is there"))
    if findings["ptrace_scope"]:
        pairs.append(("ptrace", f"kernel.yama.ptrace_scope is {findings['ptrace_scope']}"))
    pairs += [("environment", f"{name}={value}") for name, value in findings["environment"].items()]
    report.put(out, report.facts(pairs))
    for device in findings["driver"].get("devices", []):
        report.put(out)
        report.put(out, report.facts(device_facts(device, findings)))
    report.put(out)
    for row in findings["advice"]:
        report.put(out, Text(row["text"]))
    states = "A device is usable." if findings["usable"] else "No device is usable."
    report.put(out, Text(states, style="bold green" if findings["usable"] else "bold red"))


def used(findings):
    """Return the driver in use in a line."""
    driver = findings["driver"]
    if "error" in driver:
        return f"none (L0RT_DRIVER={findings['setting']})"
    loader = f", loader {driver['loader']}" if driver["loader"] else ""
    return f"{driver['library']}{loader} (L0RT_DRIVER={findings['setting']})"


def library_text(library, gpu):
    """Return where a library of the GPU's was found."""
    if library is None:
        return f"unknown: {gpu['error']}"
    if "missing" in library:
        return f"not found: {library['missing']}"
    parts = [library["path"], library["version"] and f"version {library['version']}"]
    if library.get("build"):
        parts.append(f"build {library['build']}" + (f" ({library['release']})" if library["release"] else ""))
    elif not library["version"] and library.get("file_version"):
        parts.append(f"version {library['file_version']} by its name")
    parts.append(library.get("package") and f"package {library['package']}")
    return ", ".join(part for part in parts if part)


def node_text(node):
    """Return a render node in a line."""
    parts = [node["path"], node.get("vendor"), node.get("pci"), node.get("kernel_driver")]
    if not node["there"]:
        parts.append("no device file: not handed to this container?")
    else:
        parts += [f"{node['mode']} group {node['group']}", "may be opened" if node["usable"] else "no permission"]
    if node.get("bar_size"):
        parts.append(f"BAR {report.size_text(node['bar_size'])}")
    return ", ".join(part for part in parts if part)


def queues_text(count):
    """Return a number of queues in words."""
    return f"{count} queue" + ("s" if count != 1 else "")


def policy_text(policy):
    """Return in words how memory is taken from the driver."""
    small = f"segments of {report.size_text(policy['small_segment'])} for requests up to 1 MiB"
    if policy["kind"] == "torch":
        return "segments of torch's sizes"
    if policy["kind"] == "fit":
        return f"{small}, segments of their own size for others"
    if policy["moving"]:
        moves = f"from {report.size_text(policy['least_move'])} on, {policy['moving'] / 1e6:.0f} ms and 1 % of the time"
    else:
        moves = f"at most {policy['moves']} mappings at first"
    grow = f"{report.size_text(policy['growth'])} and 1/{policy['growth_share']} of what there is"
    ranges = f"ranges that grow by {grow} at least, moves {moves}"
    return f"{ranges}; {small}" if policy["small_segment"] else ranges


def device_facts(device, findings):
    """Return a device as (label, text): its properties, its capabilities, and what l0rt does for those that it
    lacks."""
    states = findings["trial"].get("devices", [])
    index, capabilities = device["index"], device["capabilities"]
    caveat = report.caveat(device["is_software"])
    lacking = [name for name, there in capabilities.items() if not there]
    if findings["simulated"]:
        state = "cannot be tried: nothing executes"
    elif index < len(states):
        state = states[index] or "works: allocated, filled, copied back"
    else:
        state = "not tried"
    copy = f"copy group {device['copy_ordinal']} ({queues_text(device['copy_queues'])})"
    kinds = [f"{name or 'unnamed'} {report.size_text(size)}" for name, size in device["memory_kinds"]]
    return [
        (f"device {index}", device["name"] + (f" *** {caveat} ***" if caveat else "")),
        ("  trial", state),
        ("  version", f"{device['driver_version']}, API {'.'.join(map(str, device['api_version']))}"),
        ("  PCI", f"{device.get('pci') or 'not reported'}, {'integrated' if device['integrated'] else 'discrete'}"
         + (f", {device['tiles']} tiles" if device["tiles"] > 1 else "")),
        ("  UUID", device["uuid"]),
        ("  memory", f"{report.size_text(device['total_memory'])}, "
         f"at most {report.size_text(device['max_alloc'])} at once ({', '.join(kinds)})"),
        ("  free", f"{report.size_text(device['memory']['free'])}, {device['memory']['source']}"
         + ("" if advice.is_trusted(device["memory"]) else ": not what others use")),
        ("  takes", policy_text(device["allocator"])),
        ("  queues", f"compute group {device['compute_ordinal']} ({queues_text(device['compute_queues'])}), "
         + (copy if device["copy_ordinal"] >= 0 else "no group that only copies")),
        ("  clock", f"{device['timestamp_bits']} bits (kernels: {device['kernel_timestamp_bits']}), "
         f"{device['timer_hz']:,} Hz"),
        ("  can", ", ".join(name for name in capabilities if name not in lacking) or "-"),
        *(("  lacks", f"{name}: {FALLBACKS[name]}") for name in lacking),
        *(("  quirk", f"{name}: {what}. So {mend}. ({source})") for name, what, mend, source in device["quirks"]),
    ]  # fmt: skip
