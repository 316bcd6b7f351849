# SPDX-License-Identifier: Apache-2.0
"""`l0rt cache`: what the cache of compiled kernels has, and emptying it; which compiler fills it."""

import time

from l0rt import config
from l0rt.errors import L0Error
from l0rt.kernels import cache, compiler


def examine():
    """Return everything found, as plain values; ``problem`` is why the cache cannot be used, or None."""
    found = {"folder": None, "problem": None, "limit": config.get("cache_size"), "entries": 0, "bytes": 0}
    found["last_use"] = found["oldest_use"] = None
    try:
        folder = cache.Folder(cache.path(), found["limit"])
        found["folder"] = folder.path
        folder.check()
        entries = folder.entries()
        found["entries"], found["bytes"] = len(entries), sum(size for _, size, _ in entries)
        if entries:
            found["oldest_use"], found["last_use"] = entries[0][0], entries[-1][0]
    except cache.Unusable as why:
        found["problem"] = str(why)
    try:
        found["compiler"] = compiler.compiler()._asdict()
        del found["compiler"]["identity"]
        found["no_compiler"] = None
    except L0Error as why:
        found["compiler"], found["no_compiler"] = None, str(why)
    return found


def show(found, out):
    """Print the findings."""
    lines = [("folder", found["folder"] or "none")]
    if found["problem"]:
        lines.append(("unusable", found["problem"]))
    elif not found["limit"]:
        lines.append(("size", f"{told(found['bytes'])} in {found['entries']} entries; switched off: the limit is 0"))
    else:
        lines.append(("size", f"{told(found['bytes'])} of {told(found['limit'])}, in {found['entries']} entries"))
    if found["entries"]:
        lines.append(("used", f"last {ago(found['last_use'])}, the oldest {ago(found['oldest_use'])}"))
    chosen = found["compiler"]
    lines.append(("compiler", f"{chosen['kind']}, {chosen['path']}" if chosen else found["no_compiler"]))
    for name, value in lines:
        out.print(f"{name:10}{value}")


def clear(out):
    """Empty the cache; return whether all that was in it is gone."""
    try:
        folder = cache.Folder(cache.path(), 0)
        folder.check()
        count, nbytes = folder.clear()
    except cache.Unusable as why:
        out.print(f"nothing removed: {why}")
        return False
    left = len(folder.entries())
    out.print(f"{count} files removed, {told(nbytes)}, from {folder.path}{f'; {left} could not be' if left else ''}")
    return not left


def told(nbytes):
    """Return a size as people write it."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if nbytes < 1024 or unit == "GiB":
            return f"{nbytes:.0f} {unit}" if nbytes == int(nbytes) else f"{nbytes:.1f} {unit}"
        nbytes /= 1024
    raise AssertionError


def ago(moment):
    """Return a time as its distance from now."""
    seconds = max(time.time() - moment, 0)
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "less than a minute ago"
