# SPDX-License-Identifier: Apache-2.0
"""Bare roots of Debian, which debootstrap makes, and commands inside them."""

import os
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "l0rt-fresh"
KEPT = 7 * 24 * 3600  # seconds: later, a suite may have another Python
# The first process of its namespace, which takes in what others leave: the kernel kills all when it ends.
INSIDE = """
root=$1 user=$2 temporary=$3; shift 3
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
[ -z "$temporary" ] || mount --bind "$temporary" "$root/tmp"
while [ "$1" != -- ]; do mount --bind -o ro "$1" "$root$1"; shift; done
shift
chroot --userspec="$user:$user" "$root" "$@" </dev/null
exit $?
"""


def said(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout.strip()


def mirror():
    """Return the address of Debian, and the variables that name apt's proxies."""
    subprocess.run(["apt-get", "update", "-q"], check=True)
    if not shutil.which("debootstrap"):
        subprocess.run(["apt-get", "install", "-y", "-q", "debootstrap"], check=True)
    found = said("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian")
    proxies = said("apt-config", "shell", "http_proxy", "Acquire::http::Proxy", "https_proxy", "Acquire::https::Proxy")
    return found.split()[0], dict(word.split("=", 1) for word in shlex.split(proxies))


def bare(suite, packages):
    """Return an archive of a root of this suite with these packages and a user; make it if there is none of late."""
    kept = CACHE / f"{suite}-{'-'.join(packages)}.tar"
    if kept.exists() and time.time() - kept.stat().st_mtime < KEPT:
        return kept
    CACHE.mkdir(parents=True, exist_ok=True)
    address, proxies = mirror()
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        root = Path(folder, "root")
        # By sid's script, which makes every later suite too: this machine's debootstrap may not know it by name.
        what = ["--variant=minbase", f"--include={','.join(packages)}", suite, root, address, "sid"]
        subprocess.run(["unshare", "--mount", "debootstrap", *what], check=True, env={**os.environ, **proxies})
        subprocess.run(["chroot", root, "useradd", "--create-home", "ordinary"], check=True)
        archive = Path(folder, "root.tar")
        subprocess.run(["tar", "-C", root, "--exclude=./var/cache/apt/*", "-cf", archive, "."], check=True)
        archive.rename(kept)
    return kept


def unpacked(suite, packages):
    """Return a folder with such a root, which all that run in it share: what they write, a later one may find."""
    archive = bare(suite, packages)
    root = archive.with_suffix("")
    if not root.exists() or root.stat().st_mtime < archive.stat().st_mtime:
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            fresh = Path(folder, "root")
            fresh.mkdir()
            subprocess.run(["tar", "-C", fresh, "-xpf", archive], check=True)
            os.utime(fresh)  # tar has set the archive's own
            if root.exists():
                shutil.rmtree(root)
            fresh.rename(root)
    return root


def show(root, paths):
    """Make what `inside` mounts these files and folders on."""
    for path in paths:
        point = Path(f"{root}{path}")
        point.parent.mkdir(parents=True, exist_ok=True)
        point.mkdir(exist_ok=True) if os.path.isdir(path) else point.touch()


def inside(root, command, paths=(), user="root", temporary=""):
    """Return the command that runs another one in a root, which sees these paths, with ``temporary`` as its /tmp."""
    namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-ec", INSIDE, "inside"]
    return [*namespaces, root, user, temporary, *paths, "--", *command]
