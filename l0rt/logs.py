# SPDX-License-Identifier: Apache-2.0
"""Logging of allocations, streams, events, kernels and the opening of drivers, through Python's ``logging``.

`begin` is called by the import of l0rt if the variable is set; without it nothing is watched and nothing costs.
"""

import logging

from l0rt import config
from l0rt._base.callers import level
from l0rt.kernels.module import watchers
from l0rt.launch.launch import _name_at
from l0rt.runtime.current.waits import name_at
from l0rt.runtime.streams import hooks
from l0rt.runtime.streams.devices import device_count as _device_count
from l0rt.runtime.streams.devices import lazy, properties

__all__ = ["begin"]

# A %s is a stream.
_TEXTS = {
    "memory_allocation": ("alloc", "allocated %#x, %d bytes, for %s"),
    "memory_deallocation": ("alloc", "freed %#x"),
    "memory_use": ("alloc", "%#x is used on %s"),
    "stream_creation": ("stream", "%s has its list"),
    "stream_synchronization": ("stream", "the host knows that %s is idle"),
    "stream_wait": ("stream", "%s waits for %s"),
    "device_synchronization": ("stream", "the host knows that device %d is idle"),
    "copy": ("stream", "%s copies to %#x from %#x, %d bytes"),
    "fill": ("stream", "%s fills %#x, %d bytes"),
    "kernel_launch": ("kernel", "%s launches %s"),
    "graph_replay": ("stream", "%s replays graph %#x"),
    "kernel_access": ("kernel", "%s: the kernel may use %#x, %d bytes, as %d (1: read, 2: write)"),
    "event_creation": ("event", "event %#x made"),
    "event_deletion": ("event", "event %#x dropped"),
    "event_record": ("event", "point %#x recorded on %s"),
    "event_wait": ("event", "point %#x is waited for on %s"),
    "event_synchronization": ("event", "the host knows that point %#x is complete"),
}
BUILD = "%s: %s for xpu:%d in %.3f ms"


def _opened():
    log = logging.getLogger("l0rt.init")
    for index in range(_device_count()):
        p = properties(index)
        values = index, p["name"], p["driver_version"], *p["api_version"]
        log.debug("device %d: %s, driver %s, API %d.%d", *values, stacklevel=level())


def begin() -> None:
    """Start to log the subjects of the setting ``logs``."""
    topics = config.get("logs")
    for topic in topics:
        logger = logging.getLogger(f"l0rt.{topic}")
        logger.setLevel(logging.DEBUG)
        if not logger.hasHandlers():
            handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter("%(name)s: %(message)s (%(filename)s:%(lineno)d)"))
            logger.addHandler(handler)
    for kind, (topic, text) in _TEXTS.items():
        if topic in topics:
            logger = logging.getLogger(f"l0rt.{topic}")
            hooks.add(kind, _launches(logger, text) if kind == "kernel_launch" else _writer(logger, text))
    if "kernel" in topics:
        watchers.append(_writer(logging.getLogger("l0rt.kernel"), BUILD))
    if "init" in topics:
        lazy.call(_opened)


def _launches(logger, text):
    def write(stream, kernel):
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug(text, name_at(stream), _name_at(kernel), stacklevel=level())

    return write


def _writer(logger, text):
    streams = {i for i, kind in enumerate(text.split("%")[1:]) if kind.startswith("s") and text != BUILD}

    def write(*values):
        if logger.isEnabledFor(logging.DEBUG):
            named = (name_at(value) if i in streams else value for i, value in enumerate(values))
            logger.debug(text, *named, stacklevel=level())

    return write


def __dir__():
    return __all__
