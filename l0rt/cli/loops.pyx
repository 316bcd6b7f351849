# SPDX-License-Identifier: Apache-2.0
"""The bench's compiled loops: what an embedder's C or Cython code does, through the embedding door, without the GIL.

Every loop runs its work ``n`` times and returns the nanoseconds that it took, those of the loop itself included.
"""

cimport cython
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free as c_free

from l0rt.capi cimport *
from l0rt.core.raw cimport now_ns
from l0rt.runtime.alloc.arena cimport arena_hit, block_drop
from l0rt.runtime.alloc.heap cimport block_free
from l0rt.runtime.alloc.page_map cimport map_find
from l0rt.runtime.alloc.types cimport l0rt_arena, l0rt_block
from l0rt.runtime.current.guard cimport (
    l0rt_device_guard,
    l0rt_device_guard_enter,
    l0rt_device_guard_reset_device,
    l0rt_guard_impl,
    l0rt_stream_guard,
    l0rt_stream_guard_enter,
    l0rt_stream_guard_reset,
    xpu_guard_impl,
)
from l0rt.runtime.memory.pinned cimport host_arena, host_malloc
from l0rt.runtime.streams.devices cimport core_context, core_device, device_at
from l0rt.runtime.streams.types cimport l0rt_device

cdef extern from *:
    """
    /* What <valgrind/callgrind.h> has, for one processor: five shifts and an exchange that do nothing, unless valgrind
     * sees them. */
    static void l0rt_ask_valgrind(unsigned long request, const void *what) {
    #if defined(__x86_64__) && defined(__linux__)
      volatile unsigned long ask[6] = {(unsigned long)'C' << 24 | (unsigned long)'T' << 16 | request,
                                       (unsigned long)what, 0, 0, 0, 0};
      unsigned long answer = 0;
      __asm__ volatile(
          "rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
          : "=d"(answer) : "a"(ask), "0"(answer) : "cc", "memory");
    #else
      (void)request, (void)what;
    #endif
    }
    """
    void ask_valgrind "l0rt_ask_valgrind"(unsigned long request, const void* what) noexcept nogil


def count_start():
    """Let valgrind's callgrind count instructions from now on."""
    ask_valgrind(4, NULL)


def count_zero():
    """Forget what was counted."""
    ask_valgrind(1, NULL)


def count_dump(str name):
    """Write down what was counted since count_zero, under a name."""
    cdef bytes text = name.encode()
    ask_valgrind(3, <const char*>text)


def malloc_free(const uint64_t[::1] sizes, uint64_t n):
    """l0rt_malloc and l0rt_free, going round the ``sizes``, whose number is a power of two."""
    cdef uint64_t i, start, spent, mask = sizes.shape[0] - 1
    cdef const uint64_t* nbytes = &sizes[0]
    cdef l0rt_stream* stream
    cdef void* ptr
    with nogil:
        stream = l0rt_current_stream(-1)
        start = now_ns()
        for i in range(n):
            ptr = l0rt_malloc(nbytes[i & mask], -1, stream)
            l0rt_free(ptr)
        spent = now_ns() - start
    return spent


def pinned_malloc_free(int index, const uint64_t[::1] sizes, uint64_t n):
    """The same with pinned memory, as a Buffer takes it and gives it back."""
    cdef uint64_t i, start, spent, mask = sizes.shape[0] - 1
    cdef const uint64_t* nbytes = &sizes[0]
    cdef l0rt_device* device = device_at(index)
    cdef l0rt_arena* arena = host_arena(device)
    cdef l0rt_block* block
    with nogil:
        start = now_ns()
        for i in range(n):
            block = arena_hit(arena, nbytes[i & mask])
            if block == NULL:
                block = host_malloc(device, nbytes[i & mask])
            block = map_find(block.ptr)
            if not block_drop(block):
                block_free(block)
        spent = now_ns() - start
    return spent


@cython.binding(False)
cdef class Blocks:
    """Slots, each of which is empty or holds an allocation."""
    cdef void** ptr
    cdef size_t* nbytes
    cdef readonly size_t count
    cdef uint64_t position      # where the next swap goes on

    def __cinit__(self, size_t count):
        self.ptr = <void**>calloc(count + 1, sizeof(void*))
        self.nbytes = <size_t*>calloc(count + 1, sizeof(size_t))
        if self.ptr == NULL or self.nbytes == NULL:
            raise MemoryError()
        self.count = count

    @property
    def live(self):
        """The bytes that were asked for and are not freed."""
        cdef size_t i, total = 0
        for i in range(self.count):
            if self.ptr[i] != NULL:
                total += self.nbytes[i]
        return total

    def fill(self, const uint64_t[::1] sizes):
        """Allocate into every slot, going round the ``sizes``, whose number is a power of two."""
        cdef uint64_t i, start, spent, mask = sizes.shape[0] - 1
        cdef const uint64_t* size = &sizes[0]
        cdef l0rt_stream* stream
        with nogil:
            stream = l0rt_current_stream(-1)
            start = now_ns()
            for i in range(self.count):
                self.ptr[i] = l0rt_malloc(size[i & mask], -1, stream)
                self.nbytes[i] = size[i & mask]
            spent = now_ns() - start
        return spent

    def free(self, size_t step=1):
        """Free every slot, or every ``step``-th."""
        cdef uint64_t start, spent, i = 0
        with nogil:
            start = now_ns()
            while i < self.count:
                l0rt_free(self.ptr[i])
                self.ptr[i] = NULL
                i += step
            spent = now_ns() - start
        return spent

    def swap(self, const uint64_t[::1] slots, const uint64_t[::1] sizes, uint64_t n):
        """Free a slot and allocate into it anew, going round ``slots`` and ``sizes``, both of one power of two.

        The next call goes on where this one ended.
        """
        cdef uint64_t i, k, start, spent, mask = sizes.shape[0] - 1
        cdef const uint64_t* slot = &slots[0]
        cdef const uint64_t* size = &sizes[0]
        cdef l0rt_stream* stream
        with nogil:
            stream = l0rt_current_stream(-1)
            start = now_ns()
            for i in range(self.position, self.position + n):
                k = slot[i & mask]
                l0rt_free(self.ptr[k])
                self.ptr[k] = NULL
                self.ptr[k] = l0rt_malloc(size[i & mask], -1, stream)
                self.nbytes[k] = size[i & mask]
            spent = now_ns() - start
        self.position += n
        return spent

    def replay(self, const unsigned char[::1] ops, const uint64_t[::1] slots, const uint64_t[::1] sizes, uint64_t n):
        """The first ``n`` operations of a trace: 0 allocates into a slot, 1 frees it."""
        cdef uint64_t i, k, start, spent
        cdef const unsigned char* op = &ops[0]
        cdef const uint64_t* slot = &slots[0]
        cdef const uint64_t* size = &sizes[0]
        cdef l0rt_stream* stream
        with nogil:
            stream = l0rt_current_stream(-1)
            start = now_ns()
            for i in range(n):
                k = slot[i]
                if op[i] == 0:
                    self.ptr[k] = l0rt_malloc(size[i], -1, stream)
                    self.nbytes[k] = size[i]
                else:
                    l0rt_free(self.ptr[k])
                    self.ptr[k] = NULL
            spent = now_ns() - start
        return spent

    def __dealloc__(self):
        c_free(self.ptr)
        c_free(self.nbytes)


def current_stream(uint64_t n):
    """l0rt_current_stream of the current device."""
    cdef uint64_t _i, start, spent
    with nogil:
        start = now_ns()
        for _i in range(n):
            l0rt_current_stream(-1)
        spent = now_ns() - start
    return spent


def current_device(uint64_t n):
    """l0rt_current_device."""
    cdef uint64_t _i, start, spent
    with nogil:
        start = now_ns()
        for _i in range(n):
            l0rt_current_device()
        spent = now_ns() - start
    return spent


def device_guard(int device, uint64_t n):
    """A device guard, entered and left."""
    cdef const l0rt_guard_impl* impl = xpu_guard_impl()
    cdef l0rt_device_guard guard
    cdef uint64_t _i, start, spent
    with nogil:
        start = now_ns()
        for _i in range(n):
            l0rt_device_guard_enter(&guard, impl, device)
            l0rt_device_guard_reset_device(&guard)
        spent = now_ns() - start
    return spent


def stream_guard(uint64_t n):
    """A stream guard, entered and left, on a stream of the pool."""
    cdef const l0rt_guard_impl* impl = xpu_guard_impl()
    cdef l0rt_stream_guard guard
    cdef l0rt_stream* stream
    cdef uint64_t _i, start, spent
    with nogil:
        stream = l0rt_pool_stream(-1, 0)
        start = now_ns()
        for _i in range(n):
            l0rt_stream_guard_enter(&guard, impl, stream)
            l0rt_stream_guard_reset(&guard)
        spent = now_ns() - start
    return spent


def copy(size_t dst, size_t src, size_t nbytes, uint64_t n):
    """l0rt_memcpy_async: the append alone; the stream is drained before the loop returns."""
    cdef uint64_t _i, start, spent
    cdef l0rt_stream* stream
    with nogil:
        stream = l0rt_current_stream(-1)
        start = now_ns()
        for _i in range(n):
            l0rt_memcpy_async(<void*>dst, <void*>src, nbytes, stream)
        spent = now_ns() - start
        l0rt_stream_synchronize(stream)
    return spent


def core_objects(int index):
    """Return the context and the device behind device ``index``, for the raw driver's loops."""
    return core_context(index), core_device(index)
