# SPDX-License-Identifier: Apache-2.0
"""What a foreign Cython module does with kernels, without the GIL; and every wrong way to do it."""

from libc.stdint cimport uint32_t

from l0rt.capi cimport *


def stored(const unsigned char[::1] code, int value, uint32_t n, int format=0):
    """Let the kernel `store` write a number to each of n places, the last from an offset on; return what is there."""
    cdef bytearray result = bytearray(4 * n)
    cdef unsigned char[::1] target = result
    cdef l0rt_module* module
    cdef l0rt_kernel* kernel
    cdef l0rt_stream* stream
    cdef l0rt_arg[2] args
    cdef uint32_t[3] groups = [n, 1, 1], size = [1, 1, 1], one = [1, 1, 1], offset = [n - 1, 0, 0], nowhere = [0, 0, 0]
    cdef void* block
    with nogil:
        stream = l0rt_pool_stream(0, 0)
        module = l0rt_module_create(0, &code[0], code.shape[0], format, NULL)
        kernel = l0rt_kernel_get(module, b"store")
        block = l0rt_malloc(4 * n, 0, stream)
        args[0].value, args[0].size = &block, sizeof(void*)
        args[1].value, args[1].size = &value, sizeof(int)
        l0rt_memset_async(block, 0, 4 * n, stream)
        groups[0] = n - 1
        if n > 2:
            groups[0] = n - 2
            l0rt_launch_with_offset(kernel, one, size, nowhere, args, 2, 0, stream)
            nowhere[0] = 1
            l0rt_launch_with_offset(kernel, groups, size, nowhere, args, 2, 0, stream)
        elif n > 1:
            l0rt_launch(kernel, groups, size, args, 2, 0, stream)
        l0rt_launch_with_offset(kernel, one, size, offset, args, 2, 0, stream)
        l0rt_module_release(module)
        l0rt_memcpy_async(&target[0], block, 4 * n, stream)
        l0rt_stream_synchronize(stream)
        l0rt_free(block)
    return bytes(result)


def mistake(const unsigned char[::1] code, int which):
    """Make one mistake."""
    cdef l0rt_module* module = NULL
    cdef l0rt_kernel* kernel
    cdef l0rt_arg[2] args
    cdef uint32_t[3] one = [1, 1, 1], none = [0, 1, 1], huge = [1 << 20, 1, 1]
    cdef uint32_t[3] most = [0xFFFFFFFF, 0, 0]
    cdef long long word = 0
    args[0].value, args[0].size = &word, sizeof(void*)
    args[1].value, args[1].size = &word, 4
    try:
        with nogil:
            if which == 0:
                l0rt_module_create(0, NULL, 0, 0, NULL)
            elif which == 1:
                l0rt_module_create(99, &code[0], code.shape[0], 0, NULL)
            elif which == 2:
                l0rt_module_create(0, &code[0], code.shape[0] - 4, 0, NULL)
            elif which == 3:
                l0rt_module_create(0, &code[0], code.shape[0], 7, NULL)
            module = l0rt_module_create(0, &code[0], code.shape[0], L0RT_MODULE_SPIRV, NULL)
            if which == 4:
                l0rt_kernel_get(NULL, b"store")
            elif which == 5:
                l0rt_kernel_get(module, NULL)
            elif which == 6:
                l0rt_kernel_get(module, b"stor")
            kernel = l0rt_kernel_get(module, b"store")
            if which == 7:
                l0rt_launch(NULL, one, one, args, 2, 0, NULL)
            elif which == 8:
                l0rt_launch(kernel, one, one, args, 1, 0, NULL)
            elif which == 9:
                l0rt_launch(kernel, none, one, args, 2, 0, NULL)
            elif which == 10:
                l0rt_launch(kernel, one, huge, args, 2, 0, NULL)
            elif which == 11:
                l0rt_launch(kernel, one, one, args, 2, 8, NULL)
            elif which == 12:
                l0rt_launch(kernel, one, one, NULL, 2, 0, NULL)
            elif which == 13:
                args[1].size = 3
                l0rt_launch(kernel, one, one, args, 2, L0RT_LAUNCH_COOPERATIVE, NULL)
            elif which == 14:
                l0rt_launch(kernel, one, one, args, 2, 0, l0rt_pool_stream(1, 0))
            elif which == 15:
                l0rt_launch_with_offset(kernel, one, one, NULL, args, 2, 0, NULL)
            elif which == 16:
                l0rt_launch_with_offset(kernel, huge, one, most, args, 2, 0, NULL)
    finally:
        l0rt_module_release(module)
        l0rt_module_release(NULL)


def churn(const unsigned char[::1] code, long n):
    """Allocate, copy, launch and free n times, and look at the result now and then; return how often it was right."""
    cdef l0rt_arg[2] args
    cdef uint32_t[3] one = [1, 1, 1]
    cdef l0rt_event* event = NULL
    cdef l0rt_module* module = NULL
    cdef l0rt_kernel* kernel
    cdef l0rt_stream* stream
    cdef void* pinned = NULL
    cdef void* block
    cdef int* host
    cdef long i, right = 0
    cdef int value
    try:
        with nogil:
            module = l0rt_module_create(0, &code[0], code.shape[0], L0RT_MODULE_SPIRV, NULL)
            kernel = l0rt_kernel_get(module, b"store")
            stream = l0rt_pool_stream(0, 0)
            pinned = l0rt_host_malloc(2 * sizeof(int), 0)
            host = <int*>pinned
            host[0] = -1
            for i in range(n):
                value = <int>i
                block = l0rt_malloc(4096, 0, stream)
                l0rt_memcpy_async(block, host, sizeof(int), stream)
                args[0].value, args[0].size = &block, sizeof(void*)
                args[1].value, args[1].size = &value, sizeof(int)
                l0rt_launch(kernel, one, one, args, 2, 0, stream)
                if i % 1024 == 0:
                    l0rt_memcpy_async(host + 1, block, sizeof(int), stream)
                    l0rt_event_record(&event, stream, 0)
                    l0rt_event_synchronize(event)
                    right += host[1] == value
                l0rt_free(block)
            l0rt_stream_synchronize(stream)
    finally:
        l0rt_event_destroy(event)
        l0rt_host_free(pinned)
        l0rt_module_release(module)
    return right
