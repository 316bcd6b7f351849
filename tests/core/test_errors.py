# SPDX-License-Identifier: Apache-2.0
"""Results become exceptions of the right class, with name and number."""

import pickle

import l0rt
import pytest
from l0rt.ze import status, table


@pytest.mark.parametrize(
    ("code", "name", "kinds"),
    [
        (0x70000001, "ERROR_DEVICE_LOST", (l0rt.DeviceLostError,)),
        (0x70000003, "ERROR_OUT_OF_DEVICE_MEMORY", (l0rt.OutOfMemoryError, MemoryError)),
        (0x78000003, "ERROR_UNSUPPORTED_FEATURE", (l0rt.UnsupportedError, NotImplementedError)),
        (0x78000004, "ERROR_INVALID_ARGUMENT", (l0rt.InvalidArgumentError, ValueError)),
        (0x78000001, "ERROR_UNINITIALIZED", (l0rt.DriverNotFoundError,)),
        (0x70000004, "ERROR_MODULE_BUILD_FAILURE", (l0rt.ModuleBuildError,)),
        (0x7FFFFFFE, "ERROR_UNKNOWN", (l0rt.L0Error,)),
        (0x12345678, "0x12345678", (l0rt.L0Error,)),
    ],
)
def test_a_result_is_an_exception(code, name, kinds):
    error = status.error_of(code, "doing something")
    assert error.code == (name, code)
    assert str(error).startswith("doing something: ")
    assert name in str(error)
    assert hex(code) in str(error)
    for kind in (*kinds, l0rt.L0Error, RuntimeError):
        assert isinstance(error, kind)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.code) == (type(error), str(error), error.code)


def test_the_table_knows_its_entry_points():
    points = table.entry_points()
    names = [name for name, _, _ in points]
    assert len(names) == len(set(names))
    assert ("zeInit", "1.0", True) in points
    assert ("zeCommandListHostSynchronize", "1.6", False) in points
    assert set(table.missing()) <= {name for name, _, required in points if not required}


def test_a_library_without_the_required_functions_is_named():
    assert table.fill(lambda name: 0) == [name for name, _, required in table.entry_points() if required]
