# SPDX-License-Identifier: Apache-2.0
"""One Level Zero context for dpctl and l0rt, so that each uses the other's memory without a copy. docs/partners.md."""

import ctypes
import re

import dpctl as _dpctl

from l0rt.xpu import adopt_context

# sycl::context::getNative() const, an exported method of SYCL's runtime: dpctl has no function of its own for it.
GET_NATIVE = "_ZNK4sycl3_V17context9getNativeEv"


def native_context(queue):
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
        SYCL's runtime has not the function that tells the handle.
    """
    context = queue.sycl_context if isinstance(queue, _dpctl.SyclQueue) else queue
    if not isinstance(context, _dpctl.SyclContext):
        raise TypeError(f"queue must be a dpctl.SyclQueue or a dpctl.SyclContext, got {type(queue).__name__}")
    backend = context.get_devices()[0].backend
    if backend != _dpctl.backend_type.level_zero:
        raise ValueError(f"queue must be of a Level Zero device, got one of {backend.name}")
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        found = re.search(r"(/\S*/libsycl\.so\S*)$", maps.read(), re.MULTILINE)
    try:
        function = getattr(ctypes.CDLL(found and found.group(1)), GET_NATIVE)
    except (AttributeError, OSError) as error:
        raise NotImplementedError(f"this build of SYCL's runtime does not tell its context: {error}") from None
    function.argtypes, function.restype = [ctypes.c_void_p], ctypes.c_void_p
    return function(context.addressof_ref())


def share_context(queue):
    """Let l0rt work in dpctl's context, before the first use of a device: see `l0rt.xpu.adopt_context`.

    Parameters
    ----------
    queue : dpctl.SyclQueue or dpctl.SyclContext
        l0rt keeps its context until the process ends, and names it in ``__sycl_usm_array_interface__``.
    """
    adopt_context(native_context(queue), owner=queue)
