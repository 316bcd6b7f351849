# SPDX-License-Identifier: Apache-2.0
"""The rows of other software: what calls by cimport and by the table of C functions, DLPack and pickles cost."""

import pickle
from functools import partial

import l0rt
import l0rt.bench.exchange as exchange
import l0rt.bench.loops as loops
from l0rt.bench.rows import KIB, Work, python, suite

row = suite("interop")


@row("interop.cimport.current_device.c", "l0rt_current_device() by cimport; raw: what it ends in", over_raw=3)
def cimport_current_device(lab):
    yield Work(loops.current_device, exchange.callee_current_device)


@row("interop.table.current_device.c", "the same by the table of C functions; raw: by cimport", ns=6, over_raw=3)
def table_current_device(lab):
    yield Work(exchange.table_current_device, loops.current_device)


@row("interop.table.malloc_free.c", "malloc() and free() of 4 KiB by the table; raw: by cimport", over_raw=2 * 3)
def table_malloc_free(lab):
    yield Work(partial(exchange.table_malloc_free, 4 * KIB), partial(exchange.cimport_malloc_free, 4 * KIB))


@row("interop.dlpack.device.c", "DLPack's exchange API: a device Buffer lent, taken as another, and dropped", ns=400)
def dlpack_device(lab):
    x = l0rt.empty(4 * KIB)
    yield Work(lambda n: exchange.lend_and_take(x, n))


@row("interop.dlpack.host.c", "the same of pinned memory", ns=400)
def dlpack_host(lab):
    x = l0rt.empty(4 * KIB, kind="host")
    yield Work(lambda n: exchange.lend_and_take(x, n))


@row("interop.dlpack.export.python", "x.__dlpack__(stream=-1, max_version=(1, 3)), and dropping the capsule", ns=400)
def dlpack_export(lab):
    yield Work(python("x.__dlpack__(stream=-1, max_version=v)", x=l0rt.empty(4 * KIB), v=(1, 3)))


@row("interop.dlpack.import.buffer.python", "l0rt.from_dlpack(x) of a device Buffer, and dropping it", ns=400)
def dlpack_import_buffer(lab):
    yield Work(python("take(x)", take=l0rt.from_dlpack, x=l0rt.empty(4 * KIB)))


class Lender:
    """An object of other software that has device memory of l0rt's context."""

    def __init__(self, buffer):
        self.__dlpack__, self.__dlpack_device__ = buffer.__dlpack__, buffer.__dlpack_device__


@row("interop.dlpack.import.python", "l0rt.from_dlpack(y) of other software's object with 4 KiB of host memory")
def dlpack_import(lab):
    yield Work(python("take(y)", take=l0rt.from_dlpack, y=Lender(l0rt.empty(4 * KIB, kind="host"))))


@row("interop.from_handle.python", "Buffer.from_handle(address, nbytes), and dropping it")
def from_handle(lab):
    x = l0rt.empty(4 * KIB)
    yield Work(python("make(p, 64)", make=l0rt.Buffer.from_handle, p=x.ptr))


@row("interop.pickle.python", "pickle.dumps of a device Buffer of 4 KiB")
def pickled(lab):
    yield Work(python("dumps(x)", dumps=pickle.dumps, x=l0rt.empty(4 * KIB).fill(0)))
