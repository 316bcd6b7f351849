"""``L0RT_LOGS``: what allocations, streams, events and the opening of drivers do, through standard logging.

`begin` is called by the import of l0rt if the variable is set; without it nothing is watched and nothing costs.
"""

import logging

from l0rt import config
from l0rt.runtime import watch
from l0rt.runtime.devices import device_count as _device_count
from l0rt.runtime.devices import lazy, properties

_TEXTS = {
    "memory_allocation": ("alloc", "allocated %#x, %d bytes, for stream %#x"),
    "memory_deallocation": ("alloc", "freed %#x"),
    "memory_use": ("alloc", "%#x is used on stream %#x"),
    "stream_creation": ("stream", "stream %#x has its list"),
    "stream_synchronization": ("stream", "the host knows that stream %#x is idle"),
    "stream_wait": ("stream", "stream %#x waits for stream %#x"),
    "device_synchronization": ("stream", "the host knows that device %d is idle"),
    "copy": ("stream", "stream %#x copies to %#x from %#x, %d bytes"),
    "fill": ("stream", "stream %#x fills %#x, %d bytes"),
    "event_creation": ("event", "event %#x made"),
    "event_deletion": ("event", "event %#x dropped"),
    "event_record": ("event", "point %#x recorded on stream %#x"),
    "event_wait": ("event", "point %#x is waited for on stream %#x"),
    "event_synchronization": ("event", "the host knows that point %#x is complete"),
}


def _opened():
    log = logging.getLogger("l0rt.init")
    for index in range(_device_count()):
        p = properties(index)
        log.debug("device %d: %s, driver %s, API %d.%d", index, p["name"], p["driver_version"], *p["api_version"])


def begin():
    """Tell the loggers what the setting ``logs`` names."""
    topics = config.get("logs")
    for topic in topics:
        logger = logging.getLogger(f"l0rt.{topic}")
        logger.setLevel(logging.DEBUG)
        if not logger.hasHandlers():
            handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
            logger.addHandler(handler)
    for kind, (topic, text) in _TEXTS.items():
        if topic in topics:
            watch.add(kind, _teller(logging.getLogger(f"l0rt.{topic}"), text))
    if "init" in topics:
        lazy.call(_opened)


def _teller(logger, text):
    return lambda *values: logger.debug(text, *values)
