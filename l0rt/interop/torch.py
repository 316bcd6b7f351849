# SPDX-License-Identifier: Apache-2.0
"""Registration of l0rt in torch's registry of device interfaces, which torch's compiler uses."""

from __future__ import annotations

from torch._dynamo import device_interface as _registry

from l0rt.interface import XpuInterface, register_interface_for_device


class TorchXpuInterface(XpuInterface, _registry.DeviceInterface):
    """l0rt's interface, with the additional functions that this version of torch expects."""


def register() -> type[TorchXpuInterface]:
    """Register l0rt's interface in torch for ``xpu`` and each ``xpu:i``, and return it. It counts the devices."""
    _registry.get_registered_device_interfaces()  # torch fills its registry now, and would do so over ours later
    names = ["xpu", *(f"xpu:{index}" for index in range(XpuInterface.device_count()))]
    for name in names:
        _registry.register_interface_for_device(name, TorchXpuInterface)
    register_interface_for_device("xpu", TorchXpuInterface)  # one class, whichever registry is asked
    return TorchXpuInterface
