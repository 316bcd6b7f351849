# SPDX-License-Identifier: Apache-2.0
"""`l0rt cache`: what the cache of compiled kernels has, and emptying it; which compiler fills it."""

import time

from l0rt import config
from l0rt.errors import L0Error
from l0rt.kernels import cache, compiler


def examine():
    """Return everything found, as plain values; ``problem`` is why the cache cannot be used, or None."""
    facts = {"folder": None, "problem": None, "limit": config.get("cache_size"), "entries": 0, "bytes": 0}
    facts["last_use"] = facts["oldest_use"] = None
    try:
        folder = cache.Folder(cache.path(), facts["limit"])
        facts["folder"] = folder.path
        folder.check()
        entries = folder.entries()
        facts["entries"], facts["bytes"] = len(entries), sum(size for _, size, _ in entries)
        if entries:
            facts["oldest_use"], facts["last_use"] = entries[0][0], entries[-1][0]
    except cache.Unusable as why:
        facts["problem"] = str(why)
    try:
        facts["compiler"] = compiler.compiler()._asdict()
        del facts["compiler"]["identity"]
        facts["no_compiler"] = None
    except L0Error as why:
        facts["compiler"], facts["no_compiler"] = None, str(why)
    return facts


def show(facts, out):
    """Print the findings."""
    lines = [("folder", facts["folder"] or "none")]
    if facts["problem"]:
        lines.append(("unusable", facts["problem"]))
    elif not facts["limit"]:
        lines.append(
            ("size", f"{size_text(facts['bytes'])} in {facts['entries']} entries; switched off: the limit is 0")
        )
    else:
        lines.append(
            ("size", f"{size_text(facts['bytes'])} of {size_text(facts['limit'])}, in {facts['entries']} entries")
        )
    if facts["entries"]:
        lines.append(("used", f"last {ago(facts['last_use'])}, the oldest {ago(facts['oldest_use'])}"))
    compiler = facts["compiler"]
    lines.append(("compiler", f"{compiler['kind']}, {compiler['path']}" if compiler else facts["no_compiler"]))
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
    remaining = len(folder.entries())
    failure = f"; {remaining} could not be" if remaining else ""
    out.print(f"{count} files removed, {size_text(nbytes)}, from {folder.path}{failure}")
    return not remaining


def size_text(nbytes):
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
