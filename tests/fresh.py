# SPDX-License-Identifier: Apache-2.0
"""README's two commands, as a stranger runs them: on bare roots of Debian, with the packages that README names.

What README says is read from it. A root is made by debootstrap once a week and kept; each run has a copy, namespaces
of its own, and this commit. Needs root. Debian's mirror and what pip is told are this machine's.
"""

import argparse
import ast
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from helpers import roots
from helpers.roots import ROOT

README = (ROOT / "README.md").read_text()
SUITES = ["bookworm", "trixie", "forky"]
USERS = ["root", "ordinary"]
COMMANDS = ["first", "second"]
PROXIES = ["http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"]


def settings():
    """Return the variables by which pip there does as pip here, and the files and folders that they name."""
    env = {name: os.environ[name] for each in PROXIES for name in {each, each.upper()} if name in os.environ}
    for line in roots.said(sys.executable, "-m", "pip", "config", "list").splitlines():
        name, value = line.split("=", 1)
        # The environment's come first, and win.
        env.setdefault("PIP_" + name.rpartition(".")[2].upper().replace("-", "_"), ast.literal_eval(value))
    paths = {"/etc/resolv.conf", "/etc/hosts"}
    for word in " ".join(env.values()).split():
        if word.startswith("file:///"):  # an index: the files lie beside it
            paths.add(os.path.dirname(word.removeprefix("file://").rstrip("/")))
        elif word.startswith("/"):
            paths.add(word.rstrip("/"))
    return env, sorted(path for path in paths if path != "/" and os.path.exists(path))


def watched(command):
    """Run it, and show what it says; return its status, its seconds, and the longest time that it said nothing."""
    start = last = time.monotonic()
    silence, text, last_words, before = 0, b"none", b"", b""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
        try:
            while text:
                text, now = os.read(child.stdout.fileno(), 1 << 16), time.monotonic()
                if now - last > silence:
                    silence, before = now - last, last_words
                last, last_words = now, (last_words + text)[-200:]
                sys.stdout.buffer.write(text)
                sys.stdout.flush()
        finally:
            child.kill()  # unshare, which takes all with it
    before = before.decode(errors="replace").rstrip().rpartition("\n")[2]
    return child.returncode, time.monotonic() - start, silence, before


def run(suite, user, commands, packages):
    """Run commands of README in a new root; yield of each step what it is, and what `watched` returns."""
    env, paths = settings()
    archive = roots.bare(suite, packages)
    home = "/root" if user == "root" else f"/home/{user}"
    told = [f"{name}={value}" for name, value in env.items()]
    told += [f"HOME={home}", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
    with tempfile.TemporaryDirectory(dir=roots.CACHE) as root:
        os.chmod(root, 0o755)
        subprocess.run(["tar", "-C", root, "-xpf", archive], check=True)
        roots.show(root, paths)
        roots.said("git", "clone", "-q", "--no-hardlinks", ROOT, f"{root}{home}/l0rt")
        roots.said("chroot", root, "chown", "-R", f"{user}:", f"{home}/l0rt")
        for command in commands:
            for step in command.split(" && "):
                print(f"--- {suite}, {user}: {step}", flush=True)
                inside = ["env", "-i", "-C", f"{home}/l0rt", *told, "sh", "-c", step]
                status, *measured = watched(roots.inside(root, inside, paths, user))
                yield f"{suite}, {user}: {step}", status, *measured
                if status:
                    return


def chosen():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suites", nargs="+", choices=SUITES, default=SUITES)
    parser.add_argument("--users", nargs="+", choices=USERS, default=USERS)
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=COMMANDS)
    parser.add_argument("--one", action="store_true", help="one suite and one user, which turn with the commit")
    options = parser.parse_args()
    pairs = [(suite, user) for suite in options.suites for user in options.users]
    if options.one:
        pairs = [pairs[int(roots.said("git", "rev-parse", "HEAD"), 16) % len(pairs)]]
    return pairs, options.commands


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # an end that leaves nothing behind
    pairs, wanted = chosen()
    packages = re.search(r"`apt install ([^`]*)`", README).group(1).split()
    commands = dict(zip(COMMANDS, re.findall(r"^    (python3 -m venv .*)$", README, re.MULTILINE), strict=True))
    steps = [step for pair in pairs for step in run(*pair, [commands[name] for name in wanted], packages)]
    print("\nseconds  longest silence")
    for what, status, seconds, silence, before in steps:
        print(f"{seconds:7.0f}  {silence:15.0f}  {what}: {f'exit status {status}' if status else 'good'}")
        if silence > 60:
            print(f"{'silent after':>23}  {before!r}")
    sys.exit(any(status for _, status, *_ in steps))


if __name__ == "__main__":
    main()
