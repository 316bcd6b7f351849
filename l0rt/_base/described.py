# SPDX-License-Identifier: Apache-2.0
"""Parts of docstrings that many public functions share, each written once."""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    _Function = TypeVar("_Function", bound=Callable[..., object])

_ORDER = ("Parameters", "Returns", "Raises", "Notes")


def described(
    raises: Iterable[tuple[str, str]] = (), returns: str | None = None, **parameters: tuple[str, str]
) -> Callable[[_Function], _Function]:
    """Return a decorator that adds to a docstring what it does not describe itself, in NumPy's sections.

    ``parameters`` has the type and the text of each name: they are described in the order of the signature, and as
    optional where they have a default value. ``raises`` has errors and texts.
    """

    def complete(function: _Function) -> _Function:
        if function.__doc__ is None:  # python -OO has removed it
            return function
        first, *lines = function.__doc__.rstrip().split("\n")
        margin = min((len(line) - len(line.lstrip()) for line in lines if line), default=0)
        text = "\n".join([first, *(line[margin:] for line in lines)])
        paragraphs = text.split("\n\n")
        before: list[str] = []
        behind: list[str] = []
        code, entries = function.__code__, before
        required = code.co_argcount - len(function.__defaults__ or ())
        for place, name in enumerate(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]):
            if name in parameters and f"\n{name} : " not in text:
                kind, meaning = parameters[name]
                entries.append(f"{name} : {kind}{', optional' if place >= required else ''}\n    {meaning}")
            else:
                entries = behind
        _add(paragraphs, "Parameters", before, behind)
        _add(paragraphs, "Returns", (), (returns,) if returns and "\nReturns\n---" not in text else ())
        _add(paragraphs, "Raises", (), [f"{error}\n    {reason}" for error, reason in raises])
        function.__doc__ = "\n\n".join(paragraphs)
        return function

    return complete


def _add(paragraphs, title, before, behind):
    """Add entries to a section, which begins where the order says if there is none."""
    if not before and not behind:
        return
    head = f"{title}\n{'-' * len(title)}"
    later = tuple(f"{other}\n---" for other in _ORDER[_ORDER.index(title) + 1 :])
    for place, paragraph in enumerate(paragraphs):
        if paragraph.startswith(head):
            paragraphs[place] = "\n".join([head, *before, paragraph[len(head) + 1 :], *behind])
            return
        if paragraph.startswith(later):
            break
    else:
        place = len(paragraphs)
    paragraphs.insert(place, "\n".join([head, *before, *behind]))


def documented_as(original: object, **renamed: str) -> Callable[[_Function], _Function]:
    """Return a decorator that gives a function the docstring of what it stands for, with parameters renamed."""

    def document(function: _Function) -> _Function:
        text = original.__doc__ or ""
        for name, new in renamed.items():
            text = text.replace(f"{name} : ", f"{new} : ")
        function.__doc__ = text
        return function

    return document


_DEVICE = (
    "int, str, device or None",
    "An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.",
)
takes_device = described(
    [("DeviceIndexError", "There is no device with this index.")], device=_DEVICE, device_index=_DEVICE
)
