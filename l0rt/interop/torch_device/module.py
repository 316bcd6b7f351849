# SPDX-License-Identifier: Apache-2.0
"""``torch.lzrt``: what torch expects of the module of a device type."""

import traceback

import l0rt_torch_device as _extension
import torch
from torch._utils import _LazySeedTracker

Event, Stream = torch.Event, torch.Stream

_initialized = False
_queued_calls: list[tuple] = []
_is_in_bad_fork = _extension.is_in_bad_fork
_lazy_seed_tracker = _LazySeedTracker()


class device:
    """Makes a device current inside a with block."""

    def __init__(self, device):
        self.index = torch.accelerator._get_device_index(device, optional=True)

    def __enter__(self):
        self.previous = _extension.exchange_device(self.index)

    def __exit__(self, *error):
        _extension.exchange_device(self.previous)


def is_available():
    """Return whether there is a device."""
    return device_count() > 0


def device_count():
    """Return the number of devices; it opens no driver."""
    return _extension.device_count()


def current_device():
    """Return the index of the calling thread's device."""
    return _extension.current_device()


def set_device(device):
    """Make a device current."""
    _extension.exchange_device(torch.accelerator._get_device_index(device))


def memory_allocated(device=None):
    """Return the bytes of all living tensors of a device: torch.accelerator's figure, for less time."""
    return _extension.memory_allocated(-1 if device is None else torch.accelerator._get_device_index(device))


def current_stream(device=None):
    """Return the calling thread's stream of a device."""
    return torch.accelerator.current_stream(device)


def synchronize(device=None):
    """Wait for all work of a device."""
    torch.accelerator.synchronize(device)


def empty_cache():
    """Return cached memory to the driver."""
    torch.accelerator.empty_cache()


def get_amp_supported_dtype():
    """Return the types that autocast may choose."""
    return [torch.float16, torch.bfloat16]


def init():
    """Open the driver now."""
    _lazy_init()


def is_initialized():
    """Return whether this process has opened the driver for torch."""
    return _initialized and not _is_in_bad_fork()


def _lazy_call(function, **kwargs):
    if is_initialized():
        function()
    elif kwargs.get("seed_all"):
        _lazy_seed_tracker.queue_seed_all(function, traceback.format_stack())
    elif kwargs.get("seed"):
        _lazy_seed_tracker.queue_seed(function, traceback.format_stack())
    else:
        _queued_calls.append((function, traceback.format_stack()))


def _lazy_init():
    global _initialized
    if is_initialized():
        return
    if _is_in_bad_fork():
        raise RuntimeError("Cannot re-initialize lzrt in forked subprocess: use multiprocessing's method 'spawn'")
    _extension.init()
    _queued_calls.extend(call for call in _lazy_seed_tracker.get_calls() if call)
    _initialized = True
    for function, _ in _queued_calls:
        function()


def _generator(device):
    _lazy_init()  # a seed may wait for it
    index = torch.device(device).index if not isinstance(device, int) else device
    return _extension.default_generator(current_device() if index is None else index)


def get_rng_state(device="lzrt"):
    """Return the state of the default generator of a device: the seed and the offset, 16 bytes."""
    return _generator(device).get_state()


def set_rng_state(new_state, device="lzrt"):
    """Set the state of the default generator of a device."""
    _generator(device).set_state(new_state)


def initial_seed():
    """Return the seed of the default generator of the current device."""
    return _generator("lzrt").initial_seed()


def manual_seed(seed):
    """Seed the default generator of the current device, as soon as the driver is open."""
    seed = int(seed)
    _lazy_call(lambda: _generator("lzrt").manual_seed(seed), seed=True)


def manual_seed_all(seed):
    """Seed the default generators of all devices, as soon as the driver is open."""
    seed = int(seed)

    def seed_all():
        for index in range(device_count()):
            _generator(index).manual_seed(seed)

    _lazy_call(seed_all, seed_all=True)


def get_raw_stream(index):
    """Return the address of the native handle of the calling thread's stream of a device."""
    return current_stream(index).native_handle
