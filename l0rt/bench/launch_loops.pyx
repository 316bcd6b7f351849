# SPDX-License-Identifier: Apache-2.0
"""The bench's compiled loops of launches, l0rt's and the bare driver's."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from l0rt.capi cimport *
from l0rt.bench.loops cimport Gate, _raw_drain, now_ns
from l0rt.core.cmdlist cimport CommandList
from l0rt.core.device cimport Device
from l0rt.core.driver cimport Context
from l0rt.core.event cimport EventPool
from l0rt.core.module cimport Kernel, Module
from l0rt.ze.api cimport *
from l0rt.ze.status cimport CHECK
from l0rt.ze.table cimport ze


@cython.final
@cython.binding(False)
cdef class Saxpy:
    """The kernel y += a x of a module, for launches of one group of one work-item: l0rt's and the driver's own."""
    cdef l0rt_module* module
    cdef l0rt_kernel* kernel
    cdef Kernel bare
    cdef Gate gate
    cdef l0rt_arg[4] args
    cdef uint64_t[2] pointers
    cdef float factor
    cdef uint32_t count

    def __init__(self, Context context, Device device, bytes code, size_t y, size_t x):
        cdef Module bare = Module.create(context, device, ZE_MODULE_FORMAT_IL_SPIRV, code, len(code), b"", NULL)
        self.bare = Kernel.create(bare, b"saxpy")
        self.gate = Gate(context)
        self.module = l0rt_module_create(-1, <const char*>code, len(code), L0RT_MODULE_SPIRV, NULL)
        self.kernel = l0rt_kernel_get(self.module, b"saxpy")
        self.pointers, self.factor, self.count = [y, x], 0, 1
        self.args[0] = l0rt_arg(&self.pointers[0], sizeof(uint64_t))
        self.args[1] = l0rt_arg(&self.pointers[1], sizeof(uint64_t))
        self.args[2] = l0rt_arg(&self.factor, sizeof(float))
        self.args[3] = l0rt_arg(&self.count, sizeof(uint32_t))

    def __dealloc__(self):
        l0rt_module_release(self.module)

    def launch(self, uint64_t n):
        """l0rt_launch with four arguments: the append alone; the stream is drained before the loop returns."""
        cdef uint64_t _i, start, spent
        cdef uint32_t[3] one = [1, 1, 1]
        cdef l0rt_stream* stream
        with nogil:
            stream = l0rt_current_stream(-1)
            self.gate.shut(<size_t>l0rt_stream_handle(stream))
            start = now_ns()
            for _i in range(n):
                l0rt_launch(self.kernel, one, one, self.args, 4, 0, stream)
            spent = now_ns() - start
            self.gate.open()
            l0rt_stream_synchronize(stream)
        return spent

    def churn(self, size_t host, uint64_t n):
        """l0rt_malloc, a copy of four bytes of pinned memory to the block, a launch that reads them, l0rt_free."""
        cdef uint64_t _i, start, spent
        cdef uint64_t block
        cdef uint32_t[3] one = [1, 1, 1]
        cdef l0rt_arg[4] args = self.args
        cdef l0rt_stream* stream
        args[1].value = &block
        with nogil:
            stream = l0rt_current_stream(-1)
            self.gate.shut(<size_t>l0rt_stream_handle(stream))
            start = now_ns()
            for _i in range(n):
                block = <uint64_t>l0rt_malloc(4096, -1, stream)
                l0rt_memcpy_async(<void*>block, <void*>host, sizeof(float), stream)
                l0rt_launch(self.kernel, one, one, args, 4, 0, stream)
                l0rt_free(<void*>block)
            spent = now_ns() - start
            self.gate.open()
            l0rt_stream_synchronize(stream)
        return spent

    def raw_launch(self, CommandList list, EventPool pool, uint64_t n, size_t host=0):
        """Four times zeKernelSetArgumentValue, then zeCommandListAppendLaunchKernel: the append alone. With ``host``
        zeCommandListAppendMemoryCopy of four bytes there comes first."""
        cdef uint64_t _i, start, spent
        cdef uint32_t k
        cdef ze_group_count_t one = [1, 1, 1]
        with nogil:
            CHECK(ze.zeKernelSetGroupSize(self.bare._h, 1, 1, 1))
            self.gate.shut(<size_t>list._h)
            start = now_ns()
            for _i in range(n):
                if host != 0:
                    CHECK(ze.zeCommandListAppendMemoryCopy(
                        list._h, <void*>self.pointers[1], <void*>host, sizeof(float), NULL, 0, NULL))
                for k in range(4):
                    CHECK(ze.zeKernelSetArgumentValue(self.bare._h, k, self.args[k].size, self.args[k].value))
                CHECK(ze.zeCommandListAppendLaunchKernel(list._h, self.bare._h, &one, NULL, 0, NULL))
            spent = now_ns() - start
            self.gate.open()
            _raw_drain(list, pool)
        return spent
