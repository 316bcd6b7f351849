# SPDX-License-Identifier: Apache-2.0
"""The reference page, from the docstrings: ``python tests/helpers/reference.py > docs/reference.md``."""

import ast
import inspect
import re
import textwrap
from functools import partial
from pathlib import Path

import l0rt
import l0rt.accelerator
import l0rt.config
import l0rt.debug
import l0rt.errors
import l0rt.graphs.node
import l0rt.interface
import l0rt.kernels
import l0rt.logs
import l0rt.memory
import l0rt.philox
import l0rt.profiler
import l0rt.sanitizer
import l0rt.xpu

ROOT = Path(__file__).parents[2]
HEAD = """# Reference

Every public name with its docstring. `python tests/helpers/reference.py > docs/reference.md` makes this page from the
docstrings; a test compares both. The C functions of `l0rt.capi` are in [c-api.md](c-api.md).
"""
CLASSES = ("Stream", "Event", "Buffer", "Module", "LocalMemory", "Pointer", "Generator", "device")
MODULES = (
    "accelerator", "xpu", "memory", "interface", "config", "errors", "philox", "kernels", "bench", "profiler", "logs",
    "sanitizer", "debug", "telemetry", "ipc",
)  # fmt: skip
INTEROP = ("dask", "dpctl", "mpi", "ray", "tinygrad/__init__", "torch", "torch_device/__init__", "torch_memory", "worker")  # read as text

# What can have no docstring of its own.
FIELDS = {
    "Buffer.nbytes": "The size in bytes, as it was asked for.",
    "LocalMemory.nbytes": "The size in bytes.",
    "Pointer.address": "The address, an int.",
    "Node.kind": "One of ``kernel``, ``copy``, ``fill``, ``wait`` and ``callback``.",
    "Event.blocking": "Whether a wait for the event sleeps at once instead of spinning first.",
    "Event.enable_timing": "Whether `elapsed_time` and `host_time` work.",
    "Event.interprocess": "Whether another process can wait for the event.",
    "device.index": "The index, None if the name has none.",
    "device.type": "The type, such as ``xpu``.",
    "interface.stream_methods": "The `StreamMethodContainer` that `register_stream_method` fills.",
    "xpu.default_generators": "The default generator of every device, by index; none before the first use.",
}


def signature(value):
    """Return how it is called: without ``self``, which nobody writes."""
    try:
        return re.sub(r"^\(self(, /)?(, )?", "(", str(inspect.signature(value)))
    except (TypeError, ValueError):
        return ""


def paragraphs(text):
    """Return the docstring's paragraphs, each on one line, and its sections, each a list with an entry on each line."""
    text = re.sub(r"^(?:[\w.]+\(.*\)|--)\n+", "", text + "\n")  # Cython writes the signature first
    found = []
    for part in text.strip().split("\n\n"):
        section = re.match(r"(\w+)\n-+\n", part)
        if section and section.group(1) == "Notes":  # prose, and no entries
            found += ["Notes:", " ".join(part[section.end() :].split())]
        elif section:
            entries = re.findall(r"^(\S.*)\n((?:^ .*\n?)*)", part[section.end() :] + "\n", re.MULTILINE)
            lines = [": ".join(filter(None, (_entry(head), " ".join(body.split())))) for head, body in entries]
            found.append("\n".join([f"{section.group(1)}:", "", *(f"- {line}" for line in lines)]))
        else:
            found.append(" ".join(part.split()))
    return [part.replace("|", "\\|") for part in found]


def _entry(head):
    """Return ``name : type`` or an error's name, as the page writes it."""
    name, _, kind = head.partition(" : ")
    return f"`{name}` ({kind})" if kind else f"`{name}`" if name.isidentifier() else name


def told(text, indent=""):
    """Return the lines of a whole docstring; the first line follows what it is about."""
    return "\n\n".join(paragraphs(text)).replace("\n", f"\n{indent}").replace(f"\n{indent}\n", "\n\n")


def public(module):
    """Return the public names of a module: ``__all__``, else what it defines."""
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    return sorted(getattr(module, "__all__", own))


def members(owner):
    """Return the public members of a class."""
    return sorted(name for name in dir(owner) if not name.startswith("_"))


def entries(place, owner, names):
    lines = []
    for name in names:
        value = inspect.getattr_static(owner, name) if inspect.isclass(owner) else getattr(owner, name)
        value = getattr(value, "__func__", value)
        said = FIELDS.get(f"{place}.{name}") or told(inspect.getdoc(value) or "", "  ")
        shown = f"{name}{signature(value)}" if callable(value) else name
        lines.append(f"* `{shown}`: {said}")
    return lines


def with_members(module, known):
    """Return the lines of a module's names. Behind a class that the page has not ``known`` yet come its documented
    members."""
    lines = []
    for name in public(module):
        value = getattr(module, name)
        lines += entries(module.__name__.removeprefix("l0rt."), module, [name])
        if inspect.isclass(value) and not issubclass(value, (BaseException, tuple, *known)):
            known.append(value)
            text = "\n".join(entries(name, value, filter(partial(has_docstring, value), members(value))))
            lines += textwrap.indent(text, "  ").splitlines()
    return lines


def has_docstring(owner, name):
    """Whether a class says what its method or property is: others are told of by the class."""
    value = inspect.getattr_static(owner, name)
    known = inspect.isdatadescriptor(value) or inspect.isroutine(getattr(value, "__func__", value))
    return known and bool(inspect.getdoc(value))


def interop(name):
    """Return the section of a module that is not imported."""
    tree = ast.parse((ROOT / "l0rt/interop" / f"{name}.py").read_text())
    lines = [f"## `l0rt.interop.{name.removesuffix('/__init__')}`\n", told(ast.get_docstring(tree)) + "\n"]
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            arguments = f"({ast.unparse(node.args)})" if isinstance(node, ast.FunctionDef) else ""
            lines.append(f"* `{node.name}{arguments}`: {told(ast.get_docstring(node) or '', '  ')}")
    return [*lines, ""]


def page():
    """Return the whole page."""
    functions = [name for name in l0rt.__all__ if inspect.isroutine(getattr(l0rt, name))]
    parts = [HEAD, "## `l0rt`\n", *entries("l0rt", l0rt, sorted(functions)), ""]
    for name in CLASSES:
        owner = getattr(l0rt, name)
        parts += [f"## `l0rt.{name}{signature(owner)}`\n", told(inspect.getdoc(owner) or "") + "\n"]
        parts += [*entries(name, owner, members(owner)), ""]
    parts += ["## The nodes of a graph\n", told(inspect.getdoc(l0rt.graphs.node.Node)) + "\n"]
    parts += [*entries("Node", l0rt.graphs.node.Node, members(l0rt.graphs.node.Node)), ""]
    known = [l0rt.interface.DeviceInterface, *(getattr(l0rt, name) for name in CLASSES)]
    for name in MODULES:
        module = getattr(l0rt, name)
        parts += [f"## `l0rt.{name}`\n", paragraphs(inspect.getdoc(module))[0] + "\n"]
        parts += [*with_members(module, known), ""]
    for name in INTEROP:
        parts += interop(name)
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")
