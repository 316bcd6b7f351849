"""Settings by dotted path, each from the environment or from `set`; unknown paths and values name the right ones."""

import os
from contextlib import contextmanager
from dataclasses import dataclass, field

CAPABILITIES = (
    "inorder",
    "list_sync",
    "cb_events",
    "cb_core",
    "cb_zex2",
    "cb_pool",
    "vmm",
    "relaxed",
    "free_ext",
    "memmap",
    "usable_mem",
    "global_ts",
    "default_ctx",
    "sync_mode",
    "copy_offload",
    "host_func",
    "graph",
    "init_drivers",
    "pidfd_ipc",
    "device_status",
)


def _driver(text):
    if text in ("gpu", "cpu", "auto") or "/" in text:
        return text
    raise ValueError("gpu, cpu, auto, or a library's path (with a / in it)")


def _disable(text):
    names = frozenset(name.strip() for name in text.split(",") if name.strip())
    if not names.issubset(CAPABILITIES):
        raise ValueError("a comma-separated list of " + ", ".join(CAPABILITIES))
    return names


def _pool_size(text):
    if text.isascii() and text.isdigit() and 1 <= int(text) <= 32:
        return int(text)
    raise ValueError("a whole number from 1 to 32")


def _one_of(*words):
    def parse(text):
        if text in words:
            return text
        raise ValueError(f"one of {', '.join(words)}")

    return parse


@dataclass
class _Setting:
    env: str | None
    parse: object  # text -> value; ValueError says what is allowed
    default: str
    frozen: bool = field(default=False)  # read by the running process: a change would come too late
    text: str | None = field(default=None)  # what set() was given


_SETTINGS = {
    "driver": _Setting("L0RT_DRIVER", _driver, "gpu"),
    "disable": _Setting("L0RT_DISABLE", _disable, ""),
    "stream_pool_size": _Setting("L0RT_STREAM_POOL_SIZE", _pool_size, "32"),
    "events": _Setting("L0RT_EVENTS", _one_of("auto", "pool", "cb"), "auto"),
}
for _place in ("", "xpu.", "xpu.stream.", "xpu.event."):
    _SETTINGS[_place + "wait_policy"] = _Setting(None, _one_of("block", "yield", "spin", "none"), "none")
_listeners = []


def _find(path):
    try:
        return _SETTINGS[path]
    except (KeyError, TypeError):
        raise ValueError(f"no setting {path!r}; there are {', '.join(sorted(_SETTINGS))}") from None


def _parsed(setting, text, name):
    try:
        return setting.parse(text)
    except ValueError as allowed:
        raise ValueError(f"{name}={text!r} is not valid: expected {allowed}") from None


def get(path):
    """Return the setting ``path``: what `set` gave it, else its environment variable, else its default."""
    setting = _find(path)
    if setting.text is not None:
        return _parsed(setting, setting.text, path)
    return _parsed(setting, (setting.env and os.environ.get(setting.env)) or setting.default, setting.env)


def effective(path):
    """Return what holds at ``path``: its own value, where that is ``"none"`` the nearest above, else ``"none"``."""
    *places, name = path.split(".")
    chain = [".".join([*places[:depth], name]) for depth in range(len(places), -1, -1)]
    return next((value for value in map(get, chain) if value != "none"), "none")


def on_change(listener):
    """Call ``listener()`` after every change of a setting."""
    _listeners.append(listener)


def _tell():
    for listener in _listeners:
        listener()


def set(path, value):
    """Give the setting ``path`` a ``value`` (None: its environment variable's); ValueError names what is allowed."""
    setting = _find(path)
    if value is not None and not isinstance(value, (str, int)):
        raise TypeError(f"{path} takes a str or an int, not {type(value).__name__}")
    text = None if value is None else str(value)
    if text is not None:
        _parsed(setting, text, path)
    if setting.frozen and text != setting.text:
        raise RuntimeError(f"{path} cannot change any more: the driver is already open (set it before first use)")
    setting.text = text
    _tell()


def freeze(*paths):
    """Refuse changes of these settings from now on: they have been read."""
    for path in paths:
        _find(path).frozen = True


@contextmanager
def patch(values):
    """Set several settings, a dict of path to value, for the length of a with block."""
    before = {path: _find(path).text for path in values}
    try:
        for path, value in values.items():
            set(path, value)
        yield
    finally:
        for path, text in before.items():
            _find(path).text = text
        _tell()


def explain():
    """Return a line for each setting: its path, its value, and where the value comes from."""
    lines = []
    for path, setting in sorted(_SETTINGS.items()):
        value = get(path)
        source = "set" if setting.text is not None else setting.env if os.environ.get(setting.env or "") else "default"
        shown = ",".join(sorted(value)) if isinstance(value, frozenset) else value
        lines.append(f"{path} = {shown} ({source})")
    return "\n".join(lines)
