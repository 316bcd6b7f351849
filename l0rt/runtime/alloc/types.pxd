# SPDX-License-Identifier: Apache-2.0
"""The allocator's records, in one place because they point at each other.

A heap is one memory. An arena is what one stream has of it; its lock guards the arena and all its blocks. A segment
is what one reserve() gave to an arena: a chain of blocks without gaps, in the order of their addresses."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from l0rt.runtime.alloc.atomics cimport l0rt_spin, pthread_mutex_t, sem_t


cdef extern from "l0rt/memory_ops.h" nogil:
    ctypedef struct l0rt_memory_ops:
        int (*reserve)(void* self, size_t nbytes, void** out) noexcept nogil
        int (*release)(void* self, void* ptr, size_t nbytes) noexcept nogil
        int (*record)(void* self, void* stream, void** event) noexcept nogil
        int (*query)(void* self, void* event) noexcept nogil
        int (*wait)(void* self, void* event) noexcept nogil
        void (*drop)(void* self, void* event) noexcept nogil
        int (*is_oom)(int code) noexcept nogil
        int (*range_reserve)(void* self, size_t nbytes, void** out) noexcept nogil
        int (*range_release)(void* self, void* ptr, size_t nbytes) noexcept nogil
        int (*physical_mem_create)(void* self, size_t nbytes, void** out) noexcept nogil
        int (*physical_mem_destroy)(void* self, void* physical, size_t nbytes) noexcept nogil
        int (*physical_mem_map)(void* self, void* ptr, size_t nbytes, void* physical) noexcept nogil
        int (*physical_mem_unmap)(void* self, void* ptr, size_t nbytes, void* physical) noexcept nogil
        int (*order)(void* self, void* stream, void* event) noexcept nogil
        long long (*clock)(void* self) noexcept nogil
        int (*prepare)(void* self, void* stream) noexcept nogil
    enum:
        L0RT_OK
        L0RT_OUT_OF_MEMORY
        L0RT_CLOSED
        L0RT_INVALID_POINTER
        L0RT_DOUBLE_FREE
        L0RT_NO_HOST_MEMORY
        L0RT_INVALID_SIZE
        L0RT_UPSTREAM_FAILED
        L0RT_ASLEEP
        L0RT_OWNED
        L0RT_INTERRUPTED
        L0RT_HELD_UP

cdef enum:
    GRAIN_SHIFT = 9
    GRAIN = 512                     # every block size is a multiple
    CLASSES = 2048                  # class stacks: one for each multiple up to SMALL_LIMIT
    SMALL_LIMIT = 1 << 20           # requests up to here come from the small pool
    SMALL_SEGMENT = 1 << 21
    LARGE_SEGMENT = 20 << 20        # torch's
    PAGE_SHIFT = 16
    PAGE = 1 << 16                  # segments are multiples; blocks of the large pool are no smaller
    SMALL = 0
    LARGE = 1
    POOLS = 2
    ROWS = 56                       # bins: powers of two, each cut into
    COLUMNS = 8

# What a block is. LIVE alone takes the fast way out; everything unusual has another value.
cdef enum:
    SPARE = 0                       # a record without memory
    BINNED = 1                      # free, may be split and merged
    CACHED = 2                      # free, on a class stack
    LIVE = 3                        # allocated from the small pool
    LIVE_LARGE = 4                  # allocated from the large pool
    USED = 5                        # allocated, and used by other streams too
    PENDING = 6                     # freed, but other streams' work may still use it
    UNMAPPED = 7                    # addresses of a range without memory
    HELD = 8                        # the same, while memory is mapped there or unmapped
    UNCACHED = 9                    # allocated, and alone in its segment, which is given back with it
    RAW = 16                        # beside LIVE, LIVE_LARGE, USED and UNCACHED: handed out, and freed, by its address
    RAW_PINNED = 32                 # the same of pinned memory, which is freed by another function
    BY_ADDRESS = RAW | RAW_PINNED

cdef struct l0rt_use:
    void* stream
    void* event                     # of a marked use: behind it; NULL: it is complete
    # announced at its moment; otherwise all work counts that the stream is given before the free
    bint is_marked

cdef struct l0rt_uses:              # the other streams that use a block
    int count
    int capacity
    l0rt_use entries[1]

cdef struct l0rt_block:
    # the first line is all that a hit touches, and all that a bin's neighbours touch
    void* ptr
    l0rt_arena* arena
    uint64_t size
    uint64_t requested
    l0rt_block* next                # on a class stack, in a bin, or among spare records
    uint32_t state
    int waits                       # events that are not complete yet
    void* user                      # the owner's to set; still holds what the last owner left
    l0rt_block* previous            # in a bin, or among a range's unmapped spans
    l0rt_uses* uses
    l0rt_block* before              # neighbours in the segment
    l0rt_block* after
    l0rt_segment* segment
    uint64_t epoch                  # while free: the arena's when it was freed or merged
    bint is_oversize                # allocated, and counted as such
    uint32_t shared                 # not 0: other processes have a handle; who owns it decides when it is freed
    void* order                     # handed over to this stream, which is not its arena's; NULL: it was not
    uint32_t stack                  # of its allocation, and
    uint32_t tag                    # its tag, while the heap records them; then two cache lines are full

cdef struct l0rt_granule:           # of a range: the physical memory that is mapped here
    void* physical
    uint32_t first                  # its first granule
    uint32_t count                  # granules in it; 0: nothing is mapped here

cdef struct l0rt_segment:
    void* base
    uint64_t size
    void* raw                       # what reserve() gave: differs from base where that was not aligned
    uint64_t raw_size
    l0rt_upstream* upstream         # what gave it, for this stream: once it is out of the lists,
    void* stream                    # its arena may be another pool's; NULL: the operations did
    l0rt_arena* arena
    int pool
    l0rt_block* first               # the block at its base: its record stays
    l0rt_granule* granules          # of a range, by number; NULL: an ordinary segment
    l0rt_block* unmapped            # of a range
    uint64_t mapped                 # of a range: bytes that have memory
    uint64_t top                    # of a range: nothing was ever mapped from this granule on
    l0rt_block* block               # while wholly free: its only block
    int64_t idle_since              # while wholly free: the heap's growths by then
    bint is_oversize                # counted as such
    l0rt_segment* next              # among the arena's segments
    l0rt_segment* previous
    l0rt_segment* next_idle         # among the arena's wholly free segments
    l0rt_segment* previous_idle

cdef struct l0rt_bins:
    uint64_t rows                   # bit: this row has a block
    uint8_t columns[ROWS]           # bit: this bin has a block
    l0rt_block* heads[ROWS * COLUMNS]

cdef struct l0rt_sum:
    int64_t count
    int64_t bytes
    int64_t requested

# What one arena has allocated of one pool, kept as the distance to the nearest value that could be a new peak of the
# heap (see headroom.pxd). In terms of these fields:
#   allocated now  = limit - left          inactive split now = inactive_limit + left - ceiling
cdef struct l0rt_headroom:
    l0rt_sum left
    l0rt_sum ceiling                # left above it: inactive split may be at a new peak
    l0rt_sum freed                  # ever
    l0rt_sum limit
    l0rt_sum inactive_limit
    l0rt_sum own_limit              # the pool's share alone; limit also keeps to the arena's share of both pools
    l0rt_sum own_inactive_limit
    l0rt_sum pending                # freed, but still active
    l0rt_sum inactive_gained        # inactive split ever gained = freed + inactive_gained
    int64_t seen                    # allocations and frees at the last recount
    l0rt_arena* resting             # its arena, while the heap has it counted as it is; NULL: it may change

cdef struct l0rt_sums:              # sums of one pool over arenas
    int64_t allocated
    int64_t allocated_bytes
    int64_t requested
    int64_t pending
    int64_t pending_bytes
    int64_t inactive
    int64_t inactive_bytes
    int64_t freed
    int64_t freed_bytes
    int64_t freed_requested
    int64_t inactive_gained
    int64_t inactive_gained_bytes

# How a heap behaves; never changes, for a heap that changes its ways takes another. All zero is the default.
cdef struct l0rt_tuning:
    uint64_t max_split              # ordinary segments of this size or more are not split; 0: all are
    uint64_t max_non_split_rounding  # how much larger than the request such a segment may be; 0: 20 MiB
    uint64_t large_segment          # torch's size for requests from 1 to 10 MiB; 0: 20 MiB
    double gc_threshold             # the part of the limit above which old segments are given back; 0: never
    bint rounds                     # sizes go up to one of
    uint8_t divisions[16]           # so many steps between two powers of two: of 1 MiB or less, 2 MiB, ... 32 GiB
    bint segmented                  # grow by ordinary segments although there is virtual memory,
    bint torch_segments             # of torch's sizes, kept until memory runs out
    bint is_async                   # blocks pass between streams before more is taken; the host never waits
    uint64_t cached_most            # free memory above this goes back, the longest free segments first; 0: no bound
    uint64_t least_growth           # in place of the heap's own, where it is not 0; the next three too
    uint64_t least_move
    int64_t moving
    uint64_t small_segment
    bint has_choice                 # ranges or segments were asked for by name
    uint64_t uncached_from          # from this size on nothing is cached: given back once it is free; 0: all is cached

cdef struct l0rt_ways:              # that a heap has had: each different one once, for as long as there is the heap,
    l0rt_tuning tuning              # because a thread may be reading it
    l0rt_ways* older

# Memory that is not the heap's own. Called without any lock, so it may allocate, from this heap too.
cdef struct l0rt_upstream:
    # 0, L0RT_OUT_OF_MEMORY or L0RT_UPSTREAM_FAILED; `memory` is the heap's self
    int (*reserve)(l0rt_upstream* self, void* memory, void* stream, size_t nbytes, void** out) noexcept nogil
    void (*release)(l0rt_upstream* self, void* memory, void* stream, void* ptr, size_t nbytes) noexcept nogil
    # the pool has ended, and so have all segments that came from here
    void (*drop)(l0rt_upstream* self) noexcept nogil
    size_t padding                  # asked for on top, where reserve() does not align

cdef struct l0rt_private_pool:      # of a private pool's arenas
    l0rt_spin lock                  # guards the first five
    int refs                        # its object, and its shares
    int users                       # allocations that are under way: arenas stay meanwhile; read without the lock
    int is_gone                     # it was dropped: its memory is given back when no work uses it
    l0rt_share* shares              # one for each heap where it has arenas
    int is_private                  # its cached memory is never given to others, not even before out of memory
    bint serves                     # what fails in the default pool is served from here
    bint no_split                   # a free block is handed out as it is
    bint plain                      # its memory comes in ordinary segments, also where there is virtual memory
    int is_asleep                   # its ranges have no memory; atomic, for the pool may be in several heaps
    int holders                     # graphs that use its addresses: nothing of it is given back; atomic
    uint64_t limit                  # bytes that it may reserve of each heap; 0: as many as the heap
    l0rt_upstream* upstream         # where its segments come from; NULL: from the heap's own memory
    int64_t[2] id                   # by which the statistics name it

cdef enum:
    ACTIVE_ENTRIES = 16             # a power of two

cdef struct l0rt_active_entry:      # while its active pool is the innermost one,
    void* stream                    # the thread allocates for this stream
    l0rt_arena* arena               # from this arena

cdef struct l0rt_active_pool:       # a thread allocates from a pool
    l0rt_private_pool* private_pool
    int device                      # on this device; negative: on any
    l0rt_active_pool* outer         # what held before, and holds for other devices
    void* pool                      # the pool's object: a reference to it
    l0rt_active_entry entries[ACTIVE_ENTRIES]

cdef struct l0rt_arena:
    l0rt_spin lock
    int version                     # odd while the headroom's limit and left move together: who looks has no lock
    int64_t stack_left              # bytes that the stacks may still take
    const l0rt_tuning* tuning       # the heap's; changes under the growth mutex and this lock
    int64_t recording               # the heap's; negative: what happens here is recorded. Changes under this lock
    l0rt_headroom headroom[POOLS]
    l0rt_block* stacks[CLASSES]
    uint64_t filled[CLASSES >> 6]   # bit: this stack has a block, or had one
    l0rt_block* last                # of the large pool: freed last, and not merged yet; NULL: none
    l0rt_bins bins[POOLS]
    l0rt_sum limit                  # of both pools together
    l0rt_sum inactive_limit
    l0rt_heap* heap
    void* stream
    l0rt_private_pool* private_pool  # NULL: the default pool
    l0rt_arena* next                # in the heap; the list only grows
    l0rt_arena* next_same           # in the same bucket of the heap's index
    l0rt_arena* next_of_share       # among those of its pool here, or among those that wait for a pool
    l0rt_arena* next_busy           # among those that have memory
    l0rt_arena* previous_busy
    l0rt_arena* next_awake          # among those that may have changed since they were counted
    bint may_rest                   # the recount found it idle
    l0rt_block* spare               # records without memory
    l0rt_segment* segments
    l0rt_segment* idle
    int64_t reserved
    int64_t stack_cap
    unsigned cursor                 # the class from which an overfull stack is relieved next
    # the known end of the stream's work: everything that was freed up to `settled` is no longer in use
    uint64_t epoch
    uint64_t settled
    uint64_t granule_epoch          # when a free block last grew to a granule or more
    int64_t needed                  # the most at once, as far as growing has seen, since the arena had no memory
    int64_t moves                   # mappings that moved, since the arena had none
    uint64_t event_epoch
    void* event
    l0rt_share* share               # its pool's; NULL: the default pool

cdef struct l0rt_pending_use:       # a block waits for a point in a stream's work
    void* event
    void* stream
    l0rt_block* block               # NULL: it is in no queue any more, and its last waiter drops it
    l0rt_pending_use* next
    int waiters                     # threads that wait for it; under the waiting mutex

cdef struct l0rt_queue:             # what waits for one stream, oldest first
    void* stream
    l0rt_pending_use* head
    l0rt_pending_use* tail
    l0rt_queue* next

cdef struct l0rt_stat:
    int64_t current
    int64_t peak
    int64_t allocated
    int64_t freed

cdef struct l0rt_family:
    l0rt_stat all
    l0rt_stat small_pool
    l0rt_stat large_pool

cdef struct l0rt_stats:
    l0rt_family allocation
    l0rt_family segment
    l0rt_family active
    l0rt_family inactive_split
    l0rt_family allocated_bytes
    l0rt_family reserved_bytes
    l0rt_family active_bytes
    l0rt_family inactive_split_bytes
    l0rt_family requested_bytes
    l0rt_stat oversize_allocations
    l0rt_stat oversize_segments
    int64_t num_alloc_retries
    int64_t num_ooms
    int64_t num_sync_all_streams
    int64_t num_device_alloc
    int64_t num_device_free
    int64_t num_oom_rejections
    int64_t num_oom_fallback
    int64_t max_split_size

cdef struct l0rt_scope:             # an open scope of the statistics
    l0rt_scope* next                # of the heap's
    l0rt_stats begun                # when it began
    l0rt_stats peaks                # up to when the heap's peaks began anew; peaks only

cdef struct l0rt_share:             # of a private pool in one heap's memory
    l0rt_private_pool* private_pool  # NULL: the pool is over
    int64_t[2] id                   # the pool's
    l0rt_heap* heap
    l0rt_arena* arenas
    l0rt_family reserved            # bytes
    l0rt_family base                # at the last reset
    l0rt_share* next                # among the heap's, or among those whose pools are over
    l0rt_share* previous
    l0rt_share* next_of_pool
    l0rt_share* next_gone           # the next share of a dropped pool that may have memory to give back
    bint is_listed                  # it is there; or
    bint is_looked_at               # a thread gives back its memory, and
    bint look_again                 # has to look once more

cdef struct l0rt_entry:             # of a history: what happened to memory; one cache line
    uint64_t address
    uint64_t size
    void* stream
    uint64_t ticks                  # when
    int64_t[2] pool_id
    uint32_t stack                  # whose doing; 0: unknown
    uint32_t note                   # the thread's annotation
    uint32_t thread                 # Linux's number of it
    uint16_t tag
    uint16_t action

cdef struct l0rt_history:           # of a heap: a ring of entries in chunks, and sums by tag
    l0rt_spin lock                  # inside all other locks: of all that follows
    uint64_t capacity               # entries that are kept: the last ones
    uint64_t backed                 # entries that have memory
    uint64_t count                  # entries since the ring was cleared, overwritten ones too
    uint64_t at                     # the place of the next one
    l0rt_entry** chunks
    uint64_t places                 # for chunks
    uint32_t skipped                # bit: this action is not kept
    l0rt_stat* sums                 # by tag: bytes that are allocated
    uint32_t sums_count

cdef struct l0rt_trace:             # a copy of a history's entries, oldest first
    l0rt_entry* entries
    uint64_t capacity
    uint64_t count                  # that there are

cdef struct l0rt_index:             # of arenas, by stream and pool
    uint64_t mask                   # the number of buckets, a power of two, less 1
    l0rt_index* older               # the one that it replaced, which a thread may be reading
    l0rt_arena* buckets[1]

cdef struct l0rt_heap_options:
    uint64_t limit                  # bytes that may be reserved; 0 or UINT64_MAX: no limit
    uint64_t granule                # of virtual memory, a multiple of 64 KiB; 0: no virtual memory
    # Mappings of this size and more are multiples of it, at its multiples: a power of two times the granule; 0: that.
    uint64_t large_page
    uint64_t parts                  # what a range grows by comes in so many parts, unless they were small; 0: in one
    int64_t moves                   # mappings that may move while an arena gets its memory; 0: 512
    uint64_t range                  # addresses to reserve at once
    # For memory where a mapping costs much. All zero where it does not:
    uint64_t least_growth           # a range grows by no less,
    uint64_t growth_share           # nor by less than one of so many parts of what its arena has; 0: 128;
    bint whole                      # by one mapping, however large
    uint64_t least_move             # memory moves when so many bytes are needed, or when memory is short, which has
    uint64_t capacity               # so many bytes; 0: only the limit counts,
    int64_t moving                  # for so many nanoseconds and 1 % of the time; 0: as often as `moves` says
    uint64_t small_segment          # small requests have segments of this size and up to four times as much, no range
    bint has_clock                  # the operations have a clock
    bint judges_maps                # and it is worth asking if mappings take no time, or too much
    bint maps_nothing               # mapping is no help: segments are torch's, unless the configuration asks for others

cdef struct l0rt_heap:
    # Order of locks: growth, waiting, recount, an arena's. No ops are called under the last two, and no wait under any.
    pthread_mutex_t growth          # taking and giving back segments
    pthread_mutex_t waiting         # the queues; events are queried under it, but not waited for
    pthread_mutex_t recount         # for code that locks all arenas, and for the statistics
    const l0rt_memory_ops* ops
    void* self
    l0rt_arena* arenas
    l0rt_arena* spare_arenas        # those that wait for a pool
    l0rt_index* index               # of all others
    uint64_t indexed
    # Most arenas are idle, and have no headroom: the recount counts them once, and then only those that wake.
    l0rt_spin rest_lock             # of the three below, inside all other locks
    l0rt_arena* awake
    l0rt_sums resting[POOLS]        # the sums over all others
    l0rt_sums rested[POOLS]         # the same when the arenas were locked, and
    l0rt_arena* locked              # the first of those that were locked; both under the recount mutex
    l0rt_arena* busy                # those that have memory; under the growth mutex
    l0rt_queue* queues
    int64_t pending                 # blocks in the queues
    int64_t reserved
    int64_t limit                   # atomic; INT64_MAX: none
    const l0rt_tuning* tuning       # atomic; under the growth mutex it stays
    l0rt_tuning default_tuning
    l0rt_ways* ways                 # all others that it has had
    int64_t growths                 # atomic: blocks that become free look
    l0rt_arena* requester           # the arena for which memory is given back; NULL: the device
    bint pool_limit_hit             # and the limit of its pool is the reason: memory of others would not help
    bint takes_all                  # and nothing else is left but what serves the default pool has cached
    l0rt_upstream* upstream         # of every arena whose pool has none; NULL: the operations are
    l0rt_spin oversize              # inside all other locks: the statistics of oversize allocations
    uint64_t granule                # of virtual memory; 0: the memory has none
    uint64_t large_page             # no less than a granule
    uint64_t parts                  # no less than one
    int64_t moves
    uint64_t range
    uint64_t least_growth           # the next nine as in the options: growth.pxd; under the growth mutex
    uint64_t growth_share
    bint whole
    uint64_t least_move
    uint64_t capacity
    int64_t moving
    uint64_t small_segment
    bint has_clock
    bint judges_maps
    bint maps_nothing
    int64_t moved                   # nanoseconds that moves have taken
    int64_t begun                   # when the heap was made, by the operations' clock
    int64_t mapping                 # nanoseconds that the first mappings took, and
    int timed                       # how many these are
    bint has_ranges                 # it grows by ranges, not by ordinary segments
    size_t padding                  # asked for on top, where reserve() does not align
    sem_t* wakeup                   # posted when a first block waits; NULL: no thread waits for it
    bint by_limit                   # the last refusal of more memory was the limit's, not the operations'
    int closed                      # the code that malloc returns from then on
    l0rt_stats stats                # segments, peaks and num_*; the rest is summed over the arenas when asked
    # Allocated and freed at the last reset; peaks since their last reset, up to when the heap's own began anew.
    l0rt_stats base
    l0rt_scope* scopes
    l0rt_share* shares              # of the pools that have an arena here
    int64_t recording               # what the history keeps: flags of history.pxd, and a sign; 0: nothing
    l0rt_history* history           # NULL: nothing was ever recorded; made under the recount mutex, and stays
    int has_gone                    # the list of shares of dropped pools is not empty
    l0rt_share* gone                # that list, and
    l0rt_spin gone_lock             # its lock, inside all others
