# SPDX-License-Identifier: Apache-2.0
"""What to type instead of names that torch, NumPy and CuPy have and l0rt has not."""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from typing import NoReturn

_ARRAY = "l0rt.from_numpy(array) copies a NumPy array to the device"
_DEVICE = "l0rt.accelerator.set_device_index(index)"
_VALUES = "x.numpy(dtype, shape) copies the bytes into a NumPy array"
_COPY = "l0rt.empty(x.nbytes).copy_from(x) is a copy"
_MOVE = "l0rt.empty(x.nbytes, device=...).copy_from(x) copies to another device, x.numpy(dtype, shape) to the host"

# place -> name -> what does that here
_INSTEAD: dict[str, dict[str, str]] = {
    "l0rt": {
        "zeros": "l0rt.empty(nbytes).fill(0)",
        "full": "l0rt.empty(nbytes).fill(pattern=numpy.float32(value).tobytes())",
        "rand": "l0rt.empty(nbytes).uniform_()",
        "randn": "l0rt.empty(nbytes).normal_()",
        **dict.fromkeys(("array", "asarray", "tensor", "as_tensor", "ones", "arange", "ndarray", "Tensor"), _ARRAY),
        "cuda": "l0rt.accelerator",
        "set_device": _DEVICE,
        "current_device": "l0rt.accelerator.current_device_index()",
        **{
            name: f"l0rt.accelerator.{name}"
            for name in (
                "synchronize", "is_available", "device_count", "current_stream", "stream", "Graph", "Timer",
                "manual_seed", "empty_cache", "memory_allocated",
            )
        },
    },
    "l0rt.accelerator": {
        "set_device": _DEVICE,
        "current_device": "l0rt.accelerator.current_device_index()",
        "device": "with l0rt.accelerator.device_index(index):",
        "CUDAGraph": "l0rt.accelerator.Graph",
    },
    "l0rt.Buffer": {
        "shape": _VALUES,
        "dtype": _VALUES,
        "item": "x.numpy(dtype)[0] copies the bytes to the host and reads the first element",
        "cpu": _VALUES,
        "to": _MOVE,
        "clone": _COPY,
        "zero_": "x.fill(0)",
        "data_ptr": "x.ptr",
        "size": "a Buffer has bytes and no elements: x.nbytes",
    },
}  # fmt: skip


def missing(place: str, name: str) -> AttributeError:
    """Return the error for a name that a module or class has not."""
    what = f"'{place}' object" if place == "l0rt.Buffer" else f"module {place!r}"
    hint = _INSTEAD[place].get(name)
    return AttributeError(f"{what} has no attribute {name!r}" + (f": {hint}" if hint else ""))


def of_accelerator(name: str) -> NoReturn:
    """Raise the error for a name that `l0rt.accelerator` has not."""
    raise missing("l0rt.accelerator", name)


class Elsewhere:
    """A name that a class has not, whose error says what to type instead."""

    def __init__(self, place: str, name: str):
        self.place, self.name = place, name

    def __get__(self, instance: object, owner: type | None = None) -> Elsewhere:
        if instance is None:
            return self
        raise missing(self.place, self.name)
