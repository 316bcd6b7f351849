# SPDX-License-Identifier: Apache-2.0
"""A public name of the last release stays, with its members and parameters: docs/stability.md."""

import importlib
import inspect
from pathlib import Path

import l0rt
import pytest

RULE = (
    "a public name, a member or a parameter that the last release had is gone: deprecate it first, as "
    "docs/stability.md says. The list is written anew at a release: "
    "python tests/embed/test_public_names.py > tests/embed/public_names.txt"
)
RECORD = Path(__file__).with_name("public_names.txt")


def parameters(value):
    """Return the names of the parameters of a function or class; None where it has no signature."""
    try:
        return [name for name in inspect.signature(value).parameters if name != "self"]
    except (TypeError, ValueError):
        return None


def described(path, value):
    """Return a name with its parameters."""
    names = parameters(value) if callable(value) else None
    return path if names is None else f"{path}({', '.join(names)})"


def public():
    """Yield each public name of l0rt, and each public member of its classes, with their parameters."""
    for module_name in ["", *l0rt._SUBMODULES]:
        module = importlib.import_module(f"l0rt.{module_name}" if module_name else "l0rt")
        for name in sorted(getattr(module, "__all__", ())):
            value = getattr(module, name)
            if inspect.ismodule(value):
                continue
            path = f"{module.__name__}.{name}"
            yield described(path, value)
            if inspect.isclass(value):
                inherited = {*dir(Exception)} if issubclass(value, BaseException) else set()
                for member in sorted({*dir(value)} - inherited):
                    if member[0] != "_" and not is_elsewhere(value, member):
                        yield described(f"{path}.{member}", inspect.getattr_static(value, member))


def is_elsewhere(owner, member):
    """Whether a name is there only to say what to type instead."""
    return type(inspect.getattr_static(owner, member)).__name__ == "Elsewhere"


def parts(line):
    name, _, rest = line.partition("(")
    return name, {word for word in rest.rstrip(")").split(", ") if word}


def gone(record, present):
    """Return the lines of a record of which something is gone."""
    now = dict(map(parts, present))
    return [line for line in record for name, words in [parts(line)] if name not in now or not words <= now[name]]


def test_what_the_last_release_had_is_there():
    record = RECORD.read_text().splitlines()
    assert len(record) > 500
    assert gone(record, public()) == [], RULE


@pytest.mark.parametrize(
    ("record", "present", "expected"),
    [
        (["l0rt.empty(nbytes, kind)"], ["l0rt.empty(nbytes, kind, device)"], 0),
        (["l0rt.empty(nbytes, kind)"], ["l0rt.empty(nbytes)"], 1),
        (["l0rt.empty(nbytes)"], ["l0rt.full(nbytes)"], 1),
        (["l0rt.Event.query"], ["l0rt.Event.query()"], 0),
        (["l0rt.Event.query"], [], 1),
    ],
)
def test_it_bites(record, present, expected):
    assert len(gone(record, present)) == expected


if __name__ == "__main__":
    print("\n".join(public()))
