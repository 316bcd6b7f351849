# SPDX-License-Identifier: Apache-2.0
"""Guard tables (include/l0rt/guard_impl.h) as ctypes sees them."""

import ctypes

import l0rt.capi

INT, PTR = ctypes.c_int, ctypes.c_void_p
FUNCTIONS = [
    ("device_count", INT, ()),
    ("get_device", INT, ()),
    ("exchange_device", INT, (INT,)),
    ("set_device", INT, (INT,)),
    ("unchecked_set_device", INT, (INT,)),
    ("get_stream", PTR, (INT,)),
    ("get_default_stream", PTR, (INT,)),
    ("get_stream_from_pool", PTR, (INT, INT)),
    ("exchange_stream", PTR, (PTR,)),
    ("stream_device", INT, (PTR,)),
    ("stream_native_handle", PTR, (PTR,)),
    ("query_stream", INT, (PTR,)),
    ("synchronize_stream", INT, (PTR,)),
    ("synchronize_device", INT, (INT,)),
    ("record", INT, (ctypes.POINTER(PTR), PTR)),
    ("block", INT, (PTR, PTR)),
    ("query_event", INT, (PTR,)),
    ("synchronize_event", INT, (PTR,)),
    ("destroy_event", None, (PTR,)),
]
U32, NUMBER = ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint64)
OPTIONAL = [
    ("get_new_stream", PTR, (INT, INT)),
    ("stream_priority", INT, (PTR, ctypes.POINTER(INT))),
    ("is_stream_capturing", INT, (PTR,)),
    ("record_event", INT, (ctypes.POINTER(PTR), PTR, U32)),
    ("elapsed_time", INT, (PTR, PTR, ctypes.POINTER(ctypes.c_double))),
    ("record_data_ptr_on_stream", INT, (PTR, PTR)),
    ("device_capability", INT, (INT, NUMBER)),
]


class GuardImpl(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("size", ctypes.c_uint32), ("type", ctypes.c_char_p)] + [
        (name, ctypes.CFUNCTYPE(result, *arguments)) for name, result, arguments in FUNCTIONS + OPTIONAL
    ]


class Api(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("size", ctypes.c_uint32)] + [(f"entry{i}", PTR) for i in range(18)] + [
        ("guard_impl_of", ctypes.PYFUNCTYPE(PTR, ctypes.c_char_p))]  # fmt: skip


def api():
    """The embedder's table of functions."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = PTR, (ctypes.py_object, ctypes.c_char_p)
    return Api.from_address(get(l0rt.capi._C_API, b"l0rt.capi._C_API"))
