# SPDX-License-Identifier: Apache-2.0
"""Waits of the host: in slices, so that signals, time-outs and lost devices are seen; and how they pass their time."""

from _thread import allocate_lock

from cpython.exc cimport PyErr_CheckSignals
from cpython.float cimport PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from libc.stdint cimport UINT64_MAX, uint64_t
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, nanosleep, timespec

from l0rt.core.cmdlist cimport list_synchronize
from l0rt.core.device cimport device_rest, device_status
from l0rt.core.event cimport event_query, event_wait
from l0rt._base.interrupts cimport signals_pass
from l0rt.runtime.alloc.atomics cimport mutex_init, mutex_lock, mutex_unlock
from l0rt.runtime.alloc.types cimport L0RT_INTERRUPTED
from l0rt.runtime.lazy cimport on_fork_child
from l0rt.runtime.streams.capture cimport capture_lasts, capture_refuse_slot, replays_failure
from l0rt.runtime.streams.orphans cimport orphan_refuse, orphans_look, orphans_tell, slot_is_orphaned
from l0rt.runtime.streams.types cimport *
from l0rt._base.threads cimport pthread_t, thread_join, thread_start, time_after
from l0rt.ze cimport table
from l0rt.ze.api cimport (
    ZE_RESULT_ERROR_DEVICE_LOST,
    ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY,
    ZE_RESULT_ERROR_UNSUPPORTED_FEATURE,
    ZE_RESULT_NOT_READY,
    ZE_RESULT_SUCCESS,
    ze_event_handle_t,
    ze_result_t,
)
from l0rt.ze.status cimport is_device_lost, raise_result

from l0rt import config
from l0rt.errors import DeviceLostError, KernelFaultError, L0Error
from l0rt.runtime.lazy import exit_time_left
from l0rt.runtime.streams.devices import lazy
from l0rt._base.integers import real_number
from l0rt.ze.status import error_of

cdef extern from "<sched.h>" nogil:
    int sched_yield()

cdef extern from "l0rt/atomics.h" nogil:
    void l0rt_pause() noexcept

cdef uint64_t FIRST_SLICE_NS = 10_000_000
cdef uint64_t SLICE_NS = 100_000_000   # Ctrl-C and a lost device are noticed after so long at the latest
cdef uint64_t SHORTEST_NAP_NS = 10_000
cdef uint64_t LONGEST_NAP_NS = 1_000_000

cdef dict POLICIES = {"spin": WAIT_SPIN, "yield": WAIT_YIELD, "block": WAIT_BLOCK}


cdef struct Policies:
    int common                              # of no device in particular
    int own[L0RT_MAX_DEVICES]

cdef Policies _of_events, _of_streams


cdef int event_policy(word, int index) except -1:
    return policy_of(&_of_events, index) if word is None else policy_named(word)


cdef int stream_policy(word, int index) except -1:
    return policy_of(&_of_streams, index) if word is None else policy_named(word)


cdef inline int policy_of(const Policies* policies, int index) noexcept:
    return policies.own[index] if 0 <= index < L0RT_MAX_DEVICES else policies.common


cdef int policy_named(word) except -1:
    if word in POLICIES:
        return POLICIES[word]
    raise ValueError(f"a wait policy must be one of {', '.join(POLICIES)}, or None for the setting's; got {word!r}")


def read_policies():
    """Take the wait policies over from the settings."""
    read_policies_of(&_of_events, "event")
    read_policies_of(&_of_streams, "stream")


cdef int read_policies_of(Policies* policies, str kind) except -1:
    cdef int i
    own = config.indices_set()
    policies.common = POLICIES.get(config.effective(f"xpu.{kind}.wait_policy"), WAIT_ADAPTIVE)
    for i in range(L0RT_MAX_DEVICES):
        policies.own[i] = policies.common
        if i in own:
            policies.own[i] = POLICIES.get(config.effective(f"xpu:{i}.{kind}.wait_policy"), WAIT_ADAPTIVE)
    return 0


cdef long LONGEST = 10_000_000_000      # seconds: centuries


cdef uint64_t timeout_ns(timeout) except? 0:
    """Seconds, None for no limit, as nanoseconds."""
    cdef double seconds
    if timeout is None:
        return UINT64_MAX
    if PyFloat_CheckExact(timeout):
        seconds = timeout
    elif PyLong_CheckExact(timeout):
        seconds = min(max(timeout, -1), LONGEST)
    else:
        seconds = real_number(timeout, "timeout")
    if not seconds >= 0:
        raise ValueError(f"timeout must be None or seconds that are not negative, got {timeout!r}")
    return UINT64_MAX - 1 if seconds >= LONGEST else <uint64_t>(seconds * 1e9)


cdef uint64_t host_clock_ns() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <uint64_t>now.tv_sec * 1000000000 + <uint64_t>now.tv_nsec


cdef int refuse(l0rt_device* device) except -1 nogil:
    """Raise why this device may not be used any more: lost, forked, or the process is exiting."""
    with gil:
        if device.lost:
            raise DeviceLostError(f"device {device.index} was lost; restart the process to use it again",
                                  ("ERROR_DEVICE_LOST", <long>ZE_RESULT_ERROR_DEVICE_LOST))
        lazy.init()
        raise RuntimeError("l0rt was shut down")


cdef void stay_if_left() noexcept nogil:
    """Never return once the interpreter has left while this daemon thread was in the driver.

    There is nobody to tell anything any more: to take the GIL then crashes. The process ends around this thread.
    """
    while not table.alive and not table.forked:
        nap(WAIT_BLOCK, UINT64_MAX, UINT64_MAX)


# Intel's driver has this answer for any refusal of Linux's.
WORK_REFUSED = ("the driver could not submit the work: there is no memory for it, or the device was reset, which dmesg "
                "shows, and then the process has to be started again")


cdef int device_fails(l0rt_device* device, int result) except -1 nogil:
    """Raise the driver's ``result``; a lost device stays lost. A driver that was shut down returns errors, too."""
    stay_if_left()
    if is_device_lost(<ze_result_t>result):
        l0rt_store_int(&device.lost, 1)
    if result == ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY:
        with gil:
            raise error_of(<long>result, WORK_REFUSED)
    return raise_result(<ze_result_t>result)


cdef int check_device(l0rt_device* device) except -1 nogil:
    cdef ze_result_t r
    stay_if_left()
    if l0rt_load_int(&device.lost):
        return refuse(device)
    if device.caps.device_status:
        r = device_status(device.handle)
        if is_device_lost(r):
            return device_fails(device, r)
    orphans_look()
    with gil:
        PyErr_CheckSignals()
    return 0


cdef int check_exporter(l0rt_slot* slot) except -1 nogil:
    """Raise if nobody will signal what a slot waits for, or if nobody but a host has."""
    if slot.peer != NULL:
        if slot_is_orphaned(slot):
            return orphan_refuse(slot.peer.pid)
    elif slot.stream != NULL and (slot.stream.relies_on != 0 or slot.stream.orphan != 0):
        return orphans_tell(slot.stream, slot.seq)
    return 0


cdef void slot_completed(l0rt_slot* slot) noexcept nogil:
    """The slot was seen signalled: so is everything before it on its stream."""
    if slot.cache == NULL:      # another thread or process may have recorded it again meanwhile
        return
    if slot.stream != NULL:
        l0rt_raise64(&slot.stream.done, slot.seq)
    l0rt_store_int(&slot.complete, 1)


cdef bint slot_known_complete(l0rt_slot* slot) noexcept nogil:
    """Is the slot known to be complete without asking the driver? Later work of its stream may have been waited for."""
    if l0rt_load_int(&slot.complete):
        return True
    if slot.stream == NULL or l0rt_load64(&slot.stream.done) < slot.seq:
        return False
    if slot.cache != NULL:      # else it may be recorded again just now
        l0rt_store_int(&slot.complete, 1)
    return True


cdef inline ze_result_t event_ask(ze_event_handle_t event, uint64_t timeout_ns) noexcept nogil:
    return event_wait(event, timeout_ns) if timeout_ns != 0 else event_query(event)


cdef ze_result_t slot_ask(l0rt_slot* slot, uint64_t timeout_ns) noexcept nogil:
    """Ask the driver once, or let it wait. NOT_READY also where another thread is asking, and only one may."""
    cdef ze_result_t r
    cdef bint counter = slot.cache != NULL and slot.cache.kind == SLOT_COUNTER
    cdef bint alone = slot.device.racing_queries and not counter
    cdef bint naps = slot.device.outlasting_waits and counter
    if slot.event == NULL:          # captured: nothing signals it, and nothing is behind it once the capture is over
        return ZE_RESULT_NOT_READY if capture_lasts(slot) else ZE_RESULT_SUCCESS
    if alone and not l0rt_gate_try_once(&slot.asked):
        if timeout_ns != 0:
            nap(WAIT_ADAPTIVE, 0, timeout_ns)
        return ZE_RESULT_NOT_READY
    r = event_ask(slot.event, 0 if naps else timeout_ns)
    if alone:
        l0rt_gate_open(&slot.asked)
    if naps and r == ZE_RESULT_NOT_READY and timeout_ns != 0:
        nap(WAIT_ADAPTIVE, 0, timeout_ns)
    return r


cdef int slot_poll(l0rt_slot* slot) noexcept nogil:
    cdef ze_result_t r
    if slot_known_complete(slot):
        return 1
    r = slot_ask(slot, 0)
    if r == ZE_RESULT_SUCCESS:
        slot_completed(slot)
        return 1
    return 0 if r == ZE_RESULT_NOT_READY else -1


cdef int stream_fails(l0rt_stream* stream, ze_result_t result) except -1 nogil:
    if is_device_lost(result) or not l0rt_load_int(&stream.launched):
        return device_fails(stream.device, result)
    with gil:
        error = error_of(<long>result)
        if type(error) is not L0Error:      # the result says what else it is
            raise error
        raise KernelFaultError(str(error), error.code)


cdef ze_result_t ask_for_failure(l0rt_slot* slot) noexcept nogil:
    if slot.device.caps.list_sync:
        return list_synchronize(slot.stream.list, 0)
    return event_wait(slot.event, 0)


cdef int find_failure(l0rt_slot* slot) except -1 nogil:
    """Ask whether one of the launches before a slot that is complete has failed: to look at an event does not tell."""
    cdef l0rt_stream* stream = slot.stream
    cdef bint is_over
    cdef ze_result_t r, of_replays
    if l0rt_load_list(&stream.list) == NULL or not table.alive:
        return 0
    check_exporter(slot)
    mutex_lock(&stream.lock)
    r = ask_for_failure(slot)
    is_over = r == ZE_RESULT_SUCCESS and (stream.device.caps.list_sync or slot.seq >= stream.issued)
    if r == ZE_RESULT_SUCCESS or r == ZE_RESULT_NOT_READY:
        of_replays = replays_failure(stream, is_over)
        r = r if of_replays == ZE_RESULT_SUCCESS else of_replays
    if is_over and r == ZE_RESULT_SUCCESS:
        l0rt_store_int(&stream.launched, 0)
    mutex_unlock(&stream.lock)
    return 0 if r == ZE_RESULT_SUCCESS or r == ZE_RESULT_NOT_READY else stream_fails(stream, r)


cdef inline int slot_is_complete(l0rt_slot* slot) except -1 nogil:
    """The answer to who asks for a slot that is complete. An imported one never is for good."""
    if slot.stream != NULL and l0rt_load_int(&slot.stream.launched):
        find_failure(slot)
    return 1


cdef int slot_query(l0rt_slot* slot) except -1 nogil:
    cdef ze_result_t r
    if slot_known_complete(slot):
        return slot_is_complete(slot)
    if slot.event == NULL:
        return capture_refuse_slot(slot, b"Event.query()")
    if not table.alive or slot.device.lost:
        return refuse(slot.device)
    r = slot_ask(slot, 0)
    if slot.peer != NULL:
        check_exporter(slot)
    if r == ZE_RESULT_SUCCESS:
        slot_completed(slot)
        return slot_is_complete(slot)
    if r == ZE_RESULT_NOT_READY:
        return 0
    return device_fails(slot.device, r)


cdef int slot_wait(l0rt_slot* slot, uint64_t timeout_ns) except -1 nogil:
    return slot_wait_by(slot, timeout_ns, WAIT_ADAPTIVE)


cdef ze_result_t look(l0rt_slot* slot, int policy, uint64_t spent_ns, uint64_t left_ns) noexcept nogil:
    """Ask the driver once; in the beginning of an adaptive wait, let it wait."""
    if policy == WAIT_ADAPTIVE and spent_ns < FIRST_SLICE_NS:
        return slot_ask(slot, min(FIRST_SLICE_NS, left_ns))
    return slot_ask(slot, 0)


cdef int slot_wait_by(l0rt_slot* slot, uint64_t timeout_ns, int policy) except -1 nogil:
    cdef ze_result_t r
    cdef uint64_t start, checked, spent = 0
    if slot_known_complete(slot):
        return slot_is_complete(slot)
    if slot.event == NULL:
        return capture_refuse_slot(slot, b"Event.synchronize()")
    if not table.alive or slot.device.lost:
        return refuse(slot.device)
    start = host_clock_ns()
    checked = 0
    while True:
        r = look(slot, policy, spent, timeout_ns - spent)
        if r == ZE_RESULT_SUCCESS:
            if slot.peer != NULL:
                check_exporter(slot)
            slot_completed(slot)
            return slot_is_complete(slot)
        if r != ZE_RESULT_NOT_READY:
            return device_fails(slot.device, r) if slot.stream == NULL else stream_fails(slot.stream, r)
        spent = host_clock_ns() - start
        if spent >= timeout_ns:
            return 0
        if spent - checked >= SLICE_NS or (checked == 0 and spent >= FIRST_SLICE_NS):
            check_device(slot.device)
            check_exporter(slot)
            checked = spent
        if policy != WAIT_ADAPTIVE or spent >= FIRST_SLICE_NS:
            nap(policy, spent, timeout_ns - spent)


cdef int slot_rest(l0rt_slot* slot) noexcept nogil:
    cdef uint64_t start, checked = 0, spent = 0
    cdef ze_result_t r
    if slot_known_complete(slot):
        return 0
    if slot.event == NULL:
        return ZE_RESULT_NOT_READY if capture_lasts(slot) else 0
    start = host_clock_ns()
    while not l0rt_load_int(&slot.device.lost):
        r = look(slot, WAIT_ADAPTIVE, spent, UINT64_MAX)
        stay_if_left()
        if r == ZE_RESULT_SUCCESS:
            slot_completed(slot)
            return 0
        if r == ZE_RESULT_NOT_READY:
            spent = host_clock_ns() - start
            if spent - checked >= SLICE_NS or (checked == 0 and spent >= FIRST_SLICE_NS):
                if slot.device.caps.device_status:
                    r = device_status(slot.device.handle)
                if not signals_pass():
                    return L0RT_INTERRUPTED
                if slot.peer != NULL:
                    slot_is_orphaned(slot)      # then it is signalled
                orphans_look()
                checked = spent
            if spent >= FIRST_SLICE_NS:
                nap(WAIT_ADAPTIVE, spent, UINT64_MAX)
        elif not is_device_lost(r):
            return r
        if is_device_lost(r):
            l0rt_store_int(&slot.device.lost, 1)
    return 0


cdef void nap(int policy, uint64_t spent_ns, uint64_t left_ns) noexcept nogil:
    """Pass the time between two looks: the longer the wait has been, the longer, so that little is added to it."""
    cdef timespec length
    if policy == WAIT_SPIN:
        return
    if policy == WAIT_YIELD:
        sched_yield()
        return
    length.tv_sec = 0
    length.tv_nsec = <long>min(max(spent_ns // 64, SHORTEST_NAP_NS), LONGEST_NAP_NS, left_ns)
    nanosleep(&length, NULL)


config.on_change(read_policies)
read_policies()


# --- Waits for all queues of a device, those beside l0rt too, which only the driver knows. Its wait has no time-out
# and cannot be interrupted. So a helper thread makes the call, one a device for the life of the process, and whoever
# waits looks at how far that has come. A wait that gives up leaves the helper in the driver, where the next wait
# finds it: there is never a second one.
#
# To sleep and to be woken takes a thread longer than the driver takes to find an idle device idle. So both sides look
# for a moment before they sleep: who waits always, the helper after a question that came soon behind an answer. Where
# they share a processor, who looks keeps the other from running: so a look in vain is followed by waits without one,
# more of them each time.

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_cond_t:
        pass
    ctypedef struct pthread_condattr_t:
        pass
    int pthread_condattr_init(pthread_condattr_t*) noexcept
    int pthread_condattr_setclock(pthread_condattr_t*, int) noexcept
    int pthread_cond_init(pthread_cond_t*, const pthread_condattr_t*) noexcept
    int pthread_cond_wait(pthread_cond_t*, pthread_mutex_t*) noexcept
    int pthread_cond_timedwait(pthread_cond_t*, pthread_mutex_t*, const timespec*) noexcept
    int pthread_cond_broadcast(pthread_cond_t*) noexcept

cdef uint64_t HELPED_SLICE_NS = 50_000_000  # nothing is asked meanwhile, so it may be short
cdef uint64_t ANSWER_NS = 200_000           # what is asked without time to spare, an idle device still answers
cdef uint64_t MOMENT_NS = 20_000            # about what two changes of threads take
cdef int MOST_BLIND = 255                   # waits without a look between two looks in vain

cdef struct l0rt_sight:
    int blind                   # how many waits more are without a look
    int blinded                 # and how many there were to be after the last look

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
    uint64_t told_wanted        # `wanted` and `ended` for who looks without the lock, which is free again by then
    uint64_t told_ended
    l0rt_sight asking           # of who waits: under the lock
    l0rt_sight helping

cdef l0rt_helper _helpers[64]   # by device
_leaving = allocate_lock()


cdef bint may_look(l0rt_sight* sight) noexcept nogil:
    if sight.blind == 0:
        return True
    sight.blind -= 1
    return False


cdef void looked(l0rt_sight* sight, bint seen) noexcept nogil:
    sight.blind = sight.blinded = 0 if seen else min(2 * sight.blinded + 1, MOST_BLIND)


cdef bint seen_soon(const uint64_t* where, uint64_t number) noexcept nogil:
    """Look for a moment whether a number is reached."""
    cdef uint64_t start_ns
    cdef int _i
    if l0rt_load64(where) >= number:
        return True
    start_ns = host_clock_ns()
    while True:
        for _i in range(16):
            if l0rt_load64(where) >= number:
                return True
            l0rt_pause()
        if host_clock_ns() - start_ns >= MOMENT_NS:
            return False


cdef void* help(void* argument) noexcept nogil:
    cdef l0rt_helper* helper = <l0rt_helper*>argument
    cdef uint64_t answered_ns = 0
    cdef bint looks = False
    cdef ze_result_t r
    mutex_lock(&helper.lock)
    while not helper.leaving:
        if helper.begun >= helper.wanted and looks:
            mutex_unlock(&helper.lock)
            looks = seen_soon(&helper.told_wanted, helper.begun + 1)
            looked(&helper.helping, looks)
            mutex_lock(&helper.lock)
            continue
        if helper.begun >= helper.wanted:
            pthread_cond_wait(&helper.asked, &helper.lock)
            looks = host_clock_ns() - answered_ns < MOMENT_NS and may_look(&helper.helping)
            continue
        helper.begun += 1
        mutex_unlock(&helper.lock)
        r = device_rest(helper.device.handle)
        mutex_lock(&helper.lock)
        helper.result = r
        helper.ended = helper.begun
        mutex_unlock(&helper.lock)
        l0rt_store64(&helper.told_ended, helper.begun)
        pthread_cond_broadcast(&helper.ended_one)   # whoever wakes finds the lock free
        answered_ns = host_clock_ns()
        mutex_lock(&helper.lock)
    mutex_unlock(&helper.lock)
    return NULL


cdef int driver_synchronize(l0rt_device* device, uint64_t timeout_ns) except -1 nogil:
    """Wait for what the driver knows of the device's queues. 1: it is done, 0: the time is up."""
    cdef l0rt_helper* helper = &_helpers[device.index]
    cdef uint64_t start_ns = host_clock_ns(), spent = 0, mine
    cdef ze_result_t r = ZE_RESULT_SUCCESS
    cdef timespec until
    cdef int failed = 0
    cdef bint done = False, asks, looks
    timeout_ns = max(timeout_ns, ANSWER_NS)
    mutex_lock(&helper.lock)
    mine = helper.begun + 1
    asks = helper.wanted < mine
    if asks:
        helper.wanted = mine
    looks = may_look(&helper.asking)
    if not helper.runs and not helper.leaving:
        helper.device = device      # before its thread is there, which reads it without the lock
        failed = thread_start(&helper.thread, help, helper)
        helper.runs = failed == 0
    mutex_unlock(&helper.lock)
    if failed:
        with gil:
            raise OSError(failed, "no thread to wait for the device with")
    if asks:
        l0rt_raise64(&helper.told_wanted, mine)
        pthread_cond_broadcast(&helper.asked)
    if looks:
        looks = seen_soon(&helper.told_ended, mine)
        mutex_lock(&helper.lock)
        looked(&helper.asking, looks)
        mutex_unlock(&helper.lock)
    while True:
        mutex_lock(&helper.lock)
        if helper.ended < mine:
            until = time_after(CLOCK_MONOTONIC, min(HELPED_SLICE_NS, timeout_ns - spent))
        while helper.ended < mine:
            if pthread_cond_timedwait(&helper.ended_one, &helper.lock, &until) != 0:
                break
        done = helper.ended >= mine
        r = helper.result
        mutex_unlock(&helper.lock)
        if done:
            if r == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE:    # the pointer is there, and that is all
                device.caps.device_sync = False
                return 1
            return 1 if r == ZE_RESULT_SUCCESS else device_fails(device, r)
        spent = host_clock_ns() - start_ns
        if spent >= timeout_ns:
            return 0
        check_device(device)


def end_helpers():
    """End the helpers. False: one did not end in time, for what it waits for goes on."""
    cdef l0rt_helper* helper
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
                mutex_lock(&helper.lock)
                helper.leaving = True
                pthread_cond_broadcast(&helper.asked)
                mutex_unlock(&helper.lock)
                failed = thread_join(helper.thread, left_ns)
            if failed:
                all_ended = False
            else:
                helper.runs = False
    return all_ended


cdef void new_helpers() noexcept nogil:
    """New locks, and no thread: at first, and in a forked child, where the parent's threads are not."""
    cdef pthread_condattr_t monotonic
    cdef l0rt_helper* helper
    cdef int i
    pthread_condattr_init(&monotonic)
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC)
    for i in range(64):
        helper = &_helpers[i]
        mutex_init(&helper.lock, NULL)
        pthread_cond_init(&helper.asked, NULL)
        pthread_cond_init(&helper.ended_one, &monotonic)
        helper.runs = helper.leaving = False
        helper.wanted = helper.begun = helper.ended = helper.told_wanted = helper.told_ended = 0
        helper.asking.blind = helper.asking.blinded = helper.helping.blind = helper.helping.blinded = 0


new_helpers()
on_fork_child(new_helpers)
