"""The reference page, from the docstrings: ``python tests/helpers/reference.py > docs/reference.md``."""

import inspect
import re

import l0rt
import l0rt.accelerator
import l0rt.config
import l0rt.interface
import l0rt.memory
import l0rt.xpu

HEAD = """# Reference

What each name does, from its docstring. Made by `python tests/helpers/reference.py > docs/reference.md`; a test
compares both.
"""
CLASSES = ("Stream", "Event", "Buffer", "Generator", "device")
MODULES = ("accelerator", "xpu", "memory", "interface", "config")
CONFIG = ("get", "set", "effective", "single", "patch", "explain")


def signature(value):
    try:
        return str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""


def first_paragraph(value):
    text = inspect.getdoc(value) or ""
    text = re.sub(r"^[\w.]+\(.*\)\n+", "", text + "\n")  # Cython writes the signature first
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def entries(owner, names):
    lines = []
    for name in names:
        value = inspect.getattr_static(owner, name) if inspect.isclass(owner) else getattr(owner, name)
        value = getattr(value, "__func__", value)
        if inspect.ismodule(value) or not (callable(value) or inspect.isdatadescriptor(value)):
            continue
        shown = f"{name}{signature(value)}" if callable(value) else name
        lines.append(f"* `{shown}`: {first_paragraph(value)}")
    return lines


def page():
    """Return the whole page."""
    parts = [HEAD]
    for name in CLASSES:
        owner = getattr(l0rt, name)
        members = sorted(member for member in dir(owner) if not member.startswith("_"))
        members = [m for m in members if inspect.getdoc(inspect.getattr_static(owner, m))]
        parts += [f"## `l0rt.{name}{signature(owner)}`\n", first_paragraph(owner) + "\n", *entries(owner, members), ""]
    for name in MODULES:
        module = getattr(l0rt, name)
        names = sorted(getattr(module, "__all__", CONFIG))
        parts += [f"## `l0rt.{name}`\n", first_paragraph(module) + "\n", *entries(module, names), ""]
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")
