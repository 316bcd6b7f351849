# SPDX-License-Identifier: Apache-2.0
"""Level Zero's own objects: the handles of l0rt's, and a context that other software has made."""

from __future__ import annotations

from l0rt._base.described import takes_device as _takes_device
from l0rt._base.integers import whole_number as _whole
from l0rt.runtime.current import stream as _stream
from l0rt.runtime.streams import devices as _devices

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from l0rt.runtime.streams.naming import _Device

__all__ = ["adopt_context", "native_context", "native_device", "native_driver"]


def _handles(device):
    return _devices.native_handles(_stream.index_or_current(device))


@_takes_device
def native_driver(device: _Device = None) -> int:
    """Return the ``ze_driver_handle_t`` of the driver of ``device``.

    Returns
    -------
    int
    """
    return _handles(device)[0]


@_takes_device
def native_context(device: _Device = None) -> int:
    """Return the ``ze_context_handle_t`` in which l0rt has its memory, lists and events on ``device``.

    Other software that works in this context, such as SYCL by its interoperability functions, can use l0rt's memory,
    and l0rt its memory. l0rt destroys the context when the interpreter exits.

    Returns
    -------
    int
    """
    return _handles(device)[1]


@_takes_device
def native_device(device: _Device = None) -> int:
    """Return the ``ze_device_handle_t`` of ``device``.

    Returns
    -------
    int
    """
    return _handles(device)[2]


def adopt_context(handle: int, owner: object = None) -> None:
    """Use a context of other software instead of a new one. Call this before the first use of a device.

    l0rt and the other software then share their memory: each can use what the other has allocated. l0rt never destroys
    the context.

    Parameters
    ----------
    handle : int
        The ``ze_context_handle_t``. Its driver is that of the first device, and it has all devices that l0rt uses. The
        first use of a device raises ValueError if the driver knows no such context, or if the context lacks a device.
    owner : object, optional
        An object that is kept alive until the process ends. If it is a SYCL context or queue (it has
        ``_get_capsule``), it is the ``syclobj`` of `Buffer.__sycl_usm_array_interface__`.

    Raises
    ------
    ValueError
        ``handle`` is no address.
    RuntimeError
        A device was used already.

    Notes
    -----
    SYCL's native context is ``sycl::get_native<sycl::backend::ext_oneapi_level_zero>(context)``.
    """
    address = _whole(handle, "a context's handle")
    if not 0 < address < 1 << 64:
        raise ValueError(f"a context's handle must be an address, got {handle!r}")
    _devices.adopt_context(address, owner)
