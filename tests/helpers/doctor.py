# SPDX-License-Identifier: Apache-2.0
"""What the doctor is shown: a folder in place of the root, and libraries that play a loader or a driver."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from helpers.cli import l0rt
from helpers.source import ROOT

PAGE = (ROOT / "docs/doctor.md").read_text()
B580, A770, LUNAR_LAKE = 0xE20B, 0x56A0, 0x64A0


def codes(title):
    """Return the codes of a table of the page, with their lines."""
    chapter = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return {found.group(1): found.group(0) for found in re.finditer(r"^\| `(\w+)` \|.*$", chapter, re.MULTILINE)}


class Machine:
    """A folder that stands for the root of a machine; anybody may enter it."""

    def __init__(self, root):
        self.root = root

    def file(self, path, text=""):
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    def gpu(self, address="0000:03:00.0", number=128, driver="xe", device=B580, bar=16 << 30, node=0o666):
        """Put an Intel GPU in: without a kernel driver, or without a node in /dev, if that is None."""
        folder = f"sys/bus/pci/devices/{address}"
        for name, text in (("class", "0x030000"), ("vendor", "0x8086"), ("device", hex(device))):
            self.file(f"{folder}/{name}", text + "\n")
        first = 0x4000000000
        self.file(f"{folder}/resource", f"{first:#x} {first + bar - 1:#x} 0x14220c\n")
        if driver is None:
            return None
        (self.root / "sys/bus/pci/drivers" / driver).mkdir(parents=True, exist_ok=True)
        (self.root / folder / "driver").symlink_to(self.root / "sys/bus/pci/drivers" / driver)
        drm = self.root / "sys/class/drm" / f"renderD{number}"
        (self.root / folder / "drm" / drm.name).mkdir(parents=True)
        drm.mkdir(parents=True)
        (drm / "device").symlink_to(self.root / folder)
        if node is None:
            return None
        made = self.file(f"dev/dri/renderD{number}")
        made.chmod(node)
        return made


@contextmanager
def empty_machine():
    """Yield a machine without anything."""
    with tempfile.TemporaryDirectory(prefix="l0rt-root-") as folder:
        os.chmod(folder, 0o755)
        yield Machine(Path(folder))


def library(folder, source, name, *flags):
    """Compile a shared library to play a part."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    path = folder / name
    words = [compiler, "-shared", "-fPIC", "-x", "c", "-", "-x", "none", "-o", path, f"-Wl,-soname,{name}", *flags]
    subprocess.run(words, input=source, text=True, check=True)
    return path


CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "1"}
A_LOADER = """
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <stdlib.h>
struct version { char name[64]; uint32_t spec; int major, minor, patch; };
int zelLoaderGetVersions(size_t *count, struct version *out) {
  if (out) { strcpy(out->name, "loader"); out->spec = 0; out->major = %d; out->minor = %d; out->patch = %d; }
  *count = 1;
  return 0;
}
int zeInit(uint32_t flags) { return %s; }
"""


def stub(tmp_path, version=(1, 27, 0), answer="0x78000001", driver="libze_intel_gpu.so.1.15.39122"):
    """Libraries of a folder that stand for the loader and Intel's driver; the environment that selects them."""
    library(tmp_path, A_LOADER % (*version, answer), "libze_loader.so.1")
    library(tmp_path, "int nothing;", driver)
    link = tmp_path / "libze_intel_gpu.so.1"
    if not link.exists():
        link.symlink_to(driver)
    return {"LD_LIBRARY_PATH": str(tmp_path)}


@cache
def answered(words, env):
    result = l0rt("doctor", "--json", *words, env=dict(env))
    return result.stdout, result.returncode


def examine(env, root=None):
    """Return what the doctor finds, the codes of its advice, and its exit status. The same question is asked once."""
    words = ("--root", str(root)) if root else ()
    output, status = answered(words, tuple(sorted(env.items())))
    found = json.loads(output)
    return found, [row["code"] for row in found["advice"]], status
