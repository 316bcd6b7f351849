# SPDX-License-Identifier: Apache-2.0
"""The C table of `include/l0rt/l0rt.h` through ctypes: its functions run without the GIL, as an embedder calls them."""

import ctypes

import l0rt.capi

SIZE, PTR, INT = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int
SIGNATURES = (
    ("init", INT), ("device_count", INT), ("current_device", INT), ("exchange_device", INT, INT),
    ("current_stream", PTR, INT), ("exchange_stream", PTR, PTR), ("pool_stream", PTR, INT, INT),
    ("stream_handle", PTR, PTR), ("stream_synchronize", INT, PTR), ("device_synchronize", INT, INT),
    ("malloc", PTR, SIZE, INT, PTR), ("free", INT, PTR), ("free_async", INT, PTR, PTR),
    ("record_stream", INT, PTR, PTR), ("memcpy_async", INT, PTR, PTR, SIZE, PTR),
    ("memset_async", INT, PTR, INT, SIZE, PTR), ("last_error", INT, PTR, SIZE), ("record_use", INT, PTR, PTR),
)  # fmt: skip


class Table(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("size", ctypes.c_uint32), *((name, PTR) for name, *_ in SIGNATURES))


def _table():
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = PTR, (ctypes.py_object, ctypes.c_char_p)
    return Table.from_address(pointer(l0rt.capi._C_API, b"l0rt.capi._C_API"))


class Failed(RuntimeError):
    """What `last_error` says."""


class Door:
    """Every function of the table as a method; -1 and NULL raise `Failed`."""

    def __init__(self):
        table = _table()
        assert table.size >= ctypes.sizeof(Table)
        for name, *kinds in SIGNATURES:
            setattr(self, name, self.checked(ctypes.CFUNCTYPE(*kinds)(getattr(table, name)), kinds[0]))

    def checked(self, function, kind):
        """Return the function, with an exception where it fails: it has set one, which ctypes does not expect."""

        def call(*args):
            try:
                answer = function(*args)
            except SystemError:
                text = ctypes.create_string_buffer(1024)
                self.last_error(text, 1024)
                raise Failed(text.value.decode()) from None
            return answer

        return call

    def pointer(self, stream):
        """Return the table's stream of an l0rt.Stream."""
        with stream:
            return self.current_stream(-1)
