# SPDX-License-Identifier: Apache-2.0
"""A page of directives for each public module, from which Sphinx shows every public name with its docstring."""

import importlib
import inspect

MODULES = (
    "accelerator", "xpu", "memory", "interface", "config", "errors", "philox", "kernels", "bench", "profiler", "logs",
    "sanitizer", "debug", "telemetry", "ipc",
)  # fmt: skip
# Without torch_device, whose import compiles it: docs/torch.md has its functions.
INTEROP = ("dask", "dpctl", "mpi", "ray", "tinygrad", "torch", "torch_memory", "worker")
NODE = "l0rt.graphs.node.Node"  # what users get from `Graph.nodes`, and cannot import

# What can have no docstring of its own.
FIELDS = {
    "Buffer.nbytes": "The size in bytes, as it was asked for.",
    "LocalMemory.nbytes": "The size in bytes.",
    "Image.array": "Whether it is an array of images.",
    "Image.format": "The name of the format.",
    "Image.shape": "The extents, a tuple in the order of NumPy's axes.",
    "Sampler.addressing": "What is beyond an image.",
    "Sampler.filter": "``nearest`` or ``linear``.",
    "Sampler.normalized": "Whether coordinates go from 0 to 1.",
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


def directive(path, value, shown):
    """Return the lines that show a name. A class that another page has shown is a reference to it."""
    if inspect.isclass(value) and value in shown:
        return [f".. py:class:: {path}", "", f"   The same as `{shown[value]}`.", ""]
    if inspect.isclass(value):
        shown[value] = path
        kind = "exception" if issubclass(value, BaseException) else "class"
        others = ", ".join(name for name in members(value) if inspect.isclass(inspect.getattr_static(value, name)))
        return [f".. auto{kind}:: {path}", "   :members:", f"   :exclude-members: {others}", ""]
    if callable(value):
        return [f".. autofunction:: {path}", ""]
    return [f".. autodata:: {path}", "   :no-value:", ""]


def page(module, shown):
    """Return the text of a module's page."""
    title = f"``{module.__name__}``"
    lines = [title, "=" * len(title), "", f".. automodule:: {module.__name__}", ""]
    for name in public(module):
        value = getattr(module, name)
        if not inspect.ismodule(value):
            lines += directive(f"{module.__name__}.{name}", value, shown)
    return "\n".join(lines)


def pages():
    """Return the name of each page, a module's, and its text."""
    shown = {}
    found = {name: importlib.import_module(name) for name in ("l0rt", *(f"l0rt.{name}" for name in MODULES))}
    texts = {name: page(module, shown) for name, module in found.items()}
    texts["l0rt"] += f"\n.. autoclass:: {NODE}\n   :members:\n"
    for name in (f"l0rt.interop.{name}" for name in INTEROP):  # which need not be installed: Sphinx imports stand-ins
        texts[name] = f"``{name}``\n{'=' * (len(name) + 4)}\n\n.. automodule:: {name}\n   :members:\n"
    return texts
