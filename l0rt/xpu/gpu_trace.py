# SPDX-License-Identifier: Apache-2.0
"""Callbacks at what streams, events and allocations do, with the names of torch's trace registries.

A callback gets the integers that torch's gets: an event is the address of its object when it is made or dropped and of
its recorded point else, a stream is the address of its record, memory is its address. Without callbacks nothing costs.
"""

from l0rt.runtime.streams import hooks as _hooks

__all__ = [f"register_callback_for_{_name}" for _name in _hooks.NAMES]


_TORCHS = {"memory_allocation": 1, "device_synchronization": 0}  # the hooks have more numbers


def _register(name):
    def register(callback):
        _hooks.add(name, callback, _TORCHS.get(name))

    register.__name__ = register.__qualname__ = f"register_callback_for_{name}"
    register.__doc__ = f"Call ``callback`` at every {name.replace('_', ' ')} from now on."
    return register


for _name in _hooks.NAMES:
    globals()[f"register_callback_for_{_name}"] = _register(_name)
