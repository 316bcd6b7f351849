# SPDX-License-Identifier: Apache-2.0
"""Which packages have what an Intel GPU needs, by distribution: what messages and docs/start.md say of it."""

import os
import re

from l0rt._base.paths import read_file

# What -> its package on Debian 12, 13, and forky (14), as their lists of packages have it; None: there is none.
PACKAGES = {
    "loader": ("libze1", "libze1", "libze1"),
    "driver": ("intel-opencl-icd", None, "libze-intel-gpu1"),
    "compiler": ("libigc1", None, "libigc2"),  # of the driver
    "ocloc": ("intel-opencl-icd", None, "intel-ocloc"),
}
_RELEASES = ("12", "13", "14")
_CODENAMES = {"bookworm": "12", "trixie": "13", "forky": "14", "sid": "14"}
_UNTRIED = "Ubuntu's packages and Intel's own, which have the same names or similar ones, are not tried"


def advice(what: str, root: str = "/") -> str:
    """Return how to install it on this machine; for another distribution than Debian, how on each."""
    names = dict(zip(_RELEASES, PACKAGES[what], strict=True))
    release = _release(root)
    if release is None:
        others = [f"Debian {number}: apt install {name}" for number, name in names.items() if name]
        every = {*names.values()}
        return "; ".join([*([f"Debian: apt install {names['12']}"] if len(every) == 1 else others), _UNTRIED])
    if names[release] is None:
        return f"Debian {release} has no package of it, Debian 14 (forky) has {names['14']}; {_UNTRIED}"
    return f"apt install {names[release]}"


def _release(root):
    """Return the number of Debian's release, None for other systems."""
    try:
        text = read_file(os.path.join(root, "etc/os-release"), 1 << 16).decode(errors="replace")
    except OSError:
        return None
    found = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.MULTILINE))
    if found.get("ID") != "debian":
        return None
    number = found.get("VERSION_ID") or _CODENAMES.get(found.get("VERSION_CODENAME", ""), "14")
    return number if number in _RELEASES else None
