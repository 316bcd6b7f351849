# SPDX-License-Identifier: Apache-2.0
"""What a thread calls current: its device, and a stream on every device. Nothing below knows of it."""

from _thread import get_ident

cimport cython
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memmove

from l0rt._base.interrupts cimport enter_at_once
from l0rt.runtime.lazy cimport on_fork_child
from l0rt.runtime.streams.capture cimport capture_leave
from l0rt.runtime.streams.devices cimport device_at, device_total, ensure
from l0rt.runtime.streams.naming cimport NO_INDEX, index_of
from l0rt.runtime.streams.queue cimport Queue
from l0rt.runtime.streams.types cimport *
from l0rt.ze cimport table

from l0rt.runtime.streams.devices import lazy

cdef extern from *:
    """
    #include <pthread.h>
    #include <stdlib.h>
    /* One pointer a thread, in the static TLS block: reading it is one load, without a call. */
    static __thread void *l0rt_tls __attribute__((tls_model("initial-exec")));
    static pthread_key_t l0rt_tls_key;
    static pthread_once_t l0rt_tls_once = PTHREAD_ONCE_INIT;
    static void (*l0rt_tls_free)(void *);
    static void l0rt_tls_make_key(void) { pthread_key_create(&l0rt_tls_key, l0rt_tls_free); }
    static void l0rt_tls_set(void *record) {
      pthread_once(&l0rt_tls_once, l0rt_tls_make_key);
      pthread_setspecific(l0rt_tls_key, record); /* so that the record is freed with the thread */
      l0rt_tls = record;
    }
    """
    void* l0rt_tls
    void l0rt_tls_set(void*) noexcept nogil
    void (*l0rt_tls_free)(void*) noexcept nogil


cdef l0rt_thread* thread_peek() noexcept nogil:
    return <l0rt_thread*>l0rt_tls


cdef l0rt_thread* thread_record() except NULL nogil:
    return own()


cdef inline l0rt_thread* own() except NULL nogil:
    if l0rt_tls == NULL:
        make_record()
    return <l0rt_thread*>l0rt_tls


cdef int make_record() except -1 nogil:
    cdef l0rt_thread* record
    cdef int i
    ensure()
    record = <l0rt_thread*>calloc(1, sizeof(l0rt_thread))
    if record == NULL:
        with gil:
            raise MemoryError()
    for i in range(device_total()):
        record.streams[i] = &device_at(i).default_stream
    l0rt_tls_set(record)
    return 0


cdef int current_device() noexcept nogil:
    """The calling thread's device index; 0 before it chose one."""
    return (<l0rt_thread*>l0rt_tls).device if l0rt_tls != NULL else 0


cdef int exchange_device(int device) except -1 nogil:
    """Make ``device`` current, unless it is negative; return the previous index."""
    cdef l0rt_thread* thread = own()
    cdef int previous = thread.device
    if device >= 0:
        if device >= device_total():
            device_at(device)   # raises
        thread.device = device
    return previous


cdef l0rt_stream* current_stream(int device) except NULL nogil:
    """The thread's stream on ``device``, -1: on its current device."""
    cdef l0rt_thread* thread = <l0rt_thread*>l0rt_tls
    if device == -1 and thread != NULL:     # by far the most: three loads, without a call
        return thread.streams[thread.device]
    return stream_on(device)


cdef l0rt_stream* stream_on(int device) except NULL nogil:
    cdef l0rt_thread* thread = own()
    if device == -1:
        device = thread.device
    elif not 0 <= device < device_total():
        device_at(device)       # raises
    return thread.streams[device]


cdef l0rt_stream* stream_or_current(device, Queue stream) except NULL:
    """The stream, or the current one of the device that Python names; ValueError if the stream is another device's."""
    cdef int index
    lazy.init()
    index = index_of(device, NO_INDEX, lazy.device_type)
    if index == NO_INDEX:
        index = -1
    elif index < 0:
        device_at(index)        # raises
    if stream is None:
        return current_stream(index)
    if index >= 0 and index != stream.ptr.device.index:
        raise ValueError(f"device {index} is not the stream's device, {stream.ptr.device.index}")
    return stream.ptr


cdef l0rt_stream* exchange_stream(l0rt_stream* stream) except NULL nogil:
    """Make ``stream`` and its device current; return the previous stream of that device."""
    cdef l0rt_thread* thread = own()
    cdef l0rt_stream* previous = thread.streams[stream.device.index]
    thread.streams[stream.device.index] = stream
    thread.device = stream.device.index
    return previous


cdef int restore(int device, l0rt_stream* stream) noexcept nogil:
    """Undo a guard: ``stream`` back on its own device, then ``device`` current; -1 and NULL change nothing."""
    cdef l0rt_thread* thread = <l0rt_thread*>l0rt_tls
    if thread == NULL:          # forked inside the guard: there is nothing left to restore
        return 0
    if stream != NULL:
        thread.streams[stream.device.index] = stream
    if device >= 0:
        thread.device = device
    return 0


cdef int save(void* owner, int device, l0rt_stream* stream) except -1 nogil:
    cdef l0rt_thread* thread = own()
    cdef l0rt_saved* grown
    if thread.depth == thread.capacity:
        grown = <l0rt_saved*>realloc(thread.saved, (2 * thread.capacity + 16) * sizeof(l0rt_saved))
        if grown == NULL:
            with gil:
                raise MemoryError()
        thread.saved = grown
        thread.capacity = 2 * thread.capacity + 16
    thread.saved[thread.depth].owner = owner
    thread.saved[thread.depth].device = device
    thread.saved[thread.depth].stream = stream
    thread.depth += 1
    return 0


cdef int restore_saved(void* owner) noexcept nogil:
    """Undo the newest change that ``owner`` made on this thread; -1 if it made none here."""
    cdef l0rt_thread* thread = <l0rt_thread*>l0rt_tls
    cdef int i
    if thread == NULL:          # a thread that never entered anything, or a child forked inside the block
        return -1 if table.alive else 0
    for i in range(thread.depth - 1, -1, -1):
        if thread.saved[i].owner == owner:
            restore(thread.saved[i].device, thread.saved[i].stream)
            thread.depth -= 1
            if i < thread.depth:
                memmove(&thread.saved[i], &thread.saved[i + 1], (thread.depth - i) * sizeof(l0rt_saved))
            return 0
    return -1


cdef void (*thread_end)(l0rt_thread* thread) noexcept nogil


cdef void on_thread_end(void (*function)(l0rt_thread* thread) noexcept nogil) noexcept:
    global thread_end
    thread_end = function


cdef void free_record(void* record) noexcept nogil:
    if l0rt_tls == record:
        capture_leave()
    if l0rt_tls == record and thread_end != NULL:
        thread_end(<l0rt_thread*>record)
    free((<l0rt_thread*>record).saved)
    free(record)


cdef void _forget() noexcept nogil:
    global l0rt_tls
    l0rt_tls = NULL             # the child's first call finds out that it was forked


@cython.binding(False)
cdef class Guard:
    """Blocks entered and not left, of every thread; each has what it found, and restores it. A subclass says what one
    is, and what it begins with. C, so that no handler of a signal runs between a change and what restores it."""
    cdef dict blocks            # by thread, the innermost last

    def __cinit__(self, *args, **kwargs):
        self.blocks = {}

    @property
    def _block(self):
        return blocks_of(self)[-1]

    def __enter__(self):
        block = self._make()
        try:
            self._begin(block)
            self.blocks.setdefault(get_ident(), []).append(block)
        except BaseException:
            block.reset()
            raise
        return self

    def __exit__(self, kind, value, trace):
        cdef list blocks = blocks_of(self)
        block = blocks.pop()
        if not blocks:
            del self.blocks[get_ident()]
        block.reset()

    def __copy__(self):
        raise TypeError(f"a {type(self).__name__} cannot be copied: two would restore the same original")

    def __deepcopy__(self, memo):
        self.__copy__()

    def __reduce__(self):
        raise TypeError(f"a {type(self).__name__} cannot be pickled")


cdef list blocks_of(Guard guard):
    """This thread's."""
    cdef list blocks = guard.blocks.get(get_ident())
    if blocks is None:
        raise RuntimeError("this thread is not inside the guard: a with block begins and ends on one thread")
    return blocks


l0rt_tls_free = free_record
on_fork_child(_forget)
enter_at_once((Guard,))
