# SPDX-License-Identifier: Apache-2.0
"""The history of a heap: a ring of entries, and sums by tag.

An entry is written under the lock of the arena where it happens, so the entries of one address are in their order.
"""

from libc.stdint cimport INT64_MIN, int64_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

from l0rt.runtime.alloc.atomics cimport load_i64, spin_lock, spin_unlock, store_i64, unlikely
from l0rt.runtime.alloc.share cimport is_kept
from l0rt.runtime.alloc.stacks cimport stack_gather
from l0rt.runtime.alloc.stats cimport recount_lock_all, recount_unlock
from l0rt.runtime.alloc.types cimport l0rt_entry, l0rt_history, l0rt_segment

cdef extern from *:
    """
    #include <sys/syscall.h>
    #include <time.h>
    #include <unistd.h>
    /* What the thread's next entries say of it. */
    static __thread struct { uint32_t stack, note, tag, thread, left_stack; void *left; } l0rt_doing
        __attribute__((tls_model("initial-exec")));
    static inline uint32_t l0rt_thread_number(void) {
      if (l0rt_doing.thread == 0) l0rt_doing.thread = (uint32_t)syscall(SYS_gettid);
      return l0rt_doing.thread;
    }
    static int64_t l0rt_clock(clockid_t which) {
      struct timespec now;
      clock_gettime(which, &now);
      return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
    }
    /* The cheapest clock that there is: what a tick lasts is found out when somebody wants to know. */
    static inline uint64_t l0rt_ticks(void) {
    #if defined(__x86_64__)
      return __builtin_ia32_rdtsc();
    #else
      return (uint64_t)l0rt_clock(CLOCK_MONOTONIC);
    #endif
    }
    static uint64_t l0rt_first_ticks;
    static int64_t l0rt_first_ns;
    static void l0rt_clock_begin(void) {
      l0rt_first_ticks = l0rt_ticks();
      l0rt_first_ns = l0rt_clock(CLOCK_MONOTONIC);
    }
    /* Now, by each clock: what is compared with each other goes by one reading of them. */
    static uint64_t l0rt_now_ticks;
    static int64_t l0rt_now_passed, l0rt_now_real;
    static void l0rt_clock_read(void) {
      l0rt_now_ticks = l0rt_ticks();
      l0rt_now_passed = l0rt_clock(CLOCK_MONOTONIC) - l0rt_first_ns;
      l0rt_now_real = l0rt_clock(CLOCK_REALTIME);
    }
    /* Nanoseconds since 1970. */
    static int64_t l0rt_clock_at(uint64_t ticks) {
      double rate;
      if (l0rt_now_ticks == l0rt_first_ticks) return l0rt_now_real;
      rate = (double)l0rt_now_passed / (double)(int64_t)(l0rt_now_ticks - l0rt_first_ticks);
      return l0rt_now_real - (int64_t)((double)(int64_t)(l0rt_now_ticks - ticks) * rate);
    }
    """
    struct l0rt_doing_t "l0rt_doing":
        uint32_t stack
        uint32_t note
        uint32_t tag
        uint32_t left_stack
        void* left
    l0rt_doing_t doing "l0rt_doing"
    uint32_t thread_number "l0rt_thread_number" () noexcept nogil
    uint64_t ticks_now "l0rt_ticks" () noexcept nogil
    void clock_begin "l0rt_clock_begin" () noexcept nogil
    void clock_read "l0rt_clock_read" () noexcept nogil
    int64_t clock_at "l0rt_clock_at" (uint64_t ticks) noexcept nogil

cdef enum:
    CHUNK_SHIFT = 14
    CHUNK = 1 << CHUNK_SHIFT        # entries that get memory at once: 1 MiB
    TAGS_AT_FIRST = 64

cdef enum:                          # marks, as the CPU driver's memory/bounds.h has them
    MARK_RANGE = 0
    MARK_NO_RANGE = 1
    MARK_BLOCK = 2
    MARK_FREED = 3
    MARK_KEPT = 2                   # more, where a graph keeps the pool's addresses

cdef int64_t _flags                 # for every heap
cdef uint64_t _capacity
cdef uint32_t _skipped
cdef l0rt_mark _mark

clock_begin()


# --- Entries.


cdef inline l0rt_entry* entry_at(l0rt_history* history, uint64_t at) noexcept nogil:
    return &history.chunks[at >> CHUNK_SHIFT][at & (CHUNK - 1)]


cdef bint chunk_add(l0rt_history* history) noexcept nogil:
    cdef uint64_t count = history.backed >> CHUNK_SHIFT, places = max(2 * history.places, <uint64_t>64)
    cdef l0rt_entry** chunks
    cdef l0rt_entry* chunk
    if count == history.places:
        chunks = <l0rt_entry**>realloc(history.chunks, places * sizeof(l0rt_entry*))
        if chunks == NULL:
            return False
        history.chunks, history.places = chunks, places
    chunk = <l0rt_entry*>malloc(CHUNK * sizeof(l0rt_entry))
    if chunk == NULL:
        return False
    history.chunks[count] = chunk
    history.backed += CHUNK
    return True


cdef bint ring_ready(l0rt_history* history) noexcept nogil:
    """Is there a place for an entry where none has had memory yet?"""
    if not chunk_add(history):
        if history.backed == 0:
            return False
        history.capacity = history.backed     # the oldest ones give their place from now on
        history.at = 0
    return True


cdef inline l0rt_entry* entry_new(l0rt_history* history) noexcept nogil:
    """The place of the next entry; NULL: there is no host memory for any."""
    cdef l0rt_entry* entry
    if unlikely(history.at == history.backed) and not ring_ready(history):
        return NULL
    entry = entry_at(history, history.at)
    history.count += 1
    history.at += 1
    if unlikely(history.at == history.capacity):
        history.at = 0
    return entry


cdef inline void write_entry(l0rt_history* history, l0rt_arena* arena, int action, uint64_t address, uint64_t size,
                             uint32_t stack, uint32_t tag) noexcept nogil:
    """The history's lock is held."""
    cdef l0rt_entry* entry
    if history.skipped >> action & 1:
        return
    entry = entry_new(history)
    if entry == NULL:
        return
    entry.ticks = ticks_now()
    entry.address = address
    entry.size = size
    entry.stack = stack
    entry.note = doing.note
    entry.thread = thread_number()
    entry.tag = <uint16_t>tag
    entry.action = <uint16_t>action
    entry.stream = NULL
    entry.pool_id[0] = entry.pool_id[1] = 0
    if arena != NULL:
        entry.stream = arena.stream
        if arena.private_pool != NULL:
            entry.pool_id[0], entry.pool_id[1] = arena.private_pool.id[0], arena.private_pool.id[1]


cdef void marks_begin(l0rt_mark function, uint64_t guard) noexcept nogil:
    global _mark, guard_bytes
    _mark, guard_bytes = function, guard


cdef inline void mark_block(l0rt_block* block, uint32_t mark) noexcept nogil:
    if block.arena.recording & MARKS:
        _mark(mark + (MARK_KEPT if is_kept(block.arena.private_pool) else 0), block.ptr, block.size, block.requested)


cdef void history_alloc(l0rt_block* block) noexcept nogil:
    cdef l0rt_arena* arena = block.arena
    cdef l0rt_history* history = arena.heap.history
    cdef int64_t recording = arena.recording
    mark_block(block, MARK_BLOCK)
    block.stack = doing.stack if recording & RECORDS_BLOCKS else 0
    block.tag = doing.tag if recording & RECORDS_TAGS else 0
    if not spin_lock(&history.lock):
        return
    if block.tag != 0:
        sum_add(history, block.tag, block.size)
    if recording & RECORDS_ENTRIES:
        write_entry(history, arena, ALLOC, <uintptr_t>block.ptr, block.requested,
                    doing.stack if recording & STACKS_OF_ALLOC else 0, block.tag)
    spin_unlock(&history.lock)


cdef void history_free(l0rt_block* block, int action) noexcept nogil:
    """FREE, or at first FREE_REQUESTED and FREE_COMPLETED later."""
    cdef l0rt_arena* arena = block.arena
    cdef l0rt_history* history = arena.heap.history
    cdef int64_t recording = arena.recording
    cdef int kept = action
    if action != FREE_COMPLETED:
        mark_block(block, MARK_FREED)
    if not spin_lock(&history.lock):
        return
    if block.tag != 0 and action != FREE_COMPLETED:
        sum_add(history, block.tag, -<int64_t>block.size)
    if action == FREE and history.skipped >> FREE_REQUESTED & 1:
        kept = FREE_COMPLETED
    elif action == FREE and history.skipped >> FREE_COMPLETED & 1:
        kept = FREE_REQUESTED
    if recording & RECORDS_ENTRIES:
        write_entry(history, arena, kept, <uintptr_t>block.ptr, block.requested,
                    doing.stack if recording & STACKS_OF_FREE else 0, block.tag)
    spin_unlock(&history.lock)
    if action != FREE_REQUESTED:
        block.stack = block.tag = 0


cdef void history_segment(l0rt_arena* arena, int action, void* ptr, uint64_t size) noexcept nogil:
    cdef l0rt_history* history = arena.heap.history
    if arena.recording & MARKS:
        _mark(MARK_RANGE if action == SEGMENT_ALLOC or action == SEGMENT_MAP else MARK_NO_RANGE, ptr, size, 0)
    if arena.recording & RECORDS_ENTRIES and spin_lock(&history.lock):
        write_entry(history, arena, action, <uintptr_t>ptr, size,
                    doing.stack if arena.recording & STACKS_OF_ALLOC else 0, 0)
        spin_unlock(&history.lock)


cdef void history_note(l0rt_heap* heap, int action, uint64_t address, uint64_t size) noexcept nogil:
    cdef int64_t recording = load_i64(&heap.recording)
    if recording & RECORDS_ENTRIES and spin_lock(&heap.history.lock):
        write_entry(heap.history, NULL, action, address, size, doing.stack if recording & STACKS_OF_ALLOC else 0, 0)
        spin_unlock(&heap.history.lock)


cdef void history_annotate(l0rt_block* block, uint32_t note) noexcept nogil:
    cdef l0rt_arena* arena = block.arena
    cdef int64_t recording = load_i64(&arena.recording)
    cdef uint32_t stack, thread_note = doing.note
    if not recording & RECORDS_ENTRIES:
        return
    stack = context_begin(arena, NULL)
    if spin_lock(&arena.heap.history.lock):
        doing.note = note
        write_entry(arena.heap.history, arena, ANNOTATE, <uintptr_t>block.ptr, block.requested,
                    doing.stack if recording & STACKS_OF_ALLOC else 0, block.tag)
        doing.note = thread_note
        spin_unlock(&arena.heap.history.lock)
    context_end(stack)


# --- Whose doing it is.


cdef uint32_t context_begin(l0rt_arena* arena, l0rt_block* freed) noexcept nogil:
    """NULL: not a free. A thread that frees without the GIL does not wait for it, since whoever frees does not expect
    to wait for Python: it has the stack of when it tried with the GIL, if it did."""
    cdef uint32_t before = doing.stack
    cdef int64_t recording = load_i64(&arena.recording)
    doing.stack = 0
    if freed == NULL:
        if recording & (STACKS_OF_ALLOC | RECORDS_BLOCKS):
            doing.stack = stack_gather(True)
    elif doing.left == freed:
        doing.stack = doing.left_stack
    elif recording & STACKS_OF_FREE:
        doing.stack = stack_gather(False)
    doing.left = NULL
    return before


cdef void context_leave(l0rt_block* freed) noexcept nogil:
    doing.left = freed
    doing.left_stack = doing.stack


cdef void context_end(uint32_t before) noexcept nogil:
    doing.stack = before


cdef uint32_t thread_tag() noexcept nogil:
    return doing.tag


cdef void thread_set_tag(uint32_t tag) noexcept nogil:
    doing.tag = tag


cdef uint32_t thread_note() noexcept nogil:
    return doing.note


cdef void thread_set_note(uint32_t note) noexcept nogil:
    doing.note = note


# --- Sums by tag. The history's lock is held.


cdef void sum_add(l0rt_history* history, uint32_t tag, int64_t change) noexcept nogil:
    cdef l0rt_stat* sums = history.sums
    cdef uint32_t count = max(history.sums_count, <uint32_t>TAGS_AT_FIRST)
    if tag >= history.sums_count:
        while count <= tag:
            count *= 2
        sums = <l0rt_stat*>realloc(history.sums, count * sizeof(l0rt_stat))
        if sums == NULL:
            return
        memset(&sums[history.sums_count], 0, (count - history.sums_count) * sizeof(l0rt_stat))
        history.sums, history.sums_count = sums, count
    sums[tag].current += change
    if change > 0:
        sums[tag].allocated += change
        sums[tag].peak = max(sums[tag].peak, sums[tag].current)
    else:
        sums[tag].freed -= change


cdef uint32_t history_sums(l0rt_heap* heap, l0rt_stat* out, uint32_t capacity) noexcept nogil:
    """Copy at most ``capacity`` sums, the first of which is nobody's; return how many there are (then ask again)."""
    cdef l0rt_history* history = heap.history
    cdef uint32_t i, count = 0
    if history != NULL and spin_lock(&history.lock):
        count = history.sums_count
        for i in range(min(count, capacity)):
            out[i] = history.sums[i]
        spin_unlock(&history.lock)
    return count


cdef void history_reset(l0rt_heap* heap, bint peaks) noexcept nogil:
    """Let peaks be what is so now, or what only grows start at zero."""
    cdef l0rt_history* history = heap.history
    cdef uint32_t i
    if history == NULL or not spin_lock(&history.lock):
        return
    for i in range(history.sums_count):
        if peaks:
            history.sums[i].peak = history.sums[i].current
        else:
            history.sums[i].allocated = history.sums[i].freed = 0
    spin_unlock(&history.lock)


# --- What is recorded.


cdef void history_want(int64_t flags, uint64_t capacity, uint32_t skipped) noexcept nogil:
    """Of every heap from now on. The GIL is held."""
    global _flags, _capacity, _skipped
    _flags, _capacity, _skipped = flags, capacity, skipped


cdef int64_t history_wanted() noexcept nogil:
    return _flags


cdef uint64_t history_limit() noexcept nogil:
    return _capacity


cdef int64_t host_flags(int64_t flags) noexcept nogil:
    """Of these, what is meant for pinned memory."""
    return flags & ~<int64_t>RECORDS_PINNED if flags & RECORDS_PINNED else flags & RECORDS_TAGS


cdef void flags_add(int64_t flags) noexcept nogil:
    global _flags
    _flags |= flags


cdef void blocks_forget(l0rt_arena* arena, bint tags) noexcept nogil:
    """No block of now has a stack, nor a tag: it is older than what is recorded. The arena is locked."""
    cdef l0rt_segment* segment = arena.segments
    cdef l0rt_block* block
    while segment != NULL:
        block = segment.first
        while block != NULL:
            block.stack = 0
            if tags:
                block.tag = 0
            block = block.after
        segment = segment.next


cdef void ring_clear(l0rt_history* history) noexcept nogil:
    """The history's lock is held."""
    cdef uint64_t i
    for i in range(history.backed >> CHUNK_SHIFT):
        free(history.chunks[i])
    free(history.chunks)
    history.chunks = NULL
    history.places = history.backed = history.count = history.at = 0


cdef inline uint64_t entries_kept(l0rt_history* history) noexcept nogil:
    return min(history.count, history.capacity)


cdef void ring_resize(l0rt_history* history, uint64_t capacity) noexcept nogil:
    """The newest entries move to a ring of this size; where there is no host memory for it, they are given up."""
    cdef l0rt_history other
    cdef uint64_t count = entries_kept(history), i, at
    if capacity == history.capacity:
        return
    memset(&other, 0, sizeof(other))
    other.capacity = capacity
    at = history.at if history.count >= history.capacity else 0
    for i in range(count):
        if count - i <= capacity:
            entry = entry_new(&other)
            if entry != NULL:
                entry[0] = entry_at(history, at)[0]
        at += 1
        if at == history.capacity:
            at = 0
    ring_clear(history)
    history.chunks, history.places, history.backed = other.chunks, other.places, other.backed
    history.count, history.at, history.capacity = other.count, other.at, other.capacity


cdef int history_follow(l0rt_heap* heap, int64_t flags, bint clears) noexcept nogil:
    """Let a heap record by these flags, and as all do otherwise. -1: there is no host memory for that, and nothing has
    changed."""
    cdef l0rt_arena* arena
    cdef bint has_begun, begins_tags
    if _mark != NULL:
        flags |= MARKS
    if (flags == 0 and heap.history == NULL) or not recount_lock_all(heap):
        return 0
    if heap.history == NULL:
        heap.history = <l0rt_history*>calloc(1, sizeof(l0rt_history))
        if heap.history == NULL:
            recount_unlock(heap)
            return -1
        heap.history.capacity = 1
    has_begun = heap.recording & (RECORDS_ENTRIES | RECORDS_BLOCKS)
    begins_tags = flags & RECORDS_TAGS and not heap.recording & RECORDS_TAGS
    if spin_lock(&heap.history.lock):
        if clears:
            ring_clear(heap.history)
        if flags & RECORDS_ENTRIES:
            ring_resize(heap.history, max(_capacity, <uint64_t>1))
            heap.history.skipped = _skipped
        spin_unlock(&heap.history.lock)
    store_i64(&heap.recording, flags | INT64_MIN if flags != 0 else 0)
    arena = heap.arenas
    while arena != NULL:
        store_i64(&arena.recording, heap.recording)
        if not has_begun or begins_tags:
            blocks_forget(arena, begins_tags)
        arena = arena.next
    recount_unlock(heap)
    return 0


cdef void history_drop(l0rt_heap* heap) noexcept nogil:
    """The heap ends."""
    if heap.history != NULL:
        ring_clear(heap.history)
        free(heap.history.sums)
        free(heap.history)
    heap.history = NULL


cdef void history_copy(l0rt_heap* heap, l0rt_trace* trace, uint64_t active) noexcept nogil:
    """Copy all entries, and then note that this was done; nothing, if there is no space for them."""
    cdef l0rt_history* history = heap.history
    cdef uint64_t i, at, count
    trace.count = 0
    if history == NULL or not spin_lock(&history.lock):
        return
    trace.count = count = entries_kept(history)
    if count > trace.capacity:
        spin_unlock(&history.lock)
        return
    at = history.at if history.count >= history.capacity else 0
    for i in range(count):
        trace.entries[i] = entry_at(history, at)[0]
        at += 1
        if at == history.capacity:
            at = 0
    if heap.recording & RECORDS_ENTRIES:
        write_entry(history, NULL, SNAPSHOT, 0, active, 0, 0)
    spin_unlock(&history.lock)


cdef void history_read_clock() noexcept nogil:
    clock_read()


cdef int64_t history_time(uint64_t ticks) noexcept nogil:
    return clock_at(ticks)
