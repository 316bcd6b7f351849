# SPDX-License-Identifier: Apache-2.0
"""The error classes, one for each kind of failure to which a caller can react."""

from __future__ import annotations

__all__ = [
    "CompilerNotFoundError",
    "DeviceIndexError",
    "DeviceLostError",
    "DriverNotFoundError",
    "InvalidArgumentError",
    "KernelFaultError",
    "L0Error",
    "ModuleBuildError",
    "ModuleBuildWarning",
    "OutOfMemoryError",
    "UnsupportedError",
]


class L0Error(RuntimeError):
    """A Level Zero call failed. ``code`` is ``(name, number)`` of the result, or None if no call was made."""

    code: tuple[str, int] | None

    def __init__(self, message: str = "", code: tuple[str, int] | None = None) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self):
        return type(self), (str(self), self.code)


class OutOfMemoryError(L0Error, MemoryError):
    """Device or pinned memory ran out, or a limit was reached."""


class DeviceLostError(L0Error):
    """The device hung, was reset or was removed. Nothing that was created on it works any more."""


class InvalidArgumentError(L0Error, ValueError):
    """An argument was refused."""


class DeviceIndexError(L0Error, IndexError):
    """There is no device with this index."""


class UnsupportedError(L0Error, NotImplementedError):
    """This driver or device cannot do what was asked."""


class ModuleBuildError(L0Error):
    """A module did not build. ``log`` is the compiler's output."""

    log: str

    def __init__(self, message: str = "", code: tuple[str, int] | None = None, log: str = "") -> None:
        super().__init__(message, code)
        self.log = log

    def __reduce__(self):
        return type(self), (str(self), self.code, self.log)


class CompilerNotFoundError(ModuleBuildError):
    """A source was to be compiled, and no compiler is installed. The message says what to install."""


class ModuleBuildWarning(UserWarning):
    """A compiler had warnings for a source; the message has them."""


class KernelFaultError(L0Error):
    """A launch ended in an error: a wrong address, a division by zero, a barrier that not every work-item reached.

    The first wait for the launch raises it, once. The message names the kernel, the instruction and the work-item
    where the driver reports them. The kernel's output is undefined. The device goes on working.
    """


class DriverNotFoundError(L0Error):
    """No usable Level Zero driver or device was found. The message says why and what to do."""


_ARGUMENTS = """

Parameters
----------
message : str, optional
    What happened, and what to do.
code : tuple of str and int, or None, optional
    The name and the number of the driver's result. None if no driver call was made."""
_LOG = """
log : str, optional
    The compiler's output."""

# What the arguments are is said once, for all classes; python -OO has removed the docstrings.
for _error in [value for value in globals().values() if isinstance(value, type) and issubclass(value, L0Error)]:
    if _error.__doc__:
        _lines = [line.removeprefix("    ").rstrip() for line in _error.__doc__.rstrip().splitlines()]
        _error.__doc__ = "\n".join(_lines) + _ARGUMENTS + (_LOG if issubclass(_error, ModuleBuildError) else "")

# Result names, without ZE_RESULT_, that mean something more precise than L0Error.
CLASS_OF_RESULT: dict[str, type[L0Error]] = {
    "ERROR_DEVICE_LOST": DeviceLostError,
    "ERROR_DEVICE_REQUIRES_RESET": DeviceLostError,
    "ERROR_OUT_OF_HOST_MEMORY": OutOfMemoryError,
    "ERROR_OUT_OF_DEVICE_MEMORY": OutOfMemoryError,
    "ERROR_UNSUPPORTED_FEATURE": UnsupportedError,
    "ERROR_UNSUPPORTED_VERSION": UnsupportedError,
    "ERROR_MODULE_BUILD_FAILURE": ModuleBuildError,
    "ERROR_MODULE_LINK_FAILURE": ModuleBuildError,
    "ERROR_INVALID_NATIVE_BINARY": ModuleBuildError,
    "ERROR_INVALID_MODULE_UNLINKED": ModuleBuildError,
    "ERROR_INVALID_KERNEL_NAME": InvalidArgumentError,
    "ERROR_INVALID_KERNEL_ARGUMENT_INDEX": InvalidArgumentError,
    "ERROR_INVALID_KERNEL_ARGUMENT_SIZE": InvalidArgumentError,
    "ERROR_INVALID_GROUP_SIZE_DIMENSION": InvalidArgumentError,
    "ERROR_INVALID_GLOBAL_WIDTH_DIMENSION": InvalidArgumentError,
    "ERROR_INVALID_ARGUMENT": InvalidArgumentError,
    "ERROR_INVALID_NULL_HANDLE": InvalidArgumentError,
    "ERROR_INVALID_NULL_POINTER": InvalidArgumentError,
    "ERROR_INVALID_SIZE": InvalidArgumentError,
    "ERROR_INVALID_ENUMERATION": InvalidArgumentError,
    "ERROR_INVALID_SYNCHRONIZATION_OBJECT": InvalidArgumentError,
    "ERROR_UNSUPPORTED_SIZE": InvalidArgumentError,
    "ERROR_UNSUPPORTED_ALIGNMENT": InvalidArgumentError,
    "ERROR_UNSUPPORTED_ENUMERATION": InvalidArgumentError,
    "ERROR_OVERLAPPING_REGIONS": InvalidArgumentError,
    "ERROR_ADDRESS_NOT_FOUND": InvalidArgumentError,
    "ERROR_UNINITIALIZED": DriverNotFoundError,
}


def __dir__():
    return __all__
