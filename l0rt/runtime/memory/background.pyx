# SPDX-License-Identifier: Apache-2.0
"""The background thread: it caches what other streams have used and use no more, so that no allocation has to look.

It is a plain thread, unknown to Python, which takes the GIL only where the driver fails. While blocks wait it looks
every 100 us, as torch does; while none does it sleeps until a heap posts the semaphore. It ends before anything else
at exit, and is not there in a forked child, where the heaps are closed.
"""

import threading

from posix.time cimport CLOCK_REALTIME, clock_gettime, nanosleep, timespec

from l0rt.runtime.alloc.atomics cimport (
    wakeup_init,
    wakeup_post,
    wakeup_wait,
    load,
    load_i64,
    load_int,
    sem_t,
    store,
    store_int,
)
from l0rt.runtime.alloc.deferred_free cimport pending_poll
from l0rt.runtime.alloc.reclaim cimport bound_keep
from l0rt.runtime.alloc.types cimport l0rt_heap
from l0rt.runtime.lazy cimport on_fork_child
from l0rt.ze cimport table

from l0rt.runtime.lazy import DRAIN, on_exit

cdef extern from "<pthread.h>" nogil:
    ctypedef unsigned long pthread_t
    int pthread_create(pthread_t*, void*, void* (*)(void*) noexcept nogil, void*) noexcept
    int pthread_timedjoin_np(pthread_t, void**, const timespec*) noexcept

cdef extern from "<signal.h>" nogil:
    ctypedef struct sigset_t:
        pass
    enum:
        SIG_SETMASK
    int sigfillset(sigset_t*) noexcept
    int pthread_sigmask(int, const sigset_t*, sigset_t*) noexcept

cdef enum:
    MOST_HEAPS = 64                 # one a device at most
    LOOK_EVERY_NS = 100_000
    PATIENCE_S = 5                  # for a driver call that the thread is in when it has to end

cdef l0rt_heap* _heaps[MOST_HEAPS]
cdef int _count = 0
cdef int _ending = 0
cdef bint _runs = False
cdef sem_t _wakeup
cdef pthread_t _thread
_changing = threading.Lock()        # starting and ending wait for one another


cdef void* reap(void* nothing) noexcept nogil:
    cdef timespec pause
    cdef l0rt_heap* heap
    cdef bint waits
    cdef int i
    pause.tv_sec, pause.tv_nsec = 0, LOOK_EVERY_NS
    while not load_int(&_ending) and load_int(&table.alive):
        waits = False
        for i in range(load_int(&_count)):
            heap = <l0rt_heap*>load(<void**>&_heaps[i])
            if load_int(&heap.closed) == 0:
                pending_poll(heap)
                bound_keep(heap)
                waits = waits or load_i64(&heap.pending) != 0
        if waits:
            nanosleep(&pause, NULL)
        else:
            wakeup_wait(&_wakeup)
    return NULL


cdef int background_add(l0rt_heap* heap) except -1:
    """Let the thread look after the heap too; start it if there is none."""
    cdef int i
    if not table.alive:
        return 0
    with _changing:
        for i in range(_count):
            if _heaps[i] == heap:
                return 0
        if _count == MOST_HEAPS:
            return 0
        if not _runs:
            start()
        store(<void**>&_heaps[_count], heap)
        store_int(&_count, _count + 1)
        store(<void**>&heap.wakeup, &_wakeup)
        wakeup_post(&_wakeup)           # something may wait in it already
    return 0


cdef int start() except -1:
    """Signals are for Python's own threads: this one gets none."""
    global _runs, _ending
    cdef sigset_t every, before
    cdef int failed
    store_int(&_ending, 0)
    sigfillset(&every)
    pthread_sigmask(SIG_SETMASK, &every, &before)
    failed = pthread_create(&_thread, NULL, reap, NULL)
    pthread_sigmask(SIG_SETMASK, &before, NULL)
    if failed:
        raise OSError(failed, "no thread for pinned_use_background_threads")
    _runs = True
    return 0


def background_end():
    """End the thread, if there is one. False: it did not end in time, for it is in the driver."""
    global _runs
    cdef timespec until
    cdef int failed
    if not table.alive:
        return True
    with _changing:
        if not _runs:
            return True
        store_int(&_ending, 1)
        wakeup_post(&_wakeup)
        with nogil:
            clock_gettime(CLOCK_REALTIME, &until)
            until.tv_sec += PATIENCE_S
            failed = pthread_timedjoin_np(_thread, NULL, &until)
        if failed:
            return False            # it is asked again when this is
        store_int(&_count, 0)
        _runs = False
    return True


cdef void _forget() noexcept nogil:
    """The thread stayed in the parent."""
    global _runs, _count
    _runs = False
    _count = 0


wakeup_init(&_wakeup, 0, 0)             # once: whoever frees may post it although nobody listens any more
on_fork_child(_forget)
on_exit(DRAIN, background_end)
