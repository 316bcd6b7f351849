# SPDX-License-Identifier: Apache-2.0
# The map: what the runtime keeps in C for a device, a stream, a native event and a thread. Records live until the
# process exits, so a borrowed pointer to one never dangles.

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t
from posix.types cimport pid_t

from l0rt.core.device cimport l0rt_device_info
from l0rt.runtime.alloc.atomics cimport pthread_mutex_t
from l0rt.runtime.streams.ledger cimport l0rt_peer, l0rt_told
from l0rt.ze.api cimport (
    ze_command_list_handle_t,
    ze_command_queue_handle_t,
    ze_context_handle_t,
    ze_device_handle_t,
    ze_event_handle_t,
)
from l0rt.ze.caps cimport l0rt_caps

cdef extern from "l0rt/atomics.h" nogil:
    uint64_t l0rt_load64(const uint64_t*) noexcept
    void l0rt_store64(uint64_t*, uint64_t) noexcept
    void l0rt_raise64(uint64_t*, uint64_t) noexcept
    int l0rt_load_int(const int*) noexcept
    void l0rt_store_int(int*, int) noexcept
    int l0rt_add_int(int*, int) noexcept
    bint l0rt_gate_try_once(int*) noexcept
    void l0rt_gate_open(int*) noexcept
    void l0rt_gate_share(int*) noexcept
    void l0rt_gate_leave(int*) noexcept
    bint l0rt_gate_try_alone(int*) noexcept
    void l0rt_gate_give_way(const int*) noexcept
    void l0rt_store_list "l0rt_publish"(ze_command_list_handle_t*, ze_command_list_handle_t) noexcept
    ze_command_list_handle_t l0rt_load_list "l0rt_acquire"(const ze_command_list_handle_t*) noexcept

cdef extern from *:
    """
    #define L0RT_MAX_DEVICES 64
    #define L0RT_POOL_STREAMS 32
    """
    const int L0RT_MAX_DEVICES
    const int L0RT_POOL_STREAMS


# A stream that waits for a slot, and the number that it must have completed before the slot may be reused.
cdef struct l0rt_waiter:
    l0rt_stream* stream
    uint64_t seq


# What a slot's native event can do: be signalled; carry a timestamp; be signalled again at any time.
cdef enum:
    SLOT_PLAIN = 0
    SLOT_TIMED = 1
    SLOT_COUNTER = 2


# One native event with a life cycle: free, recorded (refs > 0), retired (refs 0, perhaps still in flight), free.
# A slot in flight is never reset: neither before its signal, nor while a stream may still have to pass it.
# Counter-based events need no such care: a wait is bound to the signal appended before it, so they are free as soon as
# refs is 0.
cdef struct l0rt_slot:
    ze_event_handle_t event
    l0rt_slot* next             # in the free list or the queue of the retired
    l0rt_event_pool* cache      # where it goes back to; NULL: it belongs to one event for good
    l0rt_device* device
    uint64_t* ticks             # where the device writes its clock; NULL: no timing
    l0rt_stream* stream         # recorded on this stream,
    uint64_t seq                # after this many of its commands,
    uint64_t host_ns            # at this time of the host's clock (with timing only)
    uint64_t capture            # recorded in this capture, after node `seq` of a branch; then it has no native event
    uint32_t branch
    int refs
    int asked                   # a gate: with the quirk `racing_queries` one thread alone asks the driver
    int gate                    # of an interprocess event: see event_pool.pyx
    int complete                # sticky: once seen complete, the driver is not asked again
    int waiter_count
    int waiter_capacity
    l0rt_waiter* waiters        # under the cache's lock
    l0rt_peer* peer             # the process that signals it; NULL: this one
    l0rt_told* told             # what its ledger says of it
    bint stays                  # nobody will signal it, and the host cannot


cdef struct l0rt_event_pool:
    pthread_mutex_t lock
    l0rt_slot* free
    l0rt_slot* retired          # oldest first
    l0rt_slot* retired_last
    int kind
    uint64_t made               # native events made so far
    uint64_t retired_count


# A wait that a stream was given, for the report of streams that are stuck.
cdef struct l0rt_waited:
    uint64_t seq                # the stream's own command,
    l0rt_stream* stream         # and what it waits for
    uint64_t stream_seq
    uint64_t pid                # or the process whose event it waits for,
    uint64_t began              # and when that began


# A graph with launches that may fail: on which queues, and which stream replayed it last and was not waited for since.
cdef struct l0rt_replayed:
    ze_command_queue_handle_t* queues
    uint32_t count
    l0rt_stream* stream
    l0rt_replayed* next         # of that stream


# The kinds of streams: of the pool, with many holders; leased, with one holder; adopted, with a list of other software.
cdef enum:
    STREAM_POOLED = 0
    STREAM_LEASED = 1
    STREAM_ADOPTED = 2
    STREAM_RECORDED = 3         # no stream: a regular list that a graph's commands are appended to


cdef struct l0rt_stream:
    ze_command_list_handle_t list   # NULL until first use
    l0rt_device* device
    void* arena                     # the arena for every thread; NULL: an allocation must look it up
    void* default_arena             # its memory in the default pool, NULL until the first allocation
    l0rt_stream* next_at_hand       # among the streams that have an arena at hand
    PyObject* object                # its canonical l0rt.Stream, immortal; NULL until it is needed
    int64_t id
    int priority                    # -1 high, 0 normal, 1 low
    int ordinal                     # its queue group,
    int queue                       # and the queue in it
    size_t fill_limit               # longest pattern that its engine fills with
    bint refuses_rows               # its engine has no command for rows
    bint in_order                   # the list keeps the order; else l0rt puts barriers between commands
    bint dirty                      # not in order, and something was appended since the last barrier
    l0rt_slot* mark                 # recorded behind everything, when the recycling asks how far the stream is
    bint marked                     # the mark is in flight
    l0rt_slot* end_event            # the newest of queue_end_event: serves again while nothing is appended behind it
    uint64_t issued                 # commands appended so far: counted under the lock, read without
    uint64_t done                   # of these, at least so many are known to be complete
    pthread_mutex_t lock            # around every append; taken without the GIL
    int launched                    # launches (on the CPU driver) or waits for other processes may have failed since
    uint64_t relies_on              # events of other processes that it may still wait for, a bit each: see orphans.pyx
    uint64_t relied_seq             # all such waits are behind this command
    uint64_t orphan                 # the process that has ended before it signalled one of them; 0: none
    bint stays_orphaned             # and the host could not signal it
    l0rt_replayed* replayed         # the same of graphs that were replayed here; all lists under one lock
    int shared                      # other software has the list too, and may append commands that l0rt does not count
    int kind
    int live                        # not a pool stream, and it has a holder
    l0rt_stream* next               # not a pool stream: the device's next such
    l0rt_waited waited[4]           # its last waits, a ring
    uint32_t waits
    void* branch                    # while a graph is captured: the l0rt_branch that records what it is given


# Rows of `width` bytes, whose starts are a pitch apart.
cdef struct l0rt_rows:
    size_t width
    size_t height
    size_t target_pitch
    size_t source_pitch


cdef struct l0rt_device:
    int index
    ze_device_handle_t handle
    ze_context_handle_t context
    l0rt_caps caps                  # its driver's, without what a quirk of this device takes away
    l0rt_device_info* info
    int lost                        # sticky: every later call raises DeviceLostError
    bint is_software
    bint is_plain_software      # and passes for no real device
    int copy_threads            # that divide a host's copy of pageable memory
    bint counter_based          # events are counter-based, but for those with timing
    # What its quirks make l0rt do, beside doing without capabilities:
    int* map_gate               # racing_maps: appends share it, mapping is alone in it; [1]: how many ask for it
    bint racing_maps
    bint maps_nothing           # any that is mended by not mapping memory
    bint racing_queries
    bint outlasting_waits
    bint foreign_imports        # single_device_imports: and this is not the device that registered memory is there for
    bint cached_imports
    bint peer_counters
    bint uncounted_signals
    uint64_t next_stream[3]         # round robin, by priority
    l0rt_stream default_stream
    l0rt_stream pool[3][32]         # by priority: high, normal, low
    l0rt_stream* others             # not of the pool: leased, for a copy engine, adopted
    l0rt_event_pool slots[3]        # by kind
    signed char peers[64]           # for a counter-based event of that device: 0 not asked yet, 1 waits, -1 cannot
    void* heap                      # its cached memory, NULL until the first allocation
    void* host_heap                 # pinned memory of its context, shared by the context's devices


cdef inline bint known_idle(const l0rt_stream* stream) noexcept nogil:
    """Is everything done, as far as l0rt's own counts tell?"""
    return l0rt_load64(&stream.done) >= l0rt_load64(&stream.issued) and not l0rt_load_int(&stream.shared)


# What a with block found and has to restore.
cdef struct l0rt_saved:
    void* owner                 # the guard's object
    l0rt_stream* stream         # NULL: no stream was changed
    int device


# What a thread calls current, and the guards it is inside of.
cdef struct l0rt_thread:
    int device
    l0rt_stream* streams[64]
    l0rt_saved* saved
    int depth
    int capacity
    void* active_pools          # the innermost l0rt_active_pool: the private pools that the thread allocates from
    void* inside                # the innermost l0rt_call of a function that memory comes from or returns to
