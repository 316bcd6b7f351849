"""Plain host memory as a device: the smallest example of a memory's operations.

Its streams are any numbers. By default all their work is complete at once; with ``hold`` it takes until ``finish`` or
until somebody waits, so that everything that depends on time can be tried in any order.
"""

cimport cython
from libc.stdint cimport UINT64_MAX, uintptr_t
from libc.stdlib cimport calloc, free

from l0rt.runtime.atomics cimport (
    mutex_destroy,
    mutex_init,
    mutex_lock,
    mutex_unlock,
)
from l0rt.runtime.structs cimport PAGE, l0rt_memory_ops

cdef extern from "stdlib.h" nogil:
    void* aligned_alloc(size_t alignment, size_t size) noexcept

cdef enum:
    FULL = 1                        # this backend's only code of its own for out of memory


cdef int plain_reserve(void* self, size_t nbytes, void** out) noexcept nogil:
    cdef l0rt_plain* plain = <l0rt_plain*>self
    cdef int code = 0
    cdef char* memory
    mutex_lock(&plain.mutex)
    if plain.refusals != 0:
        plain.refusals -= 1
        code = plain.refusal
    elif nbytes > plain.capacity - plain.used:
        code = FULL
    else:
        memory = <char*>aligned_alloc(PAGE, nbytes + PAGE)
        if memory == NULL:
            code = FULL
        else:
            out[0] = memory + plain.skew
            plain.used += nbytes
            plain.reserves += 1
    mutex_unlock(&plain.mutex)
    return code


cdef int plain_release(void* self, void* ptr, size_t nbytes) noexcept nogil:
    cdef l0rt_plain* plain = <l0rt_plain*>self
    mutex_lock(&plain.mutex)
    plain.used -= nbytes
    plain.releases += 1
    free(<char*>ptr - plain.skew)
    mutex_unlock(&plain.mutex)
    return 0


cdef int plain_record(void* self, void* stream, void** ticket) noexcept nogil:
    cdef l0rt_plain* plain = <l0rt_plain*>self
    cdef l0rt_plain_ticket* made
    cdef int code
    mutex_lock(&plain.mutex)
    code = plain.record_code
    if code == 0:
        made = <l0rt_plain_ticket*>calloc(1, sizeof(l0rt_plain_ticket))
        made.stream = stream
        made.is_done = not plain.is_held
        if plain.is_held:
            made.older = plain.newest
            plain.newest = made
        plain.records += 1
        ticket[0] = made
    mutex_unlock(&plain.mutex)
    return code


cdef void complete(l0rt_plain* plain, l0rt_plain_ticket* ticket) noexcept nogil:
    cdef l0rt_plain_ticket** link = &plain.newest
    ticket.is_done = True
    while link[0] != NULL:
        if link[0] == ticket:
            link[0] = ticket.older
            return
        link = &link[0].older


cdef int plain_query(void* self, void* ticket) noexcept nogil:
    cdef l0rt_plain* plain = <l0rt_plain*>self
    cdef int code
    mutex_lock(&plain.mutex)
    code = 0 if (<l0rt_plain_ticket*>ticket).is_done else 1
    mutex_unlock(&plain.mutex)
    return code


cdef int plain_wait(void* self, void* ticket) noexcept nogil:
    cdef l0rt_plain* plain = <l0rt_plain*>self
    cdef int code
    mutex_lock(&plain.mutex)
    plain.waits += 1
    code = plain.wait_code
    if code == 0:
        complete(plain, <l0rt_plain_ticket*>ticket)
    mutex_unlock(&plain.mutex)
    return code


cdef void plain_drop(void* self, void* ticket) noexcept nogil:
    cdef l0rt_plain* plain = <l0rt_plain*>self
    mutex_lock(&plain.mutex)
    complete(plain, <l0rt_plain_ticket*>ticket)
    plain.drops += 1
    mutex_unlock(&plain.mutex)
    free(ticket)


cdef int plain_is_oom(int code) noexcept nogil:
    return code == FULL


cdef l0rt_memory_ops plain_ops
plain_ops.reserve = plain_reserve
plain_ops.release = plain_release
plain_ops.record = plain_record
plain_ops.query = plain_query
plain_ops.wait = plain_wait
plain_ops.drop = plain_drop
plain_ops.is_oom = plain_is_oom


@cython.final
@cython.no_gc
cdef class PlainMemory(Memory):
    """Host memory, at most ``capacity`` bytes at once, at addresses ``skew`` behind a multiple of 64 KiB."""

    def __cinit__(self, capacity=None, skew=0):
        if not 0 <= skew < PAGE:
            raise ValueError(f"skew is less than {PAGE}, not {skew}")
        mutex_init(&self.plain.mutex, NULL)
        self.plain.capacity = UINT64_MAX if capacity is None else capacity
        self.plain.skew = skew
        self.ops = &plain_ops
        self.self = &self.plain

    def __dealloc__(self):
        mutex_destroy(&self.plain.mutex)

    def refuse(self, times, code=FULL):
        """Let the next ``times`` reservations answer ``code``; ``code`` 1 means out of memory."""
        self.plain.refusal, self.plain.refusals = code, times

    def fail(self, record=0, wait=0):
        """Let record and wait answer these codes from now on."""
        self.plain.record_code, self.plain.wait_code = record, wait

    def hold(self, on=True):
        """From now on work takes until finish() or until somebody waits for it."""
        self.plain.is_held = on

    def finish(self, stream=None, count=None):
        """Complete the ``count`` oldest tickets of ``stream`` (None: all); return how many there were."""
        cdef l0rt_plain_ticket* ticket
        cdef l0rt_plain_ticket* oldest
        cdef uintptr_t wanted = 0 if stream is None else stream
        cdef int64_t left = -1 if count is None else count
        cdef bint any_stream = stream is None
        cdef int64_t finished = 0
        with nogil:
            mutex_lock(&self.plain.mutex)
            while left != 0:
                oldest = NULL
                ticket = self.plain.newest
                while ticket != NULL:
                    if any_stream or <uintptr_t>ticket.stream == wanted:
                        oldest = ticket
                    ticket = ticket.older
                if oldest == NULL:
                    break
                complete(&self.plain, oldest)
                finished += 1
                left -= 1
            mutex_unlock(&self.plain.mutex)
        return finished

    @property
    def counters(self):
        """What was called how often, and the bytes in use."""
        return {
            "used": self.plain.used,
            "reserves": self.plain.reserves,
            "releases": self.plain.releases,
            "records": self.plain.records,
            "waits": self.plain.waits,
            "drops": self.plain.drops,
        }
