# SPDX-License-Identifier: Apache-2.0
"""Settings by dotted path. A value comes from `set`, from the environment, or from the node above.

A path ends in a setting's name; before it stands what the setting is for, the device type first:
``xpu.matmul.fp32_precision``, or one device: ``xpu:1.wait_policy``. The value ``"none"`` inherits: `effective` looks
the name up one level higher, so a change above reaches every node that was not set itself. docs/settings.md lists every
node.
"""

from __future__ import annotations

import builtins
import os
import re
from collections import ChainMap
from contextlib import contextmanager

from l0rt._base.integers import parse_size, whole_number
from l0rt.config import alloc_options

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Set
    from typing import Any

    from l0rt.config.alloc_options import AllocConf

__all__ = ["effective", "explain", "get", "patch", "set", "single"]

# What `disable` may name: each is a field of ze/caps' record that some code looks at.
CAPABILITIES: tuple[str, ...] = (
    "inorder",
    "list_sync",
    "cb_events",
    "cb_pool",
    "vmm",
    "relaxed",
    "free_ext",
    "memmap",
    "usable_mem",
    "global_ts",
    "init_drivers",
    "device_status",
    "device_sync",
    "event_ipc",
    "memory_ipc",
    "range_ipc",
    "copy_offload",
    "global_offset",
    "mutable_lists",
    "graph",
    "graph_forks",
)
QUIRKS = (
    "unflushed_counters",
    "no_vm_bind",
    "untyped_mappings",
    "raw_event_handles",
    "racing_maps",
    "racing_queries",
    "outlasting_waits",
    "single_device_imports",
    "cached_imports",
    "peer_counters",
    "unordered_lists",
    "raw_memory_handles",
    "early_graphs",
    "unjoined_captures",
    "listed_symbols",
    "fatal_enqueues",
    "uncounted_signals",
    "fast_link",
)
PAGE: str = "docs/settings.md"
_DEVICE_TYPE = "xpu"


def _driver(text):
    if text.lower() in ("gpu", "cpu", "auto"):
        return text.lower()
    if "/" in text:
        return text
    raise ValueError("gpu, cpu, auto, or a library's path (with a / in it)")


def _pool_size(text):
    if text.isascii() and text.isdigit() and 1 <= int(text) <= 32:
        return int(text)
    raise ValueError("a whole number from 1 to 32")


def _alloc_conf(text):
    try:
        return alloc_options.parse(text)
    except ValueError as wrong:
        raise ValueError(f"key:value pairs after commas: {wrong}") from None


def _switch(text):
    if text in ("0", "1"):
        return text == "1"
    raise ValueError("0 or 1")


def _folder(text):
    if "\0" in text:
        raise ValueError("a folder's path")
    return text


def _one_of(*words):
    def parse(text):
        if text in words:
            return text
        raise ValueError(f"one of {', '.join(words)}")

    return parse


def _allocator_key(key):
    def parse(text):
        try:
            return text if text == "none" else alloc_options.value(key, text)
        except ValueError as allowed:
            raise ValueError(f"none, or {allowed}") from None

    return parse


def _words(*words, prefix=""):
    """Each word may begin with ``prefix``, which says nothing here."""

    def parse(text):
        entries = frozenset(word.strip().removeprefix(prefix) for word in text.split(",") if word.strip())
        if not entries.issubset(words):
            raise ValueError("a comma-separated list of " + ", ".join(words))
        return entries

    return parse


def _switches(*names):
    def parse(text):
        entries = [entry.strip().partition("=") for entry in text.split(",") if entry.strip()]
        if any(name not in names or value not in ("0", "1") for name, _, value in entries):
            raise ValueError(f"name=0 or name=1, more of them after commas, of {', '.join(names)}")
        return {name: value == "1" for name, _, value in entries}

    return parse


class _Setting:
    def __init__(self, env, parse, default):
        self.env = env
        self.parse = parse  # text -> value; ValueError says what is allowed
        self.default = default
        self.frozen = False  # read by the running process: a change would come too late
        self.text = None  # what set() was given


_SETTINGS = {
    "driver": _Setting("L0RT_DRIVER", _driver, "gpu"),
    "disable": _Setting("L0RT_DISABLE", _words(*CAPABILITIES), ""),
    "quirks": _Setting("L0RT_QUIRKS", _switches(*QUIRKS), ""),
    "alloc_conf": _Setting("L0RT_ALLOC_CONF", _alloc_conf, ""),
    "no_memory_caching": _Setting("L0RT_NO_MEMORY_CACHING", _switch, "0"),
    "copy_threads": _Setting("L0RT_COPY_THREADS", _one_of("auto", "1", "2", "3", "4"), "auto"),
    "stream_pool_size": _Setting("L0RT_STREAM_POOL_SIZE", _pool_size, "32"),
    "logs": _Setting("L0RT_LOGS", _words("alloc", "event", "init", "kernel", "stream", prefix="+"), ""),
    "sanitize": _Setting("L0RT_SANITIZE", _words("stream"), ""),
    "itt": _Setting("L0RT_ITT", _switch, "0"),
    "oom_snapshot": _Setting("L0RT_OOM_SNAPSHOT", str, ""),
    "leak_report": _Setting("L0RT_LEAK_REPORT", str, ""),
    "monitor": _Setting("L0RT_MONITOR", _switch, "0"),
    "lazy_init": _Setting("L0RT_LAZY_INIT", _one_of("0", "1"), "1"),
    "tuning": _Setting("L0RT_TUNING", str, ""),
    "integrated": _Setting("L0RT_INTEGRATED", _one_of("keep", "hide"), "keep"),
    "events": _Setting("L0RT_EVENTS", _one_of("auto", "pool", "cb"), "auto"),
    "compiler": _Setting("L0RT_COMPILER", _one_of("auto", "ocloc", "zig"), "auto"),
    "cache_dir": _Setting("L0RT_CACHE_DIR", _folder, ""),
    "cache_size": _Setting("L0RT_CACHE_SIZE", parse_size, "1GiB"),
}
_listeners: list[tuple[Callable[..., Any], Any]] = []
_tuned: dict = {}  # what was measured on this machine: in place of defaults, behind all that is set

# The names that inherit: what their values are, where they stand for every device type, and where for each (*).
_INHERITED = {
    "fp32_precision": (_one_of("ieee", "tf32", "bf16", "none"), ("", "*.", "*.matmul.", "*.conv.", "*.rnn.")),
    "wait_policy": (_one_of("block", "yield", "spin", "none"), ("", "*.", "*.stream.", "*.event.")),
    "copy_engine": (_one_of("auto", "compute", "none"), ("", "*.", "*.h2d.", "*.d2h.")),
    **{key: (_allocator_key(key), ("allocator.", "*.allocator.")) for key in alloc_options.KEYS},
}
# Those that no single device has: pinned memory is of all of them, and one byte fills whatever is allocated.
_OF_PROCESS = {key for key in alloc_options.KEYS if key.startswith("pinned_")} | {"fill_uninitialized"}
for _name, (_parse, _places) in _INHERITED.items():
    for _place in _places:
        if "*" not in _place:
            _SETTINGS[_place + _name] = _Setting(None, _parse, "none")


def _tree(device_type):
    return {
        place.replace("*", device_type) + name: _Setting(None, parse, "none")
        for name, (parse, places) in _INHERITED.items()
        for place in places
        if "*" in place
    }


_SETTINGS.update(_tree(_DEVICE_TYPE))
_registered: dict[str, Any] = {}  # the nodes of the other device types, and those of single devices that were set
_NODES = ChainMap(_SETTINGS, _registered)
_types = [_DEVICE_TYPE]


def add_device_type(name: str) -> None:
    """Give the device type ``name`` its nodes; ValueError if settings of another kind have that name."""
    if name in _types:
        return
    if name in {path.partition(".")[0] for path in _SETTINGS}:
        raise ValueError(f"{name!r} is a setting's name, and no device type's")
    _registered.update(_tree(name))
    _types.append(name)


def _of_type(path):
    """Return the path of the same node for every device of the type; None if ``path`` is no node of one device."""
    owner, _, rest = path.partition(".")
    type, _, index = owner.partition(":")
    if type not in _types or not re.fullmatch("0|[1-9][0-9]{0,4}", index) or f"{type}.{rest}" not in _NODES:
        return None
    name = rest.rpartition(".")[2]
    return f"{type}.{rest}" if name in _INHERITED and name not in _OF_PROCESS else None


def _find(path, keeps=False):
    """Return a node. One of a single device exists since it was set; ``keeps`` makes it."""
    if isinstance(path, str) and path in _NODES:
        return _NODES[path]
    if isinstance(path, str) and (common := _of_type(path)) is not None:
        setting = _Setting(None, _NODES[common].parse, "none")
        if keeps:
            _registered[path] = setting
        return setting
    near = alloc_options.nearest(path, list(_NODES)) if isinstance(path, str) else None
    hint = f" (did you mean {near!r}?)" if near else ""
    raise ValueError(f"no setting {path!r}{hint}; the settings are {', '.join(sorted(_NODES))}")


def _parsed(setting, text, name):
    try:
        return setting.parse(text)
    except ValueError as allowed:
        raise ValueError(f"{name}={text!r} is not valid: expected {allowed}") from None


def _takes_bool(setting):
    try:
        return setting.parse("True") is True
    except ValueError:
        return False


def get(path: str) -> Any:
    """Return the value of ``path`` itself: the value of `set`, else of its environment variable, else its default.

    Parameters
    ----------
    path : str
        The setting, such as ``xpu.stream.wait_policy``.

    Returns
    -------
    object

    Raises
    ------
    ValueError
        There is no such setting.
    """
    setting = _find(path)
    if setting.text is not None:
        return _parsed(setting, setting.text, path)
    from_env = os.environ.get(setting.env) if setting.env else None
    if from_env:
        return _parsed(setting, from_env, setting.env)
    return _parsed(setting, _tuned.get(path, setting.default), path)


def _chain(path):
    """The path and the nodes above it that have the same name, nearest first; above a device is its type, and above a
    device type is every type."""
    *places, name = path.split(".")
    above = [".".join([*places[:depth], name]) for depth in range(len(places), -1, -1)]
    if (common := _of_type(path)) is not None:
        return [node for node in above[:-1] if _of_type(node) is not None] + _chain(common)
    if len(places) > 1 and places[0] in _types:
        above.append(".".join([*places[1:], name]))
    return [node for node in above if node in _NODES]


def effective(path: str) -> Any:
    """Return the value in effect at ``path``: its own value, or the nearest value above it if its own is ``"none"``.

    Parameters
    ----------
    path : str
        The setting, such as ``xpu.stream.wait_policy``.

    Returns
    -------
    object

    Raises
    ------
    ValueError
        There is no such setting.
    """
    _find(path)
    return next((value for value in map(get, _chain(path)) if value != "none"), get(path))


def indices_set(device_type: str = _DEVICE_TYPE) -> Set[int]:
    """Return the indices of the devices of a type that have settings of their own."""
    owners = {path.partition(".")[0] for path in list(_registered)}
    return {int(owner.partition(":")[2]) for owner in owners if owner.startswith(f"{device_type}:")}


def _allocator_nodes(device_type, index):
    own = device_type if index is None else f"{device_type}:{index}"
    owners = {key: device_type if key in _OF_PROCESS else own for key in alloc_options.KEYS}
    return {key: effective(f"{owner}.allocator.{key}") for key, owner in owners.items()}


def alloc_conf(device_type: str = _DEVICE_TYPE, index: int | None = None) -> AllocConf:
    """Return how a device type's allocators are to behave, or one device's: ``alloc_conf``, but what a node of its own
    says."""
    nodes = _allocator_nodes(device_type, index)
    conf = get("alloc_conf")
    setting = _SETTINGS["alloc_conf"]
    if device_type == _DEVICE_TYPE and "alloc_conf" in _tuned and setting.text is None:
        text = os.environ.get(setting.env) or ""
        measured = alloc_options.parse(_tuned["alloc_conf"])
        keys = {pair.partition(":")[0].strip() for pair in _tuned["alloc_conf"].split(",")}
        conf = conf._replace(**{key: getattr(measured, key) for key in keys if f"{key}:" not in text.replace(" ", "")})
    return conf._replace(**{key: value for key, value in nodes.items() if value != "none"})


def alloc_conf_keys(device_type: str = _DEVICE_TYPE, measured: bool = True, index: int | None = None) -> Set[str]:
    """Return the keys that a device type's allocators, or one device's, were configured by, or were set by measuring;
    all others have defaults."""
    setting = _SETTINGS["alloc_conf"]
    texts = [setting.text if setting.text is not None else os.environ.get(setting.env) or ""]
    if measured and device_type == _DEVICE_TYPE and setting.text is None:
        texts.append(_tuned.get("alloc_conf", ""))
    named = {pair.partition(":")[0].strip() for text in texts for pair in text.split(",")}
    nodes = _allocator_nodes(device_type, index)
    return {key for key, value in nodes.items() if key in named or value != "none"}


def is_measured(key):
    """Return whether a key of the allocators' configuration has its value from a measurement on this machine."""
    return key in alloc_conf_keys() and key not in alloc_conf_keys(measured=False)


def tune(values):
    """Take what was measured on this machine in place of defaults: path -> text, all of it or, with {}, nothing."""
    _tuned.clear()
    _tuned.update(values)


def on_change(listener, names=None):
    """Call ``listener()`` after every change of a setting, or of one whose path ends in one of ``names``."""
    _listeners.append((listener, names))


def _notify(paths):
    changed = {path.rpartition(".")[2] for path in paths}
    for listener, names in _listeners:
        if names is None or changed & names:
            listener()


def single(name: str) -> Any:
    """Return the value in effect at ``name`` and at all nodes below it, if it is the same everywhere.

    The nodes below ``xpu.fp32_precision`` are all ``fp32_precision`` nodes under ``xpu``.

    Parameters
    ----------
    name : str
        A path such as ``xpu.fp32_precision``.

    Returns
    -------
    object

    Raises
    ------
    RuntimeError
        The values of the nodes differ.
    ValueError
        There is no such setting.
    """
    _find(name)
    nodes = list(_NODES)
    if _of_type(name) is not None:
        owner, type = name.partition(".")[0], name.partition(":")[0]
        nodes = [f"{owner}.{path.partition('.')[2]}" for path in nodes if path.partition(".")[0] == type]
    values = {path: effective(path) for path in nodes if name in _chain(path)}
    if len(builtins.set(values.values())) > 1:
        text = ", ".join(f"{path} = {value}" for path, value in sorted(values.items()))
        raise RuntimeError(f"{name} has no single value: {text}. Ask for one of these nodes; they are listed in {PAGE}")
    return values[name]


def set(path: str, value: str | float | None) -> None:
    """Set the value of the setting ``path``.

    Parameters
    ----------
    path : str
        The setting, such as ``xpu.stream.wait_policy``.
    value : object
        The value. None takes the environment variable, or the default.

    Raises
    ------
    ValueError
        The setting or the value is not valid. The message lists the valid ones.
    """
    setting = _find(path, keeps=True)
    if hasattr(value, "__index__") and not isinstance(value, bool):
        value = whole_number(value, path)
    if not (value is None or isinstance(value, (str, int, float))) or (
        isinstance(value, bool) and not _takes_bool(setting)
    ):
        raise TypeError(f"{path} takes a str or a number, not {type(value).__name__}")
    text = None if value is None else str(value)
    if text is not None:
        _parsed(setting, text, path)
    if setting.frozen and text != setting.text:
        raise RuntimeError(f"{path} cannot change any more: the driver is already open (set it before first use)")
    setting.text = text
    _notify([path])


def freeze(*paths: str) -> None:
    """Refuse changes of these settings from now on: they have been read."""
    for path in paths:
        _find(path).frozen = True


@contextmanager
def patch(values: dict[str, str | float | None]) -> Iterator[None]:
    """Set several settings inside a with block.

    Parameters
    ----------
    values : dict of str to object
        The settings and their values.

    Returns
    -------
    context manager

    Raises
    ------
    ValueError
        A setting or a value is not valid. Then no setting is changed.
    """
    if not isinstance(values, dict):
        raise TypeError(f"patch() takes a dict of path to value, not {type(values).__name__}")
    before = {path: _find(path).text for path in values}
    try:
        for path, value in values.items():
            set(path, value)
        yield
    finally:
        for path, text in before.items():
            _find(path).text = text
        _notify(before)


def explain() -> str:
    """Return one line for each setting: its path, the value in effect, and the source of that value.

    Device types other than the built-in one appear only with settings that have a value of their own.

    Returns
    -------
    str
    """
    lines = []
    for path in sorted(_NODES):
        if path in _registered and _NODES[path].text is None:
            continue
        node = next((node for node in _chain(path) if get(node) != "none"), path)
        setting = _NODES[node]
        source = "set" if setting.text is not None else setting.env
        if setting.text is None and not (setting.env and os.environ.get(setting.env)):
            source = "tuning" if node in _tuned else "default"
        value = get(node)
        text = ",".join(sorted(value)) if isinstance(value, frozenset) else value
        lines.append(f"{path} = {text} ({source if node == path else f'from {node}'})")
    return "\n".join(lines)


def __dir__():
    return __all__
