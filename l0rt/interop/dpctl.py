# SPDX-License-Identifier: Apache-2.0
"""One Level Zero context for dpctl and l0rt, so that each uses the other's memory and lists. docs/partners.md."""

from __future__ import annotations

import ctypes
import os
import re
from functools import cache

import dpctl as _dpctl

from l0rt.runtime.current.stream import Stream
from l0rt.xpu import adopt_context, device_count, native_device
from l0rt.xpu import native_context as _own_context

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from typing import Any

# getNative() of sycl::context, sycl::device and sycl::queue, exported methods of SYCL's runtime: dpctl has no functions
# of its own for them.
GET_NATIVE: str = "_ZNK4sycl3_V17context9getNativeEv"
GET_NATIVE_DEVICE: str = "_ZNK4sycl3_V16device9getNativeEv"
GET_NATIVE_LIST: str = "_ZNK4sycl3_V15queue9getNativeERi"


def native_context(queue: Any) -> int:
    """Return the ``ze_context_handle_t`` of a queue or a context of dpctl, as an int.

    Parameters
    ----------
    queue : dpctl.SyclQueue or dpctl.SyclContext
        Of a Level Zero device.

    Raises
    ------
    TypeError
        It is neither of them.
    ValueError
        Its device is of another backend, such as OpenCL.
    NotImplementedError
        SYCL's runtime does not have the function that returns the handle.
    """
    context = queue.sycl_context if isinstance(queue, _dpctl.SyclQueue) else queue
    if not isinstance(context, _dpctl.SyclContext):
        raise TypeError(f"queue must be a dpctl.SyclQueue or a dpctl.SyclContext, got {type(queue).__name__}")
    backend = context.get_devices()[0].backend
    if backend != _dpctl.backend_type.level_zero:
        raise ValueError(f"queue must be of a Level Zero device, got one of {backend.name}")
    return _method(GET_NATIVE, "context", ctypes.c_void_p)(context.addressof_ref())


def native_list(queue: Any) -> int:
    """Return the ``ze_command_list_handle_t`` of the immediate command list of a queue of dpctl, as an int.

    Parameters
    ----------
    queue : dpctl.SyclQueue
        An in-order queue of a Level Zero device: one that is not in order has several lists.

    Raises
    ------
    TypeError
        It is no queue.
    ValueError
        It is not in order, it has a command queue instead of an immediate list, or its device is of another backend.
    NotImplementedError
        SYCL's runtime does not have the function that returns the handle.

    Notes
    -----
    SYCL's adapter V2 has immediate lists only. The older V1 has them by default on some GPUs, and on all with
    ``UR_L0_USE_IMMEDIATE_COMMANDLISTS=1``; it copies by further lists.
    """
    if not isinstance(queue, _dpctl.SyclQueue):
        raise TypeError(f"queue must be a dpctl.SyclQueue, got {type(queue).__name__}")
    if queue.backend != _dpctl.backend_type.level_zero:
        raise ValueError(f"queue must be of a Level Zero device, got one of {queue.backend.name}")
    if not queue.is_in_order:
        raise ValueError("queue must be in order: dpctl.SyclQueue(device, property='in_order')")
    is_immediate = ctypes.c_int(0)
    handle = _method(GET_NATIVE_LIST, "lists", ctypes.c_void_p, ctypes.c_void_p)(
        queue.addressof_ref(), ctypes.addressof(is_immediate)
    )
    if not is_immediate.value or not handle:
        raise ValueError("queue has no immediate list: UR_L0_USE_IMMEDIATE_COMMANDLISTS=1 gives it one")
    return handle


def stream(queue: Any) -> Stream:
    """Return a stream of l0rt that is a queue of dpctl: what either is given runs in the order in which it was given.

    Parameters
    ----------
    queue : dpctl.SyclQueue
        An in-order queue in l0rt's context, which `share_context` makes dpctl's. The stream keeps it.

    Returns
    -------
    Stream
        l0rt uses the queue's list, and never destroys it.

    Raises
    ------
    TypeError
        It is no queue.
    ValueError
        It is of another context or of a device that l0rt has not, the environment does not choose SYCL's adapter V2, or
        `native_list` refuses it.
    NotImplementedError
        SYCL's runtime does not have the function that returns the handle.

    Notes
    -----
    ``SYCL_UR_USE_LEVEL_ZERO_V2=1`` must be set when dpctl is imported. The older adapter V1 orders a queue by events
    that l0rt does not know, and divides it among several lists. No two threads may append at the same time, one to the
    queue and one to the stream.
    """
    handle = native_list(queue)
    if os.environ.get("SYCL_UR_USE_LEVEL_ZERO_V2") != "1":  # no function reports which adapter a queue is of
        raise ValueError("a queue is one list in SYCL's adapter V2 only: set SYCL_UR_USE_LEVEL_ZERO_V2=1 before the "
                         "import of dpctl")  # fmt: skip
    if native_context(queue) != _own_context():
        raise ValueError("the queue is of another context: call share_context(queue) before the first use of a device")
    device = _method(GET_NATIVE_DEVICE, "device", ctypes.c_void_p)(queue.sycl_device.addressof_ref())
    mine = [index for index in range(device_count()) if native_device(index) == device]
    if not mine:
        raise ValueError(f"l0rt has no device that is the queue's, {queue.sycl_device.filter_string}")
    return Stream.from_handle(handle, device=mine[0], owner=queue)


@cache
def _runtime():
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        match = re.search(r"(/\S*/libsycl\.so\S*)$", maps.read(), re.MULTILINE)
    return ctypes.CDLL(match and match.group(1))


def _method(name, what, *types):
    """A method of SYCL's runtime, by its mangled name: of an object, with further pointers, to a handle."""
    try:
        function = _runtime()[name]  # of its own each time: others have other types
    except (AttributeError, OSError) as error:
        raise NotImplementedError(f"this build of SYCL's runtime does not report its {what}: {error}") from None
    function.argtypes, function.restype = types, ctypes.c_void_p
    return function


def share_context(queue: Any) -> None:
    """Let l0rt work in dpctl's context, before the first use of a device: see `l0rt.xpu.adopt_context`.

    Parameters
    ----------
    queue : dpctl.SyclQueue or dpctl.SyclContext
        l0rt keeps its context until the process ends, and names it in ``__sycl_usm_array_interface__``.
    """
    adopt_context(native_context(queue), owner=queue)
