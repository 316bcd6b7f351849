# SPDX-License-Identifier: Apache-2.0
"""Advice: what is wrong with what the doctor has found, and what to do; each with a code for scripts.

docs/doctor.md lists every code. Plain values go in and come out.
"""

from l0rt.bench import report
from l0rt.ze import versions

EXIT = {"gpu": 0, "cpu": 0, "none": 1, "broken": 4}
NO_GPU = 3  # with --gpu, where only the CPU driver is usable


def status(findings):
    """Return ``gpu`` if a GPU is usable, ``cpu`` if the CPU driver is, ``none`` if there is no device to use,
    ``broken`` if there is one that does not work."""
    states = findings["trial"].get("devices", [])
    devices = findings["driver"].get("devices", [])
    works = [device for device, state in zip(devices, states, strict=False) if state is None or findings["simulated"]]
    if any(not device["is_software"] for device in works):
        return "gpu"
    if works:
        return "cpu"
    is_absent = not devices and findings["setting"] in ("gpu", "auto") and "error" not in findings["gpu"]
    return "none" if is_absent and findings["gpu"].get("code") in ABSENT else "broken"


# What is not there, in contrast to what is there and does not work.
ABSENT = {"no_loader", "no_driver", "no_gpu", "wsl_no_gpu", "container_no_gpu", "no_kernel_driver", "node_not_handed"}


def exit_status(findings, needs_gpu):
    """Return the exit status: docs/doctor.md has the table."""
    return NO_GPU if needs_gpu and findings["status"] == "cpu" else EXIT[findings["status"]]


def facts(findings):
    """Return the `l0rt.ze.versions.Facts` of what was found."""
    gpu, driver = findings["gpu"], findings["driver"]
    loader, intel = gpu.get("loader") or {}, gpu.get("intel") or {}
    cards = [device for device in driver.get("devices", []) if not device["is_software"]]
    gpus = [(device["device_id"], device.get("kernel_driver"), not device["integrated"]) for device in cards]
    if not cards:
        gpus = [(node["device_id"], node.get("kernel_driver"), not node["integrated"])
                for node in findings["nodes"] if node.get("vendor") == "Intel"]  # fmt: skip
    build = next((device["build"] for device in cards if device.get("build")), 0)
    version = versions.numbers(loader.get("version") or loader.get("file_version"))
    others = [
        (other["path"], other["version"])
        for other in gpu.get("other_loaders", [])
        if version and (versions.numbers(other["version"]) or ()) > version
    ]
    return versions.Facts(
        loader=version,
        build=build or versions.build_of_file(intel.get("path")),
        kernel=versions.numbers(findings["kernel"]),
        gpus=gpus,
        has_npu="path" in (gpu.get("npu") or {}),
        is_wsl=findings["wsl"],
        validates=findings["environment"].get("ZE_ENABLE_VALIDATION_LAYER", "0") != "0",
        path=loader.get("path") or "",
        others=others,
    )


def advise(findings):
    """Return ``[{"code", "text"}]``: what is wrong and what to do."""
    rows = []

    def say(code, text):
        rows.append({"code": code, "text": text})

    gpu, driver = findings["gpu"], findings["driver"]
    why, error = gpu.get("why") or "?", driver.get("error")
    if findings["complaint"]:
        say("bad_setting", f"No driver could be used: {error}.")
    elif error and not error.startswith(why):
        say("driver_unusable", f"No driver could be used: {error}.")
    if "error" in gpu:
        say("gpu_search_failed", f"Looking for a GPU failed: {gpu['error']}.")
    elif not gpu["count"]:
        say(gpu["code"], f"No GPU is seen: {why}.")
        if error and error.startswith(why + " ("):
            say("driver_says", f"{error[len(why) + 2 : -1]}.")
    if driver.get("devices") and all(device["is_software"] for device in driver["devices"]):
        say("cpu_driver", "The bundled CPU driver is used. It is complete, but it is not a GPU.")
    if findings["simulated"]:
        say("simulated", "NEOReadDebugKeys and SetCommandStreamReceiver are set: Intel's driver executes nothing.")
    if not findings["cpu_driver"]["there"]:
        say("no_cpu_driver", "The bundled CPU driver is missing: install l0rt with a C compiler at hand.")
    elif findings["status"] in ("none", "broken") and findings["setting"] not in ("auto", "cpu"):
        say("try_cpu_driver", "L0RT_DRIVER=cpu runs on the bundled CPU driver, which is not a GPU.")
    for answer in (driver, findings["trial"]):
        if "crash" in answer:
            say("crash_at_exit", f"At exit: {answer['crash']}.")
    if "error" in findings["trial"]:
        say("no_trial", f"The devices could not be tried: {findings['trial']['error']}.")
    for device, state in zip(driver.get("devices", []), findings["trial"].get("devices", []), strict=False):
        if state is not None and not findings["simulated"]:
            say("trial_failed", f"Device {device['index']} failed its trial: {state}.")
    for device in driver.get("devices", []):
        _about_device(device, findings, say)
    for each in findings["known"]:
        say(each["code"], f"{each['what'][0].upper()}{each['what'][1:]}: {each['remedy']} ({each['source']}).")
    return rows


def _about_device(device, findings, say):
    bar, total = device.get("bar_size"), device["total_memory"]
    if bar is not None and not device["integrated"] and bar < total // 2:
        say("small_bar",
            f"Device {device['index']}: the host sees {report.size_text(bar)} of {report.size_text(total)} at once: "
            "enable resizable BAR (and Above 4G Decoding) in the firmware's setup; without it copies are slower, large "
            "allocations may be refused, and xe does not run the card at all.")  # fmt: skip
    scope = findings["ptrace_scope"]
    if scope and not device["is_software"] and device["capabilities"].get("memory_ipc"):
        say("ptrace_scope",
            f"kernel.yama.ptrace_scope is {scope}: the driver may refuse to share memory between processes that are "
            "not parent and child; sysctl kernel.yama.ptrace_scope=0, or prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY) in "
            "the process that exports.")  # fmt: skip
    if not device["is_software"] and not is_trusted(device["memory"]):
        say("free_memory_estimated",
            f"Device {device['index']}: the driver does not report how much memory is free, so l0rt takes off what "
            "this process uses; what others use is not seen. Intel's driver 26.18 or newer reports it, or "
            "CAP_PERFMON.")  # fmt: skip


def is_trusted(memory):
    """Whether the source of the free memory, as `l0rt.memory.memory_info` has it, knows of all memory in use."""
    trust = memory.get("trust")
    return "this process" not in memory["source"] if trust is None else bool(trust)
