# SPDX-License-Identifier: Apache-2.0
"""Ray with one process a device: a resource for the devices, and a device for each actor or task that takes it."""

from __future__ import annotations

import os as _os

import ray as _ray

from l0rt.interop import worker as _worker

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from typing import Any

__all__ = ["RESOURCE", "claim", "init", "resources"]

RESOURCE: str = "l0rt_device"  # what actors take one of: ``resources={RESOURCE: 1}``


def resources() -> dict[str, int]:
    """Return what a node of this machine has to offer, for ``ray.init`` or ``ray start --resources``.

    It opens no driver.

    Returns
    -------
    dict
        `RESOURCE` and the number of devices.
    """
    return {RESOURCE: len(_worker.masks())}


def init(**kwargs: Any) -> Any:
    """Start Ray on this machine with its devices as a resource.

    It has no dashboard and reports no usage, unless the arguments or the environment say otherwise.

    Parameters
    ----------
    **kwargs
        For ``ray.init``. Not ``address``: a cluster that runs already has the resources that it was started with.

    Returns
    -------
    object
        What ``ray.init`` returns.
    """
    if kwargs.get("address") is not None:
        raise ValueError("init starts a cluster; connect to one with ray.init(address=...)")
    _os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    kwargs["resources"] = {**resources(), **(kwargs.get("resources") or {})}
    kwargs.setdefault("include_dashboard", False)
    return _ray.init(**kwargs)


def claim(
    *, memory_limit: int | float | str | None = None, pool_size: int | float | str | None = None, timeout: float = 30.0
) -> int:
    """Take a device for this actor or task, which no other on its node has, before it uses one.

    The process keeps it until it ends: an actor's with the actor. For a task say ``max_calls=1``, so that its process
    ends with it. A second call returns the same.

    Parameters
    ----------
    memory_limit, pool_size : int, float, str or None, optional
        As for `l0rt.interop.worker.limit_memory`.
    timeout : float, optional
        Seconds to wait for the device of a process that is about to end.

    Returns
    -------
    int
        The place in `l0rt.interop.worker.masks`. In this process the device is ``xpu:0``.

    Raises
    ------
    RuntimeError
        The process is no worker of Ray's, or its actor or task has not taken one `RESOURCE`; or it has used a device
        before.
    TimeoutError
        No device became free.
    """
    context = _ray.get_runtime_context() if _ray.is_initialized() else None
    if context is None or context.worker.mode != _ray.WORKER_MODE:
        raise RuntimeError("claim a device in an actor or a task of Ray's")
    count = context.get_assigned_resources().get(RESOURCE, 0)
    if count != 1:
        raise RuntimeError(
            f"an actor or task takes one {RESOURCE!r}, with resources={{{RESOURCE!r}: 1}}; it has {count}"
        )
    index = _worker.claim(f"ray {context.gcs_address}", timeout=timeout)
    _worker.limit_memory(memory_limit, pool_size)
    return index
