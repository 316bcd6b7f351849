# SPDX-License-Identifier: Apache-2.0
"""The registered device types and which of them is the current accelerator: one choice a process."""

from cpython.object cimport PyObject

cdef dict registered = {}
cdef dict _makers = {}      # device type -> what has its Stream, Event and Generator, for types without an interface
_kept = []      # what was replaced: another thread may be inside a call of it
cdef str BUILT_IN = "xpu"
cdef str _current = BUILT_IN
cdef PyObject* other = NULL


cdef str current_type():
    return _current


cdef object interface_of(str type):
    """The interface of a device type; NotImplementedError names those that there are."""
    try:
        return registered[type]
    except KeyError:
        known = ", ".join(sorted(registered)) or "none"
        raise NotImplementedError(f"No interface for device {type} (registered: {known})") from None


cdef object interface_of_stream(object stream):
    """The interface that a foreign stream belongs to: of the type that it tells, else the current accelerator's."""
    type = getattr(stream, "device_type", None)
    if type is None:
        type = getattr(getattr(stream, "device", None), "type", None)
    if isinstance(type, str) and type in registered:
        return registered[type]
    if other == NULL or stream is None:
        raise TypeError(f"expected a Stream, got {stream.__class__.__name__}")
    return <object>other


cdef object maker_of(str type):
    """Whose Stream, Event and Generator a device type's are; None for the built-in one, and for an unknown type."""
    if type == BUILT_IN:
        return None
    found = registered.get(type)
    return found if found is not None else _makers.get(type)


def add_maker(str type, maker):
    """Let ``maker`` have the Stream, Event and Generator of a device type that has no interface."""
    _makers[type] = maker


def add(str type, interface):
    """Register ``interface`` for a device type, in place of what was registered before."""
    global other
    if type in registered and registered[type] is not interface:
        _kept.append(registered[type])
    registered[type] = interface
    if other != NULL and type == _current:
        other = <PyObject*>interface


def get(str type):
    """Return the interface of a device type."""
    return interface_of(type)


def all():
    """Return the registered (type, interface) pairs."""
    return tuple(registered.items())


def current():
    """Return the current accelerator's device type."""
    return _current


def choose(str type):
    """Make the registered device type the current accelerator, for all threads."""
    global _current, other
    interface = interface_of(type)
    _current = type
    other = NULL if type == BUILT_IN else <PyObject*>interface


def chosen_of(str type):
    """Return the interface of a device type, None for the built-in one: its own code runs."""
    return None if type == BUILT_IN else interface_of(type)


def of_stream(stream):
    """Return the interface that a stream of another device type belongs to; TypeError if it is none."""
    found = interface_of_stream(stream) if hasattr(stream, "device_index") else None
    if found is None or registered.get(BUILT_IN) is found:
        raise TypeError(f"expected a Stream, got {stream.__class__.__name__}")
    return found


def chosen():
    """Return the current accelerator's interface, None for the built-in one: its own code runs."""
    return None if other == NULL else <object>other
