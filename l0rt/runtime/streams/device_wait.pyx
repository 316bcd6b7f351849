# SPDX-License-Identifier: Apache-2.0
"""Waits for a whole device: for its streams, and for queues beside l0rt, which only the driver knows.

The driver's wait has no time-out and cannot be interrupted. So a helper thread makes the call, one a device for the
life of the process, and whoever waits looks at how far that has come. A wait that gives up leaves the helper in the
driver, where the next wait finds it: there is never a second one.
"""

from _thread import allocate_lock

from libc.stdint cimport UINT64_MAX, uint64_t
from posix.time cimport CLOCK_MONOTONIC, CLOCK_REALTIME, clock_gettime, timespec

from l0rt.core.device cimport device_rest
from l0rt.runtime.lazy cimport on_fork_child
from l0rt.runtime.streams.hooks cimport DEVICE_SYNCHRONIZATION, call_hooks, hooked
from l0rt.runtime.streams.stream_pool cimport streams_synchronize
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport check_device, device_fails, host_clock_ns, refuse
from l0rt.ze cimport table
from l0rt.ze.api cimport ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, ZE_RESULT_SUCCESS, ze_result_t

from l0rt.runtime.lazy import DRAIN, exit_time_left, on_exit

cdef extern from "<pthread.h>" nogil:
    ctypedef unsigned long pthread_t
    ctypedef struct pthread_cond_t:
        pass
    ctypedef struct pthread_condattr_t:
        pass
    int pthread_create(pthread_t*, void*, void* (*)(void*) noexcept nogil, void*) noexcept
    int pthread_timedjoin_np(pthread_t, void**, const timespec*) noexcept
    int pthread_condattr_init(pthread_condattr_t*) noexcept
    int pthread_condattr_setclock(pthread_condattr_t*, int) noexcept
    int pthread_cond_init(pthread_cond_t*, const pthread_condattr_t*) noexcept
    int pthread_cond_wait(pthread_cond_t*, pthread_mutex_t*) noexcept
    int pthread_cond_timedwait(pthread_cond_t*, pthread_mutex_t*, const timespec*) noexcept
    int pthread_cond_broadcast(pthread_cond_t*) noexcept

cdef extern from "<signal.h>" nogil:
    ctypedef struct sigset_t:
        pass
    enum:
        SIG_SETMASK
    int sigfillset(sigset_t*) noexcept
    int pthread_sigmask(int, const sigset_t*, sigset_t*) noexcept

cdef uint64_t SLICE_NS = 50_000_000     # Ctrl-C and a lost device are noticed after so long at the latest

# The driver's waits are numbered. One that had begun before somebody asked may have missed the newest work: so who
# asks needs the next one.
cdef struct l0rt_helper:
    pthread_mutex_t lock
    pthread_cond_t asked
    pthread_cond_t ended_one
    pthread_t thread
    l0rt_device* device
    bint runs
    bint leaving
    uint64_t wanted
    uint64_t begun
    uint64_t ended
    ze_result_t result          # of the last that ended

cdef l0rt_helper _helpers[64]   # by device
_leaving = allocate_lock()


cdef void* help(void* argument) noexcept nogil:
    cdef l0rt_helper* helper = <l0rt_helper*>argument
    cdef ze_result_t r
    pthread_mutex_lock(&helper.lock)
    while not helper.leaving:
        if helper.begun >= helper.wanted:
            pthread_cond_wait(&helper.asked, &helper.lock)
            continue
        helper.begun += 1
        pthread_mutex_unlock(&helper.lock)
        r = device_rest(helper.device.handle)
        pthread_mutex_lock(&helper.lock)
        helper.result = r
        helper.ended = helper.begun
        pthread_cond_broadcast(&helper.ended_one)
    pthread_mutex_unlock(&helper.lock)
    return NULL


cdef int start(l0rt_helper* helper) noexcept nogil:
    """With the lock held. Signals are for Python's own threads: this one gets none. What pthread_create answers."""
    cdef sigset_t every, before
    cdef int failed
    sigfillset(&every)
    pthread_sigmask(SIG_SETMASK, &every, &before)
    failed = pthread_create(&helper.thread, NULL, help, helper)
    pthread_sigmask(SIG_SETMASK, &before, NULL)
    helper.runs = failed == 0
    return failed


cdef timespec time_after(uint64_t ns) noexcept nogil:
    cdef timespec when
    clock_gettime(CLOCK_MONOTONIC, &when)
    ns += <uint64_t>when.tv_nsec
    when.tv_sec += <long>(ns // 1000000000)
    when.tv_nsec = <long>(ns % 1000000000)
    return when


cdef int others_synchronize(l0rt_device* device, uint64_t timeout_ns) except -1 nogil:
    """Wait for what the driver knows of the device's queues. 1: it is done, 0: the time is up."""
    cdef l0rt_helper* helper = &_helpers[device.index]
    cdef uint64_t start_ns = host_clock_ns(), spent = 0, mine
    cdef ze_result_t r = ZE_RESULT_SUCCESS
    cdef timespec until
    cdef int failed = 0
    cdef bint done = False
    pthread_mutex_lock(&helper.lock)
    mine = helper.begun + 1
    if helper.wanted < mine:
        helper.wanted = mine
        pthread_cond_broadcast(&helper.asked)
    if not helper.runs and not helper.leaving:
        helper.device = device      # before its thread is there, which reads it without the lock
        failed = start(helper)
    pthread_mutex_unlock(&helper.lock)
    if failed:
        with gil:
            raise OSError(failed, "no thread to wait for the device with")
    while True:
        pthread_mutex_lock(&helper.lock)
        until = time_after(min(SLICE_NS, timeout_ns - spent))
        while helper.ended < mine:
            if pthread_cond_timedwait(&helper.ended_one, &helper.lock, &until) != 0:
                break
        done = helper.ended >= mine
        r = helper.result
        pthread_mutex_unlock(&helper.lock)
        if done:
            if r == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE:    # the pointer is there, and that is all
                device.caps.device_sync = False
                return 1
            return 1 if r == ZE_RESULT_SUCCESS else device_fails(device, r)
        spent = host_clock_ns() - start_ns
        if spent >= timeout_ns:
            return 0
        check_device(device)


cdef int device_synchronize(l0rt_device* device, uint64_t timeout_ns) except -1 nogil:
    cdef uint64_t start_ns = host_clock_ns(), spent
    cdef int idle
    if not table.alive or l0rt_load_int(&device.lost):
        return refuse(device)
    idle = streams_synchronize(device, timeout_ns, True)
    if idle and device.caps.device_sync:
        spent = min(host_clock_ns() - start_ns, timeout_ns) if timeout_ns != UINT64_MAX else 0
        idle = others_synchronize(device, timeout_ns - spent)
    if idle and hooked:
        call_hooks(DEVICE_SYNCHRONIZATION, device.index, 0, 0, 0)
    return idle


def _end():
    """End the helpers. False: one did not end in time, for what it waits for goes on."""
    cdef l0rt_helper* helper
    cdef timespec until
    cdef uint64_t left_ns
    cdef int i, failed
    cdef bint all_ended = True
    with _leaving:
        for i in range(64):
            helper = &_helpers[i]
            if not helper.runs:
                continue
            left_ns = <uint64_t>(1e9 * exit_time_left())
            with nogil:
                pthread_mutex_lock(&helper.lock)
                helper.leaving = True
                pthread_cond_broadcast(&helper.asked)
                pthread_mutex_unlock(&helper.lock)
                clock_gettime(CLOCK_REALTIME, &until)
                left_ns += <uint64_t>until.tv_nsec
                until.tv_sec += <long>(left_ns // 1000000000)
                until.tv_nsec = <long>(left_ns % 1000000000)
                failed = pthread_timedjoin_np(helper.thread, NULL, &until)
            if failed:
                all_ended = False
            else:
                helper.runs = False
    return all_ended


cdef void _make() noexcept nogil:
    """New locks, and no thread: at first, and in a forked child, where the parent's threads are not."""
    cdef pthread_condattr_t monotonic
    cdef l0rt_helper* helper
    cdef int i
    pthread_condattr_init(&monotonic)
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC)
    for i in range(64):
        helper = &_helpers[i]
        pthread_mutex_init(&helper.lock, NULL)
        pthread_cond_init(&helper.asked, NULL)
        pthread_cond_init(&helper.ended_one, &monotonic)
        helper.runs = helper.leaving = False
        helper.wanted = helper.begun = helper.ended = 0


_make()
on_fork_child(_make)
on_exit(DRAIN, _end)
